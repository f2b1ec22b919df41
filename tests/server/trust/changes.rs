//! Changes between two polls of one session, after the table was checked: policies, kinds of columns, and the table itself.

use locktop::pg::poll::PollConnection;

use super::ground::{Ground, NAMES, watchers};
use super::snapshots::{limits, poll_once};
use super::support::versions;

/// A change to a table that makes a statement run code.
struct Change {
    name: &'static str,
    sql: &'static str,
    back: &'static str,
}

/// `$t` is the table, `$s` its schema, `$n` its name and `$c` its first column.
const CHANGES: [Change; 6] = [
    Change {
        name: "a policy",
        sql: "CREATE POLICY p ON $t USING (evil.hit('$t policy')); ALTER TABLE $t ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
        back: "ALTER TABLE $t DISABLE ROW LEVEL SECURITY; DROP POLICY p ON $t",
    },
    Change {
        name: "an index",
        sql: "CREATE INDEX late_$n ON $t ((1)) WHERE evil.hit('$t late index')",
        back: "DROP INDEX $s.late_$n",
    },
    Change {
        name: "a view in its place",
        sql: "ALTER TABLE $t RENAME TO away_$n; CREATE VIEW $t AS SELECT * FROM $s.away_$n WHERE evil.hit('$t view');
              GRANT SELECT ON $t TO PUBLIC",
        back: "DROP VIEW $t; ALTER TABLE $s.away_$n RENAME TO $n",
    },
    Change {
        name: "a materialized view in its place",
        sql: "ALTER TABLE $t RENAME TO away_$n; CREATE MATERIALIZED VIEW $t AS SELECT * FROM $s.away_$n WITH NO DATA;
              CREATE INDEX late_$n ON $t ((1)) WHERE evil.hit('$t materialized view'); REFRESH MATERIALIZED VIEW $t;
              GRANT SELECT ON $t TO PUBLIC",
        back: "DROP MATERIALIZED VIEW $t; ALTER TABLE $s.away_$n RENAME TO $n",
    },
    Change {
        name: "a partitioned table in its place",
        sql: "ALTER TABLE $t RENAME TO away_$n; CREATE TABLE $t (LIKE $s.away_$n) PARTITION BY LIST (($c IS NULL AND evil.zero('$t late key') = 0));
              CREATE TABLE $s.part_$n PARTITION OF $t DEFAULT; GRANT SELECT ON $t TO PUBLIC",
        back: "DROP TABLE $t; ALTER TABLE $s.away_$n RENAME TO $n",
    },
    Change {
        name: "a child",
        sql: "CREATE TABLE $s.child_$n (CHECK (evil.hit('$t child'))) INHERITS ($t);
              CREATE INDEX late_$n ON $s.child_$n ((1)) WHERE evil.hit('$t index of a child'); GRANT SELECT ON $s.child_$n TO PUBLIC",
        back: "DROP TABLE $s.child_$n",
    },
];

fn filled(sql: &str, table: &str) -> String {
    let (schema, name) = table.split_once('.').unwrap();
    let first = match name {
        "rate_limit" => "key",
        "id_generator" => "worker_id",
        "meta" => "queue_name",
        _ => "id",
    };
    sql.replace("$t", table).replace("$s", schema).replace("$n", name).replace("$c", first)
}

/// Does it to all tables.
async fn everywhere(ground: &Ground, sql: &str) {
    let client = ground.client("mallory").await;
    for name in NAMES {
        let sql = filled(sql, name);
        client.batch_execute(&sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
}

#[tokio::test]
async fn code_added_between_two_polls_is_not_run() {
    for version in versions() {
        let ground = Ground::with_tables(version).await;
        for role in watchers(version) {
            let info = ground.info(role);
            for change in &CHANGES {
                let mut session = PollConnection::open(&info, limits(&[])).await.unwrap();
                let before = session.poll(None).await.unwrap();
                everywhere(&ground, change.sql).await;
                let after = session.poll(Some(&before)).await.unwrap();
                session.poll(Some(&after)).await.unwrap();
                poll_once(&info, &limits(&[])).await;
                ground.is_clean(&format!("{role}, {}", change.name));
                everywhere(&ground, change.back).await;
            }
        }
    }
}

/// A column becomes one of a type whose casts are mallory's.
#[tokio::test]
async fn a_column_that_becomes_one_of_another_type_is_not_cast() {
    let change = "ALTER TABLE $t ALTER $c DROP DEFAULT, ALTER $c TYPE evil.mood USING 'a'";
    let columns = [
        ("public.scheduled_tasks", "last_run_at"),
        ("public.scheduled_tasks", "next_run_at"),
        ("public.task_execution_log", "completed_at"),
        ("public.distlock", "ts"),
        ("public.task_queue", "created_at"),
        ("public.rate_limit", "window_start"),
        ("public.id_generator", "last_timestamp"),
    ];
    for version in versions() {
        for role in watchers(version) {
            let ground = Ground::with_tables(version).await;
            let info = ground.info(role);
            let mut session = PollConnection::open(&info, limits(&[])).await.unwrap();
            let before = session.poll(None).await.unwrap();
            for (table, column) in columns {
                ground.run("mallory", &change.replace("$t", table).replace("$c", column)).await;
            }
            let after = session.poll(Some(&before)).await.unwrap();
            session.poll(Some(&after)).await.unwrap();
            poll_once(&info, &limits(&[])).await;
            ground.is_clean(role);
        }
    }
}
