//! Reads a recording, and restores views of its snapshots.

mod segment;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use super::history::{History, HistoryCommand, NotThere, PastViewResult, Reply, find};
use super::record;
use super::view_builder::ViewBuilder;
use crate::model::blame::Blame;
use crate::model::event::Event;
use crate::model::past::{KeptObservation, Moment, PastView, TimeStep};
use crate::model::thresholds::Thresholds;
use crate::model::view::TargetId;
use crate::recording::container::{self, MOMENT, RecordKind, RecordingInfo};
use crate::recording::{RecordError, SnapshotGroup};
use segment::Segment;

pub(super) use segment::last_whole;

/// Most unreadable snapshots to skip before reporting an error; larger than a group.
const DAMAGED: usize = 300;

#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error("{path}: {error}")]
    Io { path: String, error: io::Error },
    /// Not a recording, or one of a later release.
    #[error("{path}: {error}")]
    Record { path: String, error: RecordError },
    #[error("{0}: not a recording of locktop")]
    Nothing(String),
}

#[derive(Debug)]
struct FileGroup {
    segment: usize,
    /// The position of the first among all snapshots.
    first: usize,
    /// The offset of each record.
    records: Vec<u64>,
}

#[derive(Debug, Default)]
pub struct Recording {
    segments: Vec<Segment>,
    about: Option<RecordingInfo>,
    thresholds: Option<Thresholds>,
    groups: Vec<FileGroup>,
    moments: Vec<Moment>,
    opened: Option<(usize, SnapshotGroup)>,
}

impl Recording {
    pub fn open(path: &Path) -> Result<Self, ReplayError> {
        let io = |path: &Path, error| ReplayError::Io { path: path.display().to_string(), error };
        let paths = if path.is_dir() {
            record::files(path).map_err(|error| io(path, error))?
        } else {
            vec![path.to_owned()]
        };
        let mut files = Vec::new();
        for path in paths {
            files.push((File::open(&path).map_err(|error| io(&path, error))?, path));
        }
        let recording = Self::of(files)?;
        if recording.about.is_none() {
            return Err(ReplayError::Nothing(path.display().to_string()));
        }
        Ok(recording)
    }

    /// Like `open`, for open files. Records can be appended to the last one.
    pub fn of(files: Vec<(File, PathBuf)>) -> Result<Self, ReplayError> {
        let segments = files.into_iter().map(|(file, path)| Segment::new(file, path)).collect();
        let mut recording = Self { segments, ..Self::default() };
        recording.check_for_more()?;
        Ok(recording)
    }

    /// The usual time between snapshots, in seconds.
    pub fn refresh(&self) -> f64 {
        self.about().map(|about| about.refresh).filter(|seconds| *seconds > 0.0).unwrap_or(1.0)
    }

    pub fn about(&self) -> Option<&RecordingInfo> {
        self.about.as_ref()
    }

    /// The snapshots, oldest first. Their ids are their positions, from 1.
    pub fn moments(&self) -> &[Moment] {
        &self.moments
    }

    pub fn judge_by(&mut self, thresholds: Thresholds) {
        self.thresholds = Some(thresholds);
    }

    /// Reads appended records. Returns whether there is a new snapshot.
    pub fn check_for_more(&mut self) -> Result<bool, ReplayError> {
        let before = self.moments.len();
        for at in 0..self.segments.len() {
            while self.scan(at)? {}
            // A partially written record can change.
            if let Some(segment) = self.segments.get_mut(at) {
                segment.forget();
            }
        }
        Ok(self.moments.len() > before)
    }

