//! The recorder. It writes in its own thread, so that the poll never waits for a disk.
//!
//! Each record is one write, and is on the disk at most [`Options::sync`] later. If the program is killed, at most the
//! record being written is lost.

mod incident_buffer;
pub mod names;
mod output;
pub mod redact;
#[cfg(test)]
mod tests;

use std::io;
use std::path::Path;
use std::sync::mpsc::RecvTimeoutError;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub(super) use output::files;
pub use output::{Destination, Rotation};

use super::history::{HistoryCommand, HistorySender};
use crate::clock;
use crate::model::past::{Incident, Moment, Observation};
use crate::recording::container::{self, RecordKind, RecordingInfo};
use crate::recording::{Encoder, Frame, RecordError};
pub use incident_buffer::Around;
use incident_buffer::{BufferStep, IncidentBuffer};
use output::RecordingFile;

/// Longest statement, in characters, in a snapshot that is too large; the second limit is tried if the first does not
/// suffice.
const SHORT: [usize; 2] = [1_000, 100];

const AGAIN: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
pub struct Options {
    pub place: Destination,
    /// Longest time until written snapshots are on the disk.
    pub sync: Duration,
    pub rotation: Rotation,
    pub about: RecordingInfo,
    /// Record only incidents, with this much around them. `None` records everything.
    pub on_trouble: Option<Around>,
}

impl Options {
    /// For a file that must not exist, and gets all snapshots.
    pub fn new_file(path: &Path, about: RecordingInfo) -> Self {
        let (place, sync) = (Destination::NewFile(path.to_owned()), Duration::from_secs(1));
        Self { place, sync, rotation: Rotation::default(), about, on_trouble: None }
    }
}

/// Reports a failed write, and the first one that succeeds again.
pub type Report = Box<dyn Fn(&str) + Send>;

/// Starts the thread. It ends when the sender is dropped, and returns the result.
pub fn start(options: Options, tell: Report) -> io::Result<(HistorySender, JoinHandle<io::Result<()>>)> {
    let (history_sender, received) = HistorySender::channel();
    let queued = history_sender.queued();
    let mut recorder = Recorder::open(options)?;
    let serve = move || {
        loop {
            match received.recv_timeout(recorder.options.sync.max(Duration::from_millis(10))) {
                Ok(HistoryCommand::Keep(observation)) => {
                    HistorySender::taken(&queued);
                    recorder.keep(&observation, &tell)?;
                }
                Ok(HistoryCommand::Lost(reason)) => recorder.lost(&reason, &tell)?,
                Ok(HistoryCommand::Go { .. } | HistoryCommand::Play(_) | HistoryCommand::Save(..)) => {}
                Err(RecvTimeoutError::Timeout) => recorder.sync(),
                Err(RecvTimeoutError::Disconnected) => {
                    recorder.losses().iter().for_each(|losses| tell(losses));
                    return recorder.end();
                }
            }
        }
    };
    let thread = std::thread::Builder::new().name("record".to_owned()).spawn(serve)?;
    Ok((history_sender, thread))
}

pub struct Recorder {
    options: Options,
    encoder: Encoder,
    output: RecordingFile,
    /// Snapshots that wait for an incident. `None` if everything is recorded.
    buffer: Option<IncidentBuffer>,
    reported: Option<String>,
    /// The number after the last written event.
    events: Option<u64>,
    is_lost: bool,
    synced: Instant,
    failed: Option<Instant>,
    /// Written snapshots, without those waiting for an incident.
    snapshots: u64,
    /// Statements cut because their snapshot was too large.
    cut: u64,
    /// Snapshots too large even with cut statements.
    too_large: u64,
}

impl Recorder {
    /// Opens the place. An existing recording is continued.
    pub fn open(options: Options) -> io::Result<Self> {
        let buffer = options.on_trouble.map(IncidentBuffer::new);
        let output = if buffer.is_some() {
            RecordingFile::closed(&options)?
        } else {
            let mut output = RecordingFile::open(&options)?;
            output.begin(&options)?;
            output
        };
        let encoder = Encoder::with_events();
        Ok(Self {
            options,
            // The buffer drops whole groups, so its groups are short.
            encoder: if buffer.is_some() { encoder } else { encoder.in_long_groups() },
            output,
            buffer,
            reported: None,
            events: None,
            is_lost: false,
            synced: clock::monotonic(),
            failed: None,
            snapshots: 0,
            cut: 0,
            too_large: 0,
        })
    }

    /// Written snapshots. Those without data or too large are not counted.
    pub fn snapshots(&self) -> u64 {
        self.snapshots
    }

    /// Losses of snapshots above the size limit. `None` if all were written in full.
    pub fn losses(&self) -> Option<String> {
        let count = crate::text::count;
        let (cut, missing) = (count(self.cut), count(self.too_large));
        match (self.cut, self.too_large) {
            (0, 0) => None,
            (_, 0) => Some(format!("{cut} statements were cut: their snapshots are larger than 32 MB")),
            _ => Some(format!(
                "{missing} snapshots are missing, because they exceed 32 MB even without long statements; {cut} statements of others were cut"
            )),
        }
    }

    /// Writes a snapshot. After a failure, the next attempt is a minute later; an error is that the reader has closed the pipe.
    pub fn keep(&mut self, observation: &Observation, tell: &Report) -> io::Result<()> {
        self.is_lost = false;
        let kept = self.try_write(tell, |recorder| recorder.write(observation));
        if let Some(said) = self.reported.take() {
            tell(&said);
        }
        kept
    }

