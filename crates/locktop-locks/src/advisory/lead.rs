use tokio::sync::watch;

use super::locks::Locks;
use super::session::Session;
use super::source::Source;
use super::{Guard, Key};
use crate::Error;
use crate::lead::{self, Leader};

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
    /// until the work or `stop` completes. It retries after a [transient](Error::is_transient) error, such as a server
    /// out of reach or a busy pool, within a minute; these errors are not reported.
    ///
    /// The server's lock queue decides which session gets the lock next. A leader that is suspended does not detect the loss
    /// of its lock before its connection ends: writes that only a leader may make need the token of a [lease](crate::lease).
    ///
    /// # Errors
    /// If the connection uses a pooler in transaction mode, or the server refuses the login or the lock: after any error
    /// that is not transient.
    pub async fn lead<F: Future<Output = ()>>(
        &self,
        name: &str,
        stop: impl Future<Output = ()>,
        mut work: impl FnMut() -> F,
    ) -> Result<(), Error> {
        lead::lead(stop, || self.elect(name), |_| work(), Guard::release).await
    }

    /// Waits for the lock `name`, as [`Self::lead`] does before its work. locktop shows its holder as the leader, and does not
    /// report the sessions that wait for it as blocked.
    ///
    /// # Errors
    /// As for [`Self::lock`].
    pub async fn elect(&self, name: &str) -> Result<Guard, Error> {
        let mut session = self.session().await?;
        session.leads = true;
        self.wait(name.into(), session).await
    }

    /// The session that holds the lock exclusively, read once a second on one connection until the receiver is dropped; `None`
    /// also if that is not known.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn leader(&self, name: &str) -> watch::Receiver<Option<Holder>> {
        lead::watched(Reader { source: self.source.clone(), session: None, key: name.into() })
    }
}

/// Reads the holder of a lock. The session is closed after an error.
struct Reader<S: Source> {
    source: S,
    session: Option<Session<S::Conn>>,
    key: Key,
}

impl<S: Source> Leader for Reader<S> {
    type Holder = Holder;

    async fn read(&mut self) -> Result<Option<Holder>, Error> {
        let mut session = match self.session.take() {
            Some(session) => session,
            None => Session::new(self.source.get().await?),
        };
        let holder = session.holder(&self.key).await?;
        self.session = Some(session);
        Ok(holder)
    }
}

impl<S: Source> Drop for Reader<S> {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            session.give_back();
        }
    }
}
