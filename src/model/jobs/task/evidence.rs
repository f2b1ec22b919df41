//! Evidence about a running execution, from the locks of this snapshot and the remembered earlier ones. See [`Sign`] for the rule.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Execution, TaskKey, TaskRow, TaskSet, also_of};
use crate::model::Timestamp;
use crate::model::backend::{Backend, BackendId};
use crate::model::judge::{Holder, KeyProof, Sign};
use crate::model::lock_key::LockKey;
use crate::model::snapshot::{Epoch, Snapshot, WorkLocks};
use crate::text::{duration, one_line};

/// Observations from earlier snapshots. Valid only for one connection to one run of one server in one role: a reconnect,
/// a restart or a promotion resets them.
#[derive(Debug, Clone, Default)]
pub struct TaskWatch {
    pub(crate) epoch: Option<Epoch>,
    /// Executions, by set and id, and since when their key was free in every snapshot.
    pub(crate) free: FxHashMap<(u32, i64), Timestamp>,
    /// The last seen holder of the key of an execution, by set and id.
    pub(crate) seen: FxHashMap<(u32, i64), KeyHolder>,
    /// Process and key of keys held without a running task, and since when every snapshot showed them.
    pub(crate) idle: FxHashMap<(i32, i64), Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct KeyHolder {
    pub(crate) pid: i32,
    /// Start of the session, if this role may see it.
    pub(crate) start: Option<Timestamp>,
    /// The session was linked to the worker.
    pub(crate) tied: bool,
    pub(crate) ended: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct KeySeen {
    pub(super) key: Sign,
    /// When the key was first seen free.
    pub(super) since: Option<Timestamp>,
    /// The last session seen to hold the key, if it has ended.
    pub(super) ended: Option<BackendId>,
}

#[derive(Debug, Default)]
pub(super) struct Holders {
    /// Executions that can own the held key: at most one of several running executions with the same key.
    rows: FxHashSet<i64>,
    /// Executions whose worker is linked to the holder.
    tied: FxHashSet<i64>,
}

pub(super) fn holders(before: &TaskWatch, snapshot: &Snapshot, held: &WorkLocks, set: &TaskSet) -> Holders {
    let mut best: FxHashMap<LockKey, (u8, i64)> = FxHashMap::default();
    let mut tied = FxHashSet::default();
    for execution in set.executions.last_rows().iter().filter(|row| row.is_running()) {
        let Some(number) = set.key(execution).map(TaskKey::lock_key) else { continue };
        let Some(pid) = held.holders.get(&number) else { continue };
        let is_tied = is_tied(before, snapshot, set, execution, *pid);
        if is_tied {
            tied.insert(execution.id);
        }
        let is_logged = execution.backend_pid.is_some() && execution.backend_pid == *pid;
        let tie = if is_logged { 2 } else { u8::from(is_tied) };
        let rank = (tie, execution.id);
        let known = best.entry(number).or_insert(rank);
        *known = rank.max(*known);
    }
    Holders { rows: best.into_values().map(|(_, id)| id).collect(), tied }
}

/// Whether the application name or statement of a process names the worker of an execution, now or earlier while the same
/// session held the key.
fn is_tied(
    before: &TaskWatch,
    snapshot: &Snapshot,
    set: &TaskSet,
    execution: &Execution,
    pid: Option<i32>,
) -> bool {
    let Some(backend) = pid.and_then(|pid| snapshot.backend(pid)) else { return false };
    let seen = before.seen.get(&(set.tables.table, execution.id));
    let was = seen.is_some_and(|seen| {
        seen.tied && seen.pid == backend.pid && seen.start.is_some() && seen.start == backend.backend_start
    });
    was || execution.worker.as_deref().is_some_and(|worker| names_worker(backend, worker))
}

/// Whether the application name of a session contains the worker's name as a whole word, or its statement contains it in
/// quotes.
pub fn names_worker(backend: &Backend, worker: &str) -> bool {
    let is_word = |text: &str| {
        text.match_indices(worker).any(|(at, _)| {
            let ends = |char: Option<char>| char.is_none_or(|char| !char.is_alphanumeric());
            let (front, back) = (text.get(..at), text.get(at + worker.len()..));
            ends(front.and_then(|text| text.chars().next_back()))
                && ends(back.and_then(|text| text.chars().next()))
        })
    };
    let quoted = |text: &str| text.contains(&format!("'{worker}'"));
    !worker.is_empty()
        && (backend.application.as_deref().is_some_and(is_word)
            || backend.query.as_ref().is_some_and(|query| quoted(query.unredacted())))
}

pub(super) struct KeyEvidence<'a> {
    pub(super) before: &'a TaskWatch,
    pub(super) after: &'a mut TaskWatch,
    pub(super) snapshot: &'a Snapshot,
    pub(super) held: &'a WorkLocks,
    pub(super) set: &'a TaskSet,
    pub(super) holders: &'a Holders,
}

impl KeyEvidence<'_> {
    pub(super) fn of(&mut self, execution: &Execution) -> KeySeen {
        let key = self.set.key(execution).filter(|_| self.held.is_known && self.set.executions.is_known());
        match key {
            None => KeySeen::default(),
            Some(key) => match self.held.holders.get(&key.lock_key()).copied() {
                Some(pid) => {
                    KeySeen { key: Sign::Held(pid, self.holder(execution, key, pid)), ..KeySeen::default() }
                }
                None => self.is_free(execution, key),
            },
        }
    }

