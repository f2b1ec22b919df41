//! The session of a worker.

use std::time::Duration;

use tokio::sync::watch;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement};

use super::error::{OpenError, SessionError};
use super::execution::{Execution, Finish};
use super::open::{self, Statements};
use super::worker_id::WorkerId;
use crate::pg::connect::{Heard, Listening};
use crate::pg::conninfo::ConnInfo;
use crate::schema::SchemaName;

/// Where the schema tells that a task is due, or is the next to be. Payload: the schema.
pub(super) const DUE: &str = "locktop_tasks";
/// Where workers tell each other that nothing is left to take. Payload: seconds until that changes, or `-`; the schema.
pub(super) const QUIET: &str = "locktop_quiet";

/// A server that has not answered for so long is gone, as far as we can tell. Its own limit for a statement is shorter.
const PATIENCE: Duration = Duration::from_secs(10);

/// SQLSTATEs of a function that is gone, a schema that is gone, and a prepared statement whose result would be another now.
const CHANGED: [&str; 3] = ["42883", "3F000", "0A000"];

/// What a worker is told unasked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum News {
    /// A task is due, or has become the next one to be.
    Due,
    /// Another worker found nothing left to take; what it said about when to look again, nothing when nothing is planned.
    Quiet(Option<Duration>),
    /// This very session said so, at this place among what others said.
    Told,
}

/// The session of one worker. Dropped, it ends, and with it every lock that it holds.
#[derive(Debug)]
pub struct TaskSession {
    connection: Listening,
    statements: Statements,
    worker: WorkerId,
    schema: SchemaName,
    pid: i32,
}

impl TaskSession {
    /// Opens a session of its own, and makes sure that locks are safe in it.
    ///
    /// # Errors
    /// When there is no connection, or only one through a pooler in transaction mode; when the schema is not there or not of
    /// this version; when the role may not use it.
    pub async fn open(info: &ConnInfo, schema: &SchemaName, worker: &WorkerId) -> Result<Self, OpenError> {
        let (connection, statements) = open::open(info, schema).await?;
        let row = connection.client.query_one("SELECT pg_catalog.pg_backend_pid()", &[]).await?;
        Ok(Self {
            connection,
            statements,
            worker: worker.clone(),
            schema: schema.clone(),
            pid: row.try_get(0)?,
        })
    }

    /// The process id of the server's side.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Why the session has ended, as soon as it has. From then on others may have what it held.
    #[must_use]
    pub fn ended(&self) -> watch::Receiver<Option<String>> {
        self.connection.ended.clone()
    }

    /// Takes up to `max` due tasks, the highest priority first. They are ours when this returns, and committed.
    ///
    /// # Errors
    /// When the server refuses, or the session is lost.
    pub async fn fetch(&self, max: usize) -> Result<Vec<Execution>, SessionError> {
        let max = i32::try_from(max).unwrap_or(i32::MAX);
        let rows = self.ask(&self.statements.fetch, &[&self.worker.as_str(), &max]).await?;
        rows.iter().map(Execution::read).collect()
    }

    /// Ends an execution, plans the next and gives the lock back, all at once. False when it was not ours any more: then this
    /// changed nothing, and somebody else says how it ended.
    ///
    /// # Errors
    /// When the server refuses, in which case the execution still runs; when the session is lost, in which case it is not known
    /// whether this counted.
    pub async fn finish(&self, execution: &Execution, finish: Finish) -> Result<bool, SessionError> {
        let error = finish.error();
        match self.end(execution, finish.status(), error.as_deref()).await {
            // 22P05: the database's encoding does not have a character of the error.
            Err(SessionError::Refused { sqlstate, .. }) if sqlstate == "22P05" => {
                let plain = error.map(|error| error.replace(|character: char| !character.is_ascii(), "?"));
                self.end(execution, finish.status(), plain.as_deref()).await
            }
            done => done,
        }
    }

    async fn end(
        &self,
        execution: &Execution,
        status: &str,
        error: Option<&str>,
    ) -> Result<bool, SessionError> {
        let arguments: [&(dyn ToSql + Sync); 4] =
            [&execution.task_id, &self.worker.as_str(), &status, &error];
        first(&self.ask(&self.statements.finish, &arguments).await?)
    }

    /// Gives an execution back that was not done: its task is due as before, and the attempt does not count. False when it was
    /// not ours any more.
    ///
    /// # Errors
    /// As for [`Self::finish`].
    pub async fn give_back(&self, execution: &Execution) -> Result<bool, SessionError> {
        first(&self.ask(&self.statements.give_back, &[&execution.task_id, &self.worker.as_str()]).await?)
    }

