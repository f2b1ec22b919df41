//! Which systems are found, in which version, and which queries read them.

use locktop::model::adapter::Part;

use super::{
    GOOD_JOB, RIVER, SOLID_QUEUE, adapter, all, client, database, database_on, found, info_of, one, run,
    server, support, used,
};
use crate::binary::{locktop, run_beside};
use locktop::pg::conninfo::ConnInfo;

#[tokio::test]
async fn three_systems_in_one_database_are_found_and_read() {
    for version in support::versions() {
        println!("PostgreSQL {version}");
        let server = support::server_of(version).await;
        are_found(&database_on(server, &format!("{GOOD_JOB}{SOLID_QUEUE}{RIVER}")).await).await;
    }
}

async fn are_found(info: &ConnInfo) {
    let found = found(info, &all()).await;
    let summary: Vec<_> = found
        .iter()
        .map(|one| (&*one.adapter.name, &*one.schema, one.version.as_deref(), one.refused.as_deref()))
        .collect();
    assert_eq!(
        summary,
        [
            ("good_job", "public", Some("4.15 or later"), None),
            ("river", "public", Some("migration 6"), None),
            ("solid_queue", "public", Some("0.6 or later"), None)
        ]
    );
    for installation in &found {
        let parts = used(installation);
        assert!(
            parts.len() >= 7 && parts.iter().all(|(part, _, rows)| *part == Part::Depth || *rows == 0),
            "{parts:?}"
        );
    }
}

#[tokio::test]
async fn several_schemas_are_several_installations_each_with_its_own_version() {
    let older = "CREATE SCHEMA four; CREATE SCHEMA three;
        CREATE TABLE four.good_jobs (LIKE public.good_jobs INCLUDING ALL); ALTER TABLE four.good_jobs DROP COLUMN lock_type;
        CREATE TABLE four.good_job_processes (LIKE public.good_job_processes INCLUDING ALL);
        ALTER TABLE four.good_job_processes DROP COLUMN lock_type;
        CREATE TABLE three.good_jobs (LIKE public.good_jobs INCLUDING ALL);
        ALTER TABLE three.good_jobs DROP COLUMN lock_type, DROP COLUMN locked_by_id, DROP COLUMN job_class, DROP COLUMN executions_count;
        CREATE TABLE three.good_job_processes (LIKE public.good_job_processes INCLUDING ALL);
        ALTER TABLE three.good_job_processes DROP COLUMN lock_type";
    let info = database(&format!("{GOOD_JOB}{older}")).await;
    let mut found = found(&info, &all()).await;
    found.sort_by(|one, other| one.schema.cmp(&other.schema));
    let running = |place: usize| {
        let one = &found[place];
        let used = used(one).into_iter().find(|(part, _, _)| *part == Part::Running).unwrap();
        (one.label(), one.version.as_deref().unwrap(), used.1)
    };
    assert_eq!(running(0), ("GoodJob four".to_owned(), "4.0 to 4.14", 2));
    assert_eq!(running(1), ("GoodJob".to_owned(), "4.15 or later", 1));
    assert_eq!(running(2), ("GoodJob three".to_owned(), "3", 3));
    assert!(found[2].choice(Part::Due).is_none(), "version 3 has no claims");
    assert!(found[0].choice(Part::Paused).is_none(), "without its settings");
}

/// Five systems in one database, three of them twice: each is distinguished from the others.
#[tokio::test]
async fn several_systems_in_one_database_are_distinguished() {
    let tables = [
        include_str!("tables/pg_boss.sql"),
        include_str!("tables/pg_boss_10.sql"),
        include_str!("tables/graphile_worker.sql"),
        include_str!("tables/dbos.sql"),
        include_str!("tables/pgmq.sql"),
        include_str!("tables/delayed_job.sql"),
        "CREATE SCHEMA two; CREATE TABLE two.delayed_jobs (LIKE delayed_jobs INCLUDING ALL);",
    ];
    let info = database(&tables.concat()).await;
    let found = found(&info, &all()).await;
    let mut labels: Vec<_> = found.iter().map(|one| (one.label(), one.version.as_deref())).collect();
    labels.sort();
    let expected = [
        ("DBOS", Some("migration 125")),
        ("Delayed Job", None),
        ("Delayed Job two", None),
        ("Graphile Worker", Some("migration 20")),
        ("pg-boss", Some("schema 46")),
        ("pg-boss boss", Some("schema 24")),
        ("pgmq mail", None),
        ("pgmq parted", None),
    ];
    assert_eq!(labels, expected.map(|(label, version)| (label.to_owned(), version)));
    assert!(found.iter().all(|one| one.refused.is_none() && used(one).len() >= 4), "{found:?}");
}

