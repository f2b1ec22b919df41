//! Related rows: from any row to its session, the root that it waits behind, the locks, the task, the item and the lease.

use super::context::Context;
use super::panes::RowId;
use super::screens::Screen;
use super::subject;
use crate::model::awaited_locks::AwaitedLock;
use crate::model::backend::Backend;
use crate::model::blame::{BlamePeriod, Episode};
use crate::model::lock::LockTag;
use crate::model::lock_waits::contended;
use crate::model::wait_graph::{Party, Queue};
use crate::model::words;
use crate::text;

/// Maximum number of each kind; the pane itself is better for more.
const MOST: usize = 5;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelatedLink {
    /// The relation to the row: `root`, `session`, `waits for`, …
    pub what: &'static str,
    pub label: String,
    pub to: RowId,
    pub screen: Screen,
}

impl RelatedLink {
    fn to(what: &'static str, label: String, to: RowId, screen: Screen) -> Self {
        Self { what, label, to, screen }
    }
}

/// All related rows: blockers first, then what the row itself has.
pub fn related(context: &Context<'_>, row: RowId, from: Screen) -> Vec<RelatedLink> {
    let row = subject::subject_of(context, row).unwrap_or(row);
    let mut found = Vec::new();
    let parties = parties(context, row);
    for party in &parties {
        found.extend(roots(context, *party));
        found.extend(awaited(context, *party));
        found.extend(held(context, *party));
        found.extend(session(context, *party));
    }
    found.extend(tag_of(context, row).and_then(|tag| lock(context, tag)));
    let mut with_row = vec![row];
    with_row.extend(parties.iter().filter_map(|party| row_of(context, *party)));
    found.extend(work(context, &with_row));
    let mut seen: Vec<(RowId, Screen)> = Vec::new();
    found.retain(|link| {
        let is_here = link.screen == from && subject::is_row_of(link.to, row);
        let way = (link.to, link.screen);
        let is_new = !seen.contains(&way);
        seen.push(way);
        is_new && !is_here
    });
    found
}

/// The parties of a row: one, except for a lock that several hold.
fn parties(context: &Context<'_>, row: RowId) -> Vec<Party> {
    let blame = &context.view.blame;
    match row {
        RowId::Awaited(tag) => {
            let holders = context.awaited_lock(&tag).into_iter().flat_map(|lock| &lock.holders);
            holders.map(|hold| hold.party).take(MOST).collect()
        }
        RowId::Waits(tag) => holders(&waited(context, tag)),
        RowId::Group(_, tag, _) => holders(&context.queue(&tag).into_iter().collect::<Vec<_>>()),
        RowId::Episode(number) => roots_of(context, blame.episode(number)),
        RowId::Blamed(id) => {
            let row = context.index.blame.row(id);
            let is_its = |episode: &&Episode| row.is_some_and(|row| row.has(episode));
            let current = blame.episodes_in(BlamePeriod::All).filter(|episode| blame.is_ongoing(episode));
            roots_of(context, current.filter(is_its))
        }
        _ => subject::party_of(context, row).into_iter().collect(),
    }
}

fn holders(queues: &[&Queue]) -> Vec<Party> {
    let mut parties: Vec<Party> =
        queues.iter().flat_map(|queue| &queue.holders).map(|holder| holder.party).collect();
    parties.sort_unstable();
    parties.dedup();
    parties.truncate(MOST);
    parties
}

/// The queues that are counted in one line of the waits: those for all rows of a table are counted together.
fn waited<'a>(context: &Context<'a>, tag: LockTag) -> Vec<&'a Queue> {
    let is_its = |queue: &&Queue| {
        queue.waiters.iter().any(|waiter| contended(context.awaited(&queue.tag, waiter.pid)) == tag)
    };
    context.view.graph.queues.iter().filter(is_its).collect()
}

fn roots_of<'a>(context: &Context<'_>, episodes: impl IntoIterator<Item = &'a Episode>) -> Vec<Party> {
    let sessions = episodes.into_iter().filter_map(|episode| context.backend(episode.pid));
    sessions.map(|backend| Party::Backend(backend.group())).take(MOST).collect()
}

fn row_of(context: &Context<'_>, party: Party) -> Option<RowId> {
    Some(match party {
        Party::Backend(pid) => RowId::Backend(context.backend(pid)?.id()),
        Party::Prepared(xact) => RowId::Prepared(context.prepared(xact).map(|_| xact)?),
    })
}

