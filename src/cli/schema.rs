//! The arguments of the commands that use tables: locktop's schema, locks and recovery, and other systems.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::log::LogArgs;
use super::options::{HOUR, SnapshotFormat, TENTH, one_of, time};
use crate::locks::work_session::WorkerId;
use crate::schema::{Log, SchemaName};
use crate::text::parse_duration;
use crate::worker::{Format, Source};

#[derive(Debug, Clone, Subcommand)]
pub enum SchemaCommand {
    /// Install or upgrade the schema; does nothing if it is up to date.
    Install(SchemaPlace),
    /// Print the installed version; exit with 1 unless it is the latest and unchanged.
    Status(SchemaPlace),
    /// Print the SQL of an installation, for psql.
    Print {
        /// The schema's name: without quotes, case-sensitive.
        #[arg(long, value_name = "NAME", default_value_t)]
        schema: SchemaName,
    },
    /// Drop the installed objects with all their rows: shows the number of rows, and asks for the schema's name. Refused if other objects depend on it.
    Drop(DropArgs),
    /// Remove old executions, queue items and audit rows: shows how many, and asks. Keeps what is running or waiting,
    /// and the last ten executions of each task.
    Purge(PurgeArgs),
}

#[derive(Debug, Clone, Args)]
pub struct SchemaPlace {
    /// The schema's name: without quotes, case-sensitive.
    #[arg(long, value_name = "NAME", default_value_t)]
    pub schema: SchemaName,
    /// A URI, a key=value string, a name from the config, or a database name.
    pub target: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub struct DropArgs {
    #[command(flatten)]
    pub place: SchemaPlace,
    /// Do not ask for confirmation.
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, Clone, Args)]
pub struct PurgeArgs {
    #[command(flatten)]
    pub place: SchemaPlace,
    /// Remove what ended longer ago than this, such as 30d [default: the retention in the settings of the database]
    #[arg(long, value_name = "TIME", value_parser = time(.., " such as 30d"))]
    pub keep: Option<Duration>,
    /// Only rows of this kind; can be given more than once.
    #[arg(long, value_name = "WHAT", value_parser = one_of(LOGS))]
    pub only: Vec<Log>,
    /// Do not ask for confirmation.
    #[arg(long)]
    pub yes: bool,
}

const LOGS: [(&str, &str, Log); 3] = [
    ("executions", "Executions that have ended", Log::Executions),
    ("queue", "Items of the work queue that completed or failed", Log::Queue),
    ("audit", "The audit log of actions", Log::Audit),
];

const CHECK_HELP: &str = "\
Exit status: 0 the file has no mistakes and, with a target, something that it describes was found and at least one query of each part can \
run; 1 the file has mistakes, or a part cannot be read there; 2 wrong usage.";

#[derive(Debug, Clone, Subcommand)]
pub enum AdaptersCommand {
    /// List the job systems found in a database: the queries used, the cost of each, and why a part is not read.
    List(AdaptersListArgs),
    /// Check the file of an adapter for mistakes; with a target, also find the tables it describes and plan its queries.
    #[command(after_help = CHECK_HELP)]
    Check(AdaptersCheckArgs),
}

