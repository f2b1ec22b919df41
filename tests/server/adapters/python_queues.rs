//! Rows of each state of Chancy, `PgQueuer`, dramatiq-pg and `APScheduler`, as they leave them.

use super::states::{assert_states, expected, job_states, stage};
use super::{Part, are_read, support};

const CHANCY: &str = include_str!("tables/chancy.sql");
const PGQUEUER: &str = include_str!("tables/pgqueuer.sql");
const DRAMATIQ: &str = include_str!("tables/dramatiq_pg.sql");
const APSCHEDULER: &str = include_str!("tables/apscheduler.sql");

#[tokio::test]
async fn chancy() {
    let rows = "
        INSERT INTO chancy_queues (name, state) VALUES ('q', 'active'), ('p', 'paused');
        INSERT INTO chancy_workers (worker_id, queues, last_seen, expires_at) VALUES ('w1', '{q}', now(), now() + interval '90 s'), ('w2', '{q}', now() - interval '91 s', now() - interval '1 s');
        INSERT INTO chancy_leader (worker_id, expires_at) VALUES ('w1', now() + interval '1 minute');
        INSERT INTO chancy_jobs (queue, func, state, taken_by, started_at, attempts, max_attempts, scheduled_at, completed_at, errors) VALUES
            ('q', 'Beats', 'running', 'w1', now(), 0, 3, now(), NULL, '[]'), ('q', 'Silent', 'running', 'w2', now() - interval '2 minutes', 0, 3, now(), NULL, '[]'),
            ('q', 'Absent', 'running', 'w3', now() - interval '2 minutes', 1, 3, now(), NULL, '[]'), ('q', 'Due', 'pending', NULL, NULL, 0, 1, now(), NULL, '[]'),
            ('q', 'Again', 'retrying', NULL, NULL, 1, 3, now(), NULL, '[{\"traceback\": \"boom\"}]'), ('q', 'Later', 'pending', NULL, NULL, 0, 1, now() + interval '1 hour', NULL, '[]'),
            ('p', 'Paused', 'pending', NULL, NULL, 0, 1, now(), NULL, '[]'), ('q', 'Failed', 'failed', NULL, NULL, 3, 3, now(), now(), '[{\"traceback\": \"boom\"}]'),
            ('q', 'Done', 'succeeded', NULL, NULL, 1, 1, now(), now(), '[]');";
    let json = assert_states(
        &format!("{CHANCY}{rows}"),
        &[
            ("Beats", "running", "heartbeat", ""),
            ("Silent", "lost", "heartbeat", "automatic"),
            ("Absent", "lost", "absent", "automatic"),
            ("Due", "due", "none", ""),
            ("Again", "retry", "none", ""),
            ("Later", "scheduled", "none", ""),
            ("Paused", "paused", "none", ""),
            ("Failed", "failed", "none", ""),
        ],
    )
    .await;
    let one = &json["adapters"][0];
    let job = |name: &str| one["jobs"].as_array().unwrap().iter().find(|job| job["name"] == name).unwrap();
    assert_eq!((&job("Absent")["attempt"], &job("Again")["attempt"]), (&2.into(), &1.into()));
    assert_eq!((&job("Failed")["error"], &one["leases"][0]["held"]), (&"boom".into(), &true.into()));
    let due: Vec<_> =
        one["depth"].as_array().unwrap().iter().filter(|depth| depth["state"] == "due").collect();
    assert_eq!(
        due.iter().map(|due| due["number"].as_i64().unwrap()).sum::<i64>(),
        3,
        "a message for later is not due"
    );
}

#[tokio::test]
async fn pgqueuer() {
    let rows = "
        INSERT INTO pgqueuer (priority, queue_manager_id, heartbeat, execute_after, status, entrypoint) VALUES
            (0, gen_random_uuid(), now(), now(), 'picked', 'Beats'), (0, gen_random_uuid(), now() - interval '31 s', now(), 'picked', 'Silent'),
            (0, NULL, now(), now(), 'queued', 'Due'), (0, NULL, now(), now() + interval '1 hour', 'queued', 'Later'), (0, NULL, now(), now(), 'failed', 'Failed');
        INSERT INTO pgqueuer_schedules (expression, entrypoint, next_run) VALUES ('0 3 * * *', 'nightly', now() + interval '1 hour');";
    let json = assert_states(
        &format!("{PGQUEUER}{rows}"),
        &[
            ("Beats", "running", "heartbeat", ""),
            ("Silent", "lost", "heartbeat", "automatic"),
            ("Due", "due", "none", ""),
            ("Later", "scheduled", "none", ""),
            ("Failed", "failed", "none", ""),
        ],
    )
    .await;
    assert_eq!(json["adapters"][0]["schedules"][0]["name"], "nightly");
}

