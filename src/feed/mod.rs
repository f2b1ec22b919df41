//! Turns every snapshot into a [`View`](crate::model::view::View), using the snapshots before it, and publishes it. The
//! newest view replaces older ones.

pub mod acting;
mod diff;
pub mod history;
mod journal;
pub mod learn;
pub mod live;
pub mod once;
pub mod record;
pub mod replay;
pub mod report;
mod throttle;
pub mod view_builder;

use std::time::Instant;

use tokio::sync::mpsc;

use crate::clock;
use crate::model::event::ExternalEvent;

// Events from outside the poll: actions and their results. The code that acts gets the [`EventSender`] of the running feed
// from [`live::Live::event_sender`]. The feed adds the server time and publishes the event at once in a view of its own.

/// Sends events to a feed. Never blocks; events are dropped after the feed has ended.
#[derive(Debug, Clone)]
pub struct EventSender {
    sender: mpsc::UnboundedSender<ReceivedEvent>,
}

/// An event with its local time.
#[derive(Debug)]
pub(crate) struct ReceivedEvent {
    pub(crate) event: ExternalEvent,
    pub(crate) when: Instant,
}

#[derive(Debug)]
pub struct EventReceiver {
    receiver: mpsc::UnboundedReceiver<ReceivedEvent>,
}

impl EventSender {
    pub fn new() -> (Self, EventReceiver) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self { sender }, EventReceiver { receiver })
    }

    pub fn send(&self, event: ExternalEvent) {
        // Ignored if the feed has ended.
        let _ = self.sender.send(ReceivedEvent { event, when: clock::monotonic() });
    }
}

impl EventReceiver {
    /// Waits for the next event; forever once all senders are dropped.
    pub(crate) async fn next(&mut self) -> ReceivedEvent {
        match self.receiver.recv().await {
            Some(entry) => entry,
            None => std::future::pending().await,
        }
    }

    pub(crate) fn rest(&mut self) -> Vec<ReceivedEvent> {
        std::iter::from_fn(|| self.receiver.try_recv().ok()).collect()
    }
}
