use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::advisory::source::GOODBYE;
use locktop_base::clock;
use pg_connect::connect::Listening;
use tokio::task::AbortHandle;

/// For how long a connection is kept.
const KEPT: Duration = Duration::from_secs(5);

/// The connection of a released lease.
#[derive(Debug, Default)]
pub(super) struct Kept(Mutex<Option<Idle>>);

#[derive(Debug)]
struct Idle {
    connection: Listening,
    /// By [`clock::since_boot`].
    since: Duration,
    /// Closes the connection.
    timer: AbortHandle,
}

impl Kept {
    fn lock(&self) -> MutexGuard<'_, Option<Idle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn take(&self) -> Option<Listening> {
        let idle = self.lock().take()?;
        idle.timer.abort();
        // The timer may be late: it does not count the time of a suspended process.
        (clock::since_boot().saturating_sub(idle.since) < KEPT).then_some(idle.connection)
    }

    /// Keeps a connection that has no state; closes it if no request takes it in time.
    pub(super) fn put(self: &Arc<Self>, connection: Listening) {
        let (kept, since) = (Arc::clone(self), clock::since_boot());
        let mut idle = self.lock();
        let timer = tokio::spawn(async move {
            tokio::time::sleep(KEPT).await;
            let over = kept.lock().take();
            if let Some(idle) = over {
                idle.connection.close(GOODBYE).await;
            }
        });
        let other = idle.replace(Idle { connection, since, timer: timer.abort_handle() });
        if let Some(other) = other {
            other.timer.abort();
            tokio::spawn(other.connection.close(GOODBYE));
        }
    }
}
