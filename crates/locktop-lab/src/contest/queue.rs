//! Queue workers as processes, which are killed while they work. The counts come from the items that were added, from
//! what the workers record over separate connections about when they worked on what, and from a trigger that records each
//! completion in its transaction.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use locktop_base::clock;
use locktop_locks::Error as LockError;
use locktop_tasks::work_queue::WorkQueue;
use locktop_tasks::worker::{self, Job, Source, Stop, Work, WorkError};
use pg_connect::connect::connect;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio_postgres::{Client, Error};

use super::faults::{Fault, FaultPlan};
use super::runner::{Report, Runner};
use super::tally::{ContestOutcome, Tally, count, numbers, tally};
use super::{Contest, Environment, Rules};
use crate::DemoError;
use crate::scenario::SCHEMA;
use crate::workers::{WorkerConfig, WorkerRole, witnessed};

tally! {
    workers added pending processing completed failed runs overlapping_runs done_again requeued gave_up
    finishes finished_twice finished_undone lost_items stranded_items kills processes lost_workers
}

const WORKERS: usize = 6;
/// Longest wait until the sessions of ended workers have ended, too, and the grace has passed.
const TIMEOUT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(50);

/// `@` is the schema of the witnesses, `#` that of the queue.
const TABLES: &str = "DROP TABLE IF EXISTS @.queue_runs, @.queue_finishes;
     CREATE TABLE @.queue_runs (
         n bigserial PRIMARY KEY, item bigint NOT NULL, attempt integer NOT NULL, worker text NOT NULL,
         began timestamptz NOT NULL DEFAULT clock_timestamp(), last timestamptz NOT NULL DEFAULT clock_timestamp(),
         outcome text) WITH (fillfactor = 60);
     CREATE INDEX ON @.queue_runs (item);
     CREATE TABLE @.queue_finishes (
         n bigserial PRIMARY KEY, item bigint NOT NULL, attempt integer NOT NULL, worker text,
         at timestamptz NOT NULL DEFAULT clock_timestamp());
     CREATE INDEX ON @.queue_finishes (item);
     CREATE OR REPLACE FUNCTION @.note_finish() RETURNS trigger LANGUAGE plpgsql AS $$
     BEGIN
         INSERT INTO @.queue_finishes (item, attempt, worker) VALUES (OLD.id, OLD.attempt, OLD.worker_id);
         RETURN NULL;
     END $$;
     CREATE TRIGGER note_finish AFTER UPDATE OF status ON #.task_queue FOR EACH ROW WHEN (NEW.status = 'completed')
         EXECUTE FUNCTION @.note_finish()";

#[derive(Debug)]
struct Queue {
    environment: Environment,
    added: Arc<AtomicU64>,
}

pub(super) async fn begin(environment: &Environment, client: &Client) -> Result<Runner, DemoError> {
    let tables = TABLES.replace('@', SCHEMA).replace('#', &environment.schema.quoted());
    client.batch_execute(&tables).await.map_err(DemoError::server("the runs of items"))?;
    let table = format!("{}.task_queue", environment.schema.quoted());
    let faults = FaultPlan {
        targets: format!(
            "SELECT worker_id::text, id FROM {table} WHERE status = 'processing' ORDER BY worker_id"
        ),
        // A paused worker loses nothing: its session remains.
        kinds: &[Fault::Kill; 3],
        gap: if environment.options.headless { (200, 600) } else { (4_000, 4_000) },
        ..FaultPlan::default()
    };
    let added = Arc::<AtomicU64>::default();
    let queue = Queue { environment: environment.clone(), added: Arc::clone(&added) };
    let runner = Runner::new(Arc::new(queue));
    let mut runner = runner.processes(environment, "consumer", WorkerRole::Queue, WORKERS, faults)?;
    runner.spawn_until(|quit| produce(environment.clone(), added, quit));
    Ok(runner)
}

impl Queue {
    async fn requeue(&self) {
        let Ok(connection) = connect(&self.environment.info).await else { return };
        let queue = WorkQueue { schema: self.environment.schema.clone() };
        let start = clock::monotonic();
        while start.elapsed() < TIMEOUT {
            let settled = queue.requeue_lost(&connection.client, "locktop demo", 1_000).await;
            let left = queue.depth(&connection.client).await;
            if settled.is_err() || left.is_ok_and(|left| left.processing == 0) {
                return;
            }
            tokio::time::sleep(POLL).await;
        }
    }
}

impl Rules for Queue {
    async fn settle(&self) {
        self.requeue().await;
    }

