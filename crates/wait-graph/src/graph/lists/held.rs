use rustc_hash::FxHashMap;

use crate::graph::leaders::Leaders;
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
