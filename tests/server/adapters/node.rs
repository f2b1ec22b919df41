//! Rows of each state of the systems of Node: pg-boss and Graphile Worker.

use locktop::model::view::View;

use super::states::{assert_states, expected, job_states, stage};
use super::{Part, all, are_read, database, info_of, one, run, server, support};

const PG_BOSS: &str = include_str!("tables/pg_boss.sql");
const PG_BOSS_10: &str = include_str!("tables/pg_boss_10.sql");
const GRAPHILE: &str = include_str!("tables/graphile_worker.sql");

#[tokio::test]
async fn pg_boss() {
    let rows = "
        INSERT INTO pgboss.queue (name, ready_count, deferred_count, active_count, failed_count) VALUES ('q', 20000, 3, 2, 1), ('big', 0, 0, 1, 0);
        INSERT INTO pgboss.schedule (name, key, cron) VALUES ('q', '', '0 3 * * *'), ('q', 'b', '0 4 * * *');
        INSERT INTO pgboss.instance (id, name, host, pid, version, heartbeat_seconds, workers, heartbeat_on) VALUES
            ('00000000-0000-0000-0000-0000000000b1', NULL, 'web', 7, '12.38.0', 30, '[{\"queue\": \"q\", \"localConcurrency\": 2, \"active\": 1}]', now()),
            ('00000000-0000-0000-0000-0000000000b2', 'gone', 'web', 8, '12.38.0', 30, '[]', now() - interval '91 s');
        INSERT INTO pgboss.job (name, state, singleton_key, started_on, heartbeat_on, heartbeat_seconds) VALUES
            ('q', 'active', 'young', now(), NULL, NULL), ('q', 'active', 'over', now() - interval '16 minutes', NULL, NULL),
            ('big', 'active', 'beats', now() - interval '1 minute', now(), 30), ('big', 'active', 'silent', now() - interval '1 minute', now() - interval '31 s', 30);
        INSERT INTO pgboss.job (name, state, singleton_key, start_after, retry_count, blocked, pending_dependencies, completed_on, output) VALUES
            ('q', 'created', 'due', now(), 0, false, 0, NULL, NULL), ('big', 'retry', 'again', now(), 1, false, 0, NULL, '{\"message\": \"no\"}'),
            ('q', 'created', 'later', now() + interval '1 hour', 0, false, 0, NULL, NULL), ('q', 'retry', 'later again', now() + interval '1 hour', 1, false, 0, NULL, NULL),
            ('q', 'created', 'blocked', now(), 0, true, 2, NULL, NULL), ('q', 'failed', 'failed', now(), 2, false, 0, now(), '{\"value\": {\"message\": \"job timed out\"}}'),
            ('q', 'completed', 'done', now(), 0, false, 0, now(), NULL);";
    let lease = [
        ("q", "running", "lease", ""),
        ("q", "lost", "lease", "as"),
        ("big", "running", "lease", ""),
        ("big", "lost", "lease", "as"),
    ];
    let rest = [
        ("q", "due", "none", ""),
        ("big", "retry", "none", ""),
        ("q", "scheduled", "none", ""),
        ("q", "retry", "none", ""),
        ("q", "blocked", "none", ""),
        ("q", "failed", "none", ""),
    ];
    let json = assert_states(&format!("{PG_BOSS}{rows}"), &[&lease[..], &rest].concat()).await;
    let one = &json["adapters"][0];
    assert_eq!((&one["version"], &one["schema"]), (&"schema 46".into(), &"pgboss".into()));
    let workers = one["workers"].as_array().unwrap();
    assert_eq!((&workers[0]["name"], &workers[0]["queues"]), (&"web:7".into(), &"q".into()), "{workers:?}");
    let depth = &one["depth"].as_array().unwrap().iter().find(|depth| depth["number"] == 20000).unwrap();
    assert_eq!(
        (&depth["queue"], &depth["state"], &depth["is_estimate"]),
        (&"q".into(), &"due".into(), &true.into())
    );
    let failed = one["jobs"].as_array().unwrap().iter().find(|job| job["state"] == "failed").unwrap();
    assert_eq!(failed["error"], "job timed out");
    let again = one["jobs"].as_array().unwrap().iter().find(|job| job["error"] == "no").unwrap();
    assert_eq!((&again["state"], &again["attempt"]), (&"retry".into(), &2.into()), "of two attempts");
    let schedules: Vec<_> =
        one["schedules"].as_array().unwrap().iter().map(|schedule| &schedule["id"]).collect();
    assert_eq!(schedules, ["q", "q b"], "a queue may have several");
}

