//! Reading installations beside the poll: on its connection, between two polls, a few messages at a time.
//!
//! What is dear rests in proportion: a part is not read again before a hundred times of what it took last, so that each costs a hundredth of a
//! core at most, also where an old snapshot makes an index longer by the hour. After three time-outs it is left alone until its query
//! has been planned again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rustc_hash::FxHashMap;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::decode::PartRow;
use super::find::find;
use super::survey::{PartReading, Surveyed, surveyed};
use crate::clock;
use crate::model::adapter::{Adapter, InstallationRows, Part, PartRows, Parts, ROWS};
use crate::model::lock::Lock;
use crate::model::snapshot::{Section, Snapshot};
use crate::model::{Text, Timestamp};
use crate::pg::background::{Background, Brought, Detected, Renewal};
use crate::pg::decode::texts::Texts;
use crate::pg::decode::{DecodeError, row};
use crate::pg::scope::Scope;
use crate::pg::section_error::SectionError;
use crate::pg::tables::{self, Reading, Refusal, blocker, has_changed};
use crate::pg::trust::TrustedOwners;

/// How often as long as it took a part rests.
const PAUSE: u32 = 100;
/// Time-outs in a row after which a part is left alone.
const TIMEOUTS: u32 = 3;
/// So long at most, or until its query is planned again.
const LEFT_ALONE: Duration = Duration::from_secs(3600);
/// No part is begun after so long in one go: a poll may be waiting.
const TURN: Duration = Duration::from_millis(300);

/// The installations of a session.
#[derive(Debug)]
pub(in crate::pg) struct Adapters {
    known: Arc<[Arc<Adapter>]>,
    owners: TrustedOwners,
    scope: Scope,
    /// What is read at all.
    wanted: Parts,
    /// When they are looked for again.
    renewal: Renewal,
    detected: Detected,
    surveyed: Arc<Vec<Surveyed>>,
    /// What somebody looks at.
    shown: Parts,
    /// When each part was read, by the OID of its installation.
    timing: FxHashMap<(u32, Part), Timing>,
    texts: Texts,
    rows: Arc<Vec<InstallationRows>>,
    reading: Background<Turn>,
}

/// When a part was read, and what that tells of the next time.
#[derive(Debug, Clone, Copy)]
struct Timing {
    read: Instant,
    /// So long it rests whoever looks, for what it took.
    rest: Duration,
    timeouts: u32,
}

impl Timing {
    /// When it may be read again.
    fn next(&self, part: Part, shown: Parts) -> Instant {
        self.read + self.rest.max(Duration::from_secs_f64(part.interval(shown.has(part))))
    }
}

/// What was done in one go.
#[derive(Debug)]
struct Turn {
    surveyed: Option<Vec<Surveyed>>,
    /// How long it took to find those.
    searched: Duration,
    read: Vec<ReadPart>,
}

/// A part that was read.
#[derive(Debug)]
struct ReadPart {
    oid: u32,
    part: Part,
    answer: Result<Vec<Bytes>, Refusal>,
    took: Duration,
}

/// What is to be done in one go.
struct Task {
    client: Arc<Client>,
    adapters: Arc<[Arc<Adapter>]>,
    owners: TrustedOwners,
    scope: Scope,
    wanted: Parts,
    /// What is known, and whether it is looked for anew.
    surveyed: Arc<Vec<Surveyed>>,
    is_looking: bool,
    /// Parts whose time has not come.
    resting: Vec<(u32, Part)>,
    /// Tables that were locked at the last look.
    locked: Vec<u32>,
}

impl Adapters {
    pub(in crate::pg) fn new(known: Arc<[Arc<Adapter>]>, owners: TrustedOwners, scope: Scope) -> Self {
        Self {
            known,
            owners,
            scope,
            wanted: Parts::ALL,
            renewal: Renewal::default(),
            detected: Detected::default(),
            surveyed: Arc::default(),
            shown: Parts::ALL,
            timing: FxHashMap::default(),
            texts: Texts::default(),
            rows: Arc::default(),
            reading: Background::default(),
        }
    }

