use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

#[cfg(feature = "demo")]
use super::demo::DemoArgs;
use super::log::LogArgs;
use super::options::{one_of, refresh};
use super::recording::{CutArgs, RecordArgs, ReplayArgs, ReportArgs};
use super::schema::{AdaptersCommand, LeadArgs, LockArgs, RecoverArgs, SchemaCommand, WorkerArgs};
use crate::output::check::{CheckFormat, MEASURES, Measure, Range, Status, names};
use crate::text::parse_duration;

pub use super::options::{SnapshotFormat, ViewArgs};
pub use crate::app::screens::Screen;

const EXAMPLES: &str = "\
Examples:
  locktop                              the server named by PGHOST etc., or the local one
  locktop -h db.example.com -U ops app
  locktop 'postgresql://ops@db.example.com/app?sslmode=require'
  locktop 'host=/run/postgresql dbname=app'
  locktop prod                         [targets.prod] of the config file
  locktop snapshot --format json prod  one snapshot, for a script
  locktop schema install prod          tables and functions for scheduled tasks, in their own schema
  locktop lock-of 'DROP INDEX i' prod  what it would lock, and which sessions block it now
  locktop recover prod                 recover tasks whose worker has died
  locktop record incident.ltr prod     record a snapshot per second; locktop replay incident.ltr shows them
  locktop worker --id w1 prod          run the tasks that are due there
  locktop lock nightly prod -- ./run   run a program while no other machine runs it
  locktop demo                         start a server of its own, with locks to see

The environment variables of libpq (PGHOST, PGUSER, PGPASSWORD, PGSSLMODE, …) and ~/.pgpass count as for psql.
Exit status: 0 done, 1 failed, 2 wrong usage.";

pub(super) const CONNECTION: &str = "Connection";

const CONFIG_HELP: &str = "The config file [default: ~/.config/locktop/config.toml] [env: LOCKTOP_CONFIG]";

/// top for PostgreSQL locks: which sessions hold them, which sessions wait, and which would continue if one is terminated.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "locktop",
    version,
    propagate_version = true,
    disable_help_flag = true,
    subcommand_precedence_over_arg = true,
    after_help = EXAMPLES
)]
pub struct Cli {
    /// A URI, a key=value string, a name from the config, or a database name.
    pub target: Option<String>,

    /// The command; the dashboard without one.
    #[command(subcommand)]
    pub command: Option<CliCommand>,

    #[command(flatten)]
    pub connect: ConnectArgs,

    #[command(flatten)]
    pub view: ViewArgs,

    /// The config file.
    #[arg(long, value_name = "FILE", global = true, help = CONFIG_HELP, help_heading = "General")]
    pub config: Option<PathBuf>,

    #[command(flatten)]
    pub log: LogArgs,

    /// Print help.
    #[arg(short = '?', long, global = true, action = ArgAction::Help, help_heading = "General")]
    help: Option<bool>,
}

impl Cli {
    /// The path of the debug log, which can be given before or after the command.
    pub fn log_file(&self) -> Result<Option<&Path>, String> {
        let outer = self.log.file.as_deref();
        match self.command.as_ref().map(CliCommand::own) {
            None => Ok(outer),
            Some((_, Some(log))) => Ok(log.file.as_deref().or(outer)),
            Some((_, None)) if outer.is_none() => Ok(None),
            Some((_, None)) => {
                Err("--log is for the dashboard, demo, snapshot, check, recover and record".to_owned())
            }
        }
    }
}