/// A session that has locked a part makes no poll wait: the poll reports the lock.
#[tokio::test]
async fn a_locked_part_is_left_in_peace() {
    let rows = "INSERT INTO pgboss.queue (name) VALUES ('q'); INSERT INTO pgboss.job (name, state, started_on) VALUES ('q', 'active', now());";
    let mut stage = stage(&format!("{PG_BOSS}{rows}")).await;
    assert_eq!(stage.poll().await.adapters.rows.len(), 1);
    let other = stage.client().await;
    other.batch_execute("BEGIN; LOCK TABLE pgboss.jfeed IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let error = |view: &View| {
        let rows = &view.snapshot.as_ref().unwrap().adapters[0];
        rows.jobs[&Part::Running].error.clone()
    };
    stage.poll_until("the part not to be read", |view| error(view).is_some()).await;
    let reason = error(stage.view()).unwrap();
    assert!(reason.contains("is locked"), "{reason}");
    other.batch_execute("ROLLBACK").await.unwrap();
    stage.poll_until("the part to be read again", |view| error(view).is_none()).await;
}

/// Before schema 46 no index matches the active jobs: of a large table they are not read, and the reason is
/// reported.
#[tokio::test]
async fn pg_boss_10_with_few_and_with_many_jobs() {
    let rows = "
        INSERT INTO boss.queue (name) VALUES ('q'), ('big');
        INSERT INTO boss.job (name, state, started_on) VALUES ('q', 'active', now()), ('big', 'active', now() - interval '16 minutes');
        INSERT INTO boss.job (name, state, start_after) VALUES ('q', 'created', now()), ('big', 'retry', now()), ('q', 'created', now() + interval '1 hour');
        INSERT INTO boss.job (name, state, completed_on) VALUES ('q', 'failed', now()), ('q', 'completed', now());";
    let expected = [
        ("q", "running", "lease", ""),
        ("big", "lost", "lease", "as"),
        ("q", "due", "none", ""),
        ("big", "retry", "none", ""),
        ("q", "scheduled", "none", ""),
        ("q", "failed", "none", ""),
    ];
    assert_states(&format!("{PG_BOSS_10}{rows}"), &expected).await;
    let many = "INSERT INTO boss.job (name, state, completed_on) SELECT 'big', 'completed', now() FROM generate_series(1, 120000); ANALYZE boss.job;";
    let read = [
        (Part::Running, None),
        (Part::Due, Some(3)),
        (Part::Scheduled, Some(2)),
        (Part::Failed, None),
        (Part::Depth, Some(3)),
    ];
    are_read(&format!("{PG_BOSS_10}{rows}{many}"), &read).await;
}

#[tokio::test]
async fn pg_boss_with_many_jobs() {
    let many = "INSERT INTO pgboss.queue (name) VALUES ('q'), ('r'), ('big');
        INSERT INTO pgboss.job (name, state, start_after, blocked) SELECT CASE WHEN n % 2 = 0 THEN 'q' WHEN n % 3 = 0 THEN 'r' ELSE 'big' END, (CASE WHEN n < 100 THEN 'active' WHEN n < 30000 THEN 'created'
            WHEN n < 31000 THEN 'retry' WHEN n < 32000 THEN 'failed' ELSE 'completed' END)::pgboss.job_state, now() + (n % 3 - 1) * interval '1 hour', n BETWEEN 20000 AND 20100
        FROM generate_series(1, 230000) n;";
    let parts = [Part::Running, Part::Due, Part::Scheduled, Part::Blocked, Part::Failed, Part::Depth];
    are_read(&format!("{PG_BOSS}{many}"), &parts.map(|part| (part, Some(1)))).await;
}

