use rustc_hash::FxHashSet;

use super::sessions::{context, id, identity, one, reason, table};
use crate::model::backend::State;
use crate::model::lock::LockMode;
use crate::model::plan::*;
use crate::model::row_id::RowId;
use crate::model::view::View;
use crate::model::wait_graph::Party;
use crate::sample::{Builder, advisory, at, incident};

fn ask(verb: Verb, scope: TargetScope, pid: i32) -> Ask {
    Ask { scope, from_chains: true, ..Ask::new(verb, vec![RowId::Backend(id(pid))]) }
}

fn plan(view: &View, verb: Verb, scope: TargetScope, pid: i32) -> ActionPlan {
    sessions(&context(view), &ask(verb, scope, pid))
}

fn pids(plan: &ActionPlan) -> Vec<i32> {
    let pid = |row: &PlannedTarget| match &row.target.what {
        TargetKind::Session(target) => target.pid,
        _ => 0,
    };
    plan.rows.iter().map(pid).collect()
}

fn words(plan: &ActionPlan) -> String {
    let effect = plan.effect.as_ref().unwrap();
    let named = effect.named.iter().map(|(label, names)| format!("{label} {names}"));
    std::iter::once(effect.blocks.clone()).chain(named).collect::<Vec<_>>().join("; ")
}

#[test]
fn a_root_has_to_block_still() {
    let view = incident(0.0).view();
    let root = plan(&view, Verb::Terminate, TargetScope::This, 4312);
    let target = identity(&root);
    assert!(target.blocks && target.query_start == ExpectedTime::Any && target.holds.is_none());
    assert_eq!(
        words(&root),
        "17: 1 continues now, 16 in turn; now 4410 deploy@ci; in turn 4466 app@web-0, 4467 app@web-1, 4468 app@web-2, 13 more"
    );
    assert_eq!(root.effect.as_ref().unwrap().release.now, [Party::Backend(4410)]);
    // The wait has ended: no session waits for it any more.
    let mut b = incident(0.0);
    b.locks.retain(|lock| lock.granted);
    assert_eq!(still_there(&root, &context(&b.view())), [Some(TargetChange::BlocksNobody)]);
    // Chosen on another screen, it need not block.
    assert!(!identity(&one(&view, Verb::Terminate, RowId::Backend(id(4312)))).blocks);
}

#[test]
fn an_idle_root_is_known_by_the_key_that_it_blocks_with() {
    let view = incident(0.0).view();
    let target = identity(&plan(&view, Verb::Terminate, TargetScope::This, 4977));
    let key = Some((advisory(72_707_369), LockMode::Exclusive));
    assert_eq!((target.holds, target.xact_start, target.blocks), (key, ExpectedTime::Same(None), true));
    assert!(
        target.query_start != ExpectedTime::Any && target.state_change != ExpectedTime::Any,
        "the next one takes the same key"
    );
}

#[test]
fn one_that_merely_waits_has_the_identity_of_its_wait() {
    let view = incident(0.0).view();
    let target = identity(&plan(&view, Verb::Terminate, TargetScope::This, 4466));
    assert_eq!((target.blocks, target.query_start), (false, ExpectedTime::Same(Some(at(-168.0)))));
    // A session in the middle blocks: it may run another query in its transaction.
    let middle = identity(&plan(&view, Verb::Terminate, TargetScope::This, 4410));
    assert_eq!((middle.blocks, middle.query_start), (true, ExpectedTime::Any));
}

#[test]
fn the_root_is_offered_as_the_target() {
    let view = incident(0.0).view();
    let middle = plan(&view, Verb::Terminate, TargetScope::This, 4410);
    assert_eq!(
        middle.offers,
        [
            (TargetScope::This, "this session".to_owned()),
            (TargetScope::Root, "the root, 4312 app@web-3".to_owned())
        ]
    );
    let frees = words(&middle);
    assert!(frees.starts_with("16: 16 continue now; now 4466 app@web-0, 4467 app@web-1, "), "{frees}");
    assert!(
        frees.ends_with(", 13 more; root the root is 4312 app@web-3: 1 continues now, 16 in turn"),
        "{frees}"
    );
    for pid in [4410, 4466, 4312] {
        let root = plan(&view, Verb::Terminate, TargetScope::Root, pid);
        assert!(pids(&root) == [4312] && identity(&root).blocks, "{pid}");
    }
    let waiter = plan(&view, Verb::Terminate, TargetScope::This, 4470);
    assert_eq!(
        words(&waiter),
        "no session; root terminating this frees no session; the root is 4312 app@web-3: 1 continues now, 16 in turn"
    );
    assert_eq!(plan(&view, Verb::Terminate, TargetScope::This, 5100).offers, []);
    assert_eq!(reason(&plan(&view, Verb::Terminate, TargetScope::Root, 5100)), "neither waits nor blocks");
    let behind_prepared = plan(&view, Verb::Terminate, TargetScope::Root, 5001);
    assert!(reason(&behind_prepared).ends_with("ROLLBACK PREPARED 'order-17'"));
}

