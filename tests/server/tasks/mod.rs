//! The task tables of real servers: which are found, which rows are shown, and the result when they cannot be
//! read.

mod stage;
#[path = "../../support/suite.rs"]
mod support;

use locktop::model::task::JobState;
use locktop::pg::jobs::sources::TableLocations;
use stage::{OWN, Stage, own_tables};

const RECIPE: &str = include_str!("recipe.sql");

#[tokio::test]
async fn recipe_tables_are_shown_with_the_states_their_keys_prove() {
    let mut stage = Stage::new(RECIPE).await;
    let worker = stage.client().await;
    let insert = "INSERT INTO task_execution_log (task_id, worker_id, status, lock_id, started_at) VALUES
        (2, 'worker-7', 'running', 2, now() - interval '41 minutes'),
        (1, 'worker-1', 'running', 1, now() - interval '5 minutes')";
    worker.batch_execute("SET application_name = 'jobs worker-1'").await.unwrap();
    worker.batch_execute(&format!("SELECT pg_advisory_lock(1); {insert}")).await.unwrap();
    let view = stage.poll().await;
    let set = &view.snapshot.as_ref().unwrap().task_sets[0];
    assert!(!set.tables.own_keys);
    assert_eq!(&*set.tables.schedules, "public.scheduled_tasks");
    assert_eq!((&set.tasks.error, &set.executions.error), (&None, &None));
    // The server has just started.
    assert_eq!(stage.states(), ["running", "settling", "due"]);
    let row = &view.tasks.rows[0];
    assert_eq!(row.holder, Some(support::pid(&worker).await));
    assert_eq!(
        stage.name(1),
        Some("数据同步任务?".to_owned()),
        "a small number may belong to any application"
    );
    stage.later(3600);
    assert_eq!(stage.states(), ["slow", "orphan", "overdue"], "an hour later");
    let orphan = stage.view().findings.iter().find(|finding| finding.check == "orphan_task").unwrap().clone();
    assert_eq!(orphan.help, Some("recover"), "{}", orphan.summary);
    let json = stage.json();
    assert_eq!(json["tasks"][0]["name"], "数据同步任务");
    assert_eq!(json["tasks"][0]["state"], "running");
    assert_eq!(json["tasks"][0]["priority"], serde_json::Value::Null);
    let executions = json["executions"].as_array().unwrap();
    let mine = executions.iter().find(|execution| execution["task_id"] == 1).unwrap();
    assert_eq!((&mine["state"], &mine["worker_id"]), (&"slow".into(), &"worker-1".into()));
    let lost = executions.iter().find(|execution| execution["task_id"] == 2).unwrap();
    let evidence = "no session holds key 2 (the id of its task, and its lock_id)";
    assert_eq!(lost["state"], "orphan");
    assert!(lost["evidence"].as_str().unwrap().starts_with(evidence), "{}", lost["evidence"]);
    // Another session holds the number now, and a left-over row states that it runs, too.
    let left = "INSERT INTO task_execution_log (task_id, worker_id, status, lock_id, started_at)
                VALUES (2, 'worker-8', 'running', 2, now() - interval '1 minute')";
    let other = stage.client().await;
    for sql in [left, "SET application_name = 'psql'", "SELECT pg_advisory_lock(2)"] {
        other.batch_execute(sql).await.unwrap();
    }
    stage.poll().await;
    assert_eq!(stage.states(), ["running", "running?", "leftover", "due"]);
    let json = stage.json();
    let of_task_2 = |key: &str| -> Vec<String> {
        let executions = json["executions"].as_array().unwrap().iter();
        executions.filter(|row| row["task_id"] == 2).map(|row| row[key].to_string()).collect()
    };
    assert_eq!(
        (of_task_2("state"), of_task_2("maybe")),
        (vec!["\"unknown\"".into(); 2], vec!["\"running\"".into(), "\"orphan\"".into()])
    );
    assert_eq!(mine["lock_key"]["value"], 1);
}

