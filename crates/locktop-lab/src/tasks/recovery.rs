//! The recovery next to the workers, like a user's cron job; with a dashboard the operator has half a minute to do it
//! first. Orphans are always recovered. Executions past their timeout are terminated if workers are stopped, since a
//! paused worker never ends, and every few seconds if work hangs.

use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Client;

use super::TaskContest;
use locktop_base::Timestamp;
use locktop_base::clock;
use locktop_tasks::actor::Actor;
use locktop_tasks::recovery::{self, Order, Request, RunState, Running, Selection};

/// Interval between two polls: long enough for an orphan to be seen on a screen, and shorter if there are many.
const EVERY: Duration = Duration::from_millis(2_500);
const EVERY_CRASH: Duration = Duration::from_secs(1);
/// How long hung work remains visible before it is terminated.
const HUNG_AFTER: Duration = Duration::from_secs(8);
/// Delay before reconnecting after the server is lost.
const PAUSE: Duration = Duration::from_millis(500);
/// How long to wait for a session to end after its termination was requested.
const WAIT: Duration = Duration::from_secs(5);
/// The recipe's timeout in minutes, before scaling: its function counts whole minutes.
const RECIPE_MINUTES: f64 = 30.0;

pub(super) async fn run(shared: Arc<TaskContest>) {
    loop {
        if let Some(client) = shared.connect("recovery").await {
            if shared.tables.recipe {
                by_recipe(&shared, &client).await;
            } else {
                by_schema(&shared, &client).await;
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn by_schema(shared: &TaskContest, client: &Client) {
    let order = Order {
        actor: Actor::of_process("locktop demo", shared.tables.info.user()),
        reason: None,
        wait: WAIT,
    };
    let mut ended = clock::monotonic();
    while !client.is_closed() {
        let terminate = shared.options.crash || (shared.options.stall && ended.elapsed() >= HUNG_AFTER);
        shared.options.question.closed().await;
        recover(shared, client, &order, Selection::Orphans, false).await;
        if terminate {
            ended = clock::monotonic();
            recover(shared, client, &order, Selection::Longer(None), true).await;
        }
        tokio::time::sleep(if shared.options.crash { EVERY_CRASH } else { EVERY }).await;
    }
}

/// One poll, and the recovery of what it finds. An execution whose recovery is refused or lost is found again by the next
/// poll.
async fn recover(shared: &TaskContest, client: &Client, order: &Order, select: Selection, terminate: bool) {
    let request = Request { select, task: None, terminate };
    if let Ok(mut plan) = recovery::plan(client, &shared.tables.schema, &request).await {
        let (grace, now) = (shared.options.manual_grace(), plan.taken_at);
        plan.rows
            .retain(|row| trouble_for(&row.seen, now) >= grace + if terminate { 0.0 } else { plan.grace });
        recovery::execute(client, &shared.tables.schema, &plan, order, |_| {}).await;
    }
}

/// How many seconds, at most, an execution has been in trouble: past its timeout, or without a sign of life.
fn trouble_for(seen: &Running, now: Timestamp) -> f64 {
    if seen.state == RunState::Slow {
        return seen.run_seconds.zip(seen.timeout_seconds).map_or(0.0, |(run, limit)| run - limit);
    }
    seen.last_seen_at().map_or(f64::INFINITY, |at| (now - at).as_seconds_f64())
}

async fn by_recipe(shared: &TaskContest, client: &Client) {
    let minutes = shared.plan.scaled(RECIPE_MINUTES).round();
    let sql = format!("SELECT count(*) FROM check_and_recover_timeout_tasks({minutes})");
    while client.execute(&sql, &[]).await.is_ok() || !client.is_closed() {
        tokio::time::sleep(EVERY).await;
    }
}
