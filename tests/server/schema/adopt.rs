//! The tables of the published recipes, filled by their own functions, are copied into ours.

use locktop::pg::conninfo::ConnInfo;
use locktop::schema::{self, Adopt, Adopted, Schema, SchemaError};

use super::article::{block, repaired};
use super::command::locktop;
use super::db::Session;
use super::support::{database, oldest, open, server_of, versions};

const QUEUE: &str = include_str!("../locks_sql/article.sql");

/// A part of the recipe of the work queue.
fn queue_block(name: &str) -> &'static str {
    QUEUE.split("--@ ").find_map(|block| block.strip_prefix(name)?.strip_prefix('\n')).unwrap()
}

/// Which tables, of `public` unless named.
pub(crate) fn from(source: &str) -> Adopt {
    Adopt { source: source.parse().unwrap(), enable: false, dry_run: false }
}

pub(crate) async fn adopt(info: &ConnInfo, asked: &Adopt) -> Result<Adopted, SchemaError> {
    schema::adopt(&mut open(info).await.client, &Schema::default(), asked).await
}

/// Ours, and the published tables in `public`, made and filled as the recipes do it: task 1 completed, 2 failed, 3 was begun by a worker whose
/// session is gone; item 1 completed, 2 was begun by one that is gone, 3 and 4 are pending. What is free is nobody's at once.
pub(crate) async fn filled(version: u32) -> Session {
    let info = database(server_of(version).await).await;
    let session = Session::open_plain(&info).await;
    session.run(&format!("ALTER DATABASE {} SET locktop.orphan_grace = '0s'", info.dbname())).await;
    // Before ours: the recipe makes no table where any schema has one of that name.
    for sql in [block("tables"), block("acquire"), block("release"), queue_block("queue_table")] {
        session.run(sql).await;
    }
    session.run(&queue_block("consume").replace("AS $$\n", "AS $$\n#variable_conflict use_column\n")).await;
    session.run(&repaired("fetch")).await;
    schema::install(&mut open(&info).await.client, Schema::default()).await.unwrap();
    for call in [
        "SELECT try_acquire_task_lock(1, 'w1')",
        "SELECT release_task_lock(1, 'w1', 'completed')",
        "SELECT try_acquire_task_lock(2, 'w2')",
        "SELECT release_task_lock(2, 'w2', 'failed', 'no disk')",
        "INSERT INTO task_queue (task_name, payload) SELECT 'mail', jsonb_build_object('to', g) FROM generate_series(1, 4) g",
        "UPDATE task_queue SET created_at = now() - interval '1 hour' + id * interval '1 minute'",
        "SELECT * FROM consume_task()",
        "UPDATE task_queue SET status = 'completed', completed_at = now() WHERE id = 1",
        "SELECT pg_advisory_unlock(1)",
    ] {
        session.run(call).await;
    }
    let gone = Session::open_plain(&info).await;
    gone.run("SELECT try_acquire_task_lock(3, 'w3'); SELECT * FROM consume_task()").await;
    gone.run("SELECT pg_advisory_unlock_all()").await;
    session
}

/// Rows of ours, one a line.
const TASKS: &str =
    "SELECT id, task_name, task_type, schedule_cron, is_enabled FROM locktop.scheduled_tasks ORDER BY id";
const EXECUTIONS: &str = "SELECT id, task_id, worker_id, status, completed_at IS NOT NULL, coalesce(error_message, ''), recovered_by, lock_id
      FROM locktop.task_execution_log ORDER BY id";
const ITEMS: &str = "SELECT id, task_name, payload, status, attempt, coalesce(error_message, '') LIKE 'adopted from \"public\": worker %'
      FROM locktop.task_queue ORDER BY id";
