//! Explains in sentences why a session waits: what it requests, what conflicts with it and what that blocks, until when,
//! and how many wait behind it. Based only on server data and the documentation ("Explicit Locking"); nothing is guessed.

mod other;
mod relation;
#[cfg(test)]
mod tests;

use super::backend::{Backend, State};
use super::lock::{LockMode, LockModes, LockTag, LockType};
use super::statement::{self, Statement};
use super::view::{SnapshotView, View};
use super::wait_graph::{Party, Queue, Waiter};
use super::words;
use crate::text;

/// Bytes of a statement that are read to determine its kind.
const STATEMENT: usize = 4096;

/// One sentence per item, with raw server text; empty if the party does not wait.
pub fn why(view: &View, party: Party) -> Vec<String> {
    let wait =
        view.graph.wait_of(party).and_then(|(queue, place)| Some((queue, place, queue.waiters.get(place)?)));
    let (Some(look), Some((queue, place, waiter))) = (view.with_snapshot(), wait) else { return Vec::new() };
    let wait = Wait { look, queue, place, waiter, statement: look.statement(waiter.party) };
    match queue.tag.locktype() {
        LockType::Relation => relation::sentences(&wait),
        _ => other::sentences(&wait),
    }
}

struct Wait<'a> {
    look: SnapshotView<'a>,
    queue: &'a Queue,
    place: usize,
    waiter: &'a Waiter,
    statement: Option<Statement>,
}

impl<'a> SnapshotView<'a> {
    fn backend_of(self, party: Party) -> Option<&'a Backend> {
        match party {
            Party::Backend(pid) => self.backend(pid),
            Party::Prepared(_) => None,
        }
    }

    fn statement(self, party: Party) -> Option<Statement> {
        statement::first(self.backend_of(party)?.query.as_ref()?.unredacted(), STATEMENT)
    }

    /// The locked object within a sentence: `accounts`, `"Prisma Migrate"`. The statement of `party` may supply its name.
    fn target(self, tag: &LockTag, party: Party) -> String {
        let pid = self.backend_of(party).map(|backend| backend.pid);
        words::quoted(self.snapshot, &self.lock_names, tag, self.namer(&self.lock_names, tag, pid))
    }

    /// `4312 app@web-3`, `the prepared transaction 'x'`.
    fn who(self, party: Party) -> String {
        match party {
            Party::Backend(pid) => match self.backend_of(party).map(words::who).filter(|who| !who.is_empty())
            {
                Some(who) => format!("{pid} {who}"),
                None => pid.to_string(),
            },
            Party::Prepared(xact) => match self.prepared(xact) {
                Some(row) => format!("the prepared transaction {}", text::literal(&row.gid)),
                None => format!("the prepared transaction {xact}"),
            },
        }
    }

    /// ` for 3m12s`; empty if the time is not known.
    fn long(self, since: Option<super::Timestamp>) -> String {
        let age = since.map(|since| (self.snapshot.taken_at - since).as_seconds_f64().max(0.0));
        age.map(|age| format!(" for {}", text::duration(age))).unwrap_or_default()
    }

    /// The event until which the party keeps locks that it holds to the end of its transaction.
    fn until(self, party: Party) -> String {
        let Party::Backend(_) = party else {
            return "It has no process: its locks are held until COMMIT PREPARED or ROLLBACK PREPARED."
                .to_owned();
        };
        let Some(backend) = self.backend_of(party) else {
            return "It holds that until its transaction ends.".to_owned();
        };
        let kind = backend.backend_type.as_deref().unwrap_or_default();
        if kind == "autovacuum worker" {
            return if backend.prevents_wraparound() {
                "It holds that until it has finished; it is not canceled for other sessions, because it prevents wraparound."
                    .to_owned()
            } else {
                "It holds that until it has finished; the server cancels it automatically when a session has waited for deadlock_timeout.".to_owned()
            };
        }
        match backend.state {
            Some(State::IdleInTransaction | State::IdleInTransactionAborted) => format!(
                "It holds that until its transaction ends, and has been idle in it{}: its client must end it.",
                self.long(backend.state_change)
            ),
            Some(State::Active) if self.graph.wait_of(party).is_some() => {
                "It holds that until its transaction ends, and is itself waiting.".to_owned()
            }
            Some(State::Active) => format!(
                "It holds that until its transaction ends, and has run its statement{}.",
                self.long(backend.query_start)
            ),
            _ => "It holds that until its transaction ends.".to_owned(),
        }
    }
}

impl Wait<'_> {
    /// `UPDATE`, or a placeholder for an unknown statement.
    fn name(&self) -> &str {
        self.statement.as_ref().map_or("Its statement", |statement| &statement.name)
    }

    /// The conflicting holders, with the modes that conflict.
    fn in_the_way(&self) -> impl Iterator<Item = (Party, LockModes)> {
        let (own, need) = (self.waiter.party, self.waiter.mode);
        self.queue.holders.iter().filter(move |holder| holder.party != own).filter_map(move |holder| {
            let modes = holder.modes.iter().filter(|mode| need.conflicts_with(LockModes::of(*mode)));
            let modes = modes.fold(LockModes::default(), |all, mode| all.union(LockModes::of(mode)));
            (!modes.is_empty()).then_some((holder.party, modes))
        })
    }

    /// The first waiter ahead of it whose request conflicts.
    fn ahead(&self) -> Option<&Waiter> {
        let before = self.queue.waiters.get(..self.place)?;
        before.iter().find(|other| match &self.waiter.exact {
            Some(named) => named.contains(&other.party),
            None => {
                other.party != self.waiter.party && self.waiter.mode.conflicts_with(LockModes::of(other.mode))
            }
        })
    }
}

/// `Share`, or `RowExclusive and Share`.
fn modes(modes: LockModes) -> String {
    modes.iter().map(LockMode::short).collect::<Vec<_>>().join(" and ")
}
