use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::advisory::source::GOODBYE;
use locktop_base::clock;
use pg_connect::connect::Listening;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

/// For how long a connection is kept.
const KEPT: Duration = Duration::from_secs(5);
/// Longest wait for the answer of a connection that was kept.
const ANSWER: Duration = Duration::from_secs(1);

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

    /// The connection, if it still answers.
    pub(super) async fn take(&self) -> Option<Listening> {
        let idle = self.lock().take()?;
        let is_old = clock::since_boot().saturating_sub(idle.since) >= KEPT;
        let connection = idle.stopped();
        // The timer does not count the time of a suspended process.
        let answer =
            if is_old { None } else { timeout(ANSWER, connection.client.check_connection()).await.ok() };
        if matches!(answer, Some(Ok(()))) {
            return Some(connection);
        }
        tokio::spawn(connection.close(GOODBYE));
        None
    }

    /// Keeps a connection that is in no queue; closes it if no request takes it in time.
    pub(super) fn put(self: &Arc<Self>, mut connection: Listening) {
        // Not for the next lease.
        while connection.notifications.try_recv().is_some() {}
        let (kept, since) = (Arc::downgrade(self), clock::since_boot());
        let timer = tokio::spawn(async move {
            sleep(KEPT).await;
            let Some(kept) = kept.upgrade() else { return };
            let over = kept.lock().take_if(|idle| idle.since == since);
            if let Some(idle) = over {
                idle.connection.close(GOODBYE).await;
            }
        });
        let timer = timer.abort_handle();
        let other = self.lock().replace(Idle { connection, since, timer });
        if let Some(other) = other {
            tokio::spawn(other.stopped().close(GOODBYE));
        }
    }
}

impl Idle {
    fn stopped(self) -> Listening {
        self.timer.abort();
        self.connection
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let (Some(idle), Ok(runtime)) = (self.lock().take(), Handle::try_current()) {
            runtime.spawn(idle.stopped().close(GOODBYE));
        }
    }
}
