//! The effect of C and K on a session in each of its states: as stated, and as observed.

mod cases;
mod processes;

use std::sync::Arc;

use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::feed::once::once;
use locktop::model::consequence::DataEffect;
use locktop::model::lock_name::LockNames;
use locktop::model::plan::Verb;
use locktop::model::thresholds::Thresholds;
use locktop::model::view::View;
use locktop::pg::conninfo::ConnInfo;
use locktop::pg::poll::PollLimits;
use tokio_postgres::Client;

use cases::{CASES, Case, Event, WRITES};

use super::stage::{is_connected, pid};
use super::support::{self, database, deaf_client, is_oldest, open, wait_until};

/// How many times in a row the session is seen in its state before the signal.
const LASTS: u32 = 2;

/// Sends nothing of a COPY; any other statement is awaited.
async fn run(client: &Client, statement: &str) {
    if statement.ends_with("FROM STDIN") {
        let _sink = client.copy_in::<_, &[u8]>(statement).await.unwrap();
        std::future::pending::<()>().await;
    } else {
        let _ = client.batch_execute(statement).await;
    }
}

async fn number(observer: &Client, sql: &str) -> i64 {
    observer.query_one(sql, &[]).await.unwrap().get(0)
}

const HALF_DONE: &str = "SELECT (SELECT count(*) FROM pg_index WHERE NOT indisvalid AND indexrelid >= 16384)
    + (SELECT count(*) FROM pg_inherits WHERE inhdetachpending)";

async fn view(info: &ConnInfo) -> Arc<View> {
    once(info, PollLimits::default(), Thresholds::default(), LockNames::default()).await.unwrap()
}

/// The stated effect of a verb on a process.
async fn stated_effect(info: &ConnInfo, verb: Verb, pid: i32) -> DataEffect {
    let view = view(info).await;
    let snapshot = view.with_snapshot().unwrap();
    snapshot.consequence(verb, snapshot.backend(pid).unwrap()).effect
}

async fn play(server: &EmbeddedServer, case: &'static Case, verb: Verb) {
    let name = format!("{}: {verb:?}", case.name);
    let info = &database(server).await;
    let observer = open(info).await.client;
    let tables = "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t SELECT i, 0 FROM generate_series(1, 5) AS i;
        CREATE INDEX old ON t (v);
        CREATE TABLE whole (id int) PARTITION BY RANGE (id); CREATE TABLE part PARTITION OF whole FOR VALUES FROM (1) TO (9)";
    observer.batch_execute(tables).await.unwrap();
    if [case.other, case.then].iter().any(|statement| statement.contains("big")) {
        let big = "CREATE TABLE big AS SELECT i, repeat('x', 500) AS x FROM generate_series(1, 20000) AS i; DELETE FROM big WHERE i % 2 = 0";
        observer.batch_execute(big).await.unwrap();
        is_oldest(&observer).await;
    }
    let (other, victim) = (open(info).await.client, open(info).await.client);
    other.batch_execute(case.other).await.unwrap();
    let is_deaf = matches!(case.event, Event::Is("ClientWrite"));
    let deaf = is_deaf.then(|| deaf_client(server, info, &[("application_name", "deaf")], case.then));
    let victim_pid = if is_deaf { pid_of(&observer, "deaf").await } else { pid(&victim).await };
    let _ = victim.batch_execute(case.before).await;
    let victim = Arc::new(victim);
    let running = Arc::clone(&victim);
    let task = (!case.then.is_empty() && !is_deaf)
        .then(|| tokio::spawn(async move { run(&running, case.then).await }));
    let seen = "SELECT state, wait_event FROM pg_stat_activity WHERE pid = $1";
    let mut lasts = 0;
    wait_until(&name, async || {
        let row = observer.query_one(seen, &[&victim_pid]).await.unwrap();
        let event = row.get::<_, Option<String>>(1);
        let is_event = match case.event {
            Event::None => true,
            Event::Is(expected) => event.as_deref() == Some(expected),
        };
        let is_so = row.get::<_, Option<String>>(0).as_deref() == Some(case.state) && is_event;
        lasts = if is_so { lasts + 1 } else { 0 };
        lasts >= LASTS
    })
    .await;

    let expected = if verb == Verb::Cancel { case.cancel } else { case.terminate };
    assert_eq!(stated_effect(info, verb, victim_pid).await, expected, "{name}: the stated effect");

    let function = if verb == Verb::Cancel { "pg_cancel_backend" } else { "pg_terminate_backend" };
    observer.execute(&format!("SELECT {function}($1)"), &[&victim_pid]).await.unwrap();
    let state = async || {
        let row = observer
            .query_opt("SELECT state FROM pg_stat_activity WHERE pid = $1", &[&victim_pid])
            .await
            .unwrap();
        row.and_then(|row| row.get::<_, Option<String>>(0))
    };
    match (verb, expected) {
        // A signal that was without effect cannot be awaited: its session can still run statements.
        (Verb::Cancel, DataEffect::Refused) => {
            victim.batch_execute("SELECT 2; COMMIT").await.ok();
            assert!(is_connected(&observer, victim_pid).await, "{name}");
            let committed = case.before == WRITES;
            assert_eq!(
                number(&observer, "SELECT count(*) FROM t WHERE id = 99").await,
                i64::from(committed),
                "{name}"
            );
            return;
        }
        (Verb::Cancel, DataEffect::NoneYet) => {
            assert_eq!(state().await.as_deref(), Some("active"), "{name}");
            return;
        }
        (Verb::Cancel, _) => wait_until(&name, async || state().await.as_deref() != Some("active")).await,
        _ => wait_until(&name, async || !is_connected(&observer, victim_pid).await).await,
    }
    assert_eq!(
        number(&observer, "SELECT count(*) FROM t WHERE id = 99").await,
        0,
        "{name}: what was not committed"
    );
    let is_committed = case.before.contains("(98, 0)") || expected == DataEffect::Committed;
    assert_eq!(
        number(&observer, "SELECT count(*) FROM t WHERE id IN (97, 98)").await,
        i64::from(is_committed),
        "{name}: what was committed"
    );
    assert_eq!(
        number(&observer, HALF_DONE).await,
        i64::from(expected == DataEffect::HalfDone),
        "{name}: invalid indexes, partitions half detached"
    );
    if verb == Verb::Terminate {
        other.batch_execute("ROLLBACK; SELECT pg_advisory_unlock_all()").await.unwrap();
        assert_eq!(
            number(&observer, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())").await,
            0,
            "{name}: its session locks"
        );
    }
    if let Some(task) = task {
        task.abort();
    }
    drop(deaf);
}

async fn pid_of(observer: &Client, application: &str) -> i32 {
    let sql = "SELECT pid FROM pg_stat_activity WHERE application_name = $1 AND datname = current_database()";
    let mut found = None;
    wait_until("the session", async || {
        found = observer.query_opt(sql, &[&application]).await.unwrap().map(|row| row.get(0));
        found.is_some()
    })
    .await;
    found.unwrap()
}

#[tokio::test]
async fn cancel_and_terminate_have_the_predicted_effect_in_every_state() {
    for version in support::versions() {
        let options = Options { version: Some(version), ..Options::default() }
            .with("synchronous_standby_names", "lost")
            .with("synchronous_commit", "local")
            .with("autovacuum", "off")
            .with("max_connections", "100");
        let server = EmbeddedServer::start(options).await.unwrap();
        for case in CASES {
            for verb in [Verb::Cancel, Verb::Terminate] {
                Box::pin(play(&server, case, verb)).await;
            }
        }
        println!("{version}: {} states", CASES.len());
    }
}
