//! Starting and quitting.

use std::process::{Command, Stdio};

use super::incident::Incident;

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_first_screen_names_the_root_and_quitting_gives_the_terminal_back() {
    let incident = Incident::crowd(30).await;
    let root = incident.root().to_string();
    for keys in ["q", "<ctrl-c>"] {
        let mut screen = incident.screen((80, 24), &[], &["--mouse"]);
        screen.wait_for("the root and how many it blocks", |screen| {
            let row = screen.rows(0, 80).find(|row| row.contains(&root) && row.contains("blocks 30"));
            row.is_some_and(|row| row.contains(": 1 ") && row.contains(" in turn"))
        });
        assert!(screen.is_raw());
        screen.keys(keys);
        assert_eq!(screen.wait_exit(), 0, "{keys}");
        screen.assert_restored();
        assert!(!screen.raw_tail().contains("PID"), "drawn after the end: {}", screen.raw_tail());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_chain_is_on_the_first_screen() {
    let incident = Incident::of(&[locktop::demo::scenario::Scenario::Chain]).await;
    let mut screen = incident.looked_at((120, 35));
    screen.shows("blocks 12");
    let waiters: Vec<_> = incident.running[0].facts.waits.iter().map(|wait| wait.waiter).collect();
    assert_eq!(waiters.len(), 12);
    screen.shows("…10 deep");
    screen.keys("<tab>gjj<enter>");
    for waiter in waiters {
        screen.shows(&waiter.to_string());
    }
    screen.keys("q");
    assert_eq!(screen.wait_exit(), 0);
}

#[test]
fn without_a_terminal_the_error_names_the_snapshot_command() {
    for arguments in [&["demo"][..], &["host=/nonexistent"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_locktop"))
            .args(arguments)
            .env("XDG_CONFIG_HOME", "/nonexistent")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(error.contains("needs a terminal") && error.contains("locktop snapshot"), "{error}");
        assert!(output.stdout.is_empty());
    }
}

/// A terminal without escape sequences is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_dumb_terminal_is_refused_as_none() {
    let incident = Incident::crowd(1).await;
    let mut screen = incident.screen((80, 24), &[("TERM", "dumb")], &[]);
    assert_eq!(screen.wait_exit(), 1);
    let output = String::from_utf8_lossy(&screen.seen().raw).into_owned();
    assert!(output.contains("TERM is \"dumb\"") && output.contains("locktop snapshot"), "{output:?}");
    assert!(!output.contains('\u{1b}'), "{output:?}");
}