    /// Reads the next record of a segment. Returns false if there is no complete one.
    fn scan(&mut self, at: usize) -> Result<bool, ReplayError> {
        let Some(segment) = self.segments.get_mut(at) else { return Ok(false) };
        let (offset, header, begin) = match segment.next() {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(false),
            Err(error) => return Err(ReplayError::Io { path: segment.name(), error }),
        };
        match header.kind {
            RecordKind::File => {
                let payload =
                    segment.read(offset).map_err(|error| ReplayError::Io { path: segment.name(), error })?;
                match payload.map(|payload| container::about(&payload)) {
                    Some(Ok(about)) => self.about = self.about.take().or(Some(about)),
                    Some(Err(error @ RecordError::Later)) => {
                        return Err(ReplayError::Record { path: segment.name(), error });
                    }
                    Some(Err(_)) | None => {}
                }
                segment.has_key = false;
            }
            RecordKind::Key | RecordKind::Snapshot => {
                segment.has_key |= header.kind == RecordKind::Key;
                let (Some(moment), true) = (container::moment(&begin), segment.has_key) else {
                    return Ok(true);
                };
                let place = self.moments.len();
                self.moments.push(Moment { id: place as u64 + 1, ..moment });
                if header.kind == RecordKind::Key {
                    self.groups.push(FileGroup { segment: at, first: place, records: Vec::new() });
                }
                if let Some(group) = self.groups.last_mut() {
                    group.records.push(offset);
                }
            }
            RecordKind::Other if header.is_needed => {
                return Err(ReplayError::Record { path: segment.name(), error: RecordError::Later });
            }
            RecordKind::Link | RecordKind::End | RecordKind::Other => {}
        }
        Ok(true)
    }

    pub fn read(&mut self, place: usize) -> Result<KeptObservation, NotThere> {
        let (opened, at) = self.group(place)?;
        let mut observation = opened.snapshot(at)?;
        // Other thresholds also replace the expected blockers.
        let expected = observation.expected.take().filter(|_| self.thresholds.is_none());
        Ok(KeptObservation { id: place as u64 + 1, expected, ..observation })
    }

    /// The stored blame of a snapshot, if any, and the events stored with it. The first of a group also has earlier events.
    pub fn glance(&mut self, place: usize) -> Result<(Option<Arc<Blame>>, Vec<Event>), NotThere> {
        let (opened, at) = self.group(place)?;
        Ok(opened.glance(at)?)
    }

    /// The group of a snapshot, decoded up to it, and the position in the group.
    fn group(&mut self, place: usize) -> Result<(&mut SnapshotGroup, usize), NotThere> {
        let number = self.groups.partition_point(|group| group.first <= place);
        let number = number.checked_sub(1).ok_or(NotThere::Nothing)?;
        let group = self.groups.get(number).ok_or(NotThere::Nothing)?;
        let at = place - group.first;
        let segment = self.segments.get_mut(group.segment).ok_or(NotThere::Nothing)?;
        let (_, opened) = match self.opened.take_if(|(known, _)| *known == number) {
            Some(known) => self.opened.insert(known),
            None => self.opened.insert((number, SnapshotGroup::default())),
        };
        for offset in group.records.get(opened.len()..=at).unwrap_or_default() {
            let payload = segment.read(*offset).ok().flatten().ok_or(RecordError::Damaged)?;
            opened.open(payload.get(MOMENT..).unwrap_or_default())?;
        }
        Ok((opened, at))
    }

    pub fn view(&mut self, place: usize) -> Result<Arc<crate::model::view::View>, NotThere> {
        let kept = self.read(place)?;
        Ok(ViewBuilder::view_of(kept, TargetId::default(), &self.thresholds()))
    }

    /// The thresholds in use: those set by `judge_by`, otherwise those of the recording.
    pub fn thresholds(&self) -> Thresholds {
        let own = || self.about.as_ref().map(|about| about.thresholds.clone());
        self.thresholds.clone().or_else(own).unwrap_or_default()
    }

    /// The snapshot that a step from a view leads to. `None` if it leads past the last. Skips damaged snapshots.
    pub fn go(&mut self, from: u64, step: TimeStep) -> Result<Option<Arc<PastView>>, NotThere> {
        let Some(mut place) = find(&self.moments, from, step)? else { return Ok(None) };
        let is_back =
            matches!(step, TimeStep::Snapshots(..0) | TimeStep::Seconds(..0) | TimeStep::IncidentBefore);
        for _ in 0..DAMAGED {
            match self.view(place) {
                Ok(view) => {
                    let moments = self.moments.as_slice().into();
                    return Ok(Some(Arc::new(PastView { view, place, moments })));
                }
                Err(NotThere::Unreadable(_)) => {}
                Err(error) => return Err(error),
            }
            let next = if is_back { place.checked_sub(1) } else { Some(place + 1) };
            match next.filter(|next| *next < self.moments.len()) {
                Some(next) => place = next,
                None => return Err(RecordError::Damaged.into()),
            }
        }
        Err(RecordError::Damaged.into())
    }
}

