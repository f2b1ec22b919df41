//! Events that others than the feed know of: an action, and what came of it.
//!
//! Whoever acts has the [`Diary`] of the running feed ([`Live::diary`](super::live::Live::diary)) and tells it; the feed puts the server's
//! time to what was told, and publishes it at once in a view of its own. (The floor of the actions is above this one: there
//! [`Diary::teller`] is handed in as a function.)
//!
//! ```no_run
//! # use locktop::feed::live::Live;
//! # use locktop::model::event::{Kind, Told};
//! # use locktop::model::finding::Severity;
//! # fn example(live: &Live) {
//! let diary = live.diary();
//! diary.tell(Told {
//!     kind: Kind::ActionResult,
//!     severity: Severity::Info,
//!     text: "terminated 4312 app@web-3".to_owned(),
//!     subject: None,
//! });
//! # }
//! ```

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc;

use crate::clock;
use crate::model::event::Told;

/// What tells without knowing whom.
pub type Teller = Arc<dyn Fn(Told) + Send + Sync>;

/// Where events are told. Clones tell the same feed. It never waits, and tells nobody when the feed has ended.
#[derive(Debug, Clone)]
pub struct Diary {
    sender: mpsc::UnboundedSender<Entry>,
}

/// What was told, and when by the clock of this machine.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) told: Told,
    pub(crate) when: Instant,
}

/// The feed's end of a diary.
#[derive(Debug)]
pub struct Reader {
    receiver: mpsc::UnboundedReceiver<Entry>,
}

impl Diary {
    /// A diary, and what reads it.
    #[must_use]
    pub fn new() -> (Self, Reader) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self { sender }, Reader { receiver })
    }

    /// Tells of an event.
    pub fn tell(&self, told: Told) {
        // Without a feed there is nobody to show it to.
        let _ = self.sender.send(Entry { told, when: clock::monotonic() });
    }

    /// The same as a function.
    #[must_use]
    pub fn teller(&self) -> Teller {
        let diary = self.clone();
        Arc::new(move |told| diary.tell(told))
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
