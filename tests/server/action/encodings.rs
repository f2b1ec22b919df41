//! Rows whose text is stored in another encoding than UTF-8, or is not valid text: they are shown and acted
//! on like all others.

use std::sync::Arc;

use locktop::model::plan::{Outcome, RecoveryOutcome, Request, RowTarget, Selection, TargetKind, Verb};
use locktop::model::snapshot::Snapshot;
use locktop::model::table_rows::{Item, Lease, Schedule};
use locktop::pg::conninfo::ConnInfo;
use locktop::pg::poll::{PollConnection, PollLimits, open_plain};
use locktop::schema::{self, SchemaName};
use locktop_tasks::recovery as recover;
use tokio_postgres::Client;

use super::stage::{Hands, Line, Notes, pid, with};
use super::support::{self, conninfo, open, wait_until};

/// An encoding, a name in its bytes, and its text.
const NAMES: [(&str, &[u8], &str); 6] = [
    ("UTF8", "caf\u{e9} \u{65e5}\u{fffd}".as_bytes(), "caf\u{e9} \u{65e5}\u{fffd}"),
    ("LATIN1", b"caf\xe9 \x85\xff's", "caf\u{e9} \u{85}\u{ff}'s"),
    ("EUC_JP", b"\xc6\xfc\xcb\xdc\xa1\xc1\x8f\xa2\xc3", "\u{65e5}\u{672c}\u{ff5e}\u{ffe4}"),
    // A letter that is valid in this encoding only for PostgreSQL.
    ("EUC_JP", b"a\x8f\xf4\xa1\xc6\xfc", "a\u{fffd}\u{65e5}"),
    ("SQL_ASCII", "caf\u{e9}".as_bytes(), "caf\u{e9}"),
    ("SQL_ASCII", b"a\xff\xfeb \xe9", "a\u{fffd}\u{fffd}b \u{fffd}"),
];

struct Place {
    info: ConnInfo,
    admin: Client,
    /// The name as an expression.
    name: String,
    hex: String,
}

impl Place {
    /// A database with the schema, no grace, and a task, an execution, a lease and an item of that name.
    async fn new(version: u32, number: usize, prefix: &str) -> Self {
        let (encoding, bytes, _) = NAMES[number];
        let server = support::server_of(version).await;
        let database = format!("{prefix}_{number}");
        let make = format!(
            "CREATE DATABASE {database} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0;
             ALTER DATABASE {database} SET locktop.orphan_grace = '0'"
        );
        let first = open(&conninfo(server)).await.client;
        for statement in make.split(';') {
            first.batch_execute(statement).await.unwrap();
        }
        let info = conninfo(server).with_dbname(&database);
        schema::install(&mut open(&info).await.client, &SchemaName::default()).await.unwrap();
        let hex = bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
        let name = format!("convert_from(decode('{hex}', 'hex'), getdatabaseencoding())");
        let admin = open(&info).await.client;
        admin.batch_execute("SET search_path = locktop").await.unwrap();
        let place = Self { info, admin, name, hex };
        place.fill().await;
        place
    }

    async fn fill(&self) {
        let worker = open(&self.info).await.client;
        let of_worker = pid(&worker).await;
        let name = &self.name;
        let rows = format!(
            "SET search_path = locktop; SET client_min_messages = error;
             INSERT INTO scheduled_tasks (task_name, task_type, next_run_at) VALUES ('other', 'x', now());
             INSERT INTO scheduled_tasks (task_name, task_type, next_run_at) VALUES ({name}, 'x', now() + interval '1 day');
             SELECT FROM lease_acquire(7, {name}, '1 hour');
             INSERT INTO task_queue (task_name) VALUES ({name});
             SELECT FROM claim_queue_items({name}, 1);
             SELECT FROM try_acquire_task_lock(1, {name});
             UPDATE task_execution_log SET started_at = now() - interval '1 hour'"
        );
        worker.batch_execute(&rows).await.unwrap();
        drop(worker);
        wait_until("the worker's session to end", async || {
            !super::stage::is_connected(&self.admin, of_worker).await
        })
        .await;
    }

