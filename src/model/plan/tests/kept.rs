//! A session-level lock left behind in a pool belongs to the backend, whatever client it serves.

use super::sessions::{context, id, identity};
use crate::model::backend::State;
use crate::model::finding::Severity;
use crate::model::lock::LockMode;
use crate::model::plan::*;
use crate::model::row_id::{LockOwner, RowId};
use crate::sample::{Builder, advisory, at};

/// A backend with a key, for which another session has waited since before the current statement began.
fn pool(state: State, query: &str, began: f64, waits_since: f64) -> Builder {
    let mut b = Builder::default();
    let tag = advisory(1000);
    let backend = b.session(70, "app@pod-1", state, began, query);
    backend.query_start = Some(at(-began));
    backend.state_change = Some(at(-began));
    backend.xact_start = (state != State::Idle).then(|| at(-began));
    b.lock(70, tag, LockMode::Exclusive, None);
    b.session(71, "app@pod-2", State::Active, waits_since, "SELECT pg_advisory_lock(1000)");
    b.lock(71, tag, LockMode::Exclusive, Some(waits_since));
    b
}

fn ask(of_roots: bool, chosen: RowId) -> Ask {
    Ask { of_roots, ..Ask::new(Verb::Terminate, vec![chosen]) }
}

fn keeps(b: Builder, ask: &Ask) -> bool {
    identity(&sessions(&context(&b.view()), ask)).keeps
}

#[test]
fn the_lock_is_the_backends_once_that_has_run_something_else() {
    let (root, holder) = (
        RowId::Backend(id(70)),
        RowId::Lock(advisory(1000), LockOwner::Backend(id(70)), LockMode::Exclusive),
    );
    for (state, query, began, waits_since, expected) in [
        (State::Idle, "SELECT count(*) FROM hosted", 1.0, 60.0, true),
        (State::Active, "SELECT count(*) FROM hosted", 1.0, 60.0, true),
        (State::IdleInTransaction, "SELECT 1", 30.0, 60.0, true),
        // The statement may have acquired the lock.
        (State::Idle, "SELECT pg_advisory_lock(1000)", 61.0, 60.0, false),
        (State::IdleInTransaction, "SELECT 1", 61.0, 60.0, false),
        (State::Active, "SELECT 1", 61.0, 60.0, false),
    ] {
        let keeps = |ask| keeps(pool(state, query, began, waits_since), &ask);
        let told = format!("{state:?} {query} {began} {waits_since}");
        for chosen in [root, holder] {
            assert_eq!(keeps(ask(true, chosen)), expected, "{told}");
        }
        // A session chosen for itself, not for its lock, is identified with its client.
        assert!(!keeps(ask(false, root)), "{told}");
    }
}

#[test]
fn the_question_stays_while_clients_change_and_closes_with_the_lock() {
    let b = pool(State::Idle, "SELECT 1", 1.0, 60.0);
    let plan = sessions(&context(&b.view()), &ask(true, RowId::Backend(id(70))));
    let target = identity(&plan);
    assert_eq!(target.holds, Some((advisory(1000), LockMode::Exclusive)));
    let caution = &plan.rows[0].cautions[0];
    assert_eq!(caution.kind, CautionKind::Keeps);
    assert!(caution.words.contains("costs its client of the moment one statement"), "{}", caution.words);
    let mut next = pool(State::Active, "SELECT 2", 0.5, 60.0);
    next.backends[0].application = Some("another".into());
    let after = plan.refreshed(&context(&next.view()));
    assert_eq!((after.rows[0].change, identity(&after)), (None, target));
    assert_eq!(after.rows[0].cautions[0].kind, CautionKind::Keeps);
    let mut next = pool(State::Active, "SELECT 2", 0.5, 60.0);
    next.locks.retain(|lock| !lock.granted);
    assert_eq!(still_there(&plan, &context(&next.view())), [Some(TargetChange::HoldsNotAnyMore)]);
    let mut other = pool(State::Idle, "SELECT 1", 1.0, 60.0);
    other.backends[0].backend_start = Some(at(-2.0));
    assert_eq!(still_there(&plan, &context(&other.view())), [Some(TargetChange::Gone)]);
}

#[test]
fn the_finding_does_not_blame_the_last_query() {
    for state in [State::Idle, State::Active] {
        let view = pool(state, "SELECT count(*) FROM hosted", 1.0, 60.0).view();
        let root = view.findings.iter().find(|finding| finding.check == "root_blocker").unwrap();
        assert!(root.summary.starts_with("70 runs other statements, holds "), "{}", root.summary);
        assert_eq!((root.severity, root.help), (Severity::Critical, Some("terminate")));
        assert!(root.about.contains("its last query did not take the lock"), "{}", root.about);
    }
}
