//! Looks into a file, on a thread of its own: the poll never waits for a disk.
//!
//! Each record is one write, and what was written is on the disk at most [`Options::sync`] later: who kills the program loses at most the
//! look that is being written.

pub mod names;
mod output;
pub mod redact;
mod short;
#[cfg(test)]
mod tests;
mod trouble;

use std::io;
use std::sync::mpsc::RecvTimeoutError;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub(super) use output::files;
pub use output::{Place, Rotation};

use super::history::{Command, LookSender};
use crate::clock;
use crate::model::past::Look;
use crate::model::timeline::{Moment, Trouble};
use crate::wire::record::container::{self, About, Kind};
use crate::wire::record::{Encoder, Frame, RecordError};
use output::Output;
pub use trouble::Around;
use trouble::{Flight, Turn};

/// Characters of a statement that stay where a snapshot is too large to be kept whole; fewer where that does not help.
const SHORT: [usize; 2] = [1_000, 100];

/// After a write that failed nothing is written for so long.
const AGAIN: Duration = Duration::from_secs(60);

/// Where and how looks are recorded.
#[derive(Debug, Clone)]
pub struct Options {
    /// The file, folder or stream to write to.
    pub place: Place,
    /// Longest time until written snapshots are on the disk.
    pub sync: Duration,
    /// When a folder gets another file, and which of its files are kept.
    pub rotation: Rotation,
    /// What the files say of themselves.
    pub about: About,
    /// Only trouble is recorded, and so much around it; none for everything.
    pub on_trouble: Option<Around>,
}

/// What is told on the way: a write that failed, and one that worked again.
pub type Tell = Box<dyn Fn(&str) + Send>;

/// Starts the thread, which ends when the sender is gone, and says then how that went.
///
/// # Errors
/// When there is no such place, or somebody else records to it.
pub fn start(options: Options, tell: Tell) -> io::Result<(LookSender, JoinHandle<io::Result<()>>)> {
    let (look_sender, received) = LookSender::channel();
    let queued = look_sender.queued();
    let mut tape = Tape::open(options)?;
    let serve = move || {
        loop {
            match received.recv_timeout(tape.options.sync.max(Duration::from_millis(10))) {
                Ok(Command::Keep(look)) => {
                    LookSender::taken(&queued);
                    tape.keep(&look, &tell)?;
                }
                Ok(Command::Lost(reason)) => tape.lost(&reason, &tell)?,
                Ok(Command::Go { .. } | Command::Play(_) | Command::Save(..)) => {}
                Err(RecvTimeoutError::Timeout) => tape.sync(),
                Err(RecvTimeoutError::Disconnected) => {
                    tape.losses().iter().for_each(|losses| tell(losses));
                    return tape.end();
                }
            }
        }
    };
    let thread = std::thread::Builder::new().name("record".to_owned()).spawn(serve)?;
    Ok((look_sender, thread))
}

/// What writes looks one after the other.
pub struct Tape {
    options: Options,
    encoder: Encoder,
    output: Output,
    /// What waits for trouble; none where everything is recorded.
    flight: Option<Flight>,
    /// What is to be told next.
    said: Option<String>,
    /// The number of the event after those that were written.
    events: Option<u64>,
    is_lost: bool,
    synced: Instant,
    failed: Option<Instant>,
    /// Looks that were written; those that wait for trouble are not.
    looks: u64,
    /// Statements that were cut, of looks that are too large with them.
    cut: u64,
    /// Looks that are too large without them as well.
    too_large: u64,
}

impl Tape {
    /// Opens the place. What is there already is gone on with.
    ///
    /// # Errors
    /// When it cannot be opened, is no recording, or somebody else records to it.
    pub fn open(options: Options) -> io::Result<Self> {
        let flight = options.on_trouble.map(Flight::new);
        let output = if flight.is_some() {
            Output::closed(&options)?
        } else {
            let mut output = Output::open(&options)?;
            output.begin(&options)?;
            output
        };
        let encoder = Encoder::with_events();
        Ok(Self {
            options,
            // What waits for trouble is forgotten by whole groups.
            encoder: if flight.is_some() { encoder } else { encoder.in_long_groups() },
            output,
            flight,
            said: None,
            events: None,
            is_lost: false,
            synced: clock::monotonic(),
            failed: None,
            looks: 0,
            cut: 0,
            too_large: 0,
        })
    }

    /// Looks that were written: one without a snapshot, or too large, is passed over.
    pub fn looks(&self) -> u64 {
        self.looks
    }

    /// What is missing of snapshots that are larger than any that is read; none where all were kept whole.
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