/// Three sessions share a lock that 40 waits for; two more wait behind it.
#[test]
fn blockers_that_must_end_together_are_offered_as_targets() {
    let view = crate::sample::shared(0.0).view();
    let one = plan(&view, Verb::Terminate, TargetScope::This, 31);
    let all = "all 3 blockers: 1 continues now, 2 in turn".to_owned();
    assert_eq!(one.offers, [(TargetScope::This, "this session".to_owned()), (TargetScope::Blockers, all)]);
    let together = plan(&view, Verb::Terminate, TargetScope::Blockers, 31);
    let mut meant = pids(&together);
    meant.sort_unstable();
    assert_eq!((meant, together.confirm.clone()), (vec![30, 31, 32], Confirm::Count(3)));
    assert!(words(&together).starts_with("3: 1 continues now, 2 in turn"), "{}", words(&together));
    // No scope includes waiting sessions, and if one end frees all of them, no other scope is offered.
    for pid in [40, 41] {
        assert_eq!(plan(&view, Verb::Terminate, TargetScope::This, pid).offers.len(), 2, "itself and a root");
        assert!(plan(&view, Verb::Terminate, TargetScope::Blockers, pid).rows.is_empty());
    }
    let incident = incident(0.0).view();
    assert_eq!(plan(&incident, Verb::Terminate, TargetScope::This, 4312).offers, []);
}

#[test]
fn sessions_hidden_by_the_filter_are_left_out_and_counted() {
    let view = incident(0.0).view();
    let only = |pids: &[i32]| pids.iter().map(|pid| Party::Backend(*pid)).collect::<FxHashSet<_>>();
    let shown = Some(only(&[4312, 4470, 4471]));
    let shared = crate::sample::shared(0.0).view();
    let blockers = Ask { shown: Some(only(&[31])), ..ask(Verb::Terminate, TargetScope::Blockers, 31) };
    let plan = sessions(&context(&shared), &blockers);
    assert_eq!((pids(&plan), plan.hidden), (vec![31], 2));
    let root = Ask { shown: Some(only(&[4466])), ..ask(Verb::Terminate, TargetScope::Root, 4466) };
    let plan = sessions(&context(&view), &root);
    assert_eq!((plan.rows.len(), plan.hidden), (0, 1));
    assert_eq!(plan.why_over().unwrap(), "the filter hides all of them");
    let queue = &view.graph.queues.iter().find(|queue| queue.tag == table(2001)).unwrap().tag;
    let group = RowId::Group(Party::Backend(4410), *queue, LockMode::AccessShare);
    let plan = sessions(
        &context(&view),
        &Ask { shown, from_chains: true, ..Ask::new(Verb::Terminate, vec![group]) },
    );
    assert_eq!((pids(&plan), plan.hidden), (vec![4470, 4471], 14));
}

#[test]
fn a_folded_line_means_all_its_members() {
    let view = incident(0.0).view();
    let group = RowId::Group(Party::Backend(4410), table(2001), LockMode::AccessShare);
    let all =
        Ask { from_chains: true, ..Ask::new(Verb::Cancel, vec![group, group, RowId::Backend(id(4466))]) };
    let plan = sessions(&context(&view), &all);
    assert_eq!((pids(&plan), plan.confirm), ((4466..4482).collect::<Vec<_>>(), Confirm::Count(16)));
    let root = sessions(
        &context(&view),
        &Ask { scope: TargetScope::Root, ..Ask::new(Verb::Terminate, vec![group]) },
    );
    assert_eq!(pids(&root), [4312]);
    let other = RowId::Group(Party::Backend(4410), table(2001), LockMode::Share);
    assert_eq!(reason(&one(&view, Verb::Cancel, other)), "nobody waits like this any more");
}

