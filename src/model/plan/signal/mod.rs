mod caution;
mod choose;
mod facts;
mod identity;
mod work;

use rustc_hash::FxHashSet;

use self::choose::SessionSelection;
use super::{
    ActionPlan, Ask, Caution, CautionKind, Confirm, PlanContext, PlanIndex, PlannedTarget, Refused, Signal,
    Target, TargetChange, TargetKind, TargetScope, Verb,
};
use crate::model::wait_graph::Party;
use crate::order::SortExt;
use work::SelectedSession;

pub(super) use caution::of_execution;
pub(super) use facts::effect_of;
pub(super) use identity::changed;

/// The plan for sessions. Targets are in the order of the rows; those of the forest in its order, so that blockers are
/// terminated before the sessions they block, while these still wait.
pub fn sessions(context: &PlanContext<'_>, ask: &Ask) -> ActionPlan {
    let mut plan = ActionPlan::new(ask.verb);
    let index = match PlanIndex::of(context) {
        Ok(index) => index,
        Err(refused) => return ActionPlan { refused: vec![refused], ..plan },
    };
    let SessionSelection { picks, refused, hidden } = choose::meant(&index, ask);
    (plan.refused, plan.hidden) = (refused, hidden);
    let held = facts::HeldByPid::of(&index, picks.iter().map(|pick| pick.pid));
    for pick in picks {
        match planned(&index, ask, &pick, &held) {
            Ok(row) => plan.rows.push(row),
            Err(reason) => {
                plan.refused.push(Refused::new(index.name(pick.pid), index.subject(pick.pid), reason));
            }
        }
    }
    plan.offers = choose::offers(&index, ask);
    plan.confirm = Confirm::of(&plan.rows, |row| {
        if ask.verb == Verb::Terminate { work::owner(&index, &row.target) } else { None }
    });
    together(&index, &mut plan);
    plan
}

/// The same plan with the scopes that are possible now. The current scope has the number of sessions in the plan: sessions
/// that came later are not part of it.
pub fn with_offers(mut plan: ActionPlan, context: &PlanContext<'_>, ask: &Ask) -> ActionPlan {
    let Ok(index) = PlanIndex::of(context) else { return plan };
    let offers = choose::offers(&index, ask);
    // A chosen row that has disappeared has no scopes; the question is over.
    if offers.is_empty() {
        return plan;
    }
    let taken = format!("these {} sessions", crate::text::count(plan.rows.len() as u64));
    let title = |(scope, title)| match scope {
        TargetScope::Blockers if ask.scope == TargetScope::Blockers => (scope, taken.clone()),
        scope => (scope, title),
    };
    plan.offers = offers.into_iter().map(title).collect();
    plan
}

/// Updates the facts and effects of the targets. The targets stay, except a session that still does the same work.
pub(super) fn refresh(index: &PlanIndex<'_>, plan: &mut ActionPlan) {
    let pids: Vec<i32> = plan.rows.iter().filter_map(pid_of).collect();
    let held = facts::HeldByPid::of(index, pids.into_iter());
    for row in &mut plan.rows {
        let TargetKind::Session(target) = &mut row.target.what else { continue };
        if let Some(again) = identity::again(index, plan.verb, target, row.work.as_ref()) {
            *target = again;
        }
        let target = &*target;
        let lost = || row.lease.as_ref().is_some_and(|lease| work::is_lost(index, lease));
        row.change = row
            .change
            .or_else(|| changed(index, plan.verb, target))
            .or_else(|| lost().then_some(TargetChange::OtherRow));
        if row.change.is_none() {
            let pick = SelectedSession::new(target.pid, None);
            describe(index, plan.verb, &pick, &held, row);
        }
    }
    together(index, plan);
}

fn together(index: &PlanIndex<'_>, plan: &mut ActionPlan) {
    let parties: Vec<Party> = plan
        .rows
        .iter()
        .filter(|row| row.change.is_none())
        .filter_map(|row| pid_of(row).map(Party::Backend))
        .collect();
    plan.effect = (!parties.is_empty()).then(|| effect_of(index, plan.verb, &parties));
}

fn pid_of(row: &PlannedTarget) -> Option<i32> {
    match &row.target.what {
        TargetKind::Session(target) => Some(target.pid),
        _ => None,
    }
}

fn planned(
    index: &PlanIndex<'_>,
    ask: &Ask,
    pick: &SelectedSession,
    held: &facts::HeldByPid<'_>,
) -> Result<PlannedTarget, String> {
    let backend = caution::check(index, ask.verb, pick)?;
    let blocks = ask.is_of_chains() && !index.graph.blocked_by(Party::Backend(pick.pid)).is_empty();
    let session = identity::of(index, ask, pick, backend, blocks)?;
    let keeps = if session.keeps { vec![caution::keeps(index, &session)] } else { Vec::new() };
    let does = format!("{}({})", ask.verb.definition().signal.map_or("", Signal::function), pick.pid);
    let what = TargetKind::Session(session);
    let target = Target { what, name: String::new(), subject: index.subject(pick.pid) };
    let mut row = PlannedTarget {
        lease: pick.lease.clone(),
        work: pick.work.clone().or_else(|| work::of(index, pick.pid)),
        ..PlannedTarget::new(target, &does, Vec::new(), keeps)
    };
    describe(index, ask.verb, pick, held, &mut row);
    Ok(row)
}

/// Describes a session in the question, by current data.
fn describe(
    index: &PlanIndex<'_>,
    verb: Verb,
    pick: &SelectedSession,
    held: &facts::HeldByPid<'_>,
    row: &mut PlannedTarget,
) {
    let pid = pick.pid;
    row.target.name = index.name(pid);
    row.facts = facts::of(index, pid, held);
    row.cautions = cautions(index, verb, pick, std::mem::take(&mut row.cautions));
    row.effect = Some(effect_of(index, verb, &[Party::Backend(pid)]));
    row.consequence = index.backend(pid).map(|backend| index.consequence(verb, backend));
}

/// Cautions about terminating a session. Those that result from how it was chosen are kept from `before`.
fn cautions(index: &PlanIndex<'_>, verb: Verb, pick: &SelectedSession, before: Vec<Caution>) -> Vec<Caution> {
    let mut cautions = caution::of(index, verb, pick);
    let kinds: FxHashSet<_> = cautions.iter().map(|caution| caution.kind).collect();
    let stays = |caution: &Caution| {
        matches!(caution.kind, CautionKind::ParallelWorker | CautionKind::Keeps)
            && !kinds.contains(&caution.kind)
    };
    cautions.extend(before.into_iter().filter(stays));
    cautions.order_by_key(|caution| caution.kind);
    cautions
}
