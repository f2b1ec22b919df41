use super::error::AdvisoryError;
use super::session::Session;
use super::{Key, Mode, Wait};

/// The result of a lock request.
#[derive(Debug)]
#[must_use]
pub enum Acquired {
    /// The lock is held, until the guard is released or dropped.
    Held(SessionLock),
    /// The lock was not granted in time; the session, which holds nothing, is returned.
    Busy(Session),
}

/// The result of releasing locks.
#[derive(Debug)]
pub struct Released {
    /// Whether all of them were held until now. If not, they were unlocked on this connection without the guard.
    pub held: bool,
    /// The connection, which holds none of them any more.
    pub session: Session,
}

/// One lock of a session, or several, with the connection that holds them.
///
/// Dropping it closes the connection: the server releases the locks, and no pool ever gets a connection that holds one.
#[derive(Debug)]
#[must_use = "dropping it closes the connection and releases the lock"]
pub struct SessionLock {
    session: Session,
    /// In the order in which they were taken.
    held: Vec<(Key, Mode)>,
}

impl SessionLock {
    /// Acquires a lock. If this is dropped while it waits, the request is cancelled and the connection closed.
    ///
    /// # Errors
    /// If the server refuses, including a deadlock, or the connection ends. The connection is closed then.
    pub async fn acquire(
        mut session: Session,
        key: Key,
        mode: Mode,
        wait: Wait,
    ) -> Result<Acquired, AdvisoryError> {
        Ok(if session.lock(key, mode, wait).await? {
            Acquired::Held(Self { session, held: vec![(key, mode)] })
        } else {
            Acquired::Busy(session)
        })
    }

    /// Acquires another lock on the same connection, or the same one again: locks stack. Returns false if it is not granted
    /// in time; the locks held before are kept. If this is dropped while it waits, the connection is closed, and every lock is
    /// released.
    ///
    /// # Errors
    /// If the server refuses, or the connection ends. Without an answer in time the connection is closed, too.
    pub async fn also(&mut self, key: Key, mode: Mode, wait: Wait) -> Result<bool, AdvisoryError> {
        let taken = self.session.lock(key, mode, wait).await?;
        if taken {
            self.held.push((key, mode));
        }
        Ok(taken)
    }

    /// The locks held, as often as they were taken, in the order in which they were taken.
    #[must_use]
    pub fn held(&self) -> &[(Key, Mode)] {
        &self.held
    }

    /// The connection, for other statements. A lock that other statements take on it does not belong to this guard; and while
    /// a transaction is open on it, the time limit of a wait lasts as long as the transaction.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The connection, for transactions on it; the notes on [`Self::session`] apply.
    pub fn session_mut(&mut self) -> &mut Session {
        &mut self.session
    }

    /// Whether the connection, and with it the lock, is lost.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.session.is_lost()
    }

    /// Completes, with the reason, when the connection ends: work under the lock must stop then.
    pub fn lost(&self) -> impl Future<Output = String> + Send + use<> {
        self.session.lost()
    }

    /// Releases all locks, the last taken first, with as many unlocks as there were locks.
    ///
    /// # Errors
    /// If the connection is lost, or it is uncertain what it holds; the locks are released all the same.
    pub async fn release(self) -> Result<Released, AdvisoryError> {
        let Self { mut session, mut held } = self;
        let mut all = true;
        while let Some((key, mode)) = held.pop() {
            all &= session.unlock(key, mode).await?;
        }
        Ok(Released { held: all, session })
    }
}