#[test]
fn marked_rows_are_ended_with_those_ahead_of_others_first() {
    let view = incident(0.0).view();
    let chosen = [4470, 4410, 4312].map(|pid| RowId::Backend(id(pid))).to_vec();
    let plan =
        sessions(&context(&view), &Ask { from_chains: true, ..Ask::new(Verb::Terminate, chosen.clone()) });
    assert_eq!(pids(&plan), [4312, 4410, 4470]);
    assert!(words(&plan).starts_with("15: 15 continue now; now 4466"), "{}", words(&plan));
    let elsewhere = sessions(&context(&view), &Ask::new(Verb::Terminate, chosen));
    assert_eq!(pids(&elsewhere), [4470, 4410, 4312], "in the order of that screen");
}

#[test]
fn a_deadlock_has_no_root() {
    let mut b = Builder::default();
    for (pid, holds, waits) in [(10, 1, 2), (11, 2, 1)] {
        b.session(pid, "app@web", State::Active, 5.0, "UPDATE t");
        b.lock(pid, advisory(holds), LockMode::Exclusive, None);
        b.lock(pid, advisory(waits), LockMode::Exclusive, Some(5.0));
    }
    b.session(12, "app@web", State::Active, 4.0, "UPDATE t");
    b.lock(12, advisory(1), LockMode::Exclusive, Some(4.0));
    let view = b.view();
    for pid in [10, 11, 12] {
        assert!(
            reason(&plan(&view, Verb::Terminate, TargetScope::Root, pid))
                .starts_with("is in or behind a deadlock")
        );
    }
    assert_eq!(
        words(&plan(&view, Verb::Terminate, TargetScope::This, 11)),
        "2: 1 continues now, 1 in turn; now 10 app@web; in turn 12 app@web"
    );
}

#[test]
fn waiters_may_stay_blocked_after_a_cancel() {
    let mut b = Builder::default();
    // The query is the whole transaction.
    b.session(10, "app@web", State::Active, 9.0, "SELECT pg_advisory_lock(1), * FROM t");
    b.lock(10, table(2001), LockMode::AccessExclusive, None);
    b.lock(10, advisory(1), LockMode::Exclusive, None);
    for (pid, tag, mode) in [(11, table(2001), LockMode::AccessShare), (12, advisory(1), LockMode::Exclusive)]
    {
        b.session(pid, "app@web", State::Active, 5.0, "SELECT");
        b.lock(pid, tag, mode, Some(5.0));
    }
    // This transaction began before its query.
    b.session(20, "app@web", State::Active, 5.0, "UPDATE u").xact_start = Some(at(-60.0));
    b.lock(20, table(2002), LockMode::AccessExclusive, None);
    b.session(21, "app@web", State::Active, 4.0, "SELECT");
    b.lock(21, table(2002), LockMode::AccessShare, Some(4.0));
    let view = b.view();
    let cancel = plan(&view, Verb::Cancel, TargetScope::This, 10);
    assert_eq!(
        words(&cancel),
        "2: 1 now, 1 may stay blocked; now 11 app@web; unsure 12 app@web; because a cancel keeps session locks, and what was locked before a savepoint"
    );
    assert_eq!(
        words(&plan(&view, Verb::Terminate, TargetScope::This, 10)),
        "2: 2 continue now; now 11 app@web, 12 app@web"
    );
    let unsure = plan(&view, Verb::Cancel, TargetScope::This, 20);
    let because = "because a cancel keeps session locks, and what was locked before a savepoint";
    assert_eq!(words(&unsure), format!("1: perhaps 1 now; unsure 21 app@web; {because}"));
    assert_eq!(
        words(&plan(&view, Verb::Terminate, TargetScope::This, 20)),
        "1: 1 continues now; now 21 app@web"
    );
}

#[test]
fn a_plan_on_stale_locks_gets_a_caution() {
    let mut view = incident(0.0).view();
    let mut snapshot = (**view.snapshot.as_ref().unwrap()).clone();
    snapshot.taken_at = at(7.0);
    snapshot.locks = snapshot.locks.stale("time-out".into());
    view.snapshot = Some(std::sync::Arc::new(snapshot));
    let plan = plan(&view, Verb::Terminate, TargetScope::This, 4312);
    let reported: Vec<_> = plan.rows[0].cautions.iter().map(|caution| &*caution.words).collect();
    assert_eq!(reported, ["the data is old by 7.0s: its waiters may have changed"]);
}
