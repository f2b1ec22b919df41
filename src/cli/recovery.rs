//! The options of `locktop recover`.

use std::time::Duration;

use clap::Args;

use super::log::LogArgs;
use super::options::SnapshotFormat;
use crate::schema::SchemaName;
use crate::text::parse_duration;

/// Longest wait for a session to end.
const MAX_WAIT: Duration = Duration::from_secs(600);

const RECOVER_HELP: &str = "\
An orphan is an execution that runs in the log while nobody holds its key, whose last sign of life is longer ago than \
locktop.orphan_grace (30s unless the database sets it): its session is gone. It is failed in the log; its task is due again, or given up at its last attempt. The session that \
holds a key is ended only with --terminate, past the task's own timeout, and if it is the one that the log names. On a standby, and \
for the time of the grace after a start, a crash or a promotion, nothing is an orphan.

Exit status: 0 all was recovered or had ended by itself, there was nothing to do, or --dry-run; 1 something could not be \
recovered, with its reason, or the answer was no; 2 wrong usage, or no terminal to ask on and no --yes.";

/// `locktop recover`.
#[derive(Debug, Clone, Args)]
#[command(after_help = RECOVER_HELP)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct RecoverArgs {
    /// What locktop itself does.
    #[command(flatten)]
    pub log: LogArgs,
    /// A URI, a key=value string, a name from the config, or a database name.
    pub target: Option<String>,
    /// The schema's name, as it is: without quotes, and case counts.
    #[arg(long, value_name = "NAME", default_value_t)]
    pub schema: SchemaName,
    /// Those whose session is gone; this is the default.
    #[arg(long, conflicts_with = "timeout")]
    pub orphans: bool,
    /// Those that have run for longer, such as 30m; without a duration, for longer than their own timeout.
    #[arg(long, value_name = "DURATION", num_args = 0..=1, default_missing_value = "own", value_parser = limit)]
    pub timeout: Option<Limit>,
    /// First end the session that holds the key, where an execution is past the timeout of its task.
    #[arg(long, requires = "timeout")]
    pub terminate: bool,
    /// Of this task alone.
    #[arg(long, value_name = "NAME")]
    pub task: Option<String>,
    /// Only show what would be done, and change nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask.
    #[arg(long)]
    pub yes: bool,
    /// How long to wait for a session that was told to end, at most 10m.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = wait)]
    pub wait: Duration,
    /// Why, for the audit.
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// A table for people or JSON for programs.
    #[arg(long, value_enum, default_value_t = SnapshotFormat::Table)]
    pub format: SnapshotFormat,
}

/// A limit for how long an execution runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// As long as the timeout of its task.
    Own,
    /// As long as this, whatever its task says.
    Longer(Duration),
}

fn limit(text: &str) -> Result<Limit, String> {
    if text == "own" {
        return Ok(Limit::Own);
    }
    parse_duration(text)
        .map(Limit::Longer)
        .ok_or_else(|| "expected a duration, such as 30m (a target comes before the option)".to_owned())
}

fn wait(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .filter(|found| *found <= MAX_WAIT)
        .ok_or_else(|| "expected a duration up to 10m, such as 10s".to_owned())
}
