use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::{Client, Error};

use super::{delete_old, summary};
use crate::DemoError;
use crate::contest::{
    ContestOutcome, Environment, Fault, FaultPlan, PAUSE, Report, Rules, Runner, TasksOptions,
};
use crate::scenario::SCHEMA;
use crate::workers::WorkerRole;
use locktop_base::{Timestamp, clock};
use locktop_tasks::actor::Actor;
use locktop_tasks::recovery::{self, RecoveryOrder, Request, RunState, RunningExecution, Selection};

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

#[derive(Debug)]
struct TaskContest(Environment);

pub(super) fn begin(environment: &Environment) -> Result<Runner, DemoError> {
    let (faults, workers) = (faults(environment), environment.options.workers);
    let runner = Runner::new(Arc::new(TaskContest(environment.clone())));
    let mut runner = runner.processes(environment, "worker", WorkerRole::Tasks, workers, faults)?;
    runner.spawn(replan(environment.clone()));
    runner.spawn(recover_lost(environment.clone()));
    Ok(runner)
}

impl Rules for TaskContest {
    async fn count(&self, client: &Client, report: &Report) -> Result<ContestOutcome, Error> {
        summary::found(client, &self.0, report).await
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
fn faults(environment: &Environment) -> FaultPlan {
    let Environment { schema, options, .. } = environment;
    let witness = format!("{SCHEMA}.witness");
    let unnoticed = Some(format!("SELECT count(*) FROM {witness} WHERE ended IS NULL AND run = ANY ($1)"));
    if options.recipe.is_some() {
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
    let schema = schema.quoted();
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

async fn replan(environment: Environment) {
    loop {
        if let Some(client) = environment.connect("planner").await {
            while super::replan(&environment, &client).await.is_ok() {
                if !environment.options.headless {
                    // If this fails, the next statement fails, too.
                    let _ = delete_old(&client).await;
                }
                tokio::time::sleep(REPLAN).await;
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Interval between two polls: long enough for an orphan to be seen on a screen, and shorter if there are many.
const EVERY: Duration = Duration::from_millis(2_500);
const EVERY_CRASH: Duration = Duration::from_secs(1);
/// How long hung work remains visible before it is terminated.
const HUNG_AFTER: Duration = Duration::from_secs(8);
/// How long to wait for a session to end after its termination was requested.
const WAIT: Duration = Duration::from_secs(5);
/// The recipe's timeout in minutes, before scaling: its function counts whole minutes.
const RECIPE_MINUTES: f64 = 30.0;

/// The recovery next to the workers, like a user's cron job; with a dashboard the operator has half a minute to do it
/// first. Orphans are always recovered. Executions past their timeout are terminated if workers are stopped, since a
/// paused worker never ends, and every few seconds if work hangs.
async fn recover_lost(environment: Environment) {
    loop {
        if let Some(client) = environment.connect("recovery").await {
            if environment.config.recipe {
                by_recipe(&environment, &client).await;
            } else {
                by_schema(&environment, &client).await;
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn by_schema(environment: &Environment, client: &Client) {
    let order = RecoveryOrder {
        actor: Actor::of_process("locktop demo", environment.info.user()),
        reason: None,
        wait: WAIT,
    };
    let mut ended = clock::monotonic();
    while !client.is_closed() {
        let terminate =
            environment.options.crash || (environment.options.stall && ended.elapsed() >= HUNG_AFTER);
        environment.options.question.closed().await;
        recover(environment, client, &order, Selection::Orphans, false).await;
        if terminate {
            ended = clock::monotonic();
            recover(environment, client, &order, Selection::Longer(None), true).await;
        }
        tokio::time::sleep(if environment.options.crash { EVERY_CRASH } else { EVERY }).await;
    }
}

/// One poll, and the recovery of what it finds. An execution whose recovery is refused or lost is found again by the next
/// poll.
async fn recover(
    environment: &Environment,
    client: &Client,
    order: &RecoveryOrder,
    select: Selection,
    terminate: bool,
) {
    let request = Request { select, task: None, terminate };
    if let Ok(mut plan) = recovery::plan(client, &environment.schema, &request).await {
        let (grace, now) = (environment.options.manual_grace(), plan.taken_at);
        plan.rows
            .retain(|row| problem_for(&row.seen, now) >= grace + if terminate { 0.0 } else { plan.grace });
        recovery::execute(client, &environment.schema, &plan, order, |_| {}).await;
    }
}

/// How many seconds, at most, an execution has been in trouble: past its timeout, or without a sign of life.
fn problem_for(seen: &RunningExecution, now: Timestamp) -> f64 {
    if seen.state == RunState::Slow {
        return seen.run_seconds.zip(seen.timeout_seconds).map_or(0.0, |(run, limit)| run - limit);
    }
    seen.last_seen_at().map_or(f64::INFINITY, |at| (now - at).as_seconds_f64())
}

async fn by_recipe(environment: &Environment, client: &Client) {
    let minutes = environment.config.plan.scaled(RECIPE_MINUTES).round();
    let sql = format!("SELECT count(*) FROM check_and_recover_timeout_tasks({minutes})");
    while client.execute(&sql, &[]).await.is_ok() || !client.is_closed() {
        tokio::time::sleep(EVERY).await;
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
