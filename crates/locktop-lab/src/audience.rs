//! Whoever looks on: while a question of his is open nothing is mended or moves on by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Between two looks whether a question is still open.
const LOOK: Duration = Duration::from_millis(500);

/// Whether somebody has a question open. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Audience(Arc<AtomicBool>);

impl Audience {
    /// Somebody opened a question, or closed it and all that he confirmed is done.
    pub fn asks(&self, asks: bool) {
        self.0.store(asks, Ordering::Relaxed);
    }

    pub(crate) fn is_asking(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns once no question is open.
    pub(crate) async fn done(&self) {
        while self.is_asking() {
            tokio::time::sleep(LOOK).await;
        }
    }
}
