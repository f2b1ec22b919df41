//! The program ends while something that it asked for has no answer yet.

use rustix::process::{Pid, Signal, kill_process};

use super::desk::{Desk, is_there};
use super::incident::Incident;
use super::support;

const SIZE: (u16, u16) = (120, 30);

/// Whether a process that stands still has SIGTERM before it; yes where the system does not show that.
fn has_its_signal(pid: i32) -> bool {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) else { return true };
    let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:")).unwrap();
    u64::from_str_radix(pending.trim(), 16).unwrap() >> (Signal::TERM.as_raw() - 1) & 1 == 1
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_was_asked_without_an_answer_is_told_at_the_next_start() {
    let incident = Incident::none().await;
    let target = incident.server.conninfo();
    let look = support::open(&incident.info()).await.client;
    let session = support::open(&incident.info()).await;
    session.client.batch_execute("SET application_name = 'stuck'").await.unwrap();
    let pid = support::pid(&session.client).await;
    let process = Pid::from_raw(pid).unwrap();
    let mut desk = Desk::at(SIZE, &target, &["--screen", "backends"]);
    desk.screen.shows("Backends ·");
    desk.screen.keys("/stuck<enter>");
    desk.select_first(&pid.to_string());
    desk.question("K", "y terminate");
    kill_process(process, Signal::STOP).unwrap();
    desk.screen.keys("y");
    desk.screen.shows("terminate: asking…");
    support::wait_for("the order to be on record", || desk.asked() == 1);
    // On record it is before it is sent.
    support::wait_for("the server to have signalled it", || has_its_signal(pid));
    desk.quit();
    assert_eq!(desk.on_record("\"event\":\"result\""), 0);
    assert!(is_there(&look, pid).await);

    desk.again(SIZE, &target, &["--screen", "events"]);
    desk.screen.shows(&format!("terminate {pid}"));
    desk.screen.shows("outcome unknown: asked at ");
    desk.quit();
    // What it was asked for stands, whoever asked.
    kill_process(process, Signal::CONT).unwrap();
    support::wait_until("it ends", async || !is_there(&look, pid).await).await;
    assert_eq!((desk.asked(), desk.on_record("outcome unknown")), (1, 0));
}
