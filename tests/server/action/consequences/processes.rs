//! The effect of C and K on processes that are not a client's session: as stated, and as observed.

use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::model::consequence::DataEffect;
use locktop::model::plan::Verb;
use locktop::model::wait_graph::Party;
use locktop::pg::connect::connect;
use locktop::pg::conninfo::ConnInfo;
use rustix::process::{Pid, Signal, kill_process};
use tokio_postgres::Client;

use super::super::stage::{is_connected, pid};
use super::super::support::{self, conninfo, database, deaf_client, open, wait_until};
use super::{number, stated_effect, view};

const BOTH: [Verb; 2] = [Verb::Cancel, Verb::Terminate];

/// A server, and a session that asks it.
struct Stage<'a> {
    server: &'a EmbeddedServer,
    info: ConnInfo,
    observer: Client,
}

impl<'a> Stage<'a> {
    async fn new(server: &'a EmbeddedServer) -> Self {
        let info = database(server).await;
        let observer = open(&info).await.client;
        Self { server, info, observer }
    }

    async fn run(&self, sql: &str) {
        self.observer.batch_execute(sql).await.unwrap();
    }

    /// The process for which a condition over `pg_stat_activity` holds, once it does.
    async fn find(&self, condition: &str) -> i32 {
        let mut found = None;
        let sql = format!("SELECT pid FROM pg_stat_activity WHERE {condition}");
        wait_until(condition, async || {
            found = self.observer.query_opt(&sql, &[]).await.unwrap().map(|row| row.get::<_, i32>(0));
            found.is_some()
        })
        .await;
        found.unwrap()
    }

    /// Sends the signal with the server's functions; returns whether they report it as sent.
    async fn signal(&self, verb: Verb, pid: i32) -> bool {
        let function = if verb == Verb::Cancel { "pg_cancel_backend" } else { "pg_terminate_backend" };
        self.observer.query_one(&format!("SELECT {function}($1)"), &[&pid]).await.unwrap().get(0)
    }

    async fn predicts(&self, verb: Verb, pid: i32, effect: DataEffect) {
        assert_eq!(stated_effect(&self.info, verb, pid).await, effect, "{}: {verb:?}", self.server.version());
    }

    /// Asserts that it is a root against which no shortcut is offered; returns the reason.
    async fn no_remedy(&self, pid: i32) -> String {
        let view = view(&self.info).await;
        let root = view.graph.roots.iter().find(|root| root.party == Party::Backend(pid));
        assert_eq!(root.map(|root| root.blocked), Some(1), "{pid}");
        let snapshot = view.with_snapshot().unwrap();
        snapshot.remedy(snapshot.backend(pid).unwrap(), false).unwrap_err()
    }

    /// Ends it, and waits until another process has taken its place.
    async fn starts_again(&self, verb: Verb, condition: &str) {
        // Its statement is another one even if a cancel leaves the process.
        let began = "SELECT concat(xact_start, backend_start) FROM pg_stat_activity WHERE";
        let which = |row: tokio_postgres::Row| row.get::<_, Option<String>>(0);
        let mut before = None;
        // A process that ends on its own meanwhile is not the one to end.
        wait_until(condition, async || {
            let pid = self.find(condition).await;
            let view = view(&self.info).await;
            let snapshot = view.with_snapshot().unwrap();
            let Some(row) = snapshot.backend(pid) else { return false };
            let effect = snapshot.consequence(verb, row).effect;
            assert_eq!(effect, DataEffect::Restarts, "{}: {verb:?}", self.server.version());
            let known = self.observer.query_opt(&format!("{began} pid = $1"), &[&pid]).await.unwrap();
            before = known.and_then(which);
            before.is_some() && self.signal(verb, pid).await
        })
        .await;
        wait_until(&format!("{condition} again"), async || {
            let now = self.observer.query_opt(&format!("{began} {condition}"), &[]).await.unwrap();
            now.is_some_and(|row| which(row) != before)
        })
        .await;
    }
}

async fn server(version: u32) -> EmbeddedServer {
    let options = Options { version: Some(version), ..Options::default() }
        .with("wal_level", "logical")
        .with("autovacuum", "on")
        .with("autovacuum_naptime", "1s")
        .with("wal_retrieve_retry_interval", "100ms");
    EmbeddedServer::start(options).await.unwrap()
}

