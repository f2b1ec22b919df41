//! Optimistic locking on the table `accounts`: read with a version, and write only if the version is still the same.
//!
//! ```no_run
//! use locktop_lab::optimistic::{Accounts, Cents};
//!
//! # async fn example(client: &tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
//! let accounts = Accounts::default();
//! // Reading and writing at once, in at most three attempts.
//! let attempt = accounts.transfer(client, 1, 2, Cents(12_50), 3).await?;
//! println!("done in attempt {attempt}");
//!
//! // Reading, thinking, and writing if nothing has changed meanwhile.
//! let (Some(from), Some(to)) = (accounts.read(client, 1).await?, accounts.read(client, 2).await?) else { return Ok(()) };
//! if !accounts.transfer_as_read(client, &from, &to, Cents(from.balance.0 / 2)).await? {
//!     println!("another session was faster: read again");
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Nothing is locked between reading and writing. A transfer locks both accounts, in the order of their ids, from its
//! write to the end of the transaction. Trying again within a transaction works in `READ COMMITTED`, in which each
//! attempt reads again; in `REPEATABLE READ` and above the whole transaction must be tried again
//! ([`TransferError::is_transient`]).
//!
//! In SQL: `transfer_optimistic(from_id, to_id, amount, max_retries)` returns true or fails, `try_transfer` returns the
//! number of the successful attempt, `transfer_at_versions` is one attempt.

use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;

use locktop_locks::Error;
use locktop_locks::SchemaName;
use locktop_locks::call::{Parameter, column, row, rows};

/// An amount of money in hundredths; displayed with two decimals, like `numeric`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cents(pub i64);

impl std::fmt::Display for Cents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        write!(f, "{sign}{}.{:02}", self.0.unsigned_abs() / 100, self.0.unsigned_abs() % 100)
    }
}

/// An account as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// `accounts.id`, the primary key.
    pub id: i32,
    /// `accounts.username`: the name of its owner; `None` for NULL.
    pub username: Option<String>,
    /// `accounts.balance`; a CHECK of the table keeps it from going below 0.
    pub balance: Cents,
    /// `accounts.version`: grows with every change, so that a write can detect a change since the read.
    pub version: i32,
}

/// Why no money was moved. Nothing was changed, unless the connection was lost.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// One of the two accounts does not exist; the server's message (SQLSTATE `P0002`).
    #[error("{0}")]
    NoAccount(String),
    /// The balance of the paying account is too low; the server's message (SQLSTATE `23514`).
    #[error("{0}")]
    Insufficient(String),
    /// Each attempt conflicted with another session.
    #[error(
        "abandoned the transfer from account {from} to {to} after {attempts} attempts: other sessions changed them each time"
    )]
    GaveUp {
        /// `accounts.id` of the paying account.
        from: i32,
        /// `accounts.id` of the receiving account.
        to: i32,
        /// Number of attempts, each of which found another version than it had read.
        attempts: i32,
    },
    /// Any other error, including an invalid amount.
    #[error(transparent)]
    Call(Error),
}

impl TransferError {
    /// Whether the transaction may succeed when it is tried again.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::GaveUp { .. } => true,
            Self::Call(error) => error.is_conflict(),
            Self::NoAccount(_) | Self::Insufficient(_) => false,
        }
    }
}

impl From<Error> for TransferError {
    fn from(error: Error) -> Self {
        match error {
            Error::Server { sqlstate, message, .. } if sqlstate == "P0002" => Self::NoAccount(message),
            Error::Server { sqlstate, message, .. } if sqlstate == "23514" => Self::Insufficient(message),
            other => Self::Call(other),
        }
    }
}

/// The table `accounts` of a schema.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Accounts {
    /// The schema that the table is in.
    pub schema: SchemaName,
}

impl Accounts {
    /// Reads one account, with its version.
    ///
    /// # Errors
    /// If the server refuses, or the connection fails.
    pub async fn read<C: GenericClient + Sync>(&self, client: &C, id: i32) -> Result<Option<Account>, Error> {
        const WHAT: &str = "accounts";
        let sql = "SELECT id, username, (balance * 100)::int8, version FROM @schema@.accounts WHERE id = $1";
        let rows = rows(client, &self.schema, WHAT, sql, &[(&id, Type::INT4)]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        Ok(Some(Account {
            id: column(WHAT, row, 0)?,
            username: column(WHAT, row, 1)?,
            balance: Cents(column(WHAT, row, 2)?),
            version: column(WHAT, row, 3)?,
        }))
    }

    /// One attempt: moves the money if both accounts are unchanged since they were read. False if one has changed; nothing
    /// was done then.
    ///
    /// # Errors
    /// If the balance is insufficient, the server refuses, or the connection fails.
    pub async fn transfer_as_read<C: GenericClient + Sync>(
        &self,
        client: &C,
        from: &Account,
        to: &Account,
        amount: Cents,
    ) -> Result<bool, TransferError> {
        const WHAT: &str = "transfer_at_versions";
        let sql = "SELECT @schema@.transfer_at_versions($1, $2, $3, $4, $5::text::numeric)";
        let parameters: &[Parameter<'_>] = &[
            (&from.id, Type::INT4),
            (&from.version, Type::INT4),
            (&to.id, Type::INT4),
            (&to.version, Type::INT4),
            (&amount.to_string(), Type::TEXT),
        ];
        let row = row(client, &self.schema, WHAT, sql, parameters).await?;
        Ok(column(WHAT, &row, 0)?)
    }

    /// Reads and moves, in a limited number of attempts; returns the number of the attempt that succeeded.
    ///
    /// # Errors
    /// If all attempts conflicted with others, an account does not exist or its balance is insufficient, the server refuses,
    /// or the connection fails.
    pub async fn transfer<C: GenericClient + Sync>(
        &self,
        client: &C,
        from: i32,
        to: i32,
        amount: Cents,
        attempts: i32,
    ) -> Result<i32, TransferError> {
        const WHAT: &str = "try_transfer";
        let sql = "SELECT transferred, attempts FROM @schema@.try_transfer($1, $2, $3::text::numeric, $4)";
        let parameters: &[Parameter<'_>] = &[
            (&from, Type::INT4),
            (&to, Type::INT4),
            (&amount.to_string(), Type::TEXT),
            (&attempts, Type::INT4),
        ];
        let row = row(client, &self.schema, WHAT, sql, parameters).await?;
        let tried = column(WHAT, &row, 1)?;
        if column(WHAT, &row, 0)? {
            Ok(tried)
        } else {
            Err(TransferError::GaveUp { from, to, attempts: tried })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cents_are_written_as_the_server_reads_them() {
        for (cents, text) in
            [(0, "0.00"), (5, "0.05"), (1250, "12.50"), (-7, "-0.07"), (i64::MIN, "-92233720368547758.08")]
        {
            assert_eq!(Cents(cents).to_string(), text);
        }
    }
}
