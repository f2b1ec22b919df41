use super::sessions::{id, one, reason, session};
use crate::model::backend::State;
use crate::model::consequence::{Consequence, DataEffect};
use crate::model::plan::*;
use crate::model::row_id::RowId;
use crate::model::view::View;
use crate::sample::{Builder, at};

fn cautions(view: &View, verb: Verb) -> Vec<CautionKind> {
    let plan = one(view, verb, RowId::Backend(id(7)));
    plan.rows[0].cautions.iter().map(|caution| caution.kind).collect()
}

#[test]
fn cancelling_needs_a_query() {
    let refusal = |state: State| {
        let view = session(state, |_| {});
        let plan = one(&view, Verb::Cancel, RowId::Backend(id(7)));
        plan.refused.first().map(|refused| refused.reason.clone())
    };
    assert_eq!(refusal(State::Active), None);
    for (state, words) in [
        (State::IdleInTransaction, "idle in transaction: no query to cancel; K terminates the session"),
        (
            State::IdleInTransactionAborted,
            "idle in a failed transaction: no query to cancel; K terminates the session",
        ),
        (State::Idle, "idle: no query to cancel; K terminates the session"),
        (
            State::Disabled,
            "its activity is not known (track_activities is off for it); K terminates the session",
        ),
        (State::Starting, "is still connecting: no query to cancel yet"),
        (State::Other, "not known whether it runs a query; K terminates the session"),
        (
            State::FastpathFunctionCall,
            "executes a fast-path function call; whether a cancel is safe is not known; K terminates the session",
        ),
    ] {
        assert_eq!(refusal(state).as_deref(), Some(words), "{state:?}");
        let view = session(state, |_| {});
        assert_eq!(one(&view, Verb::Terminate, RowId::Backend(id(7))).rows.len(), 1, "{state:?}");
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
            assert!(!reason(&one(&view, verb, RowId::Backend(id(7)))).is_empty(), "{kind}");
        }
    }
    let startup = session(State::Active, |backend| backend.backend_type = Some("startup".into()));
    let plan = one(&startup, Verb::Terminate, RowId::Backend(id(7)));
    assert!(reason(&plan).ends_with("the cause is on the primary"));
}

fn does(view: &View, verb: Verb) -> (DataEffect, String) {
    let view = view.with_snapshot().unwrap();
    let Consequence { effect, words } = view.consequence(verb, view.backend(7).unwrap());
    (effect, words)
}

#[test]
fn the_effect_on_data_follows_from_kind_statement_and_wait_together() {
    use DataEffect as E;
    let kind = |kind: &'static str, query: &'static str, wait: (&'static str, &'static str)| {
        session(State::Active, move |backend| {
            (backend.backend_type, backend.query) = (Some(kind.into()), Some(query.into()));
            (backend.wait_event_type, backend.wait_event) = (Some(wait.0.into()), Some(wait.1.into()));
        })
    };
    let query = |query: &'static str, wait: (&'static str, &'static str)| kind("client backend", query, wait);
    let (cpu, lock, list) = (("", ""), ("Lock", "relation"), ("Lock", "virtualxid"));
    for (view, cancel, terminate) in [
        (query("SELECT 1", cpu), E::RollsBack, E::RollsBack),
        (query("COMMIT", ("IPC", "SyncRep")), E::Committed, E::Committed),
        (query("SELECT * FROM t", ("Client", "ClientWrite")), E::NoneYet, E::RollsBack),
        (query("COPY t FROM STDIN", ("Client", "ClientRead")), E::NoneYet, E::RollsBack),
        (query("DROP DATABASE d", ("IPC", "ProcSignalBarrier")), E::InvalidDatabase, E::InvalidDatabase),
        (query("DROP DATABASE d", cpu), E::InvalidDatabase, E::InvalidDatabase),
        (query("DROP DATABASE d", ("Lock", "object")), E::RollsBack, E::RollsBack),
        (
            query("/* nightly */ create  unique index -- now\n CONCURRENTLY i ON t (a)", list),
            E::HalfDone,
            E::HalfDone,
        ),
        (query("CREATE INDEX CONCURRENTLY i ON t(a)", lock), E::RollsBack, E::RollsBack),
        (query("REINDEX (VERBOSE) TABLE CONCURRENTLY t", cpu), E::HalfDone, E::HalfDone),
        (query("DROP INDEX CONCURRENTLY i", list), E::HalfDone, E::HalfDone),
        (query("ALTER TABLE t DETACH PARTITION p CONCURRENTLY", list), E::HalfDone, E::HalfDone),
        (query("CREATE INDEX i ON t (a)", cpu), E::RollsBack, E::RollsBack),
        (query("SELECT 'CREATE INDEX CONCURRENTLY'", cpu), E::RollsBack, E::RollsBack),
        (query("VACUUM (FREEZE) audit", ("BufferPin", "BufferPin")), E::Stops, E::Stops),
        (query("VACUUM FULL audit", cpu), E::RollsBack, E::RollsBack),
        (kind("walsender", "START_REPLICATION SLOT \"a\" 0/3000000", cpu), E::Restarts, E::Restarts),
        (kind("walsender", "BASE_BACKUP (LABEL 'x')", cpu), E::Stops, E::Stops),
        (kind("walsender", "CREATE_REPLICATION_SLOT cdc LOGICAL test_decoding", lock), E::Stops, E::Stops),
        (kind("autovacuum worker", "autovacuum: VACUUM public.t", cpu), E::Restarts, E::Restarts),
        (kind("logical replication apply worker", "", cpu), E::Restarts, E::Restarts),
        (kind("logical replication worker", "", cpu), E::Restarts, E::Restarts),
        (kind("pg_cron launcher", "", cpu), E::Stops, E::Stops),
        (kind("startup", "", cpu), E::Refused, E::Refused),
    ] {
        let row = view.snapshot.as_ref().unwrap().backend(7).unwrap();
        let effects = (does(&view, Verb::Cancel), does(&view, Verb::Terminate));
        assert_eq!((effects.0.0, effects.1.0), (cancel, terminate), "{:?} {:?}", row.query, effects);
        assert!(!effects.0.1.is_empty() && !effects.1.1.is_empty(), "{effects:?}");
    }
    let drop = does(&query("DROP DATABASE d", cpu), Verb::Terminate).1;
    assert!(drop.starts_with("unless it still waits, up to 5 s, for the sessions there: "), "{drop}");
    let vacuum = "autovacuum: VACUUM public.t (to prevent wraparound)";
    let (effect, words) = does(&kind("autovacuum worker", vacuum, cpu), Verb::Cancel);
    assert!(effect == E::Restarts && words.contains("the server starts it again"), "{words}");
    for (state, cancel, terminate) in [
        (State::IdleInTransaction, E::Refused, E::RollsBack),
        (State::IdleInTransactionAborted, E::Refused, E::Failed),
        (State::Idle, E::Refused, E::Nothing),
    ] {
        let view = session(state, |backend| backend.xact_start = (state != State::Idle).then(|| at(-60.0)));
        assert_eq!(
            (does(&view, Verb::Cancel).0, does(&view, Verb::Terminate).0),
            (cancel, terminate),
            "{state:?}"
        );
    }
}

