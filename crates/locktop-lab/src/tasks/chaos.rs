//! What befalls the workers: killed, stopped and woken, cut off from the server. Which of them, and when, comes from the seed;
//! what each is doing then does not.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_postgres::{Client, Error};

use super::shared::{Shared, now};
use super::witness::{Moment, Stop};
use crate::random::Random;
use crate::scenario::SCHEMA;
use crate::workers::stands_still;
use locktop_base::clock;

/// Until a lost server is tried again.
const PAUSE: Duration = Duration::from_millis(500);
const POLL: Duration = Duration::from_millis(50);
/// At most so many stand still at once.
const ASLEEP: usize = 2;
/// Work that is done within this many seconds is let alone.
const NEARLY_DONE: f64 = 0.3;
/// A worker is stopped only where its task is past its timeout within this many seconds.
const TIMEOUT: f64 = 8.0;
/// Longest that a worker stands still.
const LONGEST: Duration = Duration::from_secs(30);
/// How many times slower mishaps come where somebody looks on.
const SHOWN_PACE: u64 = 2;
/// Mixed into the seed, so that the tasks and this do not go in step.
const SALT: u64 = 0x6368_616f_7321;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Kill,
    Stop,
    Cut,
}

/// What happens next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mishap {
    /// Milliseconds until then.
    gap: u64,
    act: Act,
    /// Which of those that are in the middle of a task.
    which: u64,
    /// For how many milliseconds a stopped one stands still after it has lost its task.
    after: u64,
}

impl Mishap {
    fn next(random: &mut Random, crash: bool) -> Self {
        let (gap, lot) = if crash {
            (800 + random.below(900), random.below(12))
        } else {
            (7_000 + random.below(5_000), 11)
        };
        let act = match lot {
            0 | 1 => Act::Stop,
            2 => Act::Cut,
            // Without crashes, too, a worker is lost now and then, as in life.
            _ => Act::Kill,
        };
        Self { gap, act, which: random.next(), after: 500 + random.below(2_500) }
    }
}