impl CliCommand {
    /// The target that is given after the command, and its debug log; `None` if it has none.
    pub(super) fn own(&self) -> (Option<&str>, Option<&LogArgs>) {
        let (target, log) = match self {
            #[cfg(feature = "demo")]
            Self::Demo(demo) => (&demo.url, Some(&demo.log)),
            Self::Snapshot(snapshot) => (&snapshot.target, Some(&snapshot.log)),
            Self::Record(record) => (&record.target, Some(&record.log)),
            Self::Check(check) => (&check.target, Some(&check.log)),
            Self::Recover(recover) => (&recover.target, Some(&recover.log)),
            Self::Lock(lock) => (&lock.target, None),
            Self::Lead(lead) => (&lead.target, None),
            Self::LockOf(lock_of) => (&lock_of.target, None),
            Self::Worker(worker) => (&worker.target, None),
            Self::Adapters(AdaptersCommand::List(list)) => (&list.target, None),
            Self::Adapters(AdaptersCommand::Check(check)) => (&check.target, None),
            Self::Schema(SchemaCommand::Install(place) | SchemaCommand::Status(place)) => {
                (&place.target, None)
            }
            Self::Schema(SchemaCommand::Drop(drop)) => (&drop.place.target, None),
            Self::Schema(SchemaCommand::Purge(purge)) => (&purge.place.target, None),
            _ => (&None, None),
        };
        (target.as_deref(), log)
    }
}

