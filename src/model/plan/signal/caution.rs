//! What ending a session breaks, beside its own work.

use super::selected::SelectedSession;
use super::{hands, work};
use crate::model::backend::{Backend, State};
use crate::model::plan::context::PlanIndex;
use crate::model::plan::{Caution, CautionKind, Stake, Verb};
use crate::model::task::TaskRow;
use crate::model::work_queue::ItemRow;
use crate::model::written::has_written;
use crate::text;

/// From this age on what a transaction has written is much, in seconds.
const MUCH: f64 = 600.0;
/// How many tasks, items and leases are told each.
const TOLD: usize = 3;

/// Everything that is to be said.
pub(super) fn of(index: &PlanIndex<'_>, verb: Verb, pick: &SelectedSession) -> Vec<Caution> {
    let Some(backend) = index.backend(pick.pid) else { return Vec::new() };
    let mut cautions = Vec::new();
    if let Some(worker) = pick.via {
        let words = format!("{worker} is a parallel worker of it: its leader, {}, is meant", pick.pid);
        cautions.push(Caution::new(CautionKind::ParallelWorker, words));
    }
    cautions.extend(kind(backend));
    cautions.extend(sync_rep(backend));
    cautions.extend(statement(backend));
    cautions.extend(program(backend));
    if verb == Verb::Cancel {
        cautions.extend(futile(backend));
    } else {
        cautions.extend(owned(index, pick.pid));
    }
    cautions.extend(written(index, backend));
    cautions.extend(old(index));
    cautions
}

fn kind(backend: &Backend) -> Option<Caution> {
    use CautionKind as K;
    let query = backend.query.as_ref().map_or("", |query| query.unredacted());
    let (kind, words) = match backend.backend_type.as_deref()? {
        "client backend" | "parallel worker" => return None,
        "autovacuum worker" if backend.prevents_wraparound() => (
            K::Wraparound,
            "it prevents wraparound: it comes back at once, and without it the server stops taking writes in the end"
                .to_owned(),
        ),
        "autovacuum worker" => {
            (K::Autovacuum, "autovacuum starts it again; until it gets through, dead rows stay".to_owned())
        }
        "walsender" if starts_with(query, "BASE_BACKUP") => {
            (K::WalSender, "a base backup is lost, and has to begin anew".to_owned())
        }
        "walsender" => (
            K::WalSender,
            "it feeds a standby or another receiver, which connects again; commits that wait for that one wait on"
                .to_owned(),
        ),
        worker if worker.starts_with("logical replication") => (
            K::LogicalReplication,
            "it applies a subscription: the server starts it again, and it goes on where it was".to_owned(),
        ),
        worker => {
            let worker = text::one_line(worker);
            (K::BackgroundWorker, format!("a background worker, {worker}: who registered it may not start it again"))
        }
    };
    Some(Caution::new(kind, words))
}

/// Who waits for a standby has committed already (`SyncRepWaitForLSN` in `src/backend/replication/syncrep.c`).
fn sync_rep(backend: &Backend) -> Option<Caution> {
    let waits = backend.wait_event.as_deref() == Some("SyncRep");
    waits.then(|| {
        let words = "it has committed here and waits for a standby to confirm: that stands, and may be lost with this server";
        Caution::new(CautionKind::SyncRep, words)
    })
}

/// Statements that leave something behind when they do not end well.
fn statement(backend: &Backend) -> Option<Caution> {
    if backend.state != Some(State::Active) {
        return None;
    }
    let words = upper_words(backend.query.as_ref()?.unredacted());
    let is = |start: &[&str]| {
        words.iter().zip(start).filter(|(word, start)| word == *start).count() == start.len()
    };
    let concurrently = words.iter().any(|word| word == "CONCURRENTLY");
    let left = if concurrently && (is(&["CREATE", "INDEX"]) || is(&["CREATE", "UNIQUE", "INDEX"])) {
        "CREATE INDEX CONCURRENTLY leaves an invalid index behind: drop it"
    } else if concurrently && is(&["REINDEX"]) {
        "REINDEX CONCURRENTLY leaves an invalid index behind (…_ccnew or …_ccold): drop it"
    } else if concurrently && is(&["ALTER", "TABLE"]) && words.iter().any(|word| word == "DETACH") {
        "the partition stays half detached: ALTER TABLE … DETACH PARTITION … FINALIZE ends that"
    } else {
        return None;
    };
    Some(Caution::new(CautionKind::HalfDone, left))
}

