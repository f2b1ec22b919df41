//! Incidents from public reports, each as small as possible: the session that locktop shows as the root, the
//! effect of its end on the others, the shortcut that it offers, and the reason that it gives.

use std::sync::Arc;

use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::feed::once::once;
use locktop::model::finding::waits::unnamed_wait;
use locktop::model::lock_name::LockNames;
use locktop::model::plan::Verb;
use locktop::model::thresholds::Thresholds;
use locktop::model::wait_graph::Party;
use locktop::pg::conninfo::ConnInfo;
use locktop::pg::poll::PollLimits;
use tokio_postgres::Client;

use crate::support::{database, is_oldest, open, pid, wait_until};

/// A session: statements that complete, and then one that does not, with the wait event in which it stays.
struct Session {
    application: &'static str,
    before: &'static str,
    then: Option<(&'static str, &'static str)>,
}

const fn idle(application: &'static str, before: &'static str) -> Session {
    Session { application, before, then: None }
}

const fn waits(
    application: &'static str,
    before: &'static str,
    statement: &'static str,
    event: &'static str,
) -> Session {
    Session { application, before, then: Some((statement, event)) }
}

struct Incident {
    /// The public report.
    report: &'static str,
    set_up: &'static str,
    sessions: &'static [Session],
    /// The number of sessions, counted from the first, that block the others. If several do, the server names
    /// one at a time.
    blockers: usize,
    /// The effect of ending the root.
    promise: &'static str,
    /// The shortcut that helps, or a part of the reason why none does.
    remedy: Result<Verb, &'static str>,
    /// Texts on the screen.
    shown: &'static [&'static str],
}

const TABLES: &str = "CREATE TABLE orders (id int, placed date); INSERT INTO orders SELECT i FROM generate_series(1, 1000) AS i;
    CREATE TABLE other (id int)";
const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM other";

const INCIDENTS: &[Incident] = &[
    Incident {
        report: "flyway#3497",
        set_up: "CREATE TABLE flyway_schema_history (installed_rank int)",
        // 0x466C79776179 plus Java's hash of "public"."flyway_schema_history".
        sessions: &[
            idle(
                "PostgreSQL JDBC Driver",
                "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT pg_try_advisory_xact_lock(77433833903597)",
            ),
            waits(
                "PostgreSQL JDBC Driver",
                "",
                "CREATE INDEX CONCURRENTLY placed ON orders (placed)",
                "virtualxid",
            ),
        ],
        blockers: 1,
        promise: "blocks 1: 1 continues now",
        remedy: Ok(Verb::Terminate),
        shown: &["flyway.postgresql.transactional.lock=false"],
    },
    Incident {
        report: "pgcopydb#819",
        set_up: "",
        sessions: &[
            idle("billing-api", "BEGIN; UPDATE orders SET placed = now() WHERE id = 1"),
            idle("reports", "BEGIN; SELECT pg_current_xact_id()"),
            waits(
                "pgcopydb",
                "",
                "SELECT pg_create_logical_replication_slot('copy', 'test_decoding', true)",
                "transactionid",
            ),
        ],
        blockers: 2,
        promise: "blocks 1: 0 now: 1 more must end",
        remedy: Ok(Verb::Terminate),
        shown: &["transaction of"],
    },
    Incident {
        report: "recall.ai, LISTEN/NOTIFY",
        set_up: "",
        sessions: &[
            waits(
                "bot-1",
                "SET synchronous_commit = on; BEGIN; INSERT INTO other VALUES (1); NOTIFY e",
                "COMMIT",
                "SyncRep",
            ),
            waits(
                "bot-2",
                "SET synchronous_commit = on; BEGIN; INSERT INTO other VALUES (2); NOTIFY e",
                "COMMIT",
                "object",
            ),
            waits(
                "bot-3",
                "SET synchronous_commit = on; BEGIN; INSERT INTO other VALUES (3); NOTIFY e",
                "COMMIT",
                "object",
            ),
        ],
        blockers: 1,
        promise: "blocks 2: 0 now: others must end too",
        remedy: Err("it has committed; it waits for a standby"),
        shown: &["NOTIFY queue"],
    },
    Incident {
        report: "masterfiles#2627",
        set_up: "",
        sessions: &[
            idle(
                "ledger-api",
                "BEGIN ISOLATION LEVEL SERIALIZABLE; UPDATE orders SET placed = now() WHERE id = 1",
            ),
            waits(
                "pg_dump",
                "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE",
                "SELECT * FROM orders",
                "SafeSnapshot",
            ),
        ],
        blockers: 1,
        promise: "blocks 1: 1 continues now",
        remedy: Ok(Verb::Terminate),
        shown: &["safe snapshot"],
    },
    Incident {
        report: "Haas, stuck VACUUMs",
        set_up: "DELETE FROM orders WHERE id % 3 = 0",
        sessions: &[
            idle("export-ui", "BEGIN; DECLARE c CURSOR FOR SELECT * FROM orders; FETCH 1 FROM c"),
            waits("vacuum", "", "VACUUM (FREEZE) orders", "BufferPin"),
            waits("migration", "", "ALTER TABLE orders ADD COLUMN n int", "relation"),
        ],
        blockers: 1,
        promise: "blocks 1: 0 now: 1 more must end",
        remedy: Ok(Verb::Terminate),
        shown: &["BufferPin"],
    },
    Incident {
        report: "dstack#2843",
        set_up: "ALTER TABLE orders ADD PRIMARY KEY (id); CREATE TABLE job (run int REFERENCES orders)",
        sessions: &[
            idle("worker-1", "BEGIN; INSERT INTO job VALUES (1)"),
            idle("worker-2", "BEGIN; INSERT INTO job VALUES (1)"),
            waits("stop", "BEGIN", "SELECT * FROM orders WHERE id = 1 FOR UPDATE", "transactionid"),
        ],
        blockers: 2,
        promise: "blocks 1: 0 for certain: others may have to end too",
        remedy: Ok(Verb::Terminate),
        shown: &["orders ctid (0,1)"],
    },
    Incident {
        report: "pg_cron#264",
        set_up: "CREATE SCHEMA staging",
        sessions: &[
            idle("etl", "BEGIN; CREATE TABLE staging.load_1 (id int)"),
            waits("cleanup", "", "DROP SCHEMA staging", "object"),
        ],
        blockers: 1,
        promise: "blocks 1: 1 continues now",
        remedy: Ok(Verb::Terminate),
        shown: &["schema staging AccessExclusive"],
    },
    Incident {
        report: "postgres-migrations#36",
        set_up: "",
        sessions: &[
            idle("notebook", SNAPSHOT),
            idle("notebook-2", SNAPSHOT),
            waits("migration", "", "CREATE INDEX CONCURRENTLY placed ON orders (placed)", "virtualxid"),
        ],
        blockers: 2,
        promise: "blocks 1: 0 now: 1 more must end",
        remedy: Ok(Verb::Terminate),
        shown: &["transaction of"],
    },
];

