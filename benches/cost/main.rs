//! CPU and memory of the whole program, measured from outside: `cargo bench --bench cost`.
//!
//! Sessions on an embedded server wait for one advisory lock, and many other locks are held. The program runs in a
//! terminal of 200x60 and polls once a second. CPU time of the program and of the server process that serves its polls
//! is read from Linux's `/proc` (nanoseconds), over `LOCKTOP_SECONDS` (30) after a warm-up. For comparison, another
//! session reads all of `pg_locks` and `pg_stat_activity` at the same rate: the reference for the server's CPU.
//! `LOCKTOP_PROGRAM` measures another program, such as an older locktop.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs,
    reason = "a test may"
)]

mod history;
mod meter;
mod process;
mod program;

use std::time::Duration;

use locktop::clock;
use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::demo::scenario::{AdvisoryContention, Blocker, ScratchSchema};
use locktop::pg::connect::connect;
use locktop::pg::conninfo::ConnInfo;
use meter::Meter;
use program::Program;
use tokio_postgres::Client;

/// Long enough for buffers and caches to reach their size.
const WARM_UP: Duration = Duration::from_secs(5);
/// Number of starts for the time to the first frame.
const STARTS: usize = 10;

const USUAL: AdvisoryContention = AdvisoryContention { waiters: 1_000, locks: 22_000, in_transaction: false };
const DOUBLE: AdvisoryContention =
    AdvisoryContention { waiters: 2_000, locks: 44_000, in_transaction: false };
const LARGE: AdvisoryContention = AdvisoryContention { waiters: 2_020, locks: 80_000, in_transaction: false };
const IDLE: AdvisoryContention = AdvisoryContention { waiters: 0, locks: 0, in_transaction: false };

/// Tables of nine other job systems, as in the tests.
const JOB_SYSTEMS: &str = concat!(
    include_str!("../../tests/server/adapters/tables/good_job.sql"),
    include_str!("../../tests/server/adapters/tables/solid_queue.sql"),
    include_str!("../../tests/server/adapters/tables/river.sql"),
    include_str!("../../tests/server/adapters/tables/oban.sql"),
    include_str!("../../tests/server/adapters/tables/procrastinate.sql"),
    include_str!("../../tests/server/adapters/tables/que.sql"),
    include_str!("../../tests/server/adapters/tables/quartz.sql"),
    include_str!("../../tests/server/adapters/tables/pg_cron.sql"),
    include_str!("../../tests/server/adapters/tables/leases.sql"),
);

/// The result for one screen; CPU time in milliseconds a second, which is one poll.
struct Cost {
    client: f64,
    resident: f64,
    peak: f64,
    connections: usize,
    server: f64,
    reference: f64,
    /// Bytes a second written to the terminal.
    bytes: f64,
    /// Kilobytes a second sent by the server.
    sent: f64,
}

