//! Locks of idle sessions, and the size of the lock table.

use rustc_hash::{FxHashMap, FxHashSet};

use super::check_input::CheckInput;
use super::{Finding, Severity, Subject, listed, party_text};
use crate::model::backend::{Backend, State};
use crate::model::lock::{Lock, LockMode, LockTag, LockType};
use crate::model::lock_key::LockKey;
use crate::model::section::Observed;
use crate::model::snapshot::Server;
use crate::model::task::{JobState, TaskRow};
use crate::model::view::SnapshotView;
use crate::model::wait_graph::Party;
use crate::model::{Timestamp, namespace, words};
use crate::order::SortExt;
use crate::text::count;

const IDLE_SESSION_LOCK: &str = "idle_session_lock";

/// Idle sessions that hold session-level locks.
///
/// A backend that is idle outside a transaction can hold advisory locks only at session level. It has held them since
/// before it became idle, so its idle time is a lower bound. Workers that elect a leader do this for days, so it is only
/// informational. A backend that blocks others is a root, and not reported twice.
pub(super) fn idle_locks(input: &CheckInput<'_>) -> Vec<Finding> {
    // State and locks must be from the same poll.
    let (Observed::Read(backends), Observed::Read(locks)) =
        (input.snapshot.backends.observed(), input.snapshot.locks.observed())
    else {
        return Vec::new();
    };
    let mut idle = idle_sessions(input, backends);
    if idle.is_empty() {
        return Vec::new();
    }
    let reported: FxHashSet<LockTag> = input.tasks.rows.iter().filter_map(task_lock).collect();
    for lock in locks.iter().filter(|lock| lock.granted && lock.tag.locktype() == LockType::Advisory) {
        if reported.contains(&lock.tag) || is_name(&lock.tag) {
            continue;
        }
        if let Some(holder) = lock.pid.and_then(|pid| idle.get_mut(&pid)) {
            holder.first.get_or_insert(lock);
            holder.locks += 1;
        }
    }
    let mut holders: Vec<_> = idle.into_values().filter(|holder| holder.locks > 0).collect();
    holders.order_by_key(|holder| (holder.since, holder.backend.pid));
    listed(IDLE_SESSION_LOCK, holders.into_iter(), |holder| holder.finding(input))
}

/// The lock on a worker's name is held as long as the worker is alive, also while it is idle.
fn is_name(tag: &LockTag) -> bool {
    matches!(tag.advisory_key(), Some(LockKey::Bigint(key)) if namespace::id_in(namespace::WORKERS, key).is_some())
}

/// The lock of a running task is expected, and a leaked one is reported separately.
fn task_lock(row: &TaskRow) -> Option<LockTag> {
    row.tag.filter(|_| row.execution.is_some() || row.state == JobState::Leaked)
}

struct LockHolder<'a> {
    backend: &'a Backend,
    since: Timestamp,
    first: Option<&'a Lock>,
    locks: usize,
}

impl LockHolder<'_> {
    fn finding(self, input: &CheckInput<'_>) -> Option<Finding> {
        let pid = self.backend.pid;
        let age = input.age_text(Some(self.since));
        let target = input.target(&self.first?.tag, Some(pid));
        let more = if self.locks > 1 { format!(" and {} more", self.locks - 1) } else { String::new() };
        let summary = format!("{pid} idle{age} holds {target}{more}, no waiters");
        let finding =
            Finding::new(IDLE_SESSION_LOCK, Severity::Info, summary, Subject::Backend(self.backend.id()));
        let finding = finding.short(format!("{pid} idle{age} holds {target}{more}"));
        let finding = finding.about(input.about(pid, None)).running(input.statement(pid));
        Some(Finding { since: Some(self.since), help: Some("terminate"), ..finding })
    }
}

fn idle_sessions<'a>(input: &CheckInput<'a>, backends: &'a [Backend]) -> FxHashMap<i32, LockHolder<'a>> {
    let holder = |backend: &'a Backend| {
        let since = backend.state_change.filter(|_| backend.state == Some(State::Idle))?;
        let long = input.age(since) >= input.thresholds.idle_lock;
        long.then_some((backend.pid, LockHolder { backend, since, first: None, locks: 0 }))
    };
    let mut idle: FxHashMap<_, _> = backends.iter().filter_map(holder).collect();
    for root in &input.graph.roots {
        if let Party::Backend(pid) = root.party {
            idle.remove(&pid);
        }
    }
    idle
}

const LOCK_TABLE: &str = "lock_table";

const FILLING: f64 = 0.5;
const NEARLY_FULL: f64 = 0.75;