/// The first words of a query, without its comments.
fn upper_words(query: &str) -> Vec<String> {
    const HEAD: usize = 2_000;
    const WORDS: usize = 24;
    let mut rest: &str =
        query.char_indices().nth(HEAD).map_or(query, |(end, _)| query.get(..end).unwrap_or(query));
    let mut plain = String::new();
    while let Some(start) = rest.find(['-', '/']) {
        let (before, comment) = rest.split_at(start);
        plain.push_str(before);
        let end = match comment.get(..2) {
            Some("--") => comment.find('\n').unwrap_or(comment.len()),
            Some("/*") => comment.find("*/").map_or(comment.len(), |end| end + 2),
            _ => 1,
        };
        plain.push(' ');
        rest = comment.get(end..).unwrap_or_default();
    }
    plain.push_str(rest);
    plain.split_whitespace().take(WORDS).map(str::to_ascii_uppercase).collect()
}

fn starts_with(query: &str, word: &str) -> bool {
    upper_words(query).first().is_some_and(|first| first == word)
}

/// Programs of which somebody will miss the result.
fn program(backend: &Backend) -> Option<Caution> {
    let application = backend.application.as_deref()?;
    let (kind, words) = match application {
        "locktop" => (CautionKind::Locktop, "another locktop session"),
        "pg_dump" | "pg_dumpall" => (CautionKind::Tool, "a dump is lost, and has to begin anew"),
        "pg_restore" => (CautionKind::Tool, "a restore stays half done"),
        "pg_basebackup" => (CautionKind::Tool, "a base backup is lost, and has to begin anew"),
        "vacuumdb" | "reindexdb" | "clusterdb" => (CautionKind::Tool, "maintenance by hand is broken off"),
        _ => return None,
    };
    Some(Caution::new(kind, words))
}

/// What does not answer to a cancelled query.
fn futile(backend: &Backend) -> Option<Caution> {
    let sends = backend.wait_event_type.as_deref() == Some("Client")
        && backend.wait_event.as_deref() == Some("ClientWrite");
    sends.then(|| {
        let words = "its client does not read what it is sent: the query is cancelled only when it does; K ends the session";
        Caution::new(CautionKind::Futile, words)
    })
}

/// What the session has in hand.
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
    tell(
        CautionKind::Task,
        tasks,
        "runs",
        "its worker stops that, and the attempt has failed; R recovers it",
    );
    let attempt = |row: &ItemRow| row.item(index.snapshot).and_then(|item| item.attempt);
    let items = work::items(index, pid)
        .map(|row| (row.name(index.snapshot), Stake::Item(row.id, attempt(row))))
        .collect();
    tell(CautionKind::Item, items, "works on", "the attempt is lost; R on the queue puts it back");
    let leases =
        work::leases(index, pid).map(|row| (lease_words(row), Stake::Lease(hands::held(row)))).collect();
    tell(
        CautionKind::Lease,
        leases,
        "has lease",
        "nobody gives it back, and others wait until it has expired",
    );
    cautions
}

fn lease_words(row: &crate::model::lease::LeaseRow) -> String {
    let left = row.left.filter(|left| *left > 0.0).map(|left| format!(", {} left", text::duration(left)));
    format!("{} of {}{}", row.name, row.source, left.unwrap_or_default())
}

fn written(index: &PlanIndex<'_>, backend: &Backend) -> Option<Caution> {
    let age = index.age(backend.xact_start?);
    let much = has_written(index.graph, backend) && age >= MUCH;
    much.then(|| {
        let words = format!("what it has written in {} is undone", text::duration(age));
        Caution::new(CautionKind::Written, words)
    })
}

/// What is shown is not of this moment: the server compares all the same.
fn old(index: &PlanIndex<'_>) -> Option<Caution> {
    let stale = [
        (&index.snapshot.backends.error, index.snapshot.backends.taken_at),
        (&index.snapshot.locks.error, index.snapshot.locks.taken_at),
    ];
    let (_, at) = stale.into_iter().find(|(error, _)| error.is_some())?;
    let age = at.map(|at| format!(" by {}", index.age_text(at))).unwrap_or_default();
    Some(Caution::new(
        CautionKind::Old,
        format!("the data is old{age}: whom it blocks and frees is not of now"),
    ))
}
