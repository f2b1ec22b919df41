use rustc_hash::FxHashMap;

use crate::backend::Backend;
use crate::graph::fronts::Leaders;
use crate::graph::{Input, Party};
use crate::lock::{Lock, LockMode, LockModes, LockTag, LockType};

pub(super) type Relation = (Option<u32>, Option<u32>);

pub(super) fn relation(tag: &LockTag) -> Relation {
    (tag.database(), tag.relation())
}

/// Locks that parties hold and no session waits for.
#[derive(Default)]
pub(super) struct Held {
    /// Each party once, ascending.
    pub(super) relations: FxHashMap<Relation, Vec<(Party, LockModes)>>,
    /// Their places in line for a row.
    pub(super) places: FxHashMap<Party, Vec<(Relation, LockMode)>>,
    pub(super) xids: FxHashMap<Party, Vec<u32>>,
}

impl Held {
    pub(super) fn of(input: Input<'_>, leaders: &Leaders) -> Self {
        let mut held = Self::default();
        for lock in input.locks.iter().filter(|lock| lock.granted) {
            held.add(lock, leaders.party(lock));
        }
        for holders in held.relations.values_mut() {
            holders.sort_unstable_by_key(|(party, _)| *party);
            holders.dedup_by(|(party, more), (holder, modes)| {
                let is_same = party == holder;
                if is_same {
                    *modes = modes.union(*more);
                }
                is_same
            });
        }
        held
    }

    fn add(&mut self, lock: &Lock, party: Party) {
        let mode = LockModes::of(lock.mode);
        match lock.tag.locktype() {
            LockType::Relation if lock.mode != LockMode::SIRead => {
                self.relations.entry(relation(&lock.tag)).or_default().push((party, mode));
            }
            LockType::Tuple if lock.mode != LockMode::SIRead => {
                self.places.entry(party).or_default().push((relation(&lock.tag), lock.mode));
            }
            LockType::TransactionId if lock.mode == LockMode::Exclusive => {
                self.xids.entry(party).or_default().extend(lock.tag.transactionid());
            }
            _ => {}
        }
    }

    pub(super) fn modes(&self, party: Party, relation: Relation) -> LockModes {
        let holders = self.relations.get(&relation).map_or(&[][..], Vec::as_slice);
        let at = holders.binary_search_by_key(&party, |(holder, _)| *holder).ok();
        at.and_then(|at| holders.get(at)).map(|(_, modes)| *modes).unwrap_or_default()
    }
}

/// The transactions that a `CONCURRENTLY` statement waits for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Concurrently {
    /// Those with any lock on the table, not only one for writing.
    pub(super) readers: bool,
    /// Those that have a snapshot.
    pub(super) snapshots: bool,
    /// It holds no lock on its tables while it waits, and requests new ones after that (`ATExecDetachPartition` in
    /// `tablecmds.c`).
    pub(super) locks_again: bool,
}

pub(super) fn concurrently(backend: &Backend) -> Option<Concurrently> {
    const WORDS: usize = 64;
    let query: &str = backend.query.as_ref()?.unredacted();
    let mut words =
        query.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).take(WORDS);
    let is = |word: &str, other: &str| word.eq_ignore_ascii_case(other);
    let verb = words
        .by_ref()
        .find(|word| ["create", "reindex", "drop", "alter"].iter().any(|verb| is(word, verb)))?;
    words.any(|word| is(word, "concurrently")).then(|| Concurrently {
        readers: !is(verb, "create"),
        snapshots: is(verb, "create") || is(verb, "reindex"),
        locks_again: is(verb, "alter"),
    })
}

/// Whether it creates a logical replication slot, by the replication protocol or by a function.
pub(super) fn creates_slot(backend: &Backend) -> bool {
    let query = backend.query.as_ref().map_or("", |query| query.unredacted());
    query.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| {
        ["create_replication_slot", "pg_create_logical_replication_slot"]
            .iter()
            .any(|name| word.eq_ignore_ascii_case(name))
    })
}

/// Old snapshots of VACUUM do not delay an index build (`PROC_IN_VACUUM`).
pub(super) fn is_vacuum(backend: &Backend) -> bool {
    let query = backend.query.as_ref().map_or("", |query| query.unredacted()).trim_start();
    query.get(..6).is_some_and(|word| word.eq_ignore_ascii_case("vacuum"))
        || query.starts_with("autovacuum: VACUUM")
}