const SMALL: &str = r#"
format = 1
name = "small"
title = "Small"
licence = "MIT"
seen = "1"
[detect]
tables.jobs = { suffix = "small_jobs", columns = { id = "int", state = "enum", due = "time" } }
[settings]
word = "it's"
[[jobs.running]]
needs = ["jobs.state=asleep"]
sql = "SELECT j.id::text AS id, 'blocked' AS state, {set:word} AS note FROM {jobs} j LIMIT {limit}"
[[jobs.running]]
sql = "SELECT j.id::text AS id, 'running' AS state, j.due AS due_at, j.id AS attempt FROM {jobs} j WHERE j.due <= now() LIMIT {limit}"
"#;

const STATES: &str = "CREATE TYPE state AS ENUM ('awake'); ";

#[tokio::test]
async fn labels_of_an_enum_decide_and_prefixes_are_installations() {
    let tables = "CREATE TABLE a_small_jobs (id int, state state, due timestamp); CREATE TABLE \"B small_jobs\" (id bigint, state state, due date);
        CREATE TABLE small_jobs (id text, state state, due timestamp); CREATE TABLE c_small_jobs (id int, state text, due timestamp);
        INSERT INTO a_small_jobs VALUES (1, 'awake', now() AT TIME ZONE 'UTC' - interval '1 s'), (2, 'awake', now() + interval '1 d')";
    let info = database(&format!("{STATES}{tables}")).await;
    let mut labels: Vec<_> =
        found(&info, &adapter(SMALL)).await.iter().map(|one| (one.label(), used(one))).collect();
    labels.sort();
    let expected = [("Small B", 0), ("Small a", 1)];
    assert_eq!(
        labels,
        expected.map(|(label, rows)| (label.to_owned(), vec![(Part::Running, 2, rows)])),
        "of the right kinds"
    );
    run(&info, "ALTER TYPE state ADD VALUE 'asleep'").await;
    assert!(found(&info, &adapter(SMALL)).await.iter().all(|one| used(one)[0].1 == 1));
}

#[tokio::test]
async fn an_unreadable_table_is_reported_with_its_remedy() {
    let roles = "CREATE ROLE adapter_monitor LOGIN IN ROLE pg_monitor; CREATE ROLE adapter_reader LOGIN; CREATE ROLE adapter_app LOGIN;
        CREATE ROLE adapter_outsider LOGIN";
    let server = support::conninfo(server().await);
    run(&server, roles).await;
    let info = database(&format!("CREATE SCHEMA jobs; SET search_path = jobs; {RIVER}")).await;
    let refused = async |role: &str| {
        one(&info_of(&info, role).await, &all()).await.refused.map(|text| text.to_string())
    };
    assert_eq!(
        refused("adapter_outsider").await.as_deref(),
        Some("no right to use schema jobs; GRANT USAGE ON SCHEMA \"jobs\" is needed")
    );
    run(&info, "GRANT USAGE ON SCHEMA jobs TO PUBLIC; GRANT SELECT ON jobs.river_leader TO adapter_monitor")
        .await;
    assert_eq!(
        refused("adapter_monitor").await.as_deref(),
        Some("no right to read jobs.river_job; GRANT SELECT ON jobs.river_job is needed")
    );
    run(&info, "GRANT SELECT ON ALL TABLES IN SCHEMA jobs TO adapter_reader").await;
    assert_eq!(refused("adapter_reader").await, None);
    run(&info, "ALTER TABLE jobs.river_job ENABLE ROW LEVEL SECURITY").await;
    assert_eq!(
        refused("adapter_reader").await.as_deref(),
        Some(
            "row security is in force on jobs.river_job: only its owner, or a role with BYPASSRLS, can read it"
        )
    );
    assert_eq!(refused("postgres").await, None, "no policy is for a superuser");
    run(&info, "ALTER TABLE jobs.river_job DISABLE ROW LEVEL SECURITY; ALTER TABLE jobs.river_leader OWNER TO adapter_app").await;
    let owner = "jobs.river_leader belongs to adapter_app, who is not trusted; \
                 --trust-owner adapter_app, or trusted_owners = [\"adapter_app\"] in the config, permits it";
    assert_eq!(refused("postgres").await.as_deref(), Some(owner));
    assert_eq!(refused("adapter_reader").await.as_deref(), Some(owner));
    run(&info, "ALTER TABLE jobs.river_leader OWNER TO postgres; REVOKE SELECT ON jobs.river_queue FROM adapter_reader").await;
    let without = one(&info_of(&info, "adapter_reader").await, &all()).await;
    assert!(
        without.refused.is_none() && without.choice(Part::Paused).is_none(),
        "an optional table may be unreadable"
    );
}

