//! Rows of each state of the systems of Python: Oban, DBOS, Django tasks and Airflow.

use super::states::{assert_states, job_states, stage};
use super::{Part, are_read};
use locktop::model::view::View;

#[tokio::test]
async fn dbos() {
    let rows = "
        INSERT INTO dbos.workflow_status (workflow_uuid, name, status, executor_id, application_version, recovery_attempts, queue_name, created_at, updated_at, delay_until_epoch_ms, error) VALUES
            ('w1', 'Pending', 'PENDING', 'local', 'v1', 1, NULL, 1700000000000, 1700000000000, NULL, NULL), ('w2', 'Due', 'ENQUEUED', NULL, 'v1', 0, 'a', 1700000000000, 0, NULL, NULL),
            ('w3', 'Again', 'ENQUEUED', NULL, 'v1', 1, 'b', 1700000000000, 0, NULL, NULL), ('w4', 'Later', 'DELAYED', NULL, 'v1', 0, 'a', 1700000000000, 0, 32503680000000, NULL),
            ('w5', 'Failed', 'ERROR', 'local', 'v1', 1, NULL, 1700000000000, 1700000000000, NULL, '{\"message\": \"boom\"}'),
            ('w6', 'Dead', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED', 'local', 'v1', 101, NULL, 1700000000000, 1700000000000, NULL, NULL),
            ('w7', 'Done', 'SUCCESS', 'local', 'v1', 1, NULL, 1700000000000, 1700000000000, NULL, NULL);
        INSERT INTO dbos.application_versions VALUES ('v', '1', 'app');
        INSERT INTO dbos.workflow_schedules VALUES ('s1', 'nightly', 'Nightly', '0 3 * * *', 'PAUSED', 'a');";
    let json = assert_states(
        &format!("{DBOS}{rows}"),
        &[
            ("Pending", "lost", "presence", "when"),
            ("Due", "overdue", "none", ""),
            ("Again", "overdue", "none", ""),
            ("Later", "scheduled", "none", ""),
            ("Failed", "failed", "none", ""),
            ("Dead", "failed", "none", ""),
        ],
    )
    .await;
    let one = &json["adapters"][0];
    assert_eq!((&one["version"], &one["schedules"][0]["enabled"]), (&"migration 125".into(), &false.into()));
    let job = |name: &str| one["jobs"].as_array().unwrap().iter().find(|job| job["name"] == name).unwrap();
    assert_eq!(job("Pending")["advice"], "dbos workflow resume 'w1'");
    assert_eq!(job("Pending")["started_at"], "2023-11-14T22:13:20.000000+00:00");
    // The lock of the jobs that each application runs in addition to its workflows:
    // sha256("dbos.background_job.dbos.app.background_jobs").
    assert_eq!(
        (&one["leases"][0]["id"], &one["leases"][0]["state"]),
        (&"background jobs of app".into(), &"free".into())
    );
    let mut stage = stage(&format!("{DBOS}{rows}")).await;
    let process = stage.client().await;
    process
        .batch_execute(
            "SET application_name = 'dbos_transact'; SELECT pg_advisory_lock(-2951315222741241874)",
        )
        .await
        .unwrap();
    stage
        .poll_until("its lock to be held", |view| {
            view.adapters.leases.iter().any(|lease| lease.owner_pid.is_some())
        })
        .await;
    let locks = stage.screen_of('3', 120, 35);
    assert!(locks.contains("DBOS background job"), "its lock has its name: {locks}");
    let pending = |view: &View| job_states(view).into_iter().find(|row| row.0 == "Pending").unwrap();
    assert_eq!(pending(stage.view()).1, "unknown", "a process of its system is connected");
}

const OBAN: &str = include_str!("tables/oban_python.sql");
const DBOS: &str = include_str!("tables/dbos.sql");
const AIRFLOW: &str = include_str!("tables/airflow.sql");
const DJANGO: &str = include_str!("tables/django_tasks.sql");

/// A producer that may be missing only because a crash of the server has just emptied the list is not known
/// to have ended.
#[tokio::test]
async fn oban_in_python() {
    let rows = "
        INSERT INTO oban_jobs (worker, queue, state, attempt, max_attempts, attempted_at, attempted_by, scheduled_at, discarded_at, errors) VALUES
            ('Beats', 'q', 'executing', 1, 20, now(), '{a,00000000-0000-0000-0000-0000000000a1}', now(), NULL, '[]'),
            ('Slow', 'q', 'executing', 1, 20, now() - interval '6 minutes', '{a,00000000-0000-0000-0000-0000000000a1}', now(), NULL, '[]'),
            ('Silent', 'q', 'executing', 1, 20, now(), '{b,00000000-0000-0000-0000-0000000000a2}', now(), NULL, '[]'),
            ('Absent', 'q', 'executing', 1, 20, now() - interval '2 hours', '{c,00000000-0000-0000-0000-0000000000a3}', now(), NULL, '[]'),
            ('Due', 'q', 'available', 0, 20, NULL, '{}', now(), NULL, '[]'), ('Spent', 'q', 'available', 20, 20, NULL, '{}', now(), NULL, '[]'),
            ('Paused', 'p', 'available', 0, 20, NULL, '{}', now(), NULL, '[]'),
            ('Failed', 'q', 'discarded', 20, 20, now(), '{}', now(), now(), '[{\"error\": \"first\"}, {\"error\": \"boom\"}]');
        INSERT INTO oban_leaders VALUES ('Oban', 'a', now(), now() + interval '30 seconds');";
    let producers = |since: &str, other: &str| {
        format!(
            "INSERT INTO oban_producers (uuid, node, queue, meta, started_at, updated_at) VALUES
                ('00000000-0000-0000-0000-0000000000a1', 'a', 'q', '{{\"paused\": false}}', now() - interval '{since}', now()), ('00000000-0000-0000-0000-0000000000a2', 'b', 'q', '{{\"paused\": true}}', now(), now() - interval '61 s'),
                ('00000000-0000-0000-0000-0000000000a4', 'a', 'p', '{{\"paused\": true}}', now() - interval '{other}', now());"
        )
    };
    let others = [
        ("Beats", "running", "heartbeat", ""),
        ("Slow", "slow", "heartbeat", ""),
        ("Silent", "lost", "heartbeat", "when"),
        ("Due", "due", "none", ""),
        ("Spent", "retry", "none", ""),
        ("Paused", "paused", "none", ""),
        ("Failed", "failed", "none", ""),
    ];
    let absent = [("Absent", "lost", "absent", "when")];
    let json =
        assert_states(&format!("{OBAN}{rows}{}", producers("61 s", "1 s")), &[&others[..], &absent].concat())
            .await;
    let one = &json["adapters"][0];
    assert_eq!((&one["version"], &one["leases"][0]["held"]), (&"Python".into(), &true.into()));
    let job = |name: &str| one["jobs"].as_array().unwrap().iter().find(|job| job["name"] == name).unwrap();
    assert_eq!((&job("Failed")["error"], &job("Beats")["note"]), (&"boom".into(), &"a".into()));
    let absent = [("Absent", "late", "age", "never")];
    // A producer of another queue proves nothing for this one: this one may be served by an Elixir node,
    // which is never listed.
    for (since, other) in [("1 s", "1 s"), ("1 s", "61 s")] {
        assert_states(&format!("{OBAN}{rows}{}", producers(since, other)), &[&others[..], &absent].concat())
            .await;
    }
    // Both work on the tables of Elixir.
    let both = "ALTER TABLE oban_jobs ALTER errors DROP DEFAULT; ALTER TABLE oban_jobs ALTER errors TYPE jsonb[] USING '{}'; COMMENT ON TABLE oban_jobs IS '14';
        INSERT INTO oban_jobs (worker, state, discarded_at, errors) VALUES ('Failed', 'discarded', now(), ARRAY['{\"error\": \"first\"}', '{\"error\": \"boom\"}']::jsonb[]);";
    let json = assert_states(&format!("{OBAN}{both}"), &[("Failed", "failed", "none", "")]).await;
    let one = &json["adapters"][0];
    assert_eq!((&one["version"], &one["jobs"][0]["error"]), (&"migration 14, Python".into(), &"boom".into()));
}

#[tokio::test]
async fn oban_in_python_with_many_rows() {
    let many = "INSERT INTO oban_jobs (worker, state, attempted_at, attempted_by, discarded_at) SELECT 'J', (CASE WHEN n < 50 THEN 'executing' WHEN n < 30000 THEN 'available' WHEN n < 40000 THEN 'scheduled'
            WHEN n < 41000 THEN 'discarded' ELSE 'completed' END)::oban_job_state, now(), ARRAY['a', gen_random_uuid()::text], now() FROM generate_series(1, 150000) n;
        INSERT INTO oban_producers (uuid, node, queue) SELECT gen_random_uuid(), n, 'q' || n % 10 FROM generate_series(1, 500) n;";
    let first = |parts: &[Part]| parts.iter().map(|part| (*part, Some(1))).collect::<Vec<_>>();
    let all = first(&[
        Part::Workers,
        Part::Running,
        Part::Due,
        Part::Scheduled,
        Part::Failed,
        Part::Depth,
        Part::Paused,
    ]);
    are_read(&format!("{OBAN}{many}"), &all).await;
}

