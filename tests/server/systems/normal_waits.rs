//! Waits that are normal operation: for a lease, for a permit, and to be elected leader.

use std::time::Duration;

use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::locks::advisory::{Key, Locks, Wait};
use locktop::locks::lease::{Lease, Request};
use locktop::model::finding::{Finding, Severity};
use locktop::model::lock_key::LockKey;
use locktop::model::plan::Verb;
use locktop::model::view::View;
use locktop::model::wait_graph::Party;
use locktop::model::why::why;

use tokio::task::JoinSet;

use super::super::binary::{locktop, run_beside};
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

/// On a server without other locks.
#[tokio::test]
async fn normal_waits_are_no_problem_and_a_real_blocker_is_one() {
    let server = EmbeddedServer::start(Options::default()).await.unwrap();
    lease(&server).await;
    leader(&server).await;
    permit(&server).await;
    impostor(&server).await;
}

/// The first session in the queue holds the lock that the others wait for, and polls for the lease.
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
    let view = stage.poll().await;
    let (findings, root) = (&view.findings, &view.graph.roots[0]);
    assert_eq!(
        view.normal_wait_words(root.party).as_deref(),
        Some("first in the queue for lease report of node1")
    );
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
        why[1].ends_with("is the first session in the queue, and polls for lease report of node1."),
        "{why:?}"
    );
    let json = stage.json();
    assert_eq!((&json["roots"][0]["normal_wait"], &json["roots"][0]["frees"]), (&"lease".into(), &0.into()));
    let promise = view.with_snapshot().unwrap().promise_of(Verb::Terminate, &[second]);
    assert_eq!((promise.still, promise.others), (1, None), "the first session ends only with the lease");
    behind_the_table(&mut stage, root.party).await;
    // A session that has sent nothing for a minute does not poll: it blocks the queue.
    let pid = root.party.pid();
    stage.later(61);
    assert!(is_root_blocker(stage.view(), pid), "{:?}", stage.view().findings);
    // As promised: when the first session has ended, the second one is the first, and node1 still has the lease.
    stage.client().await.execute("SELECT pg_terminate_backend($1, 5000)", &[&pid]).await.unwrap();
    let view = stage.poll().await;
    assert!(view.graph.roots.iter().all(|root| root.frees == 0 && root.party.pid() != pid));
    assert_eq!(view.leases.rows[0].owner.as_deref(), Some("node1"));
    tasks.shutdown().await;
    drop(lease);
    stage.poll_until("no wait", |view| view.graph.queues.is_empty()).await;
}

/// The first session waits for the table of leases. When it gets it, it polls again, and the others stay behind it.
async fn behind_the_table(stage: &mut Stage, first: Party) {
    let mut client = stage.client().await;
    let all = client.transaction().await.unwrap();
    let pid = support::pid(all.client()).await;
    all.execute("LOCK TABLE locktop.distlock", &[]).await.unwrap();
    let blocks = |view: &View| view.graph.roots.first().is_some_and(|root| root.party.pid() == pid);
    stage.poll_until("the table is waited for", blocks).await;
    let root = &stage.view().graph.roots[0];
    assert_eq!((root.blocked, root.frees, root.in_turn, root.still_blocked), (3, 1, 0, 2));
    assert!(is_root_blocker(stage.view(), pid));
    all.rollback().await.unwrap();
    let polls = |view: &View| view.graph.roots.first().is_some_and(|root| root.party == first);
    stage.poll_until("the first session polls", polls).await;
    assert_eq!(stage.view().graph.roots[0].blocked, 2);
}

/// If a leader ends, the next session leads.
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
    stage.poll().await;
    stage.later(60);
    let view = stage.view();
    let root = &view.graph.roots[0];
    let pid = root.party.pid();
    let last = view.graph.queues[0].waiters[1].party;
    assert_eq!((root.blocked, root.frees, root.in_turn, root.still_blocked), (2, 1, 0, 1));
    assert_eq!(checks(view), [("leader", format!("{pid} leads scheduler, 2 sessions wait to lead"))]);
    stage.client().await.execute("SELECT pg_terminate_backend($1, 5000)", &[&pid]).await.unwrap();
    let target = stage.info().to_key_value();
    let check = run_beside(locktop(&["check", &target])).await;
    for value in ["longest_wait=0s", "worst_root=0;", "root_age=0s", "idle_root=0s"] {
        assert!(check.out.contains(value), "{value}: {}", check.out);
    }
    // As promised: one session continues, and the last one still waits.
    let is_another = |view: &View| view.graph.roots.first().is_some_and(|root| root.party.pid() != pid);
    stage.poll_until("another leader", is_another).await;
    assert!(stage.view().graph.wait_of(last).is_some());
    tasks.shutdown().await;
    stage.poll_until("no wait", |view| view.graph.queues.is_empty()).await;
}

/// The first session in the queue holds the lock that the others wait for.
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
    let view = stage.poll().await;
    let root = &view.graph.roots[0];
    assert_eq!((root.blocked, root.frees, root.in_turn, root.still_blocked), (2, 0, 0, 2));
    assert_eq!(checks(&view), [("permit_queue", "3 sessions wait for a permit of exports".to_owned())]);
    tasks.shutdown().await;
    drop(held);
}

/// A session that holds the lock of an election but was not elected, and a leader with sessions behind a session that waits to lead.
async fn impostor(server: &EmbeddedServer) {
    let mut stage = Stage::on(server, "CREATE TABLE t (id int)").await;
    let session = stage.client().await;
    let pid = support::pid(&session).await;
    let LockKey::Bigint(key) = Key::named("scheduler").number() else { panic!("a name has one number") };
    session.batch_execute(&format!("BEGIN; SELECT pg_advisory_xact_lock({key})")).await.unwrap();
    let mut tasks = JoinSet::new();
    let locks = Locks::new(stage.info().clone().with_application_name("one")).without_pooler_test();
    tasks.spawn(async move { drop(locks.elect("scheduler").await.unwrap()) });
    queued(&stage, "one").await;
    assert!(is_root_blocker(&*stage.poll().await, pid), "it is in a transaction");
    session.batch_execute(&format!("SELECT pg_advisory_lock({key}); COMMIT")).await.unwrap();
    assert!(is_root_blocker(&*stage.poll().await, pid), "it was not elected");
    session.batch_execute(&format!("/* lead scheduler */ SELECT pg_advisory_lock({key})")).await.unwrap();
    assert!(!is_root_blocker(&*stage.poll().await, pid));
    let waits = stage.client().await;
    waits.batch_execute("BEGIN; LOCK TABLE t").await.unwrap();
    let elects = format!("/* lead scheduler */ SELECT pg_advisory_lock({key})");
    tasks.spawn(async move { waits.batch_execute(&elects).await.unwrap() });
    let reads = stage.client().await;
    tasks.spawn(async move { reads.batch_execute("TABLE t").await.unwrap() });
    stage.poll_until("three sessions wait", |view| view.graph.waiting == 3).await;
    assert!(is_root_blocker(stage.view(), pid), "one session does not wait to lead");
    tasks.shutdown().await;
}

fn is_root_blocker(view: &View, pid: i32) -> bool {
    let is_it = |finding: &Finding| finding.check == "root_blocker" && finding.is_about(Party::Backend(pid));
    let is_one = view.findings.iter().any(is_it);
    assert_eq!(is_one, view.normal_wait(Party::Backend(pid)).is_none());
    is_one
}
