//! Why a session is not signalled, and what to warn of before it is.

use super::work;
use super::work::SelectedSession;
use crate::model::backend::Backend;
use crate::model::consequence::{has_query, of_the_server};
use crate::model::lock::{LockMode, VirtualTransaction};
use crate::model::plan::{Caution, CautionKind, PlanIndex, SessionTarget, Verb, WorkAtRisk};
use crate::model::task::TaskRow;
use crate::model::work_queue::ItemRow;
use crate::model::{session_facts, session_facts::WriteKnowledge};
use crate::text;

/// Age of a transaction, in seconds, from which its writes count as a large amount.
const MUCH: f64 = 600.0;
/// Maximum number of tasks, items and leases shown, each.
const MOST_NAMED: usize = 3;

pub(super) fn of(index: &PlanIndex<'_>, verb: Verb, pick: &SelectedSession) -> Vec<Caution> {
    let Some(backend) = index.backend(pick.pid) else { return Vec::new() };
    let mut cautions = Vec::new();
    if let Some(worker) = pick.via {
        let words = format!("{worker} is a parallel worker; its leader is {}", pick.pid);
        cautions.push(Caution::new(CautionKind::ParallelWorker, words));
    }
    cautions.extend(program(backend));
    if verb == Verb::Terminate {
        cautions.extend(owned(index, pick.pid));
    }
    cautions.extend(much_written(index, backend));
    cautions.extend(old(index));
    cautions
}

/// The session is terminated for a lock that outlives its clients.
pub(super) fn keeps(index: &PlanIndex<'_>, target: &SessionTarget) -> Caution {
    let lock = target.holds.map(|(tag, _)| index.lock_words(&tag, target.pid, None)).unwrap_or_default();
    let words = format!(
        "the session keeps {lock} while it runs other statements, in a pool those of other clients; the query below did not take \
         it. Terminating the session costs its client of the moment one statement, or the transaction it is in"
    );
    Caution::new(CautionKind::Keeps, words)
}

/// Programs whose result would be lost.
fn program(backend: &Backend) -> Option<Caution> {
    let application = backend.application.as_deref()?;
    let (kind, words) = match application {
        "locktop" => (CautionKind::Locktop, "another locktop session"),
        "locktop lock" | "locktop lead" => {
            (CautionKind::Tool, "the program that runs under its lock is ended")
        }
        "pg_dump" | "pg_dumpall" => (CautionKind::Tool, "a dump is lost, and must be started again"),
        "pg_restore" => (CautionKind::Tool, "a restore remains incomplete"),
        "pg_basebackup" => (CautionKind::Tool, "a base backup is lost, and must be started again"),
        "vacuumdb" | "reindexdb" | "clusterdb" => (CautionKind::Tool, "manual maintenance is interrupted"),
        _ => return None,
    };
    Some(Caution::new(kind, words))
}

fn owned(index: &PlanIndex<'_>, pid: i32) -> Vec<Caution> {
    let mut cautions = Vec::new();
    let mut tell = |kind: CautionKind, owned: Vec<(String, WorkAtRisk)>, what: &str, then: &str| {
        let (names, about): (Vec<String>, Vec<WorkAtRisk>) = owned.into_iter().unzip();
        let told =
            names.iter().take(MOST_NAMED).map(|name| text::one_line(name)).collect::<Vec<_>>().join(", ");
        let more = match names.len() {
            0 => return,
            1..=MOST_NAMED => String::new(),
            many => format!(" and {} more", many - MOST_NAMED),
        };
        cautions.push(Caution { about, ..Caution::new(kind, format!("{what} {told}{more}: {then}")) });
    };
    let execution = |row: &TaskRow| row.execution(index.snapshot).map(|execution| execution.id);
    let tasks = work::tasks(index, pid)
        .map(|row| (row.name(index.snapshot).to_string(), WorkAtRisk::Execution(row.task, execution(row))))
        .collect();
    tell(CautionKind::Task, tasks, "runs", "its worker stops it, and the attempt has failed; R recovers it");
    let attempt = |row: &ItemRow| row.item(index.snapshot).and_then(|item| item.attempt);
    let items = work::items(index, pid)
        .map(|row| (row.name(index.snapshot), WorkAtRisk::Item(row.id, attempt(row))))
        .collect();
    tell(CautionKind::Item, items, "works on", "the attempt is lost; R on the queue returns it");
    let leases =
        work::leases(index, pid).map(|row| (lease_words(row), WorkAtRisk::Lease(work::held(row)))).collect();
    tell(CautionKind::Lease, leases, "has lease", "it is not released, and others wait until it expires");
    cautions
}

