//! Explains in sentences why a session waits: what it requests, what conflicts with it and what that blocks, until when,
//! and how many wait behind it. Based only on server data and the documentation ("Explicit Locking"); nothing is guessed.

#[cfg(test)]
mod tests;

use crate::model::backend::State;
use crate::model::lock::{LockMode, LockModes, LockTag, LockType};
use crate::model::lock_words::{also_permitted, taken_by};
use crate::model::statement::{self, Statement};
use crate::model::view::{SnapshotView, View};
use crate::model::wait_graph::{Party, Queue, Waiter};
use crate::model::words;
use crate::text;

/// Bytes of a statement that are read to determine its kind.
const STATEMENT: usize = 4096;

/// One sentence per item, with raw server text; empty if the party does not wait.
pub fn why(view: &View, party: Party) -> Vec<String> {
    let wait =
        view.graph.wait_of(party).and_then(|(queue, place)| Some((queue, place, queue.waiters.get(place)?)));
    let (Some(view), Some((queue, place, waiter))) = (view.with_snapshot(), wait) else { return Vec::new() };
    let wait = ExplainedWait { view, queue, place, waiter, statement: view.statement(waiter.party) };
    match queue.tag.locktype() {
        LockType::Relation => on_relation(&wait),
        _ => on_other(&wait),
    }
}

struct ExplainedWait<'a> {
    view: SnapshotView<'a>,
    queue: &'a Queue,
    place: usize,
    waiter: &'a Waiter,
    statement: Option<Statement>,
}