/// From 15 on it waits until every process has accepted a barrier.
async fn drop_database(stage: &Stage<'_>) {
    for verb in BOTH {
        stage.run("CREATE DATABASE tenant").await;
        let (busy, victim) = (open(&stage.info).await.client, open(&stage.info).await.client);
        let (stopped, victim_pid) = (Pid::from_raw(pid(&busy).await).unwrap(), pid(&victim).await);
        kill_process(stopped, Signal::STOP).unwrap();
        let dropping = tokio::spawn(async move { victim.batch_execute("DROP DATABASE tenant").await });
        stage.find(&format!("pid = {victim_pid} AND wait_event = 'ProcSignalBarrier'")).await;
        stage.predicts(verb, victim_pid, DataEffect::InvalidDatabase).await;
        let behind = stage.info.clone().with_dbname("tenant");
        let behind = tokio::spawn(async move { connect(&behind).await.map(|_| ()) });
        let waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'object' AND classid = 1262 AND objid <> 0 AND NOT granted";
        wait_until("the connection", async || number(&stage.observer, waits).await == 1).await;
        assert!(stage.no_remedy(victim_pid).await.contains("find the process that does not answer"));
        stage.signal(verb, victim_pid).await;
        assert!(dropping.await.unwrap().is_err());
        let invalid = "SELECT count(*) FROM pg_database WHERE datname = 'tenant' AND datconnlimit = -2";
        assert_eq!(number(&stage.observer, invalid).await, 1, "{verb:?}");
        assert!(behind.await.unwrap().is_err(), "an invalid database accepts no connection");
        kill_process(stopped, Signal::CONT).unwrap();
        stage.run("DROP DATABASE tenant").await;
    }
}

/// A vacuum by the server of a table that it cannot finish, ordinary or to prevent wraparound.
async fn autovacuum(stage: &Stage<'_>) {
    const SLOW: &str = "autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 1";
    let fill = "SELECT i, repeat('x', 500) AS t FROM generate_series(1, 20000) AS i";
    stage
        .run(&format!(
            "CREATE TABLE bin WITH (autovacuum_enabled = off) AS {fill}; DELETE FROM bin WHERE i % 2 = 0"
        ))
        .await;
    stage.run(&format!("ALTER TABLE bin SET (autovacuum_enabled = on, autovacuum_vacuum_threshold = 1, autovacuum_vacuum_scale_factor = 0, {SLOW})")).await;
    let of = |table: &str, end: &str| {
        format!("backend_type = 'autovacuum worker' AND query LIKE 'autovacuum: VACUUM %{table}{end}'")
    };
    for verb in BOTH {
        stage.starts_again(verb, &of("bin", "")).await;
    }
    stage.run("ALTER TABLE bin SET (autovacuum_enabled = off)").await;
    stage.run(&format!("CREATE TABLE meter WITH (autovacuum_enabled = off, autovacuum_freeze_max_age = 100000, autovacuum_freeze_min_age = 0, {SLOW}) AS {fill}")).await;
    // Each subtransaction takes a transaction ID.
    let burn = "BEGIN INSERT INTO burnt VALUES (1); RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN NULL; END";
    stage.run("CREATE TABLE burnt (i int)").await;
    for _ in 0..11 {
        stage.run(&format!("DO $$ BEGIN FOR i IN 1..10000 LOOP {burn}; END LOOP; END $$")).await;
    }
    let vacuum = stage.find(&of("meter", " (to prevent wraparound)")).await;
    let alters = open(&stage.info).await.client;
    let altering =
        tokio::spawn(async move { alters.batch_execute("ALTER TABLE meter ADD COLUMN n int").await });
    let alter = stage.find("wait_event = 'relation' AND query LIKE 'ALTER TABLE meter%'").await;
    assert!(stage.no_remedy(vacuum).await.contains("cancel the statement that waits behind it"));
    stage.signal(Verb::Cancel, alter).await;
    assert!(altering.await.unwrap().is_err());
    for verb in BOTH {
        stage.starts_again(verb, &of("meter", " (to prevent wraparound)")).await;
    }
}

/// It applies the same once more.
async fn apply_worker(stage: &Stage<'_>) {
    let publisher = Stage::new(stage.server).await;
    let table = "CREATE TABLE orders (id int PRIMARY KEY)";
    publisher.run(table).await;
    publisher.run("CREATE PUBLICATION all_of_it FOR TABLE orders").await;
    publisher
        .observer
        .query_one("SELECT pg_create_logical_replication_slot('sub', 'pgoutput')", &[])
        .await
        .unwrap();
    stage.run(table).await;
    let from = format!(
        "host={} port=5432 user=postgres dbname={}",
        stage.server.socket_dir().display(),
        publisher.info.dbname()
    );
    stage.run(&format!("CREATE SUBSCRIPTION sub CONNECTION '{from}' PUBLICATION all_of_it WITH (create_slot = false, copy_data = false)")).await;
    let held = open(&stage.info).await.client;
    held.batch_execute("BEGIN; INSERT INTO orders VALUES (1)").await.unwrap();
    publisher.run("INSERT INTO orders VALUES (1)").await;
    for verb in BOTH {
        let waiting = "backend_type LIKE 'logical replication%' AND wait_event = 'transactionid'";
        stage.starts_again(verb, waiting).await;
    }
    held.batch_execute("ROLLBACK").await.unwrap();
    wait_until("the row", async || number(&stage.observer, "SELECT count(*) FROM orders").await == 1).await;
    stage.run("ALTER SUBSCRIPTION sub DISABLE").await;
    stage.run("ALTER SUBSCRIPTION sub SET (slot_name = NONE)").await;
    stage.run("DROP SUBSCRIPTION sub").await;
}

