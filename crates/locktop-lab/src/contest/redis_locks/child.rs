//! A client of the locks in Redis: it submits forms, uses a resource and runs tasks, each under a lock.

use std::time::Duration;

use fastrand::Rng;
use tokio_postgres::Client;

use crate::scenario::SCHEMA;
use crate::workers::WorkerConfig;
use locktop_base::clock;
use locktop_locks::redis_lock::{Guard, LockOptions, RedisLocks};
use pg_connect::connect::connect;

const STEP: Duration = Duration::from_millis(40);
const TIMEOUT: Duration = Duration::from_millis(200);
const QUEUE: Duration = Duration::from_millis(800);
/// A form is open for `FORM` milliseconds, less than a term; a task is due every `DUE` milliseconds.
const FORM: u64 = 700;
const DUE: u64 = 900;
/// Delay before reconnecting after the server is lost.
const PAUSE: Duration = Duration::from_millis(500);

/// Works until it is dropped. The first server is used on its own.
pub(crate) async fn run(config: &WorkerConfig, urls: &[String], term: u64, seed: u64) -> Result<(), String> {
    let info = config.info("")?;
    let options =
        LockOptions::term(Duration::from_millis(term)).named(config.worker.as_str()).timeout(TIMEOUT);
    let set = |name, urls: &[String]| {
        let locks = RedisLocks::connect(urls, options.clone()).map_err(|error| error.to_string())?;
        Ok::<_, String>(Set { name, locks })
    };
    let (one, five) = urls.split_at_checked(1).ok_or("no servers")?;
    let sets = [set("one", one)?, set("five", five)?];
    let mut random = config.random(seed);
    loop {
        if let Ok(connection) = connect(&info).await {
            let client = LockClient { client: connection.client, name: config.worker.clone(), term };
            // An error means that the witnesses' server is lost: then nothing is done.
            let _ = client.work(&sets, &mut random).await;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

struct Set {
    name: &'static str,
    locks: RedisLocks,
}

struct LockClient {
    client: Client,
    name: String,
    term: u64,
}

/// The number of the current period, the same for all processes.
fn number(every: u64) -> u64 {
    let now = u64::try_from(clock::since_boot().as_millis()).unwrap_or(u64::MAX);
    now.checked_div(every).unwrap_or_default()
}

impl LockClient {
    async fn work(&self, sets: &[Set; 2], random: &mut Rng) -> Result<(), tokio_postgres::Error> {
        loop {
            let [one, five] = sets;
            let set = if random.u64(..3) == 0 { one } else { five };
            match random.u64(..4) {
                0 => self.submit(set).await?,
                1 => self.run_task(set).await?,
                _ => self.use_resource(set, random).await?,
            }
            tokio::time::sleep(Duration::from_millis(20 + random.u64(..150))).await;
        }
    }

    /// Several clients submit one form, which must count once: the key is kept to the end of its term, which is longer than
    /// the form is open.
    async fn submit(&self, set: &Set) -> Result<(), tokio_postgres::Error> {
        let form = number(FORM);
        let Some((guard, hold)) =
            self.take(set, "submit", &format!("lock:submit:{form}"), Duration::ZERO).await?
        else {
            return Ok(());
        };
        // A process that was stopped on the way finds the form closed.
        if number(FORM) == form && guard.time_left() > self.third() {
            let sql = format!("INSERT INTO {SCHEMA}.redis_submissions (form, worker) VALUES ($1, $2)");
            self.client.execute(&sql, &[&format!("{} {form}", set.name), &self.name]).await?;
        }
        guard.keep();
        self.end(hold, "kept").await
    }

    /// A task with one runner: checked again under the lock, since an earlier holder may have done it.
    async fn run_task(&self, set: &Set) -> Result<(), tokio_postgres::Error> {
        let task = format!("{} {}", set.name, number(DUE));
        let Some((guard, hold)) = self.take(set, "task", "lock:task:report", Duration::ZERO).await? else {
            return Ok(());
        };
        let done = format!("SELECT EXISTS (SELECT FROM {SCHEMA}.redis_task_runs WHERE task = $1)");
        let done: bool = self.client.query_one(&done, &[&task]).await?.try_get(0)?;
        if !done && guard.time_left() > self.third() {
            let sql = format!("INSERT INTO {SCHEMA}.redis_task_runs (task, worker) VALUES ($1, $2)");
            self.client.execute(&sql, &[&task, &self.name]).await?;
        }
        self.give_back(guard, hold).await
    }

    async fn use_resource(&self, set: &Set, random: &mut Rng) -> Result<(), tokio_postgres::Error> {
        let Some((guard, hold)) = self.take(set, "resource", "lock:printer", QUEUE).await? else {
            return Ok(());
        };
        let until = clock::since_boot() + Duration::from_millis(self.term / 6 + random.u64(..self.term));
        while guard.is_held() && clock::since_boot() < until {
            tokio::time::sleep(STEP).await;
            self.sign(&guard, hold).await?;
        }
        self.give_back(guard, hold).await
    }

    /// How much of a term must be left for an effect that is still under way when the work ends.
    fn third(&self) -> Duration {
        Duration::from_millis(self.term / 3)
    }

    /// Acquires a lock and records that it is held.
    async fn take(
        &self,
        set: &Set,
        kind: &str,
        key: &str,
        within: Duration,
    ) -> Result<Option<(Guard, i64)>, tokio_postgres::Error> {
        let guard = match set.locks.acquire(key, within).await {
            Ok(Some(guard)) => guard,
            refusal => {
                let reason = if refusal.is_ok() { "taken" } else { "no quorum" };
                let sql = format!(
                    "INSERT INTO {SCHEMA}.redis_refusals AS r (worker, reason) VALUES ($1, $2)
                     ON CONFLICT (worker, reason) DO UPDATE SET times = r.times + 1"
                );
                self.client.execute(&sql, &[&self.name, &reason]).await?;
                return Ok(None);
            }
        };
        let Some(now) = held_at(&guard) else { return Ok(None) };
        let sql = format!(
            "INSERT INTO {SCHEMA}.redis_holds (lock, kind, worker, first, last) VALUES ($1, $2, $3, $4, $4) RETURNING n"
        );
        let lock = format!("{} {key}", set.name);
        let hold = self.client.query_one(&sql, &[&lock, &kind, &self.name, &now]).await?.try_get(0)?;
        Ok(Some((guard, hold)))
    }

    /// Records that the lock is held at this moment, if it is.
    async fn sign(&self, guard: &Guard, hold: i64) -> Result<(), tokio_postgres::Error> {
        let Some(now) = held_at(guard) else { return Ok(()) };
        let sql = format!("UPDATE {SCHEMA}.redis_holds SET last = $2 WHERE n = $1");
        self.client.execute(&sql, &[&hold, &now]).await.map(drop)
    }

    async fn give_back(&self, guard: Guard, hold: i64) -> Result<(), tokio_postgres::Error> {
        self.sign(&guard, hold).await?;
        let outcome = if guard.is_held() { "released" } else { "lost" };
        guard.release().await;
        self.end(hold, outcome).await
    }

    async fn end(&self, hold: i64, outcome: &str) -> Result<(), tokio_postgres::Error> {
        let sql = format!("UPDATE {SCHEMA}.redis_holds SET outcome = $2 WHERE n = $1");
        self.client.execute(&sql, &[&hold, &outcome]).await.map(drop)
    }
}

/// A moment at which a lock is certainly held, in microseconds of the machine's uptime: the clock is read before the
/// guard is asked.
fn held_at(guard: &Guard) -> Option<i64> {
    let now = clock::since_boot();
    guard.is_held().then(|| i64::try_from(now.as_micros()).unwrap_or(i64::MAX))
}
