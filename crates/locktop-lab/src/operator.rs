//! The operator of a demo: the language of the names, and whether a question is open.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The language of the names that a demo gives to tasks, queue items and locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    #[default]
    English,
    Chinese,
}

impl Language {
    #[must_use]
    pub fn of<T>(self, (english, chinese): (T, T)) -> T {
        match self {
            Self::English => english,
            Self::Chinese => chinese,
        }
    }
}

const POLL: Duration = Duration::from_millis(500);

/// Whether the dashboard of a demo has a question open: while one is open, nothing is repaired and nothing proceeds
/// automatically. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct OpenQuestion(Arc<AtomicBool>);

impl OpenQuestion {
    /// True when a question is opened, false once it is closed and all that was confirmed is done.
    pub fn set_open(&self, is_open: bool) {
        self.0.store(is_open, Ordering::Relaxed);
    }

    pub(crate) fn is_open(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) async fn closed(&self) {
        while self.is_open() {
            tokio::time::sleep(POLL).await;
        }
    }
}
