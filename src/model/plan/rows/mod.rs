mod adapters;
mod items;
mod leases;
mod published;
mod published_plan;
mod tasks;

use super::context::PlanIndex;
use super::{
    ActionPlan, Caution, Change, Confirm, PlanContext, PlannedTarget, Refused, Target, TargetKind, Verb,
};
use crate::model::finding::Subject;
use crate::model::row_id::RowId;
use crate::model::section::Section;
use crate::text;

pub(super) use adapters::{can_give_back, can_unlock};
pub use items::ItemVerb;
pub(super) use items::{item_state, while_free};
pub use published::is_published;
pub(super) use published::not_running;
pub use published_plan::published_plan;
pub use tasks::TaskVerb;
pub(super) use tasks::{NEXT_RUN, has_schedule, runs};

/// A plan for these rows without duplicates, in the given order; refused as a whole on a server that takes no writes.
pub fn rows(context: &PlanContext<'_>, verb: Verb, chosen: &[RowId]) -> ActionPlan {
    let mut plan = ActionPlan::new(verb);
    let index = PlanIndex::of(context);
    // A lease in Redis can be ended even if the PostgreSQL server takes no writes.
    let needs_primary = !matches!(chosen.first(), Some(RowId::Lease(_)));
    let refused = refused_whole(index.as_ref()).filter(|_| needs_primary || index.is_none());
    let (Some(index), None) = (index, &refused) else {
        plan.refused.extend(refused);
        return plan;
    };
    for (at, id) in chosen.iter().enumerate() {
        match planned(&index, verb, *id) {
            _ if chosen.iter().take(at).any(|before| before == id) => {}
            Ok(row) => plan.rows.push(row),
            Err(refused) => plan.refused.push(refused),
        }
    }
    let word = match plan.rows.as_slice() {
        [row] => typed(&index, &row.target),
        _ => None,
    };
    plan.confirm = Confirm::of(plan.rows.len(), word);
    plan
}

fn planned(index: &PlanIndex<'_>, verb: Verb, id: RowId) -> Result<PlannedTarget, Refused> {
    match id {
        RowId::Lease(id) => leases::planned(index, id),
        RowId::Item(id) => items::planned(index, verb, id),
        RowId::Task(id, again) if verb == Verb::Recover => published::planned(index, id, again),
        RowId::Task(id, _) => tasks::planned(index, verb, id),
        RowId::Job(id) => adapters::job(index, id),
        RowId::OtherLease(id) => adapters::lease(index, id),
        _ => Err(Refused::new("this row", Subject::Server, "cannot be changed")),
    }
}

/// What must be typed if the owner of the only target may be alive.
fn typed(index: &PlanIndex<'_>, target: &Target) -> Option<String> {
    match &target.what {
        TargetKind::Lease(_) | TargetKind::RedisLease(_) => leases::typed(index, target.subject),
        TargetKind::Published(target) => Some(published::typed(target)),
        TargetKind::Adapter(target) => adapters::typed(target),
        _ => None,
    }
}

fn refused_whole(index: Option<&PlanIndex<'_>>) -> Option<Refused> {
    let reason = match index {
        None => "no snapshot of it yet",
        Some(index) if index.is_standby() => "this is a standby, which is read-only: do it on the primary",
        Some(_) => return None,
    };
    Some(Refused::new("the server", Subject::Server, reason))
}

fn old<T>(index: &PlanIndex<'_>, section: &Section<T>) -> Option<Caution> {
    section.error.as_ref()?;
    let age = section.taken_at.map(|at| format!(" by {}", index.age_text(at))).unwrap_or_default();
    Some(Caution::new(super::CautionKind::Old, format!("the rows shown of its table are old{age}")))
}

fn harmless(text: &str) -> String {
    text::one_line(text).into_owned()
}

/// Updates a target whose identifying values have changed although it is still the same, and returns how it has changed;
/// `None` if it has not, or if that is unknown.
pub(super) fn follow(index: &PlanIndex<'_>, what: &mut TargetKind) -> Option<Change> {
    match what {
        TargetKind::Lease(target) => leases::follow(index, target),
        TargetKind::RedisLease(lease) => leases::changed_in_redis(index, lease),
        TargetKind::Task(target) => tasks::changed(index, target),
        TargetKind::Item(target) => items::changed(index, target),
        TargetKind::Published(target) => published::changed(index, target),
        TargetKind::Adapter(target) => adapters::changed(index, target),
        // A recovery is planned and compared by the server.
        TargetKind::Session(_) | TargetKind::Execution(_) => None,
    }
}
