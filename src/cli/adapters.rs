//! The options of `locktop adapters`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::options::SnapshotFormat;

const CHECK_HELP: &str = "\
Exit status: 0 the file is right and, with a target, something that it describes was found and at least one query of each part may run; \
1 there are mistakes in it, or a part cannot be read there; 2 wrong usage.";

/// `locktop adapters …`.
#[derive(Debug, Clone, Subcommand)]
pub enum AdaptersCommand {
    /// Which job systems of others are in a database: which queries are used there, what each costs, and why something is not read.
    List(AdaptersListArgs),
    /// Look for mistakes in the file of an adapter; with a target also find what it describes there, and plan its queries.
    #[command(after_help = CHECK_HELP)]
    Check(AdaptersCheckArgs),
}

impl AdaptersCommand {
    /// The target, where one is named.
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
    /// A table for people or JSON for programs.
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
    /// A table for people or JSON for programs.
    #[arg(long, value_enum, default_value_t = SnapshotFormat::Table)]
    pub format: SnapshotFormat,
    /// A URI, a key=value string, a name from the config, or a database name; without one only the file is looked at.
    pub target: Option<String>,
}
