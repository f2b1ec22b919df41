//! A worker runs all its tasks in one session: a termination for one of them reports the others.

use locktop::model::plan::{Reason, Selection, Step};
use serde_json::{Value, json};

use super::binary::{locktop, run_beside};
use super::db::Session;
use super::document::address;
use super::screen::Screen;
use super::stage::Stage;
use super::support::{oldest, server_of, versions};

/// One worker with a slow task and two in time, one of them at its last attempt; and another worker.
async fn stage(version: u32) -> (Stage, Session, Session) {
    let stage = Stage::new(version).await;
    let worker = stage.slow("slow1").await;
    stage.also(&worker, "ok2", 3).await;
    stage.also(&worker, "ok\u{1b}3", 1).await;
    let other = stage.run("elsewhere").await;
    (stage, worker, other)
}

async fn arguments(stage: &Stage, more: &[&'static str]) -> Vec<String> {
    let target = address(server_of(oldest()).await, &stage.info);
    let all = ["recover", &target, "--timeout", "--terminate", "--task", "slow1"];
    all.iter().chain(more).map(ToString::to_string).collect()
}

async fn recover(stage: &Stage, more: &[&'static str]) -> (Option<i32>, String) {
    let arguments = arguments(stage, more).await;
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let left = run_beside(locktop(&arguments)).await;
    assert_eq!(left.err, "");
    (left.status, left.out)
}

#[tokio::test]
async fn other_executions_of_a_session_are_in_the_table_and_the_result() {
    let (stage, worker, other) = stage(oldest()).await;
    let (status, out) = recover(&stage, &["--dry-run"]).await;
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!((status, lines.len()), (Some(0), 4), "{out}");
    let pid = worker.pid;
    assert!(
        lines[1].contains("slow1") && lines[1].contains(&format!("session {pid} will be terminated")),
        "{out}"
    );
    for (line, name, effect) in
        [(lines[2], "ok2", "loses attempt 1 of 3"), (lines[3], "ok␛3", "fails for good: attempt 1 of 1")]
    {
        let effect = format!("{pid}  ends with it: {effect}");
        assert!(line.contains(name) && line.ends_with(&effect), "{out}");
    }
    let (status, out) = recover(&stage, &["--yes"]).await;
    assert_eq!(status, Some(0), "{out}");
    assert!(out.contains("; its session also ran ok2 and ok␛3\n"), "{out}");
    assert!(out.ends_with("1 of 1 recovered.\n"), "{out}");
    stage.state("ok2", "orphan").await;
    stage.state("elsewhere", "running").await;
    assert_eq!(other.ask("SELECT 1").await, "1");
}

#[tokio::test]
async fn other_executions_of_a_session_are_in_the_json() {
    let (stage, _worker, _other) = stage(oldest()).await;
    let read = |out: &str| serde_json::from_str::<Value>(out).unwrap();
    let (_, out) = recover(&stage, &["--dry-run", "--format", "json"]).await;
    let also = &read(&out)["plan"][0]["also_ended"];
    assert_eq!(also[0], json!({"id": 2, "task_name": "ok2", "effect": "loses attempt 1 of 3"}), "{out}");
    assert_eq!((&also[1]["id"], &also[2]), (&json!(3), &Value::Null), "{out}");
    assert_eq!(also[1]["effect"], "fails for good: attempt 1 of 1", "{out}");
    let (_, out) = recover(&stage, &["--yes", "--format", "json"]).await;
    let document = read(&out);
    assert_eq!(document["results"][0]["outcome"], "recovered", "{out}");
    assert_eq!(document["results"][0]["also_ended"], document["plan"][0]["also_ended"], "{out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_executions_of_a_session_are_in_the_question() {
    let (stage, worker, _other) = stage(oldest()).await;
    let arguments = arguments(&stage, &[]).await;
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut screen = Screen::spawn((200, 30), &[], &arguments);
    tokio::task::block_in_place(|| {
        screen.shows(&format!(
            "Terminate session {}, which also runs ok2 and ok␛3, and recover 1 execution? [y/N]",
            worker.pid
        ));
        screen.write(b"n\r");
        screen.shows("nothing was changed");
    });
    assert_eq!((stage.audit().await.as_str(), worker.ask("SELECT 1").await.as_str()), ("", "1"));
}

#[tokio::test]
async fn an_execution_that_is_recovered_itself_is_not_listed_as_also_ended() {
    for version in versions() {
        let (stage, worker, other) = stage(version).await;
        let slow = "UPDATE task_execution_log SET started_at = now() - interval '31 minutes' WHERE worker_id = 'ok2'";
        stage.admin.run(slow).await;
        let plan = stage.plan(Selection::Longer(Some(0.0)), true).await;
        assert_eq!(plan.ended_pids(), [worker.pid], "{version}: each once");
        let row = |name: &str| plan.rows.iter().find(|row| row.seen.task_name == name).unwrap();
        for name in ["slow1", "ok2"] {
            let also: Vec<&str> = row(name).also_ended.iter().map(|also| also.task_name.as_str()).collect();
            assert_eq!(also, ["ok\u{1b}3"], "{version}: {name}");
        }
        let left = row("ok\u{1b}3");
        assert_eq!(left.step, Step::Leave(Reason::SessionEnds), "{version}");
        assert_eq!(
            left.effect(plan.grace),
            format!(
                "skipped, but its session, pid {}, will be terminated for another execution; fails for good: attempt 1 of 1",
                worker.pid
            )
        );
        assert_eq!(row("elsewhere").step, Step::Leave(Reason::InTime));
        let results = stage.execute(&plan).await;
        let also: Vec<usize> = results.iter().map(|result| result.also_ended.len()).collect();
        assert_eq!(
            also.iter().sum::<usize>(),
            1,
            "{version}: only for the one that was terminated: {results:?}"
        );
        assert_eq!(other.ask("SELECT 1").await, "1");
    }
}
