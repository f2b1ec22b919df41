use std::time::Duration;

use tokio::sync::watch;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement};

use super::error::{OpenError, SessionError};
use super::job::{Finish, Job, Ours, Purged, Requeued};
use super::open::open;
use super::source::{News, Source, Statements, Types};
use super::worker_id::{WorkerId, take_name};
use crate::schema::{Schema, SchemaName};
use locktop_base::text;
use pg_connect::connect::{Listening, Received};
use pg_connect::conninfo::ConnInfo;

/// A server that does not answer within this time is considered lost. Its own statement timeout is shorter.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Number of lost items that are taken back at a time.
const MOST_REQUEUED: i32 = 100;

/// SQLSTATEs for a missing function, a missing schema, and a prepared statement whose result type has changed.
const CHANGED: [&str; 3] = ["42883", "3F000", "0A000"];

/// The session of one worker. Dropping it ends the session and releases all its locks.
#[derive(Debug)]
pub struct WorkSession {
    connection: Listening,
    statements: Statements,
    worker: WorkerId,
    schema: SchemaName,
    types: Types,
    pid: i32,
}

impl WorkSession {
    /// Opens a dedicated session, checks that locks are safe in it, and listens for notifications about these sources.
    ///
    /// # Errors
    /// If there is no connection, or only one through a pooler in transaction mode; if the schema is missing or has another
    /// version; if the role may not use it, or an untrusted role owns something in it.
    pub async fn open(
        info: &ConnInfo,
        schema: impl Into<Schema>,
        worker: &WorkerId,
        sources: &[Source],
    ) -> Result<Self, OpenError> {
        let schema = schema.into();
        let (connection, statements) = open(info, &schema, sources).await?;
        let row = connection.client.query_one("SELECT pg_catalog.pg_backend_pid()", &[]).await?;
        let (worker, types, pid) = (worker.clone(), Types::all(), row.try_get(0)?);
        Ok(Self { connection, statements, worker, schema: schema.name, types, pid })
    }

    /// From now on takes only work of these types.
    #[must_use]
    pub fn with_types(mut self, types: Types) -> Self {
        self.types = types;
        self
    }

    /// Makes this session the only one on the schema with the worker's name, until it ends.
    ///
    /// # Errors
    /// If another session has the name, with what is known of it; if the server refuses or the session is lost.
    pub async fn take_name(&self) -> Result<(), OpenError> {
        take_name(&self.connection.client, &self.schema, &self.worker).await
    }

    /// The process ID of the server process.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Why the session has ended, as soon as it has. From then on other sessions may take its work.
    #[must_use]
    pub fn ended(&self) -> watch::Receiver<Option<String>> {
        self.connection.ended.clone()
    }

    /// Takes up to `max` due tasks, highest priority first, or pending items, oldest first. When this returns, they are
    /// committed and belong to this session.
    ///
    /// # Errors
    /// If the session is lost. If the server refuses: then no work was taken, but the session may hold advisory locks that
    /// block other workers from their tasks, until [`Self::release_idle_keys`] is called.
    pub async fn fetch(&self, source: Source, max: usize) -> Result<Vec<Job>, SessionError> {
        let max = i32::try_from(max).unwrap_or(i32::MAX);
        let arguments: [&(dyn ToSql + Sync); 3] = [&self.worker.as_str(), &max, &self.types.names()];
        let rows = self.ask(&self.statements.of(source).fetch, &arguments).await?;
        rows.iter().map(|row| Job::read(source, row)).collect()
    }

