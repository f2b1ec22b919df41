//! Events that others than the feed know of: an action, and what came of it.
//!
//! Whoever acts has the [`EventSender`] of the running feed ([`Live::event_sender`](super::live::Live::event_sender)) and tells it; the feed puts the server's
//! time to what was told, and publishes it at once in a view of its own.
//!
//! ```no_run
//! # use locktop::feed::live::Live;
//! # use locktop::model::event::{Kind, Told};
//! # use locktop::model::finding::Severity;
//! # fn example(live: &Live) {
//! let event_sender = live.event_sender();
//! event_sender.tell(Told {
//!     kind: Kind::ActionResult,
//!     severity: Severity::Info,
//!     text: "terminated 4312 app@web-3".to_owned(),
//!     subject: None,
//! });
//! # }
//! ```

use std::time::Instant;

use tokio::sync::mpsc;

use crate::clock;
use crate::model::event::Told;

/// Where events are told. Clones tell the same feed. It never waits, and tells nobody when the feed has ended.
#[derive(Debug, Clone)]
pub struct EventSender {
    sender: mpsc::UnboundedSender<Entry>,
}

/// What was told, and when by the clock of this machine.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) told: Told,
    pub(crate) when: Instant,
}

/// The feed's end of the channel.
#[derive(Debug)]
pub struct Reader {
    receiver: mpsc::UnboundedReceiver<Entry>,
}

impl EventSender {
    /// A sender, and what reads it.
    pub fn new() -> (Self, Reader) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self { sender }, Reader { receiver })
    }

    /// Has the event shown beside those of the poll.
    pub fn tell(&self, told: Told) {
        // Without a feed there is nobody to show it to.
        let _ = self.sender.send(Entry { told, when: clock::monotonic() });
    }
}

impl Reader {
    /// Waits for what is told next; for ever once nobody is left to tell anything.
    pub(crate) async fn next(&mut self) -> Entry {
        match self.receiver.recv().await {
            Some(entry) => entry,
            None => std::future::pending().await,
        }
    }

    /// What has been told since, without waiting.
    pub(crate) fn rest(&mut self) -> Vec<Entry> {
        std::iter::from_fn(|| self.receiver.try_recv().ok()).collect()
    }
}
