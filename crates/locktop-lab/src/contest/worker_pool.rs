//! Processes that compete, and what befalls them: killed and replaced, stopped past every term and woken. Which of them, and when,
//! comes from the seed; what each holds then does not.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::{JoinHandle, JoinSet};
use tokio_postgres::{Client, Error};

use super::game::Place;
use crate::Audience;
use crate::random::Random;
use crate::workers::{Crew, Part, TasksError};
use locktop_base::clock;
use pg_connect::connect::connect;
use pg_connect::conninfo::ConnInfo;

/// How often a process that ended is looked for.
const WATCH: Duration = Duration::from_millis(50);
/// Until a lost server is tried again.
const PAUSE: Duration = Duration::from_millis(500);
const POLL: Duration = Duration::from_millis(20);
/// Longest that a process stands still.
const LONGEST: Duration = Duration::from_secs(15);
/// How long those that were just woken have for noticing, and all for ending.
const AWAKENING: Duration = Duration::from_secs(3);
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// Mixed into the seed.
const SALT: u64 = 0x7472_6f75_7065;

/// What is done to them.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    /// Who holds what at this moment: the names of the processes, and a number each for what it is.
    pub(super) holders: String,
    /// Whether somebody else has what `$1` is the number of. Without it nobody is stopped.
    pub(super) lost: Option<String>,
    /// How many of those in `$1`, which were lost, their holders have not noticed yet.
    pub(super) unnoticed: Option<String>,
    /// Milliseconds from one mishap to the next: at least, and at most so many more.
    pub(super) gap: (u64, u64),
}

/// What was done.
#[derive(Debug, Clone, Default)]
pub(super) struct Record {
    pub(super) kills: u64,
    pub(super) stops: u64,
    /// Those of them that lost what they held while they stood still.
    pub(super) overslept: u64,
    /// Who stands still, and what he held.
    asleep: Vec<(i32, i64)>,
}

/// The processes. Dropping it ends them at once.
#[derive(Debug)]
pub(super) struct WorkerPool {
    shared: Arc<Shared>,
    loops: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    info: ConnInfo,
    seed: u64,
    rules: Rules,
    audience: Audience,
    crew: Mutex<Crew>,
    record: Mutex<Record>,
}

