//! Waits by design: for a lease, for a permit, and to lead.

use std::time::Duration;

use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::locks::advisory::{Locks, Wait};
use locktop::locks::lease::{Lease, Request};
use locktop::model::finding::Severity;
use locktop::model::view::View;
use locktop::model::why::why;

use tokio::task::JoinSet;

use super::own;
use super::stage::Stage;
use super::support;

/// Waits until the session of this name has an advisory lock, or waits for one.
async fn queued(stage: &Stage, name: &str) {
    let sql = format!(
        "SELECT count(*) > 0 FROM pg_locks JOIN pg_stat_activity USING (pid)
          WHERE locktype = 'advisory' AND mode = 'ExclusiveLock' AND application_name = '{name}'"
    );
    let client = stage.client().await;
    support::wait_until(name, async || client.query_one(&sql, &[]).await.unwrap().get(0)).await;
}

fn checks(view: &View) -> Vec<(&'static str, String)> {
    assert!(view.findings.iter().all(|finding| finding.severity == Severity::Info), "{:?}", view.findings);
    view.findings.iter().map(|finding| (finding.check, finding.summary.to_string())).collect()
}

/// On a server of their own, whose locks are all theirs.
#[tokio::test]
async fn those_who_wait_by_design_are_no_problem() {
    let server = EmbeddedServer::start(Options::default()).await.unwrap();
    lease(&server).await;
    leader(&server).await;
    permit(&server).await;
}

/// The first in the queue for a lease holds the lock that the others wait for, and waits for the lease itself.
async fn lease(server: &EmbeddedServer) {
    let mut stage = Stage::on(server, &own()).await;
    let request = |owner: &str| Request::new("report", owner, Duration::from_secs(3600));
    let info = |name: &str| stage.info().clone().with_application_name(name);
    let lease = Lease::acquire(&info("node1"), &request("node1")).await.unwrap().unwrap();
    let mut tasks = JoinSet::new();
    for name in ["first", "second", "third"] {
        let (info, request) = (info(name), request(name));
        tasks.spawn(async move {
            Lease::acquire_within(&info, &request, support::TIMEOUT).await.unwrap().unwrap()
        });
        queued(&stage, name).await;
    }
    let view = stage.look().await;
    let (findings, root) = (&view.findings, &view.graph.roots[0]);
    assert_eq!(view.standby_words(root.party).as_deref(), Some("first in the queue for lease report"));
    assert_eq!((root.blocked, root.frees, root.in_turn, root.still_blocked), (2, 0, 0, 2));
    assert_eq!(checks(&view).len(), 1);
    let text = &*findings[0].summary;
    assert!(
        text.starts_with("lease report is held by node1 for ") && text.ends_with(", 3 sessions wait for it"),
        "{text}"
    );
    let second = view.graph.queues[0].waiters[0].party;
    let why = why(&view, second);
    assert!(
        why[1].ends_with(
            "is first in the queue for lease report, and waits itself, for lease report of node1."
        ),
        "{why:?}"
    );
    // As promised: without the first, the second is the first, and nobody has the lease.
    let pid = root.party.pid();
    stage.client().await.execute("SELECT pg_terminate_backend($1, 5000)", &[&pid]).await.unwrap();
    let view = stage.look().await;
    assert!(view.graph.roots.iter().all(|root| root.frees == 0 && root.party.pid() != pid));
    assert_eq!(view.leases.rows[0].owner.as_deref(), Some("node1"));
    tasks.shutdown().await;
    drop(lease);
    stage.look_until("no wait", |view| view.graph.queues.is_empty()).await;
}

/// When a leader ends, the next one leads.
async fn leader(server: &EmbeddedServer) {
    let mut stage = Stage::on(server, "").await;
    let mut tasks = JoinSet::new();
    for name in ["one", "two", "three"] {
        let locks = Locks::new(stage.info().clone().with_application_name(name)).without_pooler_test();
        tasks.spawn(async move {
            locks.lead("scheduler", std::future::pending(), std::future::pending::<()>).await.unwrap();
        });
        queued(&stage, name).await;
    }
    stage.look().await;
    stage.later(60);
    let view = stage.view();
    let root = &view.graph.roots[0];
    let pid = root.party.pid();
    assert_eq!((root.blocked, root.frees, root.in_turn), (2, 1, 1));
    assert_eq!(checks(view), [("leader", format!("{pid} leads scheduler, 2 sessions wait to lead"))]);
    stage.client().await.execute("SELECT pg_terminate_backend($1, 5000)", &[&pid]).await.unwrap();
    let is_another = |view: &View| view.graph.roots.first().is_some_and(|root| root.party.pid() != pid);
    stage.look_until("another leader", is_another).await;
    tasks.shutdown().await;
    stage.look_until("no wait", |view| view.graph.queues.is_empty()).await;
}

/// The first in the queue for a permit holds the lock that the others wait for.
async fn permit(server: &EmbeddedServer) {
    let mut stage = Stage::on(server, "").await;
    let locks =
        |name: &str| Locks::new(stage.info().clone().with_application_name(name)).without_pooler_test();
    let mut tasks = JoinSet::new();
    let held = locks("holder").permit("exports", 1, Wait::Forever).await.unwrap().unwrap();
    for name in ["first", "second", "third"] {
        let locks = locks(name);
        tasks.spawn(async move { locks.permit("exports", 1, Wait::Forever).await.unwrap() });
        queued(&stage, name).await;
    }
    let view = stage.look().await;
    let root = &view.graph.roots[0];
    assert_eq!((root.blocked, root.frees, root.in_turn, root.still_blocked), (2, 0, 0, 2));
    assert_eq!(checks(&view), [("permit_queue", "3 sessions wait for a permit of exports".to_owned())]);
    tasks.shutdown().await;
    drop(held);
}
