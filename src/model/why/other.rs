use super::{Wait, modes};
use crate::model::lock::{LockMode, LockModes, LockType};
use crate::model::wait_graph::Party;

pub(super) fn sentences(wait: &Wait<'_>) -> Vec<String> {
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
        said.push(format!("{} is ahead of it in the queue.", wait.look.who(ahead.party)));
    }
    said
}

type Holder = Option<(Party, LockModes)>;

/// A row changed or locked by another transaction: the waiter waits for the end of that transaction.
fn transaction(wait: &Wait<'_>, holder: Holder) -> Vec<String> {
    let Some((party, _)) = holder else { return plain(wait, holder) };
    let look = wait.look;
    let who = look.who(party);
    let row = look.index.awaited(&wait.queue.tag, wait.waiter.pid);
    let name = wait.name();
    let is_row = row.locktype() == LockType::Tuple;
    let wants = match &wait.statement {
        _ if is_row => format!(
            "{name} needs the {}, which {who} has changed or locked: it waits for the end of that transaction.",
            look.target(row, wait.waiter.party)
        ),
        Some(statement) if statement.name == "INSERT" => format!(
            "INSERT waits for the end of the transaction of {who}, which has inserted the same key, or changed a row that a foreign key refers to."
        ),
        Some(statement) if changes_rows(&statement.name) => {
            format!(
                "{name} needs a row that {who} has changed or locked: it waits for the end of that transaction."
            )
        }
        _ => format!("{name} waits for the end of the transaction of {who}."),
    };
    let mut said = vec![wants, look.until(party)];
    let others = wait.queue.waiters.len().saturating_sub(1);
    if others > 0 {
        said.push(format!(
            "{others} more {} for the end of the same transaction.",
            if others == 1 { "waits" } else { "wait" }
        ));
    }
    said
}

fn changes_rows(name: &str) -> bool {
    ["UPDATE", "DELETE", "MERGE", "SELECT … FOR UPDATE/SHARE"].contains(&name)
}

/// The place in the queue for a row.
fn tuple(wait: &Wait<'_>, holder: Holder) -> Vec<String> {
    let row = wait.look.target(&wait.queue.tag, wait.waiter.party);
    let first = holder.map(|(party, _)| {
        let waits = if wait.look.graph.wait_of(party).is_some() { ", and is itself waiting" } else { "" };
        format!(" {} is next in the queue for it{waits}.", wait.look.who(party))
    });
    vec![format!("{} needs the {row}, as other sessions do.{}", wait.name(), first.unwrap_or_default())]
}

/// CREATE INDEX CONCURRENTLY and similar commands.
fn virtual_transaction(wait: &Wait<'_>, holder: Holder) -> Vec<String> {
    let Some((party, _)) = holder else { return plain(wait, holder) };
    let who = wait.look.who(party);
    let waits = wait.statement.as_ref().is_some_and(|statement| statement.waits_for().is_some());
    let first = if waits {
        format!(
            "{} continues when all transactions that started before it have ended; now it waits for that of {who}.",
            wait.name()
        )
    } else {
        format!("{} waits for the end of the transaction of {who}.", wait.name())
    };
    vec![first, wait.look.until(party)]
}

/// A read-only transaction that never fails to serialize: it begins once the transactions that ran at its start have
/// ended without a conflict.
fn safe_snapshot(wait: &Wait<'_>, holder: Holder) -> Vec<String> {
    let needs = "It waits for a safe snapshot (SERIALIZABLE READ ONLY DEFERRABLE): the serializable transactions that ran when it began must end first.".to_owned();
    let held = holder
        .map(|(party, _)| format!("{} is one of them. {}", wait.look.who(party), wait.look.until(party)));
    std::iter::once(needs).chain(held).collect()
}

fn advisory(wait: &Wait<'_>, holder: Holder) -> Vec<String> {
    let look = wait.look;
    let how = |mode: LockMode| if mode == LockMode::Share { "shared" } else { "exclusively" };
    let asks =
        format!("It requests {} {}.", look.target(&wait.queue.tag, wait.waiter.party), how(wait.waiter.mode));
    let Some((party, has)) = holder else { return vec![asks] };
    let mode = has.iter().last().unwrap_or(LockMode::Exclusive);
    let is_in_transaction = look.backend_of(party).is_none_or(|backend| backend.xact_start.is_some());
    let until = match party {
        Party::Prepared(_) => look.until(party),
        // Without a transaction it can only be a session-level lock.
        Party::Backend(_) if !is_in_transaction => {
            "It has no open transaction: it holds that until it calls pg_advisory_unlock or its session ends.".to_owned()
        }
        Party::Backend(_) => "It holds that until it calls pg_advisory_unlock or its session ends; with pg_advisory_xact_lock, until its transaction ends.".to_owned(),
    };
    vec![asks, format!("{} holds it {}.", look.who(party), how(mode)), until]
}

fn momentary(wait: &Wait<'_>, does: &str, why: &str) -> Vec<String> {
    let mut what = wait.look.target(&wait.queue.tag, wait.waiter.party);
    if let Some(relation) = what.strip_prefix("extension of ") {
        what = relation.to_owned();
    }
    vec![format!("It {does} {what}: {why}.")]
}

fn plain(wait: &Wait<'_>, holder: Holder) -> Vec<String> {
    let what = wait.look.target(&wait.queue.tag, wait.waiter.party);
    let mut said = vec![format!("It requests {} on {what}.", wait.waiter.mode.short())];
    if let Some((party, has)) = holder {
        said.push(format!("{} holds {} on it.", wait.look.who(party), modes(has)));
        said.push(wait.look.until(party));
    }
    said
}
