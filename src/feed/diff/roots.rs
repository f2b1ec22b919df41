//! Sessions that began or stopped blocking others without waiting themselves.

use rustc_hash::FxHashMap;

use super::{SnapshotChange, of, seconds};
use crate::model::backend::State;
use crate::model::event::{EventBody, EventKind, Length, harmless};
use crate::model::finding::{Severity, Subject, parties_text};
use crate::model::promise::Promise;
use crate::model::wait_graph::{Party, Root};
use crate::model::{Text, Timestamp};
use crate::text::count;

#[derive(Debug, Default)]
pub(super) struct Roots {
    roots: FxHashMap<Party, SeenRoot>,
    polls: u64,
}

#[derive(Debug)]
struct SeenRoot {
    poll: u64,
    since: Timestamp,
    /// The most sessions that waited behind it in one snapshot.
    most: u32,
    who: Text,
    subject: Subject,
}

impl Roots {
    pub(super) fn compare(&mut self, change: &SnapshotChange<'_>) -> Vec<EventBody> {
        self.polls += 1;
        let poll = self.polls;
        let mut bodies = Vec::new();
        for root in change.after.blocking_roots() {
            let subject = change.after.subject(root.party);
            match self.roots.get_mut(&root.party) {
                Some(seen) if !is_another(&seen.subject, &subject) => {
                    seen.poll = poll;
                    seen.most = seen.most.max(root.blocked);
                }
                other => {
                    bodies.extend(other.map(|seen| over(change, seen)));
                    let (body, seen) = begun(change, root, subject, poll);
                    self.roots.insert(root.party, seen);
                    bodies.push(body);
                }
            }
        }
        let mut gone: Vec<_> = self.roots.extract_if(|_, seen| seen.poll != poll).collect();
        gone.sort_unstable_by_key(|(party, seen)| (seen.since, *party));
        bodies.extend(gone.iter().map(|(_, seen)| over(change, seen)));
        bodies
    }
}

/// Whether the process id now belongs to another session. A session that is not visible proves nothing.
fn is_another(before: &Subject, after: &Subject) -> bool {
    matches!((before, after), (Subject::Backend(before), Subject::Backend(after)) if before != after)
}

fn begun(change: &SnapshotChange<'_>, root: &Root, subject: Subject, poll: u64) -> (EventBody, SeenRoot) {
    let who = change.who(root.party);
    let is_first = change.is_first();
    let at = if is_first { change.now() } else { change.moment(root.longest_wait) };
    // If sessions waited before the previous snapshot, it replaced another root after that snapshot.
    let earliest = change.before.map(|before| before.snapshot.taken_at);
    let since = root.longest_wait.max(earliest).unwrap_or(at);
    let state = change.backend(root.party.pid()).and_then(|backend| backend.state);
    // An active session will continue; an idle one blocks until its client acts.
    let is_idle = state.is_some_and(|state| state == State::Idle || state.is_idle_in_transaction());
    let severity = match root.party {
        Party::Prepared(_) => Severity::Warning,
        Party::Backend(_) if is_idle => Severity::Warning,
        Party::Backend(_) => Severity::Info,
    };
    let doing = state.map_or_else(String::new, |state| format!("{}, ", state.as_str()));
    let effect = Promise::from(root).words();
    // Another session may have been the root when the longest wait began.
    let (what, length) = match root.longest_wait {
        Some(longest) if is_first => ("blocks others already", Some(Length::AtMost(seconds(longest, at)))),
        _ => ("began to block others", None),
    };
    let body = EventBody {
        length,
        more: harmless(&format!(": {doing}{effect}")),
        subject: Some(subject),
        ..of(Text::clone(&who), what, at, EventKind::RootBegun, severity)
    };
    (body, SeenRoot { poll, since, most: root.blocked, who, subject })
}

fn over(change: &SnapshotChange<'_>, seen: &SeenRoot) -> EventBody {
    let snapshot = change.after.snapshot;
    let now = snapshot.locks.taken_at.unwrap_or(snapshot.taken_at);
    let is_gone = matches!(&seen.subject, Subject::Backend(id) if change.has_ended(*id));
    let how = if is_gone { ", its session ended" } else { "" };
    EventBody {
        more: harmless(&format!(": up to {}{how}", count(seen.most.into()))),
        subject: Some(seen.subject),
        length: Some(Length::AtMost(seconds(seen.since, now))),
        ..of(Text::clone(&seen.who), "stopped blocking others", now, EventKind::RootEnded, Severity::Info)
    }
}

