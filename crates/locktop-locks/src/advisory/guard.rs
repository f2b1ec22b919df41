//! A session's lock.

use super::error::AdvisoryError;
use super::session::Session;
use super::{Key, Mode, Wait};

/// What came of asking for a lock.
#[derive(Debug)]
#[must_use]
pub enum Acquired {
    /// The lock is held, until the guard is released or dropped.
    Held(SessionLock),
    /// It was not to be had in time; the session, which holds nothing, is given back.
    Busy(Session),
}

/// What came of giving locks back.
#[derive(Debug)]
pub struct Released {
    /// Whether all of them were held until now. If not, somebody has unlocked behind our back, on our own connection.
    pub held: bool,
    /// The connection, which holds none of them any more.
    pub session: Session,
}

/// One lock of a session, or several, with the connection that holds them.
///
/// Dropping it closes the connection: the server frees the locks, and no pool ever gets a connection that holds one.
#[derive(Debug)]
#[must_use = "dropping it closes the connection and releases the lock"]
pub struct SessionLock {
    session: Session,
    /// The last one taken is last.
    held: Vec<(Key, Mode)>,
}

impl SessionLock {
    /// Takes a lock. When this is dropped while it waits, the request is taken back and the connection closed.
    ///
    /// # Errors
    /// When the server refuses, a deadlock included, or the connection ends. The connection is closed then.
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

    /// Takes another lock on the same connection, or the same one once more: locks stack. False where it is not to be had in time;
    /// what was held before still is.
    ///
    /// # Errors
    /// When the server refuses, or the connection ends.
    pub async fn also(&mut self, key: Key, mode: Mode, wait: Wait) -> Result<bool, AdvisoryError> {
        let taken = self.session.lock(key, mode, wait).await?;
        if taken {
            self.held.push((key, mode));
        }
        Ok(taken)
    }

    /// What is held, as often as it was taken; the last one taken is last.
    #[must_use]
    pub fn held(&self) -> &[(Key, Mode)] {
        &self.held
    }

    /// The connection, for whatever else is to be done on it. A lock that other statements take there is not this guard's; and while a
    /// transaction is open there, the time limit of a wait lasts as long as the transaction.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The connection, for transactions on it; what holds for [`Self::session`] holds here.
    pub fn session_mut(&mut self) -> &mut Session {
        &mut self.session
    }

    /// Whether the connection, and with it the lock, is lost.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.session.is_lost()
    }

    /// Ends, with the reason, when the connection does: whoever works under the lock has to stop then.
    pub fn lost(&self) -> impl Future<Output = String> + Send + use<> {
        self.session.lost()
    }

    /// Gives everything back, the last taken first, with as many unlocks as there were locks.
    ///
    /// # Errors
    /// When the connection is lost, or it is not certain what it holds; the locks are free then all the same.
    pub async fn release(self) -> Result<Released, AdvisoryError> {
        let Self { mut session, mut held } = self;
        let mut all = true;
        while let Some((key, mode)) = held.pop() {
            all &= session.unlock(key, mode).await?;
        }
        Ok(Released { held: all, session })
    }
}
