//! The options and subcommands.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

use super::adapters::AdaptersCommand;
use super::check::CheckArgs;
use super::demo::DemoArgs;
use super::lock_of::{self, LockOfArgs};
use super::log::LogArgs;
use super::options::refresh;
pub use super::options::{SnapshotFormat, ThemeName, ViewArgs};
use super::recording::{CutArgs, RecordArgs, ReplayArgs, ReportArgs};
use super::recovery::RecoverArgs;
use super::schema::SchemaCommand;
pub use crate::app::screens::Screen;
use crate::locks::work_session::WorkerId;
use crate::schema::SchemaName;
use crate::text::parse_duration;

const EXAMPLES: &str = "\
Examples:
  locktop                              the server that PGHOST and the rest of the environment name, or the one here
  locktop -h db.example.com -U ops app
  locktop 'postgresql://ops@db.example.com/app?sslmode=require'
  locktop 'host=/run/postgresql dbname=app'
  locktop prod                         [targets.prod] of the config file
  locktop snapshot --format json prod  one look, for a script
  locktop schema install prod          tables and functions for scheduled tasks, in a schema of their own
  locktop lock-of 'DROP INDEX i' prod  what that would lock, and who is in its way there now
  locktop recover prod                 tasks whose worker is gone are made due again
  locktop record incident.ltr prod     looks at it each second, into a file; locktop replay incident.ltr shows them
  locktop worker --id w1 prod          runs what is due there
  locktop demo                         a server of its own with something to see

The environment variables of libpq (PGHOST, PGUSER, PGPASSWORD, PGSSLMODE, …) and ~/.pgpass count as for psql.
Exit status: 0 done, 1 failed, 2 wrong usage.";

const CONFIG_HELP: &str = "The config file [default: ~/.config/locktop/config.toml] [env: LOCKTOP_CONFIG]";

/// top for PostgreSQL locks: who holds what, who waits for whom, and what ending a backend would free.
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

    /// What to do in place of the dashboard.
    #[command(subcommand)]
    pub command: Option<Command>,

    /// Where to connect.
    #[command(flatten)]
    pub connect: ConnectArgs,

    /// How the dashboard looks.
    #[command(flatten)]
    pub view: ViewArgs,

    /// The config file.
    #[arg(long, value_name = "FILE", global = true, help = CONFIG_HELP, help_heading = "Options")]
    pub config: Option<PathBuf>,

    /// What locktop itself does, for whoever reports a bug.
    #[command(flatten)]
    pub log: LogArgs,

    /// Print help.
    #[arg(short = '?', long, global = true, action = ArgAction::Help, help_heading = "Options")]
    help: Option<bool>,
}

impl Cli {
    /// The file of the log, before or behind the command; none where none is wanted.
    ///
    /// # Errors
    /// In one line: the command has no log of that kind.
    pub fn log_file(&self) -> Result<Option<&Path>, String> {
        let outer = self.log.file.as_deref();
        let inner = match &self.command {
            Some(Command::Demo(demo)) => demo.log.file.as_deref(),
            Some(Command::Snapshot(snapshot)) => snapshot.log.file.as_deref(),
            Some(Command::Check(check)) => check.log.file.as_deref(),
            Some(Command::Recover(recover)) => recover.log.file.as_deref(),
            Some(Command::Record(record)) => record.log.file.as_deref(),
            Some(_) if outer.is_some() => {
                let for_whom = "the dashboard, demo, snapshot, check, recover and record";
                return Err(format!("--log is for {for_whom}"));
            }
            None | Some(_) => None,
        };
        Ok(inner.or(outer))
    }
}

/// What to do in place of the dashboard.
#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// Start a PostgreSQL server of our own, let workers compete for tasks and sessions for locks in it, and show the dashboard.
    Demo(DemoArgs),
    /// A worker of a demo, which starts it and tells it what to do.
    #[command(hide = true)]
    DemoWorker {
        /// What it is called.
        name: String,
    },
    /// Print one snapshot on standard output.
    Snapshot(SnapshotArgs),
    /// Recover tasks whose worker is gone, and on demand those that are stuck: shows what it would do, and asks.
    Recover(RecoverArgs),
    /// Check the server for a monitoring system: exit status 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.
    Check(CheckArgs),
    /// What a statement would lock, whom that stops, and with a target who is in its way now. Nothing of it is run.
    #[command(after_help = lock_of::HELP)]
    LockOf(LockOfArgs),
    /// Record looks into a file, for "locktop replay".
    Record(RecordArgs),
    /// Show the dashboard over a recording: no server is asked, and nothing acts.
    Replay(ReplayArgs),
    /// Take a part of a recording out, into a file of its own.
    Cut(CutArgs),
    /// Write what happened in a recording: who made others wait, what that cost, and how it ended.
    Report(ReportArgs),
    /// Install, look at, print, fill or drop locktop's own tables and functions.
    #[command(subcommand)]
    Schema(SchemaCommand),
    /// Which job systems of others (Solid Queue, River, …) are in a database, and whether the file of an adapter is right.
    #[command(subcommand)]
    Adapters(AdaptersCommand),
    /// Run scheduled tasks and items of the work queue: take what is due, hold a lock for each, and record how they end.
    Worker(WorkerArgs),
    /// Print a completion script for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page (roff).
    Man {
        /// Write a page for the program and one for each command into this directory instead.
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// Print, check or find the config file.
    #[command(subcommand)]
    Config(ConfigCommand),
}

