//! Twenty sessions that move money between few accounts, and one that looks whether it is all there.

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
use locktop_locks::optimistic::{Accounts, Cents, TransferError};

pub(super) const KEYS: [&str; 13] = [
    "sessions",
    "accounts",
    "transfers",
    "retries",
    "gave_up",
    "insufficient",
    "cents",
    "cents_expected",
    "negative_balances",
    "wrong_balances",
    "audits",
    "wrong_audits",
    "errors",
];

const SESSIONS: usize = 20;
const SHOWN: usize = 8;
const ACCOUNTS: usize = 10;
/// What each account has at the beginning, and the most that is moved at once, in hundredths.
const START: i64 = 100_000;
const MOST: u64 = 40_000;
const ATTEMPTS: i32 = 3;

/// What the sessions did.
#[derive(Debug)]
struct Book {
    /// What each account must have.
    balances: [i64; ACCOUNTS],
    transfers: u64,
    retries: u64,
    gave_up: u64,
    insufficient: u64,
    /// Transfers of which nobody knows whether they were done.
    unknown: u64,
    audits: u64,
    wrong_audits: u64,
}

impl Book {
    fn note(&mut self, from: usize, to: usize, amount: i64, outcome: &Result<i32, TransferError>) {
        let retries = |attempts: &i32| u64::try_from(attempts - 1).unwrap_or_default();
        match outcome {
            Ok(attempts) => {
                self.transfers += 1;
                self.retries += retries(attempts);
                for (place, change) in [(from, -amount), (to, amount)] {
                    if let Some(balance) = self.balances.get_mut(place) {
                        *balance += change;
                    }
                }
            }
            Err(TransferError::GaveUp { attempts, .. }) => {
                self.gave_up += 1;
                self.retries += retries(attempts);
            }
            Err(TransferError::Insufficient(_)) => self.insufficient += 1,
            Err(TransferError::NoAccount(_)) => {}
            Err(TransferError::Call(error)) => self.unknown += u64::from(error.sqlstate().is_none()),
        }
    }
}

#[derive(Debug)]
struct Moving {
    accounts: Accounts,
    ids: Vec<i32>,
    book: Mutex<Book>,
}

impl Moving {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn read(&self, client: &Client) -> Result<Vec<(i32, i64)>, tokio_postgres::Error> {
        let sql = format!(
            "SELECT id, (balance * 100)::bigint FROM {}.accounts WHERE id = ANY ($1) ORDER BY id",
            self.accounts.schema.quoted()
        );
        let rows = client.query(&sql, &[&self.ids]).await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
    }

    /// Whether all the money is there, as one statement sees it.
    async fn audit(&self, client: &Client) -> Result<(), CallError> {
        let lost =
            |error: tokio_postgres::Error| CallError::Lost { what: "accounts", reason: error.to_string() };
        let cents: i64 = self.read(client).await.map_err(lost)?.iter().map(|(_, cents)| cents).sum();
        let mut book = self.book();
        book.audits += 1;
        book.wrong_audits += u64::from(cents != EXPECTED);
        Ok(())
    }
}

#[expect(clippy::cast_possible_wrap, reason = "there are ten")]
const EXPECTED: i64 = START * ACCOUNTS as i64;

impl Act for Moving {
    const NAME: &'static str = "payments";
    const LONGEST: u64 = 60;

    async fn turn(&self, session: usize, client: &Client, random: &mut Random) -> Result<(), CallError> {
        if session == 0 {
            return self.audit(client).await;
        }
        let places = u64::try_from(self.ids.len()).unwrap_or(1);
        let place = |number: u64| usize::try_from(number).unwrap_or_default();
        let first = random.below(places);
        let second = (first + 1 + random.below(places - 1)) % places;
        let (from, to) = (place(first), place(second));
        let (Some(source), Some(target)) = (self.ids.get(from), self.ids.get(to)) else { return Ok(()) };
        let amount = i64::try_from(1 + random.below(MOST)).unwrap_or(1);
        let outcome = self.accounts.transfer(client, *source, *target, Cents(amount), ATTEMPTS).await;
        self.book().note(from, to, amount, &outcome);
        match outcome {
            Err(TransferError::Call(error)) => Err(error),
            _ => Ok(()),
        }
    }
}

#[derive(Debug)]
pub(super) struct Transfers {
    sessions: usize,
    moving: Arc<Moving>,
    crowd: Crowd,
    over: bool,
}

impl Transfers {
    pub(super) async fn begin(place: &Place, client: &Client) -> Result<Self, TasksError> {
        let sql = format!(
            "INSERT INTO {}.accounts (username, balance)
             SELECT 'customer ' || n, {START} / 100.0 FROM generate_series(1, {ACCOUNTS}) n RETURNING id",
            place.schema.quoted()
        );
        let rows = client.query(&sql, &[]).await.map_err(TasksError::server("its accounts"))?;
        let ids = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>();
        let book = Book {
            balances: [START; ACCOUNTS],
            transfers: 0,
            retries: 0,
            gave_up: 0,
            insufficient: 0,
            unknown: 0,
            audits: 0,
            wrong_audits: 0,
        };
        let moving = Arc::new(Moving {
            accounts: Accounts { schema: place.schema.clone() },
            ids: ids.map_err(TasksError::server("its accounts"))?,
            book: Mutex::new(book),
        });
        let sessions = place.many(SESSIONS, SHOWN);
        let crowd = Crowd::start(place, &moving, sessions + 1);
        Ok(Self { sessions, moving, crowd, over: false })
    }

    async fn found(&self, client: &Client) -> Result<Found, tokio_postgres::Error> {
        let now = self.moving.read(client).await?;
        let book = self.moving.book();
        // While money is under way the book is behind the accounts.
        let comparable = self.over && book.unknown == 0;
        let wrong = now.iter().zip(book.balances).filter(|((_, cents), must)| cents != must).count();
        let cents: i64 = now.iter().map(|(_, cents)| cents).sum();
        let numbers = [
            count(self.sessions),
            count(now.len()),
            book.transfers,
            book.retries,
            book.gave_up,
            book.insufficient,
            u64::try_from(cents).unwrap_or_default(),
            EXPECTED.unsigned_abs(),
            count(now.iter().filter(|(_, cents)| *cents < 0).count()),
            if comparable { count(wrong) } else { 0 },
            book.audits,
            book.wrong_audits,
            self.crowd.errors(),
        ];
        Ok(Found::new(Tally::new(Contest::Transfer.name(), &KEYS, numbers))
            .must_not(cents != EXPECTED, format!("{} is there of {}", Cents(cents), Cents(EXPECTED)))
            .zero(&[
                ("negative_balances", "accounts below 0"),
                ("wrong_balances", "accounts that do not have what was moved"),
                ("wrong_audits", "looks at which not all of the money was there"),
            ])
            .some("transfers", "no money was moved", self.crowd.complaint().as_deref()))
    }
}

impl Game for Transfers {
    fn finish(&mut self) -> BoxFuture<'_, ()> {
        async {
            self.crowd.finish().await;
            self.over = true;
        }
        .boxed()
    }

    fn count<'a>(&'a self, client: &'a Client) -> BoxFuture<'a, Result<Found, tokio_postgres::Error>> {
        self.found(client).boxed()
    }
}
