//! Looks into a file, on a thread of its own: the poll never waits for a disk.
//!
//! Each record is one write, and what was written is on the disk at most [`Options::sync`] later: who kills the program loses at most the
//! look that is being written.

mod output;
pub mod redact;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::mpsc::RecvTimeoutError;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub(super) use output::files;
pub use output::{Place, Rotation};

use super::history::{Command, Keeper};
use crate::clock;
use crate::model::past::Look;
use crate::model::timeline::{Moment, Trouble};
use crate::wire::record::container::{self, About, Kind};
use crate::wire::record::{Encoder, RecordError};
use output::Output;

/// After a write that failed nothing is written for so long.
const AGAIN: Duration = Duration::from_secs(60);

/// How looks are recorded.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where to.
    pub place: Place,
    /// What was written is on the disk after this time.
    pub sync: Duration,
    /// When a folder gets another file, and which of its files are kept.
    pub rotation: Rotation,
    /// What the files say of themselves.
    pub about: About,
}

/// What is told on the way: a write that failed, and one that worked again.
pub type Tell = Box<dyn Fn(&str) + Send>;

/// Starts the thread, which ends when the keeper is gone, and says then how that went.
///
/// # Errors
/// When there is no such place, or somebody else records to it.
pub fn start(options: Options, tell: Tell) -> io::Result<(Keeper, JoinHandle<io::Result<()>>)> {
    let (keeper, received) = Keeper::channel();
    let queued = keeper.queued();
    let mut tape = Tape::open(options)?;
    let serve = move || {
        loop {
            match received.recv_timeout(tape.options.sync.max(Duration::from_millis(10))) {
                Ok(Command::Keep(look)) => {
                    Keeper::taken(&queued);
                    tape.keep(&look, &tell)?;
                }
                Ok(Command::Lost(reason)) => tape.lost(&reason, &tell)?,
                Ok(Command::Go { .. } | Command::Play(_)) => {}
                Err(RecvTimeoutError::Timeout) => tape.sync(),
                Err(RecvTimeoutError::Disconnected) => return tape.end(),
            }
        }
    };
    let thread = std::thread::Builder::new().name("record".to_owned()).spawn(serve)?;
    Ok((keeper, thread))
}

/// What writes looks one after the other.
pub struct Tape {
    options: Options,
    encoder: Encoder,
    output: Output,
    /// The number of the event after those that were written.
    events: Option<u64>,
    is_lost: bool,
    synced: Instant,
    failed: Option<Instant>,
}

impl Tape {
    /// Opens the place. What is there already is gone on with.
    ///
    /// # Errors
    /// When it cannot be opened, is no recording, or somebody else records to it.
    pub fn open(options: Options) -> io::Result<Self> {
        let mut output = Output::open(&options)?;
        output.write(&container::file(&options.about).map_err(io::Error::other)?)?;
        Ok(Self {
            options,
            encoder: Encoder::with_events(),
            output,
            events: None,
            is_lost: false,
            synced: clock::monotonic(),
            failed: None,
        })
    }

    /// Writes a look. Where that fails it is tried again a minute later; it is an error only where nobody reads any more.
    ///
    /// # Errors
    /// When nobody reads any more.
    pub fn keep(&mut self, look: &Look, tell: &Tell) -> io::Result<()> {
        self.is_lost = false;
        self.try_write(tell, |tape| tape.write(look))
    }

    /// Writes that the connection is lost, once each time.
    fn lost(&mut self, reason: &str, tell: &Tell) -> io::Result<()> {
        if std::mem::replace(&mut self.is_lost, true) {
            return Ok(());
        }
        self.try_write(tell, |tape| {
            tape.output.write(&container::record(Kind::Link, reason.as_bytes()).map_err(io::Error::other)?)
        })
    }

    fn try_write(&mut self, tell: &Tell, write: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        if self.failed.is_some_and(|failed| failed.elapsed() < AGAIN) {
            return Ok(());
        }
        match self.rotate().and_then(|()| write(self)) {
            Ok(()) => {
                if self.failed.take().is_some() {
                    tell("recording goes on");
                }
            }
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Err(error),
            Err(error) => {
                if self.failed.replace(clock::monotonic()).is_none() {
                    tell(&format!("{error}: nothing is recorded, tried again each minute"));
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
            // One that is too large is missing.
            Err(RecordError::TooLarge | RecordError::Empty) => return Ok(()),
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
        self.output.write(&container::look(&moment, &frame).map_err(io::Error::other)?)
    }

    /// Begins another file where it is time to.
    fn rotate(&mut self) -> io::Result<()> {
        if !self.output.is_due(&self.options) {
            return Ok(());
        }
        self.finish()?;
        self.output.next(&self.options)?;
        self.encoder.begin_group();
        self.output.write(&container::file(&self.options.about).map_err(io::Error::other)?)
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
    /// When the last of it could not be written.
    pub fn end(mut self) -> io::Result<()> {
        if self.failed.is_some() { Ok(()) } else { self.finish() }
    }
}
