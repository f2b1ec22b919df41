use std::time::Duration;

use clap::Args;

use super::log::LogArgs;
use super::options::SnapshotFormat;
use crate::schema::SchemaName;
use crate::text::parse_duration;

/// Longest wait for a session to end.
const MAX_WAIT: Duration = Duration::from_secs(600);

const RECOVER_HELP: &str = "\
An orphan is an execution that is recorded as running while no session holds its key, and whose last heartbeat is older than \
locktop.orphan_grace (30s unless the database sets it): its session has ended. It is marked as failed; its task is due again, or failed for good at its last attempt. The session that holds \
a key is terminated only with --terminate, after the task's own timeout, and if it is the session recorded for the execution. There are no \
orphans on a standby, and none within the grace period after a start, a crash or a promotion.

Exit status: 0 everything was recovered or had ended already, nothing to do, or --dry-run; 1 something could not be recovered \
(the reason is printed), or the answer was no; 2 wrong usage, or no terminal to ask on and no --yes.";

/// `locktop recover`.
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
    pub timeout: Option<Limit>,
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
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = wait)]
    pub wait: Duration,
    /// The reason, for the audit log.
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Output format.
    #[arg(long, value_enum, default_value_t = SnapshotFormat::Table)]
    pub format: SnapshotFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    Own,
    Longer(Duration),
}

fn limit(text: &str) -> Result<Limit, String> {
    if text == "own" {
        return Ok(Limit::Own);
    }
    parse_duration(text)
        .map(Limit::Longer)
        .ok_or_else(|| "expected a duration, such as 30m (write a target before the option)".to_owned())
}

fn wait(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .filter(|found| *found <= MAX_WAIT)
        .ok_or_else(|| "expected a duration up to 10m, such as 10s".to_owned())
}
