//! Recovering jobs of other systems and ending their leases.

use std::sync::Arc;

use super::{Found, GONE, attempt, change_in, harmless, old};
use crate::model::Text;
use crate::model::adapter::{
    ActionKind, ActionValues, AdapterAction, AdapterLease, Installation, InstallationRows, Job, JobRow,
    JobState, Part, Proof, offset,
};
use crate::model::lease::{LeaseRow, LeaseState};
use crate::model::plan::question::is_typable;
use crate::model::plan::{AdapterTarget, Caution, PlanContext, PlanIndex, TargetChange, TargetKind};
use crate::model::source_tables::NameHash;
use crate::text;

/// Length at which a text may have been truncated, in characters.
const CUT: usize = 500;

/// It is not known whether the owner of a lease is alive: the name must be typed, as for a lease of locktop's own.
pub(super) fn typed(target: &AdapterTarget) -> Option<String> {
    let id = &target.values.id;
    let word = || if is_typable(id) { id.to_string() } else { "end".to_owned() };
    (target.kind == ActionKind::Unlock).then(word)
}

pub(in crate::model::plan) fn can_give_back(context: &PlanContext<'_>, id: NameHash) -> bool {
    let row = context.view.adapters.rows.iter().find(|row| row.id == id && row.judged.state.is_lost());
    row.is_some_and(|row| installation_at(context, row.place).is_some_and(|one| recovery(one, row).is_ok()))
}

pub(in crate::model::plan) fn can_unlock(context: &PlanContext<'_>, id: NameHash) -> bool {
    let row = context.view.adapters.leases.iter().find(|row| row.id == id && row.state == LeaseState::Held);
    row.is_some_and(|row| installation_at(context, row.place.0).is_some_and(|one| unlock(one).is_ok()))
}

fn installation_at<'a>(context: &PlanContext<'a>, place: usize) -> Option<&'a Installation> {
    Some(&*context.view.snapshot.as_deref()?.adapters.get(place)?.installation)
}

/// Why an adapter may not do this kind of action; `None` if it may.
fn why_not(installation: &Installation, kind: ActionKind) -> Option<String> {
    let adapter = &installation.adapter;
    if adapter.actions_of(kind).next().is_none() {
        let does = if kind == ActionKind::Recover { "returns no job of" } else { "ends no lease of" };
        return Some(format!("locktop {does} {}", adapter.title));
    }
    let name = &adapter.name;
    (!adapter.allows_actions)
        .then(|| format!("allow_actions = true in [adapters.{name}] of the config permits it; it is off"))
}

fn recovery<'a>(installation: &'a Installation, row: &JobRow) -> Result<(usize, &'a AdapterAction), String> {
    let back = || row.comes_back.as_deref().map(|back| format!("; recovery: {back}")).unwrap_or_default();
    if let Some(why) = why_not(installation, ActionKind::Recover) {
        let has_none = installation.adapter.actions_of(ActionKind::Recover).next().is_none();
        let help = match &row.advice {
            _ if !has_none => String::new(),
            Some(_) => "; y copies what to type in its own console".to_owned(),
            None => back(),
        };
        return Err(why + &help);
    }
    let proof = row.judged.proof;
    installation.action(ActionKind::Recover, Some(proof)).ok_or_else(|| {
        format!("is lost according to {} only: its system recovers it{}", proof.as_str(), back())
    })
}

fn unlock(installation: &Installation) -> Result<(usize, &AdapterAction), String> {
    why_not(installation, ActionKind::Unlock).map_or(Ok(()), Err)?;
    installation
        .action(ActionKind::Unlock, None)
        .ok_or_else(|| "a table in the statement of its adapter does not exist here".to_owned())
}

pub(super) fn job_name(row: &JobRow) -> String {
    let words = row.job.name.as_deref().unwrap_or("job");
    // In some systems the id starts with the name.
    let words = if row.job.id.starts_with(words) { String::new() } else { format!("{words} ") };
    format!("{words}{} of {}", row.job.id, row.source)
}

pub(super) fn job(index: &PlanIndex<'_>, row: Option<&JobRow>) -> Found {
    let row = row.ok_or(GONE)?;
    let rows = index.snapshot.adapters.get(row.place).ok_or(GONE)?;
    let state = row.judged.state;
    if !state.is_lost() {
        return Err(format!("is {}: only a job that lost its worker can be returned", state.as_str()));
    }
    let (number, action) = recovery(&rows.installation, row)?;
    let (target, does) = target(rows, (number, action), row.source.clone(), values(&row.job))?;
    Ok((target, does, facts(index, row, action), cautions(index, rows, row, action)))
}

fn values(job: &Job) -> ActionValues {
    ActionValues {
        id: job.id.clone(),
        who: job.worker.clone(),
        attempt: job.attempt,
        since: job.started_at,
        until: None,
        key: job.key,
    }
}

fn missing(action: &AdapterAction, values: &ActionValues) -> Result<(), String> {
    let is_whole = |text: &str| text.chars().count() < CUT && !text.contains(char::REPLACEMENT_CHARACTER);
    if !is_whole(&values.id) || values.who.as_deref().is_some_and(|who| !is_whole(who)) {
        return Err("its name is too long, or not text: it cannot be compared".to_owned());
    }
    match action.sql.values().find(|value| !values.has(*value)) {
        None => Ok(()),
        Some(value) => Err(format!(
            "its row has no {}: the next run could not be distinguished from this one",
            value.as_str()
        )),
    }
}

