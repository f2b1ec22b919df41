//! One snapshot, as exact as the server can make it.

use std::sync::Arc;
use std::time::Duration;

use super::digest::Digest;
use super::journal::Journal;
use super::learn::{self, Learned, Learner};
use crate::clock;
use crate::model::lock_name::LockNames;
use crate::model::snapshot::Snapshot;
use crate::model::thresholds::Thresholds;
use crate::model::view::{TargetId, View};
use crate::pg::poll::{Limits, OpenError, PollError, Session};
use crate::redis::{RedisOptions, RedisSets, RedisState, read_once};
use pg_connect::conninfo::ConnInfo;

/// Longest time for learning names.
const LEARNING: Duration = Duration::from_secs(2);

/// Longest wait for the job systems of others.
const ADAPTERS: Duration = Duration::from_secs(5);

/// Why there is no snapshot of a server.
#[derive(Debug, thiserror::Error)]
pub enum OnceError {
    /// The session with the server could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A poll of the session was not answered.
    #[error(transparent)]
    Poll(#[from] PollError),
}

/// Scans, asks the server about the waiters it saw, oldest first up to the limit, and scans again: only then can an
/// answer be held against the scan before and the scan after it.
pub async fn once(
    info: &ConnInfo,
    limits: Limits,
    thresholds: Thresholds,
    lock_names: LockNames,
) -> Result<Arc<View>, OnceError> {
    let session = open(info, limits).await?;
    let learned = Learned { names: Arc::new(lock_names), ..Learned::default() };
    look(session, thresholds, learned, None).await
}

/// The same, with names for advisory keys that are learned first, on a connection of its own, for at most two seconds;
/// and with the locks of some Redis servers, which are read meanwhile.
///
/// # Errors
/// None for names that cannot be learned: those are findings.
pub async fn once_learning(
    info: &ConnInfo,
    limits: Limits,
    thresholds: Thresholds,
    learner: Learner,
    redis: Option<(RedisSets, RedisOptions)>,
) -> Result<Arc<View>, OnceError> {
    let session = open(info, limits).await?;
    let redis = Box::pin(async {
        let (servers, options) = redis?;
        tokio::time::timeout(LEARNING, read_once(servers, options)).await.ok()
    });
    let (names, redis) = tokio::join!(Box::pin(learn::once(learner, LEARNING)), redis);
    look(session, thresholds, names, redis).await
}

async fn open(info: &ConnInfo, limits: Limits) -> Result<Session, OpenError> {
    let name_timeout = Duration::from_secs(1).max(limits.name_timeout);
    opened(info, Limits { name_timeout, adapter_timeout: ADAPTERS, ..limits }).await
}

async fn opened(info: &ConnInfo, limits: Limits) -> Result<Session, OpenError> {
    let started = clock::monotonic();
    let opened = Session::open(info, limits).await;
    match &opened {
        Ok(_) => Journal::default().connected(&info.target(), started.elapsed()),
        Err(error) => tracing::warn!("no connection: {error}"),
    }
    opened
}

async fn polled(
    session: &mut Session,
    before: Option<&Snapshot>,
    journal: &mut Journal,
) -> Result<Snapshot, PollError> {
    let started = clock::monotonic();
    let polled = session.poll(before).await;
    match &polled {
        Ok(snapshot) => journal.polled(snapshot, started.elapsed(), Duration::ZERO),
        Err(error) => Journal::failed(&error.to_string(), started.elapsed()),
    }
    polled
}

/// Several looks over one connection, and how long it took until the first answer was there. No names are learned: that takes a
/// connection of its own.
pub async fn looks(
    info: &ConnInfo,
    settings: (Limits, Thresholds, LockNames),
    redis: Option<(RedisSets, RedisOptions)>,
    (count, every): (u32, Duration),
) -> Result<(Vec<Arc<View>>, Duration), OnceError> {
    let started = clock::monotonic();
    let (limits, thresholds, lock_names) = settings;
    let (mut session, mut journal) = (open(info, limits).await?, Journal::default());
    let mut before = polled(&mut session, None, &mut journal).await?;
    let answered = started.elapsed();
    let redis = Box::pin(async {
        let (servers, options) = redis?;
        tokio::time::timeout(LEARNING, read_once(servers, options)).await.ok()
    });
    let mut digest = Digest::new(TargetId::default(), thresholds, lock_names);
    digest.refresh(every);
    if let Some(redis) = redis.await {
        digest.redis_read(redis);
    }
    digest.rights_told(session.rights());
    digest.seen_before(&before);
    let mut views = Vec::new();
    for look in 0..count {
        if look > 0 {
            tokio::time::sleep(every).await;
        }
        let snapshot = polled(&mut session, Some(&before), &mut journal).await?;
        before = snapshot.clone();
        views.push(digest.snapshot_taken(snapshot));
    }
    session.leave().await;
    Ok((views, answered))
}

async fn look(
    mut session: Session,
    thresholds: Thresholds,
    learned: Learned,
    redis: Option<RedisState>,
) -> Result<Arc<View>, OnceError> {
    let mut journal = Journal::default();
    let first = polled(&mut session, None, &mut journal).await?;
    let second = polled(&mut session, Some(&first), &mut journal).await?;
    session.leave().await;
    let mut digest = Digest::new(TargetId::default(), thresholds, LockNames::default());
    digest.learned(learned);
    if let Some(redis) = redis {
        digest.redis_read(redis);
    }
    digest.rights_told(session.rights());
    digest.seen_before(&first);
    Ok(digest.snapshot_taken(second))
}
