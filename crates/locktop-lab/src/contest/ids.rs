//! Eight sessions that make ids, two for each worker of the generator.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio_postgres::Client;

use super::Contest;
use super::crowd::{Act, Crowd};
use super::game::{Game, Place};
use super::tally::{Found, Tally, count};
use crate::random::Random;
use crate::workers::TasksError;
use locktop_locks::call::CallError;
use locktop_locks::snowflake::{Generator, Snowflake, SnowflakeError};

pub(super) const KEYS: [&str; 7] =
    ["sessions", "workers", "ids", "duplicates", "out_of_order", "of_another_worker", "errors"];

const SESSIONS: usize = 8;
const WORKERS: u16 = 4;
/// One call in so many asks for several, at most so many.
const SEVERAL: u64 = 8;
const MOST: u64 = 200;
/// So many ids are remembered. One that comes again later is out of order, too.
const REMEMBERED: usize = 2_000_000;

/// What the sessions were given.
#[derive(Debug, Default)]
struct Book {
    seen: HashSet<Snowflake>,
    /// The highest of each worker that somebody has in hand.
    highest: [Option<Snowflake>; WORKERS as usize],
    ids: u64,
    duplicates: u64,
    disorder: u64,
    foreign: u64,
}

impl Book {
    fn highest(&self, place: usize) -> Option<Snowflake> {
        self.highest.get(place).copied().flatten()
    }

    /// `before` is what the worker had given when these were asked for: each is above it, and above the one before.
    fn note(&mut self, place: usize, before: Option<Snowflake>, ids: &[Snowflake], worker: u16) {
        let mut last = before;
        for id in ids {
            self.ids += 1;
            self.duplicates += u64::from(!self.seen.insert(*id));
            self.disorder += u64::from(Some(*id) <= last);
            self.foreign += u64::from(id.worker() != worker);
            last = Some(*id);
        }
        if let Some(highest) = self.highest.get_mut(place) {
            *highest = (*highest).max(last);
        }
        if self.seen.len() > REMEMBERED {
            self.seen.clear();
        }
    }
}

#[derive(Debug)]
struct Making {
    generators: Vec<Generator>,
    book: Mutex<Book>,
}

impl Making {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Act for Making {
    const NAME: &'static str = "ids";
    const LONGEST: u64 = 40;

    async fn turn(&self, session: usize, client: &Client, random: &mut Random) -> Result<(), CallError> {
        let place = session % usize::from(WORKERS);
        let Some(generator) = self.generators.get(place) else { return Ok(()) };
        let before = self.book().highest(place);
        let ids = if random.below(SEVERAL) == 0 {
            let count = u16::try_from(1 + random.below(MOST)).unwrap_or(1);
            generator.many(client, count).await
        } else {
            generator.next(client).await.map(|id| vec![id])
        };
        self.book().note(place, before, &ids.map_err(told)?, generator.worker());
        Ok(())
    }
}

fn told(error: SnowflakeError) -> CallError {
    match error {
        SnowflakeError::Call(error) => error,
        other => CallError::Lost { what: "generate_snowflake_id", reason: other.to_string() },
    }
}

#[derive(Debug)]
pub(super) struct Ids {
    making: Arc<Making>,
    crowd: Crowd,
}

impl Ids {
    pub(super) async fn begin(place: &Place, client: &Client) -> Result<Self, TasksError> {
        let refused =
            |error: SnowflakeError| TasksError::Server { what: "id generators", message: error.to_string() };
        let mut generators = Vec::new();
        for worker in 1..=WORKERS {
            let mut generator = Generator::new(worker).map_err(refused)?;
            generator.schema = place.schema.clone();
            generator.register(client).await.map_err(refused)?;
            generators.push(generator);
        }
        let making = Arc::new(Making { generators, book: Mutex::default() });
        let crowd = Crowd::start(place, &making, SESSIONS);
        Ok(Self { making, crowd })
    }

    fn found(&self) -> Found {
        let book = self.making.book();
        let numbers = [
            count(SESSIONS),
            u64::from(WORKERS),
            book.ids,
            book.duplicates,
            book.disorder,
            book.foreign,
            self.crowd.errors(),
        ];
        Found::new(Tally::new(Contest::Ids.name(), &KEYS, numbers))
            .zero(&[
                ("duplicates", "ids that were there before"),
                ("out_of_order", "ids that were not above the ones before of their worker"),
                ("of_another_worker", "ids of another worker"),
            ])
            .some("ids", "no id was made", self.crowd.complaint().as_deref())
    }
}

impl Game for Ids {
    fn finish(&mut self) -> BoxFuture<'_, ()> {
        self.crowd.finish().boxed()
    }

    fn count<'a>(&'a self, _: &'a Client) -> BoxFuture<'a, Result<Found, tokio_postgres::Error>> {
        std::future::ready(Ok(self.found())).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_twice_or_too_late_is_noted() {
        let id = |time: i64, worker: i64| Snowflake(time << 22 | worker << 12);
        let mut book = Book::default();
        book.note(0, None, &[id(5, 1), id(6, 1)], 1);
        assert_eq!(book.highest(0), Some(id(6, 1)));
        // Asked for before the others came: another session may have been quicker.
        book.note(0, None, &[id(4, 1)], 1);
        assert_eq!((book.ids, book.duplicates, book.disorder, book.foreign), (3, 0, 0, 0));
        assert_eq!(book.highest(0), Some(id(6, 1)));
        book.note(0, book.highest(0), &[id(6, 1), id(3, 1), id(7, 2)], 1);
        assert_eq!((book.duplicates, book.disorder, book.foreign), (1, 2, 1));
    }
}
