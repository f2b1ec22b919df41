//! Tables with a part that belongs to another role.

use super::ground::{Ground, watchers};
use super::snapshots::{limits, poll_once, rows};
use super::support::versions;

const TABLES: [&str; 6] =
    ["scheduled_tasks", "task_execution_log", "distlock", "task_queue", "rate_limit", "id_generator"];

/// A part, and a part of a part, of a superuser's partitioned table: each has indexes of its own.
#[tokio::test]
async fn a_part_of_another_owner_makes_the_whole_a_strangers() {
    for version in versions() {
        for depth in [1, 2] {
            let ground = Ground::new(version).await;
            ground.run("postgres", include_str!("parts.sql")).await;
            for table in TABLES {
                let part = if depth == 1 { format!("{table}_1") } else { format!("{table}_2_1") };
                ground.run("postgres", &format!("ALTER TABLE {part} OWNER TO mallory")).await;
                ground
                    .run(
                        "mallory",
                        &format!("CREATE INDEX ON {part} ((1)) WHERE evil.hit('index of {part}')"),
                    )
                    .await;
            }
            for role in watchers(version) {
                let view = poll_once(&ground.info(role), &limits(&[])).await;
                ground.is_clean(&format!("{role}, depth {depth}"));
                let seen = rows(&view);
                assert!(seen.len() == 6 && seen.iter().all(|line| line.contains("mallory")), "{seen:?}");
            }
            poll_once(&ground.info("monitor"), &limits(&["mallory"])).await;
            assert!(!ground.calls().is_empty(), "{version}: the parts are read then");
        }
    }
}

/// The children of a plain table are no part of it.
#[tokio::test]
async fn a_child_of_another_owner_is_left_out() {
    for version in versions() {
        let ground = Ground::new(version).await;
        ground.tables("postgres").await;
        for table in TABLES {
            let child = format!(
                "CREATE TABLE evil.{table} () INHERITS ({table}); ALTER TABLE evil.{table} OWNER TO mallory"
            );
            ground.run("postgres", &child).await;
            let trap = format!(
                "CREATE INDEX ON evil.{table} ((1)) WHERE evil.hit('child {table}'); INSERT INTO evil.{table} SELECT * FROM {table}"
            );
            ground.run("mallory", &trap).await;
        }
        for role in watchers(version) {
            let view = poll_once(&ground.info(role), &limits(&[])).await;
            ground.is_clean(role);
            assert_eq!(rows(&view), super::snapshots::ALL, "{role}");
        }
    }
}

/// Neither is read: views of mallory's under the usual names, and foreign tables, where an administrator has left a server for them.
#[tokio::test]
async fn views_and_foreign_tables_are_not_read() {
    for version in versions() {
        let ground = Ground::with_tables(version).await;
        let wrapper =
            "CREATE FOREIGN DATA WRAPPER nothing; CREATE SERVER elsewhere FOREIGN DATA WRAPPER nothing;
                       GRANT USAGE ON FOREIGN SERVER elsewhere TO mallory";
        ground.run("postgres", wrapper).await;
        let mut sql = String::new();
        for table in super::ground::NAMES {
            let (schema, name) = table.split_once('.').unwrap();
            let kind = if table.len() % 2 == 0 { "view" } else { "table" };
            sql.extend([format!("ALTER TABLE {table} RENAME TO {name}_away;")]);
            sql.extend([if kind == "view" {
                format!(
                    "CREATE VIEW {table} AS SELECT * FROM {schema}.{name}_away WHERE evil.hit('view {table}');"
                )
            } else {
                format!(
                    "CREATE FOREIGN TABLE {table} (id integer DEFAULT evil.zero('default'), worker_id integer, last_timestamp bigint,
                         task_name text, task_id integer, status text, owner text, ts timestamptz, key text, count integer,
                         CHECK (evil.hit('check of foreign {table}'))) SERVER elsewhere;"
                )
            }]);
            sql.extend([format!("GRANT SELECT ON {table} TO PUBLIC;")]);
        }
        ground.run("mallory", &sql).await;
        for role in watchers(version) {
            poll_once(&ground.info(role), &limits(&[])).await;
            poll_once(&ground.info(role), &super::stored::in_schema("public", limits(&[]))).await;
            ground.is_clean(role);
        }
    }
}
