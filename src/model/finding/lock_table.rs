//! The shared lock table: once it is full, any session that requests one more lock fails with "out of shared memory", even if it has few
//! locks itself.

use rustc_hash::{FxHashMap, FxHashSet};

use super::check_input::CheckInput;
use super::{Finding, Severity, Subject};
use crate::model::lock::{Lock, LockMode, LockTag, LockType};
use crate::model::observed::Observed;
use crate::model::snapshot::Server;
use crate::model::view::SnapshotView;
use crate::model::wait_graph::Party;
use crate::model::words;
use crate::text::count;

const CHECK: &str = "lock_table";

const FILLING: f64 = 0.5;
const NEARLY_FULL: f64 = 0.75;

/// Compares the locks that are certainly in the table with its guaranteed capacity; unused shared memory can hold some
/// more.
pub(super) fn check(look: &CheckInput<'_>) -> Vec<Finding> {
    let (Some(server), Observed::Read(locks)) = (look.snapshot.server(), look.snapshot.locks.observed())
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
    let most = most.map(|(party, has)| (party, super::check_input::party_text(party), has));
    let by =
        most.as_ref().map_or_else(String::new, |(_, name, has)| format!("; {name} has {}", number(*has)));
    let summary =
        format!("lock table has at least {} locks, {percent:.0}% of the guaranteed {of}{by}", number(taken));
    let subject = most.as_ref().map_or(Subject::Server, |(party, ..)| look.subject(*party));
    let mut finding = Finding::new(CHECK, severity, summary, subject)
        .short(format!("lock table has ≥{percent:.0}% of its guaranteed locks{by}"))
        .about("when it is full, statements fail with \"out of shared memory\" (53200): max_locks_per_transaction");
    if let Some((Party::Backend(pid), _, has)) = most {
        // Terminating it would empty more than half of the table.
        let is_most = (taken - has.min(taken)) < taken / 2;
        finding = Finding { help: is_most.then_some("terminate"), ..finding.running(look.statement(pid)) };
    }
    vec![finding]
}

/// How much of its guaranteed size the table uses, and which party has most: `lock table: 3% of 33,408 entries in use ·
/// most: 9508 app@report with 200`. If `pg_locks` does not show whether a lock is in the table, both bounds: `3% to 5%`.
/// None if not known.
pub fn fill(view: SnapshotView<'_>) -> Option<String> {
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
        let name = super::check_input::party_text(party);
        format!(" · most: {name}{} with {}", who.unwrap_or_default(), count(has as u64))
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
