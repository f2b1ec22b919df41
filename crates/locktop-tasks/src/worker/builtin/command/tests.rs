use serde_json::json;

use super::*;
use locktop_base::clock;

fn program(payload: &Value) -> Result<Program, String> {
    Program::read(payload.as_object().unwrap())
}

fn job() -> Job {
    Job {
        source: Source::Tasks,
        id: 42,
        task_id: 3,
        name: "night".to_owned(),
        kind: "command".to_owned(),
        json: None,
        attempt: 2,
        max_attempts: 3,
        timeout: Duration::from_secs(60),
        lock_id: 0,
    }
}

async fn shell(script: &str, limit: Duration) -> Result<String, WorkError> {
    let program = program(&json!({"argv": ["sh", "-c", script]})).unwrap();
    run(&program, &job(), limit, &Stop::never()).await
}

const LONG: Duration = Duration::from_secs(60);

fn failed(reason: &str) -> Result<String, WorkError> {
    Err(WorkError::Failed(reason.to_owned()))
}

#[test]
fn a_program_is_a_list_of_texts() {
    let found = program(&json!({"argv": ["/bin/echo", "a b", ""], "env": {"A_1": "x"}})).unwrap();
    assert_eq!((found.argv.len(), found.env.len()), (3, 1));
    for (payload, said) in [
        (json!({"argv": []}), "argv"),
        (json!({"argv": "ls"}), "argv"),
        (json!({"argv": ["ls", 7]}), "argv"),
        (json!({"argv": ["-c", "x"]}), "argv"),
        (json!({"argv": [""]}), "argv"),
        (json!({"argv": ["ls"], "env": ["A=1"]}), "not an object of strings"),
        (json!({"argv": ["ls"], "env": {"A": 1}}), "not an object of strings"),
        (json!({"argv": ["ls"], "env": {"A=B": "1"}}), "not a name of a variable"),
        (json!({"argv": ["ls"], "env": {"1A": "1"}}), "not a name of a variable"),
    ] {
        let error = program(&payload).unwrap_err();
        assert!(error.contains(said), "{payload}: {error}");
    }
}

#[tokio::test]
async fn the_result_has_the_exit_status_and_the_last_output() {
    assert_eq!(shell("echo one; echo two >&2", LONG).await.map(|output| output.lines().count()), Ok(2));
    assert_eq!(shell("exit 3", LONG).await, failed("exit status 3"));
    assert_eq!(shell("echo why; exit 3", LONG).await, failed("exit status 3: why"));
    assert_eq!(shell("kill -9 $$", LONG).await, failed("ended by signal 9"));
    let none = program(&json!({"argv": ["no-such-program"]})).unwrap();
    let error = run(&none, &job(), LONG, &Stop::never()).await.unwrap_err().to_string();
    assert!(error.starts_with("exit status 127: ") && error.contains("not found"), "{error}");
    // More than a pipe holds.
    let output = shell("i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i + 1)); done", LONG).await.unwrap();
    assert!(output.ends_with("\n19999") && output.lines().count() == 10, "{output}");
}

#[tokio::test]
async fn arguments_bypass_the_shell_and_the_environment_is_not_inherited() {
    let echo = json!({"argv": ["printf", "[%s]", "$HOME", "a b", "; exit 1"], "env": {}});
    let output = run(&program(&echo).unwrap(), &job(), LONG, &Stop::never()).await;
    assert_eq!(output, Ok("[$HOME][a b][; exit 1]".to_owned()));
    // Cargo sets these for its tests.
    assert!(std::env::var("CARGO_MANIFEST_DIR").is_ok());
    let env = json!({"argv": ["sh", "-c", "echo $LOCKTOP_SOURCE $LOCKTOP_ID $LOCKTOP_NAME $LOCKTOP_ATTEMPT $MORE [$CARGO_MANIFEST_DIR]; cat"],
        "env": {"MORE": "x", "LOCKTOP_ATTEMPT": "own"}});
    let output = run(&program(&env).unwrap(), &job(), LONG, &Stop::never()).await;
    assert_eq!(output, Ok("task 42 night own x []".to_owned()), "and standard input is empty");
}

/// True also for a zombie that was not waited for yet.
fn has_ended(pid: &str) -> bool {
    let state = std::process::Command::new("ps").args(["-o", "stat=", "-p", pid]).output().unwrap();
    let state = String::from_utf8_lossy(&state.stdout).trim().to_owned();
    state.is_empty() || state.starts_with('Z')
}

async fn wait_until_ended(pid: &str) {
    let start = clock::monotonic();
    while !has_ended(pid) {
        assert!(start.elapsed() < LONG, "{pid} has not ended");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The first ends when it is asked to, the second only when it is killed; the same applies to their children.
#[tokio::test]
async fn past_its_time_the_whole_group_ends() {
    for ignore in ["", "trap '' TERM; "] {
        let script = format!("{ignore}sleep 1000 & echo $! $$; wait; sleep 1000");
        let error = shell(&script, Duration::from_millis(500)).await.unwrap_err().to_string();
        let pids = error.strip_prefix("timed out after 0.5 s: ").unwrap_or_else(|| panic!("{error}"));
        for pid in pids.split(' ') {
            wait_until_ended(pid).await;
        }
    }
}

#[tokio::test]
async fn processes_left_in_the_group_end_with_the_program() {
    let output = shell("sleep 1000 >/dev/null 2>&1 & echo $!", LONG).await.unwrap();
    wait_until_ended(&output).await;
    // Also a process that keeps the output open.
    let output = shell("sleep 1000 & echo $!", LONG).await.unwrap();
    wait_until_ended(&output).await;
}

/// Dropped, as when the worker ends at once.
#[tokio::test]
async fn dropping_the_work_kills_the_program() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pid");
    let script = format!("echo $$ > {0}.new; mv {0}.new {0}; sleep 1000", file.display());
    let work = tokio::spawn(async move { shell(&script, LONG).await });
    let start = clock::monotonic();
    while !file.exists() {
        assert!(start.elapsed() < LONG);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let pid = std::fs::read_to_string(&file).unwrap();
    assert!(!has_ended(pid.trim()));
    work.abort();
    wait_until_ended(pid.trim()).await;
}

#[test]
fn the_end_is_kept_and_harmless() {
    let mut tail = Tail::default();
    for number in 0..100_000 {
        tail.push(format!("line {number}\n\n").as_bytes());
    }
    tail.push(b"\x1b[2Jlast\xff");
    assert!(tail.0.len() <= KEPT_BYTES);
    let lines = tail.lines();
    assert_eq!(lines.lines().count(), LINES);
    assert!(lines.starts_with("line 99991\n") && lines.ends_with("last\u{fffd}"), "{lines:?}");
    assert!(!lines.contains('\u{1b}'));
    tail.push(&vec![b'x'; 10 * KEPT_BYTES]);
    assert!(tail.0.len() == KEPT_BYTES && tail.lines().chars().count() <= WIDTH);
}