    async fn oid(&self, table: &str) -> u32 {
        let sql = format!("SELECT 'locktop.{table}'::regclass::oid");
        self.admin.query_one(&sql, &[]).await.unwrap().get(0)
    }

    async fn task(&self, snapshot: &Snapshot, name: &str) -> RowTarget<Schedule> {
        let tasks = &snapshot.task_sets[0].tasks;
        assert_eq!(tasks.error, None);
        let row = tasks.last_rows().iter().find(|row| row.name.as_deref() == Some(name)).unwrap();
        RowTarget {
            table: self.oid("scheduled_tasks").await,
            source: "locktop.scheduled_tasks".into(),
            is_own: true,
            row: row.clone(),
        }
    }

    async fn lease(&self, snapshot: &Snapshot) -> RowTarget<Lease> {
        let row: &Lease = &snapshot.sources.leases[0].section.last_rows()[0];
        RowTarget {
            table: self.oid("distlock").await,
            source: "locktop.distlock".into(),
            is_own: true,
            row: row.clone(),
        }
    }

    async fn item(&self, snapshot: &Snapshot) -> RowTarget<Item> {
        let row: &Item = &snapshot.sources.items[0].section.last_rows()[0];
        RowTarget {
            table: self.oid("task_queue").await,
            source: "locktop.task_queue".into(),
            is_own: true,
            row: row.clone(),
        }
    }

    /// How often the name is in a column of the record, in the bytes in which it is stored.
    async fn noted(&self, column: &str) -> i64 {
        let sql = format!(
            "SELECT count(*) FROM locktop_audit
              WHERE strpos(encode(convert_to({column}, getdatabaseencoding()), 'hex'), '{}') > 0",
            self.hex
        );
        self.admin.query_one(&sql, &[]).await.unwrap().get(0)
    }
}

async fn hands(client: Arc<Client>) -> Hands {
    let pids = vec![pid(&client).await];
    Hands::with(Line { client, pids }, Notes::default())
}

/// Requested on each kind of connection: of the poll, of the executor, and of a command.
#[tokio::test]
async fn a_row_in_any_bytes_is_shown_and_done_to() {
    let version = support::oldest();
    for (number, (encoding, _, shown)) in NAMES.into_iter().enumerate() {
        let place = Place::new(version, number, "stored").await;
        let mut session = PollConnection::open(&place.info, PollLimits::default()).await.unwrap();
        let snapshot = session.poll(None).await.unwrap();
        let own = Arc::new(open_plain(&place.info, &PollLimits::default()).await.unwrap().client);
        let command = Arc::new(open(&place.info).await.client);

        let mut hands_of = [hands(session.client().unwrap()).await, hands(own).await, hands(command).await];
        for (hands, verb) in hands_of.iter_mut().zip([Verb::Disable, Verb::Enable, Verb::MakeDue]) {
            let snapshot = session.poll(None).await.unwrap();
            let seen = place.task(&snapshot, shown).await;
            for other in ["caf\u{e8}", "\u{1f512}", "a\u{fffd}c"] {
                let other = with(&seen, |row| row.name = Some(other.into()));
                let (outcome, detail) = hands.one(verb, TargetKind::Task(other)).await;
                assert_eq!(
                    (outcome, detail.as_str()),
                    (Outcome::Changed, "since it was seen, its name has changed")
                );
            }
            let (outcome, detail) = hands.one(verb, TargetKind::Task(seen)).await;
            assert_eq!(outcome, Outcome::Done, "{encoding} {verb:?}: {detail}");
        }
        assert_eq!(place.noted("detail").await, 3, "{encoding}");

        let [of_poll, of_own, of_command] = &mut hands_of;
        let seen = place.lease(&snapshot).await;
        assert_eq!(seen.owner.as_deref(), Some(shown));
        let other = with(&seen, |row| row.owner = Some(format!("{shown}\u{e9}").into()));
        let (outcome, detail) = of_poll.one(Verb::Unlock, TargetKind::Lease(other)).await;
        assert_eq!(
            (outcome, detail.as_str()),
            (Outcome::Changed, "since it was seen, its owner has changed")
        );
        let (outcome, detail) = of_poll.one(Verb::Unlock, TargetKind::Lease(seen)).await;
        assert_eq!(outcome, Outcome::Done, "{encoding}: {detail}");
        assert_eq!(place.noted("worker_id").await, 1, "{encoding}");

        let seen = place.item(&snapshot).await;
        assert_eq!(seen.worker.as_deref(), Some(shown));
        let (outcome, detail) = of_own.one(Verb::Requeue, TargetKind::Item(seen)).await;
        assert_eq!(outcome, Outcome::Done, "{encoding}: {detail}");
        let snapshot = session.poll(None).await.unwrap();
        let pending = place.item(&snapshot).await;
        let (outcome, detail) = of_command.one(Verb::SetAside, TargetKind::Item(pending)).await;
        assert_eq!(outcome, Outcome::Done, "{encoding}: {detail}");
    }
}