/// The target, and the request: `statement of its adapter, over public.good_jobs`.
fn target(
    rows: &InstallationRows,
    (number, action): (usize, &AdapterAction),
    source: Text,
    values: ActionValues,
) -> Result<(TargetKind, String), String> {
    missing(action, &values)?;
    let installation = Arc::clone(&rows.installation);
    let (oid, kind) = (installation.oid, action.kind);
    let target = AdapterTarget { installation, source, oid, kind, number, values };
    let does = format!("statement of its adapter, over {}", target.tables());
    Ok((TargetKind::Adapter(target), does))
}

fn cautions(
    index: &PlanIndex<'_>,
    rows: &InstallationRows,
    row: &JobRow,
    action: &AdapterAction,
) -> Vec<Caution> {
    let read = rows.jobs.get(&row.part);
    let stale = read.and_then(|read| old(index, read));
    let words = match (row.judged.state, row.judged.proof) {
        (JobState::Orphan, Proof::Lock) => "its lock is free, but its process may still be working",
        (_, Proof::Heartbeat) if offset(rows).is_some() => {
            "its last heartbeat is off by a multiple of 30 minutes, as if written in another time zone (time_zone in the config)"
        }
        (_, Proof::Heartbeat) => "its worker is only silent, and may still be working",
        (_, Proof::Absent) => "its worker is not listed, but may still be working",
        _ => "its worker is not known, and may still be working",
    };
    stale.into_iter().chain([owner(words, action)]).collect()
}

fn owner(words: &str, action: &AdapterAction) -> Caution {
    let late = action.late.as_deref().map(|late| format!("; {late}")).unwrap_or_default();
    Caution::owner(harmless(&format!("{words}{late}")))
}

fn facts(index: &PlanIndex<'_>, row: &JobRow, action: &AdapterAction) -> Vec<String> {
    let mut facts = vec![format!("{} by {}", row.judged.state.as_str(), row.judged.proof.as_str())];
    facts.extend(row.worker.as_deref().map(|worker| format!("worker {worker}")));
    facts.extend(row.job.started_at.map(|started| format!("started {} ago", index.age_text(started))));
    facts.extend(attempt(row.job.attempt, row.job.max_attempts));
    facts.extend(row.comes_back.as_ref().map(|back| format!("skipped: {back}")));
    facts.push(format!("returned: {}", action.then));
    facts
}

type FoundLease<'a> = (&'a LeaseRow, &'a InstallationRows, &'a AdapterLease);

pub(super) fn lease_of<'a>(index: &PlanIndex<'a>, id: NameHash) -> Option<FoundLease<'a>> {
    let row = index.view.adapters.leases.iter().find(|row| row.id == id)?;
    let rows = index.snapshot.adapters.get(row.place.0)?;
    Some((row, rows, rows.leases.last_rows().get(row.place.1)?))
}

pub(super) fn lease(index: &PlanIndex<'_>, found: Option<FoundLease<'_>>) -> Found {
    let (row, rows, lease) = found.ok_or(GONE)?;
    match row.state {
        LeaseState::Held => {}
        LeaseState::Over => Err("has ended: the next request gets it")?,
        LeaseState::Unknown => Err("its row does not show whether it is held")?,
        _ => Err("it is not held")?,
    }
    let (number, action) = unlock(&rows.installation)?;
    let (target, does) = target(rows, (number, action), row.source.clone(), lease_values(lease))?;
    let stale = old(index, &rows.leases);
    let owner = owner("its owner may be working, and this does not stop it", action);
    let mut facts = vec![format!("owner {}", lease.owner.as_deref().unwrap_or("unknown"))];
    facts.extend(lease.acquired_at.map(|at| format!("taken {} ago", index.age_text(at))));
    facts.push(match row.left {
        Some(left) => format!("expires in {}, unless it is renewed", text::duration(left)),
        None => "never expires".to_owned(),
    });
    facts.push(format!("ended: {}", action.then));
    Ok((target, does, facts, stale.into_iter().chain([owner]).collect()))
}

fn lease_values(lease: &AdapterLease) -> ActionValues {
    ActionValues {
        id: lease.id.clone(),
        who: lease.owner.clone(),
        attempt: None,
        since: lease.acquired_at,
        until: lease.expires_at,
        key: None,
    }
}

pub(super) fn changed(index: &PlanIndex<'_>, target: &AdapterTarget) -> Option<TargetChange> {
    let it = &target.installation;
    let is_it = |one: &Installation| one.oid == target.oid && one.prefix == it.prefix;
    let rows = index.snapshot.adapters.iter().find(|rows| is_it(&rows.installation))?;
    let change = |now: ActionValues| (now != target.values).then_some(TargetChange::OtherRow);
    match target.kind {
        ActionKind::Recover => {
            let read = rows.jobs.get(&Part::Running)?;
            change_in(read, |job| job.id == target.values.id, |job| change(values(job)))
        }
        ActionKind::Unlock => {
            change_in(&rows.leases, |lease| lease.id == target.values.id, |lease| change(lease_values(lease)))
        }
    }
}
