use std::pin::pin;

use super::Key;
use super::locks::Locks;
use super::session::Session;
use super::source::Source;
use crate::{Error, Held as _};
use pg_connect::Backoff;

/// The session that holds a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// The process id of its backend.
    pub pid: i32,
    /// Its `application_name`, which may be empty.
    pub application_name: String,
}

impl<S: Source> Locks<S> {
    /// The session that holds this lock exclusively, such as the leader of [`Self::lead`]; `None` if there is none. It may
    /// have changed before the answer arrives.
    ///
    /// # Errors
    /// If there is no connection, or the server refuses.
    pub async fn holder(&self, key: impl Into<Key>) -> Result<Option<Holder>, Error> {
        let mut session = Session::new(self.source.get().await?);
        let holder = session.holder(&key.into()).await?;
        session.give_back();
        Ok(holder)
    }

    /// Runs the work of a leader: waits for the lock `name`, runs the work while it is held, and waits again if it is lost,
    /// until the work or `stop` completes. While the server is out of reach it tries again, after up to 10 s.
    ///
    /// The server's lock queue decides which session gets the lock next. A leader that is suspended does not detect the loss
    /// of its lock before its connection ends: writes that only a leader may make need the token of a [lease](crate::lease).
    ///
    /// # Errors
    /// If the connection uses a pooler in transaction mode, or the server refuses the login or the lock.
    pub async fn lead<F: Future<Output = ()>>(
        &self,
        name: &str,
        stop: impl Future<Output = ()>,
        mut work: impl FnMut() -> F,
    ) -> Result<(), Error> {
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
