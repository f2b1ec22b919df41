//! Reads installations between two polls, on the connection of the poll, a few messages at a time.
//!
//! A part pauses for a hundred times as long as it took last, and so costs at most a hundredth of a core, even if an old
//! snapshot makes an index grow. After three time-outs it is skipped until its query has been planned again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rustc_hash::FxHashMap;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::find::find;
use super::survey::{PartReading, Surveyed, surveyed};
use crate::clock;
use crate::model::adapter::{Adapter, InstallationRows, Part, Parts, ROWS};
use crate::model::lock::Lock;
use crate::model::snapshot::{Section, Snapshot};
use crate::model::{Text, Timestamp};
use crate::pg::background::{Background, BackgroundResult, Renewal};
use crate::pg::decode::DecodedRow;
use crate::pg::decode::Texts;
use crate::pg::decode::{DecodeError, copy};
use crate::pg::jobs::tables::{self, Refusal, TableReading, blocker, has_changed};
use crate::pg::poll::PollLimits;
use crate::pg::trust::TrustedOwners;
use crate::pg::{Scope, SectionError};

/// A part pauses for this many times as long as it took.
const PAUSE: u32 = 100;
/// Consecutive time-outs after which a part is skipped.
const TIMEOUTS: u32 = 3;
/// Longest time that a part is skipped, unless its query is planned again.
const LEFT_ALONE: Duration = Duration::from_secs(3600);
/// After this time no further part is started in one round, since a poll may be waiting.
const ROUND: Duration = Duration::from_millis(300);

/// The systems that are searched, and how they are read.
#[derive(Debug)]
struct ReadRequest {
    adapters: Arc<[Arc<Adapter>]>,
    owners: TrustedOwners,
    scope: Scope,
    parts: Parts,
}

#[derive(Debug)]
pub(in crate::pg) struct Adapters {
    wanted: Arc<ReadRequest>,
    renewal: Renewal,
    surveyed: Arc<Vec<Surveyed>>,
    shown: Parts,
    /// By the OID of the installation.
    timing: FxHashMap<(u32, Part), Timing>,
    texts: Texts,
    rows: Arc<Vec<InstallationRows>>,
    reading: Background<ReadRound>,
}

#[derive(Debug, Clone, Copy)]
struct Timing {
    read: Instant,
    /// Pause due to the time it took, whether or not the part is on display.
    rest: Duration,
    timeouts: u32,
}

impl Timing {
    fn next(&self, part: Part, shown: Parts) -> Instant {
        self.read + self.rest.max(Duration::from_secs_f64(part.interval(shown.has(part))))
    }
}

#[derive(Debug)]
struct ReadRound {
    surveyed: Option<Vec<Surveyed>>,
    /// How long the search for them took.
    searched: Duration,
    read: Vec<ReadPart>,
}

#[derive(Debug)]
struct ReadPart {
    oid: u32,
    part: Part,
    answer: Result<Vec<Bytes>, Refusal>,
    took: Duration,
}

struct Task {
    client: Arc<Client>,
    wanted: Arc<ReadRequest>,
    /// The known installations, and whether to search again.
    surveyed: Arc<Vec<Surveyed>>,
    is_searching: bool,
    resting: Vec<(u32, Part)>,
    /// Tables that were locked at the last poll.
    locked: Vec<u32>,
}

impl Adapters {
    pub(in crate::pg) fn new(limits: &PollLimits, scope: Scope, texts: Texts) -> Self {
        let (adapters, owners) = (Arc::clone(&limits.adapters), limits.trusted_owners.clone());
        Self {
            wanted: Arc::new(ReadRequest { adapters, owners, scope, parts: limits.adapter_parts }),
            renewal: Renewal::default(),
            surveyed: Arc::default(),
            shown: Parts::ALL,
            timing: FxHashMap::default(),
            texts,
            rows: Arc::default(),
            reading: Background::default(),
        }
    }

    pub(in crate::pg) fn are_known(&self) -> bool {
        !self.wanted.adapters.is_empty()
    }

    /// Sets the parts on display; the others are read less often.
    pub(in crate::pg) fn watch(&mut self, shown: Parts) {
        self.shown = shown;
    }

    /// Whether the installations of a snapshot are complete. Before the end of the first search it has neither a time nor an
    /// error.
    pub(in crate::pg) fn detection(&mut self, taken_at: Timestamp, before: Option<&Snapshot>) -> Section<()> {
        if !self.are_known() {
            self.renewal.succeed();
        }
        self.renewal.at(taken_at, before.map(|before| &before.detection.adapters))
    }

    /// Starts to read what is due, unless a reading is in progress. Tables that were locked at the last poll are skipped.
    pub(in crate::pg) fn begin(&mut self, client: &Arc<Client>, locks: &Section<Lock>) {
        if !self.reading.is_begun()
            && self.are_known()
            && let Some(task) = self.task(client, locks)
        {
            self.reading.begin(task.run());
        }
    }

