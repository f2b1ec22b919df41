use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use super::error::AdvisoryError;
use super::guard::Guard;
use super::locks::Locks;
use super::session::Session;
use super::source::{Conn, Source};
use super::{Key, Mode, Wait};
use locktop_base::clock;

/// How long the first in the queue waits for one permit before it tries the others.
const TURN: Duration = Duration::from_millis(50);
/// Each permit is a lock; a request asks for all of them in one statement.
const MOST: u32 = 1_000;

impl<S: Source> Locks<S> {
    /// One of `of` permits of a semaphore; `None` if others have all of them for the whole wait. A permit is the lock
    /// `name #1`, `name #2`, …; those who wait are served in the order in which they came, behind the lock `name #queue`. A request that
    /// does not wait may overtake them.
    ///
    /// # Errors
    /// As for [`Locks::lock`]; or if `of` is not 1 to 1,000.
    pub async fn permit(&self, name: &str, of: u32, wait: Wait) -> Result<Option<Guard>, AdvisoryError> {
        if of == 0 || of > MOST {
            return Err(AdvisoryError::Request("a semaphore has 1 to 1000 permits"));
        }
        let permits: Vec<Key> = (1..=of).map(|at| Key::named(&format!("{name} #{at}"))).collect();
        let queue = [(Key::named(&format!("{name} #queue")), Mode::Exclusive)];
        let mut session = self.session().await?;
        let taken = if wait == Wait::Never {
            session.first_free(&permits).await?
        } else {
            let left = Left { wait, start: clock::monotonic() };
            if session.lock(&queue, wait).await?.is_none() {
                session.give_back();
                return Ok(None);
            }
            let taken = next_free(&mut session, &permits, &left).await?;
            let shown = taken.iter().map(|(_, permit)| (permit.clone(), Mode::Exclusive));
            session.unlock(&queue, &shown.collect::<Vec<_>>()).await?;
            taken
        };
        let Some((pid, permit)) = taken else {
            session.give_back();
            return Ok(None);
        };
        Ok(Some(Guard::new(session, pid, vec![(permit, Mode::Exclusive)])))
    }
}

/// What is left of a wait.
struct Left {
    wait: Wait,
    start: std::time::Instant,
}

impl Left {
    /// At most a turn of it; `None` if nothing is left.
    fn turn(&self) -> Option<Wait> {
        let left = match self.wait {
            Wait::Never => Duration::ZERO,
            Wait::AtMost(limit) => limit.saturating_sub(self.start.elapsed()),
            Wait::Forever => TURN,
        };
        (!left.is_zero()).then(|| Wait::AtMost(left.min(TURN)))
    }
}

/// The next permit that is free. Waits for one of them at a time, chosen at random.
async fn next_free<C: Conn>(
    session: &mut Session<C>,
    permits: &[Key],
    left: &Left,
) -> Result<Option<(i32, Key)>, AdvisoryError> {
    loop {
        if let Some(taken) = session.first_free(permits).await? {
            return Ok(Some(taken));
        }
        let Some(turn) = left.turn() else { return Ok(None) };
        let chance = usize::try_from(RandomState::new().hash_one(0) >> 32).unwrap_or_default();
        let Some(permit) = permits.get(chance % permits.len().max(1)) else { continue };
        if let Some(pid) = session.lock(&[(permit.clone(), Mode::Exclusive)], turn).await? {
            return Ok(Some((pid, permit.clone())));
        }
    }
}
