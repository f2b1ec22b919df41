//! A session that goes from one situation to the next, and records in which it was hit.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use locktop::clock;
use locktop::pg::connect::{Connection, connect};
use locktop::pg::conninfo::ConnInfo;
use tokio_postgres::Client;

/// The kind of a situation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A running statement.
    Query,
    /// An idle transaction that holds the key.
    Transaction,
    /// A session-level lock on the key, without a transaction.
    Key,
}

/// Time between two checks of the connection.
const STEP: Duration = Duration::from_micros(100);

/// The key of all situations: the next session uses the same one.
pub(crate) const KEY: i64 = 77;

impl Kind {
    fn begin(self, number: u64, dwell: Duration) -> String {
        match self {
            Self::Query => format!("SELECT /* {number} */ pg_sleep({})", dwell.as_secs_f64()),
            Self::Transaction => format!("BEGIN; SELECT /* {number} */ pg_advisory_xact_lock({KEY})"),
            Self::Key => format!("SELECT /* {number} */ pg_advisory_lock({KEY})"),
        }
    }

    fn end(self) -> String {
        match self {
            Self::Query => String::new(),
            Self::Transaction => "COMMIT".to_owned(),
            Self::Key => format!("SELECT pg_advisory_unlock({KEY})"),
        }
    }
}

/// The situation in which the session was hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hit {
    /// During this situation.
    In(u64),
    /// In the statement that ends this situation.
    AtEnd(u64),
    /// After this situation.
    After(u64),
}

#[derive(Default)]
struct Shared {
    pid: AtomicI32,
    /// The situation that began last.
    number: AtomicU64,
    /// Longest duration of a situation, in microseconds.
    dwell: AtomicU64,
    stop: AtomicBool,
    hits: Mutex<Vec<Hit>>,
}

pub(crate) struct Victim {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Victim {
    /// Runs on its own thread, which can sleep for less than a timer of the runtime.
    pub(crate) fn start(info: ConnInfo, kind: Kind) -> Self {
        let shared = Arc::new(Shared::default());
        shared.dwell.store(2_000, Ordering::Relaxed);
        let own = Arc::clone(&shared);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let thread = std::thread::spawn(move || runtime.block_on(live(&own, &info, kind)));
        Self { shared, thread: Some(thread) }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.shared.pid.load(Ordering::Acquire)
    }

    pub(crate) fn number(&self) -> u64 {
        self.shared.number.load(Ordering::Acquire)
    }

    pub(crate) fn dwell(&self, longest: Duration) {
        self.shared.dwell.store(u64::try_from(longest.as_micros()).unwrap(), Ordering::Relaxed);
    }

    /// The hits since the last call.
    pub(crate) fn hits(&self) -> Vec<Hit> {
        std::mem::take(&mut *self.shared.hits.lock().unwrap())
    }

    pub(crate) fn stop(mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

async fn live(shared: &Shared, info: &ConnInfo, kind: Kind) {
    // Any sequence that does not repeat itself.
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    while !shared.stop.load(Ordering::Relaxed) {
        let Connection { client, .. } = &connect(info).await.unwrap();
        let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
        shared.pid.store(pid, Ordering::Release);
        while !shared.stop.load(Ordering::Relaxed) {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let longest = shared.dwell.load(Ordering::Relaxed);
            let dwell = Duration::from_micros((seed >> 33) % longest.max(1));
            let number = shared.number.load(Ordering::Relaxed) + 1;
            let began = client.batch_execute(&kind.begin(number, dwell)).await;
            let hit = |hit| {
                // The row remains visible for a moment after the session has ended.
                shared.pid.store(if kind == Kind::Query { pid } else { 0 }, Ordering::Release);
                shared.hits.lock().unwrap().push(hit);
            };
            if kind == Kind::Query {
                if began.is_err() {
                    hit(Hit::In(number));
                }
                shared.number.store(number, Ordering::Release);
                continue;
            }
            if began.is_err() {
                hit(Hit::After(number - 1));
                break;
            }
            shared.number.store(number, Ordering::Release);
            if is_hit_within(client, dwell).await {
                hit(Hit::In(number));
                break;
            }
            if client.batch_execute(&kind.end()).await.is_err() {
                hit(Hit::AtEnd(number));
                break;
            }
        }
    }
}

/// Waits, and checks continuously whether the connection has ended.
async fn is_hit_within(client: &Client, dwell: Duration) -> bool {
    let start = clock::monotonic();
    loop {
        // Lets the connection read its input.
        tokio::task::yield_now().await;
        if client.is_closed() || start.elapsed() >= dwell {
            return client.is_closed();
        }
        std::thread::sleep(STEP.min(dwell));
    }
}

/// Keeps requesting the key, so that it is never free for long.
pub(crate) async fn wait_again_and_again(info: ConnInfo, kind: Kind) {
    assert!(kind != Kind::Query, "a query blocks no other session");
    let Connection { client, .. } = &connect(&info).await.unwrap();
    let wait = format!("SELECT pg_advisory_xact_lock_shared({KEY})");
    while client.batch_execute(&wait).await.is_ok() {}
}