#[derive(Debug, Clone, Args)]
pub struct AdaptersListArgs {
    /// Output format.
    #[arg(long, value_enum, default_value_t = SnapshotFormat::Table)]
    pub format: SnapshotFormat,
    /// A URI, a key=value string, a name from the config, or a database name.
    pub target: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub struct AdaptersCheckArgs {
    /// The file.
    pub file: PathBuf,
    /// Output format.
    #[arg(long, value_enum, default_value_t = SnapshotFormat::Table)]
    pub format: SnapshotFormat,
    /// A URI, a key=value string, a name from the config, or a database name; without one only the file is checked.
    pub target: Option<String>,
}

/// Longest wait for a session to end.
const MAX_WAIT: Duration = Duration::from_secs(600);

const RECOVER_HELP: &str = "\
An orphan is an execution that is recorded as running while no session holds its key, and whose last heartbeat is older than \
locktop.orphan_grace (30s unless the database sets it): its session has ended. It is marked as failed; its task is due again, or failed for good at its last attempt. The session that holds \
a key is terminated only with --terminate, after the task's own timeout, and if it is the session recorded for the execution. There are no \
orphans on a standby, and none within the grace period after a start, a crash or a promotion.

Exit status: 0 everything was recovered or had ended already, nothing to do, or --dry-run; 1 something could not be recovered \
(the reason is printed), or the answer was no; 2 wrong usage, or no terminal to ask on and no --yes.";

#[derive(Debug, Clone, Args)]
#[command(after_help = RECOVER_HELP)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct RecoverArgs {
    #[command(flatten)]
    pub log: LogArgs,
    /// A URI, a key=value string, a name from the config, or a database name.
    pub target: Option<String>,
    /// The schema's name: without quotes, case-sensitive.
    #[arg(long, value_name = "NAME", default_value_t)]
    pub schema: SchemaName,
    /// Recover tasks whose session has ended (the default).
    #[arg(long, conflicts_with = "timeout")]
    pub orphans: bool,
    /// Also recover tasks that have run for longer than this, such as 30m; without a duration, for longer than their own timeout.
    #[arg(long, value_name = "DURATION", num_args = 0..=1, default_missing_value = "own", value_parser = limit)]
    pub timeout: Option<TimeLimit>,
    /// If an execution is past the timeout of its task, first terminate the session that holds the key.
    #[arg(long, requires = "timeout")]
    pub terminate: bool,
    /// Recover only this task.
    #[arg(long, value_name = "NAME")]
    pub task: Option<String>,
    /// Show what would be done; change nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask for confirmation.
    #[arg(long)]
    pub yes: bool,
    /// How long to wait for a terminated session to end, at most 10m.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time(..=MAX_WAIT, " up to 10m, such as 10s"))]
    pub wait: Duration,
    /// The reason, for the audit log.
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Output format.
    #[arg(long, value_enum, default_value_t = SnapshotFormat::Table)]
    pub format: SnapshotFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeLimit {
    Own,
    Longer(Duration),
}

fn limit(text: &str) -> Result<TimeLimit, String> {
    if text == "own" {
        return Ok(TimeLimit::Own);
    }
    parse_duration(text)
        .map(TimeLimit::Longer)
        .ok_or_else(|| "expected a duration, such as 30m (write a target before the option)".to_owned())
}

const HELP: &str = "\
The lock is a session-level advisory lock: the server releases it when locktop exits for any reason. Its key is a hash of NAME; \
the dashboard shows NAME. With --lease, the lock is a lease in locktop's tables, which outlasts the connection.

If the lock is lost, CMD gets SIGTERM, and SIGKILL 5 s later (with --lease, after a tenth of the term if that is shorter): its process group without a \
terminal, CMD alone on one. Signals are passed on. If locktop itself is killed (SIGKILL), CMD continues without the lock.

Exit status: that of CMD, or 128 + N if signal N ended it; 75: the lock is taken (see --wait); 76: the lock was lost; 1: an \
error; 2: wrong usage; 126: CMD cannot be run; 127: CMD not found.";

const LEAD_HELP: &str = "\
CMD runs on one machine at a time, the holder of the lock NAME. If the lock is lost, CMD gets SIGTERM, and SIGKILL 5 s later (with \
--lease, after a tenth of the term if that is shorter); then locktop waits for the lock again, and for the server if it cannot be reached. \
A standby has locks of its own: with several hosts, set target_session_attrs=read-write.

Exit status: that of CMD, or 128 + N if signal N ended it; 1: an error; 2: wrong usage; 126: CMD cannot be run; 127: CMD not found.";

const LEASE_HELP: &str = "Take a lease instead, for this time (at least 0.1s), and renew it. CMD gets its fencing token in LOCKTOP_TOKEN";

#[derive(Debug, Clone, Args)]
#[command(after_help = HELP)]
pub struct LockArgs {
    /// The lock's name; with --lease, the lease's name, or a number, which is its id.
    pub name: String,
    /// A URI, a key=value string, a name from the config, or a database name.
    pub target: Option<String>,
    /// Longest time to wait for the lock; 0 tries once [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = time(.., " such as 5s"))]
    pub wait: Option<Duration>,
    /// Share the lock with other holders that use --shared.
    #[arg(long, conflicts_with = "lease")]
    pub shared: bool,
    #[command(flatten)]
    pub lease: LeaseOptions,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// Options for a lease in place of an advisory lock.
#[derive(Debug, Clone, Args)]
pub struct LeaseOptions {
    /// The term of a lease.
    #[arg(long, value_name = "TIME", value_parser = time(.., " such as 5s"), help = LEASE_HELP)]
    pub lease: Option<Duration>,
    /// The name of the leases' schema: without quotes, case-sensitive.
    #[arg(long, value_name = "NAME", default_value_t, requires = "lease")]
    pub schema: SchemaName,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = LEAD_HELP)]
pub struct LeadArgs {
    /// The lock's name; with --lease, the lease's name, or a number, which is its id.
    pub name: String,
    /// A URI, a key=value string, a name from the config, or a database name.
    pub target: Option<String>,
    #[command(flatten)]
    pub lease: LeaseOptions,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct WorkerArgs {
    /// The worker's name, as it appears in the tables; a second worker with that name on the same schema is refused.
    #[arg(long, value_name = "NAME")]
    pub id: WorkerId,
    /// Take work only from the tasks or only from the queue [default: both, in turn]
    #[arg(long, value_name = "SOURCE", value_parser = one_of(SOURCES))]
    pub only: Option<Source>,
    /// How many tasks and items to run at the same time, 1 to 1000.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub concurrency: u16,
    /// Take only work of these types, separated by commas [default: all types that it knows and is permitted to run]
    #[arg(long, value_name = "TYPES", value_delimiter = ',', value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub types: Vec<String>,
    /// Also run work of type command: programs, with the rights of this process. Every role that can write to the tables can then run any program.
    #[arg(long)]
    pub allow_commands: bool,
    /// Refused, naming the option that replaced it: scripts and units of 0.1.0 have it.
    #[arg(long, hide = true)]
    pub allow_http: bool,
    /// The name of the schema that the tables are in: without quotes, case-sensitive.
    #[arg(long, value_name = "NAME", default_value_t)]
    pub schema: SchemaName,
    /// Format of the log on standard error.
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = one_of(FORMATS))]
    pub log_format: Format,
    /// Log only warnings and errors.
    #[arg(short = 'q', long)]
    pub quiet: bool,
    /// How long running work can continue after SIGTERM or SIGINT; then it is stopped and released [default: 10s; with --exit-with-stdin 0s]
    #[arg(long, value_name = "TIME", value_parser = time(.., " such as 10s"))]
    pub grace: Option<Duration>,
    /// Time between two heartbeats while work is running, 0.1s to 10s [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = time(TENTH..=Duration::from_secs(10), " from 0.1s to 10s, such as 5s"))]
    pub heartbeat: Option<Duration>,
    /// Also record the lock waits of the server, every TIME from 0.1s to 1h [without TIME: 5s]; a view of the schema
    /// sums them up. Waits that end between two polls are not seen. One such worker per server is enough
    #[arg(long, value_name = "TIME", value_parser = time(TENTH..=HOUR, " from 0.1s to 1h, such as 5s"), num_args = 0..=1, require_equals = true, default_missing_value = "5s")]
    pub observe_locks: Option<Duration>,
    /// Exit when standard input is closed, so that a parent process leaves no worker behind.
    #[arg(long)]
    pub exit_with_stdin: bool,
    /// A URI, a key=value string, a name from the config, or a database name.
    pub target: Option<String>,
}

const FORMATS: [(&str, &str, Format); 2] = [
    ("text", "One line of text per event", Format::Text),
    ("json", "One JSON object per line", Format::Json),
];

const SOURCES: [(&str, &str, Source); 2] =
    [("tasks", "Scheduled tasks", Source::Tasks), ("queue", "Items of the work queue", Source::Queue)];
