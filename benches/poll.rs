//! The cost of a poll of a live server: CPU time of this process and of the server's backend for each poll.
//!
//! `LOCKTOP_BENCH_CONNINFO='host=… dbname=…' cargo bench --bench poll` measures that server as it is; without the
//! variable nothing is measured.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs,
    reason = "a test may"
)]

use std::time::Duration;

use locktop::clock;
use locktop::pg::connect::connect;
use locktop::pg::conninfo::ConnInfo;
use locktop::pg::poll::{PollConnection, PollLimits};
use rustix::time::{ClockId, clock_gettime};

fn main() {
    let Ok(conninfo) = std::env::var("LOCKTOP_BENCH_CONNINFO") else {
        println!("LOCKTOP_BENCH_CONNINFO is not set: no server to measure");
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(measure(&conninfo));
}

async fn measure(conninfo: &str) {
    let info = ConnInfo::parse(conninfo).unwrap();
    let started = clock::monotonic();
    let mut session = PollConnection::open(&info, PollLimits::default()).await.unwrap();
    let mut snapshot = session.poll(None).await.unwrap();
    println!(
        "connect and first snapshot: {:.1} ms",
        clock::monotonic().duration_since(started).as_secs_f64() * 1e3
    );
    let backend = session.server().own_pid;
    for _ in 0..5 {
        snapshot = session.poll(Some(&snapshot)).await.unwrap();
    }
    let rounds = 50;
    let (client, server, mut wall) = (cpu(), backend_cpu(backend), Duration::ZERO);
    for _ in 0..rounds {
        let started = clock::monotonic();
        snapshot = session.poll(Some(&snapshot)).await.unwrap();
        wall += clock::monotonic().duration_since(started);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    println!(
        "{} locks, {} backends, {} answers: client {:.2} ms, server {:.2} ms, wall {:.2} ms a poll",
        snapshot.locks.last_rows().len(),
        snapshot.backends.last_rows().len(),
        snapshot.answers.len(),
        cpu().saturating_sub(client).as_secs_f64() * 1e3 / f64::from(rounds),
        (backend_cpu(backend) - server) * 1e3 / f64::from(rounds),
        wall.as_secs_f64() * 1e3 / f64::from(rounds),
    );
    reference(&info).await;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    for line in status.lines().filter(|line| line.starts_with("VmHWM") || line.starts_with("VmRSS")) {
        println!("{line}");
    }
}

/// The server's CPU time for the two plain queries that a poll is compared with.
async fn reference(info: &ConnInfo) {
    let client = connect(info).await.unwrap().client;
    let backend: i32 = client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    for sql in ["SELECT count(*) FROM pg_locks", "SELECT * FROM pg_stat_activity"] {
        let statement = client.prepare(sql).await.unwrap();
        let rounds = 50;
        let mut spent = 0.0;
        for _ in 0..rounds {
            let before = backend_cpu(backend);
            client.query(&statement, &[]).await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
            spent += backend_cpu(backend) - before;
        }
        println!("{sql}: server {:.2} ms", spent * 1e3 / f64::from(rounds));
    }
}

/// CPU time of this process.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap(), u32::try_from(time.tv_nsec).unwrap())
}

/// CPU time of a process of this machine, in seconds; 0 if there is no `/proc`.
fn backend_cpu(pid: i32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
    text.split_whitespace().next().and_then(|nanos| nanos.parse::<f64>().ok()).unwrap_or_default() / 1e9
}
