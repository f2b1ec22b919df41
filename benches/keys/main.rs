//! The response time to a key while the server does not answer: `cargo bench --bench keys`.
//!
//! The program runs in a terminal of 120x35 on an embedded server with many sessions. A key moves the cursor; the time
//! is measured from writing the key to the terminal until the output selects another row. First the server answers;
//! then every process of it is stopped (SIGSTOP), the program shows that and keeps trying to connect. `LOCKTOP_KEYS`
//! (500) is the number of keys for each case: typed at a person's pace, and as fast as the screen follows, where each
//! key waits for the pause between two frames.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs,
    reason = "a test may"
)]

mod screen;

use std::collections::BTreeMap;
use std::time::Duration;

use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::demo::scenario::{AdvisoryContention, ScratchSchema};
use locktop::pg::connect::connect;
use locktop::pg::conninfo::ConnInfo;
use rustix::process::{Pid, Signal, kill_process};
use screen::Screen;

const CROWD: AdvisoryContention = AdvisoryContention { waiters: 200, locks: 2_000, in_transaction: false };

/// The pause between two keys of a user in a hurry. It is no multiple of the time between two frames, so that keys
/// arrive at all times within a frame.
const PACE: Duration = Duration::from_millis(71);

fn main() {
    let keys = std::env::var("LOCKTOP_KEYS").ok().and_then(|text| text.parse().ok()).unwrap_or(500);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(measure(keys));
}

async fn measure(keys: usize) {
    let options = Options::default().with("max_connections", 300).with("deadlock_timeout", "1h");
    let server = EmbeddedServer::start(options).await.unwrap();
    let info = ConnInfo::parse(&server.conninfo()).unwrap();
    let scratch = ScratchSchema::open(&info).await.unwrap();
    let running = CROWD.start(&scratch).await.unwrap();
    let mut screen = Screen::start(&server.conninfo(), "backends", (120, 35));
    screen.shows("Backends · ");
    println!("{keys} keys each; time from the key to the frame in ms, and the state in the header");
    println!("{:<28}{:>8}{:>8}{:>8}  header", "", "p50", "p99", "max");
    for (name, pace) in [("server answers, a person", PACE), ("server answers, fast", Duration::ZERO)] {
        press(&mut screen, name, keys, pace);
    }
    let stopped = Stopped::all(&server, &info).await;
    for (name, pace) in [("server stopped, a person", PACE), ("server stopped, fast", Duration::ZERO)] {
        press(&mut screen, name, keys, pace);
    }
    drop(stopped);
    screen.shows("LIVE");
    drop(screen);
    running.stop().await.unwrap();
    drop(scratch);
    server.stop().await.unwrap();
}

fn press(screen: &mut Screen, name: &str, keys: usize, pace: Duration) {
    let mut headers: BTreeMap<&str, usize> = BTreeMap::new();
    let mut times: Vec<f64> = Vec::new();
    for number in 0..keys {
        std::thread::sleep(pace);
        // Down and up within the visible rows.
        let key = if number / 10 % 2 == 0 { "j" } else { "k" };
        times.push(screen.moves(key).as_secs_f64() * 1e3);
        *headers.entry(screen.link().unwrap_or("?")).or_default() += 1;
    }
    times.sort_by(f64::total_cmp);
    let at = |share: usize| times[(times.len() * share / 100).min(times.len() - 1)];
    let headers: Vec<String> = headers.iter().map(|(state, keys)| format!("{state} {keys}")).collect();
    println!(
        "{name:<28}{:>8.1}{:>8.1}{:>8.1}  {}",
        at(50),
        at(99),
        times[times.len() - 1],
        headers.join(", ")
    );
}

/// All processes of a server, stopped until this is dropped.
struct Stopped(Vec<Pid>);

impl Stopped {
    async fn all(server: &EmbeddedServer, info: &ConnInfo) -> Self {
        let client = connect(info).await.unwrap().client;
        let rows = client.query("SELECT pid FROM pg_stat_activity", &[]).await.unwrap();
        let children = rows.iter().map(|row| row.get(0));
        // The postmaster first: it would start new processes.
        let all: Vec<Pid> = server.pid().into_iter().chain(children).filter_map(Pid::from_raw).collect();
        for pid in &all {
            kill_process(*pid, Signal::STOP).unwrap();
        }
        Self(all)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        for pid in &self.0 {
            let _ = kill_process(*pid, Signal::CONT);
        }
    }
}