/// Everything in the three tables of a schema, and where the sequences are.
const ALL: &str = "SELECT md5(string_agg(r::text, ',')) FROM (
     SELECT t::text FROM @scheduled_tasks t UNION ALL SELECT e::text FROM @task_execution_log e UNION ALL SELECT q::text FROM @task_queue q
     UNION ALL SELECT format('%s %s', last_value, is_called) FROM @scheduled_tasks_id_seq
     UNION ALL SELECT format('%s %s', last_value, is_called) FROM @task_execution_log_id_seq
     UNION ALL SELECT format('%s %s', last_value, is_called) FROM @task_queue_id_seq ORDER BY 1) r";

fn all(schema: &str) -> String {
    ALL.replace('@', schema)
}

fn rows(adopted: &Adopted) -> Vec<(&'static str, i64)> {
    adopted.tables.iter().map(|taken| (taken.table, taken.rows)).collect()
}

#[tokio::test]
async fn what_was_published_is_copied_once_and_comes_in_disabled() {
    for version in versions() {
        let session = filled(version).await;
        let (old, before) = (session.ask(&all("public.")).await, session.ask(&all("locktop.")).await);
        let dry = adopt(&session.info, &Adopt { dry_run: true, ..from("public") }).await.unwrap();
        assert_eq!(session.ask(&all("locktop.")).await, before, "{version}: a dry run changes nothing");

        let done = adopt(&session.info, &from("public")).await.unwrap();
        assert_eq!(dry, done, "{version}");
        let taken = [("scheduled_tasks", 3), ("task_execution_log", 3), ("task_queue", 1)];
        assert_eq!(rows(&done), taken, "{version}");
        assert_eq!((done.disabled, done.open), (3, 3), "{version}");
        assert_eq!(done.tables[0].notes, ["all disabled here, 3 enabled there"]);
        assert_eq!(done.tables[1].notes, ["1 running there with a free key: failed here"]);
        assert_eq!(done.tables[2].notes, ["3 pending, not copied: --enable copies them"]);
        assert_eq!(
            session.ask(TASKS).await,
            "1|数据同步任务|data_sync|*/5 * * * *|f\n2|报表生成任务|report_gen|0 * * * *|f\n3|数据清理任务|cleanup|0 2 * * *|f"
        );
        let lost = "adopted from \"public\": it was running, and no session held its key";
        assert_eq!(
            session.ask(EXECUTIONS).await,
            format!(
                "1|1|w1|completed|t||-|-\n2|2|w2|failed|t|no disk|-|-\n3|3|w3|failed|t|{lost}|locktop schema adopt|-"
            )
        );
        assert_eq!(session.ask(ITEMS).await, "1|mail|{\"to\": 1}|completed|1|f", "{version}");
        let same = "SELECT count(*) FROM public.scheduled_tasks a JOIN locktop.scheduled_tasks b USING (id, created_at, last_run_at, next_run_at)";
        assert_eq!(session.ask(same).await, "3", "{version}: times are as they were");
        assert_eq!(session.ask(&all("public.")).await, old, "{version}: the old tables are untouched");

        let again = adopt(&session.info, &from("public")).await.unwrap();
        assert!(!again.is_change() && again.disabled == 3, "{version}: {again:?}");
        assert_eq!(again.tables[1].notes, ["3 here since before"], "{version}");
        let record = "SELECT action, detail FROM locktop.locktop_audit";
        let detail = "3 rows of scheduled_tasks, 3 rows of task_execution_log, 1 rows of task_queue";
        assert_eq!(session.ask(record).await, format!("adopted|from the schema \"public\": {detail}"));
    }
}

