//! Events from the difference between two snapshots. Every snapshot is processed, even if it is never drawn.
//!
//! The first snapshot yields events for existing waits, whose start the server reports, and for current root blockers;
//! everything else yields events only from then on. Time and memory are linear in the number of waits, tasks, leases and
//! items.

mod leases;
mod roots;
mod tasks;
#[cfg(test)]
mod tests;
mod waits;

use rustc_hash::FxHashMap;

use crate::model::backend::{Backend, BackendId};
use crate::model::event::{EventBody, EventKind, Length, harmless};
use crate::model::finding::{Deadlocks, Severity, Subject};
use crate::model::view::SnapshotView;
use crate::model::wait_graph::Party;
use crate::model::{Text, Timestamp, event};
use crate::order::SortExt;
use crate::text::{count, one_line};

pub(super) struct SnapshotChange<'a> {
    /// `None` at the first snapshot.
    pub(super) before: Option<SnapshotView<'a>>,
    pub(super) after: SnapshotView<'a>,
    /// Whether the connection was lost in between.
    pub(super) was_down: bool,
    pub(super) deadlocks: &'a Deadlocks,
}

impl<'a> SnapshotChange<'a> {
    fn now(&self) -> Timestamp {
        self.after.snapshot.taken_at
    }

    /// Whether the previous state is unknown, so that what is present may have started differently.
    fn is_first(&self) -> bool {
        self.before.is_none() || self.was_down
    }

    /// The time `at` from the server if it is between the two snapshots, otherwise now.
    fn moment(&self, at: Option<Timestamp>) -> Timestamp {
        let earliest = self.before.map(|before| before.snapshot.taken_at);
        let is_between = |at: &Timestamp| *at <= self.now() && earliest.is_none_or(|earliest| *at > earliest);
        at.filter(is_between).unwrap_or_else(|| self.now())
    }

    fn has_locks(&self) -> bool {
        self.after.snapshot.locks.is_known()
    }

    fn backend(&self, pid: i32) -> Option<&'a Backend> {
        self.after.backend(pid)
    }

    /// Whether a session has ended, as far as this can be determined.
    fn has_ended(&self, id: BackendId) -> bool {
        let is_another = |start: Timestamp| id.backend_start.is_some_and(|before| before != start);
        self.after.snapshot.backends.is_known()
            && self.backend(id.pid).is_none_or(|backend| backend.backend_start.is_some_and(is_another))
    }

    /// `4312 app@web-3`, `prepared transaction 'order-17'`.
    fn who(&self, party: Party) -> Text {
        event::harmless(&self.after.party(party))
    }
}

#[derive(Debug, Default)]
pub(super) struct Diff {
    waits: waits::WaitChanges,
    roots: roots::Roots,
    cycles: roots::Cycles,
    tasks: tasks::TaskChanges,
}

impl Diff {
    pub(super) fn compare(&mut self, change: &SnapshotChange<'_>) -> Vec<EventBody> {
        let mut bodies = of_server(change);
        if change.has_locks() {
            // At the same time, an effect follows its cause.
            bodies.extend(self.roots.compare(change));
            bodies.extend(self.waits.compare(change));
            bodies.extend(self.cycles.compare(change));
        }
        bodies.extend(self.cycles.deadlocks(change));
        bodies.extend(self.tasks.compare(change));
        bodies.extend(leases::compare(change));
        bodies.extend(tasks::compare_items(change));
        arrange(&mut bodies);
        bodies
    }
}

/// Sorts by time. Events that are shown as one line are adjacent, at the time of the first.
fn arrange(bodies: &mut [EventBody]) {
    if bodies.len() < 2 {
        return;
    }
    let key = |body: &EventBody| (body.kind, body.severity, Text::clone(&body.what));
    let mut groups: FxHashMap<_, (Timestamp, usize, usize)> = FxHashMap::default();
    for (place, body) in bodies.iter().enumerate().filter(|(_, body)| !body.who.is_empty()) {
        let group = groups.entry(key(body)).or_insert((body.at, place, 0));
        *group = (group.0.min(body.at), group.1, group.2 + 1);
    }
    groups.retain(|_, (_, _, count)| *count > event::FEW);
    bodies.order_by_cached_key(|body| {
        let group = groups.get(&key(body)).filter(|_| !body.who.is_empty());
        group.map_or((body.at, 0, body.at), |(first, place, _)| (*first, 1 + place, body.at))
    });
}

fn of(who: Text, what: &str, at: Timestamp, kind: event::EventKind, severity: Severity) -> EventBody {
    EventBody { who, ..EventBody::new(at, kind, severity, what) }
}

/// Seconds between two times, at least 0.
fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    (to - from).as_seconds_f64().max(0.0)
}

// The server itself: connections, restarts, and sections that cannot be read.

