use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::options::SnapshotFormat;

const CHECK_HELP: &str = "\
Exit status: 0 the file has no mistakes and, with a target, something that it describes was found and at least one query of each part can \
run; 1 the file has mistakes, or a part cannot be read there; 2 wrong usage.";

/// `locktop adapters …`.
#[derive(Debug, Clone, Subcommand)]
pub enum AdaptersCommand {
    /// List the job systems found in a database: the queries used, the cost of each, and why a part is not read.
    List(AdaptersListArgs),
    /// Check the file of an adapter for mistakes; with a target, also find the tables it describes and plan its queries.
    #[command(after_help = CHECK_HELP)]
    Check(AdaptersCheckArgs),
}

impl AdaptersCommand {
    pub fn target(&self) -> Option<&str> {
        match self {
            Self::List(arguments) => arguments.target.as_deref(),
            Self::Check(arguments) => arguments.target.as_deref(),
        }
    }
}

/// `locktop adapters list`.
#[derive(Debug, Clone, Args)]
pub struct AdaptersListArgs {
    /// Output format.
    #[arg(long, value_enum, default_value_t = SnapshotFormat::Table)]
    pub format: SnapshotFormat,
    /// A URI, a key=value string, a name from the config, or a database name.
    pub target: Option<String>,
}

/// `locktop adapters check`.
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