// Deadlock cycles, and the server's count of deadlocks.

#[derive(Debug, Default)]
pub(super) struct Cycles {
    known: FxHashMap<Vec<Party>, (u64, Timestamp)>,
    polls: u64,
    /// Ended cycles with the session that lost its transaction: the server counts a deadlock later than it breaks it.
    victims: Vec<(Vec<Party>, Party)>,
}

/// Most ended cycles that are kept until they are counted.
const OVER: usize = 100;

impl Cycles {
    pub(super) fn compare(&mut self, change: &SnapshotChange<'_>) -> Vec<EventBody> {
        self.polls += 1;
        let poll = self.polls;
        let mut bodies = Vec::new();
        for cycle in &change.after.graph.cycles {
            let mut parties = cycle.clone();
            parties.sort_unstable();
            let known = self.known.entry(parties).or_insert_with(|| {
                bodies.push(event_body(
                    change,
                    cycle,
                    EventKind::CycleBegun,
                    Severity::Critical,
                    "waited for each other",
                ));
                (poll, change.now())
            });
            known.0 = poll;
        }
        let mut gone: Vec<_> = self.known.extract_if(|_, (seen, _)| *seen != poll).collect();
        gone.sort_unstable();
        for (parties, (_, since)) in gone {
            let words = "no longer waited for each other";
            let body = event_body(change, &parties, EventKind::CycleEnded, Severity::Info, words);
            let victim = victim(change, &parties);
            let more = victim.map(|victim| format!(": {} lost its transaction", parties_text(&[victim])));
            let length = Some(Length::AtLeast(seconds(since, change.now())));
            bodies.push(EventBody { length, more: harmless(&more.unwrap_or_default()), ..body });
            self.victims.extend(victim.map(|victim| (parties, victim)));
            self.victims.drain(..self.victims.len().saturating_sub(OVER));
        }
        bodies
    }

    pub(super) fn deadlocks(&self, change: &SnapshotChange<'_>) -> Option<EventBody> {
        let (rise, victims) = change.deadlocks.counted_at(change.now())?;
        let deadlocks =
            if rise == 1 { "a deadlock".to_owned() } else { format!("{} deadlocks", count(rise)) };
        let who = victims
            .map_or_else(|| ", whose sessions no snapshot shows".to_owned(), |victims| victims.words(rise));
        let victim = victims.filter(|_| rise == 1).and_then(|victims| {
            let mut parties = victims.parties.clone();
            parties.sort_unstable();
            self.victims.iter().rev().find(|(of, _)| *of == parties)
        });
        let more = victim.map(|(_, victim)| format!("; the victim was {}", parties_text(&[*victim])));
        let subject =
            victims.and_then(|victims| victims.parties.first()).map(|party| change.after.subject(*party));
        let text = format!("the server broke {deadlocks}{who}");
        let body = EventBody::new(change.now(), EventKind::Deadlock, Severity::Warning, text);
        let more = harmless(&more.unwrap_or_default());
        Some(EventBody { subject: subject.or(Some(Subject::Server)), more, ..body })
    }
}

/// The only one of these parties that lost its transaction while the others kept theirs. `None` if this cannot be
/// determined.
fn victim(change: &SnapshotChange<'_>, parties: &[Party]) -> Option<Party> {
    let before = change.before?;
    let has_lost = |party: Party| {
        let Party::Backend(pid) = party else { return Some(false) };
        let had = before.backend(pid)?;
        let has = change.backend(pid).filter(|has| has.backend_start == had.backend_start);
        let is_same = has.is_some_and(|has| {
            has.state != Some(State::IdleInTransactionAborted) && has.xact_start == had.xact_start
        });
        Some(!is_same)
    };
    let lost: Option<Vec<bool>> = parties.iter().map(|party| has_lost(*party)).collect();
    let mut victims = parties.iter().zip(lost?).filter(|(_, lost)| *lost);
    let (victim, _) = victims.next()?;
    victims.next().is_none().then_some(*victim)
}

fn event_body(
    change: &SnapshotChange<'_>,
    parties: &[Party],
    kind: EventKind,
    severity: Severity,
    words: &str,
) -> EventBody {
    let subject = parties.first().map(|party| change.after.subject(*party));
    let text = format!("{} {words}", parties_text(parties));
    EventBody { subject, ..EventBody::new(change.now(), kind, severity, text) }
}