    /// A sign of life for everything that this session runs. Answers with the ids of the executions that are still ours; all others
    /// have to stop.
    ///
    /// # Errors
    /// When the server refuses, or the session is lost: nothing is confirmed then.
    pub async fn heartbeat(&self) -> Result<Vec<i64>, SessionError> {
        let rows = self.ask(&self.statements.heartbeat, &[&self.worker.as_str()]).await?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }

    /// How long until it is worth another look, for one who has just found nothing to take; zero when it is now, none when
    /// nothing is planned. By the server's clock alone.
    ///
    /// # Errors
    /// When the server refuses, or the session is lost.
    pub async fn next_due(&self) -> Result<Option<Duration>, SessionError> {
        seconds(&self.ask(&self.statements.next_due, &[]).await?)
    }

    /// The same, and tells all other workers of the schema that there is nothing to take before that. Where something is due now it
    /// tells them to leave that alone for `pause`; without one it tells them nothing then.
    ///
    /// # Errors
    /// When the server refuses, or the session is lost.
    pub async fn next_due_telling(&self, pause: Option<Duration>) -> Result<Option<Duration>, SessionError> {
        let pause = pause.map(|pause| pause.as_secs_f64());
        let arguments: [&(dyn ToSql + Sync); 2] = [&self.schema.as_str(), &pause];
        seconds(&self.ask(&self.statements.next_due_telling, &arguments).await?)
    }

    /// Tells all workers of the schema that a task may be due.
    ///
    /// # Errors
    /// When the server refuses, or the session is lost.
    pub async fn tell_due(&self) -> Result<(), SessionError> {
        self.ask(&self.statements.tell_due, &[&self.schema.as_str()]).await.map(drop)
    }

    /// The next news. What arrives while a statement is asked comes before its answer. Pending for ever once the session has
    /// ended.
    pub async fn news(&mut self) -> News {
        while let Some(heard) = self.connection.notifications.recv().await {
            if let Some(news) = self.read(&heard) {
                return news;
            }
        }
        std::future::pending().await
    }

    /// News that has arrived and was not read.
    pub fn news_so_far(&mut self) -> Vec<News> {
        let mut all = Vec::new();
        while let Some(heard) = self.connection.notifications.try_recv() {
            all.extend(self.read(&heard));
        }
        all
    }

    fn read(&self, heard: &Heard) -> Option<News> {
        let notification = match heard {
            Heard::Said(notification) => notification,
            // Ours may have been among them.
            Heard::More(channel) => return (channel == DUE).then_some(News::Due),
        };
        match notification.channel.as_str() {
            DUE if notification.payload == self.schema.as_str() => Some(News::Due),
            QUIET if notification.pid == self.pid => Some(News::Told),
            QUIET => {
                let (seconds, schema) = notification.payload.split_once(' ')?;
                (schema == self.schema.as_str()).then_some(())?;
                match seconds {
                    "-" => Some(News::Quiet(None)),
                    // Anybody may notify: what is no duration is no news.
                    seconds => {
                        let told = Duration::try_from_secs_f64(seconds.parse().ok()?).ok()?;
                        Some(News::Quiet(Some(told)))
                    }
                }
            }
            _ => None,
        }
    }

    /// Ends the session, and returns when the server has heard it, or after `limit`.
    pub async fn close(self, limit: Duration) {
        self.connection.close(limit).await;
    }

    async fn ask(
        &self,
        statement: &Statement,
        arguments: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, SessionError> {
        match tokio::time::timeout(PATIENCE, self.connection.client.query(statement, arguments)).await {
            Ok(Ok(rows)) => Ok(rows),
            Ok(Err(error)) => Err(match SessionError::from(error) {
                // Somebody upgraded or dropped the schema: the statements are those of the old one.
                SessionError::Refused { sqlstate, message } if CHANGED.contains(&sqlstate.as_str()) => {
                    SessionError::Lost(format!("the schema is not what it was: {message}"))
                }
                error => error,
            }),
            Err(_) => {
                Err(SessionError::Lost(format!("the server has not answered for {} s", PATIENCE.as_secs())))
            }
        }
    }
}

fn first(rows: &[Row]) -> Result<bool, SessionError> {
    match rows.first() {
        Some(row) => Ok(row.try_get::<_, Option<bool>>(0)?.unwrap_or(false)),
        None => Ok(false),
    }
}

fn seconds(rows: &[Row]) -> Result<Option<Duration>, SessionError> {
    let Some(row) = rows.first() else { return Ok(None) };
    let seconds: Option<f64> = row.try_get(0)?;
    Ok(seconds.map(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX)))
}
