use super::{Wait, modes};
use crate::model::backend::State;
use crate::model::lock::{LockMode, LockModes};
use crate::model::lock_words::{beside, taken_by};
use crate::model::view::SnapshotView;
use crate::model::wait_graph::Party;

pub(super) fn sentences(wait: &Wait<'_>) -> Vec<String> {
    let table = wait.look.target(&wait.queue.tag, wait.waiter.party);
    let mut said = vec![needs(wait, &table)];
    let mut holders = wait.in_the_way();
    if let Some((party, has)) = holders.next() {
        said.push(holds(wait.look, party, has, &table));
        said.push(wait.look.until(party));
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
            wait.look.who(ahead.party),
            ahead.mode.short()
        ));
    }
    said.extend(behind(wait));
    said
}

/// The requested mode, and the requesting statement if known.
fn needs(wait: &Wait<'_>, table: &str) -> String {
    let need = wait.waiter.mode;
    match wait.statement.as_ref().filter(|statement| statement.mode_on(table) == Some(need)) {
        Some(statement) => format!("{} takes {} on {table}.", statement.name, need.short()),
        None => format!("It requests {} on {table}, the lock of {}.", need.short(), taken_by(need)),
    }
}

/// The held mode, the statement that took it if known, and what it still allows.
fn holds(look: SnapshotView<'_>, party: Party, has: LockModes, table: &str) -> String {
    let strongest = has.iter().last().unwrap_or(LockMode::AccessExclusive);
    let statement = look.statement(party).filter(|statement| statement.mode_on(table) == Some(strongest));
    let is_active = look.backend_of(party).is_some_and(|backend| backend.state == Some(State::Active));
    let taken = match statement {
        Some(statement) if is_active => format!("which its {} takes", statement.name),
        Some(statement) => format!("which its last statement, {}, takes", statement.name),
        None => format!("the lock of {}", taken_by(strongest)),
    };
    format!("{} holds {} on it, {taken}: {}.", look.who(party), modes(has), beside(strongest))
}

/// The number of waiters behind it that do not conflict with the holders.
fn behind(wait: &Wait<'_>) -> Option<String> {
    let held = wait.queue.holders.iter().fold(LockModes::default(), |all, holder| all.union(holder.modes));
    let own = LockModes::of(wait.waiter.mode);
    let after = wait.queue.waiters.get(wait.place + 1..)?.iter();
    let kept =
        after.filter(|other| other.mode.conflicts_with(own) && !other.mode.conflicts_with(held)).count();
    let sessions = if kept == 1 { "session waits" } else { "sessions wait" };
    (kept > 0)
        .then(|| format!("{kept} more {sessions} behind it, without a conflict with {}.", holders(wait)))
}

fn holders(wait: &Wait<'_>) -> String {
    match wait.queue.holders.as_slice() {
        [one] => wait.look.who(one.party),
        _ => "the sessions that hold it".to_owned(),
    }
}
