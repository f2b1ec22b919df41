//! Fault injection for the workers of a contest: they are killed and replaced, paused past every term and resumed, or cut
//! off from the server. The seed determines what happens to which worker and when, but not what each is doing at that
//! time.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use fastrand::Rng;
use tokio::task::JoinSet;
use tokio_postgres::{Client, Error};

use super::{PAUSE, lock};
use crate::OpenQuestion;
use crate::process::is_stopped;
use crate::workers::WorkerPool;
use locktop_base::clock;
use pg_connect::connect::connect;
use pg_connect::conninfo::ConnInfo;

const POLL: Duration = Duration::from_millis(50);
const SEARCH: Duration = Duration::from_secs(2);
const LONGEST: Duration = Duration::from_secs(30);
const NOW: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

/// Microseconds since 1970 on the server's clock.
pub(crate) type EpochMicros = i64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Fault {
    #[default]
    Kill,
    /// Stopped with SIGSTOP until it has lost what it held, and somewhat longer.
    Pause,
    /// Its session is terminated in the server, as by a network failure or an administrator.
    Cut,
}

#[derive(Debug, Clone)]
pub(crate) struct FaultPlan {
    /// Query for the workers in the middle of something, in order: the worker's name and the number of its work.
    pub(crate) targets: String,
    /// The same for the workers that may be paused, if not all may be.
    pub(crate) pausable: Option<String>,
    /// Query whether the worker has lost its work `$1`; NULL while it still has it. `None` if a pause does not wait for that.
    pub(crate) lost: Option<String>,
    /// Query for how many of the workers that did `$1`, an array, and were resumed have not yet noticed their loss.
    pub(crate) unnoticed: Option<String>,
    /// Terminates the session that does `$1`; no row if there is none any more.
    pub(crate) cut: Option<String>,
    /// The next fault is one of these, each equally likely.
    pub(crate) kinds: &'static [Fault],
    /// How many workers may be paused at once; beyond that, a worker is killed instead.
    pub(crate) paused: usize,
    /// Milliseconds between two faults: the minimum and the exclusive range added to it, multiplied by `times`.
    pub(crate) gap: (u64, u64),
    pub(crate) times: u64,
    /// Milliseconds that a worker stays paused after it has lost its work: the minimum and the exclusive range added to it.
    pub(crate) after: (u64, u64),
    pub(crate) salt: u64,
}