#[tokio::test]
async fn the_installed_tables_show_orphans_leaks_and_limits() {
    let mut stage = Stage::new(&own_tables("locktop")).await;
    let worker = stage.client().await;
    let pid = support::pid(&worker).await;
    let start = format!(
        "INSERT INTO locktop.task_execution_log
             (task_id, worker_id, status, started_at, lock_id, backend_pid, backend_start, attempt, heartbeat_at)
         SELECT v.id, v.worker, 'running', now() - v.age, {OWN} + v.id, v.pid, now(), 2, now()
           FROM (VALUES (1, 'worker-1', interval '5 minutes', {pid}),
                        (2, 'worker-7', interval '5 minutes', 1)) AS v (id, worker, age, pid)"
    );
    worker.batch_execute(&format!("SELECT pg_advisory_lock({OWN} + 1); {start}")).await.unwrap();
    stage.poll().await;
    assert_eq!(stage.states(), ["running", "settling", "overdue"]);
    stage.later(30);
    assert_eq!(stage.states(), ["running", "orphan", "overdue"]);
    stage.later(301);
    assert_eq!(stage.states(), ["slow", "orphan", "overdue"], "past ten minutes");
    let checks: Vec<&str> = stage.view().findings.iter().map(|finding| finding.check).collect();
    assert!(
        ["orphan_task", "slow_task", "overdue_task"].iter().all(|check| checks.contains(check)),
        "{checks:?}"
    );
    let orphan = stage.view().findings.iter().find(|finding| finding.check == "orphan_task").unwrap().clone();
    assert!(orphan.summary.starts_with("report orphaned, worker-7 last seen 5m"), "{}", orphan.summary);
    assert_eq!(stage.name(OWN + 1), Some("sync".to_owned()), "sure of it");
    assert_eq!(stage.name(OWN + 99), None, "no such task exists");

    worker.batch_execute("UPDATE locktop.task_execution_log SET status = 'completed'").await.unwrap();
    stage.poll().await;
    assert_eq!(stage.states(), ["idle", "idle", "overdue"]);
    stage.poll().await;
    assert_eq!(stage.states(), ["leaked", "idle", "overdue"], "its session forgot the key");
    worker.batch_execute("BEGIN").await.unwrap();
    stage.poll().await;
    assert_eq!(stage.states(), ["running (uncommitted)", "idle", "overdue"]);
}

#[tokio::test]
async fn both_kinds_of_tables_are_shown_together() {
    let mut stage = Stage::new(&format!("{RECIPE}{}", own_tables("locktop"))).await;
    let worker = stage.client().await;
    worker.batch_execute(&format!("SELECT pg_advisory_lock(2), pg_advisory_lock({OWN} + 2)")).await.unwrap();
    let view = stage.poll().await;
    let tables: Vec<_> = view
        .snapshot
        .as_ref()
        .unwrap()
        .task_sets
        .iter()
        .map(|set| (&*set.tables.schedules, set.tables.own_keys))
        .collect();
    assert_eq!(tables, [("public.scheduled_tasks", false), ("locktop.scheduled_tasks", true)]);
    let json = stage.json();
    let columns = |row: &serde_json::Value| (row["retry_delay"].clone(), row["time_zone"].clone());
    assert_eq!(columns(&json["tasks"][0]), (serde_json::Value::Null, serde_json::Value::Null));
    assert_eq!(columns(&json["tasks"][5]), (10.0.into(), "UTC".into()));
    assert_eq!(view.tasks.rows.len(), 6);
    assert_eq!(stage.name(2), Some("报表生成任务?".to_owned()));
    assert_eq!(stage.name(OWN + 2), Some("report".to_owned()));
    assert_eq!(stage.json()["tasks"].as_array().unwrap().len(), 6);
}

