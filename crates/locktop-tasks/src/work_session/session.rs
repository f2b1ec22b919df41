//! The session of a worker.

use std::time::Duration;

use tokio::sync::watch;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement};

use super::error::{OpenError, SessionError};
use super::job::{Finish, Job, Ours, Purged, Requeued};
use super::name;
use super::news::News;
use super::open::{self, All};
use super::source::Source;
use super::types::Types;
use super::worker_id::WorkerId;
use crate::schema::{Schema, SchemaName};
use locktop_base::text;
use pg_connect::connect::{Listening, Received};
use pg_connect::conninfo::ConnInfo;

/// A server that has not answered for so long is gone, as far as we can tell. Its own limit for a statement is shorter.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Of the items that were lost, so many are taken back at a time.
const MOST_REQUEUED: i32 = 100;

/// SQLSTATEs of a function that is gone, a schema that is gone, and a prepared statement whose result would be another now.
const CHANGED: [&str; 3] = ["42883", "3F000", "0A000"];

/// The session of one worker. Dropped, it ends, and with it every lock that it holds.
#[derive(Debug)]
pub struct WorkSession {
    connection: Listening,
    statements: All,
    worker: WorkerId,
    schema: SchemaName,
    types: Types,
    pid: i32,
}

impl WorkSession {
    /// Opens a session of its own, makes sure that locks are safe in it, and listens for news of these sources.
    ///
    /// # Errors
    /// When there is no connection, or only one through a pooler in transaction mode; when the schema is not there or not of
    /// this version; when the role may not use it, or somebody untrusted owns something in it.
    pub async fn open(
        info: &ConnInfo,
        schema: impl Into<Schema>,
        worker: &WorkerId,
        sources: &[Source],
    ) -> Result<Self, OpenError> {
        let schema = schema.into();
        let (connection, statements) = open::open(info, &schema, sources).await?;
        let row = connection.client.query_one("SELECT pg_catalog.pg_backend_pid()", &[]).await?;
        let (worker, types, pid) = (worker.clone(), Types::all(), row.try_get(0)?);
        Ok(Self { connection, statements, worker, schema: schema.name, types, pid })
    }

    /// Takes only work of these types from now on; all others are left alone.
    #[must_use]
    pub fn with_types(mut self, types: Types) -> Self {
        self.types = types;
        self
    }

