use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_postgres::{Client, SimpleQueryMessage};

use super::{reason, refused};
use crate::DemoError;
use locktop_base::clock;
use pg_connect::connect::connect;
use pg_connect::conninfo::ConnInfo;

pub const SCHEMA: &str = "locktop_demo";

/// Comment that marks the schema as locktop's own, and so safe to remove.
const MARK: &str = "made by locktop demo, which removes it";

const POLL: Duration = Duration::from_millis(4);
const TIMEOUT: Duration = Duration::from_secs(30);

/// A server with the schema in it. Clones share the schema.
#[derive(Debug, Clone)]
pub struct ScratchSchema {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    info: ConnInfo,
    control: Client,
    /// Every session that was opened and is not known to have ended.
    sessions: Arc<Mutex<Vec<Identity>>>,
}

impl ScratchSchema {
    /// Connects, and creates the schema if it does not exist.
    pub async fn open(info: &ConnInfo) -> Result<Self, DemoError> {
        Self::connect(info, Arc::default()).await
    }

    /// The same schema over a new connection, if the old one was lost or belongs to another runtime. It still knows every
    /// session that was opened.
    pub async fn reopen(&self) -> Result<Self, DemoError> {
        Self::connect(&self.inner.info, Arc::clone(&self.inner.sessions)).await
    }

    async fn connect(info: &ConnInfo, sessions: Arc<Mutex<Vec<Identity>>>) -> Result<Self, DemoError> {
        let control = open(&info.clone().with_application_name("locktop demo")).await?;
        let scratch = Self { inner: Arc::new(Inner { info: info.clone(), control, sessions }) };
        scratch.make_schema().await?;
        Ok(scratch)
    }

    async fn make_schema(&self) -> Result<(), DemoError> {
        // The advisory lock keeps two demos from creating it at the same time. Its key is the hash of the schema's name, and it
        // is held for the duration of these statements.
        let make = format!(
            "BEGIN; SELECT pg_advisory_xact_lock(hashtext('{SCHEMA}'), 0);
             DO $$ BEGIN
                 IF to_regnamespace('{SCHEMA}') IS NULL THEN
                     CREATE SCHEMA {SCHEMA};
                     COMMENT ON SCHEMA {SCHEMA} IS '{MARK}';
                 END IF;
             END $$;
             COMMIT; SET search_path TO {SCHEMA}; SET lock_timeout TO '20s'; SET client_min_messages TO warning"
        );
        let outcome = self.inner.control.batch_execute(&make).await;
        outcome.map_err(|error| {
            DemoError::Other(format!(
                "cannot make the schema {SCHEMA}: {}; the demo needs a writable database, and the right to \
                 create schemas in it (GRANT CREATE ON DATABASE)",
                reason(&error)
            ))
        })?;
        let ours = format!("SELECT obj_description(to_regnamespace('{SCHEMA}'), 'pg_namespace') = '{MARK}'");
        if self.ask(&ours, &[]).await? {
            Ok(())
        } else {
            Err(DemoError::Other(format!(
                "the schema {SCHEMA} exists and was not created by locktop: drop or rename it, or run the demo in another database"
            )))
        }
    }

    pub(super) async fn session(&self, name: &str) -> Result<Session, DemoError> {
        self.open_session(self.inner.info.clone().with_application_name(name)).await
    }

    pub(super) async fn session_in(&self, database: &str, name: &str) -> Result<Session, DemoError> {
        self.open_session(self.inner.info.clone().with_dbname(database).with_application_name(name)).await
    }

    pub(super) async fn run(&self, statements: &str) -> Result<(), DemoError> {
        self.inner.control.batch_execute(statements).await.map_err(DemoError::statement(statements))
    }

    /// A query that returns yes or no; NULL is no. The parameter, if any, is an `int[]`.
    pub(super) async fn ask(&self, question: &str, pids: &[i32]) -> Result<bool, DemoError> {
        let row = if question.contains("$1") {
            self.inner.control.query_one(question, &[&pids]).await
        } else {
            self.inner.control.query_one(question, &[]).await
        };
        let answer = row.and_then(|row| row.try_get::<_, Option<bool>>(0));
        Ok(answer.map_err(DemoError::statement(question))?.unwrap_or(false))
    }

    pub(super) async fn numbers(&self, question: &str, pids: &[i32]) -> Result<Vec<i32>, DemoError> {
        let rows = self.inner.control.query(question, &[&pids]).await;
        let answer = rows.and_then(|rows| rows.iter().map(|row| row.try_get(0)).collect());
        answer.map_err(DemoError::statement(question))
    }

    pub(super) async fn texts(&self, question: &str) -> Result<Vec<String>, DemoError> {
        let rows = self.inner.control.query(question, &[]).await;
        let answer = rows.and_then(|rows| rows.iter().map(|row| row.try_get(0)).collect());
        answer.map_err(DemoError::statement(question))
    }

