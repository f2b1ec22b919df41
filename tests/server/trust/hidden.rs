//! A table of an untrusted role hides no other table, whatever it is and wherever it is.

use std::sync::Arc;

use locktop::config::adapter::built_in;
use locktop::model::view::View;
use locktop::pg::jobs::sources::TableLocations;
use locktop::pg::poll::PollLimits;

use super::ground::{Ground, is_whole};
use super::snapshots::{ALL, limits, poll_once, rows, taken};
use super::support::versions;

const TABLES: [&str; 6] =
    ["scheduled_tasks", "task_execution_log", "distlock", "task_queue", "rate_limit", "id_generator"];

/// The objects that mallory puts in front, with `$table` for each of the tables.
pub(super) const TRICKS: [(&str, &str); 9] = [
    ("tables in the schema of the role", "CREATE TABLE monitor.$table (LIKE public.$table)"),
    ("tables that have more", "CREATE TABLE monitor.$table (LIKE public.$table INCLUDING ALL, more int)"),
    ("other tables", "CREATE TABLE monitor.$table (a int)"),
    ("views", "CREATE VIEW monitor.$table AS SELECT * FROM public.$table WHERE false"),
    ("stored views", "CREATE MATERIALIZED VIEW monitor.$table AS SELECT * FROM public.$table WITH NO DATA"),
    (
        "partitioned tables",
        "CREATE TABLE monitor.$table (LIKE public.$table, more int) PARTITION BY HASH (more)",
    ),
    ("sequences", "CREATE SEQUENCE monitor.$table"),
    ("types", "CREATE TYPE monitor.$table AS (id int)"),
    ("tables in schema locktop", "CREATE TABLE locktop.$table (LIKE public.$table)"),
];

/// A database with all tables of this role.
pub(super) async fn ground(version: u32, owner: &'static str) -> Ground {
    let ground =
        Ground::like(version, &format!("tables of {owner}"), async |ground| ground.tables(owner).await).await;
    let name = ground.name();
    ground.run("postgres", &format!("GRANT CREATE ON DATABASE {name} TO mallory")).await;
    ground
}

/// Asserts that all rows are seen that would be seen without those objects.
fn assert_all(view: &Arc<View>, what: &str) {
    let seen = rows(view);
    for expected in ALL {
        assert!(seen.iter().any(|row| row == expected), "{what}: {expected} is not in {seen:?}");
    }
    let detection = &taken(view).detection;
    assert!(detection.tables.taken_at.is_some() && detection.tables.error.is_none(), "{what}");
}

pub(super) async fn put(ground: &Ground, sql: &str) {
    let each: Vec<String> = TABLES.iter().map(|table| sql.replace("$table", table)).collect();
    let schemas =
        "CREATE SCHEMA monitor; CREATE SCHEMA locktop; GRANT USAGE ON SCHEMA monitor, locktop TO PUBLIC";
    ground.run("mallory", &format!("{schemas}; {}", each.join("; "))).await;
}

#[tokio::test]
async fn a_table_of_a_stranger_hides_no_trusted_one() {
    for version in versions() {
        for (what, sql) in TRICKS.iter().take(if is_whole(version) { TRICKS.len() } else { 1 }) {
            let ground = ground(version, "boss").await;
            assert_all(&poll_once(&ground.info("monitor"), &limits(&[])).await, "before");
            put(&ground, sql).await;
            let view = poll_once(&ground.info("monitor"), &limits(&[])).await;
            assert_all(&view, what);
            // The config names it without a schema.
            let tables =
                TABLES.iter().fold(TableLocations::default(), |places, table| places.with(table, table));
            assert_all(
                &poll_once(&ground.info("monitor"), &PollLimits { tables, ..limits(&[]) }).await,
                what,
            );
        }
    }
}

#[tokio::test]
async fn a_table_of_a_stranger_in_front_of_another_is_reported() {
    for version in versions() {
        for (owner, trusted) in [("boss", &[][..]), ("app", &[][..]), ("app", &["app"][..])] {
            let ground = ground(version, owner).await;
            put(&ground, TRICKS[0].1).await;
            let view = poll_once(&ground.info("monitor"), &limits(trusted)).await;
            assert_all(&view, owner);
            let found = view.findings.iter().filter(|finding| finding.check == "hidden_table");
            let found: Vec<&str> = found.map(|finding| &*finding.summary).collect();
            assert_eq!(found.len(), 5, "{found:?}");
            let expected = "monitor.distlock of mallory is before public.distlock on the search path: mallory is not trusted; both are read";
            assert_eq!(found[0], expected);
        }
    }
}

/// The path is the database's: its owner may lead it away from the tables.
#[tokio::test]
async fn a_path_that_leads_elsewhere_hides_no_table() {
    for version in versions() {
        let ground = ground(version, "boss").await;
        let name = ground.name();
        ground.run("postgres", &format!("ALTER DATABASE {name} OWNER TO mallory")).await;
        ground.run("mallory", &format!("ALTER DATABASE {name} SET search_path = evil")).await;
        assert_all(&poll_once(&ground.info("monitor"), &limits(&[])).await, "the path");
    }
}

#[tokio::test]
async fn a_job_system_of_a_stranger_hides_no_other_one() {
    const RIVER: &str = include_str!("../adapters/tables/river.sql");
    for version in versions() {
        let ground = ground(version, "boss").await;
        let read = "GRANT SELECT ON ALL TABLES IN SCHEMA public TO PUBLIC; GRANT USAGE ON TYPE river_job_state TO PUBLIC";
        ground.run("boss", &format!("SET search_path = public; {RIVER} {read}")).await;
        let path =
            "CREATE SCHEMA monitor; GRANT USAGE ON SCHEMA monitor TO PUBLIC; SET search_path = monitor";
        ground
            .run(
                "mallory",
                &format!("{path}; {RIVER} GRANT SELECT ON ALL TABLES IN SCHEMA monitor TO PUBLIC"),
            )
            .await;
        let adapters = built_in().unwrap().into_iter().map(Arc::new).collect();
        let view = poll_once(&ground.info("monitor"), &PollLimits { adapters, ..limits(&[]) }).await;
        let river = taken(&view).adapters.iter().filter(|one| &*one.installation.adapter.name == "river");
        let river: Vec<_> = river
            .map(|one| (one.installation.schema.to_string(), one.installation.refused.is_none()))
            .collect();
        assert!(river.contains(&("public".to_owned(), true)), "{river:?}");
        assert!(river.contains(&("monitor".to_owned(), false)), "{river:?}");
    }
}
