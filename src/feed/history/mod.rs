//! The history: compressed snapshots of the last minutes, and views restored from them. It runs in its own thread, so that
//! the poll never waits.

mod store;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use tokio::sync::mpsc as answers;

pub(super) use store::find;
pub use store::{HistoryStore, NotThere};

use crate::model::past::{Observation, PastView, TimeStep};
use crate::model::thresholds::Thresholds;
use crate::model::view::TargetId;
use crate::recording::container::RecordingInfo;

/// Snapshots that can wait to be stored. Further ones are dropped: the poll never waits for this thread.
const QUEUE: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryLimits {
    /// Longest age relative to the newest snapshot. 0 stores nothing.
    pub length: Duration,
    /// Most bytes of all snapshots. 0 stores nothing.
    pub memory: usize,
}

impl Default for HistoryLimits {
    fn default() -> Self {
        Self { length: Duration::from_secs(15 * 60), memory: 64 << 20 }
    }
}

impl HistoryLimits {
    pub fn keep(&self) -> bool {
        self.memory > 0 && !self.length.is_zero()
    }
}

#[derive(Debug)]
pub(super) enum HistoryCommand {
    Keep(Observation),
    Lost(String),
    Go {
        from: u64,
        step: TimeStep,
    },
    /// Play at this multiple of the original speed. `None` stops.
    Play(Option<f64>),
    Save(PathBuf, Box<RecordingInfo>),
}

/// A view of the past. `None` if the step leads to the newest snapshot, which is live.
pub type PastViewResult = Result<Option<Arc<PastView>>, NotThere>;

#[derive(Debug)]
pub enum Reply {
    View(PastViewResult),
    /// The number of written snapshots and the path, or the error, in one line.
    Saved(String),
}

#[derive(Debug, Clone)]
pub struct HistorySender {
    commands: mpsc::Sender<HistoryCommand>,
    queued: Arc<AtomicUsize>,
}

impl HistorySender {
    /// A sender for a thread that stores snapshots elsewhere.
    pub(super) fn channel() -> (Self, mpsc::Receiver<HistoryCommand>) {
        let (commands, received) = mpsc::channel();
        (Self { commands, queued: Arc::default() }, received)
    }

    pub(super) fn taken(queued: &AtomicUsize) {
        queued.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn queued(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.queued)
    }

    pub fn lost(&self, reason: &str) {
        // Ignored if the thread has ended.
        let _ = self.commands.send(HistoryCommand::Lost(reason.to_owned()));
    }

    /// Queues a snapshot, or drops it if the queue is full.
    pub fn keep(&self, observation: Observation) {
        if self.queued.fetch_add(1, Ordering::Relaxed) < QUEUE
            && self.commands.send(HistoryCommand::Keep(observation)).is_ok()
        {
            return;
        }
        self.queued.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Debug)]
pub struct History {
    commands: mpsc::Sender<HistoryCommand>,
    answers: answers::UnboundedReceiver<Reply>,
}

impl History {
    /// Requests the snapshot that a step from a view leads to. [`Self::answer`] returns it.
    pub fn go(&self, from: u64, step: TimeStep) {
        // If the thread has ended there is no answer; its panic ends the program.
        let _ = self.commands.send(HistoryCommand::Go { from, step });
    }

    /// The ends of the channels for a history that is served elsewhere.
    pub(super) fn channel() -> (Self, mpsc::Receiver<HistoryCommand>, answers::UnboundedSender<Reply>) {
        let (commands, received) = mpsc::channel();
        let (sender, answers) = answers::unbounded_channel();
        (Self { commands, answers }, received, sender)
    }

    /// Plays at this multiple of the original speed. `None` stops.
    pub fn play(&self, speed: Option<f64>) {
        let _ = self.commands.send(HistoryCommand::Play(speed));
    }

    /// Writes all snapshots to a file. [`Self::answer`] returns the result.
    pub fn save(&self, path: PathBuf, about: RecordingInfo) {
        let _ = self.commands.send(HistoryCommand::Save(path, Box::new(about)));
    }

    /// The next answer. Never returns once the thread has ended.
    pub async fn answer(&mut self) -> Reply {
        match self.answers.recv().await {
            Some(answer) => answer,
            None => std::future::pending().await,
        }
    }
}

/// Starts the thread. It ends when both returned ends are dropped.
pub fn start(
    limits: HistoryLimits,
    target: TargetId,
    thresholds: Thresholds,
) -> std::io::Result<(HistorySender, History)> {
    let (history_sender, received) = HistorySender::channel();
    let (sender, answers) = answers::unbounded_channel();
    let (commands, queued) = (history_sender.commands.clone(), history_sender.queued());
    let serve = move || {
        let mut store = HistoryStore::new(limits, target, thresholds);
        for command in received {
            match command {
                HistoryCommand::Keep(observation) => {
                    HistorySender::taken(&queued);
                    store.keep(&observation);
                }
                HistoryCommand::Lost(_) | HistoryCommand::Play(_) => {}
                HistoryCommand::Go { from, step } => {
                    // The receiver may be dropped.
                    let _ = sender.send(Reply::View(store.go(from, step)));
                }
                // In a separate thread, since snapshots and requests continue to arrive.
                HistoryCommand::Save(path, about) => {
                    store::start_saving(store.copy(), path, *about, sender.clone());
                }
            }
        }
    };
    std::thread::Builder::new().name("history".to_owned()).spawn(serve)?;
    Ok((history_sender, History { commands, answers }))
}
