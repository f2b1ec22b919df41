use super::context::Context;
use super::panes::{LockOwner, RowId};
use super::screens::Screen;
use crate::model::awaited_locks::{AwaitedLock, LockHold};
use crate::model::finding::Subject;
use crate::model::lock::LockTag;
use crate::model::view::View;
use crate::model::wait_graph::Party;

/// The row that an action on this row is about: for a lock, a prepared transaction that holds it, or the only holder of a
/// lock with waiters.
pub fn selected(view: &View, id: RowId) -> RowId {
    match id {
        RowId::Lock(_, LockOwner::Prepared(xact), ..) => RowId::Prepared(xact),
        RowId::Awaited(tag) => {
            match view.index.awaited_locks().get(&tag).and_then(AwaitedLock::only_holder) {
                Some(LockHold { party: Party::Backend(pid), tag, mode }) => {
                    RowId::Lock(tag, LockOwner::Backend(view.backend_id(pid)), mode)
                }
                Some(LockHold { party: Party::Prepared(xact), .. }) => RowId::Prepared(xact),
                None => id,
            }
        }
        _ => id,
    }
}

pub fn pid_of(id: RowId) -> Option<i32> {
    match id {
        RowId::Backend(id)
        | RowId::Lock(_, LockOwner::Backend(id), ..)
        | RowId::Finding(_, Subject::Backend(id)) => Some(id.pid),
        _ => None,
    }
}

/// Like `pid_of`, and for a task the process that holds its advisory lock key.
pub fn holder_of(context: &Context<'_>, id: RowId) -> Option<i32> {
    match id {
        RowId::Task(..) | RowId::Item(_) => key_of(context, id)?.1,
        RowId::Event(..) | RowId::Finding(..) => holder_of(context, subject_of(context, id)?),
        RowId::Lease(id) => context.lease(id).filter(|row| row.owner_alive == Some(true))?.owner_pid,
        RowId::Awaited(tag) => match context.awaited_lock(&tag)?.only_holder()?.party {
            Party::Backend(pid) => Some(pid),
            Party::Prepared(_) => None,
        },
        _ => pid_of(id),
    }
}

/// The advisory lock for the key of a task or an item, and the process that holds it.
pub fn key_of(context: &Context<'_>, id: RowId) -> Option<(Option<LockTag>, Option<i32>)> {
    match id {
        RowId::Task(task, again) => context.task(task, again).map(|row| (row.tag, row.holder)),
        RowId::Item(id) => context.item(id).map(|row| (row.tag, row.pid)),
        _ => None,
    }
}

/// The session or prepared transaction of a row that can wait or be waited for. `None` for other rows.
pub fn party_of(context: &Context<'_>, id: RowId) -> Option<Party> {
    match subject_of(context, id).unwrap_or(id) {
        RowId::Prepared(xact) | RowId::Lock(_, LockOwner::Prepared(xact), ..) => Some(Party::Prepared(xact)),
        RowId::Awaited(tag) => Some(context.awaited_lock(&tag)?.only_holder()?.party),
        _ => {
            let pid = holder_of(context, id)?;
            Some(Party::Backend(context.backend(pid).map_or(pid, crate::model::backend::Backend::group)))
        }
    }
}

/// The row that an event or a finding is about. That row need not exist any more.
pub fn subject_of(context: &Context<'_>, id: RowId) -> Option<RowId> {
    let subject = match id {
        RowId::Event(number, 1) => context.view.events.get(number)?.subject?,
        RowId::Finding(_, subject) => subject,
        _ => return None,
    };
    match subject {
        Subject::Party(Party::Backend(pid)) => Some(RowId::Backend(context.backend(pid)?.id())),
        Subject::Lock(_) | Subject::Queue => None,
        _ => RowId::of(subject),
    }
}

/// Whether two rows, possibly on different screens, are about the same backend, transaction, lock or task. A task matches
/// the lock on its key and the session that holds it.
pub fn same_subject(context: &Context<'_>, row: RowId, followed: RowId) -> bool {
    match (row, followed) {
        _ if row == followed => true,
        // A followed lock matches that lock, and on other screens the session that holds it.
        (
            RowId::Lock(tag, ..) | RowId::Group(_, tag, _) | RowId::Awaited(tag),
            RowId::Lock(other, ..) | RowId::Awaited(other),
        ) => tag == other,
        (RowId::Awaited(tag), RowId::Backend(_) | RowId::Prepared(_)) => {
            let lock = context.awaited_lock(&tag).zip(party_of(context, followed));
            lock.is_some_and(|(lock, party)| {
                let mut waiters = lock.waiters(&context.view.graph);
                lock.is_held_by(party) || waiters.any(|waiter| waiter.party == party)
            })
        }
        (RowId::Backend(_) | RowId::Prepared(_), RowId::Awaited(tag)) => {
            let lock = context.awaited_lock(&tag).zip(party_of(context, row));
            lock.is_some_and(|(lock, party)| lock.is_held_by(party))
        }
        (RowId::Lock(_, LockOwner::Prepared(xact), ..), RowId::Prepared(other))
        | (RowId::Prepared(xact), RowId::Lock(_, LockOwner::Prepared(other), ..)) => xact == other,
        (RowId::Lock(_, LockOwner::Backend(id), ..), RowId::Backend(other))
        | (RowId::Backend(id), RowId::Lock(_, LockOwner::Backend(other), ..)) => id == other,
        (work @ (RowId::Task(..) | RowId::Item(_)), other)
        | (other, work @ (RowId::Task(..) | RowId::Item(_))) => {
            key_of(context, work).is_some_and(|(key, holder)| match other {
                RowId::Lock(tag, ..) | RowId::Group(_, tag, _) | RowId::Awaited(tag) => key == Some(tag),
                RowId::Backend(backend) => holder == Some(backend.pid),
                _ => false,
            })
        }
        (RowId::Lease(id), RowId::Backend(other)) | (RowId::Backend(other), RowId::Lease(id)) => {
            holder_of(context, RowId::Lease(id)) == Some(other.pid)
        }
        _ => false,
    }
}

/// Whether a row is the wanted one. A session without a start is any session with this process id; an awaited lock has rows
/// whichever session holds it or waits for it.
pub fn is_row_of(wanted: RowId, row: RowId) -> bool {
    match (wanted, row) {
        (RowId::Backend(wanted), RowId::Backend(id)) => {
            id.pid == wanted.pid && (wanted.backend_start.is_none() || id == wanted)
        }
        (RowId::Awaited(tag), RowId::Lock(other, ..) | RowId::Awaited(other)) => tag == other,
        (RowId::Queue, row) => matches!(row, RowId::Item(_)),
        _ => wanted == row,
    }
}

/// The screens where its rows may be, the best first.
pub fn screens_of(wanted: RowId) -> Vec<Screen> {
    match wanted {
        // The Chains screen shows a backend in the forest best.
        RowId::Backend(_) => vec![Screen::Chains, Screen::Backends],
        row => Screen::with(row.home()).collect(),
    }
}