    /// Records a lost connection, once per loss.
    fn lost(&mut self, reason: &str, tell: &Report) -> io::Result<()> {
        if std::mem::replace(&mut self.is_lost, true) {
            return Ok(());
        }
        self.try_write(tell, |recorder| {
            let record = container::record(RecordKind::Link, reason.as_bytes()).map_err(io::Error::other)?;
            let Some(buffer) = &mut recorder.buffer else { return recorder.output.write(&record) };
            if buffer.other(record) { recorder.write_waiting() } else { Ok(()) }
        })
    }

    fn try_write(
        &mut self,
        tell: &Report,
        write: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.failed.is_some_and(|failed| failed.elapsed() < AGAIN) {
            return Ok(());
        }
        match self.rotate().and_then(|()| write(self)) {
            Ok(()) => {
                if self.failed.take().is_some() {
                    tell("recording continues");
                }
            }
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Err(error),
            Err(error) => {
                if self.failed.replace(clock::monotonic()).is_none() {
                    tell(&format!("{error}: nothing is recorded; next attempt in a minute"));
                }
                // Remove a partial record, and start a group, since the next record cannot depend on it.
                self.output.cut();
                self.encoder.begin_group();
            }
        }
        if self.synced.elapsed() >= self.options.sync {
            self.sync();
        }
        Ok(())
    }

    pub fn write(&mut self, observation: &Observation) -> io::Result<()> {
        let Some(snapshot) = observation.view.snapshot.as_deref() else { return Ok(()) };
        let frame = match self.encoder.encode(observation) {
            Ok(frame) => frame,
            Err(RecordError::Empty) => return Ok(()),
            Err(RecordError::TooLarge) => match self.shortened(observation) {
                Some(frame) => frame,
                None => return Ok(()),
            },
            Err(error) => return Err(io::Error::other(error)),
        };
        let events = &observation.view.events;
        let from = self.events.replace(events.end()).unwrap_or(events.dropped());
        let moment = Moment {
            id: observation.view.id,
            at: snapshot.taken_at,
            waiting: observation.view.graph.waiting,
            incident: Incident::since(events, from).max(),
        };
        let record = container::snapshot_record(&moment, &frame).map_err(io::Error::other)?;
        if let Some(buffer) = &mut self.buffer {
            let step = buffer.add(record, frame.is_key, &observation.view);
            return self.step_buffer(step);
        }
        self.output.write(&record)?;
        self.snapshots += 1;
        Ok(())
    }

    /// Encodes a snapshot with cut statements. `None` if it is still too large. The first loss is reported at once.
    fn shortened(&mut self, observation: &Observation) -> Option<Frame> {
        let is_first = self.losses().is_none();
        let frame = SHORT.into_iter().find_map(|most| {
            let (observation, cut) = redact::cut(observation, most);
            let frame = self.encoder.encode(&observation).ok()?;
            self.cut += cut;
            Some(frame)
        });
        self.too_large += u64::from(frame.is_none());
        if is_first {
            self.reported = self.losses();
        }
        frame
    }

    fn step_buffer(&mut self, step: BufferStep) -> io::Result<()> {
        let is_end = step == BufferStep::End;
        match step {
            BufferStep::Wait => return Ok(()),
            BufferStep::Write | BufferStep::End => self.write_waiting()?,
            BufferStep::Begin(critical) => {
                if let Err(error) = self.begin() {
                    self.buffer.iter_mut().for_each(IncidentBuffer::begin_again);
                    return Err(error);
                }
                self.reported = Some(format!("{critical}: recording to {}", self.output.name()));
                self.write_waiting()?;
            }
        }
        if is_end {
            self.finish()?;
            self.reported = Some(format!(
                "the incident is over: recorded to {}, waiting for the next",
                self.output.name()
            ));
            self.output.close();
            self.encoder.begin_group();
            self.buffer.iter_mut().for_each(IncidentBuffer::end);
        }
        Ok(())
    }

    /// Opens the file of an incident: a new one in a directory, otherwise the same file again.
    fn begin(&mut self) -> io::Result<()> {
        self.output.next(&self.options)?;
        self.output.begin(&self.options)
    }

    fn write_waiting(&mut self) -> io::Result<()> {
        let Some(buffer) = &mut self.buffer else { return Ok(()) };
        while let Some(record) = buffer.next() {
            self.output.write(record)?;
            buffer.written();
        }
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        if !self.output.is_open() || !self.output.is_due(&self.options) {
            return Ok(());
        }
        self.finish()?;
        self.output.next(&self.options)?;
        self.encoder.begin_group();
        self.output.begin(&self.options)
    }

    fn sync(&mut self) {
        // If a sync fails, the next write fails as well and reports it.
        let _ = self.output.sync();
        self.synced = clock::monotonic();
    }

    fn finish(&mut self) -> io::Result<()> {
        self.output.write(&container::record(RecordKind::End, &[]).map_err(io::Error::other)?)?;
        self.output.sync()
    }

    /// Closes the recording.
    pub fn end(mut self) -> io::Result<()> {
        if self.snapshots == 0 && self.too_large > 0 && self.buffer.is_none() {
            self.output.take_back()?;
            let losses = self.losses().unwrap_or_default();
            return Err(io::Error::other(format!("nothing was recorded: {losses}")));
        }
        if self.failed.is_some() || !self.output.is_open() {
            Ok(())
        } else if self.output.has_header_alone() {
            self.output.take_back()
        } else {
            self.finish()
        }
    }
}
