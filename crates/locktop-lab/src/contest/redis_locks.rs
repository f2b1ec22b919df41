//! Locks in Redis, on one server and as Redlock on five, while servers are killed and freeze and processes are killed and
//! stopped. There are three uses: a form to be submitted once, a resource for one holder at a time, and a task with one
//! runner.
//!
//! The witnesses record the moments at which a holder's guard reported the lock as held, by this machine's clock, which
//! all the processes share. Two holders of a lock at one moment are an error.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use locktop_base::clock;
use locktop_locks::redis_lock::{Guard, LockOptions, RedisLocks};
use pg_connect::connect::connect;
use tokio::sync::{Mutex, watch};
use tokio_postgres::{Client, Error};

use super::faults::FaultPlan;
use super::runner::{Report, Runner};
use super::tally::{ContestOutcome, Tally, count, numbers, tally};
use super::{Contest, Environment, PAUSE, Rules};
use crate::DemoError;
use crate::redis::RedisServer;
use crate::scenario::SCHEMA;
use crate::workers::{WorkerConfig, WorkerRole};

tally! {
    workers servers acquired taken no_quorum lost overlaps submissions double_submissions resource_uses
    task_runs double_task_runs server_kills server_freezes kills stops overslept processes lost_workers
}

const WORKERS: usize = 6;
/// In milliseconds.
const TERM: u64 = 1_500;
const SHOWN_TERM: u64 = 4_000;

const TABLES: &str =
    "DROP TABLE IF EXISTS @.redis_holds, @.redis_submissions, @.redis_task_runs, @.redis_refusals;
     CREATE TABLE @.redis_holds (
         n bigserial PRIMARY KEY, lock text NOT NULL, kind text NOT NULL, worker text NOT NULL,
         first bigint NOT NULL, last bigint NOT NULL, outcome text);
     CREATE INDEX ON @.redis_holds (lock, first);
     CREATE TABLE @.redis_submissions (n bigserial PRIMARY KEY, form text NOT NULL, worker text NOT NULL);
     CREATE TABLE @.redis_task_runs (n bigserial PRIMARY KEY, task text NOT NULL, worker text NOT NULL);
     CREATE TABLE @.redis_refusals (
         worker text, reason text, times bigint NOT NULL DEFAULT 1, PRIMARY KEY (worker, reason))";

pub(super) async fn begin(environment: &Environment, client: &Client) -> Result<Runner, DemoError> {
    let servers = Servers::start().await?;
    let tables = TABLES.replace('@', SCHEMA);
    client.batch_execute(&tables).await.map_err(DemoError::server("the holders of locks"))?;
    let faults = FaultPlan {
        // Locks that another client is going to want.
        targets: format!(
            "SELECT worker, n FROM {SCHEMA}.redis_holds WHERE outcome IS NULL AND kind <> 'submit' ORDER BY n DESC LIMIT 20"
        ),
        lost: Some(format!(
            "SELECT nullif(EXISTS (SELECT FROM {SCHEMA}.redis_holds a JOIN {SCHEMA}.redis_holds b USING (lock)
                                    WHERE a.n = $1 AND b.n > a.n), false)"
        )),
        gap: if environment.options.headless { (600, 1_200) } else { (4_000, 5_000) },
        ..FaultPlan::default()
    };
    let term = if environment.options.headless { TERM } else { SHOWN_TERM };
    let role = WorkerRole::Redis { urls: servers.urls.clone(), term };
    let servers = Arc::new(servers);
    let runner = Runner::new(Arc::clone(&servers));
    let mut runner = runner.processes(environment, "client", role, WORKERS, faults)?;
    let (seed, headless) = (environment.options.seed, environment.options.headless);
    runner.spawn_until(|quit| servers.inject_faults(seed, headless, quit));
    Ok(runner)
}

impl Rules for Servers {
    /// The single server, and the five that decide together.
    fn redis(&self) -> Vec<Vec<String>> {
        self.urls.split_at_checked(1).map(|(one, five)| vec![one.to_vec(), five.to_vec()]).unwrap_or_default()
    }