/// Goes on for as long as it is let.
pub(super) async fn keep(shared: Arc<Shared>) {
    let mut random = Random::new(shared.options.seed ^ SALT);
    loop {
        if let Some(client) = shared.connect("mishaps").await {
            // An error is a lost server.
            let _ = inject_until_lost(&shared, Arc::new(client), &mut random).await;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn inject_until_lost(
    shared: &Arc<Shared>,
    client: Arc<Client>,
    random: &mut Random,
) -> Result<(), Error> {
    wake_all(shared, now(&client).await?);
    let mut pauses = JoinSet::new();
    loop {
        let Mishap { gap, act, which, after } = Mishap::next(random, shared.options.crash);
        // Where somebody looks on he is to see one after the other.
        let pace = if shared.options.crash && !shared.options.counted { SHOWN_PACE } else { 1 };
        tokio::time::sleep(Duration::from_millis(gap * pace)).await;
        while pauses.try_join_next().is_some() {}
        let act = if act == Act::Stop && pauses.len() >= ASLEEP { Act::Kill } else { act };
        let Some(victim) = choose(shared, &client, act, which).await? else { continue };
        match act {
            Act::Kill => {
                if shared.crew().kill(victim.process) {
                    shared.record().kills += 1;
                }
            }
            Act::Cut => cut(shared, &client, &victim).await?,
            Act::Stop => {
                let after = Duration::from_millis(after);
                pauses.spawn(pause_worker(Arc::clone(shared), Arc::clone(&client), victim, after));
            }
        }
    }
}

/// Wakes whoever stands still, as of this moment.
pub(super) fn wake_all(shared: &Shared, now: Moment) -> Vec<i32> {
    let mut woken = Vec::new();
    for stop in shared.record().stops.iter_mut().filter(|stop| stop.to.is_none()) {
        stop.to = Some(now);
        woken.push(stop.process);
    }
    for process in &woken {
        shared.crew().wake(*process);
    }
    woken
}

/// A worker in the middle of a task.
struct Victim {
    process: i32,
    worker: String,
    /// None where the recipe is somebody else's.
    execution: Option<i64>,
}

/// One of the workers that are in the middle of a task; waits a little where there is none.
async fn choose(shared: &Shared, client: &Client, act: Act, which: u64) -> Result<Option<Victim>, Error> {
    let schema = shared.ground.schema.quoted();
    let sql = if shared.ground.recipe {
        format!(
            "SELECT process, worker, NULL::bigint FROM {SCHEMA}.witness WHERE ended IS NULL AND process = ANY ($1) ORDER BY process"
        )
    } else {
        let soon = if act == Act::Stop { TIMEOUT } else { f64::INFINITY };
        format!(
            "SELECT w.process, w.worker, e.id
               FROM {SCHEMA}.witness w
               JOIN {schema}.task_execution_log e ON e.id = w.execution_id AND e.status = 'running'
               JOIN {schema}.scheduled_tasks t ON t.id = e.task_id
              CROSS JOIN LATERAL (SELECT extract(epoch FROM clock_timestamp() - e.started_at)::float8 AS age) a
              WHERE w.ended IS NULL AND w.process = ANY ($1)
                AND (t.payload ->> 'seconds')::float8 - a.age > {NEARLY_DONE}
                AND extract(epoch FROM t.timeout)::float8 - a.age < '{soon}'::float8
              ORDER BY w.process"
        )
    };
    let start = clock::monotonic();
    while start.elapsed() < PAUSE * 4 {
        let at_work = shared.crew().at_work();
        let rows = client.query(&sql, &[&at_work]).await?;
        let count = u64::try_from(rows.len()).unwrap_or(u64::MAX);
        let index = which.checked_rem(count).and_then(|index| usize::try_from(index).ok());
        if let Some(row) = index.and_then(|index| rows.get(index)) {
            let (process, worker, execution) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            return Ok(Some(Victim { process, worker, execution }));
        }
        tokio::time::sleep(POLL).await;
    }
    Ok(None)
}

/// Ends the session that holds the task's lock, as a network or an administrator would.
async fn cut(shared: &Shared, client: &Client, victim: &Victim) -> Result<(), Error> {
    let schema = shared.ground.schema.quoted();
    let done = if let Some(execution) = victim.execution {
        let sql = format!(
            "SELECT pg_terminate_backend(a.pid)
               FROM {schema}.task_execution_log e
               JOIN pg_stat_activity a ON a.pid = e.backend_pid AND a.backend_start = e.backend_start
              WHERE e.id = $1 AND e.status = 'running'"
        );
        client.query_opt(&sql, &[&execution]).await?
    } else {
        let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                    WHERE datname = current_database() AND application_name = $1";
        client.query_opt(sql, &[&victim.worker]).await?
    };
    shared.record().cuts += u64::from(done.is_some());
    Ok(())
}

/// Stops a worker until its task was recovered and a while longer, then wakes it. The times that are written down are those of
/// the server: after it stood still, and before it was woken.
async fn pause_worker(
    shared: Arc<Shared>,
    client: Arc<Client>,
    victim: Victim,
    after: Duration,
) -> Result<(), Error> {
    let Some(pid) = shared.crew().stop(victim.process) else { return Ok(()) };
    let start = clock::monotonic();
    while stands_still(pid) == Some(false) && start.elapsed() < LONGEST {
        tokio::time::sleep(POLL / 10).await;
    }
    if stands_still(pid).is_none() {
        tokio::time::sleep(POLL).await;
    }
    let from = now(&client).await?;
    let index = {
        let mut record = shared.record();
        record.stopped += 1;
        record.stops.push(Stop { process: victim.process, from, to: None });
        record.stops.len() - 1
    };
    let overslept = lost(&shared, &client, &victim).await?;
    tokio::time::sleep(after).await;
    let to = now(&client).await?;
    if let Some(stop) = shared.record().stops.get_mut(index) {
        stop.to = Some(to);
    }
    shared.record().overslept += u64::from(overslept);
    shared.crew().wake(victim.process);
    Ok(())
}

/// Waits until the execution of one that stands still was recovered; false when it was not.
async fn lost(shared: &Shared, client: &Client, victim: &Victim) -> Result<bool, Error> {
    let Some(execution) = victim.execution else { return Ok(false) };
    let sql = format!(
        "SELECT status <> 'running', recovered_by IS NOT NULL FROM {}.task_execution_log WHERE id = $1",
        shared.ground.schema.quoted()
    );
    let start = clock::monotonic();
    while start.elapsed() < LONGEST {
        if let Some(row) = client.query_opt(&sql, &[&execution]).await?
            && row.try_get(0)?
        {
            return row.try_get(1);
        }
        tokio::time::sleep(POLL).await;
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_mishaps_each_time() {
        let acts = |seed| {
            let mut random = Random::new(seed);
            (0..50).map(|_| Mishap::next(&mut random, true)).collect::<Vec<_>>()
        };
        assert_eq!(acts(3), acts(3));
        assert_ne!(acts(3), acts(4));
    }

    #[test]
    fn a_minute_of_crashes_has_twenty_kills_and_some_stops() {
        for seed in 0..200 {
            let mut random = Random::new(seed ^ SALT);
            let (mut at, mut kills, mut stops) = (0, 0, 0);
            while at < 55_000 {
                let Mishap { gap, act, .. } = Mishap::next(&mut random, true);
                at += gap;
                kills += u32::from(act == Act::Kill);
                stops += u32::from(act == Act::Stop);
            }
            assert!(kills >= 20 && stops >= 1, "{seed}: {kills} kills, {stops} stops");
        }
    }
}
