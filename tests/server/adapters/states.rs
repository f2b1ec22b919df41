//! Rows of each state, and what is told of them: the state, what proves it, and what becomes of it by itself.

use std::time::Duration;

use locktop::feed::digest::Digest;
use locktop::model::lock_name::LockNames;
use locktop::model::thresholds::Thresholds;
use locktop::model::view::{TargetId, View};
use locktop::pg::conninfo::ConnInfo;
use locktop::pg::poll::{Limits, Session};
use locktop::wire;
use serde_json::Value;

use super::{GOOD_JOB, RIVER, SOLID_QUEUE, all, client, database};

/// A session that polls, with what is made of it.
struct Stage {
    session: Session,
    digest: Digest,
}

impl Stage {
    async fn on(info: &ConnInfo) -> Self {
        let limits =
            Limits { adapters: all().into(), adapter_patience: Duration::from_secs(20), ..Limits::default() };
        let session = Session::open(info, limits).await.unwrap();
        // What is free at the first look is an orphan.
        let thresholds = Thresholds { orphan_grace: 0.0, ..Thresholds::default() };
        Self { session, digest: Digest::new(TargetId::default(), thresholds, LockNames::default()) }
    }

    /// The second look is the first that reads them.
    async fn look(&mut self) -> std::sync::Arc<View> {
        let snapshot = self.session.poll(self.digest.snapshot()).await.unwrap();
        self.digest.snapshot_taken(snapshot)
    }
}

/// What is told of each job: its name, state, proof, and how what becomes of it begins.
fn told(view: &View) -> Vec<(String, &'static str, &'static str, String)> {
    let mut rows: Vec<_> = view
        .adapters
        .rows
        .iter()
        .map(|row| {
            let name = row.job.name.as_deref().unwrap_or_default().to_owned();
            let back = row.comes_back.as_deref().unwrap_or_default();
            let back = back.split([' ', ':']).next().unwrap_or_default().to_owned();
            (name, row.judged.state.as_str(), row.judged.proof.as_str(), back)
        })
        .collect();
    rows.sort();
    rows
}

async fn looked(ddl: &str, expected: &[(&str, &'static str, &'static str, &str)]) -> Value {
    let info = database(ddl).await;
    let mut stage = Stage::on(&info).await;
    stage.look().await;
    let view = stage.look().await;
    let mut expected: Vec<_> = expected
        .iter()
        .map(|(name, state, proof, back)| ((*name).to_owned(), *state, *proof, (*back).to_owned()))
        .collect();
    expected.sort();
    assert_eq!(told(&view), expected);
    let json: Value = serde_json::from_str(&wire::json::to_string(&view).unwrap().unwrap()).unwrap();
    for installation in json["adapters"].as_array().unwrap() {
        for (part, section) in installation["sections"].as_object().unwrap() {
            assert!(section["error"].is_null() && section["taken_at"].is_string(), "{part}: {section}");
        }
    }
    json
}

