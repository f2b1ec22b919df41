//! Sessions of workers as a proof: what is reported if none is connected, and if that cannot be known.

use super::stage::Stage;
use super::states::{expected, job_states};
use super::{all, info_of, run, server, support};
use locktop::model::adapter::{QueueState, WorkerState};
use locktop::model::view::View;

const GRAPHILE: &str = include_str!("tables/graphile_worker.sql");
const PG_BOSS: &str = include_str!("tables/pg_boss.sql");
const ROWS: &str = "
    INSERT INTO graphile_worker._private_tasks VALUES (1, 'Runs'), (2, 'Due'), (3, 'Blocked');
    INSERT INTO graphile_worker._private_job_queues VALUES (1, 'serial', now(), 'worker-a');
    INSERT INTO graphile_worker._private_jobs (id, task_id, job_queue_id, attempts, locked_at, locked_by, run_at) VALUES
        (1, 1, 1, 1, now(), 'worker-a', now()), (2, 2, NULL, 0, NULL, NULL, now() - interval '5 minutes'), (3, 3, 1, 0, NULL, NULL, now());";

fn unserved(view: &View) -> Option<String> {
    let finding = view.findings.iter().find(|finding| finding.check == "adapter_queue")?;
    Some(finding.summary.to_string())
}

#[tokio::test]
async fn a_queue_without_a_session_of_a_worker_is_a_finding() {
    let mut stage = Stage::on(server().await, &format!("{GRAPHILE}{ROWS}")).await;
    let worker = stage.client().await;
    worker.batch_execute("LISTEN \"jobs:insert\"; LISTEN \"worker:migrate\"").await.unwrap();
    stage.adapters(all()).await;
    stage.poll().await;
    let view = stage.poll().await;
    let rows =
        [("Runs", "unknown", "none", ""), ("Due", "overdue", "none", ""), ("Blocked", "blocked", "none", "")];
    assert_eq!(job_states(&view), expected(&rows));
    assert_eq!(unserved(&view), None);
    assert_eq!(stage.json()["adapters"][0]["sessions"], 1);
    let due = &stage.json()["adapters"][0]["depth"];
    let number = |state: &str| {
        due.as_array().unwrap().iter().find(|one| one["state"] == state).unwrap()["number"].clone()
    };
    assert_eq!(
        (number("due"), number("blocked")),
        (1.into(), 1.into()),
        "a job that waits for its queue is not due"
    );
    drop(worker);
    stage.poll_until("a finding", |view| unserved(view).is_some()).await;
    let summary = unserved(stage.view()).unwrap();
    assert!(summary.starts_with("Graphile Worker: 1 job is due, for 5m"), "{summary}");
    assert!(summary.ends_with(", and no session of a worker is connected"), "{summary}");
    let rows = [("Runs", "lost", "presence", "automatic"), rows[1], rows[2]];
    assert_eq!(job_states(stage.view()), expected(&rows));
    let json = stage.json();
    let job =
        json["adapters"][0]["jobs"].as_array().unwrap().iter().find(|job| job["name"] == "Runs").unwrap();
    assert_eq!((&job["sessions"], &json["adapters"][0]["sessions"]), (&0.into(), &0.into()));
    let all_of_it = stage.view().adapters.queues.iter().find(|row| row.queue.is_none()).unwrap();
    assert_eq!(all_of_it.state, QueueState::Unserved);
    // A session of another database proves nothing of this one.
    let elsewhere = support::open(&support::conninfo(server().await)).await.client;
    elsewhere.batch_execute("LISTEN \"jobs:insert\"").await.unwrap();
    stage.poll().await;
    assert!(unserved(stage.view()).is_some());
    // It connects again.
    let again = stage.client().await;
    again.batch_execute("LISTEN \"jobs:insert\"").await.unwrap();
    stage.poll_until("no finding", |view| unserved(view).is_none()).await;
}

