//! An executor on a connection of its own, a record in memory, and sessions to act on.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use locktop::action::{ActionRecord, ActionRequest, Actor, Connections};
use locktop::action::{Executor, ExecutorOrder, ExecutorReply, ExecutorSettings};
use locktop::model::Timestamp;
use locktop::model::finding::Subject;
use locktop::model::plan::{
    self, ActionCommand, ActionReport, ExpectedTime, Outcome, RowTarget, SessionTarget, Target, TargetKind,
    TargetResult, Verb,
};
use locktop::model::table_rows::{Item, Lease, Schedule};
use locktop::model::view::TargetId;
use locktop::pg::connect::Connection;
use locktop::pg::conninfo::ConnInfo;
use locktop::pg::trust::TrustedOwners;
use tokio_postgres::{Client, Row};

pub(crate) use super::support::pid;
use super::support::{open, wait_until};

/// One connection, and no other.
pub(crate) struct Line {
    pub(crate) client: Arc<Client>,
    pub(crate) pids: Vec<i32>,
}

impl Connections for Line {
    async fn client(&self) -> Result<Arc<Client>, String> {
        Ok(Arc::clone(&self.client))
    }

    fn pids(&self) -> Vec<i32> {
        self.pids.clone()
    }
}

/// The record, one line per entry: `asked 4312: …`, `result 4312: done`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Notes {
    pub(crate) lines: Arc<Mutex<Vec<String>>>,
    /// Why nothing can be written.
    pub(crate) broken: Option<String>,
}

impl ActionRecord for Notes {
    type Entry = ();

    async fn asked(&self, _: Option<&Client>, asked: &ActionRequest<'_>) -> Result<(), String> {
        if let Some(why) = &self.broken {
            return Err(why.clone());
        }
        self.lines.lock().unwrap().push(format!("asked {}: {}", asked.target.name, asked.statement));
        Ok(())
    }

    async fn write_result(
        &self,
        _: Option<&Client>,
        _: &ActionRequest<'_>,
        _: Option<()>,
        result: &TargetResult,
    ) -> Result<(), String> {
        self.lines.lock().unwrap().push(format!("result {}: {}", result.name, result.outcome.as_str()));
        Ok(())
    }
}

impl Notes {
    pub(crate) fn all(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }
}

pub(crate) fn settings() -> ExecutorSettings {
    ExecutorSettings {
        server: TargetId::default(),
        actor: Actor { tool: "test".to_owned(), role: "postgres".to_owned(), os_user: None },
        offset: chrono::FixedOffset::east_opt(0).unwrap(),
        redis: Vec::new(),
        trusted_owners: TrustedOwners::default(),
    }
}

/// An executor, and its record.
pub(crate) struct Hands {
    pub(crate) executor: Executor,
    pub(crate) notes: Notes,
    /// The number of progress reports on the newest command.
    pub(crate) progress: usize,
}

impl Hands {
    pub(crate) async fn of(info: &ConnInfo) -> Self {
        let client = Arc::new(open(info).await.client);
        let pids = vec![pid(&client).await];
        Self::with(Line { client, pids }, Notes::default())
    }

    pub(crate) fn with(lines: impl Connections, notes: Notes) -> Self {
        Self { executor: Executor::start(lines, notes.clone(), settings()), notes, progress: 0 }
    }

    pub(crate) async fn act(&mut self, command: ActionCommand) -> ActionReport {
        assert_eq!(self.executor.order(ExecutorOrder::Act(Arc::new(command))), None);
        let mut counts = Vec::new();
        loop {
            match self.executor.answer().await.unwrap() {
                ExecutorReply::Progress(1, done) => counts.push(done),
                ExecutorReply::Reported(report) => {
                    // Each target is counted once; counts that were not received in time may be missing.
                    assert!(counts.is_sorted_by(|one, next| one < next), "{counts:?}");
                    assert!(
                        counts.iter().all(|done| (1..=report.results.len()).contains(done)),
                        "{counts:?}"
                    );
                    self.progress = counts.len();
                    return Arc::unwrap_or_clone(report);
                }
                answer => panic!("{answer:?}"),
            }
        }
    }

    /// The result of one target.
    pub(crate) async fn one(&mut self, verb: Verb, target: TargetKind) -> (Outcome, String) {
        let report = self.act(command(verb, vec![target])).await;
        assert_eq!(report.notes, Vec::<String>::new());
        let [result] = report.results.try_into().unwrap();
        (result.outcome, result.detail)
    }
}

pub(crate) fn command(verb: Verb, targets: Vec<TargetKind>) -> ActionCommand {
    let name = |what: &TargetKind| match what {
        TargetKind::Session(session) => session.pid.to_string(),
        other => format!("{other:?}").split(['(', '{']).next().unwrap().trim().to_owned(),
    };
    let targets = targets
        .into_iter()
        .map(|what| Target { name: name(&what), what, subject: Subject::Server })
        .collect();
    ActionCommand { server: TargetId::default(), number: 1, verb, targets, wait: Duration::from_secs(20) }
}

