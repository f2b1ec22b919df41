//! Looks of the last minutes, compressed, and views of them made anew.
//!
//! All of it happens on a thread of its own: the poll hands a look over after its picture is published, and never waits.

mod save;
mod store;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use tokio::sync::mpsc as answers;

pub(super) use store::find;
pub use store::{NotThere, Store};

use crate::model::past::Look;
use crate::model::thresholds::Thresholds;
use crate::model::timeline::{PastView, Step};
use crate::model::view::TargetId;
use crate::wire::record::container::About;

/// Looks that may wait to be kept. More are not: the poll goes on whatever this thread does.
const QUEUE: usize = 8;

/// How long and how much the history keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// No look that is older than the newest by more than this; 0 keeps nothing.
    pub length: Duration,
    /// Bytes that the looks may take; 0 keeps nothing.
    pub memory: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { length: Duration::from_secs(15 * 60), memory: 64 << 20 }
    }
}

impl Limits {
    /// Whether anything is kept.
    pub fn keep(&self) -> bool {
        self.memory > 0 && !self.length.is_zero()
    }
}

/// What is said to whoever keeps looks.
#[derive(Debug)]
pub(super) enum Command {
    /// Keep this look, and drop the oldest where there are too many.
    Keep(Look),
    /// The connection is lost, for this reason.
    Lost(String),
    /// Show the look that a step from a view leads to.
    Go { from: u64, step: Step },
    /// Go on by itself, so many times as fast as it was; none for standing still.
    Play(Option<f64>),
    /// Write all looks to a file, which is of this.
    Save(PathBuf, Box<About>),
}

/// What came of going somewhere: a view of the past; none where that is the newest look, and it is live again.
pub type Answer = Result<Option<Arc<PastView>>, NotThere>;

/// What the history answers.
#[derive(Debug)]
pub enum Reply {
    /// The view that a step led to, or why there is none.
    Look(Answer),
    /// How many looks were written and where to, or why not, in a line.
    Saved(String),
}

/// The end at which looks are handed over.
#[derive(Debug, Clone)]
pub struct LookSender {
    commands: mpsc::Sender<Command>,
    queued: Arc<AtomicUsize>,
}

impl LookSender {
    /// One for a thread that keeps them elsewhere.
    pub(super) fn channel() -> (Self, mpsc::Receiver<Command>) {
        let (commands, received) = mpsc::channel();
        (Self { commands, queued: Arc::default() }, received)
    }

    /// Notes that a look was taken from the queue.
    pub(super) fn taken(queued: &AtomicUsize) {
        queued.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts the looks that are in the queue.
    pub(super) fn queued(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.queued)
    }

    /// Tells that the connection is lost.
    pub fn lost(&self, reason: &str) {
        // Who keeps nothing more needs no reason.
        let _ = self.commands.send(Command::Lost(reason.to_owned()));
    }

    /// Hands a look over. One for which there is no room is not kept.
    pub fn keep(&self, look: Look) {
        if self.queued.fetch_add(1, Ordering::Relaxed) < QUEUE
            && self.commands.send(Command::Keep(look)).is_ok()
        {
            return;
        }
        self.queued.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The end at which one asks for the past.
#[derive(Debug)]
pub struct History {
    commands: mpsc::Sender<Command>,
    answers: answers::UnboundedReceiver<Reply>,
}

impl History {
    /// Asks for the look that a step from a view leads to; it comes with [`Self::answer`].
    pub fn go(&self, from: u64, step: Step) {
        // Without the thread there is no answer, and a panic of it ends the program.
        let _ = self.commands.send(Command::Go { from, step });
    }

    /// The two ends of one that is served elsewhere.
    pub(super) fn channel() -> (Self, mpsc::Receiver<Command>, answers::UnboundedSender<Reply>) {
        let (commands, received) = mpsc::channel();
        let (sender, answers) = answers::unbounded_channel();
        (Self { commands, answers }, received, sender)
    }

    /// Lets it go on by itself, so many times as fast as it was, or stand still.
    pub fn play(&self, speed: Option<f64>) {
        let _ = self.commands.send(Command::Play(speed));
    }

    /// Writes all looks to a file; what came of it comes with [`Self::answer`].
    pub fn save(&self, path: PathBuf, about: About) {
        let _ = self.commands.send(Command::Save(path, Box::new(about)));
    }

    /// The next answer; never one once the thread has ended.
    pub async fn answer(&mut self) -> Reply {
        match self.answers.recv().await {
            Some(answer) => answer,
            None => std::future::pending().await,
        }
    }
}

/// Starts the thread. It ends when both ends are gone.
///
/// # Errors
/// When the system has no thread to give.
pub fn start(
    limits: Limits,
    target: TargetId,
    thresholds: Thresholds,
) -> std::io::Result<(LookSender, History)> {
    let (look_sender, received) = LookSender::channel();
    let (sender, answers) = answers::unbounded_channel();
    let (commands, queued) = (look_sender.commands.clone(), look_sender.queued());
    let serve = move || {
        let mut store = Store::new(limits, target, thresholds);
        for command in received {
            match command {
                Command::Keep(look) => {
                    LookSender::taken(&queued);
                    store.keep(&look);
                }
                Command::Lost(_) | Command::Play(_) => {}
                Command::Go { from, step } => {
                    // Who asked may be gone.
                    let _ = sender.send(Reply::Look(store.go(from, step)));
                }
                // Meanwhile others come, and somebody may go somewhere.
                Command::Save(path, about) => save::start(store.copy(), path, *about, sender.clone()),
            }
        }
    };
    std::thread::Builder::new().name("history".to_owned()).spawn(serve)?;
    Ok((look_sender, History { commands, answers }))
}