    fn holder(&mut self, execution: &Execution, key: TaskKey, pid: Option<i32>) -> Holder {
        let place = (self.set.tables.table, execution.id);
        let tied = self.holders.tied.contains(&execution.id);
        if let Some(backend) = pid.and_then(|pid| self.snapshot.backend(pid)) {
            let seen = KeyHolder { pid: backend.pid, start: backend.backend_start, tied, ended: false };
            self.after.seen.insert(place, seen);
        }
        let logged = execution.backend_pid;
        // If other tables share this key, a free key is still proof, but a held key proves nothing unless the log names the
        // session.
        let shared = also_of(&self.snapshot.task_sets, self.set, key).is_some();
        match key {
            _ if !self.holders.rows.contains(&execution.id) => Holder::OtherRun,
            _ if logged.is_some() && logged == pid => Holder::Worker,
            _ if logged.is_some() => Holder::OtherSession,
            TaskKey::Own(_) if shared => Holder::OtherSession,
            TaskKey::Own(_) => Holder::Worker,
            TaskKey::Raw(_) if tied => Holder::Worker,
            TaskKey::Raw(_) => Holder::Unlinked,
        }
    }

    fn is_free(&mut self, execution: &Execution, key: TaskKey) -> KeySeen {
        let now = self.snapshot.taken_at;
        let place = (self.set.tables.table, execution.id);
        let since = self.before.free.get(&place).copied().unwrap_or(now).min(now);
        self.after.free.insert(place, since);
        let was_held = self.before.seen.get(&place).map(|seen| {
            let ended =
                seen.start.and_then(|start| self.snapshot.has_session(seen.pid, start)) == Some(false);
            KeyHolder { ended: seen.ended || ended, ..*seen }
        });
        self.after.seen.extend(was_held.map(|seen| (place, seen)));
        let proof = self.set.proof(execution, key);
        let proof = proof.or_else(|| was_held.filter(|seen| seen.ended).map(|_| KeyProof::SeenEnding));
        // A key held a moment ago cannot have been free for longer. In locktop's own tables the heartbeat comes from the session
        // that holds the key, so the server's timestamps are as reliable, and the same for every observer.
        let sign = self.last_sign(execution);
        let from = match (self.set.tables.own_keys, was_held.is_some()) {
            (true, _) => sign,
            (false, true) => None,
            (false, false) => sign.map(|sign| sign.min(since)),
        };
        let ended = was_held.filter(|seen| seen.ended);
        let ended = ended.map(|seen| BackendId { pid: seen.pid, backend_start: seen.start });
        KeySeen { key: Sign::Free { since: from.or(Some(since)), proof }, since: Some(since), ended }
    }

    /// The latest of server start, execution start and heartbeat: no session that held a key before a server start still
    /// does. None if not known.
    fn last_sign(&self, execution: &Execution) -> Option<Timestamp> {
        let up = self.snapshot.up_since()?;
        let began = execution.started_at?;
        Some(up.max(began).max(execution.heartbeat_at.unwrap_or(began)))
    }
}

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
