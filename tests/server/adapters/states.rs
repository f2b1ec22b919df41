//! Rows of each state, and what is reported: the state, its proof, and the automatic recovery.

use locktop::model::view::View;
use serde_json::{Value, json};

use super::stage::Stage;
use super::{GOOD_JOB, RIVER, SOLID_QUEUE, all, support};

/// A database with these tables, and a session that reads them at its second poll.
pub(super) async fn stage(ddl: &str) -> Stage {
    let mut stage = Stage::on(super::server().await, ddl).await;
    stage.adapters(all()).await;
    assert!(stage.poll().await.adapters.rows.is_empty(), "the first poll does not wait for them");
    stage
}

/// The name of each job, its state, proof, and the first word about its recovery.
pub(super) fn job_states(view: &View) -> Vec<(String, &'static str, &'static str, String)> {
    let mut rows: Vec<_> = view
        .adapters
        .rows
        .iter()
        .map(|row| {
            let name = row.job.name.as_deref().unwrap_or_default().to_owned();
            let back = row.comes_back.as_deref().unwrap_or_default();
            let back = back.split([' ', ':', ',']).next().unwrap_or_default().to_owned();
            (name, row.judged.state.as_str(), row.judged.proof.as_str(), back)
        })
        .collect();
    rows.sort();
    rows
}

pub(super) fn expected(
    rows: &[(&str, &'static str, &'static str, &str)],
) -> Vec<(String, &'static str, &'static str, String)> {
    let mut rows: Vec<_> = rows
        .iter()
        .map(|(name, state, proof, back)| ((*name).to_owned(), *state, *proof, (*back).to_owned()))
        .collect();
    rows.sort();
    rows
}

pub(super) async fn assert_states(ddl: &str, rows: &[(&str, &'static str, &'static str, &str)]) -> Value {
    let mut stage = stage(ddl).await;
    assert_eq!(job_states(&*stage.poll().await), expected(rows));
    let json = stage.json();
    for installation in json["adapters"].as_array().unwrap() {
        for (part, section) in installation["sections"].as_object().unwrap() {
            assert!(section["error"].is_null() && section["taken_at"].is_string(), "{part}: {section}");
        }
    }
    json
}

/// The key that `GoodJob` makes of a table and an id.
const KEY: &str = "('x' || substr(md5('good_jobs-' || id::text), 1, 16))::bit(64)::bigint";

