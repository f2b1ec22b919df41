mod background;
pub mod decode;

/// The tables of tasks and job systems: those of `locktop schema` and of the published articles (`sources`), those of other systems
/// (`adapters`), and how a table is found and read (`tables`).
pub mod jobs {
    pub mod adapters;
    pub mod sources;
    pub(super) mod tables;
}

pub mod learn;
pub mod lock_of;
pub mod poll;
pub mod server_log;
pub mod sql;

use std::pin::pin;

use futures_util::TryStreamExt;
use futures_util::future::join3;
use pg_connect::{message, refusal};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, SimpleColumn, SimpleQueryMessage, SimpleQueryRow};

use crate::model::Text;
use decode::DecodeError;

pub use locktop_tasks::trust;
pub use pg_connect::{connect, conninfo, error};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    Own,
    /// All in one open transaction, behind a pooler in transaction mode ([`poll`]).
    Open,
}

impl Scope {
    /// Runs a statement so that its failure affects no other, and its settings and locks end with it. In an open transaction
    /// this takes a savepoint, which is always rolled back to. The statement must be sent on its first poll, as one message
    /// or already prepared: the savepoint commands are sent just before and just after it.
    async fn alone<T>(self, client: &Client, statement: impl Future<Output = T>) -> T {
        match self {
            Self::Own => statement.await,
            Self::Open => {
                // If the connection is lost, the statement reports that itself.
                let (_, done, _) =
                    join3(client.batch_execute(BEFORE), statement, client.batch_execute(AFTER)).await;
                done
            }
        }
    }

    /// The same for several statements in sequence.
    async fn apart<T>(self, client: &Client, statements: impl Future<Output = T>) -> Result<T, Error> {
        if self == Self::Own {
            return Ok(statements.await);
        }
        client.batch_execute(BEFORE).await?;
        let done = statements.await;
        client.batch_execute(AFTER).await?;
        Ok(done)
    }
}

const BEFORE: &str = "SAVEPOINT locktop";
const AFTER: &str = "ROLLBACK TO SAVEPOINT locktop; RELEASE SAVEPOINT locktop";

/// Runs the statements of one message, to the end: only then is it certain that none failed. `row` gets the rows of those
/// whose columns are wanted.
async fn each_row<E: From<Error>>(
    client: &Client,
    sql: &str,
    mut is_wanted: impl FnMut(&[SimpleColumn]) -> bool,
    mut row: impl FnMut(&SimpleQueryRow) -> Result<(), E>,
) -> Result<(), E> {
    let mut messages = pin!(client.simple_query_raw(sql).await?);
    let mut is_read = false;
    while let Some(message) = messages.try_next().await? {
        match message {
            SimpleQueryMessage::RowDescription(columns) => is_read = is_wanted(&columns),
            SimpleQueryMessage::Row(values) if is_read => row(&values)?,
            _ => {}
        }
    }
    Ok(())
}

#[derive(Debug, thiserror::Error)]
pub enum SectionError {
    #[error("{}", reason(.0))]
    Server(#[from] tokio_postgres::Error),
    /// More rows than the limit, in MB.
    #[error("the server sent more rows than the {0} MB that are kept of them")]
    TooMuch(usize),
    #[error(transparent)]
    Decode(#[from] DecodeError),
}

impl SectionError {
    /// Whether the connection failed, and not only a statement.
    fn is_fatal(&self) -> bool {
        self.is_last_word() || matches!(self, Self::Server(error) if error.as_db_error().is_none())
    }

    /// Whether the server understood the statement and refused it.
    fn is_refused(&self) -> bool {
        !self.is_fatal() && matches!(self, Self::Server(_))
    }

    /// Whether the server ended the connection with this error (severity FATAL or PANIC).
    fn is_last_word(&self) -> bool {
        let Self::Server(error) = self else { return false };
        error.as_db_error().is_some() && refusal(error).is_none()
    }

    fn code(&self) -> Option<&tokio_postgres::error::SqlState> {
        match self {
            Self::Server(error) => error.code(),
            Self::Decode(_) | Self::TooMuch(_) => None,
        }
    }

    fn text(&self) -> Text {
        self.to_string().into()
    }
}

/// The same for a statement of the poll. None of them waits for a lock, unless the server must first read a catalog again
/// to run any statement, and that catalog is locked.
fn reason(error: &tokio_postgres::Error) -> String {
    let said = message(error);
    if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) {
        return format!("a system catalog that it needs is locked: {said}");
    }
    said
}