impl Shared {
    fn crew(&self) -> MutexGuard<'_, Crew> {
        self.crew.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WorkerPool {
    /// Starts so many processes, called `name-1` and so on.
    pub(super) fn begin(
        place: &Place,
        name: &str,
        part: Part,
        count: usize,
        rules: Rules,
    ) -> Result<Self, TasksError> {
        let mut orders = place.orders.clone();
        (orders.worker, orders.part) = (name.to_owned(), part);
        let mut crew = Crew::new(place.program.clone(), orders, count);
        crew.fill()?;
        let info = place.info.clone().with_application_name(&format!("locktop demo {name}s"));
        let (crew, record) = (Mutex::new(crew), Mutex::default());
        let audience = place.audience.clone();
        let shared = Arc::new(Shared { info, seed: place.seed ^ SALT, rules, audience, crew, record });
        let loops =
            vec![tokio::spawn(watch(Arc::clone(&shared))), tokio::spawn(inject_faults(Arc::clone(&shared)))];
        Ok(Self { shared, loops })
    }

    /// What was done to them.
    pub(super) fn record(&self) -> Record {
        self.shared.record().clone()
    }

    /// How many were started, and how many ended without being told to.
    pub(super) fn processes(&self) -> (u64, u64) {
        let crew = self.shared.crew();
        (crew.started(), crew.lost)
    }

    /// What the first that ended by itself said.
    pub(super) fn complaint(&self) -> Option<String> {
        self.shared.crew().complaint.clone()
    }

    /// Wakes those that stand still, lets them notice, tells all to end, and kills who does not.
    pub(super) async fn finish(&mut self) {
        for part in self.loops.drain(..) {
            part.abort();
            let _ = part.await;
        }
        // Without a server nobody can notice anything.
        let _ = self.awake().await;
        self.shared.crew().dismiss();
        let start = clock::monotonic();
        while !self.shared.crew().is_gone() && start.elapsed() < SHUTDOWN_TIMEOUT {
            tokio::time::sleep(POLL).await;
        }
        self.shared.crew().end();
    }

    async fn awake(&self) -> Result<(), Error> {
        let asleep = std::mem::take(&mut self.shared.record().asleep);
        let Ok(connection) = connect(&self.shared.info).await else { return Ok(()) };
        let client = connection.client;
        let mut lost = Vec::new();
        for (process, thing) in asleep {
            if is_lost(&self.shared, &client, thing).await? {
                self.shared.record().overslept += 1;
                lost.push(thing);
            }
            self.shared.crew().wake(process);
        }
        let Some(unnoticed) = self.shared.rules.unnoticed.as_ref().filter(|_| !lost.is_empty()) else {
            return Ok(());
        };
        let start = clock::monotonic();
        while start.elapsed() < AWAKENING
            && client.query_one(unnoticed, &[&lost]).await?.try_get::<_, i64>(0)? > 0
        {
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        self.loops.iter().for_each(JoinHandle::abort);
        self.shared.crew().end();
    }
}

/// Replaces those that have ended.
async fn watch(shared: Arc<Shared>) {
    loop {
        // One that cannot be started now may be later.
        let _ = shared.crew().fill();
        tokio::time::sleep(WATCH).await;
    }
}

/// Goes on for as long as it is let.
async fn inject_faults(shared: Arc<Shared>) {
    let mut random = Random::new(shared.seed);
    loop {
        if let Ok(connection) = connect(&shared.info).await {
            // An error is a lost server.
            let _ = inject_until_lost(&shared, Arc::new(connection.client), &mut random).await;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn inject_until_lost(
    shared: &Arc<Shared>,
    client: Arc<Client>,
    random: &mut Random,
) -> Result<(), Error> {
    let mut pauses = JoinSet::new();
    loop {
        let (least, more) = shared.rules.gap;
        let (gap, lot, which, after) =
            (least + random.below(more), random.below(3), random.next(), 100 + random.below(900));
        tokio::time::sleep(Duration::from_millis(gap)).await;
        shared.audience.done().await;
        while pauses.try_join_next().is_some() {}
        let Some((process, thing)) = choose(shared, &client, which).await? else { continue };
        let stop = lot == 0 && shared.rules.lost.is_some() && pauses.is_empty();
        if stop {
            let after = Duration::from_millis(after);
            pauses.spawn(pause_worker(Arc::clone(shared), Arc::clone(&client), process, thing, after));
        } else if shared.crew().kill(process) {
            shared.record().kills += 1;
        }
    }
}

/// One of those that hold something, and what.
async fn choose(shared: &Shared, client: &Client, which: u64) -> Result<Option<(i32, i64)>, Error> {
    let mut holders = Vec::new();
    for row in client.query(&shared.rules.holders, &[]).await? {
        let (name, thing) = (row.try_get::<_, String>(0)?, row.try_get::<_, i64>(1)?);
        holders.extend(shared.crew().at_work_as(&name).map(|process| (process, thing)));
    }
    let count = u64::try_from(holders.len()).unwrap_or(u64::MAX);
    let index = which.checked_rem(count).and_then(|index| usize::try_from(index).ok());
    Ok(index.and_then(|index| holders.get(index)).copied())
}

/// Stops a process until somebody else has what it holds, and a while longer; then wakes it.
async fn pause_worker(
    shared: Arc<Shared>,
    client: Arc<Client>,
    process: i32,
    thing: i64,
    after: Duration,
) -> Result<(), Error> {
    if shared.crew().stop(process).is_none() {
        return Ok(());
    }
    {
        let mut record = shared.record();
        record.stops += 1;
        record.asleep.push((process, thing));
    }
    let start = clock::monotonic();
    let mut lost = false;
    while !lost && start.elapsed() < LONGEST {
        tokio::time::sleep(POLL).await;
        lost = is_lost(&shared, &client, thing).await?;
    }
    tokio::time::sleep(after).await;
    let mut record = shared.record();
    record.asleep.retain(|(asleep, _)| *asleep != process);
    record.overslept += u64::from(lost);
    drop(record);
    shared.crew().wake(process);
    Ok(())
}

async fn is_lost(shared: &Shared, client: &Client, thing: i64) -> Result<bool, Error> {
    let Some(lost) = &shared.rules.lost else { return Ok(false) };
    client.query_one(lost, &[&thing]).await?.try_get(0)
}
