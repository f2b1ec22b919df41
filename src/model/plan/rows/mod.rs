//! What is done to rows of tables, and to leases in Redis.

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
use crate::text;

pub use adapters::{jobs, other_leases};
pub use items::items;
pub use leases::leases;
pub use published::{is_published, published};
pub use published_plan::published_plan;
pub use tasks::{tasks, toggle};

/// A plan for these rows, each once, in the order given.
fn each<T: Copy + PartialEq>(
    context: &PlanContext<'_>,
    verb: Verb,
    chosen: &[T],
    planned: impl Fn(&PlanIndex<'_>, T) -> Result<PlannedTarget, Refused>,
) -> ActionPlan {
    let mut plan = ActionPlan::new(verb);
    let index = PlanIndex::of(context);
    if let Some(refused) = refused_whole(index.as_ref()) {
        plan.refused.push(refused);
        return plan;
    }
    let Some(index) = index else { return plan };
    let mut seen = Vec::new();
    let mut rows = Vec::new();
    for id in chosen {
        if !seen.contains(id) {
            seen.push(*id);
            rows.push(planned(&index, *id));
        }
    }
    filled(plan, rows)
}

/// A plan of those that can be done; nobody is taken to own any of them.
fn filled(mut plan: ActionPlan, rows: Vec<Result<PlannedTarget, Refused>>) -> ActionPlan {
    for row in rows {
        match row {
            Ok(row) => plan.rows.push(row),
            Err(refused) => plan.refused.push(refused),
        }
    }
    plan.confirm = Confirm::of(plan.rows.len(), None);
    plan
}

/// A plan for a server of which nothing has been seen, or that takes no writes.
fn refused_whole(index: Option<&PlanIndex<'_>>) -> Option<Refused> {
    let reason = match index {
        None => "nothing has been seen of it yet",
        Some(index) if index.is_standby() => "this is a standby, which takes no writes: do it on the primary",
        Some(_) => return None,
    };
    Some(Refused::new("the server", Subject::Server, reason))
}

/// Says how old rows are that could not be read anew.
fn old(index: &PlanIndex<'_>, error: Option<&crate::model::Text>, at: Option<Timestamp>) -> Option<Caution> {
    error?;
    let age = at.map(|at| format!(" by {}", index.age_text(at))).unwrap_or_default();
    Some(Caution::new(super::CautionKind::Old, format!("what is shown of its table is old{age}")))
}

fn harmless(text: &str) -> String {
    text::one_line(text).into_owned()
}

/// Brings a target up to date, where the same thing is seen by another mark now, and says how it has changed; none while it has
/// not, and while that cannot be told.
pub(super) fn follow(index: &PlanIndex<'_>, what: &mut TargetKind) -> Option<Change> {
    match what {
        TargetKind::Lease(target) => leases::follow(index, target),
        TargetKind::RedisLease(lease) => leases::changed_in_redis(index, lease),
        TargetKind::Task(target) => tasks::changed(index, target),
        TargetKind::Item(target) => items::changed(index, target),
        TargetKind::Published(target) => published::changed(index, target),
        TargetKind::Adapter(target) => adapters::changed(index, target),
        // A recovery is planned by what the server was asked for, and compared by it.
        TargetKind::Session(_) | TargetKind::Execution { .. } => None,
    }
}
