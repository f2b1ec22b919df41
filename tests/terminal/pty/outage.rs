//! The server ends, or does not answer.

use rustix::process::{Pid, Signal, kill_process};

use super::incident::Incident;
use super::screen::Screen;
use super::support;

/// Stops a process until this is dropped.
pub(super) struct Stopped(Pid);

impl Stopped {
    pub(super) fn new(pid: i32) -> Self {
        let pid = Pid::from_raw(pid).unwrap();
        kill_process(pid, Signal::STOP).unwrap();
        Self(pid)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::CONT);
    }
}

/// The data is shown as old, the rows remain, and the keys work.
pub(super) fn is_down(screen: &mut Screen, root: &str) {
    screen.wait_for("DOWN with the age of the data", |screen| {
        let text = screen.contents();
        text.contains("DOWN, data ") && text.contains("s old") && text.contains("\nDOWN ")
    });
    assert!(screen.contents().contains(root), "the rows are not shown:\n{}", screen.contents());
    assert!(!screen.contents().contains("LIVE"), "{}", screen.contents());
    screen.keys("7");
    screen.shows("Backends ·");
    screen.shows(root);
    screen.keys("?");
    screen.shows("Help");
    screen.keys("q");
    screen.hides("Help");
    screen.keys("1");
    screen.shows("Chains ·");
}

/// The same server with new processes: the waiting sessions have ended.
fn is_back(screen: &Screen, root: &str) {
    screen.shows("LIVE");
    screen.hides("DOWN");
    screen.wait_for("new data", |screen| {
        let text = screen.contents();
        !text.contains(root) && text.contains("no session waits for a lock")
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_killed_server_is_shown_as_down_until_it_restarts() {
    let mut incident = Incident::crowd(5).await;
    let root = incident.root().to_string();
    let mut screen = incident.looked_at((80, 24));
    incident.server.kill_hard().await.unwrap();
    is_down(&mut screen, &root);
    incident.server.restart().await.unwrap();
    is_back(&screen, &root);
    screen.keys("q");
    assert_eq!(screen.wait_exit(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_server_that_is_restarted() {
    let mut incident = Incident::crowd(5).await;
    let root = incident.root().to_string();
    let screen = incident.looked_at((80, 24));
    incident.server.restart().await.unwrap();
    screen.wait("the loss to be noticed", |seen| String::from_utf8_lossy(&seen.raw).contains("DOWN"));
    is_back(&screen, &root);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn quitting_works_while_the_server_is_down() {
    let mut incident = Incident::crowd(5).await;
    let mut screen = incident.looked_at((80, 24));
    incident.server.kill_hard().await.unwrap();
    screen.shows("DOWN");
    screen.keys("q");
    assert_eq!(screen.wait_exit(), 0);
    screen.assert_restored();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_server_that_does_not_answer() {
    let incident = Incident::crowd(5).await;
    let root = incident.root().to_string();
    let mut screen = incident.looked_at((80, 24));
    let client = support::open(&incident.info()).await.client;
    let own = "SELECT pid FROM pg_stat_activity WHERE application_name = 'locktop'
                AND pid <> pg_backend_pid()";
    let rows = client.query(own, &[]).await.unwrap();
    assert!(!rows.is_empty(), "the program has no session");
    let stopped: Vec<_> = rows.iter().map(|row| Stopped::new(row.get(0))).collect();
    screen.wait_for("old data with its age", |screen| {
        let text = screen.contents();
        text.contains("NO ANSWER, data ") && text.contains("s old") && text.contains(&root)
    });
    screen.keys("7");
    screen.shows("Backends ·");
    drop(stopped);
    screen.shows("LIVE");
    screen.keys("q");
    assert_eq!(screen.wait_exit(), 0);
}
