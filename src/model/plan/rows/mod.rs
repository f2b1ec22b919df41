//! A change of one row of a table: the statement is planned here, and the executor sends it.
//!
//! The table is first looked up by its OID; the statement changes the row only if everything seen of it is unchanged.

mod adapters;
mod items;
mod leases;
mod published;
mod tasks;

use std::collections::BTreeMap;

use locktop_tasks::message::is_cut;
use serde::Deserialize;

use super::{
    ActionPlan, Caution, Confirm, Identity, PlanContext, PlanIndex, PlannedTarget, Refused, Target,
    TargetChange, TargetKind, Verb,
};
use crate::model::Text;
use crate::model::finding::Subject;
use crate::model::row_id::RowId;
use crate::model::section::Section;
use crate::text;

pub(super) use adapters::{can_give_back, can_unlock};
pub use items::ItemVerb;
pub(super) use items::{item_state, while_free};
pub(super) use leases::end;
pub(super) use published::not_running;
pub use published::{is_published, published_plan};
pub use tasks::TaskVerb;
pub(super) use tasks::{NEXT_RUN, has_schedule, runs};

/// A plan for these rows without duplicates, in the given order; refused as a whole on a server that takes no writes.
pub fn rows(context: &PlanContext<'_>, verb: Verb, chosen: &[RowId]) -> ActionPlan {
    let mut plan = ActionPlan::new(verb);
    // A lease in Redis can be ended even if the PostgreSQL server takes no writes.
    let needs_primary = !matches!(chosen.first(), Some(RowId::Lease(_)));
    let is_fine = |index: &PlanIndex<'_>| if needs_primary { index.writable() } else { Ok(()) };
    let index = match PlanIndex::of(context).and_then(|index| is_fine(&index).map(|()| index)) {
        Ok(index) => index,
        Err(refused) => return ActionPlan { refused: vec![refused], ..plan },
    };
    for (at, id) in chosen.iter().enumerate() {
        match planned(&index, verb, *id) {
            _ if chosen.iter().take(at).any(|before| before == id) => {}
            Ok(row) => plan.rows.push(row),
            Err(refused) => plan.refused.push(refused),
        }
    }
    plan.confirm = Confirm::of(&plan.rows, |row| typed(&index, &row.target));
    plan
}

/// How the row of a target has changed, by its values now; `None` if the rows could not be read again.
fn change_in<T>(
    section: &Section<T>,
    is_it: impl Fn(&T) -> bool,
    change: impl FnOnce(&T) -> Option<TargetChange>,
) -> Option<TargetChange> {
    if !section.is_known() {
        return None;
    }
    // A row beyond the limit is not read.
    let gone = || (!section.is_cut).then_some(TargetChange::Gone);
    section.last_rows().iter().find(|row| is_it(row)).map_or_else(gone, change)
}

/// How the row with the same id has changed, by the values that must be the same.
fn changed<R: Identity>(section: &Section<R>, seen: &R, id: impl Fn(&R) -> i64) -> Option<TargetChange> {
    let is_other = |now: &R| now.identity() != seen.identity();
    change_in(section, |row| id(row) == id(seen), |now| is_other(now).then_some(TargetChange::OtherRow))
}

/// What a target is, the request to the server, facts and cautions; or why it is refused.
type Found = Result<(TargetKind, String, Vec<String>, Vec<Caution>), String>;

const GONE: &str = "no longer exists";

