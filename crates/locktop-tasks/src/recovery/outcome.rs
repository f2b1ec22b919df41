use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use super::running::AlsoEnded;
use locktop_base::Timestamp;

/// The result for one execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum RecoveryOutcome {
    /// Marked as failed in the log; its task is due again.
    Recovered,
    /// Marked as failed in the log; it was the last attempt.
    GaveUp,
    /// It had already ended, or was recovered by another client.
    NotRunning,
    /// The plan leaves it alone, so nothing was sent.
    LeftAlone,
    /// The execution no longer exists.
    NotFound,
    /// It differs from the plan: another worker or session, or a sign of life since.
    Changed,
    /// Another session has its row or its task locked.
    Locked,
    /// A session holds its key, so it may still run.
    Held,
    /// The session of this recovery holds its key.
    HeldByUs,
    /// A prepared transaction holds its key.
    Prepared,
    /// Several sessions hold its key in shared mode.
    Shared,
    /// The server cannot tell whether it runs.
    Unknown,
    /// It is still within its timeout, so its session is not terminated.
    NotSlow,
    /// This role cannot see when the holder's session began.
    Hidden,
    /// The role lacks a privilege that the recovery needs. Nothing was done.
    Forbidden,
    /// The server refused for another reason. Nothing was done.
    Failed,
    /// The connection was lost midway, or there was no readable answer in time: it is not known what was done.
    Uncertain,
    /// Not tried, since an earlier result is not known.
    NotTried,
}

impl RecoveryOutcome {
    /// The outcome as a word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Parses the server's word; `None` for any other, and for the outcomes that only locktop reports.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        let ours = [Self::LeftAlone, Self::Forbidden, Self::Failed, Self::Uncertain, Self::NotTried];
        word.parse().ok().filter(|outcome| !ours.contains(outcome))
    }

    /// Whether this recovery closed it.
    #[must_use]
    pub const fn is_recovered(self) -> bool {
        matches!(self, Self::Recovered | Self::GaveUp)
    }

    /// Whether nothing is left to recover, whether this recovery or another closed it.
    #[must_use]
    pub const fn is_settled(self) -> bool {
        matches!(self, Self::Recovered | Self::GaveUp | Self::NotRunning)
    }
}

/// The result for one execution, and the server's message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecoveryResult {
    /// `task_execution_log.id` of the execution.
    pub execution_id: i64,
    /// Whether it was recovered, or why not.
    pub outcome: RecoveryOutcome,
    /// The observation, or the reason; may contain text from the server.
    pub detail: String,
    /// The process id of the session that holds its key; `None` if there is none or the server did not report it.
    pub holder_pid: Option<i32>,
    /// The process id of the session that was requested to end; `None` if there was none.
    pub ended_pid: Option<i32>,
    /// Other executions that were seen in its session; empty if it was not requested to end, or not by this recovery.
    pub also_ended: Vec<AlsoEnded>,
    /// The row of `locktop_audit` that requested that.
    pub audit_id: Option<i64>,
    /// When the task runs next; `None` if it does not, or was not recovered.
    pub next_run_at: Option<Timestamp>,
}

impl RecoveryResult {
    /// A result with only an outcome and its detail.
    #[must_use]
    pub fn new(execution_id: i64, outcome: RecoveryOutcome, detail: impl Into<String>) -> Self {
        Self {
            execution_id,
            outcome,
            detail: detail.into(),
            holder_pid: None,
            ended_pid: None,
            also_ended: Vec::new(),
            audit_id: None,
            next_run_at: None,
        }
    }
}
