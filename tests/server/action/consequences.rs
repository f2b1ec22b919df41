//! What C and K are said to do to a session, in every state of one, and what they do.

use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::feed::once::once;
use locktop::model::consequence::Effect;
use locktop::model::lock_name::LockNames;
use locktop::model::plan::Verb;
use locktop::model::thresholds::Thresholds;
use locktop::model::wait_graph::Party;
use locktop::pg::poll::Limits;
use tokio_postgres::Client;

use super::stage::{is_there, pid};
use super::support::{self, database, deaf_client, open, wait_until};

/// How the state is recognized on the server, beside `state`.
#[derive(Debug, Clone, Copy)]
enum Event {
    None,
    Is(&'static str),
}

struct Case {
    name: &'static str,
    /// Another session, which the victim may wait for.
    other: &'static str,
    /// Statements that are answered at once.
    before: &'static str,
    /// One that is not.
    then: &'static str,
    state: &'static str,
    event: Event,
    cancel: Effect,
    terminate: Effect,
}

const IDLE: Case = Case {
    name: "idle",
    other: "",
    before: "SELECT 1",
    then: "",
    state: "idle",
    event: Event::None,
    cancel: Effect::Refused,
    terminate: Effect::Nothing,
};

const WRITES: &str = "BEGIN; INSERT INTO t VALUES (99, 0)";
const ROW: &str = "BEGIN; UPDATE t SET v = 7 WHERE id = 1";
const SLEEP: Event = Event::Is("PgSleep");

const CASES: &[Case] = &[
    IDLE,
    Case { name: "idle with a session lock", before: "SELECT pg_advisory_lock(5)", ..IDLE },
    Case { name: "has committed", before: "INSERT INTO t VALUES (98, 0)", ..IDLE },
    Case {
        name: "idle in transaction",
        before: WRITES,
        state: "idle in transaction",
        terminate: Effect::RollsBack,
        ..IDLE
    },
    Case {
        name: "idle in transaction, only read",
        before: "BEGIN; SELECT * FROM t",
        state: "idle in transaction",
        terminate: Effect::RollsBack,
        ..IDLE
    },
    Case {
        name: "idle in a failed transaction",
        before: "BEGIN; INSERT INTO t VALUES (99, 0); SELECT 1 / 0",
        state: "idle in transaction (aborted)",
        terminate: Effect::Failed,
        ..IDLE
    },
    Case {
        name: "one statement",
        then: "INSERT INTO t SELECT 99, 0 FROM pg_sleep(600)",
        state: "active",
        event: SLEEP,
        cancel: Effect::RollsBack,
        terminate: Effect::RollsBack,
        ..IDLE
    },
    Case {
        name: "in a transaction block",
        before: WRITES,
        then: "SELECT pg_sleep(600)",
        state: "active",
        event: SLEEP,
        cancel: Effect::RollsBack,
        terminate: Effect::RollsBack,
        ..IDLE
    },
    Case {
        name: "waits for a row",
        other: ROW,
        before: WRITES,
        then: "UPDATE t SET v = 8 WHERE id = 1",
        state: "active",
        event: Event::Is("transactionid"),
        cancel: Effect::RollsBack,
        terminate: Effect::RollsBack,
    },
    Case {
        name: "waits for a table",
        other: "BEGIN; LOCK TABLE t IN ACCESS SHARE MODE",
        then: "ALTER TABLE t ADD COLUMN more int",
        state: "active",
        event: Event::Is("relation"),
        cancel: Effect::RollsBack,
        terminate: Effect::RollsBack,
        ..IDLE
    },
    Case {
        name: "waits for an advisory lock",
        other: "SELECT pg_advisory_lock(5)",
        before: WRITES,
        then: "SELECT pg_advisory_lock(5)",
        state: "active",
        event: Event::Is("advisory"),
        cancel: Effect::RollsBack,
        terminate: Effect::RollsBack,
    },
    Case {
        name: "CREATE INDEX CONCURRENTLY behind a transaction",
        other: ROW,
        then: "CREATE INDEX CONCURRENTLY new ON t (v)",
        state: "active",
        event: Event::Is("virtualxid"),
        cancel: Effect::HalfDone,
        terminate: Effect::HalfDone,
        ..IDLE
    },
    Case {
        name: "CREATE INDEX CONCURRENTLY before its first lock",
        other: "BEGIN; LOCK TABLE t IN SHARE UPDATE EXCLUSIVE MODE",
        then: "CREATE INDEX CONCURRENTLY new ON t (v)",
        state: "active",
        event: Event::Is("relation"),
        cancel: Effect::RollsBack,
        terminate: Effect::RollsBack,
        ..IDLE
    },
    Case {
        name: "DROP INDEX CONCURRENTLY",
        other: ROW,
        then: "DROP INDEX CONCURRENTLY old",
        state: "active",
        event: Event::Is("virtualxid"),
        cancel: Effect::HalfDone,
        terminate: Effect::HalfDone,
        ..IDLE
    },
    Case {
        name: "REINDEX CONCURRENTLY",
        other: ROW,
        then: "REINDEX INDEX CONCURRENTLY old",
        state: "active",
        event: Event::Is("virtualxid"),
        cancel: Effect::HalfDone,
        terminate: Effect::HalfDone,
        ..IDLE
    },
    Case {
        name: "VACUUM",
        before: "SET vacuum_cost_delay = 100; SET vacuum_cost_limit = 1",
        then: "VACUUM big",
        state: "active",
        event: Event::Is("VacuumDelay"),
        cancel: Effect::Stops,
        terminate: Effect::Stops,
        ..IDLE
    },
    Case {
        name: "a commit that waits for a standby",
        before: "SET synchronous_commit = on; BEGIN; INSERT INTO t VALUES (97, 0)",
        then: "COMMIT",
        state: "active",
        event: Event::Is("SyncRep"),
        cancel: Effect::Committed,
        terminate: Effect::Committed,
        ..IDLE
    },
    Case {
        name: "a client that does not read",
        then: "COPY (SELECT repeat('x', 8000) FROM generate_series(1, 100000)) TO STDOUT",
        state: "active",
        event: Event::Is("ClientWrite"),
        cancel: Effect::NoneYet,
        terminate: Effect::RollsBack,
        ..IDLE
    },
    Case {
        name: "a client that does not send",
        before: WRITES,
        then: "COPY t FROM STDIN",
        state: "active",
        event: Event::Is("ClientRead"),
        cancel: Effect::NoneYet,
        terminate: Effect::RollsBack,
        ..IDLE
    },
];

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

async fn number(look: &Client, sql: &str) -> i64 {
    look.query_one(sql, &[]).await.unwrap().get(0)
}

const INVALID: &str = "SELECT count(*) FROM pg_index WHERE NOT indisvalid AND indexrelid >= 16384";

async fn play(server: &EmbeddedServer, case: &'static Case, verb: Verb) {
    let name = format!("{}: {verb:?}", case.name);
    let info = &database(server).await;
    let look = open(info).await.client;
    look.batch_execute(
        "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t SELECT i, 0 FROM generate_series(1, 5) AS i;
         CREATE INDEX old ON t (v);
         CREATE TABLE big AS SELECT i, repeat('x', 500) AS x FROM generate_series(1, 20000) AS i; DELETE FROM big WHERE i % 2 = 0",
    )
    .await
    .unwrap();
    let (other, victim) = (open(info).await.client, open(info).await.client);
    other.batch_execute(case.other).await.unwrap();
    let is_deaf = matches!(case.event, Event::Is("ClientWrite"));
    let deaf = is_deaf.then(|| deaf_client(server, info, "deaf", case.then));
    let victim_pid = if is_deaf { pid_of(&look, "deaf").await } else { pid(&victim).await };
    let _ = victim.batch_execute(case.before).await;
    let victim = std::sync::Arc::new(victim);
    let running = std::sync::Arc::clone(&victim);
    let task = (!case.then.is_empty() && !is_deaf)
        .then(|| tokio::spawn(async move { run(&running, case.then).await }));
    let seen = "SELECT state, wait_event FROM pg_stat_activity WHERE pid = $1";
    let mut lasts = 0;
    wait_until(&name, async || {
        let row = look.query_one(seen, &[&victim_pid]).await.unwrap();
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

    let view = once(info, Limits::default(), Thresholds::default(), LockNames::default()).await.unwrap();
    let snapshot = view.with_snapshot().unwrap();
    let backend = snapshot.backend(Party::Backend(victim_pid).pid()).unwrap();
    let expected = if verb == Verb::Cancel { case.cancel } else { case.terminate };
    assert_eq!(snapshot.consequence(verb, backend).effect, expected, "{name}: what is said");

    let function = if verb == Verb::Cancel { "pg_cancel_backend" } else { "pg_terminate_backend" };
    look.execute(&format!("SELECT {function}($1)"), &[&victim_pid]).await.unwrap();
    let state = async || {
        let row = look
            .query_opt("SELECT state FROM pg_stat_activity WHERE pid = $1", &[&victim_pid])
            .await
            .unwrap();
        row.and_then(|row| row.get::<_, Option<String>>(0))
    };
    match (verb, expected) {
        // A signal that was without effect cannot be awaited: its session can still do what it could.
        (Verb::Cancel, Effect::Refused) => {
            victim.batch_execute("SELECT 2; COMMIT").await.ok();
            assert!(is_there(&look, victim_pid).await, "{name}");
            let committed = case.before == WRITES;
            assert_eq!(
                number(&look, "SELECT count(*) FROM t WHERE id = 99").await,
                i64::from(committed),
                "{name}"
            );
            return;
        }
        (Verb::Cancel, Effect::NoneYet) => {
            assert_eq!(state().await.as_deref(), Some("active"), "{name}");
            return;
        }
        (Verb::Cancel, _) => wait_until(&name, async || state().await.as_deref() != Some("active")).await,
        _ => wait_until(&name, async || !is_there(&look, victim_pid).await).await,
    }
    assert_eq!(
        number(&look, "SELECT count(*) FROM t WHERE id = 99").await,
        0,
        "{name}: what was not committed"
    );
    let is_committed = case.before.contains("(98, 0)") || expected == Effect::Committed;
    assert_eq!(
        number(&look, "SELECT count(*) FROM t WHERE id IN (97, 98)").await,
        i64::from(is_committed),
        "{name}: what was committed"
    );
    assert_eq!(
        number(&look, INVALID).await,
        i64::from(expected == Effect::HalfDone),
        "{name}: invalid indexes"
    );
    if verb == Verb::Terminate {
        other.batch_execute("ROLLBACK; SELECT pg_advisory_unlock_all()").await.unwrap();
        assert_eq!(
            number(&look, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())").await,
            0,
            "{name}: its session locks"
        );
    }
    if let Some(task) = task {
        task.abort();
    }
    drop(deaf);
}

async fn pid_of(look: &Client, application: &str) -> i32 {
    let sql = "SELECT pid FROM pg_stat_activity WHERE application_name = $1 AND datname = current_database()";
    let mut found = None;
    wait_until("the session", async || {
        found = look.query_opt(sql, &[&application]).await.unwrap().map(|row| row.get(0));
        found.is_some()
    })
    .await;
    found.unwrap()
}

#[tokio::test]
async fn each_verb_does_what_is_said_in_every_state() {
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