    /// Of which these parts alone are planned and read.
    pub(in crate::pg) fn only(mut self, wanted: Parts) -> Self {
        self.wanted = wanted;
        self
    }

    /// With the texts of the own database.
    pub(in crate::pg) fn with(mut self, texts: Texts) -> Self {
        self.texts = texts;
        self
    }

    /// Whether there are adapters to look for.
    pub(in crate::pg) fn are_known(&self) -> bool {
        !self.known.is_empty()
    }

    /// From now on somebody looks at these parts; the others are read less often.
    pub(in crate::pg) fn watch(&mut self, shown: Parts) {
        self.shown = shown;
    }

    /// Whether the installations of a snapshot are all there are. Before the first search has ended there is neither a time nor an error.
    pub(in crate::pg) fn detection(&mut self, taken_at: Timestamp, before: Option<&Snapshot>) -> Section<()> {
        if self.known.is_empty() {
            self.detected.succeed();
        }
        self.detected.at(taken_at, before.map(|before| &before.detection.adapters))
    }

    /// Begins to read what is due, unless that is under way. A table that was locked at the last poll is left in peace.
    pub(in crate::pg) fn begin(&mut self, client: &Arc<Client>, locks: &Section<Lock>) {
        if !self.reading.is_begun()
            && !self.known.is_empty()
            && let Some(task) = self.task(client, locks)
        {
            self.reading.begin(task.run());
        }
    }

    /// Takes in what was read since the last poll, of which these are the locks and the time, and waits for it for at most `timeout`; later it
    /// counts from the next poll on.
    pub(in crate::pg) async fn collect(
        &mut self,
        (locks, taken_at): (&Section<Lock>, Timestamp),
        timeout: Duration,
    ) {
        match self.reading.take(timeout).await {
            None => {}
            Some(Brought { result: Ok(turn), .. }) => self.take(turn, locks, taken_at),
            Some(Brought { result: Err(reason), took }) => {
                self.renewal.fail(took);
                self.detected.fail(reason);
            }
        }
    }

    /// Whether something is read just now.
    pub(in crate::pg) fn is_reading(&self) -> bool {
        self.reading.is_running()
    }

    /// What was read so far.
    pub(in crate::pg) fn rows(&self) -> Arc<Vec<InstallationRows>> {
        Arc::clone(&self.rows)
    }

