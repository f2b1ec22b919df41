use std::sync::Mutex;

use fastrand::Rng;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error};

use super::runner::{Report, Runner, SessionWork};
use super::tally::{ContestOutcome, Tally, count, tally};
use super::{Contest, Environment, Rules, failed, lock};
use crate::DemoError;
use locktop_locks::Error as LockError;
use locktop_locks::call::{Parameter, column, row};
use locktop_tasks::schema::SchemaName;

tally! {
    sessions accounts transfers retries gave_up insufficient cents cents_expected negative_balances
    wrong_balances audits wrong_audits errors
}

const SESSIONS: usize = 20;
const SHOWN: usize = 8;
const ACCOUNTS: usize = 10;
/// The initial balance of each account, and the most that is moved at once, in hundredths.
const START: i64 = 100_000;
const MOST: u64 = 40_000;
const ATTEMPTS: i32 = 3;
/// The SQLSTATE for a balance that is too low (`check_violation`), and for an account that does not exist
/// (`no_data_found`).
const INSUFFICIENT: &str = "23514";
const NO_ACCOUNT: &str = "P0002";

#[derive(Debug, Default)]
struct TransferCounts {
    /// The expected balance of each account.
    balances: [i64; ACCOUNTS],
    unknown: u64,
    numbers: Numbers,
}

impl TransferCounts {
    fn note(&mut self, from: usize, to: usize, amount: i64, outcome: &Result<(bool, i32), LockError>) {
        match outcome {
            Ok((is_done, attempts)) => {
                self.numbers.retries += u64::try_from(attempts - 1).unwrap_or_default();
                if !is_done {
                    self.numbers.gave_up += 1;
                    return;
                }
                self.numbers.transfers += 1;
                for (index, change) in [(from, -amount), (to, amount)] {
                    if let Some(balance) = self.balances.get_mut(index) {
                        *balance += change;
                    }
                }
            }
            Err(error) if error.sqlstate() == Some(INSUFFICIENT) => self.numbers.insufficient += 1,
            Err(error) => self.unknown += u64::from(error.sqlstate().is_none()),
        }
    }
}

#[derive(Debug)]
struct Transfers {
    sessions: usize,
    schema: SchemaName,
    ids: Vec<i32>,
    counts: Mutex<TransferCounts>,
}

#[expect(clippy::cast_possible_wrap, reason = "there are ten")]
const EXPECTED: i64 = START * ACCOUNTS as i64;

pub(super) async fn begin(environment: &Environment, client: &Client) -> Result<Runner, DemoError> {
    let sql = format!(
        "INSERT INTO {}.accounts (username, balance)
         SELECT 'customer ' || n, {START} / 100.0 FROM generate_series(1, {ACCOUNTS}) n RETURNING id",
        environment.schema.quoted()
    );
    let rows = client.query(&sql, &[]).await.map_err(DemoError::server("its accounts"))?;
    let ids = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>();
    let sessions = if environment.options.headless { SESSIONS } else { SHOWN };
    let work = Transfers {
        sessions,
        schema: environment.schema.clone(),
        ids: ids.map_err(DemoError::server("its accounts"))?,
        counts: Mutex::new(TransferCounts { balances: [START; ACCOUNTS], ..TransferCounts::default() }),
    };
    Ok(Runner::sessions(environment, work, sessions + 1))
}

impl Transfers {
    async fn read(&self, client: &Client) -> Result<Vec<(i32, i64)>, Error> {
        let sql = format!(
            "SELECT id, (balance * 100)::bigint FROM {}.accounts WHERE id = ANY ($1) ORDER BY id",
            self.schema.quoted()
        );
        let rows = client.query(&sql, &[&self.ids]).await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
    }