#[tokio::test]
async fn good_job() {
    let rows = "
        INSERT INTO good_job_processes (id, state, updated_at, lock_type) VALUES
            ('00000000-0000-0000-0000-0000000000a1', '{\"hostname\": \"web\", \"pid\": 1}', now(), NULL),
            ('00000000-0000-0000-0000-0000000000a2', '{\"hostname\": \"web\", \"pid\": 2}', now() - interval '6 minutes', NULL);
        INSERT INTO good_jobs (job_class, queue_name, executions_count, scheduled_at, performed_at, finished_at, error, locked_by_id, lock_type) VALUES
            ('Held', 'q', 1, now(), now(), NULL, NULL, '00000000-0000-0000-0000-0000000000a1', 0),
            ('Free', 'q', 1, now(), now(), NULL, NULL, '00000000-0000-0000-0000-0000000000a1', NULL),
            ('Beats', 'q', 1, now(), now(), NULL, NULL, '00000000-0000-0000-0000-0000000000a1', 1),
            ('Silent', 'q', 1, now(), now(), NULL, NULL, '00000000-0000-0000-0000-0000000000a2', 1),
            ('Absent', 'q', 1, now(), now() - interval '1 minute', NULL, NULL, '00000000-0000-0000-0000-0000000000a3', 1),
            ('Due', 'q', 0, now(), NULL, NULL, NULL, NULL, NULL),
            ('Again', 'q', 1, now(), now(), NULL, 'no', NULL, NULL),
            ('Overdue', 'q', 0, now() - interval '1 hour', NULL, NULL, NULL, NULL, NULL),
            ('Paused', 'p', 0, now(), NULL, NULL, NULL, NULL, NULL),
            ('Failed', 'q', 5, now(), now(), now(), 'boom', NULL, NULL),
            ('Done', 'q', 1, now(), now(), now(), NULL, NULL, NULL);
        INSERT INTO good_jobs (queue_name, scheduled_at, serialized_params) VALUES
            ('q', now() + interval '1 hour', '{\"job_class\": \"Later\", \"executions\": 0}');
        UPDATE good_jobs SET serialized_params = jsonb_build_object('job_class', job_class) WHERE job_class IS NOT NULL;
        INSERT INTO good_job_settings (key, value) VALUES ('pauses', '{\"queues\": [\"p\"]}');";
    let mut stage = stage(&format!("{GOOD_JOB}{rows}")).await;
    let worker = stage.client().await;
    let lock = format!("SELECT pg_advisory_lock({KEY}) FROM good_jobs WHERE job_class = 'Held'");
    worker.batch_execute(&lock).await.unwrap();
    let pid = support::pid(&worker).await;
    let view = stage.poll().await;
    let row =
        |name: &str| view.adapters.rows.iter().find(|row| row.job.name.as_deref() == Some(name)).unwrap();
    let rows = [
        ("Held", "running", "lock", ""),
        ("Free", "orphan", "lock", "automatic"),
        ("Beats", "running", "heartbeat", ""),
        ("Silent", "lost", "heartbeat", "automatic"),
        ("Absent", "lost", "absent", "never"),
        ("Due", "due", "none", ""),
        ("Again", "retry", "none", ""),
        ("Overdue", "overdue", "none", ""),
        ("Paused", "paused", "none", ""),
        ("Later", "scheduled", "none", ""),
        ("Failed", "failed", "none", ""),
    ];
    assert_eq!(job_states(&view), expected(&rows));
    assert_eq!(row("Held").judged.pid, Some(pid));
    assert_eq!(row("Silent").worker.as_deref(), Some("web:2"));
    assert_eq!(row("Absent").worker.as_deref(), Some("00000000-0000-0000-0000-0000000000a3"));
    assert_eq!(
        row("Failed").advice.as_deref().unwrap(),
        format!("GoodJob::Job.find('{}').retry_job", row("Failed").job.id)
    );
    assert_eq!(view.adapters.rows[0].job.name.as_deref(), Some("Free"), "the worst is first");
    let locks = stage.screen_of('3', 120, 35);
    assert!(locks.contains("GoodJob Held "), "its lock has its name: {locks}");
    let screen = stage.screen_of('4', 120, 35);
    for words in
        ["Jobs · GoodJob · 3 lost", "RECOVERY", "orphan    Free", "automatic: strategy advisory", "web:2"]
    {
        assert!(screen.contains(words), "{words} in {screen}");
    }
    let detail = stage.screen_after("4<enter>", 120, 35);
    assert_eq!(stage.copied_after("4y").as_deref(), Some("GoodJob::Process.cleanup"));
    for words in ["Job of GoodJob", "recovery", "GoodJob::Process.cleanup", "its session ended"] {
        assert!(detail.contains(words), "{words} in {detail}");
    }
    let finding = view.findings.iter().find(|finding| finding.check == "adapter_job").unwrap();
    assert_eq!(&*finding.summary, "GoodJob: 3 jobs are lost, including Free (orphan by lock)");
    let json = stage.json();
    let one = &json["adapters"][0];
    assert_eq!((&one["title"], &one["version"]), (&"GoodJob".into(), &"4.15 or later".into()));
    assert_eq!(one["workers"].as_array().unwrap().len(), 2);
    assert_eq!(one["paused"][0]["queue"], "p");
    let depth = one["depth"]
        .as_array()
        .unwrap()
        .iter()
        .find(|depth| depth["state"] == "due" && depth["queue"] == "q")
        .unwrap();
    assert_eq!(
        (&depth["number"], &depth["is_more"], &depth["is_estimate"]),
        (&3.into(), &false.into(), &false.into()),
        "a running job is not due"
    );
}

