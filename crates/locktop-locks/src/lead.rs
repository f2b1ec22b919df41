//! Election of a leader, by a lock of any kind.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::{Error, Held};
use pg_connect::Backoff;

/// How often the leader is read.
const READ: Duration = Duration::from_secs(1);

/// Waits for the lock and runs the work while it is held; again if it is lost, until the work or `stop` completes.
pub(crate) async fn lead<G: Held, F, W, R>(
    stop: impl Future<Output = ()>,
    mut lock: impl FnMut() -> F,
    mut work: impl FnMut(Arc<G>) -> W,
    release: impl FnOnce(G) -> R,
) -> Result<(), Error>
where
    F: Future<Output = Result<G, Error>>,
    W: Future<Output = ()>,
    R: Future,
{
    let mut stop = pin!(stop);
    let mut backoff = Backoff::default();
    loop {
        let guard = tokio::select! {
            () = &mut stop => return Ok(()),
            guard = lock() => guard,
        };
        let guard = match guard {
            Ok(guard) => Arc::new(guard),
            Err(error) if error.is_transient() => {
                let pause = backoff.failed(matches!(error, Error::Silent { .. }));
                tokio::select! {
                    () = &mut stop => return Ok(()),
                    () = tokio::time::sleep(pause) => continue,
                }
            }
            Err(error) => return Err(error),
        };
        backoff = Backoff::default();
        let done = tokio::select! {
            () = &mut stop => Ok(()),
            done = guard.run(work(Arc::clone(&guard))) => done,
        };
        if done.is_ok() {
            // The work is done; an error would only report that the lock is lost.
            if let Some(guard) = Arc::into_inner(guard) {
                let _ = release(guard).await;
            }
            return Ok(());
        }
    }
}

/// A way to read who holds a lock.
pub(crate) trait Leader: Send + 'static {
    type Holder: PartialEq + Send + Sync + 'static;

    fn read(&mut self) -> impl Future<Output = Result<Option<Self::Holder>, Error>> + Send;
}

/// Reads the leader each second until the receiver is dropped.
pub(crate) fn watched<L: Leader>(mut leader: L) -> watch::Receiver<Option<L::Holder>> {
    let (sender, receiver) = watch::channel(None);
    tokio::spawn(async move {
        loop {
            let mut reading = pin!(leader.read());
            let holder = loop {
                tokio::select! {
                    () = sender.closed() => return,
                    holder = &mut reading => break holder.ok().flatten(),
                    // Not known any more.
                    () = tokio::time::sleep(2 * READ) => {
                        sender.send_if_modified(|known| known.take().is_some());
                    }
                }
            };
            sender.send_if_modified(|known| {
                let is_new = *known != holder;
                *known = holder;
                is_new
            });
            tokio::select! {
                () = sender.closed() => return,
                () = tokio::time::sleep(READ) => {}
            }
        }
    });
    receiver
}