#[tokio::test]
async fn a_locked_table_is_left_in_peace() {
    let info = database(RIVER).await;
    let other = client(&info).await;
    other.batch_execute("BEGIN; LOCK TABLE river_job IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let one = one(&info, &all()).await;
    assert!(super::refusal(&one, Part::Running).contains("lock timeout"), "{:?}", one.choice(Part::Running));
    assert!(one.choice(Part::Leases).unwrap().used().is_some(), "the others are read");
    other.batch_execute("ROLLBACK").await.unwrap();
}

#[tokio::test]
async fn the_adapters_command_prints_a_table_and_json() {
    let info =
        database(&format!("{RIVER} INSERT INTO river_job (kind, state) VALUES ('a', 'running')")).await;
    let target = server().await.conninfo().replace("dbname=postgres", &format!("dbname={}", info.dbname()));
    let list = run_beside(locktop(&["-w", "adapters", "list", &target])).await;
    assert_eq!(list.status, Some(0), "{list:?}");
    assert!(
        list.out.starts_with("River, migration 6: public.river_job, public.river_leader"),
        "{}",
        list.out
    );
    assert!(list.out.contains("PART"), "{}", list.out);
    let json = run_beside(locktop(&["-w", "adapters", "list", "--format", "json", &target])).await;
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["installations"][0]["version"], "migration 6");
    let running = &json["installations"][0]["parts"][0];
    assert_eq!(
        (&running["part"], &running["query"], &running["tried"][0]["rows"]),
        (&"running".into(), &1.into(), &1.into())
    );

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("small.toml");
    std::fs::write(&file, SMALL).unwrap();
    let file = file.to_str().unwrap();
    let alone = run_beside(locktop(&["adapters", "check", file])).await;
    assert_eq!(
        (alone.status, alone.out.as_str()),
        (Some(0), format!("{file}: no mistakes\n").as_str()),
        "{alone:?}"
    );
    let nothing = run_beside(locktop(&["-w", "adapters", "check", file, &target])).await;
    assert_eq!(
        (nothing.status, nothing.out.as_str()),
        (
            Some(1),
            format!("Nothing found in this database of: small.\n{file}: no mistakes found in the file; its tables were not found here.\n")
                .as_str()
        ),
        "{nothing:?}"
    );
    run(&info, &format!("{STATES} CREATE TABLE small_jobs (id int, state state, due timestamp)")).await;
    let installed = run_beside(locktop(&["-w", "adapters", "check", file, &target])).await;
    assert!(
        installed.status == Some(0) && installed.out.starts_with("Small (your file): public.small_jobs\n"),
        "{installed:?}"
    );
    std::fs::write(file, SMALL.replace("title", "titel")).unwrap();
    let wrong = run_beside(locktop(&["adapters", "check", file])).await;
    assert_eq!(wrong.status, Some(1));
    assert!(wrong.err.contains(":4:1: unknown key \"titel\": did you mean \"title\"?"), "{wrong:?}");
    let none =
        run_beside(locktop(&["-w", "adapters", "list", &target.replace(info.dbname(), "postgres")])).await;
    assert!(
        none.out.starts_with("Nothing found in this database of: absurd, airflow, apscheduler, "),
        "{none:?}"
    );
}
