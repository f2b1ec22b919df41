//! The locks that a cancelled query keeps, and the plan's statement about them before.

use locktop::demo::postgres::EmbeddedServer;
use locktop::feed::once::once;
use locktop::model::backend::BackendId;
use locktop::model::lock_name::LockNames;
use locktop::model::plan::{ActionPlan, Ask, PlanContext, Verb, sessions};
use locktop::model::row_id::RowId;
use locktop::model::thresholds::Thresholds;
use locktop::pg::conninfo::ConnInfo;
use locktop::pg::poll::PollLimits;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::frozen::waiting;
use crate::support::{database, open, wait_until};

#[tokio::test]
async fn a_plan_to_cancel_does_not_promise_that_locks_are_released() {
    for version in super::versions() {
        let server = super::server(version).await;
        // The client leaves the transaction block in its failed state.
        let block = ["BEGIN", "LOCK TABLE t"];
        cancel(&server, &block, &["LOCK TABLE t"], 1).await;
        // A lock acquired before a savepoint is kept: a savepoint is not visible to other sessions.
        let savepoint = ["BEGIN", "LOCK TABLE t", "SAVEPOINT s"];
        cancel(&server, &savepoint, &["LOCK TABLE t"], 0).await;
        // A session-level lock is kept, and the plan does not promise its release.
        let both = ["BEGIN", "LOCK TABLE t", "SELECT pg_advisory_lock(1)"];
        let waits = ["LOCK TABLE t", "SELECT pg_advisory_lock(1)"];
        cancel(&server, &both, &waits, 1).await;
        let session = ["SELECT pg_advisory_lock(1)"];
        cancel(&server, &session, &["SELECT pg_advisory_lock(1)"], 0).await;
    }
}

/// A session prepares a transaction block and then sleeps; others wait for the locks it has acquired. The
/// plan promises none of them that it continues, since that depends on state that is not visible; `continues`
/// of them do when the sleep is cancelled.
async fn cancel(server: &EmbeddedServer, prepare: &[&str], waits: &[&str], continues: usize) {
    let name = format!("{prepare:?} on {}", server.version());
    let info = database(server).await;
    let watcher = open(&info).await.client;
    watcher.batch_execute("CREATE TABLE t ()").await.unwrap();
    let holder = open(&info).await.client;
    for statement in prepare {
        holder.batch_execute(statement).await.unwrap();
    }
    let pid = pid_of(&holder).await;
    let sleep = tokio::spawn(async move { (holder.batch_execute("SELECT pg_sleep(600)").await, holder) });
    let mut others = Vec::new();
    for (at, statement) in waits.iter().enumerate() {
        let client = open(&info).await.client;
        let statement = format!("BEGIN; {statement}");
        others.push(tokio::spawn(async move { (client.batch_execute(&statement).await, client) }));
        wait_until("one more session to wait", async || waiting(&watcher).await.len() == at + 1).await;
    }
    wait_until("the sleep to begin", async || {
        let sql = "SELECT wait_event = 'PgSleep' FROM pg_stat_activity WHERE pid = $1";
        watcher.query_one(sql, &[&pid]).await.unwrap().get::<_, Option<bool>>(0) == Some(true)
    })
    .await;
    let effect = plan(&info, pid).await.effect.unwrap();
    // No lock that may be kept is promised.
    assert_eq!(
        (effect.release.now.len(), effect.release.unsure.len()),
        (0, waits.len()),
        "{name}: {effect:?}"
    );
    let before = waiting(&watcher).await;
    watcher.query_one("SELECT pg_cancel_backend($1)", &[&pid]).await.unwrap();
    let (failed, holder) = sleep.await.unwrap();
    assert_eq!(failed.unwrap_err().code(), Some(&SqlState::QUERY_CANCELED), "{name}");
    wait_until("those that can to continue", async || {
        waiting(&watcher).await.len() == before.len() - continues
    })
    .await;
    drop(holder);
    for other in others {
        other.await.unwrap().0.unwrap();
    }
}

async fn pid_of(client: &Client) -> i32 {
    client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0)
}

async fn plan(info: &ConnInfo, pid: i32) -> ActionPlan {
    let limits = PollLimits { ask: 1_000, ..PollLimits::default() };
    let view = once(info, limits, Thresholds::default(), LockNames::default()).await.unwrap();
    let backend = view.snapshot.as_ref().unwrap().backend(pid).unwrap();
    let context = PlanContext { view: &view, rights: None, own_pids: &[], terminated: &[] };
    let id = BackendId { pid, backend_start: backend.backend_start };
    let plan = sessions(&context, &Ask::new(Verb::Cancel, vec![RowId::Backend(id)]));
    assert!(plan.refused.is_empty(), "{plan:?}");
    plan
}
