use clap::Args;

use super::options::SnapshotFormat;

pub(super) const HELP: &str = "\
Examples:
  locktop lock-of 'ALTER TABLE orders ADD COLUMN note text'
  locktop lock-of 'CREATE INDEX CONCURRENTLY ON shop.orders (placed_at)' prod
  locktop lock-of - prod < migration.sql
  locktop lock-of --single-transaction - prod < migration.sql

Exit status: 0 no session blocks the statements that could be judged, or no server was asked; 1 a session blocks at least \
one: it would wait, or fail at once; 2 wrong usage; 3 no statement could be judged, or the server does not answer. The last \
line lists the statements that could not be judged; in JSON, not_judged.";

/// `locktop lock-of`.
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