fn planned(index: &PlanIndex<'_>, verb: Verb, id: RowId) -> Result<PlannedTarget, Refused> {
    let snapshot = index.snapshot;
    let (name, subject, found) = match id {
        RowId::Lease(id) => {
            let row = index.view.lease(id);
            let name = row.map(|row| format!("lease {} of {}", row.name, row.source));
            (name.unwrap_or_else(|| "lease".to_owned()), Subject::Lease(id), leases::planned(index, row))
        }
        RowId::Item(id) => {
            let row = index.view.item(id);
            let name = row.map_or_else(|| format!("item {}", id.id), |row| row.name(snapshot));
            (name, Subject::Item(id), items::planned(index, verb, row))
        }
        RowId::Task(id, again) => {
            let row = index.view.task(id, again);
            let name = row.map_or_else(|| format!("task {}", id.id), |row| row.name(snapshot).to_string());
            let found = match verb {
                Verb::Recover => published::planned(index, row),
                _ => tasks::planned(index, verb, row),
            };
            (name, Subject::Task(id), found)
        }
        RowId::Job(id) => {
            let row = index.view.adapters.rows.iter().find(|row| row.id == id);
            let name = row.map_or_else(|| "a job".to_owned(), adapters::job_name);
            (name, Subject::Job(id), adapters::job(index, row))
        }
        RowId::OtherLease(id) => {
            let row = adapters::lease_of(index, id);
            let name = row.map(|(row, _, lease)| format!("lease {} of {}", lease.id, row.source));
            let name = name.unwrap_or_else(|| "a lease".to_owned());
            (name, Subject::Section("adapters"), adapters::lease(index, row))
        }
        _ => return Err(Refused::new("this row", Subject::Server, "cannot be changed")),
    };
    let name = harmless(&name);
    match found {
        Ok((what, does, facts, cautions)) => {
            Ok(PlannedTarget::new(Target { what, name, subject }, &does, facts, cautions))
        }
        Err(reason) => Err(Refused::new(name, subject, harmless(&reason))),
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

fn old<T>(index: &PlanIndex<'_>, section: &Section<T>) -> Option<Caution> {
    section.error.as_ref()?;
    let age = section.taken_at.map(|at| format!(" by {}", index.age_text(at))).unwrap_or_default();
    Some(Caution::new(super::CautionKind::Old, format!("the rows shown of its table are old{age}")))
}

/// `attempt 2 of 3`.
fn attempt(attempt: Option<i64>, most: Option<i64>) -> Option<String> {
    let of = most.map(|most| format!(" of {most}")).unwrap_or_default();
    attempt.map(|attempt| format!("attempt {attempt}{of}"))
}

fn harmless(text: &str) -> String {
    text::one_line(text).into_owned()
}

/// Updates a target whose identifying values have changed although it is still the same, and returns how it has changed;
/// `None` if it has not, or if that is unknown.
pub(super) fn follow(index: &PlanIndex<'_>, what: &mut TargetKind) -> Option<TargetChange> {
    match what {
        TargetKind::Lease(target) => leases::follow(index, target),
        TargetKind::RedisLease(lease) => leases::changed_in_redis(index, lease),
        TargetKind::Task(seen) => {
            let set = index.snapshot.task_sets.iter().find(|set| set.tables.table == seen.table)?;
            changed(&set.tasks, seen, |task| task.id)
        }
        TargetKind::Item(seen) => {
            // An item that is done is not read.
            let tables = &index.snapshot.sources.items;
            let table = tables.iter().find(|table| table.source.table == seen.table)?;
            changed(&table.section, seen, |item| item.id)
        }
        TargetKind::Published(target) => published::changed(index, target),
        TargetKind::Adapter(target) => adapters::changed(index, target),
        // A recovery is planned and compared by the server.
        TargetKind::Session(_) | TargetKind::Execution(_) => None,
    }
}

pub(crate) struct RowChange<'a> {
    pub(crate) table: u32,
    pub(crate) is_own: bool,
    pub(crate) short: String,
    /// Builds the statement for the table as it is now, or returns why the change is impossible.
    pub(crate) statement: Box<BuildStatement<'a>>,
}

type BuildStatement<'a> = dyn Fn(&TableShape) -> Result<RowStatement, String> + Send + Sync + 'a;

impl Verb {
    /// `None` if the target is not a row of a table, or the verb does not apply to it.
    pub(crate) fn row_change(self, what: &TargetKind) -> Option<RowChange<'_>> {
        let definition = self.definition();
        match what {
            TargetKind::Task(task) => definition.task.map(|does| does.change(self, task)),
            TargetKind::Item(item) => definition.item.map(|does| does.change(self, item)),
            TargetKind::Lease(lease) => definition.lease.map(|change| change(lease)),
            _ => None,
        }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct TableShape {
    /// The schema, quoted for use in a statement.
    pub(crate) schema: String,
    pub(crate) columns: BTreeMap<String, u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlanColumnKind {
    Zoned,
    Time,
    Date,
    Interval,
    Number,
    Other,
}

impl TableShape {
    pub(crate) fn has(&self, column: &str) -> bool {
        self.columns.contains_key(column)
    }

    /// `None` if there is no such column.
    pub(crate) fn kind(&self, column: &str) -> Option<PlanColumnKind> {
        self.columns.get(column).map(|oid| match oid {
            1184 => PlanColumnKind::Zoned,
            1114 => PlanColumnKind::Time,
            1082 => PlanColumnKind::Date,
            1186 => PlanColumnKind::Interval,
            20 | 21 | 23 | 700 | 701 | 1700 => PlanColumnKind::Number,
            _ => PlanColumnKind::Other,
        })
    }
}

pub(crate) struct RowStatement {
    /// The condition that identifies row `t`: its primary key.
    pub(crate) id: String,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) act: RowAct,
    pub(crate) done: String,
}

/// A condition on the row `t`, in SQL: a value is as in the snapshot. `name` is for the message if it is not.
pub(crate) struct Condition {
    pub(crate) name: &'static str,
    pub(crate) sql: String,
}

impl Condition {
    pub(crate) fn new(name: &'static str, sql: impl Into<String>) -> Self {
        Self { name, sql: sql.into() }
    }

    /// The column must have this value, which may be NULL.
    pub(crate) fn same(name: &'static str, column: &str, value: &str) -> Self {
        Self::new(name, format!("{column} IS NOT DISTINCT FROM {value}"))
    }

    /// The text must match the one that was read, which was truncated if it was long.
    pub(crate) fn cut(name: &'static str, column: &str, value: Option<&Text>) -> Self {
        Self::new(name, is_cut(column, value.map(|value| &**value)))
    }
}

pub(crate) enum RowAct {
    /// Sets columns; the audit row is made from what is returned.
    Set { set: String, returning: String, noted: Option<Noted> },
    /// Sets columns if no session holds the advisory key; `None` if no worker can be working on the row.
    SetWhileFree { set: String, key: Option<i64> },
    /// A function of the schema does it or returns why not. Its arguments are the id of the row, which is locked, and the
    /// requester.
    Call(&'static str),
    /// A function of the schema does it to the row `t`, which is locked, and returns whether it did. The audit row is made from
    /// these columns, as text.
    Try { function: &'static str, arguments: &'static str, columns: &'static [&'static str], noted: Noted },
}

/// An audit row in locktop's own schema for each changed row `d`: the action, columns of the audit table, and their values.
#[derive(Clone, Copy)]
pub(crate) struct Noted {
    pub(crate) action: &'static str,
    pub(crate) columns: &'static str,
    pub(crate) values: &'static str,
}
