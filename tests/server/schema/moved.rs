//! The manual's SQL moves the published tables, filled by their own functions, into locktop's schema.

use locktop::schema::{self, Schema};

use super::article::block;
use super::db::Session;
use super::pages::blocks;
use super::support::{database, open, server_of, versions};

/// The two SQL blocks of the manual: copy, enable.
fn manual() -> [String; 2] {
    let section = include_str!("../../../docs/schema.md").split("## Move published tables").nth(1).unwrap();
    let blocks = blocks(section.split("\n## ").next().unwrap());
    let sql: Vec<String> = blocks.iter().map(|block| block.lines.join("\n")).collect();
    sql.try_into().unwrap()
}

/// Locktop's schema with rows of its own, and the published tables in `public`: task 1 completed, 2 failed, the worker of 3
/// has ended, 4 is disabled; item 1 completed, the worker of 2 has ended, 3 is pending.
async fn filled(version: u32) -> Session {
    let info = database(server_of(version).await).await;
    let session = Session::open_plain(&info).await;
    schema::install(&mut open(&info).await.client, Schema::default()).await.unwrap();
    let queue = include_str!("../systems/printed.sql");
    for sql in [block("tables"), block("acquire"), block("release"), queue] {
        session.run(sql).await;
    }
    session
        .run(
            "INSERT INTO scheduled_tasks (task_name, task_type, is_enabled) VALUES ('off', 'sql', false), ('taken', 'sql', true);
             INSERT INTO task_execution_log (task_id, worker_id, status, completed_at) VALUES (5, 'w5', 'completed', now());
             INSERT INTO task_queue (task_name, payload) SELECT 'mail', to_jsonb(g) FROM generate_series(1, 3) AS g;
             UPDATE task_queue SET status = 'processing', worker_id = 'w', started_at = now() WHERE id < 3;
             UPDATE task_queue SET status = 'completed', completed_at = now() WHERE id = 1",
        )
        .await;
    // In another transaction: at another time.
    session
        .run(
            "INSERT INTO locktop.scheduled_tasks (task_name, task_type, is_enabled) VALUES ('taken', 'own', false);
             INSERT INTO locktop.task_queue (task_name) VALUES ('own')",
        )
        .await;
    for call in [
        "try_acquire_task_lock(1, 'w1')",
        "release_task_lock(1, 'w1', 'completed')",
        "try_acquire_task_lock(2, 'w2')",
        "release_task_lock(2, 'w2', 'failed', 'no disk')",
        "try_acquire_task_lock(3, 'w3')",
        "pg_advisory_unlock_all()",
    ] {
        session.run(&format!("SELECT {call}")).await;
    }
    session
}

const TASKS: &str =
    "SELECT id, task_name, task_type, schedule_cron, is_enabled FROM locktop.scheduled_tasks ORDER BY id";
const EXECUTIONS: &str = "SELECT task_id, worker_id, status, completed_at >= started_at, error_message, lock_id \
     FROM locktop.task_execution_log ORDER BY id";
const ITEMS: &str =
    "SELECT id, task_name, payload, status, worker_id, attempt FROM locktop.task_queue ORDER BY id";

#[tokio::test]
async fn the_sql_of_the_manual_moves_the_published_tables_once() {
    let [copy, enable] = manual();
    for version in versions() {
        let session = filled(version).await;
        // An open transaction of a worker that has not stopped.
        let worker = Session::open_plain(&session.info).await;
        worker.run("BEGIN; UPDATE public.scheduled_tasks SET last_run_at = now()").await;
        let refused = session.refused(&copy.replace("'5s'", "'10ms'")).await;
        assert!(refused.starts_with("55P03 "), "{version}: {refused}");
        session.run("ROLLBACK").await;
        worker.run("ROLLBACK").await;

        session.run(&copy).await;
        let tasks = session.ask(TASKS).await;
        let moved = tasks.lines().skip(1).map(|line| line.split_once('|').unwrap());
        let ids: Vec<&str> = moved.clone().map(|(id, _)| id).collect();
        let rows: Vec<&str> = moved.map(|(_, row)| row).collect();
        assert_eq!(tasks.lines().next(), Some("1|taken|own|-|f"), "{version}");
        assert_eq!(
            rows,
            [
                "数据同步任务|data_sync|*/5 * * * *|f",
                "报表生成任务|report_gen|0 * * * *|f",
                "数据清理任务|cleanup|0 2 * * *|f",
                "off|sql|-|f",
            ],
            "{version}"
        );
        let executions = session.ask(EXECUTIONS).await;
        let expected = format!(
            "{}|w1|completed|t|-|-\n{}|w2|failed|t|no disk|-\n{}|w3|failed|t|running when moved|-",
            ids[0], ids[1], ids[2]
        );
        assert_eq!(executions, expected, "{version}");
        let items = "1|own|-|pending|-|0\n2|mail|1|completed|w|1\n3|mail|2|pending|w|1\n4|mail|3|pending|-|0";
        assert_eq!(session.ask(ITEMS).await, items, "{version}");
        let same = "SELECT count(*) FROM locktop.scheduled_tasks AS t JOIN moved_scheduled_tasks AS m USING (task_name, created_at)
             WHERE (t.last_run_at, t.next_run_at) IS NOT DISTINCT FROM (m.last_run_at, m.next_run_at)";
        assert_eq!(session.ask(same).await, "4", "{version}: the times are unchanged");

        let refused = session.refused(&copy).await;
        assert!(refused.contains("\"public.scheduled_tasks\" does not exist"), "{version}: {refused}");
        session.run("ROLLBACK").await;
        assert_eq!(session.ask(EXECUTIONS).await, executions, "{version}");
        assert_eq!(session.ask(ITEMS).await, items, "{version}");

        session.run(&enable).await;
        let enabled = "SELECT id FROM locktop.scheduled_tasks WHERE is_enabled ORDER BY id";
        assert_eq!(session.ask(enabled).await, ids[..3].join("\n"), "{version}");
        // Workers of locktop's schema take them, and new rows get ids of their own.
        assert_eq!(session.ask("SELECT count(*) FROM locktop.fetch_tasks('w', 9)").await, "2", "{version}");
        assert_eq!(
            session.ask("SELECT count(*) FROM locktop.claim_queue_items('w', 9)").await,
            "3",
            "{version}"
        );
        session.run("INSERT INTO locktop.scheduled_tasks (task_name, task_type) VALUES ('new', 'sql')").await;
    }
}
