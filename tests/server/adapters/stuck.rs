//! Jobs that do not continue, and those that wait for a job whose worker no longer exists: which are reported, and which are not.

use locktop::model::view::View;

use super::states::stage;
use super::{RIVER, SOLID_QUEUE};

/// The findings of a check: summary and details.
fn findings_of(view: &View, check: &str) -> Vec<(String, String)> {
    let those = view.findings.iter().filter(|finding| finding.check == check);
    those.map(|finding| (finding.summary.to_string(), finding.about.to_string())).collect()
}

/// Checks the findings for these tables and rows: each summary, and the beginning of its details.
async fn reports(check: &str, ddl: &str, expected: &[(&str, &str)]) {
    let mut stage = stage(ddl).await;
    let found = findings_of(&*stage.poll().await, check);
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for ((summary, about), (words, behind)) in found.iter().zip(expected) {
        assert_eq!(summary, words);
        assert!(about.starts_with(behind), "{about}");
    }
    let json = stage.json();
    let findings = json["findings"].as_array().unwrap().iter().filter(|one| one["check"] == check);
    let kind = if check == "adapter_schedule" { "job_schedule" } else { "job" };
    assert!(findings.clone().all(|finding| finding["subject"]["kind"] == kind));
    assert_eq!(findings.count(), expected.len());
}

const PGQUEUER: &str = include_str!("tables/pgqueuer.sql");
const QUARTZ: &str = include_str!("tables/quartz.sql");
const MS: &str = "CREATE FUNCTION ms(ago interval) RETURNS bigint LANGUAGE sql AS 'SELECT (extract(epoch FROM now() - ago) * 1000)::bigint';";

#[tokio::test]
async fn a_quartz_trigger_without_its_fired_row_is_stuck() {
    let rows = "
        INSERT INTO qrtz_scheduler_state VALUES ('c', 'one', ms('1 s'), 7500);
        INSERT INTO qrtz_fired_triggers (sched_name, entry_id, trigger_name, trigger_group, instance_name, fired_time, sched_time, priority, state, job_name, job_group) VALUES
            ('c', 'e1', 't1', 'g', 'one', ms('1 s'), 0, 5, 'ACQUIRED', NULL, NULL), ('c', 'e2', 't9', 'g', 'one', ms('1 s'), 0, 5, 'EXECUTING', 'Waits', 'g');
        INSERT INTO qrtz_triggers (sched_name, trigger_name, trigger_group, job_name, job_group, next_fire_time, trigger_state) VALUES
            ('c', 't1', 'g', 'Reserved', 'g', ms('1 s'), 'ACQUIRED'), ('c', 't2', 'g', 'Waits', 'g', ms('1 s'), 'BLOCKED'),
            ('c', 't3', 'g', 'Paused', 'g', ms('1 s'), 'PAUSED');";
    let healthy = format!("{QUARTZ}{MS}{rows}");
    reports("adapter_stuck", &healthy, &[]).await;
    let mut stage = stage(&healthy).await;
    let view = stage.poll().await;
    assert!(view.adapters.rows.iter().all(|row| row.advice.is_none()), "no action is needed");
    for (row, expected, reason) in [
        (
            "('c', 't4', 'g', 'Taken', 'g', ms('1 h'), 'ACQUIRED')",
            "Quartz: job g.Taken will not continue without help",
            "its trigger is ACQUIRED, and no fired row has its owner: no node takes it again",
        ),
        (
            "('c', 't4', 'g', 'Left', 'g', ms('1 h'), 'BLOCKED')",
            "Quartz: job g.Left will not continue without help",
            "its trigger is BLOCKED, and no run of its job is listed: no node frees it",
        ),
        (
            "('c', 't4', 'g', 'Broken', 'g', -1, 'ERROR')",
            "Quartz: job g.Broken will not continue without help",
            "its trigger is in state ERROR: it does not fire until it is reset",
        ),
    ] {
        let row = format!(
            "INSERT INTO qrtz_triggers (sched_name, trigger_name, trigger_group, job_name, job_group, next_fire_time, trigger_state) VALUES {row};"
        );
        reports("adapter_stuck", &format!("{healthy}{row}"), &[(expected, reason)]).await;
    }
}

