use super::{TaskRow, also_of};
use crate::model::judge::{Holder, KeyProof, Sign};
use crate::model::lock_key::LockKey;
use crate::model::snapshot::Snapshot;
use crate::text::{duration, one_line};

/// Why an execution has its state: the holder of its key, and what that proves. One line, fit for a screen; empty for a
/// task without a running execution.
pub fn evidence(row: &TaskRow, snapshot: &Snapshot) -> String {
    let Some(execution) = row.execution(snapshot) else { return String::new() };
    let key = key(row);
    let holder = match row.holder {
        Some(pid) => format!("{pid} holds {key}"),
        None => format!("a prepared transaction holds {key}"),
    };
    match row.key {
        _ if snapshot.server().is_none_or(|server| server.in_recovery) => {
            "the locks of the primary are not visible on a standby".to_owned()
        }
        Sign::Unseen => unseen(row, snapshot).to_owned(),
        Sign::Free { proof, .. } => {
            let seen = row.since.map(|since| (snapshot.taken_at - since).as_seconds_f64());
            let seen = seen.filter(|seconds| *seconds >= 1.0);
            let seen =
                seen.map_or_else(String::new, |seconds| format!(", seen free for {}", duration(seconds)));
            let then =
                row.orphan_in.map_or_else(String::new, |left| format!(": an orphan in {}", duration(left)));
            format!("no session holds {key}{}{seen}{then}", proved(proof))
        }
        Sign::Held(_, Holder::Worker) => holder,
        Sign::Held(_, Holder::Unlinked) => match execution.worker.as_deref() {
            Some(worker) => format!("{holder}; nothing links it to {}", one_line(worker)),
            None => format!("{holder}; the log names no worker"),
        },
        Sign::Held(_, Holder::OtherRun) => format!("{holder} for another execution: this row is stale"),
        Sign::Held(_, Holder::OtherSession) => {
            let set = row.set(snapshot);
            let also = set.and_then(|set| also_of(&snapshot.task_sets, set, set.key(execution)?));
            match (also, execution.backend_pid) {
                (Some(also), None) => {
                    format!("{holder}, which is also the key of a task of {}", one_line(also))
                }
                (_, Some(logged)) => format!("{holder}; the log names session {logged}"),
                (None, None) => holder,
            }
        }
    }
}

/// `key 2`, or `its key` if the number is not known.
fn key(row: &TaskRow) -> String {
    match row.tag.and_then(|tag| tag.advisory_key()) {
        Some(LockKey::Bigint(number)) => format!("key {number}"),
        _ => "its key".to_owned(),
    }
}

fn proved(proof: Option<KeyProof>) -> &'static str {
    match proof {
        Some(KeyProof::Namespace) => "",
        Some(KeyProof::Config) => " (its key according to the config)",
        Some(KeyProof::Row) => " (the id of its task, and its lock_id)",
        Some(KeyProof::Function) => " (locked by a function of its schema)",
        Some(KeyProof::SeenEnding) => ", and the session that held it has ended",
        None => ", if its worker locks that key",
    }
}

fn unseen(row: &TaskRow, snapshot: &Snapshot) -> &'static str {
    if !snapshot.locks.is_known() {
        "the locks could not be read"
    } else if row.set(snapshot).is_none_or(|set| !set.executions.is_known()) {
        "the log could not be read"
    } else {
        "its row stores no key ([tables] task_key in the config names the key)"
    }
}