fn main() {
    if !std::path::Path::new("/proc/self/schedstat").exists() {
        println!("processor time is read from Linux's /proc, which is not here");
        return;
    }
    let seconds = std::env::var("LOCKTOP_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(30.0);
    let only = std::env::var("LOCKTOP_SCREENS").unwrap_or_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(measure(Duration::from_secs_f64(seconds), &only));
}

async fn measure(length: Duration, only: &str) {
    println!("CPU in ms a second, memory in MB, over {} s at a refresh of 1 s and 200x60", length.as_secs());
    println!(
        "{:<18}{:<10}{:>8}{:>8}{:>8}{:>6}{:>8}{:>10}{:>7}{:>9}{:>9}",
        "", "screen", "client", "RSS", "peak", "conn", "server", "reference", "ratio", "bytes/s", "kB/s in"
    );
    for (name, crowd, tables, screens) in [
        ("idle", IDLE, "", &["overview"][..]),
        ("job systems", IDLE, JOB_SYSTEMS, &["overview", "tasks", "leases", "queue"]),
        ("22,000 / 1,000", USUAL, "", &["overview", "chains", "locks", "backends"]),
        ("44,000 / 2,000", DOUBLE, "", &["overview", "chains", "locks", "backends"]),
        ("84,000 / 2,020", LARGE, "", &["overview", "chains"]),
    ] {
        if !only.is_empty() && !only.contains(name.split(' ').next().unwrap()) {
            continue;
        }
        let options = Options { settings: crowd.settings(), ..Options::default() };
        // With the default, each of 2,000 waiters that arrive one after another would check all earlier ones for a
        // deadlock, which blocks the lock table for minutes.
        let options = options.with("deadlock_timeout", "1h");
        let server = EmbeddedServer::start(options).await.unwrap();
        let info = ConnInfo::parse(&server.conninfo()).unwrap();
        let scratch = ScratchSchema::open(&info).await.unwrap();
        let running = if crowd.waiters > 0 { Some(crowd.start(&scratch).await.unwrap()) } else { None };
        // On the screen as soon as there is data.
        let root = running.as_ref().map_or_else(
            || "no problems found".to_owned(),
            |running| match running.facts.roots[..] {
                [Blocker::Backend(pid)] => pid.to_string(),
                _ => panic!("one root"),
            },
        );
        let client = connect(&info.clone().with_application_name("cost")).await.unwrap().client;
        client.batch_execute(tables).await.unwrap();
        let meter = Meter::before(server.socket_dir());
        for screen in screens {
            let cost = watch((&server, &meter), &client, screen, &root, length).await;
            print_cost(name, screen, &cost);
        }
        print_starts(name, &server, &root);
        if crowd.locks == USUAL.locks || crowd.locks == LARGE.locks {
            for screen in screens.iter().take(2) {
                history::compare(&server.conninfo(), name, screen, &root, length).await;
            }
        }
        if let Some(running) = running {
            running.stop().await.unwrap();
        }
        drop((scratch, client));
        server.stop().await.unwrap();
    }
}

/// Runs the program on one screen.
async fn watch(
    (server, meter): (&EmbeddedServer, &Meter),
    client: &Client,
    screen: &str,
    root: &str,
    length: Duration,
) -> Cost {
    let program = Program::start(&meter.conninfo(&server.conninfo(), server.socket_dir()), screen);
    let pid = program.pid();
    program.wait_for(root);
    tokio::time::sleep(WARM_UP).await;
    let backends = backends(client).await;
    let own = client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    let polling = || backends.iter().map(|pid| process::backend_cpu(*pid)).sum::<f64>();
    let before = (process::cpu(pid), polling(), process::backend_cpu(own), program.bytes(), meter.sent());
    let started = clock::monotonic();
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    while started.elapsed() < length {
        ticks.tick().await;
        client.simple_query("SELECT count(*) FROM pg_locks").await.unwrap();
        client.simple_query("SELECT * FROM pg_stat_activity").await.unwrap();
    }
    let seconds = started.elapsed().as_secs_f64();
    let a_second = |before: f64, after: f64| (after - before) / seconds * 1e3;
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
    let rate = |before: usize, after: usize| (after - before) as f64 / seconds;
    let (bytes, sent) = (rate(before.3, program.bytes()), rate(before.4, meter.sent()) / 1e3);
    let cost = Cost {
        client: a_second(before.0, process::cpu(pid)),
        server: a_second(before.1, polling()),
        reference: a_second(before.2, process::backend_cpu(own)),
        resident: process::megabytes(pid, "VmRSS"),
        peak: process::megabytes(pid, "VmHWM"),
        connections: backends.len(),
        bytes,
        sent,
    };
    program.quit();
    cost
}

/// Process ids of the program's backends.
async fn backends(client: &Client) -> Vec<i32> {
    let sql = "SELECT pid FROM pg_stat_activity WHERE application_name = 'locktop'";
    client.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

fn print_cost(name: &str, screen: &str, cost: &Cost) {
    println!(
        "{name:<18}{screen:<10}{:>8.2}{:>8.1}{:>8.1}{:>6}{:>8.2}{:>10.2}{:>7.2}{:>9.0}{:>9.0}",
        cost.client,
        cost.resident,
        cost.peak,
        cost.connections,
        cost.server,
        cost.reference,
        cost.server / cost.reference,
        cost.bytes,
        cost.sent
    );
}

/// Prints the time from the start of the process to the first frame with data.
fn print_starts(name: &str, server: &EmbeddedServer, root: &str) {
    let mut times: Vec<f64> = (0..STARTS)
        .map(|_| {
            let program = Program::start(&server.conninfo(), "overview");
            let time = program.wait_for(root);
            program.quit();
            time.as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!(
        "{name:<18}first frame with data: median {:.0} ms, longest {:.0} ms of {STARTS} starts",
        times[STARTS / 2],
        times[STARTS - 1]
    );
}