/// The key of a message is half of a hash of its queue and id: a session holds it while it works.
#[tokio::test]
async fn dramatiq_pg() {
    // As `message_lock()` makes it: sha256(b"mail01d396f1-aa10-49c5-b4ac-abfd6f3a531b"), digits 24 to 40, less 2^63.
    const ID: &str = "01d396f1-aa10-49c5-b4ac-abfd6f3a531b";
    const KEY: i64 = -3_898_633_954_454_915_808;
    let rows = format!(
        "INSERT INTO dramatiq.queue (message_id, queue_name, state, message) VALUES ('{ID}', 'mail', 'consumed', '{{\"actor_name\": \"Held\", \"options\": {{\"retries\": 1}}}}');
         INSERT INTO dramatiq.queue (queue_name, state, message) VALUES ('mail', 'consumed', '{{\"actor_name\": \"Free\", \"options\": {{}}}}'), ('mail', 'queued', '{{\"actor_name\": \"Due\", \"options\": {{}}}}'),
            ('mail.DQ', 'queued', '{{\"actor_name\": \"Again\", \"options\": {{\"retries\": 1}}}}'), ('mail', 'rejected', '{{\"actor_name\": \"Failed\", \"options\": {{\"traceback\": \"boom\"}}}}'),
            ('mail', 'done', '{{\"actor_name\": \"Done\", \"options\": {{}}}}');"
    );
    let mut stage = stage(&format!("{DRAMATIQ}{rows}")).await;
    let worker = stage.client().await;
    worker.batch_execute(&format!("SELECT pg_advisory_lock({KEY})")).await.unwrap();
    let pid = support::pid(&worker).await;
    let view = stage.poll().await;
    let rows = [
        ("Held", "running", "lock", ""),
        ("Free", "orphan", "lock", "automatic"),
        ("Due", "due", "none", ""),
        ("Again", "retry", "none", ""),
        ("Failed", "failed", "none", ""),
    ];
    assert_eq!(job_states(&view), expected(&rows));
    let held = view.adapters.rows.iter().find(|row| row.job.name.as_deref() == Some("Held")).unwrap();
    assert_eq!((held.judged.pid, held.job.attempt), (Some(pid), Some(2)));
}

#[tokio::test]
async fn apscheduler() {
    let rows = "
        INSERT INTO schedules (id, task_id, paused, next_fire_time) VALUES ('nightly', 'Nightly', true, now() + interval '1 hour');
        INSERT INTO jobs (task_id, schedule_id, acquired_by, acquired_until) VALUES ('Runs', NULL, 'host-1-1', now() + interval '30 s'), ('Lost', 'nightly', 'host-2-2', now() - interval '1 s'),
            ('Due', NULL, NULL, NULL);";
    let json = assert_states(
        &format!("{APSCHEDULER}{rows}"),
        &[("Runs", "running", "lease", ""), ("Lost", "lost", "lease", "removed"), ("Due", "due", "none", "")],
    )
    .await;
    let one = &json["adapters"][0];
    assert_eq!((&one["title"], &one["schedules"][0]["enabled"]), (&"APScheduler 4".into(), &false.into()));
}

#[tokio::test]
async fn large_tables_are_read_by_the_expected_queries() {
    let first = |parts: &[Part]| parts.iter().map(|part| (*part, Some(1))).collect::<Vec<_>>();
    let chancy = "INSERT INTO chancy_queues (name) SELECT 'q' || n FROM generate_series(1, 5) n;
        INSERT INTO chancy_jobs (queue, func, state, scheduled_at) SELECT 'q' || n % 5 + 1, 'f', CASE WHEN n < 50 THEN 'running' WHEN n < 30000 THEN 'pending' WHEN n < 31000 THEN 'failed' ELSE 'succeeded' END,
            now() + (n % 3 - 1) * interval '1 hour' FROM generate_series(1, 150000) n;";
    are_read(&format!("{CHANCY}{chancy}"), &first(&[Part::Running, Part::Due, Part::Failed, Part::Depth]))
        .await;
    let pgqueuer = "INSERT INTO pgqueuer (priority, status, entrypoint, execute_after) SELECT 0, (CASE WHEN n < 50 THEN 'picked' ELSE 'queued' END)::pgqueuer_status, 'e' || n % 5,
            now() + (n % 3 - 1) * interval '1 hour' FROM generate_series(1, 150000) n;";
    are_read(&format!("{PGQUEUER}{pgqueuer}"), &first(&[Part::Running, Part::Due, Part::Depth])).await;
    let dramatiq = "INSERT INTO dramatiq.queue (state, message) SELECT (CASE WHEN n < 50 THEN 'consumed' WHEN n < 30000 THEN 'queued' WHEN n < 31000 THEN 'rejected' ELSE 'done' END)::dramatiq.state, '{}'
        FROM generate_series(1, 150000) n;";
    are_read(
        &format!("{DRAMATIQ}{dramatiq}"),
        &first(&[Part::Running, Part::Due, Part::Failed, Part::Depth]),
    )
    .await;
    let apscheduler = "INSERT INTO jobs (task_id, acquired_by, acquired_until) SELECT 't', CASE WHEN n < 50 THEN 's' END, now() FROM generate_series(1, 150000) n;";
    let read = [(Part::Running, Some(1)), (Part::Due, Some(2)), (Part::Depth, Some(1))];
    are_read(&format!("{APSCHEDULER}{apscheduler}"), &read).await;
}
