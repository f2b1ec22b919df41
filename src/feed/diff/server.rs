use rustc_hash::FxHashMap;

use super::{Change, of, seconds};
use crate::model::event::{Draft, Kind, Length, harmless};
use crate::model::finding::{Severity, Subject};
use crate::model::view::SnapshotView;
use crate::text::{count, one_line};

pub(super) fn look(change: &Change<'_>) -> Vec<Draft> {
    let Some(before) = change.before else { return vec![first(change)] };
    let mut drafts = Vec::new();
    if change.was_down {
        let length = Length::AtMost(seconds(before.snapshot.taken_at, change.now()));
        drafts
            .push(Draft { length: Some(length), ..info(change, Kind::LinkBack, "the server answers again") });
    }
    drafts.extend(same_server(change, before));
    drafts.extend(sections(change, before));
    drafts
}

fn info(change: &Change<'_>, kind: Kind, text: impl AsRef<str>) -> Draft {
    let draft = Draft::new(change.now(), kind, Severity::Info, text);
    Draft { subject: Some(Subject::Server), ..draft }
}

fn first(change: &Change<'_>) -> Draft {
    let (snapshot, graph) = (change.after.snapshot, &change.after.graph);
    let version = snapshot.server().map_or("?", |server| &*server.version);
    let waiting = match graph.waiting {
        0 => "no session waits for a lock".to_owned(),
        waiting => {
            let roots = count(change.after.blocking_roots().count() as u64);
            format!("{} wait for a lock, roots: {roots}", count(waiting.into()))
        }
    };
    info(change, Kind::LinkBack, format!("connected to PostgreSQL {version}: {waiting}"))
}

/// A restart, a promotion, or a connection to another of several hosts.
fn same_server(change: &Change<'_>, before: SnapshotView<'_>) -> Option<Draft> {
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
    let draft = Draft::new(at, Kind::Server, Severity::Warning, text);
    Some(Draft { subject: Some(Subject::Server), ..draft })
}

fn sections(change: &Change<'_>, before: SnapshotView<'_>) -> Vec<Draft> {
    let before_that = before.snapshot.sections();
    let old: FxHashMap<_, _> = before_that.iter().map(|read| (read.name(), read)).collect();
    let now = change.after.snapshot.sections();
    let drafts = now.iter().filter_map(|new| {
        let old = old.get(&new.name()).copied();
        // Redis servers have their own events, and a newly found job system is not a change.
        if new.section == "redis" || (new.section == "adapters" && old.is_none()) {
            return None;
        }
        let (what, more, kind, severity) = match (old.and_then(|old| old.error.as_ref()), &new.error) {
            (None, Some(error)) => {
                ("could not be read", format!(": {error}"), Kind::SectionStale, Severity::Warning)
            }
            (Some(_), None) => ("can be read again", String::new(), Kind::SectionFresh, Severity::Info),
            _ => return None,
        };
        let section = new.section;
        let who = harmless(&new.label());
        let draft = of(who, what, change.now(), kind, severity);
        let read_before = old.and_then(|old| old.taken_at).filter(|_| new.error.is_none());
        let length = read_before.zip(new.taken_at).map(|(from, to)| Length::Exactly(seconds(from, to)));
        Some(Draft { more: harmless(&more), length, subject: Some(Subject::Section(section)), ..draft })
    });
    drafts.chain(redis(change, before)).collect()
}

fn redis(change: &Change<'_>, before: SnapshotView<'_>) -> Vec<Draft> {
    let old = &before.snapshot.systems.redis;
    let new = &change.after.snapshot.systems.redis;
    let both = old.servers.iter().zip(&new.servers).filter(|(old, new)| old.server == new.server);
    let changed = both.filter(|(old, new)| old.error.is_some() != new.error.is_some());
    let drafts = changed.map(|(_, new)| {
        let who = harmless(&format!("redis {}", one_line(&new.server)));
        match &new.error {
            Some(error) => Draft {
                more: harmless(&format!(": {error}")),
                ..of(who, "stopped answering", change.now(), Kind::SectionStale, Severity::Warning)
            },
            None => of(who, "answered again", change.now(), Kind::SectionFresh, Severity::Info),
        }
    });
    drafts.collect()
}