    async fn count(&self, client: &Client, report: &Report) -> Result<ContestOutcome, Error> {
        let schema = self.environment.schema.quoted();
        // The items added are counted first: a row that is added later does not count as lost.
        let added = self.added.load(Ordering::SeqCst);
        let states = format!(
            "SELECT greatest({added} - count(*), 0) AS lost_items,
                    count(*) FILTER (WHERE status = 'pending') AS pending,
                    count(*) FILTER (WHERE status = 'processing') AS processing,
                    count(*) FILTER (WHERE status = 'completed') AS completed,
                    count(*) FILTER (WHERE status = 'failed') AS failed,
                    count(*) FILTER (WHERE f.finishes > 1) AS finished_twice,
                    coalesce(sum(f.finishes), 0)::bigint AS finishes,
                    count(*) FILTER (WHERE status = 'completed' AND NOT EXISTS (
                        SELECT FROM {SCHEMA}.queue_finishes f JOIN {SCHEMA}.queue_runs r USING (item, attempt, worker)
                         WHERE f.item = q.id AND r.outcome = 'done')) AS finished_undone
               FROM {schema}.task_queue q
               LEFT JOIN (SELECT item, count(*) AS finishes FROM {SCHEMA}.queue_finishes GROUP BY item) f ON f.item = q.id"
        );
        // A worker that is killed between the end of the work and its finish has done the work all the same.
        let runs = format!(
            "SELECT count(*) AS runs, count(*) FILTER (WHERE EXISTS (
                        SELECT FROM {SCHEMA}.queue_runs o
                         WHERE o.item = r.item AND o.n > r.n AND o.began <= r.last AND o.last >= r.began)) AS overlapping_runs,
                    count(*) FILTER (WHERE outcome = 'done') - count(DISTINCT item) FILTER (WHERE outcome = 'done') AS done_again
               FROM {SCHEMA}.queue_runs r"
        );
        let audit = format!(
            "SELECT count(*) FILTER (WHERE action = 'requeued') AS requeued,
                    count(*) FILTER (WHERE action = 'gave_up') AS gave_up
               FROM {schema}.locktop_audit WHERE worker_id LIKE 'consumer-%'"
        );
        let mut found = Numbers { workers: count(WORKERS), added, ..Numbers::default() };
        for sql in [states, runs, audit] {
            found.extend(numbers(client, &sql).await?);
        }
        found.extend(report.numbers(&KEYS));
        if !self.environment.options.headless {
            // Items deleted on purpose are not lost: see the producer.
            found.lost_items = 0;
        }
        found.stranded_items = if report.over { found.processing } else { 0 };
        Ok(ContestOutcome::new(found.tally(Contest::Queue.as_str()))
            .zero(&[
                ("overlapping_runs", "runs of an item that overlap another run of it"),
                ("finished_twice", "items that were completed more than once"),
                ("finished_undone", "items that are completed, but that no worker finished"),
                ("lost_items", "items that were added and are missing"),
                ("stranded_items", "items that no worker runs and no worker can take"),
            ])
            .some("finishes", "no item was completed", report.first_error.as_deref()))
    }
}

const TICK: Duration = Duration::from_millis(100);

/// A queue worker, like `locktop worker`. It reports its work on an item over a separate connection, before, during and
/// after the work; the table itself shows which worker ended an item.
pub(crate) async fn run(config: &WorkerConfig, quit: watch::Receiver<bool>) -> Result<(), String> {
    let witness = config.witness().await?;
    let items = Items { witness: Arc::clone(&witness), worker: config.worker.clone() };
    witnessed(&witness, Box::pin(worker::run(config.options(Source::Queue)?, items, quit))).await
}

struct Items {
    witness: Arc<Client>,
    worker: String,
}

impl Work for Items {
    async fn run(&self, job: &Job, stop: Stop) -> Result<(), WorkError> {
        let payload = job.json.as_deref().and_then(|text| serde_json::from_str::<ItemPayload>(text).ok());
        let payload =
            payload.ok_or_else(|| WorkError::Refused("its payload is not one of the demo".to_owned()))?;
        let run = self.begin(job).await?;
        let reason = tokio::select! {
            // A request to stop has priority.
            biased;
            reason = stop.stopped() => Some(reason),
            done = self.work(run, Duration::from_millis(payload.milliseconds)) => {
                done?;
                None
            }
        };
        let (outcome, told) = match (reason, payload.ends) {
            (Some(reason), _) => ("stopped", Err(reason.into())),
            (None, ItemEnd::Again) if job.attempt == 1 => {
                ("failed", Err(WorkError::Failed("SMTP 451: try again later".to_owned())))
            }
            (None, ItemEnd::Badly) => ("failed", Err(WorkError::Refused("the image is damaged".to_owned()))),
            (None, ItemEnd::Well | ItemEnd::Again) => ("done", Ok(())),
        };
        self.end(run, outcome).await?;
        told
    }
}

