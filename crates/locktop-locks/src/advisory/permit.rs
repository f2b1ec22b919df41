use std::time::{Duration, Instant};

use super::guard::Guard;
use super::locks::Locks;
use super::session::Session;
use super::source::{Conn, Source};
use super::{Key, Mode, Wait};
use crate::Error;
use locktop_base::clock;

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
