//! Putting items of the work queue back, and setting them aside.

use super::{each, harmless, old};
use crate::model::finding::Subject;
use crate::model::plan::context::PlanIndex;
use crate::model::plan::{
    ActionPlan, Caution, CautionKind, Change, ItemTarget, PlanContext, PlannedTarget, Refused, Target,
    TargetKind, Verb,
};
use crate::model::work_queue::{ItemId, ItemRow, ItemState};
use crate::text;

/// What putting these items back ([`Verb::Requeue`]) or setting them aside ([`Verb::SetAside`]) does, in the order given.
#[must_use]
pub fn items(context: &PlanContext<'_>, verb: Verb, chosen: &[ItemId]) -> ActionPlan {
    each(context, verb, chosen, |index, id| match context.view.queue.rows.iter().find(|row| row.id == id) {
        None => Err(Refused::new(format!("item {}", id.id), Subject::Item(id), "is gone, or done")),
        Some(row) => planned(index, verb, row),
    })
}

fn planned(index: &PlanIndex<'_>, verb: Verb, row: &ItemRow) -> Result<PlannedTarget, Refused> {
    let name = harmless(&row.name(index.snapshot));
    let subject = Subject::Item(row.id);
    let refused = |reason: String| Refused::new(name.clone(), subject.clone(), reason);
    let table = index.snapshot.systems.items.get(row.table);
    let (Some(table), Some(item)) = (table, row.item(index.snapshot)) else {
        return Err(refused("is gone".to_owned()));
    };
    if let Some(reason) = refusal(verb, row) {
        return Err(refused(reason));
    }
    if let Some(reason) = table.source.owner.refusal(&table.source.name) {
        return Err(refused(harmless(&reason)));
    }
    if item.status.is_none() {
        return Err(refused("its table does not say how it is, so nothing can be compared".to_owned()));
    }
    let is_own = table.source.own_keys;
    let mut cautions: Vec<Caution> =
        old(index, table.section.error.as_ref(), table.section.taken_at).into_iter().collect();
    if matches!(row.state, ItemState::Lost | ItemState::MaybeLost) {
        let words = "the worker may still be running; unfenced work may run twice";
        cautions.push(Caution::new(CautionKind::Owner, words));
        cautions.sort_by_key(|caution| caution.kind);
    }
    let does = match (verb, is_own) {
        (Verb::SetAside, true) => format!("set_aside_queue_item({})", row.id.id),
        (_, true) => format!("requeue_queue_item({})", row.id.id),
        (Verb::SetAside, false) => format!("UPDATE {} SET status = 'failed'", table.source.name),
        (_, false) => format!("UPDATE {} SET status = 'pending'", table.source.name),
    };
    let what = TargetKind::Item(ItemTarget {
        table: table.source.table,
        source: table.source.name.clone(),
        is_own,
        id: row.id.id,
        status: item.status.clone(),
        attempt: item.attempt,
        worker: item.worker.clone(),
        key: item.key.filter(|_| !is_own),
    });
    let target = Target { what, name, subject };
    let mut facts = facts(index, row);
    facts.extend(table.source.owner.fact(&table.source.name).map(|fact| harmless(&fact)));
    Ok(PlannedTarget {
        target,
        does: harmless(&does),
        facts,
        effect: None,
        cautions,
        lease: None,
        work: None,
        change: None,
    })
}

/// Why that cannot be done to an item that is like this.
fn refusal(verb: Verb, row: &ItemRow) -> Option<String> {
    Some(match (row.state, verb) {
        (ItemState::Pending, Verb::Requeue) => "it is pending already".to_owned(),
        (ItemState::Failed, Verb::SetAside) => "has been set aside already; R puts it back".to_owned(),
        (ItemState::Resting, Verb::Requeue) => "is pending already, and is tried again by itself".to_owned(),
        (ItemState::Running | ItemState::Slow | ItemState::MaybeRunning | ItemState::MaybeSlow, _) => {
            match row.pid {
                Some(pid) => format!("{pid} works on it: end that session first, or it runs twice"),
                None => "a worker has it: it would run twice".to_owned(),
            }
        }
        (ItemState::Settling, _) => {
            "the session that took it is gone, but its worker may not have stopped yet: wait a moment"
                .to_owned()
        }
        (ItemState::Unknown, _) => "it may be running, and might run twice".to_owned(),
        (
            ItemState::Lost
            | ItemState::MaybeLost
            | ItemState::Pending
            | ItemState::Resting
            | ItemState::Failed,
            _,
        ) => return None,
    })
}

fn facts(index: &PlanIndex<'_>, row: &ItemRow) -> Vec<String> {
    let Some(item) = row.item(index.snapshot) else { return Vec::new() };
    let mut facts = vec![match row.state {
        ItemState::Lost => "lost: the session that took it is gone".to_owned(),
        ItemState::MaybeLost => "lost?: nobody holds its key, if that is what its worker locks".to_owned(),
        state => state.as_str().to_owned(),
    }];
    if let Some(worker) = item.worker.as_deref() {
        facts.push(harmless(&format!("last taken by {worker}")));
    }
    if let Some(attempt) = item.attempt {
        let of = item.max_attempts.map(|max| format!(" of {max}")).unwrap_or_default();
        facts.push(format!("attempt {attempt}{of}"));
    }
    if let Some(run) = row.run(index.snapshot) {
        facts.push(format!("taken {} ago", text::duration(run)));
    }
    if let Some(error) = item.error.as_deref().filter(|error| !error.is_empty()) {
        facts.push(harmless(&format!("error: {error}")));
    }
    facts
}

pub(super) fn changed(index: &PlanIndex<'_>, target: &ItemTarget) -> Option<Change> {
    let tables = &index.snapshot.systems.items;
    let table = tables.iter().find(|table| table.source.table == target.table)?;
    if table.section.error.is_some() {
        return None;
    }
    let Some(item) = table.section.rows.iter().find(|item| item.id == target.id) else {
        // An item that is done is not read; nor is one that is beyond the limit.
        return (!table.is_cut).then_some(Change::Gone);
    };
    let same = item.status == target.status && item.attempt == target.attempt && item.worker == target.worker;
    (!same).then_some(Change::OtherRow)
}
