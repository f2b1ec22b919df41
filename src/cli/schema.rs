use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use crate::schema::{Log, SchemaName};
use crate::text::parse_duration;

/// `locktop schema …`.
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

impl SchemaCommand {
    /// The schema and target; `None` for commands that need no server.
    pub fn place(&self) -> Option<&SchemaPlace> {
        match self {
            Self::Install(place) | Self::Status(place) => Some(place),
            Self::Drop(arguments) => Some(&arguments.place),
            Self::Purge(arguments) => Some(&arguments.place),
            Self::Print { .. } => None,
        }
    }
}

/// A schema on a server.
#[derive(Debug, Clone, Args)]
pub struct SchemaPlace {
    /// The schema's name: without quotes, case-sensitive.
    #[arg(long, value_name = "NAME", default_value_t)]
    pub schema: SchemaName,
    /// A URI, a key=value string, a name from the config, or a database name.
    pub target: Option<String>,
}

/// `locktop schema drop`.
#[derive(Debug, Clone, Args)]
pub struct DropArgs {
    #[command(flatten)]
    pub place: SchemaPlace,
    /// Do not ask for confirmation.
    #[arg(long)]
    pub yes: bool,
}

/// `locktop schema purge`.
#[derive(Debug, Clone, Args)]
pub struct PurgeArgs {
    #[command(flatten)]
    pub place: SchemaPlace,
    /// Remove what ended longer ago than this, such as 30d [default: the retention in the settings of the database]
    #[arg(long, value_name = "TIME", value_parser = keep)]
    pub keep: Option<Duration>,
    /// Only rows of this kind; can be given more than once.
    #[arg(long, value_name = "WHAT")]
    pub only: Vec<LogName>,
    /// Do not ask for confirmation.
    #[arg(long)]
    pub yes: bool,
}

/// A table that grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogName {
    /// Executions that have ended.
    Executions,
    /// Items of the work queue that completed or failed.
    Queue,
    /// The audit log of actions.
    Audit,
}

impl LogName {
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
