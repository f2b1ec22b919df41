use super::sessions::{context, id, identity, one, reason};
use crate::model::backend::State;
use crate::model::lock::{LockMode, LockTag};
use crate::model::namespace;
use crate::model::plan::*;
use crate::model::row_id::RowId;
use crate::model::view::View;
use crate::sample::{Builder, advisory, at};

fn key(item: i64) -> LockTag {
    advisory(namespace::number_of(namespace::QUEUE, item).unwrap())
}

fn worker(item: i64, keys: &[LockTag]) -> Builder {
    let mut b = Builder::default();
    b.session(7, "app@web", State::Idle, 60.0, "SELECT 1");
    b.item(item, "mail", "processing", 20.0).backend_pid = Some(7);
    for key in keys {
        b.lock(7, *key, LockMode::Exclusive, None);
    }
    b
}

fn end_item(view: &View) -> ActionPlan {
    one(view, Verb::Terminate, RowId::Item(view.queue.rows[0].id))
}

#[test]
fn a_queue_worker_must_hold_the_key_of_its_item() {
    let plan = end_item(&worker(9, &[key(9)]).view());
    let target = identity(&plan);
    let held = Some((key(9), LockMode::Exclusive));
    assert_eq!((target.pid, target.holds, target.xact_start), (7, held, ExpectedTime::Same(None)));
    for (later, change) in [
        (worker(9, &[key(9), key(10)]), None),
        (worker(10, &[key(10)]), Some(TargetChange::HoldsNotAnyMore)),
        (worker(9, &[]), Some(TargetChange::HoldsNotAnyMore)),
    ] {
        assert_eq!(still_there(&plan, &context(&later.view())), [change]);
    }
    let why = "7 does not hold its key, so it could work on another item by then; use K on the \
               session itself";
    for keys in [&[][..], &[key(10)], &[advisory(9)]] {
        assert_eq!(reason(&end_item(&worker(9, keys).view())), why, "{keys:?}");
    }
    let mut b = worker(9, &[]);
    b.items[0].backend_pid = None;
    assert_eq!(reason(&end_item(&b.view())), "its session is not known");
}

/// Its heartbeats use the same session, and its process id must be typed to terminate it.
#[test]
fn a_worker_that_continues_with_its_item_is_the_same_target() {
    let began = at(-1.0);
    let later = |change: fn(&mut Builder)| {
        let mut b = worker(9, &[key(9)]);
        (b.backends[0].query_start, b.backends[0].state_change) = (Some(began), Some(began));
        change(&mut b);
        b.view()
    };
    for plan in [
        end_item(&worker(9, &[key(9)]).view()),
        one(&worker(9, &[key(9)]).view(), Verb::Terminate, RowId::Backend(id(7))),
    ] {
        let then = identity(&plan);
        let again = plan.refreshed(&context(&later(|_| {})));
        let now = SessionTarget {
            query_start: ExpectedTime::Same(Some(began)),
            state_change: ExpectedTime::Same(Some(began)),
            ..then.clone()
        };
        assert_eq!(
            (again.rows[0].change, identity(&again)),
            (None, now),
            "the server compares with the newest values"
        );
        for (change, word) in [
            ((|b| b.items[0].attempt = Some(2)) as fn(&mut Builder), TargetChange::RanSomething),
            (|b| b.items[0].backend_start = Some(at(-9.0)), TargetChange::RanSomething),
            (|b| b.items.clear(), TargetChange::RanSomething),
            (|b| b.raw_queue = true, TargetChange::RanSomething),
            (|b| b.backends[0].xact_start = Some(at(-1.0)), TargetChange::RanSomething),
            (|b| b.backends[0].application = Some("batch".into()), TargetChange::OtherClient),
            (|b| b.backends[0].backend_start = Some(at(-9.0)), TargetChange::Gone),
        ] {
            assert_eq!(still_there(&plan, &context(&later(change))), [Some(word)]);
        }
    }
}

#[test]
fn a_published_item_is_compared_with_its_raw_key_and_the_transaction() {
    let mut b = worker(9, &[advisory(9)]);
    b.raw_queue = true;
    let target = identity(&end_item(&b.view()));
    assert_eq!(target.holds, Some((advisory(9), LockMode::Exclusive)));
    let mut b = worker(9, &[advisory(9)]);
    (b.raw_queue, b.backends[0].state, b.backends[0].xact_start) =
        (true, Some(State::Active), Some(at(-1.0)));
    assert_eq!(identity(&end_item(&b.view())).xact_start, ExpectedTime::Same(Some(at(-1.0))));
}

fn owner(state: State) -> Builder {
    let mut b = Builder::default();
    b.session(7, "app@web", state, 60.0, "SELECT 1");
    let lease = b.lease("backup", "node1", 60.0, 20.0);
    (lease.backend_pid, lease.backend_start) = (Some(7), Some(at(-3600.0)));
    b
}

fn end_lease(view: &View) -> ActionPlan {
    one(view, Verb::Terminate, RowId::Lease(view.leases.rows[0].id))
}

#[test]
fn a_lease_owner_is_terminated_only_in_the_same_transaction() {
    let plan = end_lease(&owner(State::IdleInTransaction).view());
    assert_eq!(identity(&plan).xact_start, ExpectedTime::Same(Some(at(-60.0))));
    let idle = owner(State::Idle).view();
    assert_eq!(
        reason(&end_lease(&idle)),
        "7 has no open transaction, so it may no longer hold it by then; U ends the lease, or use K \
         on the session itself"
    );
    let as_session = one(&idle, Verb::Terminate, RowId::Backend(id(7)));
    assert_eq!(
        identity(&as_session).xact_start,
        ExpectedTime::Same(None),
        "the target is the session itself"
    );
    let change = |change: fn(&mut Builder)| {
        let mut b = owner(State::IdleInTransaction);
        change(&mut b);
        still_there(&plan, &context(&b.view()))[0]
    };
    assert_eq!(change(|b| b.leases[0].renewed_at = Some(at(-1.0))), None, "it was renewed");
    assert_eq!(change(|b| b.leases[0].owner = Some("node2".into())), Some(TargetChange::OtherRow));
    assert_eq!(change(|b| b.leases[0].token = Some(13)), Some(TargetChange::OtherRow));
    assert_eq!(change(|b| b.leases[0].backend_pid = Some(8)), Some(TargetChange::OtherRow));
    assert_eq!(change(|b| b.leases.clear()), Some(TargetChange::OtherRow));
}
