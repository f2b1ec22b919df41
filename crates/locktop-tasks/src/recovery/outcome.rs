//! What came of a recovery.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use super::session::AlsoEnded;
use locktop_base::Timestamp;

/// What came of one execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum RecoveryOutcome {
    /// Failed in the log; its task is due again.
    Recovered,
    /// Failed in the log; it was the last attempt.
    GaveUp,
    /// It had ended by itself, or somebody else had recovered it.
    NotRunning,
    /// The plan leaves it alone, so nothing was sent.
    LeftAlone,
    /// There is no such execution any more.
    NotFound,
    /// It is not what was planned for: another worker or session, or a sign of life since.
    Changed,
    /// Somebody has its row or its task locked.
    Locked,
    /// Somebody holds its key, so it may still run.
    Held,
    /// Our own session holds its key.
    HeldByUs,
    /// A prepared transaction holds its key.
    Prepared,
    /// Several hold its key in shared mode.
    Shared,
    /// The server cannot tell whether it runs.
    Unknown,
    /// It is still within its timeout, so its session is not ended.
    NotSlow,
    /// When the holder's session began is hidden from this role.
    Hidden,
    /// The role lacks a privilege that the recovery needs. Nothing was done.
    Forbidden,
    /// The server refused for another reason. Nothing was done.
    Failed,
    /// The connection was lost in the middle, or there was no answer in time or none that makes sense: what was done is not known.
    Uncertain,
    /// Not tried, since it is not known what came of one before.
    NotTried,
}

impl RecoveryOutcome {
    /// Its word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Reads the server's word; none for another one, and for the outcomes that only we tell.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        let ours = [Self::LeftAlone, Self::Forbidden, Self::Failed, Self::Uncertain, Self::NotTried];
        word.parse().ok().filter(|outcome| !ours.contains(outcome))
    }

    /// Whether we closed it.
    #[must_use]
    pub const fn is_recovered(self) -> bool {
        matches!(self, Self::Recovered | Self::GaveUp)
    }

    /// Whether there is nothing left to recover: by our hand or another's.
    #[must_use]
    pub const fn is_settled(self) -> bool {
        matches!(self, Self::Recovered | Self::GaveUp | Self::NotRunning)
    }
}

/// What came of one execution, and what the server said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecoveryResult {
    /// `task_execution_log.id` of the execution.
    pub execution_id: i64,
    /// Whether it was recovered, or what stood in the way.
    pub outcome: RecoveryOutcome,
    /// What was observed, or why not; text of the server may be in it.
    pub detail: String,
    /// The process id of the session that holds its key; none where nobody does or the server did not say.
    pub holder_pid: Option<i32>,
    /// The process id of the session that was told to end; none where none was.
    pub ended_pid: Option<i32>,
    /// What was seen to run in its session too; nothing where it was not told to end, or not by us.
    pub also_ended: Vec<AlsoEnded>,
    /// The row of `locktop_audit` that asked for that.
    pub audit_id: Option<i64>,
    /// When the task runs next; none where it does not, or was not recovered.
    pub next_run_at: Option<Timestamp>,
}

impl RecoveryResult {
    /// A result without more than words.
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
