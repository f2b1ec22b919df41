//! A recording, and views of its looks made anew.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use super::digest::Digest;
use super::history::{Command, History, NotThere, Reply, find};
use super::record;
use crate::model::blame::Blame;
use crate::model::event::Event;
use crate::model::past::KeptLook;
use crate::model::thresholds::Thresholds;
use crate::model::timeline::{Moment, PastView, Step};
use crate::model::view::TargetId;
use crate::wire::record::container::{self, About, FOOTER, HEADER, Header, Kind, MOMENT};
use crate::wire::record::{Group, RecordError};

/// Bytes that are looked through at once for the next record.
const PIECE: usize = 1 << 16;

/// The same where records are large: the end of one and the head of the next.
const HEADS: usize = 512;

/// Gaps that are longer, in seconds, are jumped over while it plays.
const GAP: f64 = 5.0;

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
    #[error("{0}: there is no recording")]
    Nothing(String),
}

/// One of the files of a recording.
#[derive(Debug)]
struct Segment {
    file: File,
    path: PathBuf,
    /// A part of it and where that is: many records are small, and each would take three calls of the system.
    piece: (u64, Vec<u8>),
    /// Bytes that were looked through.
    scanned: u64,
    /// Bytes that were there when that was last asked.
    length: u64,
    /// Whether what comes goes on from a group that is known from its beginning.
    has_key: bool,
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
    ///
    /// # Errors
    /// When it cannot be read, or is none.
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
    ///
    /// # Errors
    /// When one cannot be read, or needs a later release.
    pub fn of(files: Vec<(File, PathBuf)>) -> Result<Self, ReplayError> {
        let segment = |(file, path)| Segment {
            file,
            path,
            piece: (0, Vec::new()),
            scanned: 0,
            length: 0,
            has_key: false,
        };
        let mut recording = Self {
            segments: files.into_iter().map(segment).collect(),
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
    #[must_use]
    pub fn refresh(&self) -> f64 {
        self.about().map(|about| about.refresh).filter(|seconds| *seconds > 0.0).unwrap_or(1.0)
    }

    /// What it says of itself; none where nothing is there yet.
    #[must_use]
    pub fn about(&self) -> Option<&About> {
        self.about.as_ref()
    }

    /// Its looks, oldest first. Their numbers are their places, from 1 on.
    #[must_use]
    pub fn moments(&self) -> &[Moment] {
        &self.moments
    }

    /// Other limits for findings than its own.
    pub fn judge_by(&mut self, thresholds: Thresholds) {
        self.thresholds = Some(thresholds);
    }

    /// Looks what has come since; whether anything has.
    ///
    /// # Errors
    /// When it cannot be read, or needs a later release.
    pub fn look_on(&mut self) -> Result<bool, ReplayError> {
        let before = self.moments.len();
        for at in 0..self.segments.len() {
            while self.scan(at)? {}
            // What was half written then may be something else later.
            if let Some(segment) = self.segments.get_mut(at) {
                segment.piece = (0, Vec::new());
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
    ///
    /// # Errors
    /// When there is none, or it is damaged.
    pub fn read(&mut self, place: usize) -> Result<KeptLook, NotThere> {
        let (opened, at) = self.group(place)?;
        let mut look = opened.look(at)?;
        // Who judges by something else judges by that alone.
        let expected = look.expected.take().filter(|_| self.thresholds.is_none());
        Ok(KeptLook { id: place as u64 + 1, expected, ..look })
    }

    /// What was counted of waits up to a look, none where that was not kept, and the events that were kept with it: the first of a
    /// group has some of before.
    ///
    /// # Errors
    /// As for [`Self::read`].
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
    ///
    /// # Errors
    /// As for [`Self::read`].
    pub fn view(&mut self, place: usize) -> Result<Arc<crate::model::view::View>, NotThere> {
        let kept = self.read(place)?;
        Ok(Digest::view_of(kept, TargetId::default(), &self.thresholds()))
    }

    /// From when on something is a finding: the file's own limits, or those it is judged by.
    #[must_use]
    pub fn thresholds(&self) -> Thresholds {
        let own = || self.about.as_ref().map(|about| about.thresholds.clone());
        self.thresholds.clone().or_else(own).unwrap_or_default()
    }

    /// The look that a step from a view leads to; none where that is beyond the last. What is damaged on the way is passed over.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
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

/// Where the last record of a file ends that is what was written; 0 where there is none.
pub(super) fn last_whole(file: File) -> io::Result<u64> {
    let mut segment =
        Segment { file, path: PathBuf::new(), piece: (0, Vec::new()), scanned: 0, length: 0, has_key: false };
    let mut end = 0;
    while let Some((offset, header, _)) = segment.next()? {
        if segment.read(offset)?.is_some() {
            end = offset + header.total();
        }
    }
    Ok(end)
}

impl Segment {
    /// The next record whose end is there: where it is, what stands before its payload, and how that begins. What is between two
    /// records is passed over.
    fn next(&mut self) -> io::Result<Option<(u64, Header, [u8; MOMENT])>> {
        loop {
            let mut begin = [0; HEADER + MOMENT];
            let read = self.copy(self.scanned, &mut begin, PIECE)?;
            let Some((first, rest)) = begin.split_first_chunk::<HEADER>().filter(|_| read >= HEADER) else {
                return Ok(None);
            };
            let Some(header) = Header::parse(first) else {
                self.has_key = false;
                if !self.skip()? {
                    return Ok(None);
                }
                continue;
            };
            let end = self.scanned + header.total();
            if end > self.length {
                self.length = self.file.metadata()?.len();
            }
            if end > self.length {
                // It is being written; or its length is wrong, and there are others behind it.
                let here = self.scanned;
                if self.skip()? {
                    self.has_key = false;
                    continue;
                }
                self.scanned = here;
                return Ok(None);
            }
            let mut footer = [0; FOOTER];
            let is_large = header.total() > PIECE as u64 / 16;
            self.copy(end - FOOTER as u64, &mut footer, if is_large { HEADS } else { PIECE })?;
            if footer != header.length.to_le_bytes() {
                self.has_key = false;
                if !self.skip()? {
                    return Ok(None);
                }
                continue;
            }
            let offset = std::mem::replace(&mut self.scanned, end);
            let mut moment = [0; MOMENT];
            moment.copy_from_slice(rest);
            return Ok(Some((offset, header, moment)));
        }
    }

    /// The same as [`read_at`], from the piece where it is there; else a piece of so many bytes is read.
    fn copy(&mut self, offset: u64, into: &mut [u8], size: usize) -> io::Result<usize> {
        let (begin, piece) = &mut self.piece;
        let end = offset + into.len() as u64;
        if offset < *begin || end > *begin + piece.len() as u64 {
            piece.resize(size, 0);
            let read = read_at(&mut self.file, offset, piece)?;
            piece.truncate(read);
            *begin = offset;
        }
        let there =
            usize::try_from(offset - *begin).ok().and_then(|from| piece.get(from..)).unwrap_or_default();
        let count = there.len().min(into.len());
        into.get_mut(..count).unwrap_or_default().copy_from_slice(there.get(..count).unwrap_or_default());
        Ok(count)
    }

    /// Its path, for an error.
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Goes on to where another record may begin; false where none does.
    fn skip(&mut self) -> io::Result<bool> {
        let length = self.file.metadata()?.len();
        let mut piece = vec![0; PIECE];
        let mut at = self.scanned + 1;
        while at < length {
            let read = read_at(&mut self.file, at, &mut piece)?;
            if let Some(found) = container::next_sync(piece.get(..read).unwrap_or_default()) {
                self.scanned = at + found as u64;
                return Ok(true);
            }
            if read < PIECE {
                break;
            }
            // One may begin at the end of this piece.
            at += (read - 3) as u64;
        }
        Ok(false)
    }

    /// The payload of a record; none where it is not what was written.
    fn read(&mut self, offset: u64) -> io::Result<Option<Vec<u8>>> {
        let mut header = [0; HEADER];
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.read_exact(&mut header)?;
        let Some(header) = Header::parse(&header) else { return Ok(None) };
        let mut payload = vec![0; header.length as usize + FOOTER];
        self.file.read_exact(&mut payload)?;
        let footer = payload.split_off(header.length as usize);
        Ok(header.fits(&payload, &footer).then_some(payload))
    }
}

/// Reads as much as there is.
fn read_at(file: &mut File, offset: u64, into: &mut [u8]) -> io::Result<usize> {
    file.seek(SeekFrom::Start(offset))?;
    let mut read = 0;
    while let Some(rest) = into.get_mut(read..).filter(|rest| !rest.is_empty()) {
        match file.read(rest) {
            Ok(0) => break,
            Ok(count) => read += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

/// How often a recording that grows is looked at.
const GROWS: Duration = Duration::from_millis(200);

/// Shows a recording on a thread of its own: the look of `first` at once, and then what is asked for. With `follow` it shows what comes
/// while nobody asks for anything else.
///
/// # Errors
/// When the system has no thread to give.
pub fn start(mut recording: Recording, first: Step, follow: bool, speed: Option<f64>) -> io::Result<History> {
    let (history, received, answers) = History::channel();
    let serve = move || {
        let mut player = Player { shown: recording.moments().len() as u64, speed, follow };
        let first = recording.go(player.shown, first);
        player.note(first.as_ref().ok());
        let _ = answers.send(Reply::Look(first));
        loop {
            match received.recv_timeout(player.rest(&recording)) {
                Ok(Command::Go { from, step }) => {
                    // Who goes somewhere stays there.
                    player.follow = false;
                    // What cannot be read any more is where it ends.
                    let _ = recording.look_on();
                    let answer = recording.go(from, step);
                    player.note(answer.as_ref().ok());
                    player.follow = follow && matches!(answer, Ok(None));
                    let _ = answers.send(Reply::Look(answer));
                }
                Ok(Command::Play(speed)) => player.speed = speed,
                Ok(Command::Keep(_) | Command::Lost(_) | Command::Save(..)) => {}
                Err(RecvTimeoutError::Timeout) => {
                    let has_more = recording.look_on().unwrap_or_default();
                    let next = match (player.follow, player.speed) {
                        (true, _) if has_more => Step::Looks(i32::MAX),
                        (false, Some(_)) => Step::Looks(1),
                        _ => continue,
                    };
                    if let Some(answer) = player.on(&mut recording, next) {
                        let _ = answers.send(Reply::Look(answer));
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    };
    std::thread::Builder::new().name("replay".to_owned()).spawn(serve)?;
    Ok(history)
}

/// Which look a replay shows, and how it goes on.
struct Player {
    /// The number of the look that is shown.
    shown: u64,
    /// So many times as fast as it was; none for standing still.
    speed: Option<f64>,
    /// Whether it shows each look that is added to the file.
    follow: bool,
}

impl Player {
    fn note(&mut self, answer: Option<&Option<Arc<PastView>>>) {
        if let Some(Some(past)) = answer {
            self.shown = past.view.id;
        }
    }

    /// How long until the next look.
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

    /// Goes on; none where there is nothing more.
    fn on(&mut self, recording: &mut Recording, step: Step) -> Option<super::history::Answer> {
        let step = if step == Step::Looks(i32::MAX) {
            let last = recording.moments().len() as u64;
            Step::Looks(i32::try_from(last.saturating_sub(self.shown)).unwrap_or(i32::MAX))
        } else {
            step
        };
        let answer = recording.go(self.shown, step);
        self.note(answer.as_ref().ok());
        match answer {
            Ok(Some(past)) => Some(Ok(Some(past))),
            _ => None,
        }
    }
}
