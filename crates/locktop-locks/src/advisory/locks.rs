use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{OnceCell, watch};

use super::session::Session;
use super::source::{Conn, Source};
use super::{Guard, Key, Mode, TIMEOUT, Wait};
use crate::held::{self, Leader};
use crate::{Error, Held as _, PoolerError, pooler};
use locktop_base::clock;

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

/// How often the first in the queue asks for all permits.
const TURN: Duration = Duration::from_millis(20);
/// Each permit is a lock; a request asks for all of them in one statement.
const MOST: u32 = 1_000;
/// Most permits whose names are sent all together.
pub const NAMED: u32 = 100;

impl<S: Source> Locks<S> {
    /// One of `of` permits of a semaphore; `None` if none is free in time. A permit is one of the locks `name #1`, `name #2`, …;
    /// requests wait in order of arrival for the lock `name #queue`. A request that does not wait may overtake them.
    ///
    /// # Errors
    /// As for [`Locks::lock`]; or if `of` is not 1 to 1,000.
    pub async fn permit(&self, name: &str, of: u32, wait: Wait) -> Result<Option<Guard>, Error> {
        if of == 0 || of > MOST {
            return Err(Error::invalid("a semaphore has 1 to 1000 permits"));
        }
        // Which permit it will be is not known before. Locktop computes all the names to find the one.
        let all = Key::named(&format!("{name} #1-{of}"));
        let all = if of <= NAMED { vec![(all, Mode::Exclusive)] } else { Vec::new() };
        let permits: Vec<Key> = (1..=of).map(|at| Key::named(&format!("{name} #{at}"))).collect();
        let queue = (Key::named(&format!("{name} #queue")), Mode::Exclusive);
        let mut session = self.session().await?;
        let taken = if wait.lock_timeout().is_none() {
            session.first_free(&permits, &all).await?
        } else {
            let start = clock::monotonic();
            if session.lock_or_none(std::slice::from_ref(&queue), wait).await?.is_none() {
                session.give_back();
                return Ok(None);
            }
            let taken = next_free(&mut session, (&permits, &all), (wait, start)).await?;
            let permit = taken.iter().map(|(_, permit)| (permit.clone(), Mode::Exclusive));
            let shown: Vec<_> = all.into_iter().chain(permit).collect();
            session.unlock(&queue, &shown).await?;
            taken
        };
        let Some((pid, permit)) = taken else {
            session.give_back();
            return Ok(None);
        };
        Ok(Some(Guard::new(session, pid, vec![(permit, Mode::Exclusive)])))
    }
}

/// The next permit that is free. Only the first in the queue asks.
async fn next_free<C: Conn>(
    session: &mut Session<C>,
    (permits, all): (&[Key], &[(Key, Mode)]),
    (wait, start): (Wait, Instant),
) -> Result<Option<(i32, Key)>, Error> {
    loop {
        if let Some(taken) = session.first_free(permits, all).await? {
            return Ok(Some(taken));
        }
        let left = match wait {
            Wait::Never => Duration::ZERO,
            Wait::AtMost(limit) => limit.saturating_sub(start.elapsed()),
            Wait::Forever => TURN,
        };
        if left.is_zero() {
            return Ok(None);
        }
        tokio::time::sleep(left.min(TURN)).await;
    }
}

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
        held::lead(stop, || self.elect(name), |_| work(), Guard::release).await
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
        held::watched(Reader { source: self.source.clone(), session: None, key: name.into() })
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