impl SnapshotView<'_> {
    fn statement(self, party: Party) -> Option<Statement> {
        statement::first(self.backend(party.pid())?.query.as_ref()?.unredacted(), STATEMENT)
    }

    /// The locked object within a sentence: `accounts`, `"Prisma Migrate"`. The statement of `party` may supply its name.
    fn target(self, tag: &LockTag, party: Party) -> String {
        let pid = self.backend(party.pid()).map(|backend| backend.pid);
        words::quoted(self.snapshot, &self.lock_names, tag, self.namer(&self.lock_names, tag, pid))
    }

    /// `4312 app@web-3`, `the prepared transaction 'x'`.
    fn who(self, party: Party) -> String {
        match party {
            Party::Backend(_) => self.party(party),
            Party::Prepared(_) => format!("the {}", self.party(party)),
        }
    }

    /// ` for 3m12s`; empty if the time is not known.
    fn long(self, since: Option<crate::model::Timestamp>) -> String {
        since.map(|since| format!(" for {}", text::duration(self.age(since)))).unwrap_or_default()
    }

    /// The event until which the party keeps locks that it holds to the end of its transaction.
    fn until(self, party: Party) -> String {
        let Party::Backend(_) = party else {
            return "It has no process: its locks are held until COMMIT PREPARED or ROLLBACK PREPARED."
                .to_owned();
        };
        let Some(backend) = self.backend(party.pid()) else {
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

impl ExplainedWait<'_> {
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

fn on_relation(wait: &ExplainedWait<'_>) -> Vec<String> {
    let table = wait.view.target(&wait.queue.tag, wait.waiter.party);
    let mut said = vec![needs(wait, &table)];
    let mut holders = wait.in_the_way();
    if let Some((party, has)) = holders.next() {
        said.push(holds(wait.view, party, has, &table));
        said.push(wait.view.until(party));
        let more = holders.count();
        if more > 0 {
            said.push(format!(
                "{more} more {} modes that conflict with its request.",
                if more == 1 { "session holds" } else { "sessions hold" }
            ));
        }
    } else if let Some(ahead) = wait.ahead() {
        said.push(format!(
            "No session that holds it blocks the request. {} is ahead in the queue and requests {}; requests that conflict with that wait behind it.",
            wait.view.who(ahead.party),
            ahead.mode.short()
        ));
    }
    said.extend(behind(wait));
    said
}

/// The requested mode, and the requesting statement if known.
fn needs(wait: &ExplainedWait<'_>, table: &str) -> String {
    let need = wait.waiter.mode;
    match wait.statement.as_ref().filter(|statement| statement.mode_on(table) == Some(need)) {
        Some(statement) => format!("{} takes {} on {table}.", statement.name, need.short()),
        None => format!("It requests {} on {table}, the lock of {}.", need.short(), taken_by(need)),
    }
}

/// The held mode, the statement that took it if known, and what it still allows.
fn holds(view: SnapshotView<'_>, party: Party, has: LockModes, table: &str) -> String {
    let strongest = has.iter().last().unwrap_or(LockMode::AccessExclusive);
    let statement = view.statement(party).filter(|statement| statement.mode_on(table) == Some(strongest));
    let is_active = view.backend(party.pid()).is_some_and(|backend| backend.state == Some(State::Active));
    let taken = match statement {
        Some(statement) if is_active => format!("which its {} takes", statement.name),
        Some(statement) => format!("which its last statement, {}, takes", statement.name),
        None => format!("the lock of {}", taken_by(strongest)),
    };
    format!("{} holds {} on it, {taken}: {}.", view.who(party), modes(has), also_permitted(strongest))
}

/// The number of waiters behind it that do not conflict with the holders.
fn behind(wait: &ExplainedWait<'_>) -> Option<String> {
    let held = wait.queue.holders.iter().fold(LockModes::default(), |all, holder| all.union(holder.modes));
    let own = LockModes::of(wait.waiter.mode);
    let after = wait.queue.waiters.get(wait.place + 1..)?.iter();
    let kept =
        after.filter(|other| other.mode.conflicts_with(own) && !other.mode.conflicts_with(held)).count();
    let sessions = if kept == 1 { "session waits" } else { "sessions wait" };
    (kept > 0)
        .then(|| format!("{kept} more {sessions} behind it, without a conflict with {}.", holders(wait)))
}

fn holders(wait: &ExplainedWait<'_>) -> String {
    match wait.queue.holders.as_slice() {
        [one] => wait.view.who(one.party),
        _ => "the sessions that hold it".to_owned(),
    }
}

fn on_other(wait: &ExplainedWait<'_>) -> Vec<String> {
    let holder = wait.in_the_way().next();
    let mut said = match wait.queue.tag.locktype() {
        LockType::TransactionId => transaction(wait, holder),
        LockType::Tuple => tuple(wait, holder),
        LockType::VirtualXid => virtual_transaction(wait, holder),
        LockType::Advisory => advisory(wait, holder),
        LockType::SafeSnapshot => safe_snapshot(wait, holder),
        LockType::Extend => momentary(
            wait,
            "adds pages to",
            "one session at a time, for a moment: many waiting sessions mean many concurrent inserts",
        ),
        LockType::Page => momentary(wait, "waits for", "an index locks a page for a moment"),
        _ => plain(wait, holder),
    };
    if holder.is_none()
        && let Some(ahead) = wait.ahead()
    {
        said.push(format!("{} is ahead of it in the queue.", wait.view.who(ahead.party)));
    }
    said
}

type HoldingParty = Option<(Party, LockModes)>;

/// A row changed or locked by another transaction: the waiter waits for the end of that transaction.
fn transaction(wait: &ExplainedWait<'_>, holder: HoldingParty) -> Vec<String> {
    let Some((party, _)) = holder else { return plain(wait, holder) };
    let view = wait.view;
    let who = view.who(party);
    let row = view.index.awaited(&wait.queue.tag, wait.waiter.pid);
    let name = wait.name();
    let is_row = row.locktype() == LockType::Tuple;
    let wants = match &wait.statement {
        _ if is_row => format!(
            "{name} needs the {}, which {who} has changed or locked: it waits for the end of that transaction.",
            view.target(row, wait.waiter.party)
        ),
        Some(statement) if statement.name == "INSERT" => format!(
            "INSERT waits for the end of the transaction of {who}, which has inserted the same key, or changed a row that a foreign key refers to."
        ),
        Some(Statement { name, .. })
            if ["UPDATE", "DELETE", "MERGE", "SELECT … FOR UPDATE/SHARE"].contains(&&**name) =>
        {
            format!(
                "{name} needs a row that {who} has changed or locked: it waits for the end of that transaction."
            )
        }
        _ => format!("{name} waits for the end of the transaction of {who}."),
    };
    let mut said = vec![wants, view.until(party)];
    let others = wait.queue.waiters.len().saturating_sub(1);
    if others > 0 {
        said.push(format!(
            "{others} more {} for the end of the same transaction.",
            if others == 1 { "waits" } else { "wait" }
        ));
    }
    said
}

/// The place in the queue for a row.
fn tuple(wait: &ExplainedWait<'_>, holder: HoldingParty) -> Vec<String> {
    let row = wait.view.target(&wait.queue.tag, wait.waiter.party);
    let first = holder.map(|(party, _)| {
        let waits = if wait.view.graph.wait_of(party).is_some() { ", and is itself waiting" } else { "" };
        format!(" {} is next in the queue for it{waits}.", wait.view.who(party))
    });
    vec![format!("{} needs the {row}, as other sessions do.{}", wait.name(), first.unwrap_or_default())]
}

/// CREATE INDEX CONCURRENTLY and similar commands.
fn virtual_transaction(wait: &ExplainedWait<'_>, holder: HoldingParty) -> Vec<String> {
    let Some((party, _)) = holder else { return plain(wait, holder) };
    let who = wait.view.who(party);
    let waits = wait.statement.as_ref().is_some_and(|statement| statement.waits_for().is_some());
    let first = if waits {
        format!(
            "{} continues when all transactions that started before it have ended; now it waits for that of {who}.",
            wait.name()
        )
    } else {
        format!("{} waits for the end of the transaction of {who}.", wait.name())
    };
    vec![first, wait.view.until(party)]
}

/// A read-only transaction that never fails to serialize: it begins once the transactions that ran at its start have
/// ended without a conflict.
fn safe_snapshot(wait: &ExplainedWait<'_>, holder: HoldingParty) -> Vec<String> {
    let needs = "It waits for a safe snapshot (SERIALIZABLE READ ONLY DEFERRABLE): the serializable transactions that ran when it began must end first.".to_owned();
    let held = holder
        .map(|(party, _)| format!("{} is one of them. {}", wait.view.who(party), wait.view.until(party)));
    std::iter::once(needs).chain(held).collect()
}

fn advisory(wait: &ExplainedWait<'_>, holder: HoldingParty) -> Vec<String> {
    let view = wait.view;
    let how = |mode: LockMode| if mode == LockMode::Share { "shared" } else { "exclusively" };
    let asks =
        format!("It requests {} {}.", view.target(&wait.queue.tag, wait.waiter.party), how(wait.waiter.mode));
    let Some((party, has)) = holder else { return vec![asks] };
    let mode = has.iter().last().unwrap_or(LockMode::Exclusive);
    let is_in_transaction = view.backend(party.pid()).is_none_or(|backend| backend.xact_start.is_some());
    let until = match party {
        Party::Prepared(_) => view.until(party),
        // Without a transaction it can only be a session-level lock.
        Party::Backend(_) if !is_in_transaction => {
            "It has no open transaction: it holds that until it calls pg_advisory_unlock or its session ends.".to_owned()
        }
        Party::Backend(_) => "It holds that until it calls pg_advisory_unlock or its session ends; with pg_advisory_xact_lock, until its transaction ends.".to_owned(),
    };
    if let Some(what) = view.awaited_words(party) {
        return vec![
            asks,
            format!("{} is the first session in the queue, and polls for {what}.", view.who(party)),
        ];
    }
    vec![asks, format!("{} holds it {}.", view.who(party), how(mode)), until]
}

fn momentary(wait: &ExplainedWait<'_>, does: &str, why: &str) -> Vec<String> {
    let mut what = wait.view.target(&wait.queue.tag, wait.waiter.party);
    if let Some(relation) = what.strip_prefix("extension of ") {
        what = relation.to_owned();
    }
    vec![format!("It {does} {what}: {why}.")]
}

fn plain(wait: &ExplainedWait<'_>, holder: HoldingParty) -> Vec<String> {
    let what = wait.view.target(&wait.queue.tag, wait.waiter.party);
    let mut said = vec![format!("It requests {} on {what}.", wait.waiter.mode.short())];
    if let Some((party, has)) = holder {
        said.push(format!("{} holds {} on it.", wait.view.who(party), modes(has)));
        said.push(wait.view.until(party));
    }
    said
}
