//! Servers that fall silent or go away.

use std::time::Duration;

use locktop::feed::spare::Spare;
use locktop::pg::poll::{Limits, PollError, Session};
use rustix::process::{Pid, Signal, kill_process};

use crate::helpers::{client, info, on_every_version, pid};
use crate::support::{PATIENCE, wait_until};

#[tokio::test]
async fn a_silent_server_ends_the_poll_in_time() {
    on_every_version(async |server| {
        let limits = Limits { poll_timeout: Duration::from_millis(300), ..Limits::default() };
        let mut session = Session::open(&info(&server), limits).await.unwrap();
        let snapshot = session.poll(None).await.unwrap();
        let backend = Pid::from_raw(session.server().own_pid).unwrap();
        kill_process(backend, Signal::STOP).unwrap();
        let error = session.poll(Some(&snapshot)).await.unwrap_err();
        kill_process(backend, Signal::CONT).unwrap();
        assert_eq!(error, PollError::Timeout(Duration::from_millis(300)));
    })
    .await;
}

#[tokio::test]
async fn the_second_connection_is_there_again_after_it_was_lost() {
    on_every_version(async |server| {
        let spare = Spare::keep(info(&server), Limits::default());
        let first = spare.client(PATIENCE).await.unwrap();
        let first_pid = pid(&first).await;
        let admin = client(&info(&server)).await;
        admin.execute("SELECT pg_terminate_backend($1)", &[&first_pid]).await.unwrap();
        wait_until("the end of the connection", async || first.is_closed()).await;
        let second = spare.client(PATIENCE).await.unwrap();
        assert_ne!(pid(&second).await, first_pid);
    })
    .await;
}