/// `locktop config …`.
#[derive(Debug, Clone, Subcommand)]
pub enum ConfigCommand {
    /// Print the default config with comments.
    Print,
    /// Look for mistakes in the config file.
    Check {
        /// Another file.
        file: Option<PathBuf>,
    },
    /// Print where the config file is looked for.
    Path,
    /// Print the names of its targets, a line each.
    Targets {
        /// For whom.
        #[arg(long, value_enum, default_value_t = TargetsFormat::Lines)]
        format: TargetsFormat,
    },
}

/// How targets are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TargetsFormat {
    /// A name on each line.
    Lines,
    /// Zabbix' discovery: an array of objects with {#TARGET}.
    Zabbix,
}

/// `locktop worker`.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct WorkerArgs {
    /// The worker's name, as it stands in the tables; a second one of that name on the same schema is refused.
    #[arg(long, value_name = "NAME")]
    pub id: WorkerId,
    /// Take work only from the tasks, or only from the queue; by default from both, in turns.
    #[arg(long, value_name = "SOURCE")]
    pub only: Option<Only>,
    /// How many tasks and items to run at once, 1 to 1000.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub concurrency: u16,
    /// Take only work of these types, with commas between them; all others are left alone [default: all that it knows and may do]
    #[arg(long, value_name = "TYPES", value_delimiter = ',', value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub types: Vec<String>,
    /// Also run programs, type command, with the rights of this process: whoever may write to the tables may run any.
    #[arg(long)]
    pub allow_commands: bool,
    /// Refused with what replaces it: scripts and units of 0.1.0 have it.
    #[arg(long, hide = true)]
    pub allow_http: bool,
    /// The name of the schema that the tables are in, as it is: without quotes, and case counts.
    #[arg(long, value_name = "NAME", default_value_t)]
    pub schema: SchemaName,
    /// How the log on standard error is written.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// Log only warnings and errors.
    #[arg(short = 'q', long)]
    pub quiet: bool,
    /// How long what runs may go on after SIGTERM or SIGINT; then it is stopped and given back [default: 10s; with --exit-with-stdin 0s]
    #[arg(long, value_name = "TIME", value_parser = grace)]
    pub grace: Option<Duration>,
    /// Time between two signs of life while anything runs, 0.1s to 10s [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = heartbeat)]
    pub heartbeat: Option<Duration>,
    /// Also look who waits for which lock of the server, every TIME from 0.1s to 1h [without one: 5s]: a view of the schema sums
    /// it up. Waits that are over between two looks are not seen. One such worker is enough for a server
    #[arg(long, value_name = "TIME", value_parser = observe_locks, num_args = 0..=1, require_equals = true, default_missing_value = "5s")]
    pub observe_locks: Option<Duration>,
    /// End when standard input does, for whoever starts workers and does not want to leave any behind.
    #[arg(long)]
    pub exit_with_stdin: bool,
    /// A URI, a key=value string, a name from the config, or a database name.
    pub target: Option<String>,
}

/// How a log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people: a line for each event.
    Text,
    /// For programs: an object on each line.
    Json,
}

/// What a worker serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Only {
    /// Scheduled tasks.
    Tasks,
    /// Items of the work queue.
    Queue,
}

/// psql's connection options.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Connection")]
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
    /// A role whose tables and functions may be used, beside those of superusers and of the role that connects; may be given more than
    /// once. What such a role wrote runs with the rights of yours. Small tables of others are copied, which runs nothing.
    #[arg(long, value_name = "ROLE", global = true)]
    pub trust_owner: Vec<String>,
    /// A Redis server whose locks are shown with the leases, such as <redis://host>, or <rediss://host> for TLS; several are one set
    /// (Redlock). URLs with commas between them are a set of their own. Others see a command line: a password belongs in the config.
    #[arg(long, value_name = "URL", global = true)]
    pub redis: Vec<String>,
    /// Which keys of the Redis servers are locks [default: lock:*]
    #[arg(long, value_name = "GLOB", global = true)]
    pub redis_pattern: Option<String>,
}

/// `locktop snapshot`.
#[derive(Debug, Clone, Args)]
pub struct SnapshotArgs {
    /// A table for people or JSON for programs.
    #[arg(long, value_enum, default_value_t = SnapshotFormat::Table)]
    pub format: SnapshotFormat,
    /// Columns of the table, 0 for lines of any length [default: those of the terminal, or 100 without one]
    #[arg(long, value_name = "COLUMNS")]
    pub width: Option<u16>,
    /// Go on: a line of JSON for each look, this often [default: 1s]
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "1s", value_parser = refresh)]
    pub watch: Option<Duration>,
    /// With --watch: end after so many looks.
    #[arg(long, value_name = "N", requires = "watch", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// With --watch: only looks in which somebody waits for somebody else than before, a task, lease or item changed its state, or something else is wrong.
    #[arg(long, requires = "watch")]
    pub changes: bool,
    /// With --watch: a line for each event too.
    #[arg(long, requires = "watch")]
    pub events: bool,
    /// What locktop itself does.
    #[command(flatten)]
    pub log: LogArgs,
    /// A URI, a key=value string, a name from the config, or a database name.
    pub target: Option<String>,
}

fn grace(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "expected a duration such as 10s".to_owned())
}

fn heartbeat(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .filter(|found| (Duration::from_millis(100)..=Duration::from_secs(10)).contains(found))
        .ok_or_else(|| "expected a duration from 0.1s to 10s, such as 5s".to_owned())
}

fn observe_locks(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .filter(|found| (Duration::from_millis(100)..=Duration::from_secs(3600)).contains(found))
        .ok_or_else(|| "expected a duration from 0.1s to 1h, such as 5s".to_owned())
}