/// The shared lock table: once it is full, any session that requests one more lock fails with "out of shared memory", even if it has few
/// locks itself.
///
/// Compares the locks that are certainly in the table with its guaranteed capacity; unused shared memory can hold some
/// more.
pub(super) fn lock_table(input: &CheckInput<'_>) -> Vec<Finding> {
    let (Some(server), Observed::Read(locks)) = (input.snapshot.server(), input.snapshot.locks.observed())
    else {
        return Vec::new();
    };
    let room = f64::from(server.lock_slots);
    // With fewer rows the share cannot be reached.
    if room == 0.0 || as_f64(locks.len()) < room * FILLING {
        return Vec::new();
    }
    let (taken, most) = taken(locks, server);
    let share = as_f64(taken) / room;
    if share < FILLING {
        return Vec::new();
    }
    let severity = match share {
        share if share >= 1.0 => Severity::Critical,
        share if share >= NEARLY_FULL => Severity::Warning,
        _ => Severity::Info,
    };
    let percent = (share * 100.0).floor();
    let number = |many: usize| count(many as u64);
    let of = count(server.lock_slots.into());
    let by = most.map(|(party, has)| format!("; {} has {}", party_text(party), number(has)));
    let by = by.unwrap_or_default();
    let summary =
        format!("lock table has at least {} locks, {percent:.0}% of the guaranteed {of}{by}", number(taken));
    let subject = most.map_or(Subject::Server, |(party, _)| input.subject(party));
    let mut finding = Finding::new(LOCK_TABLE, severity, summary, subject)
        .short(format!("lock table has ≥{percent:.0}% of its guaranteed locks{by}"))
        .about("when it is full, statements fail with \"out of shared memory\" (53200): max_locks_per_transaction");
    if let Some((Party::Backend(pid), has)) = most {
        // Terminating it would empty more than half of the table.
        let is_most = (taken - has.min(taken)) < taken / 2;
        finding = Finding { help: is_most.then_some("terminate"), ..finding.running(input.statement(pid)) };
    }
    vec![finding]
}

/// How much of its guaranteed size the table uses, and which party has most: `lock table: 3% of 33,408 entries in use ·
/// most: 9508 app@report with 200`. If `pg_locks` does not show whether a lock is in the table, both bounds: `3% to 5%`.
/// None if not known.
pub fn table_fill(view: SnapshotView<'_>) -> Option<String> {
    let (Some(server), Observed::Read(locks)) = (view.snapshot.server(), view.snapshot.locks.observed())
    else {
        return None;
    };
    let room = server.lock_slots;
    let (taken, most) = taken(locks, server);
    let percent = |locks: usize| (as_f64(locks) * 100.0 / f64::from(room)).floor();
    // A lock has no more entries than rows.
    let (least, most_percent) = (percent(taken), percent(locks.len().max(taken)));
    let share = match view.snapshot.locks_omitted {
        0 if least >= most_percent => format!("{least:.0}%"),
        0 => format!("{least:.0}% to {most_percent:.0}%"),
        _ => format!("at least {least:.0}%"),
    };
    let most = most.map(|(party, has)| {
        let who = view.backend(party.pid()).map(|backend| format!(" {}", words::who(backend)));
        let (name, who) = (party_text(party), who.unwrap_or_default());
        format!(" · most: {name}{who} with {}", count(has as u64))
    });
    let of = count(room.into());
    (room > 0).then(|| format!("lock table: {share} of {of} entries in use{}", most.unwrap_or_default()))
}

/// A lower bound of the locks in the table, and the holder of most of them. `pg_locks` has a row for each mode of each
/// holder, including those that are not in the shared table: predicate locks, and locks in a backend's own fast-path slots
/// (`EligibleForRelationFastPath` in lock.c).
fn taken(locks: &[Lock], server: &Server) -> (usize, Option<(Party, usize)>) {
    let mut shared: FxHashSet<&LockTag> = FxHashSet::default();
    let mut weak: FxHashSet<&LockTag> = FxHashSet::default();
    let mut held: FxHashMap<Party, (usize, usize)> = FxHashMap::default();
    let in_table =
        |lock: &&Lock| lock.mode != LockMode::SIRead && lock.tag.locktype() != LockType::SafeSnapshot;
    for lock in locks.iter().filter(in_table) {
        let holder = lock.pid.map_or(Party::Prepared(lock.virtualtransaction), Party::Backend);
        let (sure, in_slots) = held.entry(holder).or_default();
        if may_be_in_a_slot(lock) {
            weak.insert(&lock.tag);
            *in_slots += 1;
        } else if lock.tag.locktype() != LockType::VirtualXid {
            shared.insert(&lock.tag);
            *sure += 1;
        }
    }
    let slots = slots(server);
    let beyond = |in_slots: usize| in_slots.saturating_sub(slots);
    let weak_only = weak.difference(&shared).count();
    let in_slots: usize = held.values().map(|(_, weak)| (*weak).min(slots)).sum();
    let one_has = held.values().map(|(_, weak)| beyond(*weak)).max().unwrap_or(0).min(weak_only);
    let most = held.iter().map(|(party, (sure, weak))| (*party, sure + beyond(*weak)));
    let most =
        most.filter(|(_, has)| *has > 0).max_by_key(|(party, has)| (*has, std::cmp::Reverse(party.pid())));
    (shared.len() + weak_only.saturating_sub(in_slots).max(one_has), most)
}

/// A lock on a relation of a database in one of the three weakest modes.
fn may_be_in_a_slot(lock: &Lock) -> bool {
    let is_weak = matches!(lock.mode, LockMode::AccessShare | LockMode::RowShare | LockMode::RowExclusive);
    is_weak
        && lock.granted
        && lock.pid.is_some()
        && lock.tag.locktype() == LockType::Relation
        && lock.tag.database() != Some(0)
}

/// Fast-path slots of a backend: 16 in a group (`FP_LOCK_SLOTS_PER_GROUP` in proc.h). Before version 18 there is one group,
/// since then as many as `max_locks_per_transaction` needs, rounded up to a power of two, at most 1024
/// (`InitializeFastPathLocks` in postinit.c).
fn slots(server: &Server) -> usize {
    const GROUP: u32 = 16;
    let groups = match server.version_num {
        180_000.. => server.max_locks_per_transaction.div_ceil(GROUP).clamp(1, 1024).next_power_of_two(),
        _ => 1,
    };
    (groups * GROUP) as usize
}

fn as_f64(number: usize) -> f64 {
    u32::try_from(number).map_or(f64::from(u32::MAX), f64::from)
}