impl Items {
    /// Records the start; the work begins only after this is written.
    async fn begin(&self, job: &Job) -> Result<i64, WorkError> {
        let sql = format!(
            "INSERT INTO {SCHEMA}.queue_runs (item, attempt, worker) VALUES ($1, $2, $3) RETURNING n"
        );
        let row = self.witness.query_one(&sql, &[&job.id, &job.attempt, &self.worker]).await;
        row.and_then(|row| row.try_get(0)).map_err(failed)
    }

    async fn work(&self, run: i64, time: Duration) -> Result<(), WorkError> {
        let sql = format!("UPDATE {SCHEMA}.queue_runs SET last = clock_timestamp() WHERE n = $1");
        let mut left = time;
        while left > TICK {
            tokio::time::sleep(TICK).await;
            left -= TICK;
            self.witness.execute(&sql, &[&run]).await.map_err(failed)?;
        }
        tokio::time::sleep(left).await;
        Ok(())
    }

    async fn end(&self, run: i64, outcome: &str) -> Result<(), WorkError> {
        let sql =
            format!("UPDATE {SCHEMA}.queue_runs SET last = clock_timestamp(), outcome = $2 WHERE n = $1");
        self.witness.execute(&sql, &[&run, &outcome]).await.map(drop).map_err(failed)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn failed(error: tokio_postgres::Error) -> WorkError {
    WorkError::Failed(format!("the witness could not write: {error}"))
}

const PAUSE: Duration = Duration::from_millis(500);
const DEEP: i64 = 40;
/// Milliseconds that an item takes: the minimum, and the most that is added to it.
const WORK: (u64, u64) = (30, 500);
const SHOWN_WORK: (u64, u64) = (500, 4_000);
const SALT: u64 = 0x7175_6575_6521;

const KINDS: [(&str, &str); 6] = [
    ("send_welcome_email", "发送欢迎邮件"),
    ("resize_image", "缩放图片"),
    ("send_text_message", "发送短信"),
    ("index_document", "文档索引"),
    ("render_invoice", "生成发票"),
    ("notify_about_order", "订单通知"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ItemEnd {
    #[default]
    Well,
    /// With an error, at the first attempt.
    Again,
    /// With a permanent error.
    Badly,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct ItemPayload {
    milliseconds: u64,
    ends: ItemEnd,
}

/// Runs until it is requested to end, which it checks between two items.
async fn produce(environment: Environment, added: Arc<AtomicU64>, mut quit: watch::Receiver<bool>) {
    let info = environment.info.clone().with_application_name("locktop demo producer");
    let mut random = Rng::with_seed(environment.options.seed ^ SALT);
    while !*quit.borrow() {
        if let Ok(connection) = connect(&info).await {
            // An error means that the server is lost.
            let _ = fill(&environment, &connection.client, &mut random, &added, &mut quit).await;
        }
        rest(&mut quit).await;
    }
}

async fn rest(quit: &mut watch::Receiver<bool>) {
    let _ = tokio::time::timeout(PAUSE, quit.wait_for(|quit| *quit)).await;
}

async fn fill(
    environment: &Environment,
    client: &Client,
    random: &mut Rng,
    added: &AtomicU64,
    quit: &mut watch::Receiver<bool>,
) -> Result<(), LockError> {
    let queue = WorkQueue { schema: environment.schema.clone() };
    let (least, more) = if environment.options.headless { WORK } else { SHOWN_WORK };
    while !*quit.borrow() {
        let pending = queue.depth(client).await?.pending;
        for _ in pending..DEEP {
            if *quit.borrow() {
                break;
            }
            let ends = match random.u64(..20) {
                0 => ItemEnd::Badly,
                1 | 2 => ItemEnd::Again,
                _ => ItemEnd::Well,
            };
            let payload = ItemPayload { milliseconds: least + random.u64(..more), ends };
            let kind = random.choice(KINDS).unwrap_or_default();
            queue.add(client, environment.config.plan.language.of(kind), &payload).await?;
            added.fetch_add(1, Ordering::SeqCst);
        }
        if !environment.options.headless {
            delete_old(environment, client).await?;
        }
        rest(quit).await;
    }
    Ok(())
}

async fn delete_old(environment: &Environment, client: &Client) -> Result<(), LockError> {
    let old = "< clock_timestamp() - interval '10 minutes'";
    let schema = environment.schema.quoted();
    let sql = format!(
        "DELETE FROM {schema}.task_queue WHERE status IN ('completed', 'failed') AND completed_at {old};
         DELETE FROM {SCHEMA}.queue_runs WHERE last {old}; DELETE FROM {SCHEMA}.queue_finishes WHERE at {old}"
    );
    client.batch_execute(&sql).await.map_err(super::failed("task_queue"))
}
