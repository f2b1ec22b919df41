//! The question, on a terminal.

use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::schema::{self, SchemaName};
use rustix::process::{Pid, Signal, kill_process};

use super::db::Session;
use super::document::address;
use super::screen::{PROGRAM, Screen};
use super::stage::Stage;
use super::support::{conninfo, oldest, open, server_of};

async fn ask(stage: &Stage, arguments: &[&str]) -> Screen {
    let target = address(server_of(oldest()).await, &stage.info);
    Screen::spawn((200, 30), &[], &[&["recover", &target], arguments].concat())
}

/// Off the runtime's thread, which the sessions need.
fn blocking<T>(work: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(work)
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_yes_recovers() {
    let stage = Stage::new(oldest()).await;
    stage.orphan("gone").await;
    for (typed, shown) in
        [("n\r", "nothing was changed"), ("\r", "nothing was changed"), ("\u{4}", "nothing was changed")]
    {
        let mut screen = ask(&stage, &[]).await;
        blocking(|| {
            screen.shows("Recover 1 execution? [y/N]");
            screen.shows("due again in 10s; attempt 1 of 3 failed");
            screen.write(typed.as_bytes());
            screen.shows(shown);
            assert_eq!(screen.exit_status(), 1, "{typed:?}");
        });
        assert_eq!(stage.audit().await, "", "{typed:?}");
    }
    let mut screen = ask(&stage, &[]).await;
    blocking(|| {
        screen.shows("[y/N]");
        screen.write(b"y\r");
        screen.shows("1 of 1 recovered.");
        assert_eq!(screen.exit_status(), 0);
    });
    assert_eq!(stage.audit().await, "recovered|gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_question_names_the_sessions_to_terminate() {
    let stage = Stage::new(oldest()).await;
    let one = stage.slow("one").await;
    let two = stage.slow("two").await;
    stage.orphan("gone").await;
    let target = address(server_of(oldest()).await, &stage.info);
    let shell = ["sh", "-c", "trap : INT; \"$0\" \"$@\"; echo left with $?", PROGRAM];
    let words = [&shell[..], &["recover", &target, "--timeout", "--terminate"]].concat();
    blocking(|| {
        let mut screen = Screen::spawn_shell((200, 30), &[], &words);
        screen.shows(&format!(
            "Terminate 2 sessions {}, {}, and recover 3 executions? [y/N]",
            one.pid, two.pid
        ));
        // Ctrl-C is no answer: 128 + SIGINT.
        screen.write(b"\x03");
        screen.shows("left with 130");
    });
    assert_eq!((stage.audit().await.as_str(), one.ask("SELECT 1").await.as_str()), ("", "1"));
    let mut screen = ask(&stage, &["--timeout", "--terminate", "--task", "one", "--format", "json"]).await;
    blocking(|| {
        // The JSON object is printed at the end, so the plan is shown for the question.
        screen.shows("ACTION");
        screen.shows(&format!("Terminate session {}, and recover 1 execution? [y/N]", one.pid));
        screen.write(b"yes\r");
        screen.shows("\"outcome\":\"recovered\"");
        assert_eq!(screen.exit_status(), 0);
    });
    assert_eq!(stage.audit().await, "asked|one\nrecovered|one");
    assert_eq!(two.ask("SELECT 1").await, "1");
}

/// Without anything to recover there is no question.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_asked_when_nothing_would_be_done() {
    let stage = Stage::new(oldest()).await;
    let _slow = stage.slow("slow").await;
    let mut screen = ask(&stage, &["--timeout"]).await;
    blocking(|| {
        screen.shows("0 of 1 recovered; 1 could not be.");
        assert_eq!(screen.exit_status(), 1);
        assert!(!screen.contents().contains("[y/N]"));
    });
}

/// Input that was typed before the question is not an answer to it.
#[tokio::test(flavor = "multi_thread")]
async fn keys_typed_ahead_answer_nothing() {
    let server = EmbeddedServer::start(Options::default()).await.unwrap();
    let info = conninfo(&server);
    schema::install(&mut open(&info).await.client, &SchemaName::default()).await.unwrap();
    let admin = Session::open(&info).await;
    let make = "ALTER DATABASE postgres SET locktop.orphan_grace = '0';
        INSERT INTO scheduled_tasks (task_name, task_type, next_run_at) VALUES ('gone', 'x', now());
        SELECT * FROM fetch_tasks('w'); SELECT pg_advisory_unlock_all()";
    admin.run(make).await;
    // No session can connect for a while.
    let postmaster = Pid::from_raw(server.pid().unwrap()).unwrap();
    kill_process(postmaster, Signal::STOP).unwrap();
    let mut screen = Screen::spawn((200, 30), &[], &["recover", &server.conninfo()]);
    blocking(|| {
        screen.write(b"y\r");
        screen.shows("y");
        kill_process(postmaster, Signal::CONT).unwrap();
        screen.shows("Recover 1 execution? [y/N]");
        screen.write(b"\r");
        screen.shows("nothing was changed");
        assert_eq!(screen.exit_status(), 1);
    });
    assert_eq!(admin.ask("SELECT count(*) FROM locktop_audit").await, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_its_name_drops_the_schema() {
    let stage = Stage::new(oldest()).await;
    let target = address(server_of(oldest()).await, &stage.info);
    let drop = || Screen::spawn((200, 30), &[], &["schema", "drop", &target]);
    for typed in ["y\r", "\r", "Locktop\r", "\u{4}"] {
        let mut screen = drop();
        blocking(|| {
            screen.shows("rows of task_execution_log");
            screen.shows("Type locktop to drop it:");
            screen.write(typed.as_bytes());
            screen.shows("nothing was dropped");
            assert_eq!(screen.exit_status(), 1, "{typed:?}");
        });
    }
    let mut screen = drop();
    blocking(|| {
        screen.shows("Type locktop to drop it:");
        screen.write(b"locktop\r");
        screen.shows("Dropped the schema \"locktop\", version");
        assert_eq!(screen.exit_status(), 0);
    });
}