#[tokio::test]
async fn they_are_read_on_every_version() {
    for version in support::versions() {
        let ddl = format!("{RECIPE}{}", own_tables("locktop"));
        let mut stage = Stage::on(support::server_of(version).await, &ddl).await;
        let worker = stage.client().await;
        let insert = format!(
            "SELECT pg_advisory_lock({OWN} + 1);
             INSERT INTO locktop.task_execution_log (task_id, worker_id, status, started_at, lock_id, backend_pid)
             VALUES (1, 'worker-1', 'running', now() - interval '11 minutes', {OWN} + 1, pg_backend_pid());
             INSERT INTO task_execution_log (task_id, worker_id, status) VALUES (1, 'worker-1', 'failed')"
        );
        worker.batch_execute(&insert).await.unwrap();
        let view = stage.poll().await;
        let sets = &view.snapshot.as_ref().unwrap().task_sets;
        let errors: Vec<_> = sets.iter().map(|set| (&set.tasks.error, &set.executions.error)).collect();
        assert_eq!(errors, [(&None, &None), (&None, &None)], "PostgreSQL {version}");
        let counts: Vec<_> =
            sets.iter().map(|set| (set.tasks.last_rows().len(), set.executions.last_rows().len())).collect();
        assert_eq!(counts, [(3, 1), (3, 1)], "PostgreSQL {version}");
        assert_eq!(stage.states(), ["due", "due", "due", "slow", "idle", "overdue"], "PostgreSQL {version}");
    }
}

#[tokio::test]
async fn tables_named_in_the_config_are_read_and_wrong_ones_are_reported() {
    let own = format!("{}; ALTER TABLE jobs.scheduled_tasks RENAME TO \"Tasks\"", own_tables("jobs"));
    let mut stage = Stage::new(&own).await;
    assert!(stage.poll().await.snapshot.as_ref().unwrap().task_sets.is_empty(), "not found automatically");
    stage.places(TableLocations::default().with("scheduled_tasks", "jobs.\"Tasks\"")).await;
    let view = stage.poll().await;
    let set = &view.snapshot.as_ref().unwrap().task_sets[0];
    assert_eq!((&*set.tables.schedules, set.tables.own_keys), ("jobs.Tasks", true));
    assert_eq!(set.tables.executions.as_deref(), Some("jobs.task_execution_log"), "in the same schema");
    for (schedules, executions, error) in [
        (
            Some("a.b.c.d"),
            None,
            "[tables] in the config: improper relation name (too many dotted names): a.b.c.d (SQLSTATE 42601)",
        ),
        (Some("jobs.nowhere"), None, "the table jobs.nowhere of [tables] in the config does not exist"),
        (Some("pg_class"), None, "pg_class has no columns id and task_name: not a table of tasks"),
        (
            Some("jobs.\"Tasks\""),
            Some("pg_class"),
            "pg_class has no columns id, task_id and status: not a log of executions",
        ),
    ] {
        let places = schedules.map(|name| ("scheduled_tasks", name.to_owned()));
        let places =
            places.into_iter().chain(executions.map(|name: &str| ("task_execution_log", name.to_owned())));
        stage.places(TableLocations(places.collect())).await;
        let view = stage.poll().await;
        let set = &view.snapshot.as_ref().unwrap().task_sets[0];
        let reported = set.tasks.error.as_ref().or(set.executions.error.as_ref());
        assert_eq!(reported.map(|error| &**error), Some(error));
    }
}

#[tokio::test]
async fn no_task_tables_are_found_in_an_empty_database_or_among_namesakes() {
    let strangers =
        "CREATE TABLE scheduled_tasks (id uuid, name text); CREATE VIEW task_execution_log AS SELECT 1 AS id";
    for ddl in ["", strangers] {
        let mut stage = Stage::new(ddl).await;
        let view = stage.poll().await;
        assert!(view.snapshot.as_ref().unwrap().task_sets.is_empty(), "{ddl}");
        let json = stage.json();
        assert_eq!((&json["tasks"], &json["executions"]), (&serde_json::json!([]), &serde_json::json!([])));
        assert_eq!(json["sections"]["tasks"]["error"], serde_json::Value::Null);
    }
}

