//! Actions on items of the work queue.
//!
//! In locktop's own table, functions of the schema requeue an item or set it aside, and never take it from a connected
//! session. A published table does not show which session has an item: an item in progress is changed only if its row is
//! not locked and its advisory key, the id unless the config says otherwise, can be acquired. Both locks are kept to the
//! end of the transaction.

use super::{Condition, Found, GONE, RowAct, RowChange, RowStatement, TableShape, attempt, old};
use crate::model::plan::{Caution, PlanContext, PlanIndex, RowTarget, TargetKind, Verb};
use crate::model::row_id::RowId;
use crate::model::work_queue::{Item, ItemRow, JobState};
use crate::text;
use locktop_tasks::message::{is, number, shown};

#[derive(Debug)]
pub struct ItemVerb {
    pub(in crate::model::plan) shown: fn(&RowTarget<Item>) -> String,
    /// `None` if the status of the item does not allow it.
    pub(in crate::model::plan) act: fn(&RowTarget<Item>, &TableShape) -> Option<RowAct>,
    pub(in crate::model::plan) result: &'static str,
    /// Why it is impossible for an item in this state without a worker; the flag tells whether the table is locktop's own.
    pub(in crate::model::plan) refusal: fn(JobState, bool) -> Option<&'static str>,
}

/// `None` if the row is not an item.
pub(in crate::model::plan) fn item_state(context: &PlanContext<'_>, row: RowId) -> Option<JobState> {
    let RowId::Item(id) = row else { return None };
    context.view.item(id).map(|row| row.state)
}

pub(super) fn planned(index: &PlanIndex<'_>, verb: Verb, row: Option<&ItemRow>) -> Found {
    let row = row.ok_or("was removed, or is done")?;
    let runs_again = verb != Verb::SetAside;
    let verb = verb.definition().item.ok_or("is an item")?;
    let table = index.snapshot.sources.items.get(row.table);
    let (table, item) = table.zip(row.item(index.snapshot)).ok_or(GONE)?;
    let is_own = table.source.own_keys;
    refusal(verb, row, is_own).map_or(Ok(()), Err)?;
    table.source.owner.refusal(&table.source.name).map_or(Ok(()), Err)?;
    item.status.as_ref().ok_or("its table has no status, so nothing can be compared")?;
    let mut cautions: Vec<Caution> = old(index, &table.section).into_iter().collect();
    if runs_again && matches!(row.state, JobState::Lost | JobState::MaybeLost) {
        cautions.push(Caution::of_worker());
    }
    let target = RowTarget::new(table.source.table, &table.source.name, is_own, item);
    let does = (verb.shown)(&target);
    let mut facts = facts(index, row);
    facts.extend(table.source.owner.fact(&table.source.name));
    Ok((TargetKind::Item(target), does, facts, cautions))
}

fn refusal(verb: &ItemVerb, row: &ItemRow, is_own: bool) -> Option<String> {
    use JobState as S;
    let why = match row.state {
        S::Running | S::Slow | S::MaybeRunning | S::MaybeSlow | S::Uncommitted | S::MaybeUncommitted => {
            return Some(row.pid.map_or_else(
                || "a worker holds it: it would run twice".to_owned(),
                |pid| format!("{pid} is working on it: terminate that session first, or it runs twice"),
            ));
        }
        S::Stopping if !is_own => {
            Some("no session holds its key, but its worker may still be stopping: wait a moment")
        }
        S::Stopping => {
            Some("the session that took it has ended, but its worker may still be stopping: wait a moment")
        }
        S::Unknown => Some("it may be running, and might run twice"),
        _ => (verb.refusal)(row.state, is_own),
    };
    why.map(str::to_owned)
}

fn facts(index: &PlanIndex<'_>, row: &ItemRow) -> Vec<String> {
    let Some(item) = row.item(index.snapshot) else { return Vec::new() };
    let mut facts = vec![match row.state {
        JobState::Lost => "lost: the session that took it has ended".to_owned(),
        JobState::MaybeLost => "lost?: no session holds its key, if its worker locks that key".to_owned(),
        state => state.as_str().to_owned(),
    }];
    facts.extend(item.worker.as_deref().map(|worker| format!("last taken by {worker}")));
    facts.extend(attempt(item.attempt, item.max_attempts));
    facts.extend(row.run(index.snapshot).map(|run| format!("taken {} ago", text::duration(run))));
    let error = item.error.as_deref().filter(|error| !error.is_empty());
    facts.extend(error.map(|error| format!("error: {error}")));
    facts
}

impl ItemVerb {
    pub(in crate::model::plan) fn change<'a>(
        &'static self,
        verb: Verb,
        item: &'a RowTarget<Item>,
    ) -> RowChange<'a> {
        let Item { id, status, attempt, worker, .. } = &item.row;
        let (word, source, attempt) = (verb.as_str(), &item.source, number(*attempt));
        let (status, worker) = (shown(status.as_deref()), shown(worker.as_deref()));
        let short = format!(
            "{word} item {id} of {source} if status = {status} and worker_id = {worker} and attempt = {attempt}"
        );
        let statement = Box::new(move |table: &TableShape| {
            let act = (self.act)(item, table).ok_or_else(|| {
                format!(
                    "{word} is not possible for an item that is {}",
                    item.status.as_deref().unwrap_or_default()
                )
            })?;
            let (id, conditions) = (format!("t.id = {}", item.id), conditions(table, item));
            Ok(RowStatement { id, conditions, act, done: self.result.to_owned() })
        });
        RowChange { table: item.table, is_own: item.is_own, short, statement }
    }
}

/// Sets columns in a published table: a worker of an item in progress holds its key.
pub(in crate::model::plan) fn while_free(item: &RowTarget<Item>, set: impl Into<String>) -> RowAct {
    let is_taken = item.status.as_deref() == Some("processing");
    RowAct::SetWhileFree { set: set.into(), key: is_taken.then(|| item.key.unwrap_or(item.id)) }
}

fn conditions(table: &TableShape, item: &RowTarget<Item>) -> Vec<Condition> {
    let status = is("t.status::text", item.status.as_deref());
    let mut all = vec![Condition::new("its status has changed", status)];
    if table.has("worker_id") {
        let worker = item.worker.as_ref();
        all.push(Condition::cut("another worker holds it", "t.worker_id::text", worker));
    }
    if table.has("attempt") {
        all.push(Condition::same("another attempt began", "t.attempt", &number(item.attempt)));
    }
    all
}