    /// Ends a job, plans its next run and releases the lock, all at once. False if the job no longer belonged to this
    /// session: then nothing was changed, and another session records its end.
    ///
    /// # Errors
    /// If the server refuses: the job still belongs to this session. If the session is lost: it is not known whether the
    /// finish counted.
    pub async fn finish(&self, job: &Job, finish: Finish) -> Result<bool, SessionError> {
        let error = finish.error();
        match self.end(job, &finish, error.as_deref()).await {
            // 22P05: the database encoding lacks a character of the error.
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

    /// Returns a job undone: it is due or pending as before, and the attempt does not count. False if it no longer belonged
    /// to this session.
    pub async fn give_back(&self, job: &Job) -> Result<bool, SessionError> {
        let arguments: [&(dyn ToSql + Sync); 3] = [&job.task_id, &self.worker.as_str(), &job.attempt];
        first(&self.ask(&self.statements.of(job.source).give_back, &arguments).await?)
    }

    /// Releases advisory locks of tasks that this session has no execution of: those left by a refused fetch, and those of
    /// executions that another session closed. Keeps the locks of the tasks in `working`. Returns the number of released
    /// locks.
    ///
    /// # Errors
    /// If the server refuses, or if the session is lost, which releases them too.
    pub async fn release_idle_keys(&self, working: &[i32]) -> Result<i32, SessionError> {
        let rows = self.ask(&self.statements.release_idle, &[&working]).await?;
        rows.first().map_or(Ok(0), |row| Ok(row.try_get(0)?))
    }

    /// Sends a heartbeat for all jobs of that source in this session. Returns those that still belong to it; all others
    /// have to stop.
    ///
    /// # Errors
    /// If the server refuses or the session is lost: then nothing is confirmed.
    pub async fn heartbeat(&self, source: Source) -> Result<Vec<Ours>, SessionError> {
        let rows = self.ask(&self.statements.of(source).heartbeat, &[&self.worker.as_str()]).await?;
        rows.iter().map(|row| Ok(Ours { id: row.try_get(0)?, attempt: row.try_get(1)? })).collect()
    }

    /// Takes items from sessions that have ended and have been silent for the grace period of their workers. The items
    /// become pending again, or are set aside after their last attempt. (A lost task is taken over by the worker that takes
    /// it.)
    pub async fn requeue_lost(&self) -> Result<Vec<Requeued>, SessionError> {
        let rows = self.ask(&self.statements.requeue, &[&self.worker.as_str(), &MOST_REQUEUED]).await?;
        let mut requeued = Vec::new();
        for row in &rows {
            let (outcome, detail): (&str, &[u8]) = (row.try_get(1)?, row.try_get(2)?);
            // Any other result means that nothing was done: another session was faster.
            if matches!(outcome, "requeued" | "gave_up") {
                let detail = text::one_line(&String::from_utf8_lossy(detail)).into_owned();
                requeued.push(Requeued { id: row.try_get(0)?, again: outcome == "requeued", detail });
            }
        }
        Ok(requeued)
    }

    /// Time until the next useful poll, after a poll that found nothing: zero for now, `None` if nothing is planned. Uses
    /// only the server's clock.
    pub async fn next_due(&self, source: Source) -> Result<Option<Duration>, SessionError> {
        seconds(&self.ask(&self.statements.of(source).next_due, &[&self.types.names()]).await?, 0)
    }

    /// The same for both sources, in the order of [`Source::ALL`].
    pub async fn glance(&self) -> Result<[Option<Duration>; 2], SessionError> {
        let rows = self.ask(&self.statements.glance, &[&self.types.names()]).await?;
        Ok([seconds(&rows, 0)?, seconds(&rows, 1)?])
    }

    /// Like [`Self::next_due`], and notifies all other workers of the schema that take the same types that there is nothing
    /// to take before that. If something is due now, it tells them to leave that alone for `pause`; without `pause` it
    /// sends nothing in that case.
    pub async fn next_due_notifying(
        &self,
        source: Source,
        pause: Option<Duration>,
    ) -> Result<Option<Duration>, SessionError> {
        let pause = pause.map(|pause| pause.as_secs_f64());
        let arguments: [&(dyn ToSql + Sync); 4] =
            [&self.schema.as_str(), &pause, &self.types.names(), &self.types.key()];
        seconds(&self.ask(&self.statements.of(source).next_due_notifying, &arguments).await?, 0)
    }

    /// Notifies all workers of the schema that there may be work to take.
    pub async fn notify_due(&self, source: Source) -> Result<(), SessionError> {
        self.ask(&self.statements.notify, &[&source.channel(), &self.schema.as_str()]).await.map(drop)
    }

    /// Records which sessions wait for which lock of the server, for the view `lock_contention`. Returns the number of
    /// waiting sessions, or `None` if another session is doing this.
    pub async fn observe_lock_waits(&self) -> Result<Option<i32>, SessionError> {
        let rows = self.ask(&self.statements.observe, &[]).await?;
        rows.first().map_or(Ok(None), |row| Ok(row.try_get(0)?))
    }

    /// Records which types of work from these sources this session takes, to show tasks that no worker takes.
    pub async fn announce(&self, sources: &[Source]) -> Result<(), SessionError> {
        let takes = Source::ALL.map(|source| sources.contains(&source));
        let arguments: [&(dyn ToSql + Sync); 4] =
            [&self.worker.as_str(), &self.types.names(), &takes[0], &takes[1]];
        self.ask(&self.statements.announce, &arguments).await.map(drop)
    }

    /// Removes a few rows past the retention that the database has set. Returns one row for each log that has one, or
    /// nothing while another session does this.
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

    /// The next notification. Those that arrive during a statement come before its answer. Never returns once the session
    /// has ended.
    pub async fn news(&mut self) -> News {
        while let Some(heard) = self.connection.notifications.recv().await {
            if let Some(news) = self.read(&heard) {
                return news;
            }
        }
        std::future::pending().await
    }

    /// Notifications that have arrived and were not read.
    pub fn news_so_far(&mut self) -> Vec<News> {
        let mut all = Vec::new();
        while let Some(heard) = self.connection.notifications.try_recv() {
            all.extend(self.read(&heard));
        }
        all
    }

    fn read(&self, heard: &Received) -> Option<News> {
        match heard {
            Received::Notified(said) => {
                let (schema, own) = (self.schema.as_str(), said.pid == self.pid);
                News::read(&said.channel, &said.payload, schema, &self.types, own)
            }
            // This session's own may be among them.
            Received::More(channel) => News::of_channel(channel),
        }
    }

    /// Closes the session, and returns when the server has received that, or after `limit`.
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
                // The schema was upgraded or dropped: the prepared statements are those of the old one.
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