/// A job reserved by a node that has ended is lost; one reserved by a live node is not reported.
#[tokio::test]
async fn a_job_reserved_by_a_dead_quartz_node_is_lost() {
    let rows = "
        INSERT INTO qrtz_scheduler_state VALUES ('c', 'one', ms('1 s'), 7500), ('c', 'two', ms('1 min'), 7500);
        INSERT INTO qrtz_fired_triggers (sched_name, entry_id, trigger_name, trigger_group, instance_name, fired_time, sched_time, priority, state) VALUES
            ('c', 'e1', 't1', 'g', 'one', ms('1 s'), 0, 5, 'ACQUIRED'), ('c', 'e2', 't2', 'g', 'two', ms('1 min'), 0, 5, 'ACQUIRED'),
            ('c', 'e3', 't3', 'g', 'three', ms('1 min'), 0, 5, 'ACQUIRED'), ('alone', 'e4', 't4', 'g', 'x', ms('1 min'), 0, 5, 'ACQUIRED');";
    let mut stage = stage(&format!("{QUARTZ}{MS}{rows}")).await;
    let view = stage.poll().await;
    let found = super::states::job_states(&view);
    let expected = [("g.t2", "lost", "heartbeat", "when"), ("g.t3", "lost", "absent", "when")];
    assert_eq!(found, super::states::expected(&expected));
}

#[tokio::test]
async fn jobs_behind_a_lost_job_are_reported_with_its_key() {
    let procrastinate = "
        INSERT INTO procrastinate_workers VALUES (1, now()), (2, now() - interval '31 seconds');
        INSERT INTO procrastinate_jobs (id, queue_name, task_name, status, lock, worker_id) VALUES
            (1, 'q', 'Beats', 'doing', 'a', 1), (2, 'q', 'Waits', 'todo', 'a', NULL), (3, 'q', 'Silent', 'doing', 'b', 2),
            (4, 'q', 'First', 'todo', 'b', NULL), (5, 'q', 'Second', 'todo', 'b', NULL), (6, 'q', 'Alone', 'doing', 'c', NULL);";
    let solid = "
        INSERT INTO solid_queue_jobs (id, queue_name, class_name, concurrency_key) VALUES (1, 'q', 'Absent', 'k'), (2, 'q', 'Blocked', 'k');
        INSERT INTO solid_queue_claimed_executions (job_id, process_id, created_at) VALUES (1, 99, now() - interval '1 minute');
        INSERT INTO solid_queue_blocked_executions (job_id, queue_name, concurrency_key, expires_at) VALUES (2, 'q', 'k', now() + interval '1 hour');";
    let graphile = "
        INSERT INTO graphile_worker._private_tasks VALUES (1, 'Late'), (2, 'Blocked'), (3, 'Free');
        INSERT INTO graphile_worker._private_job_queues VALUES (1, 'serial', now() - interval '5 hours', 'worker-b'), (2, 'free', NULL, NULL);
        INSERT INTO graphile_worker._private_jobs (id, task_id, job_queue_id, attempts, locked_at, locked_by) VALUES
            (1, 1, 1, 1, now() - interval '5 hours', 'worker-b'), (2, 2, 1, 0, NULL, NULL), (3, 3, 2, 0, NULL, NULL);";
    let boss = "
        INSERT INTO pgboss.queue (name, policy) VALUES ('q', 'singleton'), ('plain', 'standard');
        INSERT INTO pgboss.job (name, policy, state, singleton_key, started_on) VALUES
            ('q', 'singleton', 'active', 'k', now() - interval '1 hour'), ('plain', 'standard', 'active', 'k', now() - interval '1 hour');
        INSERT INTO pgboss.job (name, policy, state, singleton_key) VALUES
            ('q', 'singleton', 'created', 'k'), ('q', 'singleton', 'created', 'other'), ('plain', 'standard', 'created', 'k');";
    for (tables, rows, expected) in [
        (
            include_str!("tables/procrastinate.sql"),
            procrastinate,
            "Procrastinate: job Silent is lost (heartbeat) and keeps lock b: 2 listed jobs wait for it",
        ),
        (
            SOLID_QUEUE,
            solid,
            "Solid Queue: job Absent is lost (absent) and keeps key k: 1 listed job waits for it",
        ),
        (
            include_str!("tables/graphile_worker.sql"),
            graphile,
            "Graphile Worker: job Late is lost (presence) and keeps queue serial: 1 listed job waits for it",
        ),
        (
            include_str!("tables/pg_boss.sql"),
            boss,
            "pg-boss: job q is lost (lease) and keeps key q k: 1 listed job waits for it",
        ),
    ] {
        reports("adapter_key", &format!("{tables}{rows}"), &[(expected, "recovery: ")]).await;
    }
}

