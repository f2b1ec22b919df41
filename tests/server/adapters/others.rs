//! Rows of each state of Camunda, Delayed Job, Hangfire, `JobRunr` and Spring Batch.

use std::fmt::Write as _;

use super::states::assert_states;
use super::{Part, are_read};

const CAMUNDA: &str = include_str!("tables/camunda.sql");
const HANGFIRE: &str = include_str!("tables/hangfire.sql");
const JOBRUNR: &str = include_str!("tables/jobrunr.sql");
const SPRING_BATCH: &str = include_str!("tables/spring_batch.sql");
const DELAYED_JOB: &str = include_str!("tables/delayed_job.sql");

/// A failed job can keep its owner and a time of expiry, and a suspended one is not run again: neither is lost.
#[tokio::test]
async fn camunda() {
    let (now, ahead, past) = ("now()", "now() + interval '5 min'", "now() - interval '1 s'");
    let mut rows = "INSERT INTO act_ru_jobdef VALUES ('d', 'invoice', 'archive', 1);".to_owned();
    // Owner and its end, the date, retries, suspension, error.
    for (name, owner, until, due, retries, suspension, error) in [
        ("runs", "'o'", ahead, "NULL", 3, 1, "NULL"),
        ("lost", "'o'", past, "NULL", 3, 1, "NULL"),
        ("due", "NULL", "NULL", "NULL", 3, 1, "NULL"),
        ("again", "NULL", "NULL", now, 2, 1, "'no'"),
        ("pause", "'o'", ahead, now, 2, 1, "'no'"),
        ("after", "'o'", past, now, 2, 1, "'no'"),
        ("later", "NULL", "NULL", ahead, 3, 1, "NULL"),
        ("suspended", "NULL", "NULL", now, 3, 2, "NULL"),
        ("left", "'o'", past, now, 3, 2, "NULL"),
        ("finishes", "'o'", ahead, now, 3, 2, "NULL"),
        ("failed", "NULL", "NULL", now, 0, 1, "'boom'"),
    ] {
        let _ = write!(
            rows,
            "INSERT INTO act_ru_job (id_, type_, process_def_key_, handler_type_, retries_, create_time_, duedate_, lock_owner_, lock_exp_time_, suspension_state_, exception_msg_)
                VALUES ('{name}', 'message', '{name}', 'job', {retries}, now(), {due}, {owner}, {until}, {suspension}, {error});"
        );
    }
    rows += "UPDATE act_ru_job SET job_def_id_ = 'd' WHERE id_ = 'due';
        UPDATE act_ru_job SET exception_msg_ = NULL, exception_stack_id_ = 's' WHERE id_ = 'after';";
    for (name, worker, until, retries, suspension, error) in [
        ("runs", "'w'", ahead, "NULL", "1", "NULL"),
        ("lost", "'w'", past, "NULL", "1", "NULL"),
        ("due", "NULL", "NULL", "NULL", "NULL", "NULL"),
        ("pause", "'w'", ahead, "2", "1", "NULL"),
        ("after", "'w'", past, "2", "1", "'no'"),
        ("suspended", "NULL", "NULL", "NULL", "2", "NULL"),
        ("left", "'w'", past, "NULL", "2", "NULL"),
        ("held", "'w'", ahead, "2", "2", "'no'"),
        ("failed", "'w'", now, "0", "1", "'boom'"),
    ] {
        let _ = write!(
            rows,
            "INSERT INTO act_ru_ext_task (id_, topic_name_, proc_def_key_, act_id_, worker_id_, lock_exp_time_, retries_, suspension_state_, error_msg_)
                VALUES ('{name}', 'mail', '{name}', 'ext', {worker}, {until}, {retries}, {suspension}, {error});"
        );
    }
    let json = assert_states(
        &format!("{CAMUNDA}{rows}"),
        &[
            ("runs job", "running", "lease", ""),
            ("lost job", "lost", "lease", "when"),
            ("due archive", "due", "none", ""),
            ("again job", "retry", "none", ""),
            ("pause job", "retry", "none", ""),
            ("after job", "retry", "none", ""),
            ("later job", "scheduled", "none", ""),
            ("suspended job", "blocked", "none", ""),
            ("left job", "blocked", "none", ""),
            ("finishes job", "running", "lease", ""),
            ("failed job", "failed", "none", ""),
            ("runs ext", "running", "lease", ""),
            ("lost ext", "lost", "lease", "when"),
            ("due ext", "due", "none", ""),
            ("pause ext", "retry", "none", ""),
            ("after ext", "retry", "none", ""),
            ("suspended ext", "blocked", "none", ""),
            ("left ext", "blocked", "none", ""),
            ("held ext", "blocked", "none", ""),
            ("failed ext", "failed", "none", ""),
        ],
    )
    .await;
    let jobs = json["adapters"][0]["jobs"].as_array().unwrap();
    let failed = jobs.iter().find(|job| job["name"] == "failed ext").unwrap();
    assert_eq!(
        failed["advice"],
        r#"curl -X PUT -H 'Content-Type: application/json' -d '{"retries": 1}' http://localhost:8080/engine-rest/external-task/failed/retries"#
    );
}

