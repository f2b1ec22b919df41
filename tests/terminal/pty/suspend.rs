//! Suspending and continuing.

use rustix::process::Signal;

use super::incident::Incident;
use super::process::is_stopped;
use super::screen::{PROGRAM, Screen};
use super::support::wait_for;

/// Checks that the program has stopped and restored the terminal, then that it continues, redraws everything
/// and reads keys.
fn suspends_and_continues(screen: &mut Screen, root: &str) {
    wait_for("the program to stop", || is_stopped(screen.pid()));
    screen.wait("the terminal to be restored", |seen| !seen.emulator.screen().alternate_screen());
    screen.assert_restored();
    continues(screen, root);
}

fn continues(screen: &mut Screen, root: &str) {
    screen.signal(Signal::CONT);
    screen.wait_for("everything to be drawn again", |screen| {
        let text = screen.contents();
        screen.alternate_screen() && text.contains(root) && text.contains("LIVE") && text.contains("q quit")
    });
    wait_for("raw mode", || screen.is_raw());
    screen.keys("?");
    screen.shows("Help");
    screen.keys("q");
    screen.hides("Help");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn suspending_restores_the_terminal_and_continuing_redraws_it() {
    let incident = Incident::crowd(3).await;
    let root = incident.root().to_string();
    let mut screen = incident.looked_at_from_shell((80, 24));
    for _ in 0..2 {
        screen.keys("<ctrl-z>");
        suspends_and_continues(&mut screen, &root);
    }
    screen.signal(Signal::TSTP);
    suspends_and_continues(&mut screen, &root);
    screen.keys("<ctrl-z>");
    wait_for("the program to stop", || is_stopped(screen.pid()));
    screen.resize((59, 20));
    screen.signal(Signal::CONT);
    screen.shows("this is 59x20");
    screen.resize((120, 35));
    screen.shows(&root);
    screen.keys("q");
    assert_eq!(screen.wait_exit(), 0);
    screen.assert_restored();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn it_continues_after_an_unexpected_sigstop() {
    let incident = Incident::crowd(3).await;
    let root = incident.root().to_string();
    let mut screen = incident.looked_at_from_shell((80, 24));
    screen.signal(Signal::STOP);
    wait_for("the program to stop", || is_stopped(screen.pid()));
    // A shell does this before it shows its prompt.
    screen.cook();
    screen.seen().emulator.process(b"\x1b[?1049l\x1b[?25h\x1b[2J");
    continues(&mut screen, &root);
    screen.keys("q");
    assert_eq!(screen.wait_exit(), 0);
    screen.assert_restored();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stopped_program_can_be_ended() {
    let incident = Incident::crowd(3).await;
    let mut screen = incident.looked_at_from_shell((80, 24));
    screen.keys("<ctrl-z>");
    wait_for("the program to stop", || is_stopped(screen.pid()));
    screen.signal(Signal::TERM);
    screen.signal(Signal::CONT);
    assert_eq!(screen.wait_exit(), 128 + 15);
    screen.assert_restored();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn it_does_not_suspend_without_a_shell_to_continue_it() {
    let incident = Incident::crowd(3).await;
    let target = incident.server.conninfo();
    let leader = || incident.looked_at((80, 24));
    // This shell does not give the program a group of its own.
    let script = || {
        let words = ["/bin/sh", "-c", "\"$@\"; exit $?", "sh", PROGRAM, &target, "--refresh", "0.2s"];
        let screen = Screen::spawn_shell((80, 24), &[], &words);
        screen.shows(&incident.root().to_string());
        screen
    };
    let ctrl_z = |screen: &mut Screen| screen.keys("<ctrl-z>");
    let signal = |screen: &mut Screen| screen.signal(Signal::TSTP);
    let starts: [&dyn Fn() -> Screen; 2] = [&leader, &script];
    let stops: [&dyn Fn(&mut Screen); 2] = [&ctrl_z, &signal];
    for (start, stop) in starts.iter().flat_map(|start| stops.map(|stop| (start, stop))) {
        let mut screen = start();
        stop(&mut screen);
        screen.shows("no shell to return to: locktop was not started from one");
        assert!(screen.seen().emulator.screen().alternate_screen());
        screen.keys("?");
        screen.shows("Help");
        screen.keys("qq");
        assert_eq!(screen.wait_exit(), 0);
        screen.assert_restored();
    }
}
