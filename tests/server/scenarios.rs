//! Every scenario has the waits that it claims, according to the server (`pg_blocking_pids`), and leaves nothing
//! behind; and so does the demo.

#[path = "../support/suite.rs"]
mod support;

use std::collections::BTreeSet;
use std::time::Duration;

use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::demo::scenario::{
    AdvisoryContention, Blocker, Facts, Running, SCHEMA, Scenario, ScratchSchema, Timing, Traffic,
    TrafficOptions,
};
use locktop::demo::{self, DemoOptions};
use locktop::pg::conninfo::ConnInfo;
use support::{database, is_gone, is_long, open, versions, wait_until};
use tokio_postgres::Client;

async fn pids(client: &Client, question: &str) -> BTreeSet<i32> {
    client.query(question, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

async fn count(client: &Client, question: &str) -> i64 {
    client.query_one(&format!("SELECT count(*) {question}"), &[]).await.unwrap().get(0)
}

/// Compares the facts of a scenario with the server.
async fn verify(client: &Client, facts: &Facts, name: &str) {
    let waiting =
        pids(client, "SELECT DISTINCT pid FROM pg_locks WHERE NOT granted AND pid IS NOT NULL").await;
    let expected: BTreeSet<i32> = facts.waits.iter().map(|wait| wait.waiter).collect();
    assert_eq!(expected.len(), facts.waits.len(), "{name}: each waits once");
    assert!(waiting.is_superset(&expected), "{name}: all of them wait");
    let mut blockers = BTreeSet::new();
    for wait in &facts.waits {
        let row = client.query_one("SELECT pg_blocking_pids($1)", &[&wait.waiter]).await.unwrap();
        let answer: BTreeSet<i32> = row.get::<_, Vec<i32>>(0).into_iter().collect();
        let holders: BTreeSet<i32> = wait.holders.iter().map(Blocker::pid).collect();
        if let Some(ahead) = &wait.ahead {
            let all: BTreeSet<i32> = holders.iter().chain(ahead).copied().collect();
            assert_eq!(answer, all, "{name}: the blockers of {}", wait.waiter);
        } else {
            assert!(answer.is_superset(&holders), "{name}: the holder blocks {}", wait.waiter);
            assert!(
                answer.difference(&holders).all(|pid| expected.contains(pid)),
                "{name}: only waiters otherwise"
            );
        }
        blockers.extend(answer);
    }
    for root in &facts.roots {
        assert!(blockers.contains(&root.pid()), "{name}: a root blocks a session");
        assert!(!waiting.contains(&root.pid()), "{name}: a root does not wait");
    }
    for innocent in &facts.innocent {
        assert!(!blockers.contains(innocent), "{name}: {innocent} blocks no session");
    }
}

/// Nothing is left after a scenario: no session, table or prepared transaction.
async fn verify_removed(client: &Client, facts: &Facts, name: &str) {
    let left = pids(client, "SELECT pid FROM pg_stat_activity").await;
    let mut pids = facts.waits.iter().map(|wait| wait.waiter).chain(facts.roots.iter().map(Blocker::pid));
    assert!(pids.all(|pid| pid == 0 || !left.contains(&pid)), "{name}: sessions are left");
    let tables = format!("FROM pg_class WHERE relnamespace = to_regnamespace('{SCHEMA}')");
    assert_eq!(count(client, &tables).await, 0, "{name}: tables are left");
    let prepared = "FROM pg_prepared_xacts WHERE database = current_database()";
    assert_eq!(count(client, prepared).await, 0, "{name}: prepared transactions are left");
}

async fn every_scenario(server: &EmbeddedServer) {
    for &scenario in Scenario::ALL {
        let name = format!("{} on {}", scenario.as_str(), server.version());
        let info = database(server).await;
        let scratch = ScratchSchema::open(&info).await.unwrap();
        let client = open(&info).await.client;
        let running =
            scenario.start(&scratch, Timing::TEST).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        verify(&client, &running.facts, &name).await;
        let facts = running.facts.clone();
        running.stop().await.unwrap();
        verify_removed(&client, &facts, &name).await;
        scratch.remove().await.unwrap();
        assert_eq!(
            count(&client, &format!("FROM pg_namespace WHERE nspname = '{SCHEMA}'")).await,
            0,
            "{name}"
        );
    }
}

#[tokio::test]
async fn every_scenario_has_the_waits_it_claims_and_leaves_nothing() {
    every_scenario(support::server().await).await;
    if is_long() {
        for version in versions() {
            every_scenario(support::server_of(version).await).await;
        }
    }
}

#[tokio::test]
async fn the_scenarios_have_the_size_they_announce() {
    let info = database(support::server().await).await;
    let scratch = ScratchSchema::open(&info).await.unwrap();
    let start =
        async |scenario: Scenario| -> Running { scenario.start(&scratch, Timing::TEST).await.unwrap() };
    for (scenario, waits, roots, innocent) in [
        (Scenario::Chain, 12, 1, 0),
        (Scenario::Convoy, 9, 1, 0),
        (Scenario::Deadlock, 2, 0, 0),
        (Scenario::Prepared, 3, 2, 0),
        (Scenario::TupleLocks, 4, 2, 0),
        (Scenario::InnocentHolder, 1, 1, 1),
    ] {
        let running = start(scenario).await;
        let facts = &running.facts;
        let found = (scenario, facts.waits.len(), facts.roots.len(), facts.innocent.len());
        assert_eq!(found, (scenario, waits, roots, innocent));
        running.stop().await.unwrap();
    }
    let parallel = start(Scenario::ParallelHolder).await;
    assert!(parallel.facts.innocent.len() >= 2, "{:?}", parallel.facts);
    parallel.stop().await.unwrap();
}

#[tokio::test]
async fn a_crowd_may_hold_other_locks_too() {
    let info = database(support::server().await).await;
    let scratch = ScratchSchema::open(&info).await.unwrap();
    let client = open(&info).await.client;
    let crowd = AdvisoryContention { waiters: 30, locks: 2_003, in_transaction: false }
        .start(&scratch)
        .await
        .unwrap();
    let database = "database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    let held = format!("FROM pg_locks WHERE locktype = 'advisory' AND granted AND {database}");
    assert_eq!(count(&client, &held).await, 2_003 + 1);
    assert_eq!(crowd.facts.waits.len(), 30);
    verify(&client, &crowd.facts, "crowd").await;
    crowd.stop().await.unwrap();
    assert_eq!(count(&client, &held).await, 0);
}

/// The size that the benches measure; a tenth of it in the short suite.
#[tokio::test]
async fn a_crowd_fits_into_a_server_with_its_settings() {
    let size = if is_long() { 1_000 } else { 100 };
    let crowd = AdvisoryContention { waiters: size, locks: size * 22, in_transaction: true };
    let server =
        EmbeddedServer::start(Options { settings: crowd.settings(), ..Options::default() }).await.unwrap();
    let info = support::conninfo(&server);
    let scratch = ScratchSchema::open(&info).await.unwrap();
    let running = crowd.start(&scratch).await.unwrap();
    let client = open(&info).await.client;
    let waiting = "FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
    assert_eq!(count(&client, waiting).await, i64::try_from(size).unwrap());
    running.stop().await.unwrap();
    server.stop().await.unwrap();
}

#[tokio::test]
async fn a_dissolved_scenario_leaves_nothing() {
    for scenario in Scenario::DEMO {
        let info = database(support::server().await).await;
        let scratch = ScratchSchema::open(&info).await.unwrap();
        let client = open(&info).await.client;
        let timing = Timing { step: Duration::from_millis(5), hold: Duration::from_secs(2) };
        let running = scenario.start(&scratch, timing).await.unwrap();
        let facts = running.facts.clone();
        running.dissolve().await.unwrap();
        verify_removed(&client, &facts, scenario.as_str()).await;
    }
}

#[tokio::test]
async fn traffic_waits_fails_and_leaves_nothing() {
    let info = database(support::server().await).await;
    let scratch = ScratchSchema::open(&info).await.unwrap();
    let client = open(&info).await.client;
    let options = TrafficOptions { pause: Duration::from_millis(20), ..TrafficOptions::default() };
    let traffic = Traffic::start(&scratch, options).await.unwrap();
    let traffic_sessions = "datname = current_database() AND application_name LIKE 'traffic-%'";
    let waits = format!("FROM pg_stat_activity WHERE {traffic_sessions} AND wait_event_type = 'Lock'");
    let prepared = "FROM pg_prepared_xacts WHERE database = current_database()";
    let workers = format!("FROM pg_stat_activity WHERE {traffic_sessions} AND leader_pid <> pid");
    for (what, question) in [("waits", waits.as_str()), ("two phases", prepared), ("workers", &workers)] {
        wait_until(what, async || count(&client, question).await > 0).await;
    }
    wait_until("traffic", async || traffic.transactions() > 100 && traffic.failures() > 3).await;
    assert!(traffic.failures() < traffic.transactions());
    traffic.stop().await.unwrap();
    verify_removed(&client, &Facts::default(), "traffic").await;
    assert_eq!(count(&client, &format!("FROM pg_stat_activity WHERE {traffic_sessions}")).await, 0);
}

/// Waits until each of the demo's scenarios was seen.
async fn watch_demo(client: &Client) {
    for (what, filter) in [
        ("the chain", "application_name = 'api-2'"),
        ("the convoy", "application_name = 'web-3' AND query LIKE 'DELETE FROM orders%'"),
        ("the deadlock", "application_name = 'picker-1'"),
    ] {
        let waits = format!("FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND {filter}");
        wait_until(what, async || count(client, &waits).await > 0).await;
    }
}

const BRISK: Timing = Timing { step: Duration::from_millis(10), hold: Duration::from_secs(2) };

#[tokio::test]
async fn the_demo_brings_its_own_server_and_takes_it_away() {
    let mut demo = demo::run(DemoOptions { timing: BRISK, ..DemoOptions::default() }).await.unwrap();
    watch_demo(&open(&demo.info).await.client).await;
    // It continues after a crash of the server.
    let server = demo.server.as_mut().unwrap();
    server.kill_hard().await.unwrap();
    server.restart().await.unwrap();
    let (directory, pid) = (server.socket_dir().to_owned(), server.pid().unwrap());
    watch_demo(&open(&demo.info).await.client).await;
    demo.stop().await.unwrap();
    assert!(is_gone(&directory, pid));
}

/// A database with a table of the user, and a role that is permitted only to create a schema there.
async fn users_database(role: &str) -> (ConnInfo, Client) {
    let server = support::server().await;
    let info = database(server).await;
    let client = open(&info).await.client;
    let name: String = client.query_one("SELECT current_database()::text", &[]).await.unwrap().get(0);
    let make = format!(
        "CREATE TABLE precious (id int); CREATE ROLE {role} LOGIN; GRANT CREATE ON DATABASE {name} TO {role}"
    );
    client.batch_execute(&make).await.unwrap();
    let text = server.conninfo().replace("user=postgres", &format!("user={role}"));
    (ConnInfo::parse(&text).unwrap().with_dbname(&name), client)
}

/// Only the user's table exists, and no session of the demo.
async fn verify_untouched(client: &Client, role: &str) {
    assert_eq!(count(client, &format!("FROM pg_namespace WHERE nspname = '{SCHEMA}'")).await, 0);
    assert_eq!(count(client, "FROM precious").await, 0);
    assert_eq!(count(client, "FROM pg_class WHERE relkind = 'r' AND oid >= 16384").await, 1);
    wait_until("the demo's connections to close", async || {
        count(client, &format!("FROM pg_stat_activity WHERE usename = '{role}'")).await == 0
    })
    .await;
}

#[tokio::test]
async fn on_a_users_server_an_ordinary_role_is_enough_and_all_is_removed() {
    let (info, client) = users_database("visitor").await;
    let options = || DemoOptions { url: Some(info.clone()), timing: BRISK, ..DemoOptions::default() };
    let demo = demo::run(options()).await.unwrap();
    assert!(demo.server.is_none());
    wait_until("a chain and a convoy", async || {
        let waits = "FROM pg_stat_activity WHERE usename = 'visitor' AND wait_event_type = 'Lock'";
        count(&client, waits).await >= 20
    })
    .await;
    demo.stop().await.unwrap();
    verify_untouched(&client, "visitor").await;

    let demo = demo::run(options()).await.unwrap();
    wait_until("the report", async || {
        count(&client, "FROM pg_stat_activity WHERE usename = 'visitor' AND query LIKE '%pg_sleep%'").await
            > 0
    })
    .await;
    drop(demo);
    verify_untouched(&client, "visitor").await;
}

#[tokio::test]
async fn a_role_without_create_gets_an_error_with_the_missing_grant() {
    let (info, client) = users_database("guest").await;
    let name: String = client.query_one("SELECT current_database()::text", &[]).await.unwrap().get(0);
    client.batch_execute(&format!("REVOKE CREATE ON DATABASE {name} FROM guest")).await.unwrap();
    let options = DemoOptions { url: Some(info), ..DemoOptions::default() };
    let error = demo::run(options).await.unwrap_err().to_string();
    assert!(error.contains("permission denied") && error.contains("GRANT CREATE ON DATABASE"), "{error}");
    assert!(!error.contains('\n'), "{error}");
    verify_untouched(&client, "guest").await;
}

#[tokio::test]
async fn a_foreign_schema_is_left_alone() {
    let info = database(support::server().await).await;
    let client = open(&info).await.client;
    client
        .batch_execute(&format!("CREATE SCHEMA {SCHEMA}; CREATE TABLE {SCHEMA}.accounts (id int)"))
        .await
        .unwrap();
    let error = ScratchSchema::open(&info).await.unwrap_err().to_string();
    assert!(error.contains("exists and was not created by locktop"), "{error}");
    assert_eq!(count(&client, &format!("FROM {SCHEMA}.accounts")).await, 0);
    assert!(demo::run(DemoOptions { url: Some(info), ..DemoOptions::default() }).await.is_err());
    assert_eq!(count(&client, &format!("FROM {SCHEMA}.accounts")).await, 0);
}