#[derive(Debug, Clone, Subcommand)]
pub enum CliCommand {
    /// Start a temporary PostgreSQL server, in which workers compete for tasks and sessions for locks, and show the dashboard.
    #[cfg(feature = "demo")]
    Demo(DemoArgs),
    /// A worker of a demo, which starts it and sends it orders.
    #[cfg(feature = "demo")]
    #[command(hide = true)]
    DemoWorker {
        /// Its name.
        name: String,
    },
    /// Print one snapshot to standard output.
    Snapshot(SnapshotArgs),
    /// Recover tasks whose worker has died and, on request, tasks that are stuck. Shows what it would do, and asks.
    Recover(RecoverArgs),
    /// Check the server for a monitoring system: exit status 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.
    Check(CheckArgs),
    /// Run a program while an advisory lock, or a lease, is held.
    Lock(LockArgs),
    /// Run a program on one machine at a time.
    Lead(LeadArgs),
    /// Show what a statement would lock, what that blocks and, with a target, which sessions block it now. The statement is not run.
    #[command(after_help = LOCK_OF_HELP)]
    LockOf(LockOfArgs),
    /// Record snapshots to a file, for "locktop replay".
    Record(RecordArgs),
    /// Show a recording in the dashboard. Connects to no server, and no shortcut acts.
    Replay(ReplayArgs),
    /// Copy a part of a recording to another file.
    Cut(CutArgs),
    /// Write a report of a recording: which sessions blocked others, for how long, and how it ended.
    Report(ReportArgs),
    /// Install, inspect, print, fill or drop locktop's own tables and functions.
    #[command(subcommand)]
    Schema(SchemaCommand),
    /// List the job systems (Solid Queue, River, …) found in a database, or check the file of an adapter.
    #[command(subcommand)]
    Adapters(AdaptersCommand),
    /// Run scheduled tasks and items of the work queue: take those that are due, hold a lock for each, and record each result.
    Worker(WorkerArgs),
    /// Print a completion script for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page (roff).
    Man {
        /// Write one page for the program and one for each command into this directory instead.
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// Print, check or find the config file.
    #[command(subcommand)]
    Config(ConfigCommand),
}

#[derive(Debug, Clone, Subcommand)]
pub enum ConfigCommand {
    /// Print the default config with comments.
    Print,
    /// Check the config file for mistakes.
    Check {
        /// Another file.
        file: Option<PathBuf>,
    },
    /// Print the path of the config file.
    Path,
    /// Print the names of its targets, one per line.
    Targets {
        /// The output format.
        #[arg(long, value_enum, default_value_t = TargetsFormat::Lines)]
        format: TargetsFormat,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TargetsFormat {
    /// One name per line.
    Lines,
    /// Zabbix discovery: an array of objects with {#TARGET}.
    Zabbix,
}

/// psql's connection options.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = CONNECTION)]
pub struct ConnectArgs {
    /// Server host or socket directory.
    #[arg(short = 'h', long, value_name = "HOST", global = true)]
    pub host: Option<String>,
    /// Server port.
    #[arg(short = 'p', long, value_name = "PORT", global = true)]
    pub port: Option<String>,
    /// Role to connect as.
    #[arg(short = 'U', long, value_name = "USER", global = true)]
    pub username: Option<String>,
    /// Database to connect to, or a connection string.
    #[arg(short = 'd', long, value_name = "DBNAME", global = true)]
    pub dbname: Option<String>,
    /// Never ask for a password.
    #[arg(short = 'w', long, global = true, overrides_with = "password")]
    pub no_password: bool,
    /// Ask for the password before connecting.
    #[arg(short = 'W', long, global = true)]
    pub password: bool,
    /// Trust this role: use its tables and functions, in addition to those of superusers and of the connecting role; can be given
    /// more than once. Code of a trusted role runs with your rights. Small tables of other roles are copied, which runs no code.
    #[arg(long, value_name = "ROLE", global = true)]
    pub trust_owner: Vec<String>,
    /// A Redis server; its locks are shown with the leases. <redis://host>, or <rediss://host> for TLS. Given several times, the servers are
    /// one set (Redlock); URLs separated by commas are a set of their own. Command lines are visible to other users: put a password in the config.
    #[arg(long, value_name = "URL", global = true)]
    pub redis: Vec<String>,
    /// Pattern of the Redis keys that are locks; can be given more than once [default: lock:*]
    #[arg(long, value_name = "GLOB", global = true)]
    pub redis_pattern: Vec<String>,
}

#[derive(Debug, Clone, Args)]
pub struct SnapshotArgs {
    /// Output format.
    #[arg(long, value_enum, default_value_t = SnapshotFormat::Table)]
    pub format: SnapshotFormat,
    /// Width of the table in columns, 0 for unlimited [default: that of the terminal, or 100 without one]
    #[arg(long, value_name = "COLUMNS")]
    pub width: Option<u16>,
    /// Keep running: print one JSON line per snapshot, at this interval [default: 1s]
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "1s", value_parser = refresh())]
    pub watch: Option<Duration>,
    /// With --watch: exit after N snapshots.
    #[arg(long, value_name = "N", requires = "watch", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// With --watch: print a snapshot only if the wait graph, the state of a task, lease or item, or the findings changed.
    #[arg(long, requires = "watch")]
    pub changes: bool,
    /// With --watch: also print one line per event.
    #[arg(long, requires = "watch")]
    pub events: bool,
    #[command(flatten)]
    pub log: LogArgs,
    /// A URI, a key=value string, a name from the config, or a database name.
    pub target: Option<String>,
}

const LOCK_OF_HELP: &str = "\
Examples:
  locktop lock-of 'ALTER TABLE orders ADD COLUMN note text'
  locktop lock-of 'CREATE INDEX CONCURRENTLY ON shop.orders (placed_at)' prod
  locktop lock-of - prod < migration.sql
  locktop lock-of --single-transaction - prod < migration.sql

Exit status: 0 no session blocks the statements that could be judged, or no server was asked; 1 a session blocks at least \
one: it would wait, or fail at once; 2 wrong usage; 3 no statement could be judged, or the server does not answer. The last \
line lists the statements that could not be judged; in JSON, not_judged.";

#[derive(Debug, Clone, Args)]
pub struct LockOfArgs {
    /// The statement, or several separated by semicolons; - for standard input.
    pub statement: String,
    /// Judge all statements as one transaction, as psql -1 and most migration tools run them.
    #[arg(short = '1', long)]
    pub single_transaction: bool,
    /// Output format.
    #[arg(long, value_enum, default_value_t = SnapshotFormat::Table)]
    pub format: SnapshotFormat,
    /// Width of the text in columns, 0 for unlimited [default: that of the terminal, or 100 without one]
    #[arg(long, value_name = "COLUMNS")]
    pub width: Option<u16>,
    /// A URI, a key=value string, a name from the config, or a database name; without one no server is asked.
    pub target: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub struct CheckArgs {
    #[command(flatten)]
    pub log: LogArgs,
    /// Warning threshold of a check; can be given more than once. Short form: -w NAME=RANGE.
    #[arg(long, value_name = "NAME=RANGE", value_parser = limit)]
    pub warning: Vec<(String, Range)>,
    /// Critical threshold of a check. Short form: -c NAME=RANGE.
    #[arg(long, value_name = "NAME=RANGE", value_parser = limit)]
    pub critical: Vec<(String, Range)>,
    /// Only these checks, separated by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = name)]
    pub only: Vec<String>,
    /// All checks except these, separated by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = name)]
    pub not: Vec<String>,
    /// Time limit; then the result is UNKNOWN.
    #[arg(short = 't', long, value_name = "TIME", default_value = "10s", value_parser = seconds)]
    pub timeout: Duration,
    /// Number of polls; a check alerts only if it alerts in each of them.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=60))]
    pub looks: u32,
    /// Time between two polls.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = seconds)]
    pub every: Duration,
    /// Output format.
    #[arg(long, value_enum, default_value_t = CheckFormat::Plugin)]
    pub format: CheckFormat,
    /// Status if no connection can be made.
    #[arg(long, value_name = "STATUS", default_value = "unknown", value_parser = one_of(DOWN))]
    pub down_is: Status,
    /// A URI, a key=value string, a name from the config, or a database name.
    pub target: Option<String>,
}

const DOWN: [(&str, &str, Status); 2] =
    [("unknown", "3", Status::Unknown), ("critical", "2", Status::Critical)];

pub(super) fn check_help() -> String {
    let range = |range: Option<Range>| range.map_or_else(|| "-".to_owned(), |range| range.to_string());
    let row = |measure: &Measure| {
        let unit = if measure.unit == "c" { "" } else { measure.unit };
        let (warning, critical) = (range(measure.warning), range(measure.critical));
        format!("  {:<16}{unit:<4}{warning:>8}{critical:>9}\n", measure.name)
    };
    let rows = MEASURES.iter().map(row).collect::<Vec<_>>().concat();
    format!(
        "Checks, with their unit and the highest value without a WARNING and without a CRITICAL:\n{rows}  and connect (s), blocked_seconds (s, with --looks)\n\n\
         Ranges: 10 alerts above 10 (and below 0), 10: below 10, ~:10 above 10, 10:20 outside of both, @10:20 between them; times may have a \
         unit (30s, 5m, 1h). Quote ~ in a shell: -c 'worst_root=~:10'.\n\n\
         Examples:\n  locktop check app\n  locktop check -w waiting=5 -c worst_root=10 -c longest_wait=5m app\n  \
         locktop check --only tasks_orphan,tasks_overdue --looks 3 app\n\n\
         Exit status: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN (also wrong usage and this help).\n\
         A link to locktop named check_locktop takes the options of a monitoring plugin: -H HOST -w NAME=RANGE -c NAME=RANGE -t SECONDS."
    )
}

fn name(text: &str) -> Result<String, String> {
    if names().any(|name| name == text) {
        return Ok(text.to_owned());
    }
    let hint = pg_connect::conninfo::nearest(text, names())
        .map_or_else(|| names().collect::<Vec<_>>().join(", "), |name| format!("did you mean {name}?"));
    Err(format!("unknown check: {hint}"))
}

fn limit(text: &str) -> Result<(String, Range), String> {
    let (check, range) = text.split_once('=').ok_or("a limit is NAME=RANGE, such as worst_root=10")?;
    Ok((name(check)?, range.parse::<Range>().map_err(|error| error.to_string())?))
}

/// Plugins give a timeout as plain seconds; other times have a unit.
fn seconds(text: &str) -> Result<Duration, String> {
    let time = match text.parse::<u32>() {
        Ok(seconds) => Duration::from_secs(seconds.into()),
        Err(_) => parse_duration(text).ok_or("expected a duration such as 10s")?,
    };
    if time.is_zero() { Err("expected a duration above 0".to_owned()) } else { Ok(time) }
}
