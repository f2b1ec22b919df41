mod adapters;
mod items;
mod leases;
mod published;
mod published_plan;
mod tasks;

use super::context::PlanIndex;
use super::{ActionPlan, Caution, Change, Confirm, PlanContext, PlannedTarget, Refused, TargetKind, Verb};
use crate::model::Timestamp;
use crate::model::finding::Subject;
use crate::model::task::{TaskId, TaskRow};
use crate::text;

pub(super) use adapters::{can_give_back, can_unlock};
pub use adapters::{jobs, other_leases};
pub use items::{ItemVerb, items};
pub(super) use items::{item_state, while_free};
pub use leases::leases;
pub(super) use published::not_running;
pub use published::{is_published, published};
pub use published_plan::published_plan;
pub(super) use tasks::{NEXT_RUN, has_schedule, runs};
pub use tasks::{TaskVerb, tasks};

pub(super) fn task<'a>(context: &PlanContext<'a>, task: TaskId, again: Option<i64>) -> Option<&'a TaskRow> {
    context.view.tasks.rows.iter().find(|row| row.task == task && row.again == again)
}

/// A plan for these rows without duplicates, in the given order; refused as a whole on a server that takes no writes.
fn each<T: Copy + PartialEq>(
    context: &PlanContext<'_>,
    verb: Verb,
    chosen: &[T],
    planned: impl Fn(&PlanIndex<'_>, T) -> Result<PlannedTarget, Refused>,
) -> ActionPlan {
    match refused_whole(PlanIndex::of(context).as_ref()) {
        Some(refused) => ActionPlan { refused: vec![refused], ..ActionPlan::new(verb) },
        None => each_anywhere(context, verb, chosen, planned),
    }
}

/// The same, also on a server that takes no writes.
fn each_anywhere<T: Copy + PartialEq>(
    context: &PlanContext<'_>,
    verb: Verb,
    chosen: &[T],
    planned: impl Fn(&PlanIndex<'_>, T) -> Result<PlannedTarget, Refused>,
) -> ActionPlan {
    let mut plan = ActionPlan::new(verb);
    let Some(index) = PlanIndex::of(context) else {
        plan.refused.extend(refused_whole(None));
        return plan;
    };
    for (at, id) in chosen.iter().enumerate() {
        match planned(&index, *id) {
            _ if chosen.iter().take(at).any(|before| before == id) => {}
            Ok(row) => plan.rows.push(row),
            Err(refused) => plan.refused.push(refused),
        }
    }
    // No target is assumed to have an owner.
    plan.confirm = Confirm::of(plan.rows.len(), None);
    plan
}

fn refused_whole(index: Option<&PlanIndex<'_>>) -> Option<Refused> {
    let reason = match index {
        None => "no snapshot of it yet",
        Some(index) if index.is_standby() => "this is a standby, which is read-only: do it on the primary",
        Some(_) => return None,
    };
    Some(Refused::new("the server", Subject::Server, reason))
}

fn old(index: &PlanIndex<'_>, error: Option<&crate::model::Text>, at: Option<Timestamp>) -> Option<Caution> {
    error?;
    let age = at.map(|at| format!(" by {}", index.age_text(at))).unwrap_or_default();
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
