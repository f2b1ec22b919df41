use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::mpsc::UnboundedSender;

use super::{HistoryLimits, Reply};
use crate::clock;
use crate::feed::record::redact::Redaction;
use crate::feed::record::{Options, Recorder};
use crate::feed::view_builder::ViewBuilder;
use crate::model::Timestamp;
use crate::model::event::Events;
use crate::model::past::{Incident, KeptObservation, Moment, Observation, PastView, TimeStep};
use crate::model::thresholds::Thresholds;
use crate::model::view::TargetId;
use crate::recording::container::RecordingInfo;
use crate::recording::{Encoder, RecordError, SnapshotGroup};

/// Approximate size of an event, in bytes.
const EVENT: usize = 400;

/// Events after which a further event log is kept: the newest log drops old events that earlier snapshots still have.
const LOG: u64 = 8192;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotThere {
    #[error("no snapshot in the history yet")]
    Nothing,
    #[error("the history begins here")]
    Begin,
    #[error("no earlier incident")]
    NoIncidentBefore,
    #[error("no later incident")]
    NoIncidentAfter,
    #[error("this snapshot cannot be shown: {0}")]
    Unreadable(#[from] RecordError),
}

#[derive(Debug, Clone, Copy)]
struct Kept {
    moment: Moment,
    /// Numbers of its first event, and of the one after its last.
    events: (u64, u64),
}

/// Snapshots that can be decoded without earlier ones.
#[derive(Debug, Clone, Default)]
struct KeptGroup {
    snapshots: Vec<Kept>,
    frames: Vec<Vec<u8>>,
    bytes: usize,
}

#[derive(Debug, Default)]
pub struct HistoryStore {
    limits: HistoryLimits,
    target: TargetId,
    thresholds: Thresholds,
    encoder: Encoder,
    groups: VecDeque<KeptGroup>,
    dropped: u64,
    bytes: usize,
    /// Event logs over time, up to the last snapshot. Each shares most of its storage with the previous one.
    logs: VecDeque<Arc<Events>>,
    /// The last decoded group, numbered from the first group ever stored.
    opened: Option<(u64, SnapshotGroup)>,
}

impl HistoryStore {
    pub fn new(limits: HistoryLimits, target: TargetId, thresholds: Thresholds) -> Self {
        Self { limits, target, thresholds, ..Self::default() }
    }

    pub fn keep(&mut self, observation: &Observation) {
        let Some(snapshot) = observation.view.snapshot.as_deref() else { return };
        // A snapshot that cannot be encoded is missing; the next one starts a group.
        let Ok(frame) = self.encoder.encode(observation) else { return };
        let events = &observation.view.events;
        let end = events.end();
        let before = self.last().map_or(events.dropped(), |last| last.events.1);
        let trouble = self.note_incident(events, before);
        let moment = Moment {
            id: observation.view.id,
            at: snapshot.taken_at,
            waiting: observation.view.graph.waiting,
            incident: trouble,
        };
        if frame.is_key || self.groups.is_empty() {
            self.groups.push_back(KeptGroup::default());
        }
        self.keep_log(events, frame.is_key);
        if let Some(group) = self.groups.back_mut() {
            let bytes = frame.bytes.len() + size_of::<Kept>();
            group.snapshots.push(Kept { moment, events: (events.dropped(), end) });
            group.frames.push(frame.bytes);
            group.bytes += bytes;
            self.bytes += bytes;
        }
        self.make_room(moment.at);
    }

    pub fn bytes(&self) -> usize {
        let events = self.logs.back().zip(self.logs.front()).map_or(0, |(newest, oldest)| {
            let all = newest.end().saturating_sub(oldest.dropped());
            usize::try_from(all).unwrap_or(usize::MAX).saturating_sub(newest.len())
        });
        self.bytes + events * EVENT
    }

    /// The worst event since the previous snapshot. A lost connection is assigned to the snapshot before it.
    fn note_incident(&mut self, events: &Events, from: u64) -> Option<Incident> {
        let (silent, other): (Vec<_>, Vec<_>) =
            Incident::since(events, from).partition(|trouble| *trouble == Incident::NoAnswer);
        if !silent.is_empty()
            && let Some(last) = self.groups.back_mut().and_then(|group| group.snapshots.last_mut())
        {
            last.moment.incident = last.moment.incident.max(Some(Incident::NoAnswer));
        }
        other.into_iter().max()
    }

    fn last(&self) -> Option<&Kept> {
        self.groups.back()?.snapshots.last()
    }

    /// The last log is that of the newest snapshot. Others are kept at the start of a group, or if they are many events apart.
    fn keep_log(&mut self, events: &Arc<Events>, begins: bool) {
        let before = self.logs.len().checked_sub(2).and_then(|at| self.logs.get(at));
        let is_far = before.is_none_or(|before| events.end().saturating_sub(before.end()) >= LOG);
        if !begins && !is_far {
            self.logs.pop_back();
        }
        self.logs.push_back(Arc::clone(events));
    }

    fn make_room(&mut self, now: Timestamp) {
        let oldest = chrono::TimeDelta::from_std(self.limits.length)
            .ok()
            .and_then(|length| now.checked_sub_signed(length));
        let is_old = |group: &KeptGroup| {
            group.snapshots.last().zip(oldest).is_some_and(|(last, oldest)| last.moment.at < oldest)
        };
        while self.groups.len() > 1
            && (self.bytes() > self.limits.memory || self.groups.front().is_some_and(is_old))
        {
            let Some(group) = self.groups.pop_front() else { return };
            self.bytes -= group.bytes;
            self.dropped += 1;
            let first = self
                .groups
                .front()
                .and_then(|group| group.snapshots.first())
                .map(|observation| observation.events);
            // The next log also has the events that the remaining snapshots need.
            while self.logs.len() > 1
                && let (Some(log), Some(first)) = (self.logs.front(), first)
                && log.end() < first.1
            {
                self.logs.pop_front();
            }
        }
    }

    fn snapshots(&self) -> impl Iterator<Item = &Kept> {
        self.groups.iter().flat_map(|group| &group.snapshots)
    }

    /// The snapshot that a step from a view leads to. `None` if that is the newest.
    pub fn go(&mut self, from: u64, step: TimeStep) -> Result<Option<Arc<PastView>>, NotThere> {
        let moments: Vec<Moment> = self.snapshots().map(|kept| kept.moment).collect();
        let Some(place) = find(&moments, from, step)? else { return Ok(None) };
        let kept = self.read(place)?;
        let view = ViewBuilder::view_of(kept, self.target, &self.thresholds);
        Ok(Some(Arc::new(PastView { view, place, moments: moments.into() })))
    }

    fn len(&self) -> usize {
        self.snapshots().count()
    }

    /// A copy, to be read while snapshots are added.
    pub(super) fn copy(&self) -> Self {
        Self {
            groups: self.groups.clone(),
            dropped: self.dropped,
            bytes: self.bytes,
            logs: self.logs.clone(),
            ..Self::new(self.limits, self.target, self.thresholds.clone())
        }
    }

    pub(super) fn read(&mut self, place: usize) -> Result<KeptObservation, NotThere> {
        let mut at = place;
        let mut number = 0;
        for group in &self.groups {
            if at < group.snapshots.len() {
                break;
            }
            at -= group.snapshots.len();
            number += 1;
        }
        let group = self.groups.get(number).ok_or(NotThere::Nothing)?;
        let number = self.dropped + number as u64;
        let (_, opened) = match self.opened.take_if(|(known, _)| *known == number) {
            Some(known) => self.opened.insert(known),
            None => self.opened.insert((number, SnapshotGroup::default())),
        };
        for frame in group.frames.get(opened.len()..=at).unwrap_or_default() {
            opened.open(frame)?;
        }
        let observation = opened.snapshot(at)?;
        let (first, end) = group.snapshots.get(at).ok_or(NotThere::Nothing)?.events;
        Ok(KeptObservation { events: Arc::new(Events::part(&self.logs, first, end)), ..observation })
    }
}

/// The position of the snapshot that a step leads to. `None` if it leads past the newest.
pub(in crate::feed) fn find(
    moments: &[Moment],
    from: u64,
    step: TimeStep,
) -> Result<Option<usize>, NotThere> {
    let last = moments.len().checked_sub(1).ok_or(NotThere::Nothing)?;
    // The shown snapshot may have been dropped, and a view with only a new event has the snapshot of the view before.
    let here = moments.iter().rposition(|moment| moment.id <= from);
    let now = here.and_then(|here| moments.get(here)).map(|moment| moment.at);
    let at_or_before = |time: Timestamp| moments.iter().rposition(|moment| moment.at <= time);
    let later = || moments.iter().enumerate().skip(here.map_or(0, |here| here + 1));
    match step {
        TimeStep::Snapshots(count) if count < 0 => match here {
            Some(0) | None => Err(NotThere::Begin),
            Some(here) => Ok(Some(here.saturating_sub(count.unsigned_abs() as usize))),
        },
        TimeStep::Snapshots(count) => {
            let to = here.map_or(0, |here| here + count.unsigned_abs() as usize);
            Ok((to <= last).then_some(to))
        }
        TimeStep::Seconds(seconds) => {
            let time = now.map(|now| now + chrono::TimeDelta::seconds(seconds.into()));
            match (time, seconds < 0) {
                (_, true) if here.is_none_or(|here| here == 0) => Err(NotThere::Begin),
                (None, _) => Ok(Some(0)),
                (Some(time), true) => Ok(Some(at_or_before(time).unwrap_or(0))),
                (Some(time), false) => Ok(later().find(|(_, moment)| moment.at >= time).map(|(at, _)| at)),
            }
        }
        TimeStep::IncidentBefore => {
            let before = moments.get(..here.unwrap_or(0)).unwrap_or_default();
            let found = before.iter().rposition(|moment| moment.incident.is_some());
            found.map(Some).ok_or(NotThere::NoIncidentBefore)
        }
        TimeStep::NextIncident => {
            let found = later().find(|(_, moment)| moment.incident.is_some());
            found.map(|(at, _)| Some(at)).ok_or(NotThere::NoIncidentAfter)
        }
        TimeStep::Time(time) => Ok(Some(at_or_before(time).unwrap_or(0))),
        TimeStep::Seen(time) => Ok(Some(moments.iter().position(|moment| moment.at >= time).unwrap_or(last))),
        TimeStep::Before(time) => Ok(Some(moments.iter().rposition(|moment| moment.at < time).unwrap_or(0))),
        TimeStep::Worst => {
            // The last of equal ones, as in the report: there the waits are longest.
            Ok(moments.iter().enumerate().max_by_key(|(_, moment)| moment.waiting).map(|(at, _)| at))
        }
    }
}

// Saves the history as a recording.

pub(super) fn start_saving(
    mut store: HistoryStore,
    path: PathBuf,
    about: RecordingInfo,
    replies: UnboundedSender<Reply>,
) {
    let answer = replies.clone();
    let write = move || {
        let said = save(&mut store, &path, RecordingInfo { created: Some(clock::wall()), ..about })
            .unwrap_or_else(|why| why);
        // The receiver may be dropped.
        let _ = replies.send(Reply::Saved(said));
    };
    if let Err(error) = std::thread::Builder::new().name("save".to_owned()).spawn(write) {
        let _ = answer.send(Reply::Saved(format!("no thread to write snapshots: {error}")));
    }
}

/// Writes all snapshots like `locktop record`: literals are removed from statements about passwords.
fn save(store: &mut HistoryStore, path: &Path, about: RecordingInfo) -> Result<String, String> {
    let count = store.len();
    if count == 0 {
        return Err("no snapshot yet".to_owned());
    }
    let recorder = Recorder::open(Options::new_file(path, about)).map_err(|error| error.to_string())?;
    let said = write(store, path, recorder, count).map_err(|why| format!("{}: {why}", path.display()));
    if said.is_err() {
        // A partial file would make the next attempt fail.
        let _ = std::fs::remove_file(path);
    }
    said
}

fn write(
    store: &mut HistoryStore,
    path: &Path,
    mut recorder: Recorder,
    count: usize,
) -> Result<String, String> {
    for place in 0..count {
        // An unreadable snapshot is left out.
        let Ok(mut kept) = store.read(place) else { continue };
        Redaction::None.apply_to_recorded(&mut kept);
        let (past, notes) = (Arc::new(kept.past.clone()), Arc::clone(&kept.notes));
        let view = ViewBuilder::view_of(kept, store.target, &store.thresholds);
        recorder.write(&Observation { view, past, notes }).map_err(|error| error.to_string())?;
    }
    let written = recorder.snapshots();
    let losses = recorder.losses().map(|losses| format!("; {losses}")).unwrap_or_default();
    recorder.end().map_err(|error| error.to_string())?;
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let snapshots = crate::text::count(written);
    let missing = match (count as u64).saturating_sub(written) {
        0 => String::new(),
        missing => {
            format!("; {} are missing: they cannot be read, or are too large", crate::text::count(missing))
        }
    };
    let path = path.display();
    Ok(format!("{snapshots} snapshots are in {path}: for locktop replay and locktop report{missing}{losses}"))
}