/// The row with other values than it was seen with.
pub(crate) fn with<R: Clone>(seen: &RowTarget<R>, change: impl FnOnce(&mut R)) -> RowTarget<R> {
    let mut other = seen.clone();
    change(&mut other.row);
    other
}

/// A session that a test acts on.
pub(crate) struct Session {
    pub(crate) connection: Connection,
    pub(crate) pid: i32,
}

impl Session {
    pub(crate) async fn open(info: &ConnInfo) -> Self {
        let connection = open(info).await;
        let pid = pid(&connection.client).await;
        Self { connection, pid }
    }

    pub(crate) async fn run(&self, sql: &str) {
        self.connection.client.batch_execute(sql).await.unwrap();
    }

    /// Starts a statement that takes a while, and returns once the server runs it.
    pub(crate) async fn begin(self, sql: &str, observer: &Client, state: &str) -> Running {
        let Self { connection, pid } = self;
        let sql = sql.to_owned();
        let task = tokio::spawn(async move {
            let result = connection.client.batch_execute(&sql).await;
            (connection, result)
        });
        wait_until("the statement to run", async || {
            let sql = "SELECT state, wait_event_type FROM pg_stat_activity WHERE pid = $1";
            observer.query_opt(sql, &[&pid]).await.unwrap().is_some_and(|row| {
                row.get::<_, Option<String>>(0).as_deref() == Some("active")
                    && row.get::<_, Option<String>>(1).as_deref() == Some(state)
            })
        })
        .await;
        Running { task, pid }
    }
}

/// A running statement.
pub(crate) struct Running {
    pub(crate) task: tokio::task::JoinHandle<(Connection, Result<(), tokio_postgres::Error>)>,
    pub(crate) pid: i32,
}

impl Running {
    /// The SQLSTATE that it failed with; `None` if it succeeded.
    pub(crate) async fn end(self) -> Option<String> {
        let (_, result) = self.task.await.unwrap();
        result
            .err()
            .map(|error| error.code().map_or_else(|| error.to_string(), |code| code.code().to_owned()))
    }
}

/// A session as it is now, with the values that are compared before it is terminated.
pub(crate) async fn seen(observer: &Client, pid: i32) -> SessionTarget {
    // A session answers a moment before the server shows it as idle.
    wait_until("the session to be idle", async || {
        let sql = "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1 AND state = 'active'
                                         AND (xact_start IS NULL OR query = 'SELECT pg_backend_pid()')
                                         AND backend_type = 'client backend')";
        observer.query_one(sql, &[&pid]).await.unwrap().get(0)
    })
    .await;
    let sql = "SELECT backend_start, xact_start, query_start, state_change, application_name, usesysid,
                      coalesce(host(client_addr), CASE client_port WHEN -1 THEN '[local]' END), client_port
                 FROM pg_stat_activity WHERE pid = $1";
    let row = observer.query_one(sql, &[&pid]).await.unwrap();
    let text = |at: usize| row.get::<_, Option<&str>>(at).map(Into::into);
    let xact_start: Option<Timestamp> = row.get(1);
    let of_idle = |time| if xact_start.is_none() { ExpectedTime::Same(time) } else { ExpectedTime::Any };
    SessionTarget {
        pid,
        backend_start: row.get(0),
        client: plan::Client {
            application: text(4),
            usesysid: row.get(5),
            address: text(6),
            port: row.get(7),
        },
        xact_start: ExpectedTime::Same(xact_start),
        query_start: of_idle(row.get(2)),
        state_change: of_idle(row.get(3)),
        holds: None,
        keeps: false,
        blocks: false,
    }
}

/// The same, whatever the session does meanwhile.
pub(crate) async fn seen_in_any_state(observer: &Client, pid: i32) -> SessionTarget {
    SessionTarget {
        xact_start: ExpectedTime::Any,
        query_start: ExpectedTime::Any,
        state_change: ExpectedTime::Any,
        ..seen(observer, pid).await
    }
}

pub(crate) async fn is_connected(observer: &Client, pid: i32) -> bool {
    let sql = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)";
    observer.query_one(sql, &[&pid]).await.unwrap().get(0)
}

/// A row of `id`, `owner`, the last renewal, the term and the token.
pub(crate) fn lease(row: &Row) -> Lease {
    Lease {
        id: row.get::<_, String>(0).into(),
        owner: Some(row.get::<_, String>(1).into()),
        renewed_at: row.get(2),
        term: row.get(3),
        token: row.get(4),
        ..Lease::default()
    }
}

/// A row of `id`, `task_name`, `is_enabled` and `next_run_at`.
pub(crate) fn task(row: &Row) -> Schedule {
    Schedule {
        id: row.get(0),
        name: row.get::<_, Option<String>>(1).map(Into::into),
        enabled: row.get(2),
        next_run_at: row.get(3),
        ..Schedule::default()
    }
}

/// A row of `id`, `status`, `worker_id` and the attempt.
pub(crate) fn item(row: &Row) -> Item {
    Item {
        id: row.get(0),
        status: row.get::<_, Option<String>>(1).map(Into::into),
        worker: row.get::<_, Option<String>>(2).map(Into::into),
        attempt: row.get(3),
        ..Item::default()
    }
}