/// No column of its conditions has an index: in a large table only the external tasks are read.
#[tokio::test]
async fn camunda_with_many_jobs() {
    let many = "INSERT INTO act_ru_job (id_, type_, retries_, duedate_) SELECT n::text, 'timer', 3, now() + n * interval '1 min' FROM generate_series(1, 150000) n;
        INSERT INTO act_ru_ext_task (id_, topic_name_, act_id_) VALUES ('1', 'mail', 'send');";
    let read = [(Part::Running, Some(2)), (Part::Due, Some(2)), (Part::Failed, Some(2))];
    are_read(&format!("{CAMUNDA}{many}"), &read).await;
}

#[tokio::test]
async fn delayed_job() {
    let active = "--- !ruby/object:ActiveJob::QueueAdapters::DelayedJobAdapter::JobWrapper\njob_data:\n  job_class: Mail::Send\n  job_id: x";
    let rows = format!(
        "INSERT INTO delayed_jobs (handler, run_at, locked_at, locked_by, failed_at, attempts, last_error) VALUES
            ('{active}', now(), now(), 'host:web pid:7', NULL, 0, NULL), ('--- !ruby/struct:Old\n', now(), now() - interval '5 hours', 'host:web pid:8', NULL, 1, NULL),
            ('--- !ruby/object:Due\n', now(), NULL, NULL, NULL, 0, NULL), ('--- !ruby/object:Again\n', now(), NULL, NULL, NULL, 2, 'no'),
            ('--- !ruby/object:Later\n', now() + interval '1 hour', NULL, NULL, NULL, 0, NULL), ('--- !ruby/object:Failed\n', now(), NULL, NULL, now(), 25, 'boom');"
    );
    let json = assert_states(
        &format!("{DELAYED_JOB}{rows}"),
        &[
            ("Mail::Send", "running", "lease", ""),
            ("Old", "lost", "lease", "when"),
            ("Due", "due", "none", ""),
            ("Again", "retry", "none", ""),
            ("Later", "scheduled", "none", ""),
            ("Failed", "failed", "none", ""),
        ],
    )
    .await;
    let old =
        json["adapters"][0]["jobs"].as_array().unwrap().iter().find(|job| job["name"] == "Old").unwrap();
    assert_eq!(
        old["advice"],
        "Delayed::Job.where(id: 2, locked_by: 'host:web pid:8').update_all(locked_at: nil, locked_by: nil)"
    );
}

/// Only `(priority, run_at)` has an index: running jobs are searched for at its beginning.
#[tokio::test]
async fn delayed_job_with_many_rows() {
    let many = "INSERT INTO delayed_jobs (handler, run_at, locked_at) SELECT '--- !ruby/object:J', now() - n * interval '1 s', CASE WHEN n > 149990 THEN now() END
        FROM generate_series(1, 150000) n";
    let read =
        [(Part::Running, Some(2)), (Part::Due, Some(1)), (Part::Scheduled, Some(1)), (Part::Failed, Some(2))];
    are_read(&format!("{DELAYED_JOB}{many}"), &read).await;
}