#[tokio::test]
async fn solid_queue() {
    let rows = "
        INSERT INTO solid_queue_processes (id, kind, last_heartbeat_at, pid, hostname) VALUES
            (1, 'Worker', now(), 11, 'web'), (2, 'Worker', now() - interval '6 minutes', 12, 'web');
        INSERT INTO solid_queue_jobs (id, queue_name, class_name) VALUES
            (1, 'q', 'Beats'), (2, 'q', 'Silent'), (3, 'q', 'Absent'), (4, 'q', 'Nobody'), (5, 'q', 'Due'), (6, 'q', 'Later'), (7, 'q', 'Asleep'),
            (8, 'q', 'Blocked'), (9, 'q', 'Failed'), (10, 'q', 'Done'), (11, 'p', 'Paused');
        INSERT INTO solid_queue_claimed_executions (job_id, process_id, created_at) VALUES (1, 1, now()), (2, 2, now()), (3, 99, now() - interval '1 minute'), (4, NULL, now());
        INSERT INTO solid_queue_ready_executions (job_id, queue_name) VALUES (5, 'q'), (11, 'p');
        INSERT INTO solid_queue_scheduled_executions (job_id, queue_name, scheduled_at) VALUES
            (6, 'q', now() + interval '1 hour'), (7, 'q', now() - interval '1 hour');
        INSERT INTO solid_queue_blocked_executions (job_id, queue_name, concurrency_key, expires_at) VALUES (8, 'q', 'k', now() + interval '1 hour');
        INSERT INTO solid_queue_failed_executions (job_id, error) VALUES (9, 'boom');
        INSERT INTO solid_queue_semaphores (key, value, expires_at) VALUES ('k', 0, now() + interval '1 hour');
        INSERT INTO solid_queue_recurring_tasks (key, schedule, class_name) VALUES ('nightly', '0 3 * * *', 'Nightly');
        INSERT INTO solid_queue_pauses (queue_name) VALUES ('p');";
    let json = assert_states(
        &format!("{SOLID_QUEUE}{rows}"),
        &[
            ("Beats", "running", "heartbeat", ""),
            ("Silent", "lost", "heartbeat", "as"),
            ("Absent", "lost", "absent", "as"),
            ("Nobody", "lost", "absent", "as"),
            ("Due", "due", "none", ""),
            ("Paused", "paused", "none", ""),
            ("Later", "scheduled", "none", ""),
            ("Asleep", "overdue", "none", ""),
            ("Blocked", "blocked", "none", ""),
            ("Failed", "failed", "none", ""),
        ],
    )
    .await;
    let one = &json["adapters"][0];
    assert_eq!((&one["leases"][0]["id"], &one["leases"][0]["held"]), (&"k".into(), &true.into()));
    assert_eq!(one["schedules"][0]["schedule"], "0 3 * * *");
}