/// The usual way: copy, look, stop the old workers, copy what came since and go on here.
#[tokio::test]
async fn when_nobody_works_there_any_more_the_rest_comes_and_goes_on_here() {
    for version in versions() {
        let session = filled(version).await;
        adopt(&session.info, &from("public")).await.unwrap();
        // The old workers went on for a while.
        session
            .run(
                "SELECT try_acquire_task_lock(1, 'w1'); SELECT release_task_lock(1, 'w1', 'completed');
                 UPDATE task_queue SET status = 'completed', started_at = now(), completed_at = now() WHERE id = 3;
                 UPDATE scheduled_tasks SET is_enabled = false WHERE id = 2",
            )
            .await;
        let done = adopt(&session.info, &Adopt { enable: true, ..from("public") }).await.unwrap();
        assert_eq!(
            rows(&done),
            [("scheduled_tasks", 0), ("task_execution_log", 1), ("task_queue", 3)],
            "{version}"
        );
        assert_eq!((done.tables[0].enabled, done.disabled, done.open), (2, 0, 0), "{version}");
        let times = "SELECT id, o.is_enabled, o.next_run_at = t.next_run_at FROM locktop.scheduled_tasks o JOIN public.scheduled_tasks t USING (id)
                      WHERE id <> 2 ORDER BY id";
        assert_eq!(session.ask(times).await, "1|t|t\n3|t|t", "{version}: due when it is due there");
        assert_eq!(
            session.ask(ITEMS).await,
            "1|mail|{\"to\": 1}|completed|1|f\n2|mail|{\"to\": 2}|pending|1|t\n3|mail|{\"to\": 3}|completed|1|f\n4|mail|{\"to\": 4}|pending|0|f"
        );
        // They are worked on as any other, and new rows get ids of their own.
        assert_eq!(session.ask("SELECT task_id FROM locktop.fetch_tasks('new')").await, "3", "{version}");
        assert_eq!(
            session.ask("SELECT task_id FROM locktop.claim_queue_items('new', 9) ORDER BY 1").await,
            "2\n4"
        );
        let new =
            "INSERT INTO locktop.scheduled_tasks (task_name, task_type) VALUES ('new', 'sql') RETURNING id";
        assert_eq!(session.ask(new).await, "4", "{version}");
        assert_eq!(
            session.ask("INSERT INTO locktop.task_queue (task_name) VALUES ('x') RETURNING id").await,
            "5"
        );
        let again = adopt(&session.info, &Adopt { enable: true, ..from("public") }).await.unwrap();
        assert!(!again.is_change(), "{version}: {again:?}");
    }
}

#[tokio::test]
async fn names_and_ids_that_are_in_use_here_are_told() {
    for version in versions() {
        let session = filled(version).await;
        session
            .run(
                "INSERT INTO locktop.scheduled_tasks (task_name, task_type) VALUES ('other', 'sql'), ('报表生成任务', 'sql');
                 INSERT INTO locktop.task_execution_log (task_id, worker_id, status) VALUES (1, 'w', 'completed');
                 INSERT INTO scheduled_tasks (task_name, task_type, schedule_cron, is_enabled) VALUES ('vague', 'sql', 'often', false),
                     ('once', 'sql', NULL, false);
                 INSERT INTO task_execution_log (task_id, worker_id, status, completed_at, error_message)
                     VALUES (3, 'w3', 'timeout', now(), 'late');
                 ALTER TABLE scheduled_tasks ADD owner text DEFAULT 'ops', ADD priority integer DEFAULT 7, ADD timeout integer",
            )
            .await;
        let dry = adopt(&session.info, &Adopt { dry_run: true, ..from("public") }).await.unwrap();
        let done = adopt(&session.info, &from("public")).await.unwrap();
        assert_eq!(dry, done, "{version}");
        assert_eq!(
            rows(&done),
            [("scheduled_tasks", 3), ("task_execution_log", 3), ("task_queue", 1)],
            "{version}"
        );
        let reason = "cron expression \"often\" has 1 fields in place of 5";
        assert_eq!(
            done.tables[0].notes,
            [
                "all disabled here, 2 enabled there".to_owned(),
                "1 skipped, because another task here has that name: 报表生成任务; rename one, and run this again".to_owned(),
                format!("1 skipped, because the schedule is not valid: vague ({reason}); correct it there, and run this again"),
                "1 without a schedule: here such a task runs once".to_owned(),
                "1 with a new id, because the old one is in use here: 1 is 6".to_owned(),
                "columns not copied: owner (text), timeout (integer)".to_owned(),
            ]
        );
        assert_eq!(
            done.tables[1].notes,
            [
                "1 skipped, because their task was not copied",
                "1 running there with a free key: failed here",
                "1 with another status: failed here, with the status in error_message",
                "1 with a new id, because the old one is in use here: 1 is 5",
            ]
        );
        let tasks = "SELECT id, task_name, priority FROM locktop.scheduled_tasks ORDER BY id";
        let expected = "1|other|0\n2|报表生成任务|0\n3|数据清理任务|7\n5|once|7\n6|数据同步任务|7";
        assert_eq!(session.ask(tasks).await, expected, "{version}");
        let executions = "SELECT id, task_id, status, coalesce(error_message, '') FROM locktop.task_execution_log WHERE id > 3 ORDER BY id";
        assert_eq!(
            session.ask(executions).await,
            "4|3|failed|its status was \"timeout\": late\n5|6|completed|"
        );
        let new =
            "INSERT INTO locktop.scheduled_tasks (task_name, task_type) VALUES ('new', 'sql') RETURNING id";
        assert_eq!(session.ask(new).await, "7", "{version}");
        assert!(!adopt(&session.info, &from("public")).await.unwrap().is_change(), "{version}");
    }
}

