//! Idle sessions that hold session-level locks.

use rustc_hash::{FxHashMap, FxHashSet};

use super::check_input::CheckInput;
use super::{Finding, LIMIT, Severity, Subject};
use crate::model::Timestamp;
use crate::model::backend::{Backend, State};
use crate::model::lock::{Lock, LockTag, LockType};
use crate::model::lock_key::LockKey;
use crate::model::namespace;
use crate::model::observed::Observed;
use crate::model::task::{TaskRow, TaskState};
use crate::model::wait_graph::Party;

const CHECK: &str = "idle_session_lock";

/// A backend that is idle outside a transaction can hold advisory locks only at session level. It has held them since
/// before it became idle, so its idle time is a lower bound. Workers that elect a leader do this for days, so it is only
/// informational. A backend that blocks others is a root, and not reported twice.
pub(super) fn check(look: &CheckInput<'_>) -> Vec<Finding> {
    // State and locks must be from the same poll.
    let (Observed::Read(backends), Observed::Read(locks)) =
        (look.snapshot.backends.observed(), look.snapshot.locks.observed())
    else {
        return Vec::new();
    };
    let mut idle = idle(look, backends);
    if idle.is_empty() {
        return Vec::new();
    }
    let told: FxHashSet<LockTag> = look.tasks.rows.iter().filter_map(task_lock).collect();
    for lock in locks.iter().filter(|lock| lock.granted && lock.tag.locktype() == LockType::Advisory) {
        if told.contains(&lock.tag) || is_name(&lock.tag) {
            continue;
        }
        if let Some(holder) = lock.pid.and_then(|pid| idle.get_mut(&pid)) {
            holder.first.get_or_insert(lock);
            holder.locks += 1;
        }
    }
    let mut holders: Vec<_> = idle.into_values().filter(|holder| holder.locks > 0).collect();
    holders.sort_by_key(|holder| (holder.since, holder.backend.pid));
    let left_out = holders.len().saturating_sub(LIMIT);
    let listed = holders.into_iter().take(LIMIT).filter_map(|holder| holder.finding(look));
    listed.chain(Finding::more(CHECK, left_out)).collect()
}

/// The lock on a worker's name is held as long as the worker is alive, also while it is idle.
fn is_name(tag: &LockTag) -> bool {
    matches!(tag.advisory_key(), Some(LockKey::Bigint(key)) if namespace::id_in(namespace::WORKERS, key).is_some())
}

/// The lock of a running task is expected, and a leaked one is reported separately.
fn task_lock(row: &TaskRow) -> Option<LockTag> {
    row.tag.filter(|_| row.execution.is_some() || row.state == TaskState::Leaked)
}

struct Holder<'a> {
    backend: &'a Backend,
    since: Timestamp,
    first: Option<&'a Lock>,
    locks: usize,
}

impl Holder<'_> {
    fn finding(self, look: &CheckInput<'_>) -> Option<Finding> {
        let pid = self.backend.pid;
        let age = look.age_text(Some(self.since));
        let target = look.target(&self.first?.tag, Some(pid));
        let more = if self.locks > 1 { format!(" and {} more", self.locks - 1) } else { String::new() };
        let summary = format!("{pid} idle{age} holds {target}{more}, no waiters");
        let finding = Finding::new(CHECK, Severity::Info, summary, Subject::Backend(self.backend.id()));
        let finding = finding.short(format!("{pid} idle{age} holds {target}{more}"));
        let finding = finding.about(look.about(pid, None)).running(look.statement(pid));
        Some(Finding { since: Some(self.since), help: Some("terminate"), ..finding })
    }
}

fn idle<'a>(look: &CheckInput<'a>, backends: &'a [Backend]) -> FxHashMap<i32, Holder<'a>> {
    let holder = |backend: &'a Backend| {
        let since = backend.state_change.filter(|_| backend.state == Some(State::Idle))?;
        let long = look.age(since) >= look.thresholds.idle_lock;
        long.then_some((backend.pid, Holder { backend, since, first: None, locks: 0 }))
    };
    let mut idle: FxHashMap<_, _> = backends.iter().filter_map(holder).collect();
    for root in &look.graph.roots {
        if let Party::Backend(pid) = root.party {
            idle.remove(&pid);
        }
    }
    idle
}