#[tokio::test]
async fn river() {
    let rows = "
        INSERT INTO river_job (kind, state, attempt, attempted_at, attempted_by, scheduled_at, finalized_at, errors) VALUES
            ('Young', 'running', 1, now(), '{old,host_1}', now(), NULL, NULL),
            ('Late', 'running', 1, now() - interval '2 hours', '{host_2}', now(), NULL, NULL),
            ('Due', 'available', 0, NULL, NULL, now(), NULL, NULL),
            ('Again', 'available', 2, NULL, NULL, now(), NULL, NULL),
            ('Later', 'scheduled', 0, NULL, NULL, now() + interval '1 hour', NULL, NULL),
            ('Retry', 'retryable', 1, NULL, NULL, now() + interval '1 hour', NULL, ARRAY['{\"error\": \"boom\"}']::jsonb[]),
            ('Failed', 'discarded', 25, now(), '{host_1}', now(), now(), NULL),
            ('Done', 'completed', 1, now(), '{host_1}', now(), now(), NULL);
        INSERT INTO river_leader (leader_id, elected_at, expires_at) VALUES ('host_1', now(), now() - interval '1 minute');";
    let json = assert_states(
        &format!("{RIVER}{rows}"),
        &[
            ("Young", "unknown", "none", ""),
            ("Late", "late", "age", "when"),
            ("Due", "due", "none", ""),
            ("Again", "retry", "none", ""),
            ("Later", "scheduled", "none", ""),
            ("Retry", "retry", "none", ""),
            ("Failed", "failed", "none", ""),
        ],
    )
    .await;
    let one = &json["adapters"][0];
    assert_eq!((&one["leases"][0]["owner"], &one["leases"][0]["held"]), (&"host_1".into(), &false.into()));
    let retry = one["jobs"].as_array().unwrap().iter().find(|job| job["name"] == "Retry").unwrap();
    assert_eq!(retry["error"], "boom");
}

#[tokio::test]
async fn small_leases() {
    let tables = include_str!("tables/leases.sql");
    let rows = "
        INSERT INTO shedlock VALUES ('held', now() + interval '1 hour', now(), 'a'), ('over', now() - interval '1 hour', now() - interval '2 hours', 'b');
        INSERT INTO databasechangeloglock VALUES (1, true, now() - interval '1 day', 'pod-7 (10.0.0.7)');
        INSERT INTO int_lock VALUES ('k1', 'DEFAULT', 'c1', now()), ('k2', 'DEFAULT', 'c2', now() - interval '11 seconds');
        INSERT INTO new_lock VALUES ('k3', 'DEFAULT', 'c3', now() - interval '1 hour', now() + interval '1 hour');
        INSERT INTO scheduled_tasks (task_name, task_instance, execution_time, picked, picked_by, last_heartbeat, consecutive_failures, version) VALUES
            ('Beats', '1', now(), true, 'node', now(), 0, 1), ('Silent', '1', now(), true, 'gone', now() - interval '31 minutes', 0, 1),
            ('Due', '1', now(), false, NULL, NULL, 0, 1), ('Retry', '1', now(), false, NULL, NULL, 2, 1), ('Later', '1', now() + interval '1 hour', false, NULL, NULL, 0, 1);";
    let json = assert_states(
        &format!("{tables}{rows}"),
        &[
            ("Beats 1", "running", "heartbeat", ""),
            ("Silent 1", "lost", "heartbeat", "when"),
            ("Due 1", "due", "none", ""),
            ("Retry 1", "retry", "none", ""),
            ("Later 1", "scheduled", "none", ""),
        ],
    )
    .await;
    // A job that is picked is no longer due, and one to be tried again is.
    let is_one = |one: &&Value| one["adapter"] == "db_scheduler";
    let one = json["adapters"].as_array().unwrap().iter().find(is_one).unwrap();
    let mut depth: Vec<_> = one["depth"].as_array().unwrap().iter().collect();
    depth.sort_by_key(|depth| depth["state"].to_string());
    let numbers: Vec<_> = depth.iter().map(|depth| (&depth["state"], &depth["number"])).collect();
    assert_eq!(numbers, [(&json!("due"), &json!(2)), (&json!("scheduled"), &json!(1))]);
    assert!(one["queues"][0]["oldest_at"].is_string(), "{}", one["queues"]);
    let mut leases: Vec<(String, String, bool)> = Vec::new();
    for one in json["adapters"].as_array().unwrap() {
        for lease in one["leases"].as_array().unwrap() {
            let text = |key: &str| lease[key].as_str().unwrap().trim().to_owned();
            leases.push((text("id"), text("owner"), lease["held"].as_bool().unwrap()));
        }
    }
    leases.sort();
    let expected = [
        ("DEFAULT k1", "c1", true),
        ("DEFAULT k2", "c2", false),
        ("DEFAULT k3", "c3", true),
        ("changelog 1", "pod-7 (10.0.0.7)", true),
        ("held", "a", true),
        ("over", "b", false),
    ];
    assert_eq!(leases, expected.map(|(id, owner, held)| (id.to_owned(), owner.to_owned(), held)));
}

