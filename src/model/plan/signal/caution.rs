use super::selected::SelectedSession;
use super::{hands, work};
use crate::model::backend::Backend;
use crate::model::plan::context::PlanIndex;
use crate::model::plan::{Caution, CautionKind, SessionTarget, Stake, Verb};
use crate::model::task::TaskRow;
use crate::model::work_queue::ItemRow;
use crate::model::written::{self, Written};
use crate::text;

/// Age of a transaction, in seconds, from which its writes count as a large amount.
const MUCH: f64 = 600.0;
/// Maximum number of tasks, items and leases shown, each.
const TOLD: usize = 3;

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
    cautions.extend(written(index, backend));
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
    let mut tell = |kind: CautionKind, owned: Vec<(String, Stake)>, what: &str, then: &str| {
        let (names, about): (Vec<String>, Vec<Stake>) = owned.into_iter().unzip();
        let told = names.iter().take(TOLD).map(|name| text::one_line(name)).collect::<Vec<_>>().join(", ");
        let more = match names.len() {
            0 => return,
            1..=TOLD => String::new(),
            many => format!(" and {} more", many - TOLD),
        };
        cautions.push(Caution { about, ..Caution::new(kind, format!("{what} {told}{more}: {then}")) });
    };
    let execution = |row: &TaskRow| row.execution(index.snapshot).map(|execution| execution.id);
    let tasks = work::tasks(index, pid)
        .map(|row| (row.name(index.snapshot).to_string(), Stake::Execution(row.task, execution(row))))
        .collect();
    tell(CautionKind::Task, tasks, "runs", "its worker stops it, and the attempt has failed; R recovers it");
    let attempt = |row: &ItemRow| row.item(index.snapshot).and_then(|item| item.attempt);
    let items = work::items(index, pid)
        .map(|row| (row.name(index.snapshot), Stake::Item(row.id, attempt(row))))
        .collect();
    tell(CautionKind::Item, items, "works on", "the attempt is lost; R on the queue returns it");
    let leases =
        work::leases(index, pid).map(|row| (lease_words(row), Stake::Lease(hands::held(row)))).collect();
    tell(CautionKind::Lease, leases, "has lease", "it is not released, and others wait until it expires");
    cautions
}

fn lease_words(row: &crate::model::lease::LeaseRow) -> String {
    let left = row.left.filter(|left| *left > 0.0).map(|left| format!(", {} left", text::duration(left)));
    format!("{} of {}{}", row.name, row.source, left.unwrap_or_default())
}

fn written(index: &PlanIndex<'_>, backend: &Backend) -> Option<Caution> {
    let age = index.age(backend.xact_start?);
    let much = written::written(index.graph, backend) == Written::Maybe && age >= MUCH;
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
