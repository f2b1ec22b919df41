use futures_util::future::join3;
use tokio_postgres::{Client, Error};

/// The transaction in which the statements of a session run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Own,
    /// All in one open transaction, behind a pooler in transaction mode ([`super::poll`]).
    Open,
}

impl Scope {
    /// Runs a statement so that its failure affects no other, and its settings and locks end with it. In an open transaction
    /// this takes a savepoint, which is always rolled back to. The statement must be sent on its first poll, as one message
    /// or already prepared: the savepoint commands are sent just before and just after it.
    pub(super) async fn alone<T>(self, client: &Client, statement: impl Future<Output = T>) -> T {
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