#[tokio::test]
async fn a_dropped_column_is_reported_until_the_table_is_read_again() {
    let mut stage = Stage::new(RECIPE).await;
    stage.poll().await;
    let other = stage.client().await;
    other.batch_execute("ALTER TABLE scheduled_tasks DROP COLUMN schedule_cron").await.unwrap();
    let view = stage.poll().await;
    let set = &view.snapshot.as_ref().unwrap().task_sets[0];
    assert!(set.tasks.error.as_ref().unwrap().contains("schedule_cron"), "{:?}", set.tasks.error);
    assert_eq!(set.tasks.last_rows().len(), 3, "the rows before");
    assert_eq!(set.executions.error, None, "the other table is not concerned");
    stage
        .poll_until("the columns are read again", |view| {
            view.snapshot.as_ref().unwrap().task_sets[0].tasks.error.is_none()
        })
        .await;
}

#[tokio::test]
async fn a_locked_task_table_makes_only_its_section_stale_and_names_the_holder() {
    let mut stage = Stage::new(&format!("{RECIPE}{}", own_tables("locktop"))).await;
    stage.poll().await;
    let migration = stage.client().await;
    let pid = support::pid(&migration).await;
    migration
        .batch_execute("BEGIN; LOCK TABLE locktop.scheduled_tasks IN ACCESS EXCLUSIVE MODE")
        .await
        .unwrap();
    for _ in 0..2 {
        let view = stage.poll().await;
        let snapshot = view.snapshot.as_ref().unwrap();
        let [recipe, own] = &snapshot.task_sets[..] else { panic!("two sets") };
        assert_eq!((&recipe.tasks.error, &recipe.executions.error), (&None, &None));
        let expected = format!("locktop.scheduled_tasks is locked: {pid} holds AccessExclusiveLock");
        assert_eq!(own.tasks.error.as_deref(), Some(expected.as_str()));
        assert_eq!(own.tasks.last_rows().len(), 3, "the rows before stay");
        assert_eq!((&snapshot.locks.error, &snapshot.backends.error), (&None, &None));
        let json = stage.json();
        assert_eq!(json["tasks"].as_array().unwrap().len(), 3, "those of the other table");
        assert_eq!(json["sections"]["tasks"]["error"], expected);
    }
    migration.batch_execute("ROLLBACK").await.unwrap();
    stage
        .poll_until("the table is read again", |view| {
            view.snapshot.as_ref().unwrap().task_sets.iter().all(|set| set.tasks.error.is_none())
        })
        .await;
}

#[tokio::test]
async fn a_missing_privilege_is_reported_with_its_grant() {
    let mut stage = Stage::new(&format!(
        "{RECIPE}; CREATE ROLE tasks_reader LOGIN; GRANT SELECT ON scheduled_tasks TO tasks_reader"
    ))
    .await;
    stage.as_role("tasks_reader").await;
    let view = stage.poll().await;
    let set = &view.snapshot.as_ref().unwrap().task_sets[0];
    assert_eq!(set.tasks.error, None);
    let error = set.executions.error.as_deref().unwrap();
    assert!(
        error.contains("42501") && error.ends_with("GRANT SELECT ON public.task_execution_log is needed"),
        "{error}"
    );
}

#[tokio::test]
async fn nulls_and_wide_names_are_values() {
    let nulls = "ALTER TABLE scheduled_tasks ALTER task_name DROP NOT NULL, ALTER task_type DROP NOT NULL;
        ALTER TABLE task_execution_log ALTER worker_id DROP NOT NULL, ALTER status DROP NOT NULL;
        UPDATE scheduled_tasks SET task_name = NULL, task_type = NULL, is_enabled = NULL, next_run_at = NULL WHERE id = 1;
        UPDATE scheduled_tasks SET task_name = repeat('宽', 3000), next_run_at = 'infinity' WHERE id = 2;
        UPDATE scheduled_tasks SET next_run_at = '-infinity', last_run_at = '-infinity' WHERE id = 3;
        INSERT INTO task_execution_log (task_id, worker_id, status, started_at) VALUES (1, NULL, NULL, NULL),
            (1, NULL, 'running', NULL), (2, E'evil\\x1b[2J', 'running', 'infinity')";
    let mut stage = Stage::new(&format!("{RECIPE}; {nulls}")).await;
    let view = stage.poll().await;
    let snapshot = view.snapshot.as_ref().unwrap();
    assert_eq!((&snapshot.task_sets[0].tasks.error, &snapshot.task_sets[0].executions.error), (&None, &None));
    assert_eq!(stage.states(), ["unknown", "unknown", "idle"]);
    assert_eq!(view.tasks.count(JobState::Unknown), 2);
    assert_eq!(&*view.tasks.rows[0].name(snapshot), "task 1");
    assert_eq!(view.tasks.rows[1].name(snapshot).chars().count(), 500, "cut");
    for (width, height) in [(80, 24), (120, 35), (200, 60)] {
        let screen = stage.screen(width, height);
        assert!(screen.contains("宽宽") && screen.contains("task 1"), "{screen}");
    }
    let table = stage.table();
    assert!(
        table.contains("\nTasks: ") && table.contains("  task 1  ") && !table.contains('\u{1b}'),
        "{table}"
    );
}