#[tokio::test]
async fn django_tasks() {
    let rows = "
        INSERT INTO django_tasks_database_dbtaskresult (task_path, status, run_after, started_at, worker_ids, finished_at, exception_class_path) VALUES
            ('Runs', 'RUNNING', '9999-01-01', now(), '[\"w1\", \"w2\"]', NULL, ''), ('Due', 'READY', '9999-01-01', NULL, '[]', NULL, ''), ('Due then', 'READY', now(), NULL, '[]', NULL, ''),
            ('Later', 'READY', now() + interval '1 hour', NULL, '[]', NULL, ''), ('Failed', 'FAILED', '9999-01-01', now(), '[\"w1\"]', now(), 'builtins.ValueError'),
            ('Done', 'SUCCESSFUL', '9999-01-01', now(), '[\"w1\"]', now(), '');";
    let json = assert_states(
        &format!("{DJANGO}{rows}"),
        &[
            ("Runs", "unknown", "none", ""),
            ("Due", "due", "none", ""),
            ("Due then", "due", "none", ""),
            ("Later", "scheduled", "none", ""),
            ("Failed", "failed", "none", ""),
        ],
    )
    .await;
    let job = |name: &str| {
        json["adapters"][0]["jobs"].as_array().unwrap().iter().find(|job| job["name"] == name).unwrap()
    };
    assert_eq!((&job("Runs")["worker"], &job("Runs")["attempt"]), (&"w2".into(), &2.into()));
    assert_eq!(job("Failed")["error"], "builtins.ValueError");
}

