//! Requests accepted by the server without the effect: a session that does not end in time, and a server that goes down.

use std::sync::Arc;
use std::time::Duration;

use locktop::action::Executor;
use locktop::action::{ActionRecord, ActionRequest};
use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::model::plan::{ActionCommand, Outcome, TargetKind, TargetResult, Verb};
use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::Mutex;
use tokio_postgres::Client;

use super::stage::{Hands, Line, Notes, Session, command, is_connected, pid, seen, settings};
use super::support::{self, conninfo, open};

/// A process that is stopped until this is dropped.
struct Stopped(Pid);

impl Stopped {
    fn new(pid: i32) -> Self {
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

#[tokio::test]
async fn a_stopped_session_is_reported_as_still_there() {
    for version in support::versions() {
        let info = support::database(support::server_of(version).await).await;
        let observer = open(&info).await.client;
        let mut hands = Hands::of(&info).await;
        let sessions = [Session::open(&info).await, Session::open(&info).await];
        sessions[0].run("BEGIN; CREATE TABLE t (id int)").await;
        let stopped = Stopped::new(sessions[0].pid);
        let mut targets = Vec::new();
        for session in &sessions {
            targets.push(TargetKind::Session(seen(&observer, session.pid).await));
        }
        // Both are signalled before the first wait.
        let report = hands
            .act(ActionCommand { wait: Duration::from_millis(1500), ..command(Verb::Terminate, targets) })
            .await;
        let results: Vec<_> =
            report.results.iter().map(|result| (result.outcome, result.detail.as_str())).collect();
        assert_eq!(
            results,
            [(Outcome::StillThere, "not confirmed after 1.5s"), (Outcome::Done, "its session ended")]
        );
        assert_eq!(hands.progress, 2);
        assert!(is_connected(&observer, sessions[0].pid).await);
        drop(stopped);
        // The request stays in force.
        let first = sessions[0].pid;
        support::wait_until("it ends", async || !is_connected(&observer, first).await).await;
        let [one, two] = sessions.map(|session| session.pid);
        let notes: Vec<String> =
            hands.notes.all().iter().map(|line| line.split(" if").next().unwrap().to_owned()).collect();
        assert_eq!(
            notes,
            [
                format!("asked {one}: pg_terminate_backend({one})"),
                format!("asked {two}: pg_terminate_backend({two})"),
                format!("result {two}: done"),
                format!("result {one}: still_there"),
            ]
        );
    }
}

/// A record that lets the server crash at the entry of the second target.
struct Crash {
    notes: Notes,
    server: Mutex<EmbeddedServer>,
    second: String,
    /// The process that serves the executor.
    own: i32,
}

impl ActionRecord for Crash {
    type Entry = ();

    async fn asked(&self, client: Option<&Client>, asked: &ActionRequest<'_>) -> Result<(), String> {
        if asked.target.name == self.second {
            self.server.lock().await.kill_hard().await.unwrap();
            // Sessions notice that a moment later, and answer until then.
            support::wait_for("the own session to end", || !support::exists(self.own));
        }
        self.notes.asked(client, asked).await
    }

    async fn write_result(
        &self,
        client: Option<&Client>,
        asked: &ActionRequest<'_>,
        entry: Option<()>,
        result: &TargetResult,
    ) -> Result<(), String> {
        self.notes.write_result(client, asked, entry, result).await
    }
}

#[tokio::test]
async fn a_server_crash_leaves_uncertain_and_not_tried_results() {
    let server = EmbeddedServer::start(Options::default()).await.unwrap();
    let info = conninfo(&server);
    let observer = open(&info).await.client;
    let sessions = [Session::open(&info).await, Session::open(&info).await, Session::open(&info).await];
    let mut targets = Vec::new();
    for session in &sessions {
        targets.push(TargetKind::Session(seen(&observer, session.pid).await));
    }
    // The first is signalled and does not end yet.
    let _stopped = Stopped::new(sessions[0].pid);
    let client = Arc::new(open(&info).await.client);
    let own = pid(&client).await;
    let line = Line { pids: vec![own], client };
    let notes = Notes::default();
    let second = sessions[1].pid.to_string();
    let crash = Crash { notes: notes.clone(), server: Mutex::new(server), second, own };
    let mut hands = Hands { executor: Executor::start(line, crash, settings()), notes, progress: 0 };
    let report = hands.act(command(Verb::Terminate, targets.clone())).await;
    let outcomes: Vec<Outcome> = report.results.iter().map(|result| result.outcome).collect();
    assert_eq!(outcomes, [Outcome::Uncertain, Outcome::Uncertain, Outcome::NotTried], "{report:?}");
    assert!(report.results[0].detail.starts_with("the server accepted the request; then "), "{report:?}");
    assert!(report.results[1].detail.ends_with("not known whether it was requested"), "{report:?}");
    let asked = hands.notes.all().iter().filter(|line| line.starts_with("asked")).count();
    assert_eq!(asked, 2, "the third was not signalled");
    // The next command is not tried on a closed connection.
    let report = hands.act(command(Verb::Terminate, targets)).await;
    assert_eq!(report.results[0].outcome, Outcome::Uncertain);
    assert_eq!([report.results[1].outcome, report.results[2].outcome], [Outcome::NotTried; 2]);
}

#[tokio::test]
async fn an_action_that_cannot_be_recorded_is_not_done() {
    let info = support::database(support::server().await).await;
    let observer = open(&info).await.client;
    let session = Session::open(&info).await;
    let client = Arc::new(open(&info).await.client);
    let notes = Notes { broken: Some("disk full: free some room".to_owned()), ..Notes::default() };
    let mut hands = Hands::with(Line { client, pids: Vec::new() }, notes);
    let target = seen(&observer, session.pid).await;
    let (outcome, detail) = hands.one(Verb::Terminate, TargetKind::Session(target)).await;
    assert_eq!(outcome, Outcome::Refused);
    assert_eq!(detail, "not done, because it could not be recorded: disk full: free some room");
    assert!(is_connected(&observer, session.pid).await);
    session.run("SELECT pg_sleep(0.02)").await;
}

#[tokio::test]
async fn a_session_of_locktop_is_never_terminated() {
    let info = support::database(support::server().await).await;
    let observer = open(&info).await.client;
    let poll = Session::open(&info).await;
    let client = Arc::new(open(&info).await.client);
    let own = pid(&client).await;
    // Only the server knows the process that serves it here.
    let mut hands = Hands::with(Line { client, pids: vec![poll.pid] }, Notes::default());
    for pid in [own, poll.pid] {
        let target = seen(&observer, pid).await;
        let any = locktop::model::plan::SessionTarget {
            xact_start: locktop::model::plan::ExpectedTime::Any,
            ..target
        };
        let (outcome, detail) = hands.one(Verb::Terminate, TargetKind::Session(any)).await;
        assert_eq!((outcome, detail.as_str()), (Outcome::Refused, "that is locktop's own session"));
        assert!(is_connected(&observer, pid).await);
    }
}
