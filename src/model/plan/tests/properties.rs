use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;
use rustc_hash::FxHashSet;

use crate::model::backend::{BackendId, State};
use crate::model::lock::LockMode;
use crate::model::plan::*;
use crate::model::row_id::{LockOwner, RowId};
use crate::model::view::TargetId;
use crate::model::view::View;
use crate::model::wait_graph::Party;
use crate::sample::{Builder, advisory, at, relation};

/// State, whether its start is visible, backend type, and leader.
type Session = (u8, bool, u8, Option<i32>);
/// Pid, lock, mode, and whether it is waited for.
type Row = (i32, u8, u8, bool);

const KINDS: [&str; 6] =
    ["client backend", "client backend", "walsender", "autovacuum worker", "checkpointer", "parallel worker"];
const STATES: [State; 4] = [State::Active, State::Idle, State::IdleInTransaction, State::Active];

fn view(sessions: &[Session], locks: &[Row]) -> View {
    let mut b = Builder::default();
    for (pid, (state, shown, kind, leader)) in (2..).zip(sessions) {
        let state = STATES[usize::from(*state) % STATES.len()];
        let backend = b.session(pid, "app@web", state, f64::from(pid), "SELECT 1");
        backend.backend_start = shown.then(|| at(-3600.0));
        backend.backend_type = Some(KINDS[usize::from(*kind) % KINDS.len()].into());
        let of = |pid: i32| usize::try_from(pid - 2).ok().and_then(|at| sessions.get(at));
        let leads = |leader: &i32| *leader != pid && of(*leader).is_none_or(|(.., above)| above.is_none());
        backend.leader_pid = leader.filter(leads);
    }
    for (at, (pid, tag, mode, waits)) in locks.iter().enumerate() {
        let tag = if tag % 2 == 0 { relation(u32::from(*tag)) } else { advisory(i64::from(*tag)) };
        let mode = LockMode::ALL[usize::from(*mode) % 8];
        b.lock(*pid, tag, mode, waits.then(|| f64::from(u32::try_from(at).unwrap_or_default())));
    }
    b.view()
}

fn a_view() -> impl Strategy<Value = View> {
    let session = (0..4_u8, prop::bool::weighted(0.9), 0..6_u8, prop::option::weighted(0.2, 2..9_i32));
    let row = (2..12_i32, 0..4_u8, 0..8_u8, any::<bool>());
    (vec(session, 0..10), vec(row, 0..24)).prop_map(|(sessions, locks)| view(&sessions, &locks))
}

fn an_ask() -> impl Strategy<Value = Ask> {
    let id = (2..14_i32, prop::bool::weighted(0.9)).prop_map(|(pid, same)| BackendId {
        pid,
        backend_start: Some(at(if same { -3600.0 } else { -1.0 })),
    });
    let chosen = (id, 0..3_u8, 0..4_u8, 0..8_u8).prop_map(|(id, kind, tag, mode)| {
        let tag = if tag % 2 == 0 { relation(u32::from(tag)) } else { advisory(i64::from(tag)) };
        let mode = LockMode::ALL[usize::from(mode) % 8];
        match kind {
            0 => RowId::Lock(tag, LockOwner::Backend(id), mode),
            1 => RowId::Group(Party::Backend(id.pid), tag, mode),
            _ => RowId::Backend(id),
        }
    });
    let verb = prop::sample::select(vec![Verb::Cancel, Verb::Terminate]);
    let scope = prop::sample::select(vec![
        TargetScope::This,
        TargetScope::This,
        TargetScope::Root,
        TargetScope::Blockers,
    ]);
    let shown = prop::option::weighted(0.3, vec(2..14_i32, 0..10));
    (vec(chosen, 0..6), verb, scope, any::<bool>(), shown).prop_map(
        |(chosen, verb, scope, from_chains, shown)| {
            let shown = shown.map(|pids| pids.into_iter().map(Party::Backend).collect::<FxHashSet<_>>());
            Ask { verb, scope, chosen, from_chains, of_roots: from_chains, shown }
        },
    )
}

fn targets(plan: &ActionPlan) -> Vec<&SessionTarget> {
    let target = |row| match row {
        &PlannedTarget { target: Target { what: TargetKind::Session(ref target), .. }, .. } => target,
        row => panic!("{row:?}"),
    };
    plan.rows.iter().map(target).collect()
}

