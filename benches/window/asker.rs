//! Reads the session's row, and requests an action on it.

use std::sync::Arc;
use std::time::Duration;

use locktop::action::{ActionRecord, ActionRequest, Actor, Connections};
use locktop::action::{Executor, ExecutorOrder, ExecutorReply, ExecutorSettings};
use locktop::clock;
use locktop::model::Timestamp;
use locktop::model::finding::Subject;
use locktop::model::lock::LockMode;
use locktop::model::plan::{
    self, ActionCommand, ExpectedTime, Outcome, SessionTarget, Target, TargetKind, TargetResult, Verb,
};
use locktop::model::task::TaskKey;
use locktop::model::view::TargetId;
use locktop::pg::connect::{Connection, connect};
use locktop::pg::conninfo::ConnInfo;
use locktop::pg::trust::TrustedOwners;
use tokio_postgres::{Client, Statement};

use crate::victim::{Hit, KEY, Kind, Victim};

/// Longest time from a signal to its effect in the session.
const TIMEOUT: Duration = Duration::from_secs(20);
const READ_SESSION: &str =
    "SELECT backend_start, xact_start, query_start, state_change, application_name, usesysid, client_port, state, query
       FROM pg_catalog.pg_stat_get_activity($1)";

/// The results of all requests.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) asked: usize,
    pub(crate) sent: usize,
    /// Hit in the situation that was read.
    pub(crate) seen: usize,
    /// Hit in the statement that ends it.
    pub(crate) end: usize,
    /// Hit after it was over.
    pub(crate) later: usize,
    /// Not hit: the query had ended, and a cancel request has no effect on an idle session.
    pub(crate) missed: usize,
    pub(crate) seconds: f64,
}

struct Line(Arc<Client>);

impl Connections for Line {
    async fn client(&self) -> Result<Arc<Client>, String> {
        Ok(Arc::clone(&self.0))
    }

    fn pids(&self) -> Vec<i32> {
        Vec::new()
    }
}

struct NoRecord;

impl ActionRecord for NoRecord {
    type Entry = ();

    async fn asked(&self, _: Option<&Client>, _: &ActionRequest<'_>) -> Result<(), String> {
        Ok(())
    }

    async fn write_result(
        &self,
        _: Option<&Client>,
        _: &ActionRequest<'_>,
        _: Option<()>,
        _: &TargetResult,
    ) -> Result<(), String> {
        Ok(())
    }
}

pub(crate) struct Asker {
    verb: Verb,
    kind: Kind,
    blocks: bool,
    reader: Connection,
    statement: Statement,
    datid: u32,
    executor: Executor,
}

impl Asker {
    pub(crate) async fn of(info: &ConnInfo, verb: Verb, kind: Kind, blocks: bool) -> Self {
        let reader = connect(info).await.unwrap();
        let statement = reader.client.prepare(READ_SESSION).await.unwrap();
        let own = "SELECT oid FROM pg_database WHERE datname = current_database()";
        let datid = reader.client.query_one(own, &[]).await.unwrap().get(0);
        let settings = ExecutorSettings {
            server: TargetId::default(),
            actor: Actor { tool: "bench".to_owned(), role: "postgres".to_owned(), os_user: None },
            offset: chrono::FixedOffset::east_opt(0).unwrap(),
            redis: Vec::new(),
            trusted_owners: TrustedOwners::default(),
        };
        let line = Line(Arc::new(connect(info).await.unwrap().client));
        let executor = Executor::start(line, NoRecord, settings);
        Self { verb, kind, blocks, reader, statement, datid, executor }
    }

    /// The current situation of the session, and its number; `None` between two situations.
    async fn seen(&self, pid: i32) -> Option<(SessionTarget, u64)> {
        let row = self.reader.client.query_opt(&self.statement, &[&pid]).await.unwrap()?;
        let (state, query): (Option<&str>, Option<&str>) = (row.get(7), row.get(8));
        let number = query?.split_once("/* ")?.1.split_once(" */")?.0.parse().ok()?;
        let expected = match self.kind {
            Kind::Query => "active",
            Kind::Transaction => "idle in transaction",
            Kind::Key => "idle",
        };
        let (is_key, is_query) = (self.kind == Kind::Key, self.verb == Verb::Cancel);
        let if_compared =
            |is: bool, time: Option<Timestamp>| if is { ExpectedTime::Same(time) } else { ExpectedTime::Any };
        let key = (TaskKey::Raw(KEY).tag(self.datid), LockMode::Exclusive);
        let target = SessionTarget {
            pid,
            backend_start: row.get::<_, Option<Timestamp>>(0)?,
            client: plan::Client {
                application: row.get::<_, Option<&str>>(4).map(Into::into),
                usesysid: row.get(5),
                address: Some("[local]".into()),
                port: row.get(6),
            },
            xact_start: ExpectedTime::Same(row.get(1)),
            query_start: if_compared(is_key || is_query, row.get(2)),
            state_change: if_compared(is_key, row.get(3)),
            holds: is_key.then_some(key),
            keeps: false,
            blocks: self.blocks,
        };
        (state? == expected).then_some((target, number))
    }

    async fn act(&mut self, target: SessionTarget) -> Outcome {
        let target =
            Target { name: String::new(), what: TargetKind::Session(target), subject: Subject::Server };
        // The session itself records in which situation it was hit.
        let command = ActionCommand {
            server: TargetId::default(),
            number: 1,
            verb: self.verb,
            targets: vec![target],
            wait: Duration::ZERO,
        };
        assert_eq!(self.executor.order(ExecutorOrder::Act(Arc::new(command))), None);
        loop {
            if let ExecutorReply::Reported(report) = self.executor.answer().await.unwrap() {
                return report.results[0].outcome;
            }
        }
    }

    pub(crate) async fn ask(&mut self, victim: &Victim, asks: usize) -> Tally {
        let mut tally = Tally::default();
        while tally.asked < asks {
            let Some((target, number)) = self.seen(victim.pid()).await else {
                tokio::task::yield_now().await;
                continue;
            };
            let start = clock::monotonic();
            let outcome = self.act(target).await;
            tally.asked += 1;
            tally.seconds += start.elapsed().as_secs_f64();
            match outcome {
                Outcome::Done | Outcome::StillThere => {
                    tally.sent += 1;
                    self.count(&mut tally, victim, number).await;
                }
                Outcome::Changed | Outcome::Refused => {}
                other => panic!("{other:?}"),
            }
            // On average, a situation lasts as long as a request takes.
            let mean = tally.seconds / tally.asked as f64;
            victim.dwell(Duration::from_secs_f64(2.0 * mean));
        }
        tally
    }

    async fn count(&self, tally: &mut Tally, victim: &Victim, number: u64) {
        let (start, now) = (clock::monotonic(), victim.number());
        loop {
            let hits = victim.hits();
            if let Some(hit) = hits.first() {
                assert_eq!(hits.len(), 1, "{hits:?}");
                match *hit {
                    Hit::In(at) if at == number => tally.seen += 1,
                    Hit::AtEnd(at) if at == number => tally.end += 1,
                    Hit::In(_) | Hit::AtEnd(_) | Hit::After(_) => tally.later += 1,
                }
                return;
            }
            if self.verb == Verb::Cancel && victim.number() > now + 2 {
                tally.missed += 1;
                return;
            }
            assert!(
                start.elapsed() < TIMEOUT,
                "situation {number} was signalled, and the session was not hit"
            );
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
    }
}
