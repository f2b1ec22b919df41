//! Stops sessions, so that the server's changes to their locks can be observed: it grants a lock in shared
//! memory, whether or not the process that waits for it runs.

use std::collections::BTreeSet;

use rustix::process::{Pid, Signal, kill_process};
use tokio_postgres::Client;

use crate::support::wait_until;

/// Stopped processes; they continue when this is dropped.
#[derive(Debug)]
pub(crate) struct Frozen {
    pids: BTreeSet<i32>,
}

impl Frozen {
    pub(crate) fn stop(pids: impl IntoIterator<Item = i32>) -> Self {
        let frozen = Self { pids: pids.into_iter().collect() };
        for pid in &frozen.pids {
            signal(*pid, Signal::STOP).unwrap();
        }
        frozen
    }

    /// Lets one process continue.
    pub(crate) fn release(&mut self, pid: i32) {
        if self.pids.remove(&pid) {
            signal(pid, Signal::CONT).unwrap();
        }
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        for pid in &self.pids {
            let _ = signal(*pid, Signal::CONT);
        }
    }
}

fn signal(pid: i32, signal: Signal) -> rustix::io::Result<()> {
    kill_process(Pid::from_raw(pid).unwrap(), signal)
}

/// Process ids of all sessions that wait for a lock.
pub(crate) async fn waiting(client: &Client) -> BTreeSet<i32> {
    let sql = "SELECT DISTINCT pid FROM pg_locks WHERE NOT granted AND pid IS NOT NULL";
    client.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

/// Terminates a session, and returns once the session, its parallel workers and all their locks are gone.
pub(crate) async fn terminate(client: &Client, pid: i32, frozen: &mut Frozen) {
    let sent: bool = client.query_one("SELECT pg_terminate_backend($1)", &[&pid]).await.unwrap().get(0);
    assert!(sent, "{pid} exists");
    frozen.release(pid);
    let left = "SELECT (SELECT count(*) FROM pg_stat_activity WHERE pid = $1 OR leader_pid = $1)
                     + (SELECT count(*) FROM pg_locks WHERE pid = $1)";
    wait_until("a session to end", async || {
        client.query_one(left, &[&pid]).await.unwrap().get::<_, i64>(0) == 0
    })
    .await;
}
