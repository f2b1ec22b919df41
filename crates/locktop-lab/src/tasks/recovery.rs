//! The recovery that goes on beside the workers, as somebody's cron job would do it; with a dashboard its operator has half a minute to
//! do it first. Orphans always; whoever is past the timeout is
//! ended where workers are stopped, since one that is paused never expires, and every few seconds where work hangs.

use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Client;

use super::shared::Shared;
use locktop_base::Timestamp;
use locktop_base::clock;
use locktop_tasks::actor::Actor;
use locktop_tasks::recovery::{self, Order, Request, RunState, Running, Selection};

/// Between two looks: long enough for an orphan to be seen on a screen, and less where there are many.
const EVERY: Duration = Duration::from_millis(2_500);
const EVERY_CRASH: Duration = Duration::from_secs(1);
/// How long hung work may be looked at before it is ended.
const HUNG_AFTER: Duration = Duration::from_secs(8);
/// Until a lost server is tried again.
const PAUSE: Duration = Duration::from_millis(500);
/// How long to wait for a session that was told to end.
const WAIT: Duration = Duration::from_secs(5);
/// The recipe's time-out in minutes, before it is scaled: its function counts whole ones.
const RECIPE_MINUTES: f64 = 30.0;

/// Goes on for as long as it is let.
pub(super) async fn run(shared: Arc<Shared>) {
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

/// Until the connection is lost.
async fn by_schema(shared: &Shared, client: &Client) {
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

/// One look and what follows from it. What is refused or lost is seen again at the next look.
async fn recover(shared: &Shared, client: &Client, order: &Order, select: Selection, terminate: bool) {
    let request = Request { select, task: None, terminate };
    if let Ok(mut plan) = recovery::plan(client, &shared.tables.schema, &request).await {
        let (grace, now) = (shared.options.manual_grace(), plan.taken_at);
        plan.rows
            .retain(|row| trouble_for(&row.seen, now) >= grace + if terminate { 0.0 } else { plan.grace });
        recovery::execute(client, &shared.tables.schema, &plan, order, |_| {}).await;
    }
}

/// For how many seconds an execution has been in trouble, at the most: past its time, or without a sign of life.
fn trouble_for(seen: &Running, now: Timestamp) -> f64 {
    if seen.state == RunState::Slow {
        return seen.run_seconds.zip(seen.timeout_seconds).map_or(0.0, |(run, limit)| run - limit);
    }
    seen.last_seen_at().map_or(f64::INFINITY, |at| (now - at).as_seconds_f64())
}

/// By the function of the recipe.
async fn by_recipe(shared: &Shared, client: &Client) {
    let minutes = shared.plan.scaled(RECIPE_MINUTES).round();
    let sql = format!("SELECT count(*) FROM check_and_recover_timeout_tasks({minutes})");
    while client.execute(&sql, &[]).await.is_ok() || !client.is_closed() {
        tokio::time::sleep(EVERY).await;
    }
}
