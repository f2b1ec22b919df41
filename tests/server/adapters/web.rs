//! Rows of each state of Laravel, Symfony Messenger and Odoo's `queue_job`, as their statements leave them.

use super::states::{assert_states, expected, job_states, stage};
use super::{Part, all, are_read, support};
use locktop::model::adapter::JobState;
use locktop::model::lease::LeaseState;
use locktop::model::view::View;

const LARAVEL: &str = include_str!("tables/laravel.sql");
const SYMFONY: &str = include_str!("tables/symfony_messenger.sql");
const ODOO: &str = include_str!("tables/odoo_queue_job.sql");

/// `DatabaseQueue` inserts, reserves and releases a row; its payload is JSON.
#[tokio::test]
async fn laravel() {
    let payload = |name: &str| {
        format!(
            r#"{{"uuid":"u","displayName":"App\\Jobs\\{name}","job":"Illuminate\\Queue\\CallQueuedHandler@call","maxTries":3,"timeout":null}}"#
        )
    };
    let jobs: Vec<String> = [
        ("Young", 1, "now()", "now()"),
        ("Close", 1, "now() - interval '75 s'", "now()"),
        ("Lost", 2, "now() - interval '91 s'", "now()"),
        ("Due", 0, "NULL::timestamptz", "now()"),
        ("Again", 2, "NULL::timestamptz", "now()"),
        ("Later", 0, "NULL::timestamptz", "now() + interval '1 hour'"),
    ]
    .map(|(name, attempts, reserved, available)| {
        format!("('default', '{}', {attempts}, extract(epoch FROM {reserved}), floor(extract(epoch FROM {available})), extract(epoch FROM now()))", payload(name))
    })
    .to_vec();
    let rows = format!(
        "INSERT INTO jobs (queue, payload, attempts, reserved_at, available_at, created_at) VALUES {};
         INSERT INTO failed_jobs (uuid, connection, queue, payload, exception) VALUES ('5f0e', 'database', 'default', '{}', 'RuntimeException: boom in /app/Mail.php:7');
         INSERT INTO job_batches (id, name, total_jobs, pending_jobs, failed_jobs, failed_job_ids, created_at, finished_at) VALUES
            ('b1', 'import', 10, 4, 1, '[]', extract(epoch FROM now()), NULL), ('b2', 'over', 2, 0, 0, '[]', extract(epoch FROM now()), extract(epoch FROM now()));",
        jobs.join(", "),
        payload("Failed"),
    );
    let json = assert_states(
        &format!("{LARAVEL}{rows}"),
        &[
            ("App\\Jobs\\Young", "running", "lease", ""),
            ("App\\Jobs\\Close", "running", "lease", ""),
            ("App\\Jobs\\Lost", "lost", "lease", "automatic"),
            ("App\\Jobs\\Due", "due", "none", ""),
            ("App\\Jobs\\Again", "retry", "none", ""),
            ("App\\Jobs\\Later", "scheduled", "none", ""),
            ("App\\Jobs\\Failed", "failed", "none", ""),
            ("batch import", "blocked", "none", ""),
        ],
    )
    .await;
    let one = &json["adapters"][0];
    let job = |name: &str| one["jobs"].as_array().unwrap().iter().find(|job| job["name"] == name).unwrap();
    assert_eq!(job("App\\Jobs\\Failed")["advice"], "php artisan queue:retry 5f0e");
    assert_eq!(job("batch import")["blocked_by"], "3 of its 10 jobs");
    assert_eq!(
        (&job("App\\Jobs\\Lost")["attempt"], &job("App\\Jobs\\Lost")["max_attempts"]),
        (&2.into(), &3.into())
    );
    let close = json["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|finding| finding["check"] == "adapter_limit")
        .unwrap();
    let summary = close["summary"].as_str().unwrap();
    assert!(
        summary.starts_with("Laravel: job App\\Jobs\\Close has run for 1m1")
            && summary.ends_with(" of 1m30s"),
        "{summary}"
    );
}

/// `Connection` of its Doctrine transport marks the messages that it hands out with `delivered_at`.
#[tokio::test]
async fn symfony_messenger() {
    // As PhpSerializer writes it: serialize() and addslashes().
    let body = |name: &str| {
        format!(
            r#"O:36:\"Symfony\\Component\\Messenger\\Envelope\":2:{{s:44:\"\0Symfony\\Component\\Messenger\\Envelope\0stamps\";a:0:{{}}s:45:\"\0Symfony\\Component\\Messenger\\Envelope\0message\";O:20:\"App\\Message\\{name}\":0:{{}}}}"#
        )
    };
    let message = |name: &str, queue: &str, available: &str, delivered: &str| {
        format!(
            "('{}', '[]', '{queue}', now() AT TIME ZONE 'UTC', (now() {available}) AT TIME ZONE 'UTC', (now() {delivered}) AT TIME ZONE 'UTC')",
            body(name)
        )
    };
    // Its times are rounded to whole seconds: a message due now may become due half a second later.
    let rows = format!(
        "INSERT INTO messenger_messages (body, headers, queue_name, created_at, available_at, delivered_at) VALUES {}, {}, {}, {}, {};
         INSERT INTO messenger_messages (body, headers, queue_name, created_at, available_at) VALUES
            ('{{}}', '{{\"type\":\"App\\\\Message\\\\Json\",\"Content-Type\":\"application/json\"}}', 'default', now() AT TIME ZONE 'UTC', (now() - interval '2 s') AT TIME ZONE 'UTC')",
        message("Runs", "default", "", "- interval '5 minutes'"),
        message("Lost", "default", "", "- interval '61 minutes'"),
        message("Due", "async", "- interval '2 s'", "+ NULL::interval"),
        message("Later", "default", "+ interval '1 hour'", "+ NULL::interval"),
        message("Failed", "failed", "", "+ NULL::interval"),
    );
    let mut stage = stage(&format!("{SYMFONY}{rows}")).await;
    let rows = [
        ("App\\Message\\Runs", "running", "lease", ""),
        ("App\\Message\\Lost", "lost", "lease", "automatic"),
        ("App\\Message\\Due", "due", "none", ""),
        ("App\\Message\\Json", "due", "none", ""),
        ("App\\Message\\Later", "scheduled", "none", ""),
        ("App\\Message\\Failed", "failed", "none", ""),
    ];
    assert_eq!(job_states(&*stage.poll().await), expected(&rows));
    // A job that failed for good is not due.
    support::wait_until("two due messages", async || {
        stage.poll().await;
        let json = stage.json();
        let depth = json["adapters"][0]["depth"].as_array().unwrap().clone();
        let due = depth.iter().filter(|depth| depth["state"] == "due");
        due.map(|depth| depth["number"].as_i64().unwrap()).sum::<i64>() == 2
    })
    .await;
}

/// A job that runs has its row of `queue_job_lock` locked, by the transaction that works on it.
#[tokio::test]
async fn odoo_queue_job() {
    let job = |id: i32, name: &str, state: &str, more: &str| {
        format!(
            "({id}, 'u{id}', '{state}', 'sale.order', '{name}', 'root', 10, 0, 5, now() AT TIME ZONE 'UTC', (now() - interval '1 minute') AT TIME ZONE 'UTC', {more})"
        )
    };
    let rows = format!(
        "INSERT INTO queue_job (id, uuid, state, model_name, method_name, channel, priority, retry, max_retries, date_created, date_enqueued, date_started, eta, exc_message) VALUES {};
         UPDATE queue_job SET retry = 1 WHERE method_name = 'again';
         INSERT INTO queue_job_lock (id, queue_job_id) SELECT id, id FROM queue_job WHERE state = 'started';
         INSERT INTO queue_job_channel (name, complete_name, paused) VALUES ('root', 'root', false);",
        [
            job(1, "held", "started", "now() AT TIME ZONE 'UTC', NULL, NULL"),
            job(2, "killed", "started", "now() AT TIME ZONE 'UTC', NULL, NULL"),
            job(3, "handed", "enqueued", "NULL, NULL, NULL"),
            job(4, "due", "pending", "NULL, NULL, NULL"),
            job(5, "again", "pending", "NULL, NULL, NULL"),
            job(6, "later", "pending", "NULL, (now() + interval '1 hour') AT TIME ZONE 'UTC', NULL"),
            job(7, "waits", "wait_dependencies", "NULL, NULL, NULL"),
            job(8, "failed", "failed", "NULL, NULL, 'boom'"),
            job(9, "done", "done", "NULL, NULL, NULL"),
        ]
        .join(", "),
    );
    let mut stage = stage(&format!("{ODOO}{rows}")).await;
    // lock() in job.py.
    let lock = |id: i32| {
        format!(
            "BEGIN; SELECT * FROM queue_job_lock WHERE queue_job_id IN (SELECT id FROM queue_job WHERE uuid = 'u{id}' AND state = 'started') FOR NO KEY UPDATE SKIP LOCKED"
        )
    };
    let (worker, killed, runner) = (stage.client().await, stage.client().await, stage.client().await);
    worker.batch_execute(&lock(1)).await.unwrap();
    killed.batch_execute(&lock(2)).await.unwrap();
    runner.batch_execute("SELECT pg_try_advisory_lock(2293787760715711918)").await.unwrap();
    let (pid, runs_on) = (support::pid(&worker).await, support::pid(&runner).await);
    let both_run = |view: &View| view.adapters.count(JobState::Running) == 2;
    stage.poll_until("both to run", both_run).await;
    // The trace of its transaction in the row is no lock.
    let killed_pid = support::pid(&killed).await;
    runner.execute("SELECT pg_terminate_backend($1)", &[&killed_pid]).await.unwrap();
    stage.poll_until("one to be killed", |view| view.adapters.count(JobState::Running) == 1).await;
    let mut rows = vec![
        ("sale.order.held", "running", "session", ""),
        ("sale.order.killed", "orphan", "session", "automatic"),
        ("sale.order.handed", "orphan", "session", "automatic"),
        ("sale.order.due", "due", "none", ""),
        ("sale.order.again", "retry", "none", ""),
        ("sale.order.later", "scheduled", "none", ""),
        ("sale.order.waits", "blocked", "none", ""),
        ("sale.order.failed", "failed", "none", ""),
    ];
    let view = stage.poll().await;
    assert_eq!(job_states(&view), expected(&rows));
    let held = view.adapters.rows.iter().find(|row| row.judged.pid == Some(pid)).unwrap();
    assert_eq!(held.job.id.to_string(), "u1");
    let json = stage.json();
    let one = &json["adapters"][0];
    let lease = &one["leases"][0];
    assert_eq!(
        (&lease["id"], &lease["state"], &lease["session_pid"]),
        (&"jobrunner".into(), &"held".into(), &runs_on.into())
    );
    assert_eq!(one["version"], "with queue_job_lock");
    let locks = stage.screen_of('3', 120, 35);
    assert!(locks.contains("Odoo queue_job jobr"), "its lock has its name: {locks}");
    drop(runner);
    let is_free = |view: &View| view.adapters.leases.iter().all(|lease| lease.state == LeaseState::Free);
    stage.poll_until("the lock of the runner to be free", is_free).await;
    // Versions before 18 have no such row: it is not known whether a job runs.
    worker.batch_execute("ROLLBACK; DROP TABLE queue_job_lock").await.unwrap();
    stage.adapters(all()).await;
    stage.poll().await;
    for row in &mut rows[..3] {
        *row = (row.0, "unknown", "none", "");
    }
    assert_eq!(job_states(&*stage.poll().await), expected(&rows));
}

#[tokio::test]
async fn large_tables_are_read_by_the_expected_queries() {
    let laravel = "INSERT INTO jobs (queue, payload, attempts, reserved_at, available_at, created_at) SELECT 'q' || n % 5, '{}', 0, CASE WHEN n < 20 THEN extract(epoch FROM now()) END, extract(epoch FROM now()) - n, 0
        FROM generate_series(1, 150000) n;";
    let read =
        [(Part::Running, Some(2)), (Part::Due, Some(2)), (Part::Depth, Some(3)), (Part::Failed, Some(1))];
    are_read(&format!("{LARAVEL}{laravel}"), &read).await;
    let symfony = "INSERT INTO messenger_messages (body, headers, queue_name, created_at, available_at, delivered_at) SELECT '', '[]', 'q' || n % 5, now(), now() - n * interval '1 s', CASE WHEN n < 20 THEN now() END
        FROM generate_series(1, 150000) n;";
    let first = |parts: &[Part]| parts.iter().map(|part| (*part, Some(1))).collect::<Vec<_>>();
    are_read(
        &format!("{SYMFONY}{symfony}"),
        &first(&[Part::Running, Part::Due, Part::Scheduled, Part::Failed]),
    )
    .await;
    let odoo = "INSERT INTO queue_job (uuid, state, channel) SELECT n, CASE WHEN n < 20 THEN 'started' WHEN n < 3000 THEN 'pending' WHEN n < 3500 THEN 'failed' ELSE 'done' END, 'root' FROM generate_series(1, 150000) n;
        INSERT INTO queue_job_lock (id, queue_job_id) SELECT id, id FROM queue_job;";
    are_read(
        &format!("{ODOO}{odoo}"),
        &first(&[Part::Running, Part::Due, Part::Blocked, Part::Failed, Part::Depth]),
    )
    .await;
}
