//! Back in time in the running dashboard.

use rustix::process::Pid;

use super::super::support::wait_for;
use super::incident::Incident;
use super::outage::Stopped;
use super::process;
use super::screen::Screen;
use locktop::demo::scenario::Scenario;
use locktop::feed::replay::Recording;

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn past_incidents_are_shown_also_while_the_server_does_not_answer() {
    let mut incident = Incident::of(&[Scenario::Chain]).await;
    let root = incident.root().to_string();
    let mut screen = incident.looked_at((120, 35));
    screen.shows(&root);
    incident.running.remove(0).stop().await.unwrap();
    screen.hides(&root);
    screen.shows("LIVE");

    // The snapshot in which it began to block the others.
    screen.keys("(");
    screen.shows("PAST");
    screen.shows(&root);
    screen.shows("( ) incident");
    screen.shows(" of ");
    screen.keys("K");
    screen.shows(": Esc returns to live");
    screen.keys("2");
    screen.shows(&root);
    screen.keys("t");
    screen.shows("Enter jump");
    screen.keys("never<enter>");
    screen.shows("worst; empty: live");
    screen.keys("tworst<enter>");
    screen.shows(&root);
    screen.keys("<esc>");
    screen.shows("LIVE");
    screen.hides(&root);

    let postmaster = incident.server.pid().unwrap();
    let mut all = process::children(Pid::from_raw(postmaster).unwrap());
    all.insert(0, postmaster);
    let stopped: Vec<_> = all.into_iter().map(Stopped::new).collect();
    screen.shows("NO ANSWER");
    screen.keys("(");
    screen.shows("PAST");
    screen.shows(&root);
    screen.keys("<esc>");
    screen.hides("PAST");
    screen.hides(&root);
    drop(stopped);
    screen.shows("LIVE");
    screen.keys("q");
    assert_eq!(screen.wait_exit(), 0);
    screen.assert_restored();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_history_length_of_zero_disables_the_history() {
    let incident = Incident::of(&[Scenario::Chain]).await;
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.toml");
    std::fs::write(&config, "[history]\nlength = \"0s\"\n").unwrap();
    let mut screen = incident.screen((80, 24), &[], &["--config", config.to_str().unwrap()]);
    screen.shows(&incident.root().to_string());
    screen.keys("[");
    screen.shows("the history is off: see [history] in the config");
    screen.keys("q");
    assert_eq!(screen.wait_exit(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_recording_is_shown_without_its_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.ltr");
    let place = path.to_str().unwrap();
    let root = {
        let incident = Incident::of(&[Scenario::Chain]).await;
        let target = incident.server.conninfo();
        let arguments = ["-w", "record", place, &target, "--refresh", "0.2s", "--for", "2s"];
        let left = super::binary::run(super::binary::locktop(&arguments));
        assert_eq!((left.status, left.err.as_str()), (Some(0), ""));
        incident.root().to_string()
    };
    let mut screen = Screen::spawn((120, 35), &[], &["replay", place]);
    screen.shows("PAUSED ×1");
    screen.shows("▲ 1 of");
    screen.shows(&root);
    screen.keys("]");
    screen.shows("▲ 2 of");
    screen.keys("K");
    screen.shows("this is a recording: K (terminate) does nothing here");
    screen.keys("{");
    screen.shows("▲ 1 of");
    screen.keys("p");
    screen.shows("PLAYS ×1");
    screen.shows("▲ 3 of");
    screen.shows("AT END ×1");
    screen.keys("q");
    assert_eq!(screen.wait_exit(), 0);
    screen.assert_restored();
}

/// A recorder in a terminal prints what it does and how to end it; a replay reports that the requested time
/// is before its start.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn record_announces_itself_and_replay_reports_a_time_before_its_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("short.ltr");
    let place = path.to_str().unwrap();
    let incident = Incident::none().await;
    let mut screen = Screen::spawn((120, 35), &[], &["-w", "record", place, &incident.server.conninfo()]);
    screen.shows("locktop: recording ");
    screen.shows("Ctrl-C ends it");
    wait_for("a snapshot", || Recording::open(&path).is_ok_and(|recording| !recording.moments().is_empty()));
    screen.write(b"\x03");
    assert_eq!(screen.wait_exit(), 0);
    let mut screen = Screen::spawn((120, 35), &[], &["replay", place, "--at", "2001-02-03 04:05"]);
    screen.shows("the recording begins at ");
    screen.shows("after --at 2001-02-03 04:05");
    screen.keys("q");
    assert_eq!(screen.wait_exit(), 0);
}