/// Replication commands of a client: a slot that waits for a transaction, and a base backup, read and not read.
async fn walsender(stage: &Stage<'_>) {
    let held = open(&stage.info).await.client;
    held.batch_execute("BEGIN; CREATE TABLE held ()").await.unwrap();
    let of = |event: &str| format!("backend_type = 'walsender' AND wait_event = '{event}'");
    let replicates =
        |statement: &str| deaf_client(stage.server, &stage.info, &[("replication", "database")], statement);
    for verb in BOTH {
        let client = replicates("CREATE_REPLICATION_SLOT late LOGICAL pgoutput");
        let victim = stage.find(&of("transactionid")).await;
        stage.predicts(verb, victim, DataEffect::Stops).await;
        stage.signal(verb, victim).await;
        let slots = "SELECT count(*) FROM pg_replication_slots WHERE slot_name = 'late'";
        wait_until("the slot's end", async || number(&stage.observer, slots).await == 0).await;
        drop(client);
        wait_until("its end", async || !is_connected(&stage.observer, victim).await).await;

        let is_old = stage.server.version() < 15;
        let client = replicates(if is_old { "BASE_BACKUP FAST" } else { "BASE_BACKUP (CHECKPOINT 'fast')" });
        let victim = stage.find(&of("ClientWrite")).await;
        let is_cancel = verb == Verb::Cancel;
        stage.predicts(verb, victim, if is_cancel { DataEffect::NoneYet } else { DataEffect::Stops }).await;
        stage.signal(verb, victim).await;
        if is_cancel {
            assert!(is_connected(&stage.observer, victim).await, "a cancel has no effect on it");
            drop(client);
        }
        wait_until("the end of the backup", async || !is_connected(&stage.observer, victim).await).await;
    }
}

/// K on a worker fails the whole query.
async fn parallel_worker(stage: &Stage<'_>) {
    for verb in BOTH {
        let leader = open(&stage.info).await.client;
        let set =
            "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0";
        leader.batch_execute(set).await.unwrap();
        let query = "CREATE TABLE IF NOT EXISTS many AS SELECT i FROM generate_series(1, 5000) AS i";
        leader.batch_execute(query).await.unwrap();
        leader.batch_execute("BEGIN; INSERT INTO many VALUES (-1)").await.unwrap();
        let running = tokio::spawn(async move {
            leader.batch_execute("SELECT count(*) FROM many WHERE pg_sleep(600) IS NOT NULL").await
        });
        let worker = "pid = (SELECT min(pid) FROM pg_stat_activity WHERE backend_type = 'parallel worker' AND wait_event = 'PgSleep')";
        let victim = stage.find(worker).await;
        stage.predicts(verb, victim, DataEffect::RollsBack).await;
        stage.signal(verb, victim).await;
        assert!(running.await.unwrap().is_err(), "{verb:?}");
        assert_eq!(number(&stage.observer, "SELECT count(*) FROM many WHERE i < 0").await, 0, "{verb:?}");
    }
}

/// They cannot be ended; the server would start the launchers again.
async fn of_the_server(stage: &Stage<'_>) {
    let kinds = [
        "checkpointer",
        "background writer",
        "walwriter",
        "autovacuum launcher",
        "logical replication launcher",
    ];
    for kind in kinds {
        let pid = stage.find(&format!("backend_type = '{kind}'")).await;
        for verb in BOTH {
            stage.predicts(verb, pid, DataEffect::Refused).await;
            if !kind.ends_with("launcher") {
                assert!(!stage.signal(verb, pid).await, "{kind}, {verb:?}");
            }
        }
    }
}

#[tokio::test]
async fn cancel_and_terminate_have_the_predicted_effect_on_other_processes() {
    for version in support::versions() {
        let server = server(version).await;
        let stage = &Stage::new(&server).await;
        if version >= 15 {
            drop_database(stage).await;
        }
        apply_worker(stage).await;
        walsender(stage).await;
        parallel_worker(stage).await;
        of_the_server(stage).await;
        autovacuum(stage).await;
    }
}

#[tokio::test]
async fn cancel_and_terminate_have_the_predicted_effect_on_a_standby() {
    for version in support::versions() {
        let options = Options { version: Some(version), ..Options::default() };
        let mut primary = EmbeddedServer::start(options.clone()).await.unwrap();
        let standby = primary.standby(options).await.unwrap();
        let stage = Stage::new(&primary).await;
        for verb in BOTH {
            stage.starts_again(verb, "backend_type = 'walsender' AND wait_event IS NOT NULL").await;
        }
        let replica = Stage {
            server: &standby,
            info: conninfo(&standby),
            observer: open(&conninfo(&standby)).await.client,
        };
        for kind in ["startup", "walreceiver"] {
            for verb in BOTH {
                let pid = replica.find(&format!("backend_type = '{kind}'")).await;
                replica.predicts(verb, pid, DataEffect::Refused).await;
                assert!(!replica.signal(verb, pid).await, "{kind}, {verb:?}");
            }
        }
    }
}