/// It is reported only after its own time and that of its semaphore have expired, and a dispatcher should have freed it since.
#[tokio::test]
async fn a_job_blocked_by_an_expired_semaphore_is_reported() {
    let rows = |blocked: &str, semaphore: &str| {
        format!(
            "{SOLID_QUEUE}
            INSERT INTO solid_queue_jobs (id, queue_name, class_name) VALUES (1, 'q', 'Blocked');
            INSERT INTO solid_queue_blocked_executions (job_id, queue_name, concurrency_key, expires_at) VALUES (1, 'q', 'k', now() - interval '{blocked}');
            INSERT INTO solid_queue_semaphores (key, value, expires_at) VALUES ('k', 0, now() - interval '{semaphore}');"
        )
    };
    let summary = "Solid Queue: job Blocked is blocked by a limit that expired 12h00m ago (key k)";
    reports("adapter_asleep", &rows("13 h", "12 h"), &[(summary, "recovery: a dispatcher frees")]).await;
    reports("adapter_asleep", &rows("12 h", "13 h"), &[(summary, "recovery: a dispatcher frees")]).await;
    reports("adapter_asleep", &rows("1 h", "5 min"), &[]).await;
    reports("adapter_asleep", &rows("1 h", "-3 min"), &[]).await;
}

#[tokio::test]
async fn scheduled_jobs_that_are_not_made_due_are_reported() {
    let solid = |ago: &str| {
        format!(
            "{SOLID_QUEUE}
            INSERT INTO solid_queue_jobs (id, queue_name, class_name) VALUES (1, 'q', 'Asleep'), (2, 'q', 'Later');
            INSERT INTO solid_queue_scheduled_executions (job_id, queue_name, scheduled_at) VALUES
                (1, 'q', now() - interval '{ago}'), (2, 'q', now() + interval '1 hour');"
        )
    };
    let expected = "Solid Queue: scheduled job Asleep was due 1h00m ago, but has not been put into its queue";
    reports("adapter_asleep", &solid("1 hour"), &[(expected, "")]).await;
    reports("adapter_asleep", &solid("10 seconds"), &[]).await;
    let river = |lease: &str| {
        format!(
            "{RIVER}
            INSERT INTO river_job (kind, state, scheduled_at) VALUES ('A', 'scheduled', now() - interval '1 hour'), ('B', 'retryable', now() - interval '30 minutes');
            INSERT INTO river_leader (leader_id, elected_at, expires_at) VALUES ('host', now(), now() + interval '{lease}');"
        )
    };
    let expected =
        "River: 2 scheduled jobs were due up to 1h00m ago, but have not been put into their queues";
    reports("adapter_asleep", &river("1 minute"), &[(expected, "")]).await;
    reports("adapter_asleep", &river("-5 minutes"), &[(expected, "no leader: its lease expired 5m")]).await;
}

#[tokio::test]
async fn schedules_that_are_not_started_are_reported() {
    let rows = |next: &str, more: &str| {
        format!(
            "{PGQUEUER} INSERT INTO pgqueuer_schedules (expression, entrypoint, next_run) VALUES
                ('0 3 * * *', 'report', now() - interval '{next}'), ('* * * * *', 'later', now() + interval '1 minute'){more};"
        )
    };
    let one = "PgQueuer: schedule report was due 12m00s ago, but was not started";
    reports("adapter_schedule", &rows("12 minutes", ""), &[(one, "")]).await;
    reports("adapter_schedule", &rows("10 seconds", ""), &[]).await;
    let two = "PgQueuer: 2 schedules were due up to 1h00m ago, but were not started, including hourly";
    let more = ", ('0 * * * *', 'hourly', now() - interval '1 hour')";
    reports("adapter_schedule", &rows("12 minutes", more), &[(two, "")]).await;
}

#[tokio::test]
async fn a_job_of_oban_without_an_attempt_left_is_stuck() {
    let rows = "INSERT INTO oban_jobs (worker, state, attempt, max_attempts) VALUES ('Spent', 'available', 20, 20), ('Again', 'available', 19, 20);";
    let expected = [(
        "Oban: job Spent will not continue without help",
        "it is available, and no attempt is left: it is never fetched",
    )];
    reports("adapter_stuck", &format!("{}{rows}", include_str!("tables/oban.sql")), &expected).await;
}

#[tokio::test]
async fn late_jobs_report_a_missing_leader() {
    for (lease, begins) in [("-5 minutes", "no leader: its lease expired 5m"), ("1 minute", "recovery: ")] {
        let rows = format!(
            "INSERT INTO river_job (kind, state, attempt, attempted_at) VALUES ('Late', 'running', 1, now() - interval '2 hours');
             INSERT INTO river_leader (leader_id, elected_at, expires_at) VALUES ('host', now(), now() + interval '{lease}');"
        );
        let mut stage = stage(&format!("{RIVER}{rows}")).await;
        let found = findings_of(&*stage.poll().await, "adapter_job");
        assert!(found[0].1.starts_with(begins), "{found:?}");
    }
}