#[tokio::test]
async fn hangfire() {
    let call = |name: &str| format!("{{\"Type\": \"App.Mail, App\", \"Method\": \"{name}\"}}");
    let mut rows = "
        INSERT INTO hangfire.server VALUES ('web:1', '{\"Queues\": [\"default\", \"mail\"], \"WorkerCount\": 20}', now()), ('web:2', '{}', now() - interval '6 minutes');
        INSERT INTO hangfire.lock (resource, acquired) VALUES ('hangfire:locks:a', now()), ('hangfire:locks:b', now() - interval '11 minutes');"
        .to_owned();
    for (id, name, state, fetched, data) in [
        (1, "Beats", "Processing", "now()", r#"{"ServerId": "web:1"}"#),
        (2, "Silent", "Processing", "now()", r#"{"ServerId": "web:2"}"#),
        (3, "Absent", "Processing", "now() - interval '1 minute'", r#"{"ServerId": "web:3"}"#),
        (4, "Fetched", "Enqueued", "now()", "{}"),
        (5, "Over", "Enqueued", "now() - interval '31 minutes'", "{}"),
        (6, "Due", "Enqueued", "NULL", "{}"),
        (7, "Later", "Scheduled", "", "{}"),
        (8, "Again", "Scheduled", "", "{}"),
        (9, "Failed", "Failed", "", "{}"),
        (10, "Done", "Succeeded", "", "{}"),
    ] {
        let reason = if name == "Again" { "Retry attempt 1 of 10" } else { "boom" };
        let _ = write!(
            rows,
            "INSERT INTO hangfire.job (id, stateid, statename, invocationdata) VALUES ({id}, {id}, '{state}', '{}');
             INSERT INTO hangfire.state (id, jobid, name, reason, data) VALUES ({id}, {id}, '{state}', '{reason}', '{data}');",
            call(name)
        );
        if !fetched.is_empty() {
            let _ = write!(
                rows,
                "INSERT INTO hangfire.jobqueue (jobid, queue, fetchedat) VALUES ({id}, 'default', {fetched});"
            );
        }
        if state == "Scheduled" {
            let _ = write!(
                rows,
                "INSERT INTO hangfire.set (key, score, value) VALUES ('schedule', extract(epoch FROM now() + interval '1 h'), '{id}');"
            );
        }
    }
    let json = assert_states(
        &format!("{HANGFIRE}{rows}"),
        &[
            ("App.Mail.Beats", "running", "heartbeat", ""),
            ("App.Mail.Silent", "lost", "heartbeat", "when"),
            ("App.Mail.Absent", "lost", "absent", "when"),
            ("App.Mail.Fetched", "running", "lease", ""),
            ("App.Mail.Over", "lost", "lease", "when"),
            ("App.Mail.Due", "due", "none", ""),
            ("App.Mail.Later", "scheduled", "none", ""),
            ("App.Mail.Again", "retry", "none", ""),
            ("App.Mail.Failed", "failed", "none", ""),
        ],
    )
    .await;
    let one = &json["adapters"][0];
    assert_eq!(one["version"], "schema 23");
    let worker = one["workers"].as_array().unwrap().iter().find(|worker| worker["id"] == "web:1").unwrap();
    assert_eq!((&worker["queues"], &worker["capacity"]), (&"\"default\", \"mail\"".into(), &20.into()));
    assert_eq!(one["leases"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn jobrunr() {
    let rows = "
        INSERT INTO jobrunr_backgroundjobservers VALUES ('s1', 16, 15, now(), now(), 1);
        INSERT INTO jobrunr_jobs (id, jobsignature, state, updatedat, scheduledat) VALUES
            ('1', 'Beats', 'PROCESSING', now(), NULL), ('2', 'Silent', 'PROCESSING', now() - interval '61 s', NULL), ('3', 'Due', 'ENQUEUED', now(), NULL),
            ('4', 'Later', 'SCHEDULED', now(), now() + interval '1 hour'), ('5', 'Failed', 'FAILED', now(), NULL), ('6', 'Done', 'SUCCEEDED', now(), NULL),
            ('7', 'Elsewhere', 'PROCESSING', now() + interval '2 hours', NULL);";
    let expected = [
        ("Beats", "running", "heartbeat", ""),
        ("Silent", "lost", "heartbeat", "as"),
        ("Elsewhere", "unknown", "none", ""),
        ("Due", "due", "none", ""),
        ("Later", "scheduled", "none", ""),
        ("Failed", "failed", "none", ""),
    ];
    let json = assert_states(&format!("{JOBRUNR}{rows}"), &expected).await;
    assert_eq!(json["adapters"][0]["workers"][0]["id"], "s1");
}

#[tokio::test]
async fn spring_batch() {
    let rows = "
        INSERT INTO batch_job_instance VALUES (1, 0, 'Runs', 'k1'), (2, 0, 'Failed', 'k2'), (3, 0, 'Done', 'k3');
        INSERT INTO batch_job_execution (job_execution_id, job_instance_id, start_time, end_time, status, exit_message) VALUES
            (1, 1, now(), NULL, 'STARTED', NULL), (2, 2, now(), now(), 'FAILED', 'boom'), (3, 3, now(), now(), 'COMPLETED', NULL);";
    let expected = [("Runs", "unknown", "none", ""), ("Failed", "failed", "none", "")];
    let json = assert_states(&format!("{SPRING_BATCH}{rows}"), &expected).await;
    let one = &json["adapters"][0];
    assert_eq!((&one["prefix"], &one["title"]), (&"batch_".into(), &"Spring Batch".into()));
}

#[tokio::test]
async fn hangfire_jobrunr_and_spring_batch_with_many_rows() {
    let hangfire = "INSERT INTO hangfire.job (stateid, statename, invocationdata) SELECT n, CASE WHEN n % 1000 = 0 THEN 'Failed' ELSE 'Succeeded' END, '{}' FROM generate_series(1, 150000) n;
        INSERT INTO hangfire.state (jobid, name) SELECT n, 'Succeeded' FROM generate_series(1, 150000) n;
        INSERT INTO hangfire.jobqueue (jobid, queue, fetchedat) SELECT n, 'q', CASE WHEN n < 20 THEN now() END FROM generate_series(1, 120000) n;
        INSERT INTO hangfire.set (key, score, value) SELECT CASE WHEN n < 110000 THEN 'schedule' ELSE 'other' END, n, n::text FROM generate_series(1, 120000) n;";
    let first = |parts: &[Part]| parts.iter().map(|part| (*part, Some(1))).collect::<Vec<_>>();
    let all = first(&[Part::Running, Part::Due, Part::Scheduled, Part::Failed, Part::Depth]);
    are_read(&format!("{HANGFIRE}{hangfire}"), &all).await;
    let jobrunr = "INSERT INTO jobrunr_jobs (id, jobsignature, state, scheduledat) SELECT n, 'j', CASE WHEN n < 20 THEN 'PROCESSING' WHEN n < 20000 THEN 'ENQUEUED' WHEN n < 22000 THEN 'SCHEDULED'
            WHEN n < 23000 THEN 'FAILED' ELSE 'SUCCEEDED' END, CASE WHEN n BETWEEN 20000 AND 21999 THEN now() + n * interval '1 s' END FROM generate_series(1, 150000) n;";
    are_read(&format!("{JOBRUNR}{jobrunr}"), &all).await;
    let spring = "INSERT INTO batch_job_instance SELECT n, 0, 'J', n::text FROM generate_series(1, 120000) n;
        INSERT INTO batch_job_execution (job_execution_id, job_instance_id, status) SELECT n, n, 'COMPLETED' FROM generate_series(1, 120000) n;";
    are_read(&format!("{SPRING_BATCH}{spring}"), &first(&[Part::Running, Part::Failed])).await;
}