    /// Writes a look. Where that fails it is tried again a minute later; it is an error only where nobody reads any more.
    ///
    /// # Errors
    /// When nobody reads any more.
    pub fn keep(&mut self, look: &Look, tell: &Tell) -> io::Result<()> {
        self.is_lost = false;
        let kept = self.try_write(tell, |tape| tape.write(look));
        if let Some(said) = self.said.take() {
            tell(&said);
        }
        kept
    }

    /// Writes that the connection is lost, once each time.
    fn lost(&mut self, reason: &str, tell: &Tell) -> io::Result<()> {
        if std::mem::replace(&mut self.is_lost, true) {
            return Ok(());
        }
        self.try_write(tell, |tape| {
            let record = container::record(Kind::Link, reason.as_bytes()).map_err(io::Error::other)?;
            match &mut tape.flight {
                Some(flight) => {
                    if flight.other(record) {
                        tape.write_waiting()
                    } else {
                        Ok(())
                    }
                }
                None => tape.output.write(&record),
            }
        })
    }

    fn try_write(&mut self, tell: &Tell, write: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
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
                // Half of a record may be there, and what comes needs nothing before it.
                self.output.cut();
                self.encoder.begin_group();
            }
        }
        if self.synced.elapsed() >= self.options.sync {
            self.sync();
        }
        Ok(())
    }

    /// Writes a look.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&mut self, look: &Look) -> io::Result<()> {
        let Some(snapshot) = look.view.snapshot.as_deref() else { return Ok(()) };
        let frame = match self.encoder.encode(look) {
            Ok(frame) => frame,
            Err(RecordError::Empty) => return Ok(()),
            Err(RecordError::TooLarge) => match self.shortened(look) {
                Some(frame) => frame,
                None => return Ok(()),
            },
            Err(error) => return Err(io::Error::other(error)),
        };
        let events = &look.view.events;
        let end = events.dropped() + events.len() as u64;
        let from = self.events.replace(end).unwrap_or(events.dropped());
        let moment = Moment {
            id: look.view.id,
            at: snapshot.taken_at,
            waiting: look.view.graph.waiting,
            trouble: Trouble::since(events, from).max(),
        };
        let record = container::look(&moment, &frame).map_err(io::Error::other)?;
        if let Some(flight) = &mut self.flight {
            let turn = flight.look(record, frame.is_key, &look.view);
            return self.take_turn(turn);
        }
        self.output.write(&record)?;
        self.looks += 1;
        Ok(())
    }

    /// A look without the rest of its long statements; none where it is too large all the same. The first time is reported at once.
    fn shortened(&mut self, look: &Look) -> Option<Frame> {
        let is_first = self.losses().is_none();
        let frame = SHORT.into_iter().find_map(|most| {
            let (look, cut) = short::cut(look, most);
            let frame = self.encoder.encode(&look).ok()?;
            self.cut += cut;
            Some(frame)
        });
        self.too_large += u64::from(frame.is_none());
        if is_first {
            self.said = self.losses();
        }
        frame
    }

    /// Begins, goes on or ends, as trouble does.
    fn take_turn(&mut self, turn: Turn) -> io::Result<()> {
        let is_end = turn == Turn::End;
        match turn {
            Turn::Wait => return Ok(()),
            Turn::Write | Turn::End => self.write_waiting()?,
            Turn::Begin(critical) => {
                if let Err(error) = self.begin() {
                    self.flight.iter_mut().for_each(Flight::begin_again);
                    return Err(error);
                }
                self.said = Some(format!("{critical}: recording to {}", self.output.name()));
                self.write_waiting()?;
            }
        }
        if is_end {
            self.finish()?;
            self.said = Some(format!(
                "the incident is over: recorded to {}, waiting for the next",
                self.output.name()
            ));
            self.output.close();
            self.encoder.begin_group();
            self.flight.iter_mut().for_each(Flight::end);
        }
        Ok(())
    }

    /// Opens the file of this trouble: another one in a folder, the same again where there is only one.
    fn begin(&mut self) -> io::Result<()> {
        self.output.next(&self.options)?;
        self.output.begin(&self.options)
    }

    fn write_waiting(&mut self) -> io::Result<()> {
        let Some(flight) = &mut self.flight else { return Ok(()) };
        while let Some(record) = flight.next() {
            self.output.write(record)?;
            flight.written();
        }
        Ok(())
    }

    /// Begins another file where it is time to.
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
        // What cannot be told to be on the disk is told by the next write that fails.
        let _ = self.output.sync();
        self.synced = clock::monotonic();
    }

    fn finish(&mut self) -> io::Result<()> {
        self.output.write(&container::record(Kind::End, &[]).map_err(io::Error::other)?)?;
        self.output.sync()
    }

    /// Closes it on purpose.
    ///
    /// # Errors
    /// When the last of it could not be written, or nothing could be kept.
    pub fn end(mut self) -> io::Result<()> {
        if self.looks == 0 && self.too_large > 0 && self.flight.is_none() {
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
