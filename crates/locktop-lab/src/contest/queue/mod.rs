//! Queue workers as processes, which are killed while they work. The counts come from the items that were added, from
//! what the workers record over separate connections about when they worked on what, and from a trigger that records each
//! completion in its transaction.

pub(crate) mod child;
mod producer;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio_postgres::{Client, Error};

use super::faults::{Fault, FaultPlan};
use super::runner::{Report, Runner};
use super::tally::{ContestOutcome, Tally, count, numbers, tally};
use super::{Contest, Environment, Rules};
use crate::scenario::SCHEMA;
use crate::workers::{TasksError, WorkerRole};
use locktop_base::clock;
use locktop_tasks::work_queue::WorkQueue;
use pg_connect::connect::connect;

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

pub(super) async fn begin(environment: &Environment, client: &Client) -> Result<Runner, TasksError> {
    let tables = TABLES.replace('@', SCHEMA).replace('#', &environment.schema.quoted());
    client.batch_execute(&tables).await.map_err(TasksError::server("the runs of items"))?;
    let table = format!("{}.task_queue", environment.schema.quoted());
    let faults = FaultPlan {
        targets: format!(
            "SELECT worker_id::text, id FROM {table} WHERE status = 'processing' ORDER BY worker_id"
        ),
        // A paused worker loses nothing: its session remains.
        kinds: &[Fault::Kill; 3],
        gap: if environment.headless { (200, 600) } else { (4_000, 4_000) },
        ..FaultPlan::default()
    };
    let added = Arc::<AtomicU64>::default();
    let queue = Queue { environment: environment.clone(), added: Arc::clone(&added) };
    let runner = Runner::new(Arc::new(queue));
    let mut runner = runner.processes(environment, "consumer", WorkerRole::Queue, WORKERS, faults)?;
    runner.spawn_until(|quit| producer::run(environment.clone(), added, quit));
    Ok(runner)
}

impl Queue {
    /// Requeues the items of workers that have ended.
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
        if !self.environment.headless {
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
