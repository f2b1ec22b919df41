//! The options of `locktop lock-of`.

use clap::Args;

use super::options::SnapshotFormat;

pub(super) const HELP: &str = "\
Examples:
  locktop lock-of 'ALTER TABLE orders ADD COLUMN note text'
  locktop lock-of 'CREATE INDEX CONCURRENTLY ON shop.orders (placed_at)' prod
  locktop lock-of - prod < migration.sql
  locktop lock-of --single-transaction - prod < migration.sql

Exit status: 0 no session is in the way of the statements that could be judged, or no server was asked; 1 a session is in the way of at \
least one: it would wait, or fail at once; 2 wrong usage; 3 no statement could be judged, or the server does not answer. Statements that \
could not be judged are listed on the last line, and under not_judged in JSON.";

/// `locktop lock-of`.
#[derive(Debug, Clone, Args)]
pub struct LockOfArgs {
    /// The statement, or several with semicolons between them; - for standard input.
    pub statement: String,
    /// Judge all statements as one transaction, as psql -1 and most migration tools run them.
    #[arg(short = '1', long)]
    pub single_transaction: bool,
    /// Output format.
    #[arg(long, value_enum, default_value_t = SnapshotFormat::Table)]
    pub format: SnapshotFormat,
    /// Columns of the text, 0 for lines of any length [default: those of the terminal, or 100 without one]
    #[arg(long, value_name = "COLUMNS")]
    pub width: Option<u16>,
    /// A URI, a key=value string, a name from the config, or a database name; without one no server is asked.
    pub target: Option<String>,
}