    /// What there is to do; none where nothing is.
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
            adapters: Arc::clone(&self.known),
            owners: self.owners.clone(),
            scope: self.scope,
            wanted: self.wanted,
            surveyed: Arc::clone(&self.surveyed),
            is_looking,
            resting,
            locked: tables.filter(|oid| blocker(locks, *oid).is_some()).collect(),
        })
    }

    fn take(&mut self, turn: Turn, locks: &Section<Lock>, taken_at: Timestamp) {
        let mut all = Vec::clone(&self.rows);
        if let Some(surveyed) = turn.surveyed {
            self.detected.succeed();
            self.renewal.succeed(turn.searched);
            for one in surveyed.iter().filter(|one| one.is_new) {
                // Planned anew: what had timed out is tried again.
                self.timing
                    .retain(|(oid, _), timing| *oid != one.installation.oid || timing.timeouts < TIMEOUTS);
            }
            self.surveyed = Arc::new(surveyed);
            all = self.surveyed.iter().map(|one| kept(&all, one)).collect();
            self.timing.retain(|(oid, _), _| self.surveyed.iter().any(|one| one.installation.oid == *oid));
        }
        for read in turn.read {
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

    /// What a reading tells of the next.
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

/// How long a part rests at least that took so long, after so many time-outs in a row.
fn rest(took: Duration, timeouts: u32) -> Duration {
    let rest = took * PAUSE;
    if timeouts >= TIMEOUTS { rest.max(LEFT_ALONE) } else { rest }
}

/// Whether the server gave up after its time.
fn is_timeout(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::Section(error) if error.code() == Some(&SqlState::QUERY_CANCELED))
}

/// What was read of an installation stays while it is the same.
fn kept(before: &[InstallationRows], one: &Surveyed) -> InstallationRows {
    let same = before.iter().find(|rows| rows.installation.oid == one.installation.oid);
    let installation = Arc::new(one.installation.clone());
    match same {
        Some(rows) if one.installation.refused.is_none() => InstallationRows { installation, ..rows.clone() },
        _ => InstallationRows::new(installation),
    }
}

impl Task {
    /// What is read this time. A list, since a closure of an iterator does not live across what is awaited.
    fn due(&self, surveyed: &[Surveyed]) -> Vec<(u32, PartReading)> {
        let mut due = Vec::new();
        for one in surveyed {
            let oid = one.installation.oid;
            let parts = one.readings.iter().filter(|part| !self.resting.contains(&(oid, part.part)));
            due.extend(parts.map(|part| (oid, part.clone())));
        }
        due
    }

    async fn run(self) -> Result<Turn, SectionError> {
        let mut turn = Turn { surveyed: None, searched: Duration::ZERO, read: Vec::new() };
        let started = clock::monotonic();
        if self.is_looking {
            let found = find(&self.client, &self.owners, self.scope, &self.adapters).await?;
            turn.searched = clock::monotonic().duration_since(started);
            turn.surveyed =
                Some(surveyed(&self.client, (self.scope, self.wanted), found, &self.surveyed).await?);
        }
        let surveyed = turn.surveyed.as_deref().unwrap_or(&self.surveyed);
        let mut read = Vec::new();
        for (oid, part) in self.due(surveyed) {
            // The first look is whole: there is nothing yet that anybody could see.
            let is_first = self.surveyed.is_empty();
            if clock::monotonic().duration_since(started) > TURN && !is_first {
                break;
            }
            let began = clock::monotonic();
            let is_locked = part.oids.iter().any(|oid| self.locked.contains(oid));
            let answer = Reading::Statement(part.sql, self.scope).read(&self.client, is_locked).await;
            let took = clock::monotonic().duration_since(began);
            let is_lost = matches!(&answer, Err(refusal) if refusal.fatal().is_some());
            read.push(ReadPart { oid, part: part.part, answer, took });
            if is_lost {
                break;
            }
        }
        turn.read = read;
        Ok(turn)
    }
}

/// Puts what was read of a part, or why it was not, in place of what was there.
fn put(
    installation: &mut InstallationRows,
    part: Part,
    answer: Result<Vec<Bytes>, Text>,
    taken_at: Timestamp,
    texts: &mut Texts,
) {
    let mut read = Put { part, answer, taken_at, texts };
    match part {
        Part::Workers => read.fill(&mut installation.workers),
        Part::Depth => read.fill(&mut installation.depth),
        Part::Paused => read.fill(&mut installation.paused),
        Part::Leases => read.fill(&mut installation.leases),
        Part::Schedules => read.fill(&mut installation.schedules),
        Part::Running | Part::Due | Part::Scheduled | Part::Blocked | Part::Failed => {
            read.fill(installation.jobs.entry(part).or_default());
        }
    }
}

struct Put<'a> {
    part: Part,
    answer: Result<Vec<Bytes>, Text>,
    taken_at: Timestamp,
    texts: &'a mut Texts,
}

impl Put<'_> {
    fn fill<T: PartRow>(&mut self, place: &mut PartRows<T>) {
        let unreadable = |error: DecodeError| Text::from(error.to_string());
        let answer = self.answer.as_ref().map_err(Clone::clone);
        let columns = self.part.columns().len();
        let found =
            answer.and_then(|messages| row::rows(messages, columns, self.texts, T::read).map_err(unreadable));
        *place = match found {
            Ok(mut rows) => {
                let is_cut = rows.len() > ROWS;
                rows.truncate(ROWS);
                PartRows { section: Section::fresh(rows, self.taken_at), is_cut }
            }
            Err(reason) => PartRows { section: place.section.stale(reason), is_cut: place.is_cut },
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dear_rests_in_proportion_and_what_nobody_sees_for_longer() {
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