fn of_server(change: &SnapshotChange<'_>) -> Vec<EventBody> {
    let Some(before) = change.before else { return vec![first(change)] };
    let mut bodies = Vec::new();
    if change.was_down {
        let length = Length::AtMost(seconds(before.snapshot.taken_at, change.now()));
        bodies.push(EventBody {
            length: Some(length),
            ..info(change, EventKind::LinkBack, "the server answers again")
        });
    }
    bodies.extend(same_server(change, before));
    bodies.extend(sections(change, before));
    bodies
}

fn info(change: &SnapshotChange<'_>, kind: EventKind, text: impl AsRef<str>) -> EventBody {
    let body = EventBody::new(change.now(), kind, Severity::Info, text);
    EventBody { subject: Some(Subject::Server), ..body }
}

fn first(change: &SnapshotChange<'_>) -> EventBody {
    let (snapshot, graph) = (change.after.snapshot, &change.after.graph);
    let version = snapshot.server().map_or("?", |server| &*server.version);
    let waiting = match graph.waiting {
        0 => "no session waits for a lock".to_owned(),
        waiting => {
            let roots = count(change.after.blocking_roots().count() as u64);
            format!("{} wait for a lock, roots: {roots}", count(waiting.into()))
        }
    };
    info(change, EventKind::LinkBack, format!("connected to PostgreSQL {version}: {waiting}"))
}

/// A restart, a promotion, or a connection to another of several hosts.
fn same_server(change: &SnapshotChange<'_>, before: SnapshotView<'_>) -> Option<EventBody> {
    let (old, new) = (before.snapshot.server()?, change.after.snapshot.server()?);
    let restarted = old.started_at.zip(new.started_at).filter(|(old, new)| old != new);
    let role = if new.in_recovery { "standby" } else { "primary" };
    let is_another = (&old.host, old.port) != (&new.host, new.port);
    let (at, text) = match (restarted, old.in_recovery, new.in_recovery) {
        (Some(_), ..) if is_another => {
            let text = format!("another server answers: {}, version {}, {role}", new.place(), new.version);
            (change.now(), text)
        }
        (Some((_, at)), ..) => {
            (change.moment(Some(at)), format!("the server restarted, version {}, as {role}", new.version))
        }
        (None, true, false) => (change.now(), "the server was promoted to primary".to_owned()),
        (None, false, true) => (change.now(), "the server became a standby".to_owned()),
        _ => return None,
    };
    let body = EventBody::new(at, EventKind::Server, Severity::Warning, text);
    Some(EventBody { subject: Some(Subject::Server), ..body })
}

fn sections(change: &SnapshotChange<'_>, before: SnapshotView<'_>) -> Vec<EventBody> {
    let before_that = before.snapshot.sections();
    let old: FxHashMap<_, _> = before_that.iter().map(|read| (read.name(), read)).collect();
    let now = change.after.snapshot.sections();
    let bodies = now.iter().filter_map(|new| {
        let old = old.get(&new.name()).copied();
        // Redis servers have their own events, and a newly found job system is not a change.
        if new.section == "redis" || (new.section == "adapters" && old.is_none()) {
            return None;
        }
        let (what, more, kind, severity) = match (old.and_then(|old| old.error.as_ref()), &new.error) {
            (None, Some(error)) => {
                ("could not be read", format!(": {error}"), EventKind::SectionStale, Severity::Warning)
            }
            (Some(_), None) => ("can be read again", String::new(), EventKind::SectionFresh, Severity::Info),
            _ => return None,
        };
        let section = new.section;
        let who = harmless(&new.label());
        let body = of(who, what, change.now(), kind, severity);
        let read_before = old.and_then(|old| old.taken_at).filter(|_| new.error.is_none());
        let length = read_before.zip(new.taken_at).map(|(from, to)| Length::Exactly(seconds(from, to)));
        Some(EventBody { more: harmless(&more), length, subject: Some(Subject::Section(section)), ..body })
    });
    bodies.chain(redis(change, before)).collect()
}

fn redis(change: &SnapshotChange<'_>, before: SnapshotView<'_>) -> Vec<EventBody> {
    let old = &before.snapshot.sources.redis;
    let new = &change.after.snapshot.sources.redis;
    let both = old.servers.iter().zip(&new.servers).filter(|(old, new)| old.server == new.server);
    let changed = both.filter(|(old, new)| old.error.is_some() != new.error.is_some());
    let bodies = changed.map(|(_, new)| {
        let who = harmless(&format!("redis {}", one_line(&new.server)));
        match &new.error {
            Some(error) => EventBody {
                more: harmless(&format!(": {error}")),
                ..of(who, "stopped answering", change.now(), EventKind::SectionStale, Severity::Warning)
            },
            None => of(who, "answered again", change.now(), EventKind::SectionFresh, Severity::Info),
        }
    });
    bodies.collect()
}