async fn begin(info: &ConnInfo, admin: &Client, session: &'static Session) -> (i32, Arc<Client>) {
    let client = Arc::new(open(info).await.client);
    let own = pid(&client).await;
    client.batch_execute(&format!("SET application_name = '{}'", session.application)).await.unwrap();
    client.batch_execute(session.before).await.unwrap();
    if let Some((statement, event)) = session.then {
        let running = Arc::clone(&client);
        tokio::spawn(async move {
            let _ = running.batch_execute(statement).await;
        });
        let seen = "SELECT wait_event IS NOT DISTINCT FROM $2 FROM pg_stat_activity WHERE pid = $1";
        wait_until(event, async || admin.query_one(seen, &[&own, &event]).await.unwrap().get(0)).await;
    }
    (own, client)
}

async fn play(server: &EmbeddedServer, incident: &'static Incident) {
    let report = format!("{} on {}", incident.report, server.version());
    let info = database(server).await;
    let admin = open(&info).await.client;
    admin.batch_execute(TABLES).await.unwrap();
    admin.batch_execute(incident.set_up).await.unwrap();
    is_oldest(&admin).await;
    let mut sessions = Vec::new();
    for session in incident.sessions {
        sessions.push(begin(&info, &admin, session).await);
    }
    let blockers: Vec<Party> =
        sessions[..incident.blockers].iter().map(|(pid, _)| Party::Backend(*pid)).collect();
    let view = once(&info, PollLimits::default(), Thresholds::default(), LockNames::default()).await.unwrap();
    let current = view.with_snapshot().unwrap();
    let found = view.graph.roots.iter().find(|root| blockers.contains(&root.party));
    let found =
        found.unwrap_or_else(|| panic!("{report}: {blockers:?} are not among {:?}", view.graph.roots));
    let backend = current.backend(found.party.pid()).unwrap();
    assert_eq!(current.promise(found).words(), incident.promise, "{report}");
    match (current.remedy(backend, false), incident.remedy) {
        (Ok(verb), Ok(expected)) => assert_eq!(verb, expected, "{report}"),
        (Err(reason), Err(part)) => assert!(reason.contains(part), "{report}: {reason}"),
        (remedy, expected) => panic!("{report}: {remedy:?}, not {expected:?}"),
    }
    let page = locktop::app::print::render(&view, Some(200)).unwrap();
    let causes = [current.waits_for_itself(found.party), unnamed_wait(current.snapshot, backend)];
    let text = causes.into_iter().flatten().chain([page]).collect::<Vec<_>>().join("\n");
    for part in incident.shown {
        assert!(text.contains(part), "{report}: {part} is not in {text}");
    }
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    admin.batch_execute(end).await.unwrap();
}

#[tokio::test]
async fn reported_incidents_have_their_root_and_their_remedy() {
    for version in super::versions() {
        let options = Options { version, ..Options::default() }
            .with("wal_level", "logical")
            .with("deadlock_timeout", "1h")
            .with("autovacuum", "off")
            .with("synchronous_standby_names", "lost")
            .with("synchronous_commit", "local");
        let server = EmbeddedServer::start(options).await.unwrap();
        for incident in INCIDENTS {
            Box::pin(play(&server, incident)).await;
        }
    }
}