const GRAPHILE_ROWS: &str = "
    INSERT INTO graphile_worker._private_tasks VALUES (1, 'Young'), (2, 'Late'), (3, 'Due'), (4, 'Blocked'), (5, 'Again'), (6, 'Later'), (7, 'Failed');
    INSERT INTO graphile_worker._private_job_queues VALUES (1, 'serial', now() - interval '5 hours', 'worker-b'), (2, 'free', NULL, NULL);
    INSERT INTO graphile_worker._private_jobs (id, task_id, job_queue_id, attempts, locked_at, locked_by, run_at, last_error) VALUES
        (1, 1, NULL, 1, now(), 'worker-a', now(), NULL), (2, 2, 1, 1, now() - interval '5 hours', 'worker-b', now(), NULL), (3, 3, 2, 0, NULL, NULL, now(), NULL),
        (4, 4, 1, 0, NULL, NULL, now(), NULL), (5, 5, NULL, 2, NULL, NULL, now(), 'no'), (6, 6, NULL, 0, NULL, NULL, now() + interval '1 hour', NULL),
        (7, 7, NULL, 25, NULL, NULL, now(), 'boom');
    INSERT INTO graphile_worker._private_known_crontabs VALUES ('nightly', now(), now());";

#[tokio::test]
async fn graphile_worker() {
    let mut stage = stage(&format!("{GRAPHILE}{GRAPHILE_ROWS}")).await;
    let view = stage.poll().await;
    let rows = [
        ("Young", "lost", "presence", "automatic"),
        ("Late", "lost", "presence", "automatic"),
        ("Due", "due", "none", ""),
        ("Blocked", "blocked", "none", ""),
        ("Again", "retry", "none", ""),
        ("Later", "scheduled", "none", ""),
        ("Failed", "failed", "none", ""),
    ];
    assert_eq!(job_states(&view), expected(&rows));
    let row =
        |name: &str| view.adapters.rows.iter().find(|row| row.job.name.as_deref() == Some(name)).unwrap();
    assert_eq!(row("Blocked").job.blocked_by.as_deref(), Some("its queue, which worker-b has locked"));
    assert_eq!(
        row("Late").advice.as_deref(),
        Some("SELECT graphile_worker.force_unlock_workers(ARRAY['worker-b'])")
    );
    let json = stage.json();
    let lease = &json["adapters"][0]["leases"][0];
    assert_eq!(
        (&lease["id"], &lease["owner"], &lease["state"]),
        (&"queue serial".into(), &"worker-b".into(), &"over".into())
    );
    assert_eq!(lease["held"], false, "as its state shows");
    assert_eq!(json["adapters"][0]["version"], "migration 20");
}

/// Its tables have row security without a policy: another role would see no jobs, and no error.
#[tokio::test]
async fn graphile_worker_is_refused_to_others() {
    let info = database(&format!("{GRAPHILE}{GRAPHILE_ROWS}")).await;
    run(&support::conninfo(server().await), "CREATE ROLE graphile_reader LOGIN IN ROLE pg_read_all_data")
        .await;
    let refused = one(&info_of(&info, "graphile_reader").await, &all()).await.refused.unwrap();
    assert!(refused.starts_with("row security is in force on graphile_worker._private_job"), "{refused}");
}

#[tokio::test]
async fn graphile_worker_with_many_jobs_is_read_at_both_ends() {
    let many = "INSERT INTO graphile_worker._private_jobs (id, task_id) SELECT n, 3 FROM generate_series(1000, 150000) n; ANALYZE graphile_worker._private_jobs;";
    let read = [
        (Part::Running, Some(2)),
        (Part::Due, Some(1)),
        (Part::Scheduled, Some(1)),
        (Part::Failed, Some(2)),
        (Part::Depth, Some(1)),
    ];
    are_read(&format!("{GRAPHILE}{GRAPHILE_ROWS}{many}"), &read).await;
}
