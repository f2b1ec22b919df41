//! Whose transaction a statement runs in.

use futures_util::future::join3;
use tokio_postgres::{Client, Error};

/// Whose transaction the statements of a session run in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// Each in one of its own.
    Own,
    /// All of them in one that is open, behind a pooler that lends a session for no longer ([`super::poll`]).
    Open,
}

impl Scope {
    /// Runs a statement so that no other fails with it, and that what it has set or locked goes with it. In an open transaction that
    /// takes a savepoint, to which it returns in any case. The statement has to be sent when it is polled first, and be one message
    /// or one that is prepared already: what is around it is sent just before and just after.
    pub(super) async fn alone<T>(self, client: &Client, statement: impl Future<Output = T>) -> T {
        match self {
            Self::Own => statement.await,
            Self::Open => {
                // Where the connection is lost the statement says so itself.
                let (_, done, _) =
                    join3(client.batch_execute(BEFORE), statement, client.batch_execute(AFTER)).await;
                done
            }
        }
    }

    /// The same for several statements, one after the other.
    pub(super) async fn apart<T>(
        self,
        client: &Client,
        statements: impl Future<Output = T>,
    ) -> Result<T, Error> {
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