    /// Takes over what was read since the last poll, whose locks and time these are, and waits for it for at most `timeout`.
    /// A later result counts from the next poll on.
    pub(in crate::pg) async fn collect(
        &mut self,
        (locks, taken_at): (&Section<Lock>, Timestamp),
        timeout: Duration,
    ) {
        match self.reading.take(timeout).await {
            Some(BackgroundResult { result: Ok(round), .. }) => self.take(round, locks, taken_at),
            Some(failed) => drop(self.renewal.end(failed)),
            None => {}
        }
    }

    pub(in crate::pg) fn is_reading(&self) -> bool {
        self.reading.is_running()
    }

    pub(in crate::pg) fn rows(&self) -> Arc<Vec<InstallationRows>> {
        Arc::clone(&self.rows)
    }

    fn task(&mut self, client: &Arc<Client>, locks: &Section<Lock>) -> Option<Task> {
        let now = clock::monotonic();
        let is_looking = self.renewal.is_due();
        let rests = |((_, part), timing): &(&(u32, Part), &Timing)| timing.next(*part, self.shown) > now;
        let resting: Vec<_> = self.timing.iter().filter(rests).map(|(part, _)| *part).collect();
        let all = self
            .surveyed
            .iter()
            .flat_map(|one| one.readings.iter().map(|part| (one.installation.oid, part.part)));
        let is_due = all.into_iter().any(|part| !resting.contains(&part));
        if !is_looking && !is_due {
            return None;
        }
        if is_looking {
            self.renewal.begin();
        }
        let tables = self
            .surveyed
            .iter()
            .flat_map(|one| one.readings.iter().flat_map(|part| part.oids.iter().copied()));
        Some(Task {
            client: Arc::clone(client),
            wanted: Arc::clone(&self.wanted),
            surveyed: Arc::clone(&self.surveyed),
            is_searching: is_looking,
            resting,
            locked: tables.filter(|oid| blocker(locks, *oid).is_some()).collect(),
        })
    }

    fn take(&mut self, round: ReadRound, locks: &Section<Lock>, taken_at: Timestamp) {
        let mut all = Vec::clone(&self.rows);
        let searched =
            round.surveyed.map(|surveyed| BackgroundResult { result: Ok(surveyed), took: round.searched });
        if let Some(surveyed) = searched.and_then(|searched| self.renewal.end(searched)) {
            for one in surveyed.iter().filter(|one| one.is_new) {
                // Planned again: parts that had timed out are retried.
                self.timing
                    .retain(|(oid, _), timing| *oid != one.installation.oid || timing.timeouts < TIMEOUTS);
            }
            self.surveyed = Arc::new(surveyed);
            all = self.surveyed.iter().map(|one| kept(&all, one)).collect();
            self.timing.retain(|(oid, _), _| self.surveyed.iter().any(|one| one.installation.oid == *oid));
        }
        for read in round.read {
            let timing = self.timed(&read);
            let reason = read.answer.as_ref().err().map(|refusal| self.reason(&read, refusal, locks, timing));
            if read.answer.as_ref().is_err_and(|refusal| has_changed(refusal) && !is_timeout(refusal)) {
                self.renewal.doubt();
            }
            self.timing.insert((read.oid, read.part), timing);
            let answer = read.answer.map_err(|_| reason.unwrap_or_default());
            if let Some(installation) = all.iter_mut().find(|one| one.installation.oid == read.oid) {
                put(installation, read.part, answer, taken_at, &mut self.texts);
            }
        }
        self.rows = Arc::new(all);
    }

    fn timed(&self, read: &ReadPart) -> Timing {
        let before = self.timing.get(&(read.oid, read.part)).map_or(0, |timing| timing.timeouts);
        let timeouts = match &read.answer {
            Ok(_) => 0,
            Err(refusal) if is_timeout(refusal) => before + 1,
            Err(_) => before,
        };
        Timing { read: clock::monotonic(), rest: rest(read.took, timeouts), timeouts }
    }

    fn reason(&self, read: &ReadPart, refusal: &Refusal, locks: &Section<Lock>, timing: Timing) -> Text {
        if timing.timeouts >= TIMEOUTS {
            return format!("it took more than a second, {TIMEOUTS} times in a row: paused for some time")
                .into();
        }
        let one = self.surveyed.iter().find(|one| one.installation.oid == read.oid);
        let part = one.and_then(|one| one.readings.iter().find(|reading| reading.part == read.part));
        let oids = part.map(|part| part.oids.as_slice()).unwrap_or_default();
        let oid = oids.iter().find(|oid| blocker(locks, **oid).is_some()).copied().unwrap_or_default();
        let name = one.map(|one| one.installation.label()).unwrap_or_default();
        tables::reason(refusal, oid, &name, locks)
    }
}

/// Shortest pause of a part that took this long, after this many consecutive time-outs.
fn rest(took: Duration, timeouts: u32) -> Duration {
    let rest = took * PAUSE;
    if timeouts >= TIMEOUTS { rest.max(LEFT_ALONE) } else { rest }
}

/// Whether the server canceled the statement at its time limit.
fn is_timeout(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::Section(error) if error.code() == Some(&SqlState::QUERY_CANCELED))
}

