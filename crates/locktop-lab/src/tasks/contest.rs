use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::{Client, Error};

use super::tables::TaskTables;
use super::{TaskContest, TasksError, TasksOptions, running, summary};
use crate::contest::{ContestOutcome, Environment, Fault, FaultPlan, PAUSE, Report, Rules, Runner};
use crate::scenario::SCHEMA;
use crate::workers::WorkerRole;

/// How often tasks are made due again.
const REPLAN: Duration = Duration::from_millis(500);
/// Work that ends within this many seconds is left alone.
const NEARLY_DONE: f64 = 0.3;
/// A worker is paused only if its task is past its timeout within this many seconds.
const TIMEOUT: f64 = 8.0;
/// The faults of workers that are to crash; otherwise one is killed now and then.
const CRASHES: [Fault; 12] = {
    let mut faults = [Fault::Kill; 12];
    [faults[0], faults[1], faults[2]] = [Fault::Pause, Fault::Pause, Fault::Cut];
    faults
};
/// How many times slower faults come with a dashboard, so that each can be seen.
const SHOWN_PACE: u64 = 2;

impl TaskContest {
    pub(super) fn begin(self, environment: &Environment) -> Result<Runner, TasksError> {
        let (faults, workers) = (faults(&self.tables, &self.options), self.options.workers);
        let contest = Arc::new(self);
        let runner = Runner::new(Arc::clone(&contest));
        let mut runner = runner.processes(environment, "worker", WorkerRole::Tasks, workers, faults)?;
        runner.spawn(replan(Arc::clone(&contest)));
        runner.spawn(running::run(contest));
        Ok(runner)
    }
}

impl Rules for TaskContest {
    async fn count(&self, client: &Client, report: &Report) -> Result<ContestOutcome, Error> {
        summary::found(client, &self.tables, report, (self.options.workers, self.options.tasks)).await
    }
}

fn fault_schedule(options: &TasksOptions) -> FaultPlan {
    FaultPlan {
        kinds: if options.crash { &CRASHES } else { &[Fault::Kill] },
        paused: 2,
        gap: if options.crash { (800, 900) } else { (7_000, 5_000) },
        times: if options.crash && !options.headless { SHOWN_PACE } else { 1 },
        after: (500, 2_500),
        // So that the faults are not in step with the tasks.
        salt: 0x6661_756c_7473,
        ..FaultPlan::default()
    }
}

/// A worker's current work is the number of its run in the witness table.
fn faults(tables: &TaskTables, options: &TasksOptions) -> FaultPlan {
    let witness = format!("{SCHEMA}.witness");
    let unnoticed = Some(format!("SELECT count(*) FROM {witness} WHERE ended IS NULL AND run = ANY ($1)"));
    if tables.recipe {
        return FaultPlan {
            targets: format!("SELECT worker, run FROM {witness} WHERE ended IS NULL ORDER BY process"),
            unnoticed,
            cut: Some(format!(
                "SELECT pg_terminate_backend(a.pid)
                   FROM {witness} w
                   JOIN pg_stat_activity a ON a.datname = current_database() AND a.application_name = w.worker
                  WHERE w.run = $1"
            )),
            ..fault_schedule(options)
        };
    }
    let schema = tables.schema.quoted();
    let targets = format!(
        "SELECT w.worker, w.run
           FROM {witness} w
           JOIN {schema}.task_execution_log e ON e.id = w.execution_id AND e.status = 'running'
           JOIN {schema}.scheduled_tasks t ON t.id = e.task_id
          CROSS JOIN LATERAL (SELECT extract(epoch FROM clock_timestamp() - e.started_at)::float8 AS age) a
          WHERE w.ended IS NULL AND (t.payload ->> 'seconds')::float8 - a.age > {NEARLY_DONE}"
    );
    FaultPlan {
        pausable: Some(format!(
            "{targets} AND extract(epoch FROM t.timeout)::float8 - a.age < {TIMEOUT} ORDER BY w.process"
        )),
        targets: format!("{targets} ORDER BY w.process"),
        lost: Some(format!(
            "SELECT CASE WHEN e.status <> 'running' THEN e.recovered_by IS NOT NULL END
               FROM {witness} w JOIN {schema}.task_execution_log e ON e.id = w.execution_id WHERE w.run = $1"
        )),
        unnoticed,
        cut: Some(format!(
            "SELECT pg_terminate_backend(a.pid)
               FROM {witness} w
               JOIN {schema}.task_execution_log e ON e.id = w.execution_id AND e.status = 'running'
               JOIN pg_stat_activity a ON a.pid = e.backend_pid AND a.backend_start = e.backend_start
              WHERE w.run = $1"
        )),
        ..fault_schedule(options)
    }
}

async fn replan(shared: Arc<TaskContest>) {
    loop {
        if let Some(client) = shared.connect("planner").await {
            while shared.tables.replan(&client, &shared.plan).await.is_ok() {
                if !shared.options.headless {
                    // If this fails, the next statement fails, too.
                    let _ = shared.tables.delete_old(&client).await;
                }
                tokio::time::sleep(REPLAN).await;
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::*;
    use crate::contest::ScheduledFault;

    #[test]
    fn a_minute_of_crashes_has_twenty_kills_and_some_stops() {
        let options = TasksOptions { crash: true, headless: true, ..TasksOptions::new("locktop".into()) };
        let faults = fault_schedule(&options);
        for seed in 0..200 {
            let mut random = Rng::with_seed(seed ^ faults.salt);
            let (mut at, mut kills, mut pauses) = (0, 0, 0);
            while at < 55_000 {
                let ScheduledFault { gap, fault, .. } = faults.next(&mut random);
                at += gap;
                kills += u32::from(fault == Fault::Kill);
                pauses += u32::from(fault == Fault::Pause);
            }
            assert!(kills >= 20 && pauses >= 1, "{seed}: {kills} kills, {pauses} pauses");
        }
    }
}
