//! Sessions that wait for a lease, for a permit of a semaphore, or to be elected leader, in calls of [`locktop_locks`]. They queue for an
//! advisory lock. Its holder is the leader, or the first session in the queue, which polls for the lease or the permit; `pg_locks` does
//! not show that.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::model::backend::{Backend, State};
use crate::model::lease::{LeaseBoard, LeaseId};
use crate::model::lock::LockMode;
use crate::model::lock_key::LockKey;
use crate::model::snapshot::Snapshot;
use crate::model::snapshot_index::SnapshotIndex;
use crate::model::statement::redacted::speaks_of_secret;
use crate::model::statement::tags::{KeyPurpose, Tag, tags};
use crate::model::wait_graph::{End, Party, Queue, Release, Root, WaitGraph};
use crate::model::{QueryText, Text, Timestamp};

/// The reason why the sessions behind a party wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NormalWait {
    /// This lease; the party is the first session in its queue.
    Lease(LeaseId),
    /// A permit of this semaphore; the party is the first session in its queue.
    Permit(Text),
    /// To be elected under this name; the party is the leader.
    Leader(Text),
}

impl NormalWait {
    /// Its word in the JSON.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Lease(_) => "lease",
            Self::Permit(_) => "permit",
            Self::Leader(_) => "leader",
        }
    }
}

/// Seconds without a statement after which the first session in a queue is an ordinary blocker: one that works polls at least every
/// second, unless its program sets a longer `retry`.
const SILENT: f64 = 60.0;

/// Seconds in which the statement that made it the first in a queue for permits may still be its last one.
const ENTERED: f64 = 2.0;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct NormalWaits {
    /// The parties behind which all sessions wait for the same of these.
    waits: FxHashMap<Party, NormalWait>,
    /// First sessions in the queue for a lease that wait for a lock themselves.
    waiting: Vec<Party>,
}

impl NormalWaits {
    /// Any doubt makes a party an ordinary blocker: another lock, sessions behind its waiters, an open transaction, a statement
    /// that is not known.
    pub fn of(graph: &WaitGraph, leases: &LeaseBoard, snapshot: &Snapshot, index: &SnapshotIndex) -> Self {
        if !snapshot.backends.is_known() {
            return Self::default();
        }
        let keys: FxHashMap<LockKey, &LeaseId> =
            leases.rows.iter().filter_map(|row| Some((row.queue?, &row.id))).collect();
        let datid = snapshot.server().map(|server| server.datid);
        let mut found: FxHashMap<Party, Option<(NormalWait, LockKey, u32)>> = FxHashMap::default();
        for queue in &graph.queues {
            let key = queue.tag.advisory_key();
            let lease = || keys.get(&key.filter(|_| queue.tag.database() == datid)?).copied();
            let query = |pid: i32| index.backend(snapshot, pid)?.query.as_ref();
            let by_statements = || waited(key?, queue.waiters.iter().map(|waiter| query(waiter.pid)));
            let wait = lease().map(|id| NormalWait::Lease(*id)).or_else(by_statements);
            for holder in &queue.holders {
                let is_whole = holder.modes.iter().any(|mode| mode == LockMode::Exclusive);
                let own =
                    wait.clone().zip(key).filter(|_| is_whole).map(|(wait, key)| (wait, key, parties(queue)));
                // A session that holds several awaited locks is an ordinary blocker.
                found.entry(holder.party).and_modify(|known| *known = None).or_insert(own);
            }
        }
        let mut all = Self::default();
        for (party, own) in found {
            let Some((wait, key, waiters)) = own else { continue };
            let Some(backend) = index.backend(snapshot, party.pid()) else { continue };
            match index.root(graph, party) {
                Some(root)
                    if root.blocked == waiters && is_at_work(&wait, key, backend, snapshot.taken_at) =>
                {
                    all.waits.insert(party, wait);
                }
                None if matches!(wait, NormalWait::Lease(_)) && graph.blocks(party) == waiters => {
                    all.waiting.push(party);
                }
                _ => {}
            }
        }
        all
    }

    pub fn get(&self, party: Party) -> Option<&NormalWait> {
        self.waits.get(&party)
    }