#[tokio::test]
async fn a_long_log_is_read_by_its_indexes_alone() {
    let rows = if support::is_long() { 1_000_000 } else { 100_000 };
    let fill = format!(
        "INSERT INTO task_execution_log (task_id, worker_id, status, started_at, completed_at, lock_id)
         SELECT 1 + n % 3, 'worker-' || n % 10, 'completed', now() - n * interval '1 second', now(), 1 + n % 3
           FROM generate_series(1, {rows}) AS n;
         INSERT INTO task_execution_log (task_id, worker_id, status, started_at) VALUES (1, 'worker-1', 'running', now() - interval '40 days')"
    );
    let mut stage = Stage::new(&format!("{RECIPE}; {fill}")).await;
    for analyzed in [false, true] {
        let other = stage.client().await;
        if analyzed {
            other.batch_execute("ANALYZE").await.unwrap();
        }
        other.batch_execute("SELECT pg_stat_reset()").await.unwrap();
        stage.reopen().await;
        let view = stage.poll().await;
        let set = &view.snapshot.as_ref().unwrap().task_sets[0];
        assert_eq!(set.executions.error, None);
        assert_eq!(
            set.executions.last_rows().len(),
            16,
            "one that runs, however old, and the last five of each"
        );
        let scans = "SELECT seq_scan, seq_tup_read, idx_scan FROM pg_stat_user_tables WHERE relname = 'task_execution_log'";
        // The statistics of a session are written when it ends.
        stage.close();
        let mut read = (0, 0, 0);
        support::wait_until("the statistics to be written", async || {
            other.batch_execute("SELECT pg_stat_clear_snapshot()").await.unwrap();
            let row = other.query_one(scans, &[]).await.unwrap();
            read = (row.get::<_, i64>(0), row.get::<_, i64>(1), row.get::<_, Option<i64>>(2).unwrap_or(0));
            read.2 > 0
        })
        .await;
        assert_eq!((read.0, read.1), (0, 0), "no scan of the whole log (analyzed: {analyzed})");
        stage.reopen().await;
    }
}

#[tokio::test]
async fn a_log_without_indexes_is_not_read_whole() {
    let bare = "DROP INDEX idx_task_log_status; DROP INDEX idx_task_log_task;
        INSERT INTO task_execution_log (task_id, worker_id, status) SELECT 1, 'w', 'running' FROM generate_series(1, 3000)";
    let mut stage = Stage::new(&format!("{RECIPE}; {bare}")).await;
    let view = stage.poll().await;
    let set = &view.snapshot.as_ref().unwrap().task_sets[0];
    assert_eq!(
        (set.executions.last_rows().len(), set.executions.is_cut),
        (1000, true),
        "the newest, and the cut is reported"
    );
    let other = stage.client().await;
    other
        .batch_execute("ALTER TABLE task_execution_log DROP CONSTRAINT task_execution_log_pkey")
        .await
        .unwrap();
    stage.reopen().await;
    let view = stage.poll().await;
    let error = view.snapshot.as_ref().unwrap().task_sets[0].executions.error.clone().unwrap();
    assert!(error.contains("has no index on (status, started_at) nor on id"), "{error}");
}