fn kept(before: &[InstallationRows], one: &Surveyed) -> InstallationRows {
    let same = before.iter().find(|rows| rows.installation.oid == one.installation.oid);
    let installation = Arc::new(one.installation.clone());
    match same {
        Some(rows) if one.installation.refused.is_none() => InstallationRows { installation, ..rows.clone() },
        _ => InstallationRows::new(installation),
    }
}

impl Task {
    /// The parts to read this time. A list, since an iterator closure cannot be held across an await.
    fn due(&self, surveyed: &[Surveyed]) -> Vec<(u32, PartReading)> {
        let mut due = Vec::new();
        for one in surveyed {
            let oid = one.installation.oid;
            let parts = one.readings.iter().filter(|part| !self.resting.contains(&(oid, part.part)));
            due.extend(parts.map(|part| (oid, part.clone())));
        }
        due
    }

    async fn run(self) -> Result<ReadRound, SectionError> {
        let mut round = ReadRound { surveyed: None, searched: Duration::ZERO, read: Vec::new() };
        let started = clock::monotonic();
        if self.is_searching {
            let ReadRequest { adapters, owners, scope, parts } = &*self.wanted;
            let found = find(&self.client, owners, *scope, adapters).await?;
            round.searched = clock::monotonic().duration_since(started);
            round.surveyed = Some(surveyed(&self.client, (*scope, *parts), found, &self.surveyed).await?);
        }
        let surveyed = round.surveyed.as_deref().unwrap_or(&self.surveyed);
        let mut read = Vec::new();
        for (oid, part) in self.due(surveyed) {
            // The first round reads everything: nothing is on display before it.
            let is_first = self.surveyed.is_empty();
            if clock::monotonic().duration_since(started) > ROUND && !is_first {
                break;
            }
            let began = clock::monotonic();
            let is_locked = part.oids.iter().any(|oid| self.locked.contains(oid));
            let answer =
                TableReading::Statement(part.sql, self.wanted.scope).read(&self.client, is_locked).await;
            let took = clock::monotonic().duration_since(began);
            let is_lost = matches!(&answer, Err(refusal) if refusal.fatal().is_some());
            read.push(ReadPart { oid, part: part.part, answer, took });
            if is_lost {
                break;
            }
        }
        round.read = read;
        Ok(round)
    }
}

fn put(
    rows: &mut InstallationRows,
    part: Part,
    answer: Result<Vec<Bytes>, Text>,
    taken_at: Timestamp,
    texts: &mut Texts,
) {
    match part {
        Part::Workers => fill(&mut rows.workers, answer, taken_at, texts),
        Part::Depth => fill(&mut rows.depth, answer, taken_at, texts),
        Part::Paused => fill(&mut rows.paused, answer, taken_at, texts),
        Part::Leases => fill(&mut rows.leases, answer, taken_at, texts),
        Part::Schedules => fill(&mut rows.schedules, answer, taken_at, texts),
        Part::Running | Part::Due | Part::Scheduled | Part::Blocked | Part::Failed => {
            fill(rows.jobs.entry(part).or_default(), answer, taken_at, texts);
        }
    }
}

fn fill<T: DecodedRow>(
    section: &mut Section<T>,
    answer: Result<Vec<Bytes>, Text>,
    taken_at: Timestamp,
    texts: &mut Texts,
) {
    let unreadable = |error: DecodeError| Text::from(error.to_string());
    let found = answer
        .and_then(|messages| copy::rows(&messages, T::COLUMNS.len(), texts, T::read).map_err(unreadable));
    *section = match found {
        Ok(mut rows) => {
            let is_cut = rows.len() > ROWS;
            rows.truncate(ROWS);
            Section::fresh(rows, taken_at).cut(is_cut)
        }
        Err(reason) => section.stale(reason),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_parts_pause_in_proportion_and_hidden_parts_pause_longer() {
        let ms = Duration::from_millis;
        for (part, took, timeouts, shown, hidden) in [
            (Part::Running, 2, 0, 2, 5),
            (Part::Running, 20, 0, 2, 5),
            (Part::Running, 21, 2, 2, 5),
            (Part::Running, 50, 0, 5, 5),
            (Part::Running, 70, 0, 7, 7),
            (Part::Leases, 2, 0, 2, 30),
            (Part::Due, 2, 0, 5, 30),
            (Part::Depth, 2, 0, 10, 30),
            (Part::Depth, 1000, 0, 100, 100),
            (Part::Depth, 1000, 1, 100, 100),
            (Part::Depth, 1000, 2, 100, 100),
            (Part::Depth, 1000, 3, 3600, 3600),
        ] {
            let read = clock::monotonic();
            let timing = Timing { read, rest: rest(ms(took), timeouts), timeouts };
            let others: Vec<Part> = Part::ALL.iter().copied().filter(|other| *other != part).collect();
            for (parts, seconds) in [(Parts::of(&[part]), shown), (Parts::of(&others), hidden)] {
                let found = timing.next(part, parts).duration_since(read);
                assert_eq!(found.as_secs(), seconds, "{part:?} {took} ms, {timeouts} time-outs, {parts:?}");
            }
        }
    }
}
