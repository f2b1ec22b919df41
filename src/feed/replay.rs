//! A recording, and views of its looks made anew.

mod player;
mod segment;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::digest::Digest;
use super::history::{NotThere, find};
use super::record;
use crate::model::blame::Blame;
use crate::model::event::Event;
use crate::model::past::KeptLook;
use crate::model::thresholds::Thresholds;
use crate::model::timeline::{Moment, PastView, Step};
use crate::model::view::TargetId;
use crate::wire::record::container::{self, About, Kind, MOMENT};
use crate::wire::record::{Group, RecordError};
pub use player::start;
use segment::Segment;
pub(super) use segment::last_whole;

/// Looks that are passed over, where they cannot be read, before that is told: more than there are in a group.
const DAMAGED: usize = 300;

/// Why there is nothing to replay.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The file or folder cannot be read.
    #[error("{path}: {error}")]
    Io {
        /// The path of the file, as it was given.
        path: String,
        /// The error of the system.
        error: io::Error,
    },
    /// It is something else, or of a later release.
    #[error("{path}: {error}")]
    Record {
        /// The path of the file, as it was given.
        path: String,
        /// What is wrong with its records.
        error: RecordError,
    },
    /// The file or folder of this name has no recording in it.
    #[error("{0}: not a recording of locktop")]
    Nothing(String),
}

/// Looks that need nothing before them.
#[derive(Debug)]
struct FileGroup {
    segment: usize,
    /// The place of the first among all looks.
    first: usize,
    /// Where the record of each is.
    records: Vec<u64>,
}

/// A recording. What is damaged in it is passed over.
#[derive(Debug)]
pub struct Recording {
    segments: Vec<Segment>,
    about: Option<About>,
    thresholds: Option<Thresholds>,
    groups: Vec<FileGroup>,
    moments: Vec<Moment>,
    opened: Option<(usize, Group)>,
}

impl Recording {
    /// Opens a file, or all recordings of a folder.
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

    /// The same for files that are open; more may come behind the last record of the last.
    pub fn of(files: Vec<(File, PathBuf)>) -> Result<Self, ReplayError> {
        let mut recording = Self {
            segments: files.into_iter().map(|(file, path)| Segment::new(file, path)).collect(),
            about: None,
            thresholds: None,
            groups: Vec::new(),
            moments: Vec::new(),
            opened: None,
        };
        recording.look_on()?;
        Ok(recording)
    }

    /// Seconds from one look to the next, usually.
    pub fn refresh(&self) -> f64 {
        self.about().map(|about| about.refresh).filter(|seconds| *seconds > 0.0).unwrap_or(1.0)
    }

    /// What it says of itself; none where nothing is there yet.
    pub fn about(&self) -> Option<&About> {
        self.about.as_ref()
    }

    /// Its looks, oldest first. Their numbers are their places, from 1 on.
    pub fn moments(&self) -> &[Moment] {
        &self.moments
    }

    /// Other limits for findings than its own.
    pub fn judge_by(&mut self, thresholds: Thresholds) {
        self.thresholds = Some(thresholds);
    }

    /// Looks what has come since; whether anything has.
    pub fn look_on(&mut self) -> Result<bool, ReplayError> {
        let before = self.moments.len();
        for at in 0..self.segments.len() {
            while self.scan(at)? {}
            // What was half written then may be something else later.
            if let Some(segment) = self.segments.get_mut(at) {
                segment.forget();
            }
        }
        Ok(self.moments.len() > before)
    }

    /// Takes the next record of a segment in; false where none is whole.
    fn scan(&mut self, at: usize) -> Result<bool, ReplayError> {
        let Some(segment) = self.segments.get_mut(at) else { return Ok(false) };
        let (offset, header, begin) = match segment.next() {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(false),
            Err(error) => return Err(ReplayError::Io { path: segment.name(), error }),
        };
        match header.kind {
            Kind::File => {
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
            Kind::Key | Kind::Look => {
                segment.has_key |= header.kind == Kind::Key;
                let (Some(moment), true) = (container::moment(&begin), segment.has_key) else {
                    return Ok(true);
                };
                let place = self.moments.len();
                self.moments.push(Moment { id: place as u64 + 1, ..moment });
                if header.kind == Kind::Key {
                    self.groups.push(FileGroup { segment: at, first: place, records: Vec::new() });
                }
                if let Some(group) = self.groups.last_mut() {
                    group.records.push(offset);
                }
            }
            Kind::Other if header.is_needed => {
                return Err(ReplayError::Record { path: segment.name(), error: RecordError::Later });
            }
            Kind::Link | Kind::End | Kind::Other => {}
        }
        Ok(true)
    }

    /// Reads the look at a place.
    pub fn read(&mut self, place: usize) -> Result<KeptLook, NotThere> {
        let (opened, at) = self.group(place)?;
        let mut look = opened.look(at)?;
        // Who judges by something else judges by that alone.
        let expected = look.expected.take().filter(|_| self.thresholds.is_none());
        Ok(KeptLook { id: place as u64 + 1, expected, ..look })
    }

    /// What was counted of waits up to a look, none where that was not kept, and the events that were kept with it: the first of a
    /// group has some of before.
    pub fn glance(&mut self, place: usize) -> Result<(Option<Arc<Blame>>, Vec<Event>), NotThere> {
        let (opened, at) = self.group(place)?;
        Ok(opened.glance(at)?)
    }

    /// The group of the look at a place, which is opened so far, and the place in it.
    fn group(&mut self, place: usize) -> Result<(&mut Group, usize), NotThere> {
        let number = self.groups.partition_point(|group| group.first <= place);
        let number = number.checked_sub(1).ok_or(NotThere::Nothing)?;
        let group = self.groups.get(number).ok_or(NotThere::Nothing)?;
        let at = place - group.first;
        let segment = self.segments.get_mut(group.segment).ok_or(NotThere::Nothing)?;
        let (_, opened) = match self.opened.take_if(|(known, _)| *known == number) {
            Some(known) => self.opened.insert(known),
            None => self.opened.insert((number, Group::default())),
        };
        for offset in group.records.get(opened.len()..=at).unwrap_or_default() {
            let payload = segment.read(*offset).ok().flatten().ok_or(RecordError::Damaged)?;
            opened.open(payload.get(MOMENT..).unwrap_or_default())?;
        }
        Ok((opened, at))
    }

    /// The view of a look.
    pub fn view(&mut self, place: usize) -> Result<Arc<crate::model::view::View>, NotThere> {
        let kept = self.read(place)?;
        Ok(Digest::view_of(kept, TargetId::default(), &self.thresholds()))
    }

    /// From when on something is a finding: the file's own limits, or those it is judged by.
    pub fn thresholds(&self) -> Thresholds {
        let own = || self.about.as_ref().map(|about| about.thresholds.clone());
        self.thresholds.clone().or_else(own).unwrap_or_default()
    }

    /// The look that a step from a view leads to; none where that is beyond the last. What is damaged on the way is passed over.
    pub fn go(&mut self, from: u64, step: Step) -> Result<Option<Arc<PastView>>, NotThere> {
        let Some(mut place) = find(&self.moments, from, step)? else { return Ok(None) };
        let is_back = matches!(step, Step::Looks(..0) | Step::Seconds(..0) | Step::TroubleBefore);
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