#[tokio::test]
async fn a_locked_table_is_reported_and_its_last_rows_are_kept() {
    let row = "INSERT INTO river_job (kind, state, attempted_at) VALUES ('A', 'running', now())";
    let mut stage = stage(&format!("{RIVER}{row}")).await;
    assert_eq!(stage.poll().await.adapters.rows.len(), 1);
    let other = stage.client().await;
    other.batch_execute("BEGIN; LOCK TABLE river_job IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let error = |view: &View| {
        let rows = &view.snapshot.as_ref().unwrap().adapters[0];
        rows.jobs[&locktop::model::adapter::Part::Running].error.clone()
    };
    let mut view = stage.poll().await;
    support::wait_until("the part to be read again", async || {
        view = stage.poll().await;
        error(&view).is_some()
    })
    .await;
    assert!(error(&view).unwrap().contains("is locked"), "{:?}", error(&view));
    assert_eq!(view.adapters.rows.len(), 1, "the last rows are kept");
    let finding = view.findings.iter().find(|finding| finding.check == "adapter").unwrap();
    assert!(finding.summary.contains("is locked"), "{}", finding.summary);
    let json = stage.json();
    assert_eq!(json["adapters"][0]["jobs"], serde_json::json!([]), "but are not reported as current");
    other.batch_execute("ROLLBACK").await.unwrap();
    support::wait_until("the part to be read again", async || error(&*stage.poll().await).is_none()).await;
}

#[tokio::test]
async fn oban_with_and_without_producers() {
    let tables = include_str!("tables/oban.sql");
    let rows = "
        INSERT INTO oban_jobs (worker, state, attempt, attempted_at, attempted_by, scheduled_at, discarded_at, errors) VALUES
            ('Beats', 'executing', 1, now(), '{a,00000000-0000-0000-0000-0000000000a1}', now(), NULL, '{}'),
            ('Silent', 'executing', 1, now(), '{b,00000000-0000-0000-0000-0000000000a2}', now(), NULL, '{}'),
            ('Absent', 'executing', 1, now() - interval '1 minute', '{c,00000000-0000-0000-0000-0000000000a3}', now(), NULL, '{}'),
            ('Late', 'executing', 1, now() - interval '2 hours', NULL, now(), NULL, '{}'),
            ('Due', 'available', 0, NULL, NULL, now(), NULL, '{}'), ('Again', 'available', 1, NULL, NULL, now(), NULL, '{}'),
            ('Later', 'scheduled', 0, NULL, NULL, now() + interval '1 hour', NULL, '{}'),
            ('Retry', 'retryable', 1, NULL, NULL, now() + interval '1 hour', NULL, '{}'),
            ('Failed', 'discarded', 20, now(), NULL, now(), now(), ARRAY['{\"error\": \"boom\"}']::jsonb[]);
        INSERT INTO oban_peers VALUES ('Oban', 'a@web', now(), now() + interval '30 seconds');";
    let waiting = [
        ("Late", "late", "age", "never"),
        ("Due", "due", "none", ""),
        ("Again", "retry", "none", ""),
        ("Later", "scheduled", "none", ""),
        ("Retry", "retry", "none", ""),
        ("Failed", "failed", "none", ""),
    ];
    let blind = [
        ("Beats", "unknown", "none", ""),
        ("Silent", "unknown", "none", ""),
        ("Absent", "unknown", "none", ""),
    ];
    let json = assert_states(&format!("{tables}{rows}"), &[&blind[..], &waiting].concat()).await;
    let one = &json["adapters"][0];
    assert_eq!((&one["version"], &one["leases"][0]["held"]), (&"migration 14".into(), &true.into()));
    let failed = one["jobs"].as_array().unwrap().iter().find(|job| job["name"] == "Failed").unwrap();
    assert_eq!(failed["error"], "boom");
    let producers = "CREATE TABLE oban_producers (uuid uuid PRIMARY KEY, name text, node text, queue text, started_at timestamp, updated_at timestamp);
        INSERT INTO oban_producers VALUES ('00000000-0000-0000-0000-0000000000a1', 'Oban', 'a', 'default', now(), now()),
            ('00000000-0000-0000-0000-0000000000a2', 'Oban', 'b', 'default', now(), now() - interval '61 seconds');";
    let seen = [
        ("Beats", "running", "heartbeat", ""),
        ("Silent", "lost", "heartbeat", "when"),
        ("Absent", "lost", "absent", "when"),
    ];
    assert_states(&format!("{tables}{rows}{producers}"), &[&seen[..], &waiting].concat()).await;
}