/// No index contains the running jobs: in a large table they are not read, but the due jobs are.
#[tokio::test]
async fn django_tasks_with_many_rows() {
    let many = "INSERT INTO django_tasks_database_dbtaskresult (task_path, status) SELECT 'J', CASE WHEN n < 2000 THEN 'READY' ELSE 'SUCCESSFUL' END FROM generate_series(1, 120000) n;
        ANALYZE django_tasks_database_dbtaskresult;";
    let read = [(Part::Running, None), (Part::Due, Some(1)), (Part::Failed, None), (Part::Depth, Some(1))];
    are_read(&format!("{DJANGO}{many}"), &read).await;
}

#[tokio::test]
async fn airflow() {
    let rows = "
        INSERT INTO job (job_type, state, start_date, latest_heartbeat, hostname) VALUES ('SchedulerJob', 'running', now(), now(), 'one'),
            ('SchedulerJob', 'running', now(), now() - interval '31 s', 'two'), ('SchedulerJob', 'success', now(), now() - interval '2 days', 'old');
        INSERT INTO task_instance (dag_id, run_id, task_id, map_index, state, try_number, start_date, last_heartbeat_at, queued_dttm, trigger_id) VALUES
            ('d', 'r', 'Beats', -1, 'running', 1, now(), now(), now(), NULL), ('d', 'r', 'Silent', 3, 'running', 1, now(), now() - interval '6 minutes', now(), NULL),
            ('d', 'r', 'Unseen', -1, 'running', 1, now(), NULL, now(), NULL), ('d', 'r', 'Queued', -1, 'queued', 0, NULL, NULL, now(), NULL),
            ('d', 'r', 'Scheduled', -1, 'scheduled', 0, NULL, NULL, NULL, NULL), ('d', 'r', 'Retry', -1, 'up_for_retry', 1, NULL, NULL, NULL, NULL),
            ('d', 'r', 'Deferred', -1, 'deferred', 1, now(), NULL, NULL, 5), ('d', 'r', 'Failed', -1, 'failed', 1, now(), NULL, NULL, NULL), ('d', 'r', 'Done', -1, 'success', 1, now(), NULL, NULL, NULL);";
    let json = assert_states(
        &format!("{AIRFLOW}{rows}"),
        &[
            ("d.Beats", "running", "heartbeat", ""),
            ("d.Silent", "lost", "heartbeat", "as"),
            ("d.Unseen", "unknown", "none", ""),
            ("d.Queued", "due", "none", ""),
            ("d.Scheduled", "due", "none", ""),
            ("d.Retry", "retry", "none", ""),
            ("d.Deferred", "blocked", "none", ""),
            ("d.Failed", "failed", "none", ""),
        ],
    )
    .await;
    let one = &json["adapters"][0];
    assert_eq!((&one["version"], one["workers"].as_array().unwrap().len()), (&"3".into(), 2));
    let silent = one["jobs"].as_array().unwrap().iter().find(|job| job["name"] == "d.Silent").unwrap();
    assert_eq!(silent["id"], "d r Silent 3");
}

