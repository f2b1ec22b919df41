//! Fails executions that a published log has as running.
//!
//! Only the key shows whether a session works on a row. A free key is acquired; the session of a slow row is terminated
//! first; a row whose key is held for another execution is closed, and that session is not touched.

use super::{Found, GONE, old};
use crate::model::plan::context::PlanIndex;
use crate::model::plan::question::is_typable;
use crate::model::plan::signal::{changed as session_changed, of_execution};
use crate::model::plan::{
    Caution, CautionKind, Change, PlanContext, PublishedHolder, PublishedTarget, TargetKind, Verb,
};
use crate::model::task::{Execution, JobState, TaskRow, TaskSet, evidence};
use crate::text;

pub fn is_published(context: &PlanContext<'_>, table: u32) -> bool {
    let sets = context.view.snapshot.iter().flat_map(|snapshot| snapshot.task_sets.iter());
    sets.into_iter().any(|set| set.tables.table == table && !set.tables.own_keys)
}

pub(super) fn typed(target: &PublishedTarget) -> String {
    if let PublishedHolder::Worker(session) = &target.holder {
        return session.pid.to_string();
    }
    // The name may not be typable on every keyboard, as when ending a lease; a number would be mistaken for a pid.
    let is_word = |name: &&str| is_typable(name) && !name.bytes().all(|byte| byte.is_ascii_digit());
    target.name.as_deref().filter(is_word).unwrap_or("recover").to_owned()
}

pub(super) fn planned(index: &PlanIndex<'_>, row: Option<&TaskRow>) -> Found {
    let row = row.ok_or(GONE)?;
    let running = row.set(index.snapshot).zip(row.execution(index.snapshot));
    let (set, execution) = running.ok_or_else(|| not_running(row))?;
    if let Some(reason) = refusal(index, row) {
        return Err(reason);
    }
    let log = set.tables.executions.clone().unwrap_or_default();
    if let Some(reason) = set.tables.owner.refusal(&log) {
        return Err(reason);
    }
    let (holder, mut cautions) = holder(index, row)?;
    let target = target(set, execution, holder)
        .ok_or("its row has no worker and start, so nothing can be compared")?;
    cautions.extend(old(index, &set.executions));
    let update = format!("UPDATE {log} SET status = 'failed' WHERE id = {}", target.id);
    let does = match &target.holder {
        PublishedHolder::None => format!("if pg_try_advisory_xact_lock({}): {update}", target.key),
        PublishedHolder::Worker(session) => format!("pg_terminate_backend({}), then {update}", session.pid),
        PublishedHolder::Other { .. } => update,
    };
    let facts = facts(index, row, execution, set);
    Ok((TargetKind::Published(target), does, facts, cautions))
}

pub(in crate::model::plan) fn not_running(row: &TaskRow) -> String {
    if row.state != JobState::Leaked {
        return "it is not running".to_owned();
    }
    let holder = row.holder.map_or_else(|| "a session".to_owned(), |pid| pid.to_string());
    format!("it is not running; {holder} holds its key without an execution: K terminates that session")
}

fn holder(index: &PlanIndex<'_>, row: &TaskRow) -> Result<(PublishedHolder, Vec<Caution>), String> {
    let owner = |words: String| Caution::new(CautionKind::Owner, words);
    Ok(match row.state {
        JobState::Slow => {
            let (session, mut cautions) = of_execution(index, row)?;
            let pid = session.pid;
            cautions.push(owner(format!(
                "its worker is alive: its session {pid} will be terminated; its process must stop on its own"
            )));
            (PublishedHolder::Worker(session), cautions)
        }
        JobState::LeftOver => {
            let (other, words) = other(index, row).ok_or_else(|| evidence(row, index.snapshot))?;
            (other, vec![owner(words)])
        }
        _ => {
            let words = "the worker may still be running; unfenced work may run twice";
            (PublishedHolder::None, vec![owner(words.to_owned())])
        }
    })
}