/// The error of a refused statement is readable if its encoding permits it, and otherwise does not end the
/// connection.
#[tokio::test]
async fn an_error_in_any_bytes_is_an_error() {
    let version = support::oldest();
    for (number, (encoding, ..)) in NAMES.into_iter().enumerate() {
        let place = Place::new(version, number, "refused").await;
        let own = open_plain(&place.info, &PollLimits::default()).await.unwrap().client;
        let session = PollConnection::open(&place.info, PollLimits::default()).await.unwrap();
        let poll = session.client().unwrap();
        let raise = format!("DO $$BEGIN EXECUTE format('SELECT FROM %I', {}); END$$", place.name);
        for (client, is_own) in [(&own, true), (&*poll, false)] {
            let error = client.batch_execute(&raise).await.unwrap_err();
            let error = error.as_db_error().unwrap();
            assert_eq!(error.code().code(), "42P01", "{encoding}: {error}");
            if is_own && ["LATIN1", "UTF8"].contains(&encoding) {
                assert!(error.message().contains("caf\u{e9}"), "{encoding}: {error}");
            }
            client.batch_execute("SELECT 1").await.unwrap();
        }
    }
}

/// A worker whose name is not valid text prevents nothing, and its execution is recovered like any other.
#[tokio::test]
async fn an_execution_of_any_worker_is_recovered() {
    let version = support::oldest();
    for (number, (encoding, _, shown)) in NAMES.into_iter().enumerate() {
        let place = Place::new(version, number, "recovered").await;
        let schema = SchemaName::default();
        let request = Request { select: Selection::Orphans, task: None, terminate: false };
        let own = open_plain(&place.info, &PollLimits::default()).await.unwrap().client;
        let command = open(&place.info).await.client;
        for client in [&own, &command] {
            let plan = recover::plan(client, &schema, &request).await.unwrap();
            assert_eq!(plan.rows[0].seen.worker_id, shown, "{encoding}");
        }
        let plan = recover::plan(&command, &schema, &request).await.unwrap();
        let actor = super::stage::settings().actor;
        let order = recover::RecoveryOrder {
            actor,
            reason: Some("\u{e9}\u{65e5}".to_owned()),
            wait: support::TIMEOUT,
        };
        let results = recover::execute(&own, &schema, &plan, &order, |_| {}).await;
        let outcomes: Vec<_> = results.iter().map(|result| (result.outcome, &result.detail)).collect();
        assert!(matches!(outcomes[..], [(RecoveryOutcome::Recovered, _)]), "{encoding}: {outcomes:?}");
        assert!(place.noted("worker_id").await > 0, "{encoding}");
    }
}
