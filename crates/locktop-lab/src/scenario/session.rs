use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_postgres::{Client, SimpleQueryMessage};

use super::error::ScenarioError;
use pg_connect::connect::connect;
use pg_connect::conninfo::ConnInfo;

/// Identifies a backend: a process id alone may have been reused by the time it is used.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    pub(super) pid: i32,
    /// Its `pg_stat_activity.backend_start`, as text.
    pub(super) start: String,
}

pub(super) type Task = JoinHandle<Result<(), ScenarioError>>;

/// A real session. It ends when this and its running statements are dropped, or when its [`super::ScratchSchema`]
/// terminates it.
#[derive(Debug, Clone)]
pub(super) struct Session {
    pub(super) pid: i32,
    client: Arc<Client>,
}

impl Session {
    pub(super) async fn open(info: ConnInfo, schema: &str) -> Result<(Self, Identity), ScenarioError> {
        let client = connect(&info).await?.client;
        // In one round trip, since there may be a thousand sessions.
        let hello = format!(
            "SET search_path TO {schema}, public; SET client_min_messages TO error;
             SELECT pid, backend_start::text FROM pg_stat_get_activity(pg_backend_pid())"
        );
        let answer = client.simple_query(&hello).await.map_err(ScenarioError::statement(&hello))?;
        let row = answer.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => {
                Some((row.try_get(0).ok()??.parse().ok()?, row.try_get(1).ok()??.to_owned()))
            }
            _ => None,
        });
        let refused =
            || ScenarioError::Statement { statement: hello, message: "no row about this session".to_owned() };
        let (pid, start) = row.ok_or_else(refused)?;
        Ok((Self { pid, client: Arc::new(client) }, Identity { pid, start }))
    }

    pub(super) async fn run(&self, statements: &str) -> Result<(), ScenarioError> {
        self.client.batch_execute(statements).await.map_err(ScenarioError::statement(statements))
    }

    pub(super) fn send(&self, statements: impl Into<String>) -> Task {
        self.send_and_commit(statements, Duration::ZERO, "")
    }

    /// Sends statements; once they are done, and after a pause, sends the statement that ends the transaction.
    pub(super) fn send_and_commit(
        &self,
        statements: impl Into<String>,
        pause: Duration,
        end: &'static str,
    ) -> Task {
        let (session, statements) = (self.clone(), statements.into());
        tokio::spawn(async move {
            let outcome = session.run(&statements).await;
            if !end.is_empty() {
                tokio::time::sleep(pause).await;
                // After a failure this is a ROLLBACK, whatever it says.
                session.run(end).await?;
            }
            outcome
        })
    }
}