#[tokio::test]
async fn presence_is_unknown_without_the_right_to_see_other_sessions() {
    let mut stage = Stage::on(server().await, &format!("{GRAPHILE}{ROWS}")).await;
    let role = "CREATE ROLE presence_reader LOGIN BYPASSRLS IN ROLE pg_read_all_data";
    run(&support::conninfo(server().await), role).await;
    let info = info_of(stage.info(), "presence_reader").await;
    let _worker = support::open(stage.info()).await;
    stage.as_role_of(info).await;
    stage.adapters(all()).await;
    stage.poll().await;
    let view = stage.poll().await;
    assert_eq!(unserved(&view), None);
    let rows =
        [("Runs", "unknown", "none", ""), ("Due", "overdue", "none", ""), ("Blocked", "blocked", "none", "")];
    assert_eq!(job_states(&view), expected(&rows));
    assert!(stage.json()["adapters"][0]["sessions"].is_null());
}

/// Each instance of pg-boss has its own name: its sessions show whether it was killed or stopped.
#[tokio::test]
async fn sessions_decide_if_a_silent_instance_has_ended() {
    let rows = "
        INSERT INTO pgboss.queue (name, active_count) VALUES ('q', 1), ('r', 1), ('s', 1);
        INSERT INTO pgboss.instance (id, host, pid, version, application_name, heartbeat_seconds, workers, started_on, heartbeat_on) VALUES
            ('00000000-0000-0000-0000-0000000000b1', 'web', 7, '12.38.0', 'pgboss:b1', 30, '[{\"queue\": \"q\", \"active\": 1}]', now() - interval '1 hour', now() - interval '91 s'),
            ('00000000-0000-0000-0000-0000000000b0', 'web', 6, '12.38.0', 'pgboss:b0', 30, '[{\"queue\": \"r\", \"active\": 1}]', now() - interval '2 hours', now() - interval '1 hour'),
            ('00000000-0000-0000-0000-0000000000b2', 'web', 8, '12.38.0', 'pgboss:b2', 30, '[{\"queue\": \"r\", \"active\": 0}]', now() - interval '1 hour', now() - interval '91 s'),
            ('00000000-0000-0000-0000-0000000000b3', 'web', 9, '12.38.0', 'pgboss:b3', 30, '[{\"queue\": \"r\", \"active\": 0}, {\"queue\": \"s\", \"active\": 1}]', now() - interval '1 minute', now());
        INSERT INTO pgboss.job (name, state, started_on) VALUES ('q', 'active', now() - interval '5 minutes'), ('r', 'active', now() - interval '80 s'), ('s', 'active', now() - interval '30 s');";
    let mut stage = Stage::on(server().await, &format!("{PG_BOSS}{rows}")).await;
    let stopped = stage.client().await;
    stopped.batch_execute("SET application_name = 'pgboss:b2'").await.unwrap();
    stage.adapters(all()).await;
    stage.poll().await;
    let view = stage.poll().await;
    // The job of the second queue began after the last heartbeat of the only instance then: a later one does not have it.
    let rows =
        [("q", "lost", "heartbeat", "as"), ("r", "lost", "heartbeat", "as"), ("s", "running", "lease", "")];
    assert_eq!(job_states(&view), expected(&rows), "15 minutes have not passed");
    let states: Vec<_> = view.adapters.workers.iter().map(|row| row.state).collect();
    assert_eq!(states, [WorkerState::Gone, WorkerState::Gone, WorkerState::Silent, WorkerState::Live]);
    let json = stage.json();
    let one = &json["adapters"][0];
    let sessions = |name: &str| {
        one["jobs"].as_array().unwrap().iter().find(|job| job["name"] == name).unwrap()["sessions"].clone()
    };
    assert_eq!((sessions("q"), sessions("r")), (0.into(), 1.into()));
    let found = view.findings.iter().find(|finding| finding.check == "adapter_job").unwrap();
    assert!(
        found.about.starts_with("no session of its worker is connected; recovery: as failed"),
        "{}",
        found.about
    );
}
