//! Servers that stop answering or end the connection.

use std::sync::Arc;
use std::time::Duration;

use locktop::config::adapter::built_in;
use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::feed::acting::ActingConnection;
use locktop::pg::poll::{PollConnection, PollError, PollLimits};
use rustix::process::{Pid, Signal, kill_process};

use super::helpers::{assert_fresh, beginning, client, info, on_every_version, pid, session};
use super::support::{TIMEOUT, wait_until};

#[tokio::test]
async fn a_silent_server_ends_the_poll_in_time() {
    on_every_version(async |server| {
        // Opening has as long, also on a busy machine.
        let limits = PollLimits { poll_timeout: Duration::from_secs(2), ..PollLimits::default() };
        let mut session = PollConnection::open(&info(&server), limits).await.unwrap();
        let snapshot = session.poll(None).await.unwrap();
        let backend = Pid::from_raw(session.server().own_pid).unwrap();
        kill_process(backend, Signal::STOP).unwrap();
        let error = session.poll(Some(&snapshot)).await.unwrap_err();
        kill_process(backend, Signal::CONT).unwrap();
        assert_eq!(error, PollError::Timeout(Duration::from_secs(2)));
    })
    .await;
}

#[tokio::test]
async fn the_standby_connection_is_replaced_after_a_loss() {
    on_every_version(async |server| {
        let (_views_in, views) = tokio::sync::watch::channel(beginning());
        let acting = ActingConnection::keep(info(&server), PollLimits::default(), views);
        let first = acting.client(TIMEOUT).await.unwrap();
        let first_pid = pid(&first).await;
        let admin = client(&info(&server)).await;
        admin.execute("SELECT pg_terminate_backend($1)", &[&first_pid]).await.unwrap();
        wait_until("the end of the connection", async || first.is_closed()).await;
        let second = acting.client(TIMEOUT).await.unwrap();
        assert_ne!(pid(&second).await, first_pid);
    })
    .await;
}

/// The server continues with the poll only when its connection is being ended: by a termination, which is reported in the
/// answer, and by a crash, which has no answer.
#[tokio::test]
async fn a_connection_lost_during_a_poll_reports_the_reason() {
    on_every_version(async |server| {
        let admin = client(&info(&server)).await;
        let mut lost = session(&server).await;
        let snapshot = lost.poll(None).await.unwrap();
        let own = lost.server().own_pid;
        let backend = Pid::from_raw(own).unwrap();
        kill_process(backend, Signal::STOP).unwrap();
        let end = async {
            admin.execute("SELECT pg_terminate_backend($1)", &[&own]).await.unwrap();
            kill_process(backend, Signal::CONT).unwrap();
        };
        let (outcome, ()) = tokio::join!(lost.poll(Some(&snapshot)), end);
        let PollError::Lost(reason) = outcome.unwrap_err() else { panic!("no answer in time") };
        assert_eq!(reason, "terminating connection due to administrator command (SQLSTATE 57P01)");
        let again = lost.poll(Some(&snapshot)).await;
        assert!(matches!(again, Err(PollError::Lost(_))), "{again:?}");

        let mut crashed = session(&server).await;
        let next = crashed.poll(Some(&snapshot)).await.unwrap();
        assert_fresh(&next);
        let backend = Pid::from_raw(crashed.server().own_pid).unwrap();
        kill_process(backend, Signal::STOP).unwrap();
        let end = async { kill_process(backend, Signal::KILL).unwrap() };
        let (outcome, ()) = tokio::join!(crashed.poll(Some(&next)), end);
        let PollError::Lost(reason) = outcome.unwrap_err() else { panic!("no answer in time") };
        assert!(!reason.is_empty() && !reason.contains("SQLSTATE"), "{reason}");
    })
    .await;
}

/// A read outside the poll also waits for a silent server, and does not hide the silence.
#[tokio::test]
async fn a_silent_server_is_detected_during_a_read_outside_the_poll() {
    let server = EmbeddedServer::start(Options::default()).await.unwrap();
    let adapters: Vec<_> = built_in().unwrap().into_iter().map(Arc::new).collect();
    let long = Duration::from_secs(60);
    let limits = PollLimits {
        adapters: adapters.into(),
        lock_timeout: long,
        statement_timeout: long,
        ..PollLimits::default()
    };
    let mut session = PollConnection::open(&info(&server), limits).await.unwrap();
    let admin = client(&info(&server)).await;
    // The search for job systems reads it, and nothing in a poll does.
    admin.batch_execute("BEGIN; LOCK TABLE pg_catalog.pg_enum IN ACCESS EXCLUSIVE MODE").await.unwrap();
    session.poll(None).await.unwrap();
    let waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 'pg_enum'::regclass AND NOT granted)";
    wait_until("it is being read", async || admin.query_one(waits, &[]).await.unwrap().get(0)).await;
    let backend = Pid::from_raw(session.server().own_pid).unwrap();
    kill_process(backend, Signal::STOP).unwrap();
    let noticed = tokio::time::timeout(TIMEOUT, session.silence()).await;
    kill_process(backend, Signal::CONT).unwrap();
    assert!(matches!(noticed, Ok(PollError::Timeout(_))), "{noticed:?}");
}