/// The roots that it waits behind, and itself if it is a root.
fn roots(context: &Context<'_>, party: Party) -> Vec<RelatedLink> {
    let mut above = context.view.graph.roots_above(party);
    if context.root(party).is_some() {
        above.push(party);
    }
    let root = |party: &Party| {
        let blocks = context.root(*party).map_or(0, |root| root.blocked);
        let label = format!("{}, blocks {blocks}", name(context, *party)?);
        Some(RelatedLink::to("root", label, row_of(context, *party)?, Screen::Chains))
    };
    above.iter().take(MOST).filter_map(root).collect()
}

fn session(context: &Context<'_>, party: Party) -> Option<RelatedLink> {
    let Party::Backend(pid) = party else { return None };
    let backend = context.backend(pid)?;
    Some(RelatedLink::to("session", who(backend), RowId::Backend(backend.id()), Screen::Backends))
}

fn awaited(context: &Context<'_>, party: Party) -> Option<RelatedLink> {
    let (queue, place) = context.view.graph.wait_of(party)?;
    let waiter = queue.waiters.get(place)?;
    let tag = context.awaited(&queue.tag, waiter.pid);
    let label = words::request(waiter.mode, tag, &context.wait_label(&queue.tag, waiter.pid));
    Some(RelatedLink::to("waits for", label, RowId::Awaited(*tag), Screen::Locks))
}

fn held(context: &Context<'_>, party: Party) -> Vec<RelatedLink> {
    let link = |lock: &AwaitedLock| {
        let label = format!("{}, {} waiting", context.lock_label(&lock.tag, None), lock.queued());
        RelatedLink::to("holds", label, RowId::Awaited(lock.tag), Screen::Locks)
    };
    let locks = context.view.index.awaited_locks().all().iter();
    locks.filter(|lock| lock.is_held_by(party)).take(MOST).map(link).collect()
}

/// The lock under which the queue is listed: for a transaction, the row that its first waiter waits for.
fn awaited_tag(context: &Context<'_>, queue: &Queue) -> LockTag {
    let waiter = queue.waiters.first().map(|waiter| context.view.index.awaited(&queue.tag, waiter.pid));
    waiter.copied().unwrap_or(queue.tag)
}

/// The lock for the key of a task or an item, or the lock whose waits are counted.
fn tag_of(context: &Context<'_>, row: RowId) -> Option<LockTag> {
    match row {
        RowId::Task(..) | RowId::Item(_) => subject::key_of(context, row)?.0,
        RowId::Waits(tag) | RowId::Group(_, tag, _) => Some(tag),
        _ => None,
    }
}

fn lock(context: &Context<'_>, tag: LockTag) -> Option<RelatedLink> {
    let tag = context.queue(&tag).map_or(tag, |queue| awaited_tag(context, queue));
    let row = context.snapshot.locks.last_rows().iter().find(|lock| lock.tag == tag)?;
    Some(RelatedLink::to("lock", context.lock_label(&tag, row.pid), RowId::Awaited(tag), Screen::Locks))
}

fn work(context: &Context<'_>, rows: &[RowId]) -> Vec<RelatedLink> {
    let belongs = |id: RowId| rows.iter().any(|row| *row != id && subject::same_subject(context, id, *row));
    let links = |what, ids: &mut dyn Iterator<Item = RowId>| -> Vec<RelatedLink> {
        let link = |id: RowId| {
            let label = (id.home().definition().name)(context, id);
            Some(RelatedLink::to(what, label, id, Screen::with(id.home()).next()?))
        };
        ids.filter(|id| belongs(*id)).take(MOST).filter_map(link).collect()
    };
    let mut tasks = context.view.tasks.rows.iter().map(|row| RowId::Task(row.task, row.again));
    let mut items = context.view.queue.rows.iter().map(|row| RowId::Item(row.id));
    let mut leases = context.view.leases.rows.iter().map(|row| RowId::Lease(row.id));
    [links("task", &mut tasks), links("item", &mut items), links("lease", &mut leases)].concat()
}

/// `4312 app@web`, or the gid of a prepared transaction.
fn name(context: &Context<'_>, party: Party) -> Option<String> {
    match party {
        Party::Backend(pid) => Some(who(context.backend(pid)?)),
        Party::Prepared(xact) => Some(format!("prepared '{}'", text::one_line(&context.prepared(xact)?.gid))),
    }
}

fn who(backend: &Backend) -> String {
    words::process(backend.pid, Some(backend))
}