#[tokio::test]
async fn procrastinate() {
    let rows = "
        INSERT INTO procrastinate_workers VALUES (1, now()), (2, now() - interval '31 seconds');
        INSERT INTO procrastinate_jobs (id, queue_name, task_name, status, lock, worker_id, attempts, scheduled_at) VALUES
            (1, 'q', 'Beats', 'doing', 'a', 1, 0, NULL), (2, 'q', 'Silent', 'doing', 'b', 2, 0, NULL), (3, 'q', 'Nobody', 'doing', 'c', NULL, 0, NULL),
            (4, 'q', 'Due', 'todo', NULL, NULL, 0, NULL), (5, 'q', 'Blocked', 'todo', 'b', NULL, 0, NULL), (6, 'q', 'Retry', 'todo', NULL, NULL, 1, now()),
            (7, 'q', 'Later', 'todo', NULL, NULL, 0, now() + interval '1 hour'), (8, 'q', 'Failed', 'failed', NULL, NULL, 1, NULL), (9, 'q', 'Done', 'succeeded', NULL, NULL, 1, NULL);
        INSERT INTO procrastinate_events (job_id, type, at) VALUES (1, 'started', now() - interval '5 seconds');";
    let json = assert_states(
        &format!("{}{rows}", include_str!("tables/procrastinate.sql")),
        &[
            ("Beats", "running", "heartbeat", ""),
            ("Silent", "lost", "heartbeat", "never"),
            ("Nobody", "lost", "absent", "never"),
            ("Due", "due", "none", ""),
            ("Blocked", "blocked", "none", ""),
            ("Retry", "retry", "none", ""),
            ("Later", "scheduled", "none", ""),
            ("Failed", "failed", "none", ""),
        ],
    )
    .await;
    let jobs = json["adapters"][0]["jobs"].as_array().unwrap();
    let job = |name: &str| jobs.iter().find(|job| job["name"] == name).unwrap();
    assert_eq!(job("Blocked")["blocked_by"], "job 2, which has the lock b");
    assert_eq!(
        (&job("Beats")["attempt"], &job("Retry")["attempt"]),
        (&1.into(), &1.into()),
        "attempts are those that ended"
    );
    let depth = json["adapters"][0]["depth"].as_array().unwrap();
    let number =
        |state: &str| depth.iter().find(|one| one["state"] == state).unwrap()["number"].as_i64().unwrap();
    assert_eq!([number("due"), number("scheduled"), number("blocked")], [2, 1, 1]);
    assert!(
        depth.iter().all(|one| one["state"] != "done"),
        "a table that was never counted has no number: {depth:?}"
    );
    assert!(job("Beats")["started_at"].is_string());
}

