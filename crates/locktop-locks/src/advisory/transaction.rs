use std::time::Duration;

use tokio_postgres::Transaction;
use tokio_postgres::error::SqlState;

use super::session::{Call, Level, TIMEOUT};
use super::source::{self, within};
use super::{Key, Mode, Wait};
use crate::Error;

/// Acquires a lock that lasts until the transaction ends; false if it is not granted in time. It cannot be released
/// before, except by a ROLLBACK to an earlier savepoint. Works through any pooler.
///
/// With [`Wait::Forever`] the transaction's own `lock_timeout` and `statement_timeout` apply, if it has any. With
/// [`Wait::AtMost`] its `lock_timeout` is replaced during the wait, and a savepoint keeps the transaction usable if the
/// wait fails.
///
/// The connection is the caller's, so a wait that is dropped is not cancelled: the statement continues until the lock is
/// granted or the limit is over. The next statement on the connection waits for it, even if a pool has given the connection
/// to another task. Pass a limit instead of adding a timeout, or cancel the statement with a
/// [`CancelToken`](tokio_postgres::CancelToken).
///
/// ```no_run
/// # use locktop_locks::advisory::{Key, Mode, Wait, xact_lock};
/// # async fn example(client: &mut tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
/// let transaction = client.transaction().await?;
/// if xact_lock(&transaction, Key::Pair(7, 42), Mode::Exclusive, Wait::Never).await? {
///     transaction.batch_execute("UPDATE accounts SET balance = 0").await?;
///     transaction.commit().await?;
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If the server refuses, does not answer in time or the connection ends. The transaction can then only be rolled back.
pub async fn xact_lock(
    transaction: &Transaction<'_>,
    key: impl Into<Key>,
    mode: Mode,
    wait: Wait,
) -> Result<bool, Error> {
    let key = key.into();
    let (comment, key) =
        (key.comment("lock").filter(|name| name.is_ascii()).unwrap_or_default(), key.number());
    let call = format!("{comment}SELECT {}", Call::Lock(Level::Transaction, mode, key).call());
    match wait.lock_timeout() {
        None => {
            let call = format!("{comment}SELECT {}", Call::Try(Level::Transaction, mode, key).call());
            Ok(ask(transaction, wait.timeout(), &call).await?.as_deref() == Some("t"))
        }
        Some(0) => ask(transaction, wait.timeout(), &call).await.map(|_| true),
        Some(limit) => at_most(transaction, &call, limit, wait.timeout()).await,
    }
}

/// The setting is restored in the message that changes it, so that nothing remains of it even if the caller does not wait
/// for the answer: the server executes the whole message, or undoes all of it since the savepoint.
async fn at_most(
    transaction: &Transaction<'_>,
    call: &str,
    limit: u32,
    timeout: Option<Duration>,
) -> Result<bool, Error> {
    let setting = "SELECT pg_catalog.current_setting('lock_timeout')";
    let before = ask(transaction, Some(TIMEOUT), setting).await?.unwrap_or_default();
    let before = before.replace('\'', "''");
    let sql = format!(
        "SAVEPOINT locktop_wait; SET LOCAL lock_timeout = {limit}; {call}; SET LOCAL lock_timeout = '{before}'; \
         RELEASE SAVEPOINT locktop_wait"
    );
    match ask(transaction, timeout, &sql).await {
        Ok(_) => Ok(true),
        Err(error) if error.sqlstate() == Some(SqlState::LOCK_NOT_AVAILABLE.code()) => {
            let back = "ROLLBACK TO SAVEPOINT locktop_wait; RELEASE SAVEPOINT locktop_wait";
            ask(transaction, Some(TIMEOUT), back).await?;
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

async fn ask(
    transaction: &Transaction<'_>,
    limit: Option<Duration>,
    sql: &str,
) -> Result<Option<String>, Error> {
    within(limit, sql, source::ask(transaction.client(), sql)).await
}