impl Default for FaultPlan {
    fn default() -> Self {
        Self {
            targets: String::new(),
            pausable: None,
            lost: None,
            unnoticed: None,
            cut: None,
            kinds: &[Fault::Pause, Fault::Kill, Fault::Kill],
            paused: 1,
            gap: (1_000, 1_000),
            times: 1,
            after: (100, 900),
            salt: 0x7472_6f75_7065,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScheduledFault {
    /// Milliseconds until the fault.
    pub(crate) gap: u64,
    pub(crate) fault: Fault,
    /// Selects one of the workers in the middle of something.
    which: u64,
    /// Milliseconds that a worker stays paused after it has lost its work.
    after: u64,
}

impl FaultPlan {
    pub(crate) fn next(&self, random: &mut Rng) -> ScheduledFault {
        let between = |random: &mut Rng, (least, more): (u64, u64)| least + random.u64(..more);
        let gap = between(random, self.gap) * self.times;
        let fault = random.choice(self.kinds).copied().unwrap_or_default();
        ScheduledFault { gap, fault, which: random.u64(..), after: between(random, self.after) }
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct FaultRecord {
    pub(crate) kills: u64,
    pub(crate) cuts: u64,
    /// Pauses in which a worker lost its work.
    pub(crate) overslept: u64,
    pub(crate) pauses: Vec<PauseInterval>,
}

/// A time for which a process was certainly paused: from after it stopped to before it was resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PauseInterval {
    pub(crate) process: i32,
    /// The number of its work.
    pub(crate) work: i64,
    pub(crate) from: EpochMicros,
    /// `None` while it is still paused.
    pub(crate) to: Option<EpochMicros>,
}

#[derive(Debug, Clone, Copy)]
struct FaultTarget {
    process: i32,
    work: i64,
}

#[derive(Debug)]
pub(super) struct FaultState {
    pub(super) info: ConnInfo,
    pub(super) seed: u64,
    pub(super) faults: FaultPlan,
    pub(super) question: OpenQuestion,
    pub(super) pool: Mutex<WorkerPool>,
    pub(super) record: Mutex<FaultRecord>,
}

impl FaultState {
    pub(super) async fn connect(&self) -> Option<Client> {
        Some(connect(&self.info).await.ok()?.client)
    }

    pub(super) fn pool(&self) -> MutexGuard<'_, WorkerPool> {
        lock(&self.pool)
    }

    pub(super) fn record(&self) -> MutexGuard<'_, FaultRecord> {
        lock(&self.record)
    }
}

/// Runs until it is cancelled.
pub(super) async fn inject_faults(state: Arc<FaultState>) {
    let mut random = Rng::with_seed(state.seed ^ state.faults.salt);
    loop {
        if let Some(client) = state.connect().await {
            // An error means that the server is lost.
            let _ = inject_until_lost(&state, Arc::new(client), &mut random).await;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn inject_until_lost(
    state: &Arc<FaultState>,
    client: Arc<Client>,
    random: &mut Rng,
) -> Result<(), Error> {
    wake_all(state, &client).await?;
    let mut pauses = JoinSet::new();
    loop {
        let ScheduledFault { gap, fault, which, after } = state.faults.next(random);
        tokio::time::sleep(Duration::from_millis(gap)).await;
        state.question.closed().await;
        while pauses.try_join_next().is_some() {}
        let is_full = pauses.len() >= state.faults.paused;
        let fault = if fault == Fault::Pause && is_full { Fault::Kill } else { fault };
        let Some(target) = choose(state, &client, fault, which).await? else { continue };
        match fault {
            Fault::Kill => {
                let killed = state.pool().kill(target.process);
                state.record().kills += u64::from(killed);
            }
            Fault::Cut => {
                let Some(cut) = &state.faults.cut else { continue };
                let done = client.query_opt(cut, &[&target.work]).await?;
                state.record().cuts += u64::from(done.is_some());
            }
            Fault::Pause => {
                let after = Duration::from_millis(after);
                pauses.spawn(pause_worker(Arc::clone(state), Arc::clone(&client), target, after));
            }
        }
    }
}

async fn choose(
    state: &FaultState,
    client: &Client,
    fault: Fault,
    which: u64,
) -> Result<Option<FaultTarget>, Error> {
    let FaultPlan { targets, pausable, .. } = &state.faults;
    let sql = pausable.as_ref().filter(|_| fault == Fault::Pause).unwrap_or(targets);
    let start = clock::monotonic();
    while start.elapsed() < SEARCH {
        let mut targets = Vec::new();
        for row in client.query(sql, &[]).await? {
            let (name, work) = (row.try_get(0)?, row.try_get(1)?);
            targets.extend(state.pool().at_work(name).map(|process| FaultTarget { process, work }));
        }
        let count = u64::try_from(targets.len()).unwrap_or(u64::MAX);
        let index = which.checked_rem(count).and_then(|index| usize::try_from(index).ok());
        if let Some(target) = index.and_then(|index| targets.get(index)) {
            return Ok(Some(*target));
        }
        tokio::time::sleep(POLL).await;
    }
    Ok(None)
}

async fn pause_worker(
    state: Arc<FaultState>,
    client: Arc<Client>,
    target: FaultTarget,
    after: Duration,
) -> Result<(), Error> {
    let FaultTarget { process, work } = target;
    let Some(pid) = state.pool().pause(process) else { return Ok(()) };
    let start = clock::monotonic();
    while is_stopped(pid) == Some(false) && start.elapsed() < LONGEST {
        tokio::time::sleep(POLL / 10).await;
    }
    if is_stopped(pid).is_none() {
        tokio::time::sleep(POLL).await;
    }
    let from = now(&client).await?;
    let index = {
        let mut record = state.record();
        record.pauses.push(PauseInterval { process, work, from, to: None });
        record.pauses.len() - 1
    };
    let (mut lost, start) = (None, clock::monotonic());
    while lost.is_none() && start.elapsed() < LONGEST {
        lost = has_lost(&state, &client, work).await?;
        if lost.is_none() {
            tokio::time::sleep(POLL).await;
        }
    }
    tokio::time::sleep(after).await;
    let to = now(&client).await?;
    let mut record = state.record();
    record.pauses.get_mut(index).into_iter().for_each(|pause| pause.to = Some(to));
    record.overslept += u64::from(lost == Some(true));
    drop(record);
    state.pool().wake(process);
    Ok(())
}

/// Whether a worker has lost its work; `None` if that may still happen.
async fn has_lost(state: &FaultState, client: &Client, work: i64) -> Result<Option<bool>, Error> {
    let Some(lost) = &state.faults.lost else { return Ok(Some(false)) };
    client.query_opt(lost, &[&work]).await?.map_or(Ok(None), |row| row.try_get(0))
}

/// Resumes all paused workers, as of this moment, and returns the numbers of their works.
pub(super) async fn wake_all(state: &FaultState, client: &Client) -> Result<Vec<i64>, Error> {
    let paused: Vec<PauseInterval> =
        state.record().pauses.iter().filter(|pause| pause.to.is_none()).copied().collect();
    let mut overslept = 0;
    for pause in &paused {
        overslept += u64::from(has_lost(state, client, pause.work).await? == Some(true));
    }
    let now = now(client).await?;
    {
        let mut record = state.record();
        record.overslept += overslept;
        record.pauses.iter_mut().filter(|pause| pause.to.is_none()).for_each(|pause| pause.to = Some(now));
    }
    state.pool().wake_all();
    Ok(paused.iter().map(|pause| pause.work).collect())
}

async fn now(client: &Client) -> Result<EpochMicros, Error> {
    client.query_one(NOW, &[]).await?.try_get(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_mishaps_each_time() {
        let faults = |seed| {
            let mut random = Rng::with_seed(seed);
            (0..50).map(|_| FaultPlan::default().next(&mut random)).collect::<Vec<_>>()
        };
        assert_eq!(faults(3), faults(3));
        assert_ne!(faults(3), faults(4));
    }
}