/// All sessions that the rows can mean: themselves, their leaders, folded members, and by the scope their roots or the
/// sessions that must end with them.
fn meant(view: &View, ask: &Ask) -> BTreeSet<i32> {
    let snapshot = view.snapshot.as_ref().unwrap();
    let leader = |pid: i32| snapshot.backend(pid).map_or(pid, crate::model::backend::Backend::group);
    let mut meant = BTreeSet::new();
    for chosen in &ask.chosen {
        let (pid, group) = match chosen {
            RowId::Backend(id) | RowId::Lock(_, LockOwner::Backend(id), _) => (id.pid, None),
            RowId::Group(Party::Backend(pid), tag, mode) => (*pid, Some((tag, mode))),
            other => panic!("{other:?}"),
        };
        let party = Party::Backend(leader(pid));
        match (ask.scope, group) {
            (TargetScope::This, None) => drop(meant.insert(leader(pid))),
            (TargetScope::This, Some((tag, mode))) => {
                let queues = view.graph.queues.iter().filter(|queue| queue.tag == *tag);
                let waiters = queues.flat_map(|queue| &queue.waiters).filter(|waiter| waiter.mode == *mode);
                meant.extend(waiters.map(|waiter| waiter.party.pid()));
            }
            (TargetScope::Root, _) => {
                meant.extend(view.graph.roots_above(party).into_iter().map(Party::pid));
                // A root is its own root.
                meant.extend([leader(pid), pid]);
            }
            (TargetScope::Blockers, _) => {
                let release = view.with_snapshot().unwrap().release(ask.verb, &[party]);
                meant.extend(
                    release.others.into_iter().chain(release.possible).chain([party]).map(Party::pid),
                );
            }
        }
    }
    meant
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1500) })]

    #[test]
    fn every_target_has_an_identity_and_was_selected(view in a_view(), ask in an_ask(), own in 2..14_i32) {
        let context = PlanContext { view: &view, rights: None, own_pids: &[own], terminated: &[] };
        let plan = sessions(&context, &ask);
        let snapshot = view.snapshot.as_ref().unwrap();
        let meant = meant(&view, &ask);
        for target in targets(&plan) {
            let backend = snapshot.backend(target.pid).unwrap();
            prop_assert_eq!(backend.backend_start, Some(target.backend_start));
            prop_assert!(target.pid != own && backend.backend_type.as_deref() != Some("checkpointer"));
            prop_assert!(meant.contains(&target.pid), "{} of {:?}", target.pid, meant);
            match (target.xact_start, ask.verb) {
                (ExpectedTime::Same(start), _) => prop_assert_eq!(start, backend.xact_start),
                (ExpectedTime::Any, verb) => prop_assert!(target.holds.is_some() && verb == Verb::Terminate),
            }
            if ask.verb == Verb::Cancel {
                prop_assert_eq!(target.query_start, ExpectedTime::Same(backend.query_start));
                prop_assert!(backend.state == Some(State::Active) && backend.query_start.is_some());
            }
            let party = Party::Backend(target.pid);
            prop_assert!(!target.blocks || !view.graph.blocked_by(party).is_empty());
            if ask.scope != TargetScope::This {
                prop_assert!(ask.shown.as_ref().is_none_or(|shown| shown.contains(&party)), "hidden");
            }
        }
    }

    #[test]
    fn each_is_a_target_once_in_a_stable_order_and_counted(view in a_view(), ask in an_ask()) {
        let context = PlanContext { view: &view, rights: None, own_pids: &[], terminated: &[] };
        let plan = sessions(&context, &ask);
        let order: Vec<i32> = targets(&plan).iter().map(|target| target.pid).collect();
        let once: BTreeSet<i32> = order.iter().copied().collect();
        prop_assert_eq!(once.len(), order.len());
        let fits = match &plan.confirm {
            Confirm::Nothing => order.is_empty(),
            Confirm::Yes | Confirm::Owner(_) => order.len() == 1,
            Confirm::Count(several) => *several == order.len() && *several > 1,
        };
        prop_assert!(fits, "{:?} for {}", plan.confirm, order.len());
        prop_assert_eq!(&sessions(&context, &ask), &plan, "the same again");
        let place = |pid: i32| view.graph.tree.nodes.iter().position(|node| node.party == Party::Backend(pid));
        if ask.from_chains || ask.scope != TargetScope::This {
            let places: Vec<usize> = order.iter().filter_map(|pid| place(*pid)).collect();
            prop_assert!(places.is_sorted(), "{:?}", places);
        }
        // No chosen session disappears without a reason.
        if ask.scope == TargetScope::This {
            let reported: BTreeSet<i32> =
                plan.refused.iter().filter_map(|refused| refused.name.split(' ').next()?.parse().ok()).collect();
            for chosen in &ask.chosen {
                let (RowId::Backend(id) | RowId::Lock(_, LockOwner::Backend(id), _)) = chosen else { continue };
                let leader = view.snapshot.as_ref().unwrap().backend(id.pid).map_or(id.pid, crate::model::backend::Backend::group);
                let is_reported = [id.pid, leader].iter().any(|pid| once.contains(pid) || reported.contains(pid));
                prop_assert!(is_reported, "{} is in neither {:?} nor {:?}", id.pid, once, reported);
            }
        }
    }

    /// In the same view, all targets still exist and their effects are the same.
    #[test]
    fn a_plan_that_is_refreshed_at_once_stays_as_it_is(view in a_view(), ask in an_ask()) {
        let context = PlanContext { view: &view, rights: None, own_pids: &[], terminated: &[] };
        let plan = sessions(&context, &ask);
        let again = plan.refreshed(&context);
        prop_assert_eq!(&again, &plan);
        let wait = std::time::Duration::from_secs(5);
        prop_assert_eq!(again.command(TargetId(0), 1, wait), plan.command(TargetId(0), 1, wait));
    }

    #[test]
    fn the_effect_of_several_targets_matches_the_wait_graph(view in a_view(), ask in an_ask()) {
        let context = PlanContext { view: &view, rights: None, own_pids: &[], terminated: &[] };
        let plan = sessions(&context, &ask);
        let parties: Vec<Party> = targets(&plan).iter().map(|target| Party::Backend(target.pid)).collect();
        let Some(effect) = &plan.effect else {
            prop_assert!(parties.is_empty());
            return Ok(());
        };
        let release = &effect.release;
        let all = [&release.now, &release.in_turn, &release.still, &release.unsure];
        let divided: BTreeSet<Party> = all.iter().flat_map(|part| part.iter().copied()).collect();
        prop_assert_eq!(divided.len(), all.iter().map(|part| part.len()).sum::<usize>(), "each once");
        prop_assert_eq!(&divided, &view.graph.blocked_by_all(&parties).into_iter().collect());
        let granted: BTreeSet<Party> = view.graph.granted_by(&parties).into_iter().collect();
        prop_assert!(release.now.iter().all(|party| granted.contains(party)));
    }
}
