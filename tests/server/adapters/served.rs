//! Workers, queues, leases and schedules: how they are, on the screens and in the JSON.

use locktop::model::adapter::WorkerState;
use locktop::model::finding::Finding;

use super::stage::Stage;
use super::{SOLID_QUEUE, all};

/// A worker that shows itself, one that is silent, a job that has been due for an hour, a pause, a semaphore and a schedule.
const ROWS: &str = "
    INSERT INTO solid_queue_processes (id, kind, last_heartbeat_at, pid, hostname) VALUES
        (1, 'Worker', now(), 11, 'web'), (2, 'Worker', now() - interval '6 minutes', 12, 'web');
    INSERT INTO solid_queue_jobs (id, queue_name, class_name, scheduled_at) VALUES
        (1, 'q', 'Beats', now()), (5, 'q', 'Due', now() - interval '1 hour'), (11, 'p', 'Paused', now());
    INSERT INTO solid_queue_claimed_executions (job_id, process_id) VALUES (1, 1);
    INSERT INTO solid_queue_ready_executions (job_id, queue_name, created_at) VALUES
        (5, 'q', now() - interval '1 hour'), (11, 'p', now());
    INSERT INTO solid_queue_semaphores (key, value, expires_at) VALUES
        ('k', 0, now() + interval '1 hour'), ('l', 0, now() - interval '1 minute');
    INSERT INTO solid_queue_recurring_tasks (key, schedule, class_name) VALUES ('nightly', '0 3 * * *', 'Nightly');
    INSERT INTO solid_queue_pauses (queue_name) VALUES ('p');";

/// Pairs of two keys of a list.
fn pairs(one: &serde_json::Value, list: &str, keys: [&str; 2]) -> Vec<[String; 2]> {
    let text = |value: &serde_json::Value| value.as_str().unwrap_or("-").to_owned();
    one[list].as_array().unwrap().iter().map(|row| keys.map(|key| text(&row[key]))).collect()
}

#[tokio::test]
async fn workers_queues_leases_and_schedules_are_shown() {
    let mut stage = Stage::on(super::server().await, &format!("{SOLID_QUEUE}{ROWS}")).await;
    stage.adapters(all()).await;
    stage.poll().await;
    let view = stage.poll().await;
    assert_eq!(view.adapters.workers[0].state, WorkerState::Silent, "the worst is first");
    let json = stage.json();
    let one = &json["adapters"][0];
    let owned =
        |rows: &[[&str; 2]]| -> Vec<[String; 2]> { rows.iter().map(|row| row.map(str::to_owned)).collect() };
    assert_eq!(pairs(one, "workers", ["id", "state"]), owned(&[["1", "live"], ["2", "silent"]]));
    assert_eq!(pairs(one, "workers", ["id", "proof"]), owned(&[["1", "heartbeat"], ["2", "heartbeat"]]));
    assert_eq!(
        pairs(one, "queues", ["queue", "state"]),
        owned(&[["q", "overdue"], ["p", "paused"], ["-", "open"]])
    );
    assert_eq!(pairs(one, "leases", ["id", "state"]), owned(&[["l", "over"], ["k", "held"]]));
    assert_eq!(pairs(one, "schedules", ["id", "state"]), owned(&[["nightly", "on"]]));
    for (screen, words) in [
        ('4', ["Schedules · 1 schedule", "Nightly"].as_slice()),
        ('5', &["Leases of other systems · 2 leases · 1 held", "over    l", "held    k"]),
        (
            '6',
            &["Job queues · 2 queues · 1 overdue · 1 paused", "Job workers · 2 workers · 1 silent", "web:12"],
        ),
    ] {
        let shown = stage.screen_of(screen, 120, 35);
        for word in words {
            assert!(shown.contains(word), "{word} in {shown}");
        }
    }
}

#[tokio::test]
async fn a_queue_without_live_workers_is_a_finding() {
    let mut stage = Stage::on(super::server().await, &format!("{SOLID_QUEUE}{ROWS}")).await;
    stage.adapters(all()).await;
    stage.poll().await;
    let view = stage.poll().await;
    assert!(view.findings.iter().all(|finding| finding.check != "adapter_queue"), "one worker lives");
    for (change, reason) in [
        (
            "UPDATE solid_queue_processes SET last_heartbeat_at = now() - interval '1 hour'",
            "none of its 2 workers is alive",
        ),
        ("DELETE FROM solid_queue_processes", "no worker is listed"),
    ] {
        stage.client().await.batch_execute(change).await.unwrap();
        let is_it =
            |finding: &&Finding| finding.check == "adapter_queue" && finding.summary.ends_with(reason);
        stage.poll_until(reason, |view| view.findings.iter().any(|finding| is_it(&finding))).await;
        let finding = stage.view().findings.iter().find(is_it).unwrap();
        let begins = "Solid Queue: 1 job is due, for 1h00m, and ";
        assert!(finding.summary.starts_with(begins), "{}", finding.summary);
        assert_eq!(&*finding.about, "queue q");
    }
    let json = stage.json();
    let finding =
        json["findings"].as_array().unwrap().iter().find(|one| one["check"] == "adapter_queue").unwrap();
    assert_eq!(
        finding["subject"],
        serde_json::json!({"kind": "job_queue", "adapter": "solid_queue", "schema": "public", "queue": "q"})
    );
    let above = stage.view().findings.iter().take_while(|finding| finding.check != "adapter_queue").count();
    let screen = stage.screen_after(&format!("!{}<enter>", "j".repeat(above)), 120, 35);
    assert!(
        screen.contains("Queue of Solid Queue") && screen.contains("unserved: "),
        "a finding leads to its queue: {screen}"
    );
}
