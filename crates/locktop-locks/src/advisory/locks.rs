use std::sync::Arc;

use tokio::sync::OnceCell;

use super::guard::Guard;
use super::session::Session;
use super::source::Source;
use super::{Key, Mode, TIMEOUT, Wait};
use crate::pooler;
use crate::{Error, Held as _, PoolerError};

/// The error if the pool is too small or too busy for the test.
const ALONE: &str =
    "the pool gave no second connection within 10 s (a pool of one connection needs without_pooler_test())";

/// Advisory locks of sessions, each on a connection of the source for as long as it is held. Clones share the source.
#[derive(Debug, Clone)]
pub struct Locks<S> {
    pub(super) source: S,
    /// Set once the test has found no pooler in transaction mode.
    tested: Arc<OnceCell<()>>,
}

impl<S: Source> Locks<S> {
    /// Locks on connections of this source. Nothing is connected before the first lock, which takes two connections for a
    /// moment, to detect a [pooler](crate::pooler) in transaction mode. Clone it rather than make another one: each is tested.
    pub fn new(source: S) -> Self {
        Self { source, tested: Arc::default() }
    }

    /// The same without the test for a pooler: for a pool with one connection, or where it is certain that there is none.
    #[must_use]
    pub fn without_pooler_test(self) -> Self {
        Self { tested: Arc::new(OnceCell::new_with(Some(()))), ..self }
    }

    /// Waits for an exclusive lock for as long as it takes.
    ///
    /// # Errors
    /// If there is no connection, it uses a pooler in transaction mode, the server refuses (a deadlock, no room in its lock
    /// table), or the connection ends. This and every other method may be dropped while it waits: the request is cancelled.
    pub async fn lock(&self, key: impl Into<Key>) -> Result<Guard, Error> {
        self.wait(key.into(), self.session().await?).await
    }

    /// Waits for an exclusive lock on this connection.
    pub(super) async fn wait(&self, key: Key, session: Session<S::Conn>) -> Result<Guard, Error> {
        match Self::take(session, vec![(key, Mode::Exclusive)], Wait::Forever).await? {
            Some(guard) => Ok(guard),
            None => Err(Error::invalid("the server has not confirmed the lock")),
        }
    }

    /// An exclusive lock; `None` if it is not granted in time. The limit does not include the wait for a connection of
    /// the pool, for which the pool has its own limit.
    ///
    /// # Errors
    /// As for [`Self::lock`].
    pub async fn try_lock(&self, key: impl Into<Key>, wait: Wait) -> Result<Option<Guard>, Error> {
        Self::take(self.session().await?, vec![(key.into(), Mode::Exclusive)], wait).await
    }

    /// A shared lock, which any number of sessions may hold; `None` if it is not granted in time.
    ///
    /// # Errors
    /// As for [`Self::lock`].
    pub async fn shared(&self, key: impl Into<Key>, wait: Wait) -> Result<Option<Guard>, Error> {
        Self::take(self.session().await?, vec![(key.into(), Mode::Shared)], wait).await
    }

    /// All of these, exclusively, or none, in one message. They are taken in the order of their numbers, so that two
    /// calls never block each other.
    ///
    /// # Errors
    /// As for [`Self::lock`]; or if there is no key.
    pub async fn all(&self, keys: &[Key], wait: Wait) -> Result<Option<Guard>, Error> {
        let mut keys = keys.to_vec();
        keys.sort_by_key(Key::number);
        keys.dedup_by_key(|key| key.number());
        if keys.is_empty() {
            return Err(Error::invalid("no key to lock"));
        }
        let locks = keys.into_iter().map(|key| (key, Mode::Exclusive)).collect();
        Self::take(self.session().await?, locks, wait).await
    }

    /// Runs work under an exclusive lock, and releases it. `None` if it is not granted in time. The work is
    /// dropped midway if the lock is lost.
    ///
    /// # Errors
    /// As for [`Self::lock`]; and [`Error::NotHeld`] if the lock was not held to the end of the work.
    pub async fn with<T>(
        &self,
        key: impl Into<Key>,
        wait: Wait,
        work: impl Future<Output = T>,
    ) -> Result<Option<T>, Error> {
        let Some(guard) = self.try_lock(key, wait).await? else { return Ok(None) };
        let done = guard.run(work).await?;
        guard.release().await?;
        Ok(Some(done))
    }

    async fn take(
        mut session: Session<S::Conn>,
        locks: Vec<(Key, Mode)>,
        wait: Wait,
    ) -> Result<Option<Guard>, Error> {
        if let Some(pid) = session.lock_or_none(&locks, wait).await? {
            // Locks that the guard acquires later elect no leader.
            session.leads = false;
            return Ok(Some(Guard::new(session, pid, locks)));
        }
        session.give_back();
        Ok(None)
    }

    /// A connection on which a lock may be taken.
    pub(super) async fn session(&self) -> Result<Session<S::Conn>, Error> {
        let mut first = None;
        let test = async {
            // If the test fails or is cancelled, both are closed.
            let mut one = Session::new(self.source.get().await?);
            let two = tokio::time::timeout(TIMEOUT, self.source.get()).await;
            let two = two.map_err(|_| PoolerError::Unknown(ALONE.to_owned()))?.map_err(second)?;
            let mut two = Session::new(two);
            pooler::refuse(&mut one, &mut two).await?;
            two.give_back();
            first = Some(one);
            Ok::<(), Error>(())
        };
        self.tested.get_or_try_init(|| test).await?;
        match first {
            Some(session) => Ok(session),
            None => self.source.get().await.map(Session::new),
        }
    }
}

fn second(error: Error) -> Error {
    match error {
        Error::Connect(error) => PoolerError::Second(error).into(),
        error => error,
    }
}
