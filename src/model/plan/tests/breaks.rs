//! What cannot be signalled, and what signalling breaks.

use super::sessions::{id, one, reason, session};
use crate::model::backend::State;
use crate::model::plan::*;
use crate::model::view::View;
use crate::sample::{Builder, at};

fn cautions(view: &View, verb: Verb) -> Vec<CautionKind> {
    let plan = one(view, verb, SelectedRow::Backend(id(7)));
    plan.rows[0].cautions.iter().map(|caution| caution.kind).collect()
}

#[test]
fn cancelling_needs_a_query() {
    let told = |state: State| {
        let view = session(state, |_| {});
        let plan = one(&view, Verb::Cancel, SelectedRow::Backend(id(7)));
        plan.refused.first().map(|refused| refused.reason.clone())
    };
    assert_eq!(told(State::Active), None);
    for (state, words) in [
        (State::IdleInTransaction, "idle in transaction: there is no query to cancel; K ends the session"),
        (
            State::IdleInTransactionAborted,
            "idle in a transaction that has failed already: there is no query to cancel; K ends the session",
        ),
        (State::Idle, "idle: there is no query to cancel; K ends the session"),
        (State::Disabled, "what it does is not known (track_activities is off there): K ends the session"),
        (State::Starting, "is just connecting: there is no query to cancel yet"),
        (State::Other, "whether it runs a query is not known: K ends the session"),
        (
            State::FastpathFunctionCall,
            "calls a function by the fast path, of which nothing is known; K ends the session",
        ),
    ] {
        assert_eq!(told(state).as_deref(), Some(words), "{state:?}");
        let view = session(state, |_| {});
        assert_eq!(one(&view, Verb::Terminate, SelectedRow::Backend(id(7))).rows.len(), 1, "{state:?}");
    }
}

#[test]
fn processes_of_the_server_are_left_alone() {
    for kind in [
        "checkpointer",
        "background writer",
        "walwriter",
        "archiver",
        "logger",
        "startup",
        "walreceiver",
        "autovacuum launcher",
        "logical replication launcher",
        "io worker",
        "slotsync worker",
        "walsummarizer",
    ] {
        let view = session(State::Active, |backend| backend.backend_type = Some(kind.into()));
        for verb in [Verb::Cancel, Verb::Terminate] {
            assert!(!reason(&one(&view, verb, SelectedRow::Backend(id(7)))).is_empty(), "{kind}");
        }
    }
    let startup = session(State::Active, |backend| backend.backend_type = Some("startup".into()));
    let plan = one(&startup, Verb::Terminate, SelectedRow::Backend(id(7)));
    assert!(reason(&plan).ends_with("the cause is on the primary"));
}

#[test]
fn what_it_breaks_is_told() {
    use CautionKind as K;
    let kind = |kind: &'static str, query: &'static str| {
        session(State::Active, move |backend| {
            (backend.backend_type, backend.query) = (Some(kind.into()), Some(query.into()));
        })
    };
    let query = |query: &'static str| kind("client backend", query);
    for (view, told) in [
        (query("SELECT 1"), vec![]),
        (kind("walsender", "START_REPLICATION SLOT \"a\" 0/3000000"), vec![K::WalSender]),
        (kind("autovacuum worker", "autovacuum: VACUUM public.t"), vec![K::Autovacuum]),
        (
            kind("autovacuum worker", "autovacuum: VACUUM public.t (to prevent wraparound)"),
            vec![K::Wraparound],
        ),
        (kind("logical replication apply worker", ""), vec![K::LogicalReplication]),
        (kind("logical replication worker", ""), vec![K::LogicalReplication]),
        (kind("pg_cron launcher", ""), vec![K::BackgroundWorker]),
        (query("/* nightly */ create  unique index -- now\n CONCURRENTLY i ON t (a)"), vec![K::HalfDone]),
        (query("REINDEX (VERBOSE) TABLE CONCURRENTLY t"), vec![K::HalfDone]),
        (query("ALTER TABLE t DETACH PARTITION p CONCURRENTLY"), vec![K::HalfDone]),
        (query("CREATE INDEX i ON t (a)"), vec![]),
        (query("SELECT 'CREATE INDEX CONCURRENTLY'"), vec![]),
    ] {
        let query = view.snapshot.as_ref().unwrap().backend(7).unwrap().query.clone();
        assert_eq!(cautions(&view, Verb::Terminate), told, "{query:?}");
    }
    let program = |name: &'static str| session(State::Active, move |b| b.application = Some(name.into()));
    assert_eq!(cautions(&program("pg_dump"), Verb::Terminate), [K::Tool]);
    assert_eq!(cautions(&program("locktop"), Verb::Terminate), [K::Locktop]);
    let waits = |kind: &'static str, event: &'static str| {
        session(State::Active, move |backend| {
            (backend.wait_event_type, backend.wait_event) = (Some(kind.into()), Some(event.into()));
        })
    };
    assert_eq!(cautions(&waits("IPC", "SyncRep"), Verb::Cancel), [K::SyncRep]);
    assert_eq!(cautions(&waits("Client", "ClientWrite"), Verb::Cancel), [K::Futile]);
    assert_eq!(cautions(&waits("Client", "ClientWrite"), Verb::Terminate), []);
    let wrote = |seconds: f64| {
        session(State::Active, move |b| (b.backend_xid, b.xact_start) = (Some(7), Some(at(-seconds))))
    };
    assert_eq!(cautions(&wrote(599.0), Verb::Terminate), []);
    assert_eq!(cautions(&wrote(600.0), Verb::Terminate), [K::Written]);
}

#[test]
fn a_worker_of_the_queue_and_the_owner_of_a_lease_are_told() {
    let mut b = Builder::default();
    b.session(7, "app@web", State::Idle, 60.0, "SELECT 1");
    b.item(5, "mail\u{1b}[2J", "processing", 20.0).backend_pid = Some(7);
    let lease = b.lease("backup", "node1", 60.0, 20.0);
    (lease.backend_pid, lease.backend_start) = (Some(7), Some(at(-3600.0)));
    let view = b.view();
    let plan = one(&view, Verb::Terminate, SelectedRow::Backend(id(7)));
    let told: Vec<_> = plan.rows[0].cautions.iter().map(|caution| &*caution.words).collect();
    assert_eq!(
        told,
        [
            "works on item 5 (mail␛[2J): the attempt is lost; R on the queue puts it back",
            "has lease backup of locktop.distlock, 40s left: nobody gives it back, and others wait until it has expired"
        ]
    );
    assert_eq!(plan.confirm, Confirm::Owner("7".to_owned()));
}