    pub(super) async fn until(
        &self,
        what: &'static str,
        question: &str,
        pids: &[i32],
    ) -> Result<(), DemoError> {
        let start = clock::monotonic();
        while !self.ask(question, pids).await? {
            if start.elapsed() > TIMEOUT {
                return Err(waited(what));
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    /// Waits until each of these sessions is in the wait queue of a lock.
    pub(super) async fn waiting(&self, pids: &[i32]) -> Result<(), DemoError> {
        let question = "SELECT count(DISTINCT pid) = cardinality($1::int[]) FROM pg_locks
                        WHERE NOT granted AND waitstart IS NOT NULL AND pid = ANY ($1::int[])";
        self.until("sessions to wait for a lock", question, pids).await
    }

    async fn open_session(&self, info: ConnInfo) -> Result<Session, DemoError> {
        let (session, identity) = Session::open(info, SCHEMA).await?;
        self.sessions().push(identity);
        Ok(session)
    }

    pub(super) async fn cancel(&self, pid: i32) -> Result<(), DemoError> {
        let identity = self.sessions().iter().find(|identity| identity.pid == pid).cloned();
        let Some(Identity { pid, start }) = identity else { return Ok(()) };
        let cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity
                      WHERE pid = $1 AND backend_start::text = $2";
        let answer = self.inner.control.query(cancel, &[&pid, &start]).await;
        answer.map(|_| ()).map_err(DemoError::statement(cancel))
    }

    /// Terminates these sessions (`None`: all that were opened), and returns once they have ended.
    pub(super) async fn end(&self, pids: Option<&[i32]>) -> Result<(), DemoError> {
        let meant = |identity: &Identity| pids.is_none_or(|pids| pids.contains(&identity.pid));
        let (pids, starts): (Vec<_>, Vec<_>) = self
            .sessions()
            .iter()
            .filter(|identity| meant(identity))
            .map(|identity| (identity.pid, identity.start.clone()))
            .unzip();
        let ours = "FROM pg_stat_activity JOIN unnest($1::int[], $2::text[]) AS own (pid, start)
                    USING (pid) WHERE backend_start::text = own.start";
        let end = format!("SELECT count(pg_terminate_backend(pid)) {ours}");
        let left = format!("SELECT count(*) {ours}");
        let since = clock::monotonic();
        let count = async |question: &str| {
            let row = self.inner.control.query_one(question, &[&pids, &starts]).await;
            row.and_then(|row| row.try_get::<_, i64>(0)).map_err(DemoError::statement(question))
        };
        count(&end).await?;
        while count(&left).await? > 0 {
            if since.elapsed() > TIMEOUT {
                return Err(waited("the demo's sessions to end"));
            }
            tokio::time::sleep(POLL).await;
        }
        self.sessions().retain(|identity| !pids.contains(&identity.pid));
        Ok(())
    }

    /// Terminates all sessions in this schema and drops the schema with everything in it.
    ///
    /// # Errors
    /// If the server is unavailable, or another session holds a lock on something in the schema for 20 seconds.
    pub async fn remove(&self) -> Result<(), DemoError> {
        self.end(None).await?;
        self.run(&format!("DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")).await
    }

    fn sessions(&self) -> MutexGuard<'_, Vec<Identity>> {
        self.inner.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn open(info: &ConnInfo) -> Result<Client, DemoError> {
    Ok(connect(info).await.map_err(DemoError::cannot("open a session for the demo"))?.client)
}

fn waited(what: &str) -> DemoError {
    DemoError::Other(format!("waited 30 s without success for {what}"))
}

/// Identifies a backend: a process id alone may have been reused by the time it is used.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    pub(super) pid: i32,
    /// Its `pg_stat_activity.backend_start`, as text.
    pub(super) start: String,
}

pub(super) type Task = JoinHandle<Result<(), DemoError>>;

/// A real session. It ends when this and its running statements are dropped, or when its [`super::ScratchSchema`]
/// terminates it.
#[derive(Debug, Clone)]
pub(super) struct Session {
    pub(super) pid: i32,
    client: Arc<Client>,
}

impl Session {
    pub(super) async fn open(info: ConnInfo, schema: &str) -> Result<(Self, Identity), DemoError> {
        let client = self::open(&info).await?;
        // In one round trip, since there may be a thousand sessions.
        let hello = format!(
            "SET search_path TO {schema}, public; SET client_min_messages TO error;
             SELECT pid, backend_start::text FROM pg_stat_get_activity(pg_backend_pid())"
        );
        let answer = client.simple_query(&hello).await.map_err(DemoError::statement(&hello))?;
        let row = answer.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => {
                Some((row.try_get(0).ok()??.parse().ok()?, row.try_get(1).ok()??.to_owned()))
            }
            _ => None,
        });
        let (pid, start) = row.ok_or_else(|| refused(&hello, "no row about this session"))?;
        Ok((Self { pid, client: Arc::new(client) }, Identity { pid, start }))
    }

    pub(super) async fn run(&self, statements: &str) -> Result<(), DemoError> {
        self.client.batch_execute(statements).await.map_err(DemoError::statement(statements))
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
