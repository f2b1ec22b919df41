//! One worker for each name.

use rustix::process::Signal;

use super::binary::{locktop, run_beside};
use super::db::{Session, installed};
use super::hand::no_session_is_left;
use super::process::{Process, target};
use super::support::{server, wait_until};

const NAMED: &str =
    "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND classid::bigint >> 16 = 19534
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";

#[tokio::test]
async fn a_second_worker_of_the_same_name_is_refused_with_the_pid_of_the_first() {
    let version = server().await.version();
    let info = installed(version).await;
    let session = Session::open(&info).await;
    let place = target(version, &info).await;
    let first = Process::start("w", &[], &place);
    first.wait_for("connected").await;
    let pid = session.ask(NAMED).await;
    let since = session.ask(&format!("SELECT backend_start FROM pg_stat_activity WHERE pid = {pid}")).await;
    let left = run_beside(locktop(&["-w", "worker", "--id", "w", &place])).await;
    let expected = format!(
        "locktop: a worker \"w\" is already connected to the schema \"locktop\" of this database: server process {pid}, on a local socket, connected since {since}; \
         use another --id for this worker, or end that one first\n"
    );
    assert_eq!((left.status, left.err), (Some(1), expected));
    let left = run_beside(locktop(&["-w", "worker", "--id", "w", "--log-format", "json", &place])).await;
    let line: serde_json::Value = serde_json::from_str(left.err.trim_end()).unwrap();
    assert_eq!((left.status, &line["event"], &line["level"]), (Some(1), &"gave_up".into(), &"error".into()));
    // Another name is another worker, and a killed worker does not keep its name.
    let other = Process::start("w2", &[], &place);
    other.wait_for("connected").await;
    first.signal(Signal::KILL);
    first.ended().await;
    let again = Process::start("w", &[], &place);
    again.wait_for("connected").await;
    // It acquires its name again after its connection was lost.
    let mut pid = String::new();
    let own = "SELECT pid FROM pg_stat_activity WHERE application_name = 'locktop worker w' AND datname = current_database()";
    wait_until("its session", async || {
        pid = session.ask(own).await;
        !pid.is_empty() && session.ask(NAMED).await.contains(&pid)
    })
    .await;
    session.run(&format!("SELECT pg_terminate_backend({pid})")).await;
    again.wait_for("connection lost").await;
    wait_until("two names", async || {
        let held = session.ask(NAMED).await;
        held.lines().count() == 2 && !held.lines().any(|line| line == pid)
    })
    .await;
    for worker in [other, again] {
        worker.signal(Signal::TERM);
        assert_eq!(worker.ended().await.status, Some(0));
    }
    no_session_is_left(&session).await;
    assert_eq!(session.ask(NAMED).await, "");
}
