use std::sync::Arc;
use std::time::Duration;

use super::journal::Journal;
use super::learn::{self, Learner};
use super::view_builder::ViewBuilder;
use crate::clock;
use crate::model::lock_name::LockNames;
use crate::model::snapshot::Snapshot;
use crate::model::thresholds::Thresholds;
use crate::model::view::{TargetId, View};
use crate::pg::poll::{OpenError, PollConnection, PollError, PollLimits};
use crate::redis::{RedisOptions, RedisSets, RedisState, read_once};
use pg_connect::conninfo::ConnInfo;

/// Longest time for learning names.
const LEARNING: Duration = Duration::from_secs(2);

/// Longest wait for other job systems.
const ADAPTERS: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
pub enum OnceError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Poll(#[from] PollError),
}

/// Takes two scans and queries the server about the waiters in between, oldest first up to the limit: only then can an
/// answer be checked against the scans before and after it.
pub async fn once(
    info: &ConnInfo,
    limits: PollLimits,
    thresholds: Thresholds,
    lock_names: LockNames,
) -> Result<Arc<View>, OnceError> {
    let view_builder = ViewBuilder::new(TargetId::default(), thresholds, lock_names);
    polled_twice(open(info, limits).await?, view_builder, None).await
}

/// Like `once`, after learning names of advisory lock keys on a separate connection for at most two seconds. Meanwhile the
/// locks of the Redis servers are read. Names that cannot be learned are findings, not errors.
pub async fn once_learning(
    info: &ConnInfo,
    limits: PollLimits,
    thresholds: Thresholds,
    learner: Learner,
    redis: Option<(RedisSets, RedisOptions)>,
) -> Result<Arc<View>, OnceError> {
    let session = open(info, limits).await?;
    let (names, redis) = tokio::join!(Box::pin(learn::once(learner, LEARNING)), Box::pin(redis_state(redis)));
    let mut view_builder = ViewBuilder::new(TargetId::default(), thresholds, LockNames::default());
    view_builder.learned(names);
    polled_twice(session, view_builder, redis).await
}

async fn redis_state(redis: Option<(RedisSets, RedisOptions)>) -> Option<RedisState> {
    let (servers, options) = redis?;
    tokio::time::timeout(LEARNING, read_once(servers, options)).await.ok()
}

async fn open(info: &ConnInfo, limits: PollLimits) -> Result<PollConnection, OpenError> {
    let name_timeout = Duration::from_secs(1).max(limits.name_timeout);
    let limits = PollLimits { name_timeout, adapter_timeout: ADAPTERS, ..limits };
    let started = clock::monotonic();
    let opened = PollConnection::open(info, limits).await;
    match &opened {
        Ok(_) => Journal::default().connected(&info.target(), started.elapsed()),
        Err(error) => tracing::warn!("no connection: {error}"),
    }
    opened
}

async fn polled(
    session: &mut PollConnection,
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

/// Several snapshots on one connection, and the time until the first answer. Names are not learned, since that needs a
/// connection of its own.
pub async fn snapshots(
    info: &ConnInfo,
    settings: (PollLimits, Thresholds, LockNames),
    redis: Option<(RedisSets, RedisOptions)>,
    (count, every): (u32, Duration),
) -> Result<(Vec<Arc<View>>, Duration), OnceError> {
    let started = clock::monotonic();
    let (limits, thresholds, lock_names) = settings;
    let (mut session, mut journal) = (open(info, limits).await?, Journal::default());
    let mut before = polled(&mut session, None, &mut journal).await?;
    let answered = started.elapsed();
    let mut view_builder = ViewBuilder::new(TargetId::default(), thresholds, lock_names);
    view_builder.refresh(every);
    if let Some(redis) = Box::pin(redis_state(redis)).await {
        view_builder.redis_read(redis);
    }
    view_builder.rights_read(session.rights());
    view_builder.seen_before(&before);
    let mut views = Vec::new();
    for number in 0..count {
        if number > 0 {
            tokio::time::sleep(every).await;
        }
        let snapshot = polled(&mut session, Some(&before), &mut journal).await?;
        before = snapshot.clone();
        views.push(view_builder.snapshot_taken(snapshot));
    }
    session.leave().await;
    Ok((views, answered))
}

async fn polled_twice(
    mut session: PollConnection,
    mut view_builder: ViewBuilder,
    redis: Option<RedisState>,
) -> Result<Arc<View>, OnceError> {
    let mut journal = Journal::default();
    let first = polled(&mut session, None, &mut journal).await?;
    let second = polled(&mut session, Some(&first), &mut journal).await?;
    session.leave().await;
    if let Some(redis) = redis {
        view_builder.redis_read(redis);
    }
    view_builder.rights_read(session.rights());
    view_builder.seen_before(&first);
    Ok(view_builder.snapshot_taken(second))
}