/// Equal rows are as many here as there, however often they are copied.
#[tokio::test]
async fn rows_that_are_alike_are_counted() {
    for version in versions() {
        let session = filled(version).await;
        session.run("TRUNCATE task_queue; INSERT INTO task_queue (task_name, status) SELECT 'x', 'completed' FROM generate_series(1, 3)").await;
        session
            .run(
                "INSERT INTO task_execution_log (task_id, worker_id, status, started_at)
                 SELECT 1, 'w', 'completed', timestamptz '2025-01-01' FROM generate_series(1, 2)",
            )
            .await;
        adopt(&session.info, &from("public")).await.unwrap();
        session
            .run("INSERT INTO task_execution_log (task_id, worker_id, status, started_at) VALUES (1, 'w', 'completed', '2025-01-01')")
            .await;
        let done = adopt(&session.info, &from("public")).await.unwrap();
        assert_eq!(
            rows(&done),
            [("scheduled_tasks", 0), ("task_execution_log", 1), ("task_queue", 0)],
            "{version}"
        );
        assert_eq!(session.ask("SELECT count(*) FROM locktop.task_queue").await, "3", "{version}");
        // A log alone says nothing of what was run.
        session.run("DROP TABLE public.scheduled_tasks CASCADE").await;
        let done = adopt(&session.info, &from("public")).await.unwrap();
        assert_eq!(rows(&done), [("task_execution_log", 0), ("task_queue", 0)], "{version}");
        assert_eq!(done.tables[0].notes, ["not copied: its schema has no scheduled_tasks"], "{version}");
    }
}

