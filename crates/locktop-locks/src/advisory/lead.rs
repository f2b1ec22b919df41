use std::pin::pin;

use super::error::AdvisoryError;
use super::locks::Locks;
use super::source::Source;
use pg_connect::Backoff;

impl<S: Source> Locks<S> {
    /// Runs the work of a leader: waits for the lock `name`, runs the work while it is held, and waits again if it is lost,
    /// until the work or `stop` completes. While the server is out of reach it tries again, after up to 10 s.
    ///
    /// The server's lock queue decides who is next. A leader that is suspended does not detect the loss of its lock before
    /// its connection ends: writes that only a leader may make need the token of a [lease](crate::lease).
    ///
    /// # Errors
    /// If the connection uses a pooler in transaction mode, or the server refuses the login or the lock.
    pub async fn lead<F: Future<Output = ()>>(
        &self,
        name: &str,
        stop: impl Future<Output = ()>,
        mut work: impl FnMut() -> F,
    ) -> Result<(), AdvisoryError> {
        let mut stop = pin!(stop);
        let mut backoff = Backoff::default();
        loop {
            let guard = tokio::select! {
                () = &mut stop => return Ok(()),
                guard = self.lock(name) => guard,
            };
            let guard = match guard {
                Ok(guard) => guard,
                Err(error) if error.is_transient() => {
                    let pause = backoff.failed(matches!(error, AdvisoryError::Silent { .. }));
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
                done = guard.run(work()) => done,
            };
            if done.is_ok() {
                // The work is done; an error would only report that the lock is lost.
                let _ = guard.release().await;
                return Ok(());
            }
        }
    }
}