#[test]
fn the_shortcut_that_helps_follows_from_that() {
    let remedy = |state: State, query: &'static str, wait: (&'static str, &'static str), keeps: bool| {
        let view = session(state, move |backend| {
            backend.query = Some(query.into());
            (backend.wait_event_type, backend.wait_event) = (Some(wait.0.into()), Some(wait.1.into()));
        });
        let view = view.with_snapshot().unwrap();
        view.remedy(view.backend(7).unwrap(), keeps).ok()
    };
    let (cancel, terminate) = (Some(Verb::Cancel), Some(Verb::Terminate));
    let (cpu, idle) = (("", ""), ("Client", "ClientRead"));
    assert_eq!(remedy(State::Active, "UPDATE t SET v = 1", cpu, false), cancel);
    assert_eq!(
        remedy(State::Active, "SELECT pg_sleep(9)", cpu, true),
        terminate,
        "the lock may be the session's"
    );
    assert_eq!(remedy(State::Active, "SELECT * FROM big", ("Client", "ClientWrite"), false), terminate);
    assert_eq!(remedy(State::IdleInTransaction, "UPDATE t SET v = 1", idle, false), terminate);
    assert_eq!(remedy(State::Active, "COMMIT", ("IPC", "SyncRep"), false), None);
    assert_eq!(remedy(State::Active, "DROP DATABASE d", ("IPC", "ProcSignalBarrier"), false), None);
}

#[test]
fn tools_locktop_and_long_writing_transactions_get_a_caution() {
    use CautionKind as K;
    let program = |name: &'static str| session(State::Active, move |b| b.application = Some(name.into()));
    assert_eq!(cautions(&program("pg_dump"), Verb::Terminate), [K::Tool]);
    assert_eq!(cautions(&program("locktop"), Verb::Terminate), [K::Locktop]);
    let wrote = |seconds: f64| {
        session(State::Active, move |b| (b.backend_xid, b.xact_start) = (Some(7), Some(at(-seconds))))
    };
    assert_eq!(cautions(&wrote(599.0), Verb::Terminate), []);
    assert_eq!(cautions(&wrote(600.0), Verb::Terminate), [K::Written]);
}

#[test]
fn a_queue_worker_and_a_lease_owner_get_cautions() {
    let mut b = Builder::default();
    b.session(7, "app@web", State::Idle, 60.0, "SELECT 1");
    b.item(5, "mail\u{1b}[2J", "processing", 20.0).backend_pid = Some(7);
    let lease = b.lease("backup", "node1", 60.0, 20.0);
    (lease.backend_pid, lease.backend_start) = (Some(7), Some(at(-3600.0)));
    let view = b.view();
    let plan = one(&view, Verb::Terminate, RowId::Backend(id(7)));
    let reported: Vec<_> = plan.rows[0].cautions.iter().map(|caution| &*caution.words).collect();
    assert_eq!(
        reported,
        [
            "works on item 5 (mail␛[2J): the attempt is lost; R on the queue returns it",
            "has lease backup of locktop.distlock, 40s left: it is not released, and others wait until it expires"
        ]
    );
    assert_eq!(plan.confirm, Confirm::Owner("7".to_owned()));
}
