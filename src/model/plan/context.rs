use super::{Refused, Rights};
use crate::model::backend::{Backend, BackendId};
use crate::model::finding::Subject;
use crate::model::lock::{LockMode, LockTag};
use crate::model::view::{SnapshotView, View};
use crate::model::wait_graph::{Party, TreeNode};
use crate::model::{Timestamp, words};
use crate::text;

#[derive(Debug, Clone, Copy)]
pub struct PlanContext<'a> {
    pub view: &'a View,
    /// Privileges of the role, once they are read. Before that locktop refuses nothing for a missing privilege; the server
    /// does.
    pub rights: Option<&'a Rights>,
    /// Process ids of locktop's own sessions, in addition to that of the poll.
    pub own_pids: &'a [i32],
    /// Sessions that locktop terminated: no grace period follows their end.
    pub terminated: &'a [BackendId],
}

impl<'a> PlanContext<'a> {
    pub(super) fn backend(&self, pid: i32) -> Option<&'a Backend> {
        self.view.index.backend(self.view.snapshot.as_deref()?, pid)
    }

    pub(super) fn has_terminated(&self, session: Option<BackendId>) -> bool {
        was_terminated(self.terminated, session)
    }
}

/// Whether locktop terminated this session. False without its start time, since process ids are reused.
pub(super) fn was_terminated(terminated: &[BackendId], session: Option<BackendId>) -> bool {
    session.is_some_and(|id| id.backend_start.is_some() && terminated.contains(&id))
}

pub(super) struct PlanIndex<'a> {
    pub(super) context: PlanContext<'a>,
    snapshot_view: SnapshotView<'a>,
}

impl<'a> std::ops::Deref for PlanIndex<'a> {
    type Target = SnapshotView<'a>;

    fn deref(&self) -> &SnapshotView<'a> {
        &self.snapshot_view
    }
}

impl<'a> PlanIndex<'a> {
    /// Refused before the first snapshot.
    pub(super) fn of(context: &PlanContext<'a>) -> Result<Self, Refused> {
        let snapshot_view =
            context.view.with_snapshot().ok_or_else(|| Refused::server("no snapshot of it yet"))?;
        Ok(Self { context: *context, snapshot_view })
    }

    /// Refused on a server that takes no writes.
    pub(super) fn writable(&self) -> Result<(), Refused> {
        let is_standby = self.snapshot.server().is_some_and(|server| server.in_recovery);
        let why = "this is a standby, which is read-only: do it on the primary";
        if is_standby { Err(Refused::server(why)) } else { Ok(()) }
    }

    pub(super) fn node(&self, party: Party) -> Option<(usize, &'a TreeNode)> {
        self.view.index.node(&self.view.graph, party)
    }

    pub(super) fn is_own(&self, pid: i32) -> bool {
        self.context.own_pids.contains(&pid) || self.snapshot.server().is_some_and(|own| own.own_pid == pid)
    }

    pub(super) fn knows_locks(&self) -> bool {
        self.snapshot.locks.is_known() && self.snapshot.locks_omitted == 0
    }

    /// Whether the session, or one of its parallel workers, holds a lock in this mode; true if the locks are not fully known.
    pub(super) fn may_hold(&self, pid: i32, (tag, mode): (LockTag, LockMode)) -> bool {
        let locks = self.snapshot.locks.last_rows().iter();
        let mut same = locks.filter(|lock| lock.granted && lock.mode == mode && lock.tag == tag);
        let group = |holder: i32| self.backend(holder).map_or(holder, Backend::group);
        !self.knows_locks() || same.any(|lock| lock.pid.map(group) == Some(pid))
    }

    pub(super) fn age_text(&self, since: Timestamp) -> String {
        text::duration(self.age(since))
    }

    /// `4312 app@web-3`, or only the process id if nothing else is known.
    pub(super) fn name(&self, pid: i32) -> String {
        words::process(pid, self.backend(pid))
    }

    pub(super) fn subject(&self, pid: i32) -> Subject {
        let id = self.backend(pid).map_or(BackendId { pid, backend_start: None }, Backend::id);
        Subject::Backend(id)
    }

    /// The object that a process has locked or waits for, within a sentence, in one sanitized line. For a transaction, the row
    /// that `waiter` waits for.
    pub(super) fn lock_words(&self, tag: &LockTag, pid: i32, waiter: Option<i32>) -> String {
        let tag = waiter.map_or(tag, |waiter| self.index.awaited(tag, waiter));
        let names = &self.lock_names;
        let words = words::quoted(self.snapshot, names, tag, self.namer(names, tag, Some(pid)));
        text::one_line(&words).into_owned()
    }
}