fn lease_words(row: &crate::model::lease::LeaseRow) -> String {
    let left = row.left.filter(|left| *left > 0.0).map(|left| format!(", {} left", text::duration(left)));
    format!("{} of {}{}", row.name, row.source, left.unwrap_or_default())
}

fn much_written(index: &PlanIndex<'_>, backend: &Backend) -> Option<Caution> {
    let age = index.age(backend.xact_start?);
    let much = session_facts::write_knowledge(&index.graph, backend) == WriteKnowledge::Maybe && age >= MUCH;
    much.then(|| {
        let words = format!("its changes in {} are rolled back", text::duration(age));
        Caution::new(CautionKind::Written, words)
    })
}

fn old(index: &PlanIndex<'_>) -> Option<Caution> {
    let stale = [
        (&index.snapshot.backends.error, index.snapshot.backends.taken_at),
        (&index.snapshot.locks.error, index.snapshot.locks.taken_at),
    ];
    let (_, at) = stale.into_iter().find(|(error, _)| error.is_some())?;
    let age = at.map(|at| format!(" by {}", index.age_text(at))).unwrap_or_default();
    Some(Caution::new(CautionKind::Old, format!("the data is old{age}: its waiters may have changed")))
}

pub(super) fn check<'a>(
    index: &PlanIndex<'a>,
    verb: Verb,
    pick: &SelectedSession,
) -> Result<&'a Backend, String> {
    if index.is_own(pick.pid) {
        return Err("this is locktop's own session".to_owned());
    }
    let Some(backend) = index.backend(pick.pid) else { return Err("has ended".to_owned()) };
    if pick.start.is_some() && backend.backend_start.is_some() && backend.backend_start != pick.start {
        return Err("has ended; another session has its pid now".to_owned());
    }
    if let Some(why) = backend.backend_type.as_deref().and_then(of_the_server) {
        return Err(why.to_owned());
    }
    let (user, kind) = (backend.user.as_deref(), backend.backend_type.as_deref());
    if let Some(lack) = index.context.rights.and_then(|rights| rights.lacks(verb, user, kind)) {
        return Err(lack.words);
    }
    if backend.backend_start.is_none() {
        let role = index.snapshot.server().map(|server| text::identifier(&server.user)).unwrap_or_default();
        return Err(format!(
            "its start is hidden from this role, so it cannot be distinguished from the next session with \
             its pid: GRANT pg_read_all_stats TO {role}"
        ));
    }
    if verb == Verb::Cancel {
        has_query(backend).map(|()| backend).map_err(str::to_owned)
    } else {
        Ok(backend)
    }
}

/// The statement that ends a prepared transaction, which has no process; its owner must run it in its database.
pub(super) fn prepared(index: &PlanIndex<'_>, xact: VirtualTransaction) -> String {
    let Some(row) = index.prepared(xact) else {
        return "is a prepared transaction and has no process; ROLLBACK PREPARED with its name \
                in pg_prepared_xacts ends it"
            .to_owned();
    };
    let harmless = |name: &str| text::one_line(name).into_owned();
    let database = row.database.as_deref().map_or_else(String::new, |name| format!(" in {}", harmless(name)));
    let owner = row
        .owner
        .as_deref()
        .map_or_else(String::new, |name| format!(" as {} or a superuser", harmless(name)));
    let gid = text::literal(&row.gid);
    format!("has no process to terminate. Run{database}{owner}: ROLLBACK PREPARED {gid}")
}

/// The session that works on an execution of a published log, and what else ends with it. It works on the row as long as
/// the row is as seen and the session holds the key, whatever it runs meanwhile.
pub(in crate::model::plan) fn of_execution(
    index: &PlanIndex<'_>,
    row: &TaskRow,
) -> Result<(SessionTarget, Vec<Caution>), String> {
    let (Some(pid), Some(tag)) = (row.holder, row.tag) else {
        return Err("a prepared transaction holds its key, not a session".to_owned());
    };
    let pick = SelectedSession::new(pid, None);
    let backend = check(index, Verb::Terminate, &pick)?;
    let start = backend.backend_start.ok_or("its start is not known")?;
    let target = SessionTarget::by_lock(backend, start, (tag, LockMode::Exclusive));
    let execution = row.execution(index.snapshot).map(|execution| execution.id);
    let itself = [WorkAtRisk::Execution(row.task, execution)];
    let cautions = of(index, Verb::Terminate, &pick).into_iter();
    Ok((target, cautions.filter(|caution| caution.about != itself).collect()))
}
