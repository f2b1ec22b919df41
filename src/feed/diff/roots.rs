//! Sessions that began or stopped blocking others without waiting themselves.

use rustc_hash::FxHashMap;

use super::{Change, of, seconds};
use crate::model::backend::State;
use crate::model::event::{Draft, Kind, Length, harmless};
use crate::model::finding::{Severity, Subject};
use crate::model::promise::Promise;
use crate::model::wait_graph::{Party, Root};
use crate::model::{Text, Timestamp};
use crate::text::count;

#[derive(Debug, Default)]
pub(super) struct Roots {
    roots: FxHashMap<Party, SeenRoot>,
    looks: u64,
}

#[derive(Debug)]
struct SeenRoot {
    look: u64,
    /// Lower bound of when the blocking began.
    since: Timestamp,
    /// The most sessions that waited behind it in one snapshot.
    most: u32,
    who: Text,
    subject: Subject,
}

impl Roots {
    pub(super) fn look(&mut self, change: &Change<'_>) -> Vec<Draft> {
        self.looks += 1;
        let look = self.looks;
        let mut drafts = Vec::new();
        for root in &change.after.graph.roots {
            let subject = change.after.subject(root.party);
            match self.roots.get_mut(&root.party) {
                Some(seen) if !is_another(&seen.subject, &subject) => {
                    seen.look = look;
                    seen.most = seen.most.max(root.blocked);
                }
                other => {
                    drafts.extend(other.map(|seen| over(change, seen)));
                    let (draft, seen) = begun(change, root, subject, look);
                    self.roots.insert(root.party, seen);
                    drafts.push(draft);
                }
            }
        }
        let mut gone: Vec<_> = self.roots.extract_if(|_, seen| seen.look != look).collect();
        gone.sort_unstable_by_key(|(party, seen)| (seen.since, *party));
        drafts.extend(gone.iter().map(|(_, seen)| over(change, seen)));
        drafts
    }
}

/// Whether the process id now belongs to another session. A session that is not visible proves nothing.
fn is_another(before: &Subject, after: &Subject) -> bool {
    matches!((before, after), (Subject::Backend(before), Subject::Backend(after)) if before != after)
}

fn begun(change: &Change<'_>, root: &Root, subject: Subject, look: u64) -> (Draft, SeenRoot) {
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
    let draft = Draft {
        length,
        more: harmless(&format!(": {doing}{effect}")),
        subject: Some(subject),
        ..of(Text::clone(&who), what, at, Kind::RootBegun, severity)
    };
    (draft, SeenRoot { look, since, most: root.blocked, who, subject })
}

fn over(change: &Change<'_>, seen: &SeenRoot) -> Draft {
    let snapshot = change.after.snapshot;
    let now = snapshot.locks.taken_at.unwrap_or(snapshot.taken_at);
    let is_gone = matches!(&seen.subject, Subject::Backend(id) if change.is_gone(*id));
    let how = if is_gone { ", its session ended" } else { "" };
    Draft {
        more: harmless(&format!(": up to {}{how}", count(seen.most.into()))),
        subject: Some(seen.subject),
        length: Some(Length::AtMost(seconds(seen.since, now))),
        ..of(Text::clone(&seen.who), "stopped blocking others", now, Kind::RootEnded, Severity::Info)
    }
}
