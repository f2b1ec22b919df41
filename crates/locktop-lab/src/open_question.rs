//! Whether the operator has a question open: as long as it is, nothing is mended and nothing moves on by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Between two looks whether a question is still open.
const POLL: Duration = Duration::from_millis(500);

/// Whether the dashboard that shows a demo has a question open. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct OpenQuestion(Arc<AtomicBool>);

impl OpenQuestion {
    /// True when a question was opened, false once it is closed and all that was confirmed is done.
    pub fn set_open(&self, is_open: bool) {
        self.0.store(is_open, Ordering::Relaxed);
    }

    pub(crate) fn is_open(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns once no question is open.
    pub(crate) async fn closed(&self) {
        while self.is_open() {
            tokio::time::sleep(POLL).await;
        }
    }
}