    async fn count(&self, client: &Client, report: &Report) -> Result<ContestOutcome, Error> {
        let holds = format!(
            "SELECT count(*) AS acquired, count(*) FILTER (WHERE outcome = 'lost') AS lost,
                    count(*) FILTER (WHERE kind = 'resource') AS resource_uses,
                    count(*) FILTER (WHERE EXISTS (
                        SELECT FROM {SCHEMA}.redis_holds o
                         WHERE o.lock = h.lock AND o.n > h.n AND o.first <= h.last AND o.last >= h.first)) AS overlaps
               FROM {SCHEMA}.redis_holds h"
        );
        let twice = |number: &str, table: &str, column: &str| {
            format!(
                "SELECT count(*) AS {number}, count(*) - count(DISTINCT {column}) AS double_{number} FROM {SCHEMA}.{table}"
            )
        };
        let refusals = format!(
            "SELECT coalesce(sum(times) FILTER (WHERE reason = 'taken'), 0)::bigint AS taken,
                    coalesce(sum(times) FILTER (WHERE reason <> 'taken'), 0)::bigint AS no_quorum
               FROM {SCHEMA}.redis_refusals"
        );
        let (submissions, runs) = (
            twice("submissions", "redis_submissions", "form"),
            twice("task_runs", "redis_task_runs", "task"),
        );
        let (server_kills, server_freezes) = self.counts();
        let (workers, servers) = (count(WORKERS), count(self.urls.len()));
        let mut found = Numbers { workers, servers, server_kills, server_freezes, ..Numbers::default() };
        for sql in [holds, submissions, runs, refusals] {
            found.extend(numbers(client, &sql).await?);
        }
        found.extend(report.numbers(&KEYS));
        Ok(ContestOutcome::new(found.tally(Contest::Redis.as_str()))
            .zero(&[
                ("overlaps", "locks held by two at the same time"),
                ("double_submissions", "forms submitted twice"),
                ("double_task_runs", "tasks run twice"),
            ])
            .some("acquired", "no lock was acquired", report.first_error.as_deref()))
    }
}

const SERVERS: usize = 6;
const SALT: u64 = 0x7265_6469_7321;

/// Six servers, one on its own and five for Redlock, which end when this is dropped. From time to time one is killed and
/// comes back empty, or freezes for a while.
#[derive(Debug)]
struct Servers {
    /// Their URLs; the first server is used on its own.
    urls: Vec<String>,
    running: Mutex<Vec<RedisServer>>,
    kills: AtomicU64,
    freezes: AtomicU64,
}

impl Servers {
    async fn start() -> Result<Self, DemoError> {
        let servers = RedisServer::several(SERVERS).await?;
        let urls = servers.iter().map(RedisServer::url).collect();
        let running = Mutex::new(servers);
        Ok(Self { urls, running, kills: AtomicU64::default(), freezes: AtomicU64::default() })
    }

    /// The number of kills, and of freezes.
    fn counts(&self) -> (u64, u64) {
        (self.kills.load(Ordering::Relaxed), self.freezes.load(Ordering::Relaxed))
    }

    /// Ends with all servers running: a holder needs them to release what it holds.
    async fn inject_faults(self: Arc<Self>, seed: u64, headless: bool, mut quit: watch::Receiver<bool>) {
        let mut random = Rng::with_seed(seed ^ SALT);
        let (least, more) = if headless { (800, 1_500) } else { (6_000, 8_000) };
        loop {
            let gap = Duration::from_millis(least + random.u64(..more));
            if tokio::time::timeout(gap, quit.wait_for(|quit| *quit)).await.is_ok() {
                return;
            }
            let (which, kind) = (random.u64(..6), random.u64(..2));
            let pause = Duration::from_millis(200 + random.u64(..1_300));
            let mut servers = self.running.lock().await;
            let Some(server) = usize::try_from(which).ok().and_then(|which| servers.get_mut(which)) else {
                continue;
            };
            if kind == 0 {
                server.freeze();
                self.freezes.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(pause).await;
                server.thaw();
            } else if server.kill_hard().await.is_ok() {
                self.kills.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(pause).await;
                // A server that does not come back now may the next time: the others continue without it.
                let _ = server.restart().await;
            }
        }
    }
}

const STEP: Duration = Duration::from_millis(40);
const TIMEOUT: Duration = Duration::from_millis(200);
const QUEUE: Duration = Duration::from_millis(800);
/// A form is open for `FORM` milliseconds, less than a term; a task is due every `DUE` milliseconds.
const FORM: u64 = 700;
const DUE: u64 = 900;

/// A client: it submits forms, uses a resource and runs tasks, each under a lock, until it is dropped. The first server is
/// used on its own.
pub(crate) async fn run(config: &WorkerConfig, urls: &[String], term: u64) -> Result<(), String> {
    let info = config.info("")?;
    let options =
        LockOptions::term(Duration::from_millis(term)).named(config.worker.as_str()).timeout(TIMEOUT);
    let set = |name, urls: &[String]| {
        let locks = RedisLocks::connect(urls, options.clone()).map_err(|error| error.to_string())?;
        Ok::<_, String>(Set { name, locks })
    };
    let (one, five) = urls.split_at_checked(1).ok_or("no servers")?;
    let sets = [set("one", one)?, set("five", five)?];
    let mut random = config.random();
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