#[tokio::test]
async fn dbos_and_airflow_with_many_rows() {
    let dbos = "INSERT INTO dbos.workflow_status (workflow_uuid, name, status, queue_name, created_at, updated_at, delay_until_epoch_ms) SELECT n, 'W', CASE WHEN n < 20 THEN 'PENDING'
            WHEN n < 30000 THEN 'ENQUEUED' WHEN n < 40000 THEN 'DELAYED' WHEN n < 41000 THEN 'ERROR' ELSE 'SUCCESS' END, CASE WHEN n < 30000 THEN 'q' || n % 5 END, n, n, n
        FROM generate_series(1, 150000) n;";
    let first = |parts: &[Part]| parts.iter().map(|part| (*part, Some(1))).collect::<Vec<_>>();
    let all = first(&[Part::Running, Part::Due, Part::Scheduled, Part::Failed, Part::Depth]);
    are_read(&format!("{DBOS}{dbos}"), &all).await;
    let airflow = "INSERT INTO task_instance (dag_id, run_id, task_id, state, last_heartbeat_at) SELECT 'd' || n % 50, n, 't', CASE WHEN n < 50 THEN 'running' WHEN n < 500 THEN 'queued' WHEN n < 600 THEN 'up_for_retry'
            WHEN n < 3000 THEN 'failed' WHEN n < 3100 THEN 'deferred' ELSE 'success' END, now() FROM generate_series(1, 150000) n;
        INSERT INTO job (job_type, state, latest_heartbeat) SELECT 'LocalTaskJob', 'success', now() - n * interval '1 min' FROM generate_series(1, 120000) n;";
    are_read(&format!("{AIRFLOW}{airflow}"), &[&all[..], &first(&[Part::Workers, Part::Blocked])].concat())
        .await;
}