    /// The sessions that are first in a queue for a lease or a permit, and the leaders.
    fn firsts_and_leaders(&self) -> (Vec<Party>, Vec<Party>) {
        let is_leader = |party: &Party| matches!(self.get(*party), Some(NormalWait::Leader(_)));
        let (leaders, firsts) = self.waits.keys().partition::<Vec<Party>, _>(|party| is_leader(party));
        ([firsts, self.waiting.clone()].concat(), leaders)
    }

    /// Corrects the numbers of the roots, and of the parties of deadlocks, as [`Self::held_back`] does.
    pub fn hold_back(&self, graph: &mut Arc<WaitGraph>) {
        let (firsts, leaders) = self.firsts_and_leaders();
        let above = firsts.iter().flat_map(|first| graph.roots_above(*first));
        let above: Vec<Party> = above.chain(firsts.iter().copied()).chain(leaders).collect();
        let held = |root: &Root| {
            let release = self.held_back(graph, graph.release(&[root.party], End::Session));
            let number = |parties: &[Party]| u32::try_from(parties.len()).unwrap_or(u32::MAX);
            let changed = Root {
                frees: number(&release.now),
                in_turn: number(&release.in_turn),
                still_blocked: number(&release.still),
                others_must_end: release.others_must_end(),
                ..*root
            };
            (changed != *root).then_some(changed)
        };
        let all = graph.roots.iter().chain(&graph.in_cycles).filter(|root| above.contains(&root.party));
        let changed: Vec<Root> = all.filter_map(held).collect();
        if changed.is_empty() {
            return;
        }
        let graph = Arc::make_mut(graph);
        for root in graph.roots.iter_mut().chain(&mut graph.in_cycles) {
            if let Some(changed) = changed.iter().find(|changed| changed.party == root.party) {
                *root = changed.clone();
            }
        }
    }

    /// If the first session in a queue ends or continues, the one that is first then polls: none gets the lease or the permit by
    /// that. If a leader ends, the next session leads until it ends.
    pub fn held_back(&self, graph: &WaitGraph, release: Release) -> Release {
        let (firsts, leaders) = self.firsts_and_leaders();
        if firsts.is_empty() && leaders.is_empty() {
            return release;
        }
        let (behind, led) = (graph.blocked_by_all(&firsts), graph.blocked_by_all(&leaders));
        let is_behind = |party: &Party| behind.contains(party);
        let (held, now) = release.now.into_iter().partition::<Vec<_>, _>(is_behind);
        let stays = |party: &Party| is_behind(party) || led.contains(party);
        let (more, in_turn) = release.in_turn.into_iter().partition::<Vec<_>, _>(stays);
        let is_known =
            held.is_empty() && more.is_empty() && !release.others.iter().any(|other| firsts.contains(other));
        let others = if is_known { release.others } else { Vec::new() };
        Release { still: [release.still, held, more].concat(), now, in_turn, others, ..release }
    }
}

/// Distinct parties that wait in a queue.
fn parties(queue: &Queue) -> u32 {
    let mut parties: Vec<Party> = queue.waiters.iter().map(|waiter| waiter.party).collect();
    parties.sort_unstable();
    parties.dedup();
    u32::try_from(parties.len()).unwrap_or(u32::MAX)
}

/// Whether it does what it must: the first in a queue has polled a moment ago, and the last statement of a leader is its election.
fn is_at_work(wait: &NormalWait, key: LockKey, backend: &Backend, now: Timestamp) -> bool {
    let Some(query) = &backend.query else { return false };
    let within = |seconds: f64| {
        let last = backend.state_change.max(backend.query_start);
        last.is_some_and(|at| (now - at).as_seconds_f64() < seconds)
    };
    let is_open = backend.state.is_none_or(State::is_idle_in_transaction);
    let own = || waited(key, std::iter::once(Some(query)));
    match wait {
        NormalWait::Lease(_) => !is_open && within(SILENT),
        NormalWait::Permit(_) => {
            !is_open && (within(SILENT) && asks_for_permit(key, query) || within(ENTERED) && own().is_some())
        }
        NormalWait::Leader(_) => {
            let is_elected = matches!(own(), Some(NormalWait::Leader(_)));
            backend.state == Some(State::Idle) && backend.xact_start.is_none() && is_elected
        }
    }
}

