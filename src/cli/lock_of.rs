//! The options of `locktop lock-of`.

use clap::Args;

use super::options::SnapshotFormat;

pub(super) const HELP: &str = "\
Examples:
  locktop lock-of 'ALTER TABLE orders ADD COLUMN note text'
  locktop lock-of 'CREATE INDEX CONCURRENTLY ON shop.orders (placed_at)' prod
  locktop lock-of - prod < migration.sql

Exit status: 0 nobody is in its way, or no server was asked; 1 it would wait; 2 wrong usage; 3 it is not known: a statement that locktop \
does not know, a table that is not there, or a server that does not answer.";

/// `locktop lock-of`.
#[derive(Debug, Clone, Args)]
pub struct LockOfArgs {
    /// The statement, or several with semicolons between them; - for standard input.
    pub statement: String,
    /// A table for people or JSON for programs.
    #[arg(long, value_enum, default_value_t = SnapshotFormat::Table)]
    pub format: SnapshotFormat,
    /// Columns of the text, 0 for lines of any length [default: those of the terminal, or 100 without one]
    #[arg(long, value_name = "COLUMNS")]
    pub width: Option<u16>,
    /// A URI, a key=value string, a name from the config, or a database name; without one no server is asked.
    pub target: Option<String>,
}