/// The session of another execution that holds the key, and the words for it.
fn other(index: &PlanIndex<'_>, row: &TaskRow) -> Option<(PublishedHolder, String)> {
    let holder = index.backend(row.holder?)?;
    let rows = index.view.tasks.rows.iter();
    let mut same = rows.filter(|other| other.set == row.set && other.tag == row.tag);
    let other = same.find(|other| other.execution.is_some() && other.state != JobState::LeftOver)?;
    let other = other.execution(index.snapshot)?;
    let (pid, execution) = (holder.pid, other.id);
    let words = format!("only this row is closed: session {pid} continues with execution {execution}");
    let (backend_start, worker) = (holder.backend_start?, other.worker.clone()?);
    Some((PublishedHolder::Other { pid, backend_start, execution, worker }, words))
}

fn target(set: &TaskSet, execution: &Execution, holder: PublishedHolder) -> Option<PublishedTarget> {
    Some(PublishedTarget {
        table: set.tables.log?,
        source: set.tables.executions.clone()?,
        id: execution.id,
        task_id: execution.task_id,
        name: set.task(execution.task_id).and_then(|task| task.name.clone()),
        worker: execution.worker.clone()?,
        started_at: execution.started_at?,
        key: set.key(execution)?.number(),
        holder,
    })
}

fn refusal(index: &PlanIndex<'_>, row: &TaskRow) -> Option<String> {
    let why = evidence(row, index.snapshot);
    Some(match row.state {
        JobState::Orphan | JobState::MaybeOrphan | JobState::Slow | JobState::LeftOver => return None,
        JobState::Settling if index.context.has_terminated(row.last_holder) => return None,
        JobState::Running => format!("runs, within its timeout of {}: {why}", text::duration(row.limit)),
        JobState::MaybeSlow if row.holder.is_some() => {
            format!("runs past its timeout: {why}; if that session is its worker, K terminates it, then R")
        }
        JobState::Settling => {
            let left = row
                .orphan_in
                .map_or_else(String::new, |left| format!("; decided in {}", text::duration(left.max(0.0))));
            format!("not known yet whether its worker is alive{left}")
        }
        _ => why,
    })
}

fn facts(index: &PlanIndex<'_>, row: &TaskRow, execution: &Execution, set: &TaskSet) -> Vec<String> {
    let mut facts = vec![format!("{}: {}", row.state.as_str(), evidence(row, index.snapshot))];
    if let Some(worker) = execution.worker.as_deref() {
        let age = row.age(index.snapshot).map_or_else(String::new, |age| {
            format!(" for {} of {}", text::duration(age), text::duration(row.limit))
        });
        facts.push(format!("recorded as running on {worker}{age}"));
    }
    match row.schedule(index.snapshot).and_then(|task| task.next_run_at) {
        Some(next) if next <= index.snapshot.taken_at => facts.push("its task is due".to_owned()),
        Some(next) => {
            let seconds = (next - index.snapshot.taken_at).as_seconds_f64();
            facts.push(format!("its task is due in {}", text::duration(seconds)));
        }
        None => facts.push("its task has no due time: T makes it due".to_owned()),
    }
    let log = set.tables.executions.clone().unwrap_or_default();
    facts.extend(set.tables.owner.fact(&log));
    facts
}

pub(super) fn changed(index: &PlanIndex<'_>, target: &PublishedTarget) -> Option<Change> {
    let set = index.snapshot.task_sets.iter().find(|set| set.tables.log == Some(target.table))?;
    if !set.executions.is_known() {
        return None;
    }
    let Some(execution) = set.executions.last_rows().iter().find(|execution| execution.id == target.id)
    else {
        return (!set.executions.is_cut).then_some(Change::Gone);
    };
    let is_same = execution.is_running()
        && execution.worker.as_ref() == Some(&target.worker)
        && execution.started_at == Some(target.started_at);
    if !is_same {
        return Some(Change::OtherRow);
    }
    match &target.holder {
        PublishedHolder::Worker(session) => session_changed(index, Verb::Terminate, session),
        _ => None,
    }
}