#[tokio::test]
async fn que() {
    let rows = "
        INSERT INTO que_jobs (id, job_class, run_at, error_count, finished_at, expired_at, last_error_message) VALUES
            (101, 'Held', now(), 0, NULL, NULL, NULL), (102, 'Due', now(), 0, NULL, NULL, NULL), (103, 'Retry', now(), 1, NULL, NULL, 'boom'),
            (104, 'Later', now() + interval '1 hour', 0, NULL, NULL, NULL), (105, 'Failed', now(), 15, NULL, now(), 'boom'), (106, 'Done', now(), 0, now(), NULL, NULL);";
    let mut stage = stage(&format!("{}{rows}", include_str!("tables/que.sql"))).await;
    let locker = stage.client().await;
    locker.batch_execute("SELECT pg_advisory_lock(101); INSERT INTO que_lockers VALUES (pg_backend_pid(), 6, '{}', 4711, 'web')").await.unwrap();
    let view = stage.poll().await;
    let rows = [
        ("Held", "running", "lock", ""),
        ("Due", "due", "none", ""),
        ("Retry", "retry", "none", ""),
        ("Later", "scheduled", "none", ""),
        ("Failed", "failed", "none", ""),
    ];
    assert_eq!(
        job_states(&view),
        expected(&rows),
        "a job that is taken is reported once, though it is still due by its row"
    );
    let held = view.adapters.rows.iter().find(|row| row.judged.state.as_str() == "running").unwrap();
    assert_eq!(held.worker.as_deref(), Some("web:4711"));
}

#[tokio::test]
async fn pg_cron() {
    let mut stage = stage(include_str!("tables/pg_cron.sql")).await;
    let worker = stage.client().await;
    worker
        .batch_execute(
            "INSERT INTO cron.job (schedule, command, jobname) VALUES ('0 3 * * *', 'VACUUM', 'nightly');
             INSERT INTO cron.job_run_details (jobid, job_pid, database, username, command, status, start_time, end_time, return_message) VALUES
                (1, pg_backend_pid(), 'app', 'postgres', 'There', 'running', now(), NULL, NULL),
                (1, 2000000000, 'app', 'postgres', 'Gone', 'running', now(), NULL, NULL),
                (1, pg_backend_pid(), 'app', 'postgres', 'Another', 'running', now() - interval '1 day', NULL, NULL),
                (1, 5, 'app', 'postgres', 'Failed', 'failed', now(), now(), 'boom'), (1, 5, 'app', 'postgres', 'Done', 'succeeded', now(), now(), '1 row');",
        )
        .await
        .unwrap();
    let view = stage.poll().await;
    let rows = [
        ("There", "running", "session", ""),
        ("Gone", "orphan", "session", "at"),
        ("Another", "orphan", "session", "at"),
        ("Failed", "failed", "none", ""),
    ];
    assert_eq!(job_states(&view), expected(&rows), "a process of that number that is younger is another one");
    assert_eq!(stage.json()["adapters"][0]["schedules"][0]["name"], "nightly");
}

#[tokio::test]
async fn pg_timetable() {
    let mut stage = stage(include_str!("tables/pg_timetable.sql")).await;
    let client = stage.client().await;
    client
        .batch_execute(
            "SET application_name = 'pg_timetable';
             INSERT INTO timetable.chain (chain_name, run_at, live, timeout) VALUES
                ('There', '0 3 * * *', true, 0), ('Slow', '@every 1 hour', true, 5000), ('Gone', '* * * * *', true, 0), ('Another', '* * * * *', true, 0),
                ('Failed', '* * * * *', true, 0), ('Ignored', '* * * * *', true, 0), ('Mended', '* * * * *', NULL, 0);
             INSERT INTO timetable.active_session VALUES (7, pg_backend_pid(), 'here', now()), (7, 2000000000, 'here', now()),
                (8, 2000000000, 'gone', now()), (9, pg_backend_pid(), 'earlier', now() - interval '1 day');
             INSERT INTO timetable.active_chain VALUES (1, 'here', now()), (2, 'here', now() - interval '1 minute'),
                (3, 'gone', now() - interval '1 minute'), (4, 'earlier', now() - interval '1 minute');
             INSERT INTO timetable.execution_log (chain_id, task_id, txid, finished, returncode, ignore_error, client_name) VALUES
                (5, 1, 1, now() - interval '1 hour', 0, false, 'here'), (5, 2, 1, now(), 1, false, 'here'), (6, 3, 1, now(), 1, true, 'here'),
                (7, 4, 1, now() - interval '1 hour', 1, false, 'here'), (7, 4, 2, now(), 0, false, 'here');",
        )
        .await
        .unwrap();
    let view = stage.poll().await;
    let rows = [
        ("There", "running", "session", ""),
        ("Slow", "slow", "session", ""),
        ("Gone", "lost", "absent", "when"),
        ("Another", "lost", "absent", "when"),
        ("Failed", "failed", "none", ""),
    ];
    assert_eq!(job_states(&view), expected(&rows), "a client is connected while one of its own sessions is");
    let schedules = &stage.json()["adapters"][0]["schedules"];
    assert_eq!([&schedules[0]["schedule"], &schedules[6]["enabled"]], [&json!("0 3 * * *"), &json!(false)]);
}

