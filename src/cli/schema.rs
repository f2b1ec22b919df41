//! The options of `locktop schema`.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use crate::schema::{Log, SchemaName};
use crate::text::parse_duration;

/// `locktop schema …`.
#[derive(Debug, Clone, Subcommand)]
pub enum SchemaCommand {
    /// Install the schema, or upgrade it; does nothing where the latest version is.
    Install(SchemaPlace),
    /// Say which version is installed; exit status 1 unless it is the latest and as it was made.
    Status(SchemaPlace),
    /// Print the statements of an installation, for psql.
    Print {
        /// The schema's name, as it is: without quotes, and case counts.
        #[arg(long, value_name = "NAME", default_value_t)]
        schema: SchemaName,
    },
    /// Drop what was installed, with all rows in it: says how many, and asks for the schema's name. Refuses when anything depends on it.
    Drop(DropArgs),
    /// Remove old executions, queue items and audit rows: says how many, and asks. What runs or waits stays, and the
    /// last ten executions of each task.
    Purge(PurgeArgs),
    /// Copy the published tables of another schema, tasks with their executions and the work queue, into locktop's, in one transaction: says
    /// what it takes, and asks. The old tables stay as they are. Refuses while somebody works on them.
    Adopt(AdoptArgs),
}

impl SchemaCommand {
    /// Where to do it; none for what needs no server.
    pub fn place(&self) -> Option<&SchemaPlace> {
        match self {
            Self::Install(place) | Self::Status(place) => Some(place),
            Self::Drop(arguments) => Some(&arguments.place),
            Self::Purge(arguments) => Some(&arguments.place),
            Self::Adopt(arguments) => Some(&arguments.place),
            Self::Print { .. } => None,
        }
    }
}

/// A schema on a server.
#[derive(Debug, Clone, Args)]
pub struct SchemaPlace {
    /// The schema's name, as it is: without quotes, and case counts.
    #[arg(long, value_name = "NAME", default_value_t)]
    pub schema: SchemaName,
    /// A URI, a key=value string, a name from the config, or a database name.
    pub target: Option<String>,
}

/// `locktop schema drop`.
#[derive(Debug, Clone, Args)]
pub struct DropArgs {
    /// Which schema, and where.
    #[command(flatten)]
    pub place: SchemaPlace,
    /// Do not ask.
    #[arg(long)]
    pub yes: bool,
}

/// `locktop schema purge`.
#[derive(Debug, Clone, Args)]
pub struct PurgeArgs {
    /// Which schema, and where.
    #[command(flatten)]
    pub place: SchemaPlace,
    /// Remove what ended longer ago, such as 30d [default: the retention in the settings of the database]
    #[arg(long, value_name = "TIME", value_parser = keep)]
    pub keep: Option<Duration>,
    /// Only of this; may be given more than once.
    #[arg(long, value_name = "WHAT")]
    pub only: Vec<LogName>,
    /// Do not ask.
    #[arg(long)]
    pub yes: bool,
}

/// `locktop schema adopt`.
#[derive(Debug, Clone, Args)]
pub struct AdoptArgs {
    /// The schema of the published tables, as it is: without quotes, and case counts.
    #[arg(value_name = "SCHEMA")]
    pub source: SchemaName,
    /// Which schema of ours, and where.
    #[command(flatten)]
    pub place: SchemaPlace,
    /// Nobody works on the old tables any more: enable here what is enabled there, and take what is pending in the queue. Without it
    /// tasks come in disabled, and what is pending stays there.
    #[arg(long)]
    pub enable: bool,
    /// Say what would be done, and change nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask.
    #[arg(long)]
    pub yes: bool,
}

/// Something that grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogName {
    /// Executions that have ended.
    Executions,
    /// Items of the work queue that completed or failed.
    Queue,
    /// The record of what was done.
    Audit,
}

impl LogName {
    /// Which of the schema's.
    pub fn log(self) -> Log {
        match self {
            Self::Executions => Log::Executions,
            Self::Queue => Log::Queue,
            Self::Audit => Log::Audit,
        }
    }
}

fn keep(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "expected a duration such as 30d".to_owned())
}
