//! One snapshot, as exact as the server can make it.

use std::sync::Arc;
use std::time::Duration;

use super::digest::Digest;
use crate::model::lock_name::LockNames;
use crate::model::thresholds::Thresholds;
use crate::model::view::{TargetId, View};
use crate::pg::conninfo::ConnInfo;
use crate::pg::poll::{Limits, OpenError, PollError, Session};

/// No snapshot.
#[derive(Debug, thiserror::Error)]
pub enum OnceError {
    /// No session.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// No answer.
    #[error(transparent)]
    Poll(#[from] PollError),
}

/// Scans, asks the server about the waiters it saw, oldest first up to the limit, and scans again: only then can an
/// answer be held against the scan before and the scan after it.
///
/// # Errors
/// When the server cannot be reached or stops to answer.
pub async fn once(
    info: &ConnInfo,
    limits: Limits,
    thresholds: Thresholds,
    lock_names: LockNames,
) -> Result<Arc<View>, OnceError> {
    let limits = Limits { name_patience: Duration::from_secs(1).max(limits.name_patience), ..limits };
    let mut session = Session::open(info, limits).await?;
    let first = session.poll(None).await?;
    let second = session.poll(Some(&first)).await?;
    Ok(Digest::new(TargetId::default(), thresholds, lock_names).snapshot_taken(second))
}