    /// Makes sure that this is the only session on the schema with the worker's name, and keeps the name until it ends.
    ///
    /// # Errors
    /// With what is known of the other session, when there is one; and when the server refuses or the session is lost.
    pub async fn take_name(&self) -> Result<(), OpenError> {
        name::take(&self.connection.client, &self.schema, &self.worker).await
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

    /// Takes up to `max` due tasks, the highest priority first, or pending items, the oldest first. They are ours when this returns,
    /// and committed.
    ///
    /// # Errors
    /// When the session is lost; when the server refuses: then nothing is ours, but the session may hold keys that keep others from
    /// their tasks, until [`Self::release_idle_keys`] was called.
    pub async fn fetch(&self, source: Source, max: usize) -> Result<Vec<Job>, SessionError> {
        let max = i32::try_from(max).unwrap_or(i32::MAX);
        let arguments: [&(dyn ToSql + Sync); 3] = [&self.worker.as_str(), &max, &self.types.names()];
        let rows = self.ask(&self.statements.of(source).fetch, &arguments).await?;
        rows.iter().map(|row| Job::read(source, row)).collect()
    }

    /// Ends a job, plans what comes next and gives the lock back, all at once. False when it was not ours any more: then this
    /// changed nothing, and somebody else says how it ended.
    ///
    /// # Errors
    /// When the server refuses, in which case the job is still ours; when the session is lost, in which case it is not known
    /// whether this counted.
    pub async fn finish(&self, job: &Job, finish: Finish) -> Result<bool, SessionError> {
        let error = finish.error();
        match self.end(job, &finish, error.as_deref()).await {
            // 22P05: the database's encoding does not have a character of the error.
            Err(SessionError::Refused { sqlstate, .. }) if sqlstate == "22P05" => {
                let plain = error.map(|error| error.replace(|character: char| !character.is_ascii(), "?"));
                self.end(job, &finish, plain.as_deref()).await
            }
            done => done,
        }
    }

    async fn end(&self, job: &Job, finish: &Finish, error: Option<&str>) -> Result<bool, SessionError> {
        let (worker, status) = (self.worker.as_str(), finish.status(job.source));
        let arguments: [&(dyn ToSql + Sync); 5] = [&job.task_id, &worker, &job.attempt, &status, &error];
        first(&self.ask(&self.statements.of(job.source).finish, &arguments).await?)
    }

    /// Gives back what was not done: it is due or pending as before, and the attempt does not count. False when it was not ours any
    /// more.
    pub async fn give_back(&self, job: &Job) -> Result<bool, SessionError> {
        let arguments: [&(dyn ToSql + Sync); 3] = [&job.task_id, &self.worker.as_str(), &job.attempt];
        first(&self.ask(&self.statements.of(job.source).give_back, &arguments).await?)
    }

    /// Gives back the keys of tasks that this session has no execution of: what a fetch left that was refused, and what belonged
    /// to an execution that somebody else closed. Those in `working`, by the task, are kept. How many locks that were.
    ///
    /// # Errors
    /// When the server refuses, or the session is lost, which gives them back too.
    pub async fn release_idle_keys(&self, working: &[i32]) -> Result<i32, SessionError> {
        let rows = self.ask(&self.statements.release_idle, &[&working]).await?;
        rows.first().map_or(Ok(0), |row| Ok(row.try_get(0)?))
    }

    /// A sign of life for everything of that source that this session has. Answers with what is still ours; all else has to stop.
    ///
    /// # Errors
    /// When the server refuses, or the session is lost: nothing is confirmed then.
    pub async fn heartbeat(&self, source: Source) -> Result<Vec<Ours>, SessionError> {
        let rows = self.ask(&self.statements.of(source).heartbeat, &[&self.worker.as_str()]).await?;
        rows.iter().map(|row| Ok(Ours { id: row.try_get(0)?, attempt: row.try_get(1)? })).collect()
    }

    /// Takes items from sessions that are gone, and have been silent for the grace that their workers have to stop: they are pending
    /// again, or set aside after their last attempt. (A task is taken over by who takes it.)
    pub async fn requeue_lost(&self) -> Result<Vec<Requeued>, SessionError> {
        let rows = self.ask(&self.statements.requeue, &[&self.worker.as_str(), &MOST_REQUEUED]).await?;
        let mut requeued = Vec::new();
        for row in &rows {
            let (outcome, detail): (&str, &[u8]) = (row.try_get(1)?, row.try_get(2)?);
            // Whatever else it says, nothing was done: somebody was faster.
            if matches!(outcome, "requeued" | "gave_up") {
                let detail = text::one_line(&String::from_utf8_lossy(detail)).into_owned();
                requeued.push(Requeued { id: row.try_get(0)?, again: outcome == "requeued", detail });
            }
        }
        Ok(requeued)
    }

    /// How long until it is worth another look, for one who has just found nothing to take; zero when it is now, none when
    /// nothing is planned. By the server's clock alone.
    pub async fn next_due(&self, source: Source) -> Result<Option<Duration>, SessionError> {
        seconds(&self.ask(&self.statements.of(source).next_due, &[&self.types.names()]).await?, 0)
    }

    /// The same for both sources at once, in the order of [`Source::ALL`].
    pub async fn glance(&self) -> Result<[Option<Duration>; 2], SessionError> {
        let rows = self.ask(&self.statements.glance, &[&self.types.names()]).await?;
        Ok([seconds(&rows, 0)?, seconds(&rows, 1)?])
    }

    /// As [`Self::next_due`], and tells all other workers of the schema that take the same types that there is nothing to take before that. Where something is due now it
    /// tells them to leave that alone for `pause`; without one it tells them nothing then.
    pub async fn next_due_telling(
        &self,
        source: Source,
        pause: Option<Duration>,
    ) -> Result<Option<Duration>, SessionError> {
        let pause = pause.map(|pause| pause.as_secs_f64());
        let arguments: [&(dyn ToSql + Sync); 4] =
            [&self.schema.as_str(), &pause, &self.types.names(), &self.types.key()];
        seconds(&self.ask(&self.statements.of(source).next_due_telling, &arguments).await?, 0)
    }

    /// Tells all workers of the schema that there may be something to take.
    pub async fn tell_due(&self, source: Source) -> Result<(), SessionError> {
        self.ask(&self.statements.notify, &[&source.channel(), &self.schema.as_str()]).await.map(drop)
    }

    /// Looks who waits for which lock of the server, for the view `lock_contention`: how many do, or none when another session is just
    /// looking.
    pub async fn observe_lock_waits(&self) -> Result<Option<i32>, SessionError> {
        let rows = self.ask(&self.statements.observe, &[]).await?;
        rows.first().map_or(Ok(None), |row| Ok(row.try_get(0)?))
    }

    /// Says which types of work of these sources this session takes, for those who look which tasks nobody takes.
    pub async fn announce(&self, sources: &[Source]) -> Result<(), SessionError> {
        let takes = Source::ALL.map(|source| sources.contains(&source));
        let arguments: [&(dyn ToSql + Sync); 4] =
            [&self.worker.as_str(), &self.types.names(), &takes[0], &takes[1]];
        self.ask(&self.statements.announce, &arguments).await.map(drop)
    }

    /// Removes a few of the rows that are past the retention that the database has set; one row for each log that has one. Nothing while another
    /// session does that.
    pub async fn purge_step(&self) -> Result<Vec<Purged>, SessionError> {
        let rows = self.ask(&self.statements.purge, &[]).await?;
        let mut all = Vec::new();
        for row in &rows {
            if let Ok(log) = row.try_get::<_, &str>(0)?.parse() {
                let (keep, rows, may) = (row.try_get(1)?, row.try_get(2)?, row.try_get(3)?);
                all.push(Purged { log, keep, rows, may });
            }
        }
        Ok(all)
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

    fn read(&self, heard: &Received) -> Option<News> {
        match heard {
            Received::Said(said) => {
                let (schema, own) = (self.schema.as_str(), said.pid == self.pid);
                News::read(&said.channel, &said.payload, schema, &self.types, own)
            }
            // Ours may have been among them.
            Received::More(channel) => News::of_channel(channel),
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
        match tokio::time::timeout(TIMEOUT, self.connection.client.query(statement, arguments)).await {
            Ok(Ok(rows)) => Ok(rows),
            Ok(Err(error)) => Err(match SessionError::from(error) {
                // Somebody upgraded or dropped the schema: the statements are those of the old one.
                SessionError::Refused { sqlstate, message } if CHANGED.contains(&sqlstate.as_str()) => {
                    SessionError::Lost(format!("the schema has changed: {message}"))
                }
                error => error,
            }),
            Err(_) => {
                Err(SessionError::Lost(format!("the server has not answered for {} s", TIMEOUT.as_secs())))
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

fn seconds(rows: &[Row], column: usize) -> Result<Option<Duration>, SessionError> {
    let Some(row) = rows.first() else { return Ok(None) };
    let seconds: Option<f64> = row.try_get(column)?;
    Ok(seconds.map(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX)))
}