#[tokio::test]
async fn quartz_clustered_and_alone() {
    let tables = include_str!("tables/quartz.sql");
    let rows = "
        CREATE FUNCTION ms(ago interval) RETURNS bigint LANGUAGE sql AS 'SELECT (extract(epoch FROM now() - ago) * 1000)::bigint';
        INSERT INTO qrtz_scheduler_state VALUES ('c', 'one', ms('1 s'), 7500), ('c', 'two', ms('16 s'), 7500);
        INSERT INTO qrtz_fired_triggers (sched_name, entry_id, trigger_name, trigger_group, instance_name, fired_time, sched_time, priority, state, job_name) VALUES
            ('c', 'e1', 't', 'g', 'one', ms('5 s'), 0, 5, 'EXECUTING', 'Beats'), ('c', 'e2', 't', 'g', 'two', ms('5 s'), 0, 5, 'EXECUTING', 'Silent'),
            ('c', 'e3', 't', 'g', 'three', ms('1 minute'), 0, 5, 'EXECUTING', 'Absent'), ('alone', 'e4', 't', 'g', 'x', ms('5 s'), 0, 5, 'EXECUTING', 'Alone'),
            ('c', 'e5', 't', 'g', 'one', ms('5 s'), 0, 5, 'ACQUIRED', NULL);
        INSERT INTO qrtz_triggers (sched_name, trigger_name, trigger_group, job_name, job_group, next_fire_time, trigger_state) VALUES
            ('c', 't1', 'g', 'Due', 'g', ms('5 s'), 'WAITING'), ('c', 't2', 'g', 'Overdue', 'g', ms('5 min'), 'WAITING'),
            ('c', 't3', 'g', 'Later', 'g', ms('-1 h'), 'WAITING'), ('c', 't4', 'g', 'Blocked', 'g', ms('5 s'), 'BLOCKED'),
            ('c', 't5', 'g', 'Failed', 'g', -1, 'ERROR'), ('c', 't6', 'g', 'Done', 'g', -1, 'COMPLETE');";
    let json = assert_states(
        &format!("{tables}{rows}"),
        &[
            ("Beats", "running", "heartbeat", ""),
            ("Silent", "lost", "heartbeat", "when"),
            ("Absent", "lost", "absent", "when"),
            ("Alone", "unknown", "none", ""),
            ("g.Due", "due", "none", ""),
            ("g.Overdue", "overdue", "none", ""),
            ("g.Later", "scheduled", "none", ""),
            ("g.Blocked", "blocked", "none", ""),
            ("g.Failed", "failed", "none", ""),
        ],
    )
    .await;
    assert_eq!(json["adapters"].as_array().unwrap().len(), 1, "one set of tables is one installation");
    assert_eq!(json["adapters"][0]["prefix"], "qrtz_");
}