/// Shown instead of a name that resembles a secret or has been redacted.
const HIDDEN: &str = "(name hidden)";

/// The permit or election that the statements of all waiters are for, by their tags; None if one is missing or differs.
fn waited<'a>(
    key: LockKey,
    mut statements: impl Iterator<Item = Option<&'a QueryText>>,
) -> Option<NormalWait> {
    let first = statements.next()??;
    let tag = tag(first).filter(|tag| tag.number == key)?;
    let is_same = |other: Option<&QueryText>| other.and_then(self::tag) == Some(tag);
    if !statements.all(is_same) {
        return None;
    }
    let name = || tag.name.filter(|_| !speaks_of_secret(first.unredacted())).unwrap_or(HIDDEN).into();
    match tag.purpose {
        KeyPurpose::Election => Some(NormalWait::Leader(name())),
        KeyPurpose::Queue => Some(NormalWait::Permit(name())),
        KeyPurpose::Lock | KeyPurpose::Permits => None,
    }
}

/// Whether the statement asks for a permit of the semaphore whose queue has this key. With many permits it has no tag.
fn asks_for_permit(key: LockKey, statement: &QueryText) -> bool {
    let asks = statement.unredacted().contains("CASE WHEN pg_catalog.pg_try_advisory_lock");
    asks && tag(statement).is_none_or(|tag| tag.purpose == KeyPurpose::Permits && tag.number == key)
}

fn tag(statement: &QueryText) -> Option<Tag<'_>> {
    tags(statement.unredacted()).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_wait_for_the_same_by_their_statements_or_nothing_is_known() {
        use crate::model::disclosure::{Channel, Mode, kept};
        use locktop_locks::advisory::Key;
        let of = |key: &str, statements: &[&str]| {
            let statements: Vec<_> =
                statements.iter().map(|text| (!text.is_empty()).then(|| (*text).into())).collect();
            waited(Key::named(key).number(), statements.iter().map(Option::as_ref))
        };
        let lead = "/* lead a */ SELECT pg_advisory_lock(1)";
        let leader = |name: &str| Some(NormalWait::Leader(name.into()));
        assert_eq!(of("a", &[lead, lead]), leader("a"));
        assert_eq!(of("a", &["/* lead token-refresh */ SELECT 1"]), None, "another key");
        assert_eq!(of("token-refresh", &["/* lead token-refresh */ SELECT 1"]), leader("(name hidden)"));
        assert_eq!(of("a #queue", &["/* lock a #queue */ SELECT 1"]), Some(NormalWait::Permit("a".into())));
        let redacted = |text: &str| kept(Channel::Recording(Mode::Literals), &text.into());
        for (key, text, hidden) in [
            ("a", lead, NormalWait::Leader("(name hidden)".into())),
            ("a #queue", "/* lock a #queue */ SELECT 1", NormalWait::Permit("(name hidden)".into())),
        ] {
            let left = redacted(text);
            assert!(!left.contains(" a"), "{left}");
            assert_eq!(of(key, &[&left, &redacted(&left)]), Some(hidden), "{left}");
        }
        for others in [&["/* lock a */ SELECT 1"][..], &["SELECT 1"], &[""], &["/* lead a"]] {
            assert_eq!(of("a", others), None, "{others:?}");
            assert_eq!(of("a", &[&[lead], others].concat()), None, "{others:?}");
        }
        assert_eq!(of("a", &[]), None);
    }

    #[test]
    fn only_a_request_for_the_permits_of_its_queue_polls() {
        let key = locktop_locks::advisory::Key::named("a #queue").number();
        let asks = "SELECT pg_catalog.concat(CASE WHEN pg_catalog.pg_try_advisory_lock(1) THEN 0 END)";
        for (tag, is_one) in [
            ("", true),
            ("/* lock a #1-3 */ ", true),
            ("/* lock b #1-3 */ ", false),
            ("/* lock a */ ", false),
        ] {
            assert_eq!(asks_for_permit(key, &format!("{tag}{asks}").into()), is_one, "{tag}");
        }
        assert!(!asks_for_permit(key, &"/* lock a #1-3 */ SELECT 1".into()));
    }
}