    /// Reads the versions of two accounts and moves the money if they are still the same, in a limited number of attempts.
    /// Returns whether it was moved, and the number of attempts.
    async fn transfer(
        &self,
        client: &Client,
        from: i32,
        to: i32,
        amount: i64,
    ) -> Result<(bool, i32), LockError> {
        const WHAT: &str = "try_transfer";
        let sql = "SELECT transferred, attempts FROM @schema@.try_transfer($1, $2, $3::text::numeric, $4)";
        let amount = decimal(amount);
        let parameters: &[Parameter<'_>] =
            &[(&from, Type::INT4), (&to, Type::INT4), (&amount, Type::TEXT), (&ATTEMPTS, Type::INT4)];
        let row = row(client, &self.schema, WHAT, sql, parameters).await?;
        Ok((column(WHAT, &row, 0)?, column(WHAT, &row, 1)?))
    }

    /// Checks that all the money is there, in the snapshot of one statement.
    async fn audit(&self, client: &Client) -> Result<(), LockError> {
        let now = self.read(client).await.map_err(failed("accounts"))?;
        let cents: i64 = now.iter().map(|(_, cents)| cents).sum();
        let mut counts = lock(&self.counts);
        counts.numbers.audits += 1;
        counts.numbers.wrong_audits += u64::from(cents != EXPECTED);
        Ok(())
    }
}

impl SessionWork for Transfers {
    const NAME: &'static str = "payments";
    const LONGEST: u64 = 60;

    async fn attempt(&self, session: usize, client: &Client, random: &mut Rng) -> Result<(), LockError> {
        if session == 0 {
            return self.audit(client).await;
        }
        let accounts = u64::try_from(self.ids.len()).unwrap_or(1);
        let index = |number: u64| usize::try_from(number).unwrap_or_default();
        let first = random.u64(..accounts);
        let second = (first + 1 + random.u64(..accounts - 1)) % accounts;
        let (from, to) = (index(first), index(second));
        let (Some(source), Some(target)) = (self.ids.get(from), self.ids.get(to)) else { return Ok(()) };
        let amount = i64::try_from(1 + random.u64(..MOST)).unwrap_or(1);
        let outcome = self.transfer(client, *source, *target, amount).await;
        lock(&self.counts).note(from, to, amount, &outcome);
        match outcome {
            Err(error) if !matches!(error.sqlstate(), Some(INSUFFICIENT | NO_ACCOUNT)) => Err(error),
            _ => Ok(()),
        }
    }
}

impl Rules for Transfers {
    async fn count(&self, client: &Client, report: &Report) -> Result<ContestOutcome, Error> {
        let now = self.read(client).await?;
        let counts = lock(&self.counts);
        // During a transfer the counts lag behind the accounts.
        let comparable = report.over && counts.unknown == 0;
        let wrong = now.iter().zip(counts.balances).filter(|((_, cents), must)| cents != must).count();
        let cents: i64 = now.iter().map(|(_, cents)| cents).sum();
        let mut found = Numbers {
            sessions: count(self.sessions),
            accounts: count(now.len()),
            cents: u64::try_from(cents).unwrap_or_default(),
            cents_expected: EXPECTED.unsigned_abs(),
            negative_balances: count(now.iter().filter(|(_, cents)| *cents < 0).count()),
            wrong_balances: if comparable { count(wrong) } else { 0 },
            ..counts.numbers
        };
        found.extend(report.numbers(&KEYS));
        Ok(ContestOutcome::new(found.tally(Contest::Transfer.as_str()))
            .must_not(cents != EXPECTED, format!("{} exists of {}", decimal(cents), decimal(EXPECTED)))
            .zero(&[
                ("negative_balances", "accounts below 0"),
                ("wrong_balances", "accounts with a wrong balance"),
                ("wrong_audits", "snapshots with a wrong total balance"),
            ])
            .some("transfers", "no money was moved", report.first_error.as_deref()))
    }
}

/// An amount of money in hundredths, as the server reads and writes it.
fn decimal(cents: i64) -> String {
    let (sign, cents) = (if cents < 0 { "-" } else { "" }, cents.unsigned_abs());
    format!("{sign}{}.{:02}", cents / 100, cents % 100)
}

#[cfg(test)]
mod tests {
    use super::decimal;

    #[test]
    fn cents_are_written_as_the_server_reads_them() {
        for (cents, text) in
            [(0, "0.00"), (5, "0.05"), (1250, "12.50"), (-7, "-0.07"), (i64::MIN, "-92233720368547758.08")]
        {
            assert_eq!(decimal(cents), text);
        }
    }
}
