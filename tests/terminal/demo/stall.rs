//! Work that hangs: its worker lives and holds its lock, so its task is not recovered unless ending it is requested.

use rustix::process::Signal;

use super::headless::Running;
use super::support::wait_until;
use super::url::target;

#[tokio::test]
async fn a_live_worker_is_left_alone_until_its_end_is_requested() {
    let (target, client) = target().await;
    let running =
        Running::start(&["--url", &target, "--scenario", "stall", "--duration", "1h", "--format", "json"]);
    let exists = "SELECT to_regclass('locktop_demo_tasks.running_tasks') IS NOT NULL";
    wait_until("its schema", async || client.query_one(exists, &[]).await.unwrap().get(0)).await;
    let hung = "SELECT r.execution_id, r.holder_pid FROM locktop_demo_tasks.running_tasks r
                  JOIN locktop_demo_tasks.scheduled_tasks t ON t.id = r.task_id
                 WHERE t.payload ->> 'ends' = 'hangs' AND r.state = 'slow' AND r.holder_pid = r.backend_pid";
    let mut execution = 0_i64;
    wait_until("hung work past its timeout", async || {
        let rows = client.query(hung, &[]).await.unwrap();
        rows.first().map(|row| execution = row.get(0)).is_some()
    })
    .await;
    let ended = "SELECT status = 'failed' FROM locktop_demo_tasks.task_execution_log WHERE id = $1";
    wait_until("it to be ended", async || client.query_one(ended, &[&execution]).await.unwrap().get(0)).await;
    // The request was first, and is recorded.
    let audit = "SELECT action FROM locktop_demo_tasks.locktop_audit WHERE execution_id = $1 ORDER BY id";
    let actions: Vec<String> =
        client.query(audit, &[&execution]).await.unwrap().iter().map(|row| row.get(0)).collect();
    assert_eq!(actions.first().map(String::as_str), Some("asked"), "{actions:?}");
    assert_eq!(actions.len(), 2, "{actions:?}");
    running.signal(Signal::INT);
    let left = tokio::task::spawn_blocking(|| running.finish()).await.unwrap();
    assert_eq!((left.status, left.number("double_runs")), (Some(0), 0), "{left:?}");
    assert_eq!(left.number("recovered_twice"), 0);
}
