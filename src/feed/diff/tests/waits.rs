use super::*;

#[test]
fn a_wait_ends_in_four_ways() {
    let mut story = Story::of(queue(0.0, &[(11, -3.0), (12, -2.0), (13, -1.0), (14, -1.0)]));
    let mut next = empty(2.0);
    next.session(11, "app@web", State::Active, 1.0, "");
    next.session(12, "app@web", State::Active, 1.0, "");
    next.session(14, "app@web", State::IdleInTransactionAborted, 1.0, "");
    next.lock(11, relation(2001), LockMode::AccessShare, None);
    let events = story.then(next);
    assert_eq!(
        lines_of(&events),
        [
            "root over: 10 app@web stopped blocking others: up to 4, its session ended",
            "wait over: 11 app@web got AccessShare on accounts",
            "wait over: 12 app@web stopped waiting for AccessShare on accounts (acquired it or failed)",
            "wait over: 13 app@web disconnected, last seen waiting for AccessShare on accounts",
            "wait over: 14 app@web stopped waiting for AccessShare on accounts: its statement failed",
        ]
    );
    assert_eq!(events[0].length, Some(Length::AtMost(5.0)));
    assert_eq!(events[1].length, Some(Length::AtMost(5.0)));
}

/// A lock on a transaction is released as soon as it is acquired, so the end of the transaction shows that the wait
/// succeeded.
#[test]
fn a_waiter_for_a_transaction_continues_if_that_transaction_ended() {
    let row = || {
        let tag = relation(2001).with_relation(None).with_transactionid(791);
        tag.with_locktype(LockType::TransactionId)
    };
    let scene = |now: f64, holds: bool, began: Option<f64>| {
        let mut b = empty(now);
        b.session(10, "app@web", State::IdleInTransaction, 9.0, "");
        if holds {
            b.lock(10, row(), LockMode::Exclusive, None);
        }
        b.session(11, "app@web", State::Active, 5.0, "").xact_start = began.map(at);
        b
    };
    let (got, stopped) = (
        "continued after the end of the transaction of 10",
        "stopped waiting for the end of the transaction of 10",
    );
    for (holds, began, omitted, expected) in [
        (false, Some(-3.0), 0, got),
        (true, Some(-3.0), 0, stopped),
        // Its own transaction has ended, possibly by a timeout just before.
        (false, None, 0, stopped),
        (false, Some(0.9), 0, stopped),
        // Locks without waiters were omitted.
        (false, Some(-3.0), 1, stopped),
    ] {
        let mut story = Story::of(scene(-1.0, true, Some(-3.0)));
        let mut waits = scene(0.0, true, Some(-3.0));
        waits.lock(11, row(), LockMode::Share, Some(0.5));
        story.then(waits);
        let later = Snapshot { locks_omitted: omitted, ..scene(1.0, holds, began).snapshot() };
        let lines = lines_of(&story.saw(later));
        assert!(lines.iter().any(|text| text.contains(expected)), "{lines:?}");
    }
}

#[test]
fn a_wait_that_restarts_between_two_snapshots_is_a_new_wait() {
    let mut story = Story::of(queue(0.0, &[(11, -3.0)]));
    let events = story.then(queue(2.0, &[(11, 1.5)]));
    assert_eq!(
        lines_of(&events),
        [
            "wait: 11 app@web began to wait for AccessShare on accounts behind 10",
            "wait over: 11 app@web stopped waiting for AccessShare on accounts (acquired it or failed)",
        ]
    );
    assert_eq!(events[0].at, at(1.5));
}

#[test]
fn a_wait_without_a_start_gets_it_later_and_is_the_same() {
    let start = |story: &mut Story, now: f64, start: Option<f64>| {
        let mut snapshot = queue(now, &[(11, 0.0)]).snapshot();
        let mut locks = snapshot.locks.last_rows().as_ref().clone();
        locks[1].wait_start = start.map(at);
        snapshot.locks.set(locks);
        story.saw(snapshot)
    };
    let mut story = Story::of(empty(-1.0));
    assert!(lines_of(&start(&mut story, 1.0, None)).iter().any(|text| text.starts_with("wait: 11")));
    assert_eq!(lines_of(&start(&mut story, 2.0, Some(0.9))), <[String; 0]>::default());
    assert_eq!(lines_of(&start(&mut story, 3.0, Some(2.5))).len(), 2, "another wait");
}
