//! Sessions that wait for each other, and the server's count of deadlocks.

use rustc_hash::FxHashMap;

use super::{Change, seconds};
use crate::model::Timestamp;
use crate::model::event::{Draft, Kind, Length};
use crate::model::finding::{Severity, Subject, parties_text};
use crate::model::wait_graph::Party;
use crate::text::count;

/// The cycles of the last look, and since when each is known.
#[derive(Debug, Default)]
pub(super) struct Cycles {
    cycles: FxHashMap<Vec<Party>, (u64, Timestamp)>,
    looks: u64,
}

impl Cycles {
    pub(super) fn look(&mut self, change: &Change<'_>) -> Vec<Draft> {
        self.looks += 1;
        let look = self.looks;
        let mut drafts = Vec::new();
        for cycle in &change.after.graph.cycles {
            let mut parties = cycle.clone();
            parties.sort_unstable();
            let known = self.cycles.entry(parties).or_insert_with(|| {
                drafts.push(draft(
                    change,
                    cycle,
                    Kind::CycleBegun,
                    Severity::Critical,
                    "waited for each other",
                ));
                (look, change.now())
            });
            known.0 = look;
        }
        let mut gone: Vec<_> = self.cycles.extract_if(|_, (seen, _)| *seen != look).collect();
        gone.sort_unstable();
        for (parties, (_, since)) in gone {
            let words = "no longer waited for each other";
            let draft = draft(change, &parties, Kind::CycleEnded, Severity::Info, words);
            drafts.push(Draft { length: Some(Length::AtLeast(seconds(since, change.now()))), ..draft });
        }
        drafts
    }
}

fn draft(change: &Change<'_>, parties: &[Party], kind: Kind, severity: Severity, words: &str) -> Draft {
    let subject = parties.first().map(|party| change.subject(*party));
    let text = format!("{} {words}", parties_text(parties));
    Draft { subject, ..Draft::new(change.now(), kind, severity, text) }
}

/// The count rose since the snapshot before.
pub(super) fn deadlocks(change: &Change<'_>) -> Option<Draft> {
    let (rise, victims) = change.deadlocks.counted_at(change.now())?;
    let deadlocks = if rise == 1 { "a deadlock".to_owned() } else { format!("{} deadlocks", count(rise)) };
    let who = victims.map_or_else(|| ", whose parties no look saw".to_owned(), |victims| victims.words(rise));
    let subject = victims.and_then(|victims| victims.parties.first()).map(|party| change.subject(*party));
    let text = format!("the server broke {deadlocks}{who}");
    let draft = Draft::new(change.now(), Kind::Deadlock, Severity::Warning, text);
    Some(Draft { subject: subject.or(Some(Subject::Server)), ..draft })
}