/// The key that GoodJob makes of a table and an id.
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
            ('Absent', 'q', 1, now(), now(), NULL, NULL, '00000000-0000-0000-0000-0000000000a3', 1),
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
    let info = database(&format!("{GOOD_JOB}{rows}")).await;
    let worker = client(&info).await;
    let lock = format!("SELECT pg_advisory_lock({KEY}) FROM good_jobs WHERE job_class = 'Held'");
    worker.batch_execute(&lock).await.unwrap();
    let pid: i32 = worker.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    let mut stage = Stage::on(&info).await;
    assert!(stage.look().await.adapters.rows.is_empty(), "nobody waits for them at the first look");
    let view = stage.look().await;
    let row =
        |name: &str| view.adapters.rows.iter().find(|row| row.job.name.as_deref() == Some(name)).unwrap();
    let expected = [
        ("Held", "running", "lock", ""),
        ("Free", "orphan", "lock", "by"),
        ("Beats", "running", "heartbeat", ""),
        ("Silent", "lost", "heartbeat", "by"),
        ("Absent", "lost", "absent", "never"),
        ("Due", "due", "none", ""),
        ("Again", "retry", "none", ""),
        ("Overdue", "overdue", "none", ""),
        ("Paused", "paused", "none", ""),
        ("Later", "scheduled", "none", ""),
        ("Failed", "failed", "none", ""),
    ];
    let mut expected: Vec<_> = expected
        .iter()
        .map(|(name, state, proof, back)| ((*name).to_owned(), *state, *proof, (*back).to_owned()))
        .collect();
    expected.sort();
    assert_eq!(told(&view), expected);
    assert_eq!(row("Held").judged.pid, Some(pid));
    assert_eq!(row("Silent").worker.as_deref(), Some("web:2"));
    assert_eq!(row("Absent").worker.as_deref(), Some("00000000-0000-0000-0000-0000000000a3"));
    assert_eq!(
        row("Failed").advice.as_deref().unwrap(),
        format!("GoodJob::Job.find('{}').retry_job", row("Failed").job.id)
    );
    assert_eq!(view.adapters.rows[0].job.name.as_deref(), Some("Free"), "the worst is first");
    let json: Value = serde_json::from_str(&wire::json::to_string(&view).unwrap().unwrap()).unwrap();
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
        (&8.into(), &false.into(), &false.into())
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
        INSERT INTO solid_queue_claimed_executions (job_id, process_id) VALUES (1, 1), (2, 2), (3, 99), (4, NULL);
        INSERT INTO solid_queue_ready_executions (job_id, queue_name) VALUES (5, 'q'), (11, 'p');
        INSERT INTO solid_queue_scheduled_executions (job_id, queue_name, scheduled_at) VALUES
            (6, 'q', now() + interval '1 hour'), (7, 'q', now() - interval '1 hour');
        INSERT INTO solid_queue_blocked_executions (job_id, queue_name, concurrency_key, expires_at) VALUES (8, 'q', 'k', now() + interval '1 hour');
        INSERT INTO solid_queue_failed_executions (job_id, error) VALUES (9, 'boom');
        INSERT INTO solid_queue_semaphores (key, value, expires_at) VALUES ('k', 0, now() + interval '1 hour');
        INSERT INTO solid_queue_recurring_tasks (key, schedule, class_name) VALUES ('nightly', '0 3 * * *', 'Nightly');
        INSERT INTO solid_queue_pauses (queue_name) VALUES ('p');";
    let json = looked(
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
    let json = looked(
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
    let json = looked(
        &format!("{tables}{rows}"),
        &[
            ("Beats", "running", "heartbeat", ""),
            ("Silent", "lost", "heartbeat", "when"),
            ("Due", "due", "none", ""),
            ("Retry", "retry", "none", ""),
            ("Later", "scheduled", "none", ""),
        ],
    )
    .await;
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
async fn what_is_locked_or_gone_says_so_and_keeps_what_was_read() {
    let info = database(&format!(
        "{RIVER} INSERT INTO river_job (kind, state, attempted_at) VALUES ('A', 'running', now())"
    ))
    .await;
    let mut stage = Stage::on(&info).await;
    stage.look().await;
    assert_eq!(stage.look().await.adapters.rows.len(), 1);
    let other = client(&info).await;
    other.batch_execute("BEGIN; LOCK TABLE river_job IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let error = |view: &View| {
        let rows = &view.snapshot.as_ref().unwrap().adapters[0];
        rows.jobs[&locktop::model::adapter::Part::Running].section.error.clone()
    };
    let mut view = stage.look().await;
    super::support::wait_until("the part to be read again", async || {
        view = stage.look().await;
        error(&view).is_some()
    })
    .await;
    assert!(error(&view).unwrap().contains("is locked"), "{:?}", error(&view));
    assert_eq!(view.adapters.rows.len(), 1, "what was read stays");
    let json: Value = serde_json::from_str(&wire::json::to_string(&view).unwrap().unwrap()).unwrap();
    assert_eq!(json["adapters"][0]["jobs"], serde_json::json!([]), "but is no news");
    other.batch_execute("ROLLBACK").await.unwrap();
    super::support::wait_until("the part to be read again", async || error(&*stage.look().await).is_none())
        .await;
}