/// What is not taken is named, and the old tables are not to be dropped for it.
#[tokio::test]
async fn what_cannot_be_taken_as_it_is_stays_there_and_is_told() {
    let version = oldest();
    let session = filled(version).await;
    session
        .run(
            "ALTER TABLE scheduled_tasks DROP CONSTRAINT scheduled_tasks_task_name_key, ADD payload json DEFAULT '{\"a\": 1}';
             INSERT INTO scheduled_tasks (task_name, task_type, schedule_cron) VALUES ('twin', 'sql', '@daily'), ('twin', 'sql', '@daily'),
                 ('blank', 'sql', '  ');
             INSERT INTO task_execution_log (task_id, worker_id, status, completed_at)
                 SELECT id, 'w', 'completed', now() FROM scheduled_tasks WHERE task_name = 'twin'",
        )
        .await;
    let done = adopt(&session.info, &Adopt { enable: true, ..from("public") }).await.unwrap();
    assert_eq!(done.tables.iter().map(|taken| taken.skipped).collect::<Vec<_>>(), [2, 2, 0]);
    assert_eq!(
        done.tables[0].notes,
        [
            "4 enabled, as there",
            "2 skipped, because several there have the same name: twin, twin; rename all but one, and run this again",
            "1 without a schedule: here such a task runs once",
        ]
    );
    let taken = "SELECT schedule_cron, payload FROM locktop.scheduled_tasks WHERE task_name = 'blank'";
    assert_eq!(session.ask(taken).await, "-|{\"a\": 1}");
    let (status, out, _) =
        locktop(server_of(version).await, &session.info, &["schema", "adopt", "public", "--yes", "--enable"]);
    assert!(
        status == 0 && out.ends_with("Do not drop them yet: 4 rows are only there (see above).\n"),
        "{out}"
    );
    session.run("UPDATE scheduled_tasks SET task_name = 'twin ' || id WHERE task_name = 'twin'").await;
    let done = adopt(&session.info, &Adopt { enable: true, ..from("public") }).await.unwrap();
    assert_eq!(
        (rows(&done)[..2].to_vec(), done.tables[0].skipped),
        (vec![("scheduled_tasks", 2), ("task_execution_log", 2)], 0)
    );
    // Whether a task is enabled is not to be guessed.
    session
        .run("ALTER TABLE scheduled_tasks ALTER is_enabled DROP DEFAULT, ALTER is_enabled TYPE integer USING is_enabled::integer")
        .await;
    let error = adopt(&session.info, &from("public")).await.unwrap_err().to_string();
    assert!(
        error.ends_with(
            "scheduled_tasks.is_enabled has the type integer, not boolean: its values cannot be converted"
        ),
        "{error}"
    );
    let writer = Session::open_plain(&session.info).await;
    writer.run("BEGIN; DELETE FROM task_queue").await;
    session.run("ALTER TABLE scheduled_tasks DROP is_enabled").await;
    let error = adopt(&session.info, &from("public")).await.unwrap_err().to_string();
    assert!(error.contains("a transaction is writing to \"public\".\"task_queue\""), "{error}");
}

#[tokio::test]
async fn the_command_says_what_it_takes_and_a_look_shows_it() {
    let version = oldest();
    let session = filled(version).await;
    let server = server_of(version).await;
    let run = |arguments: &[&str]| locktop(server, &session.info, arguments);
    let lines = "scheduled_tasks: 3 taken\n  all disabled here, 3 enabled there\n\
         task_execution_log: 3 taken\n  1 running there with a free key: failed here\n\
         task_queue: 1 taken\n  3 pending, not copied: --enable copies them\n";
    let (status, out, error) = run(&["schema", "adopt", "public"]);
    assert!(status == 2 && out.is_empty() && error.contains("schema adopt asks before it acts"), "{error}");
    let (status, _, error) = run(&["schema", "adopt", "public", "--yes", "--read-only"]);
    assert_eq!(status, 2, "{error}");
    let dry = format!("{lines}Nothing was changed: this was a dry run.\n");
    assert_eq!(run(&["schema", "adopt", "public", "--dry-run"]), (0, dry, String::new()));
    let (status, out, _) = run(&["schema", "adopt", "public", "--yes"]);
    assert!(status == 0 && out.starts_with(lines) && out.contains("--enable"), "{out}");
    let (status, out, _) = run(&["schema", "adopt", "public", "--yes", "--enable"]);
    let rest = "scheduled_tasks: 0 taken, 3 enabled that already existed\n  3 here since before\n\
         task_execution_log: 0 taken\n  3 here since before\n\
         task_queue: 3 taken\n  1 here since before\n  1 processing there with a free key: pending here\n\
         The tables of \"public\" are unchanged: stop their workers, then drop them.\n";
    assert_eq!((status, out.as_str()), (0, rest));
    let (status, _, error) = run(&["schema", "adopt", "absent", "--yes"]);
    assert!(status == 1 && error.contains("no such schema"), "{error}");

    session.run("DROP TABLE public.task_execution_log, public.scheduled_tasks, public.task_queue").await;
    let (_, out, _) = run(&["snapshot", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    let text = json.to_string();
    for name in ["数据同步任务", "报表生成任务", "数据清理任务", "no disk"] {
        assert!(text.contains(name), "{name}: {text}");
    }
}
