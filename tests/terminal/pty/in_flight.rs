//! The program ends while an action that it requested has no answer yet.

use rustix::process::{Pid, Signal, kill_process};

use super::dashboard::{Dashboard, session_exists};
use super::incident::Incident;
use super::support;

const SIZE: (u16, u16) = (120, 30);

/// Whether a stopped process has a pending SIGTERM; true if the system does not show that.
fn has_its_signal(pid: i32) -> bool {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) else { return true };
    let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:")).unwrap();
    u64::from_str_radix(pending.trim(), 16).unwrap() >> (Signal::TERM.as_raw() - 1) & 1 == 1
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_unanswered_action_is_reported_at_the_next_start() {
    let incident = Incident::none().await;
    let target = incident.server.conninfo();
    let observer = support::open(&incident.info()).await.client;
    let session = support::open(&incident.info()).await;
    session.client.batch_execute("SET application_name = 'stuck'").await.unwrap();
    let pid = support::pid(&session.client).await;
    let process = Pid::from_raw(pid).unwrap();
    let mut dashboard = Dashboard::at(SIZE, &target, &["--screen", "backends"]);
    dashboard.screen.shows("Backends ·");
    dashboard.screen.keys("/stuck<enter>");
    dashboard.select_first(&pid.to_string());
    dashboard.question("K", "y terminate");
    kill_process(process, Signal::STOP).unwrap();
    dashboard.screen.keys("y");
    dashboard.screen.shows("terminate: sending");
    support::wait_for("the request to be recorded", || dashboard.asked() == 1);
    // It is recorded before it is sent.
    support::wait_for("the server to have signalled it", || has_its_signal(pid));
    dashboard.quit();
    assert_eq!(dashboard.on_record("\"event\":\"result\""), 0);
    assert!(session_exists(&observer, pid).await);

    dashboard.again(SIZE, &target, &["--screen", "events"]);
    dashboard.screen.shows(&format!("terminate {pid}"));
    dashboard.screen.shows("outcome unknown: asked at ");
    dashboard.quit();
    // The request is still valid after the program has ended.
    kill_process(process, Signal::CONT).unwrap();
    support::wait_until("the session to end", async || !session_exists(&observer, pid).await).await;
    assert_eq!((dashboard.asked(), dashboard.on_record("outcome unknown")), (1, 0));
}