/// Longest pause between snapshots during playback, in seconds.
const GAP: f64 = 5.0;

/// Poll interval for appended snapshots.
const GROWS: Duration = Duration::from_millis(200);

/// Starts the thread. It shows the snapshot of `first`, then those requested. With `follow` it also shows appended
/// snapshots until a request.
pub fn start(
    mut recording: Recording,
    first: TimeStep,
    follow: bool,
    speed: Option<f64>,
) -> io::Result<History> {
    let (history, received, answers) = History::channel();
    let serve = move || {
        let mut player = Player { shown: recording.moments().len() as u64, speed, follow };
        let first = recording.go(player.shown, first);
        player.note(first.as_ref().ok());
        let _ = answers.send(Reply::View(first));
        loop {
            match received.recv_timeout(player.rest(&recording)) {
                Ok(HistoryCommand::Go { from, step }) => {
                    // A request ends following.
                    player.follow = false;
                    // If reading fails, the recording ends here.
                    let _ = recording.check_for_more();
                    let answer = recording.go(from, step);
                    player.note(answer.as_ref().ok());
                    player.follow = follow && matches!(answer, Ok(None));
                    let _ = answers.send(Reply::View(answer));
                }
                Ok(HistoryCommand::Play(speed)) => player.speed = speed,
                Ok(HistoryCommand::Keep(_) | HistoryCommand::Lost(_) | HistoryCommand::Save(..)) => {}
                Err(RecvTimeoutError::Timeout) => {
                    let has_more = recording.check_for_more().unwrap_or_default();
                    let next = match (player.follow, player.speed) {
                        (true, _) if has_more => TimeStep::Snapshots(i32::MAX),
                        (false, Some(_)) => TimeStep::Snapshots(1),
                        _ => continue,
                    };
                    if let Some(answer) = player.on(&mut recording, next) {
                        let _ = answers.send(Reply::View(answer));
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    };
    std::thread::Builder::new().name("replay".to_owned()).spawn(serve)?;
    Ok(history)
}

struct Player {
    shown: u64,
    /// Multiple of the original speed. `None` while stopped.
    speed: Option<f64>,
    follow: bool,
}

impl Player {
    fn note(&mut self, answer: Option<&Option<Arc<PastView>>>) {
        if let Some(Some(past)) = answer {
            self.shown = past.view.id;
        }
    }

    fn rest(&self, recording: &Recording) -> Duration {
        let (Some(speed), false) = (self.speed, self.follow) else { return GROWS };
        let at = |number: u64| {
            let place = usize::try_from(number.checked_sub(1)?).ok()?;
            Some(recording.moments().get(place)?.at)
        };
        let Some((here, next)) = at(self.shown).zip(at(self.shown + 1)) else { return GROWS };
        let between = (next - here).as_seconds_f64().clamp(0.0, GAP);
        Duration::from_secs_f64(between / speed).max(Duration::from_millis(10))
    }

    /// Takes a step. `None` if there are no more snapshots.
    fn on(&mut self, recording: &mut Recording, step: TimeStep) -> Option<PastViewResult> {
        let step = if step == TimeStep::Snapshots(i32::MAX) {
            let last = recording.moments().len() as u64;
            TimeStep::Snapshots(i32::try_from(last.saturating_sub(self.shown)).unwrap_or(i32::MAX))
        } else {
            step
        };
        let answer = recording.go(self.shown, step);
        self.note(answer.as_ref().ok());
        matches!(answer, Ok(Some(_))).then_some(answer)
    }
}
