//! What the history of the dashboard costs: bytes a look, processor time to copy what was known (`past`), to count who makes others wait
//! (`blame`) and to keep it (`keep`), all of that together (`all`), and how long a step and a jump take.
//!
//! A quarter of an hour at a look a second, of made-up servers: of each size a busy one, where a fifth of the sessions did something since
//! the look before, and a quiet one, where a hundredth did. `LOCKTOP_LOOKS` (900) makes it shorter. Times are processor time of the
//! thread, so that others on the machine do not count.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::print_stdout,
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "a benchmark may"
)]

#[path = "support/sample.rs"]
mod sample;

use std::sync::Arc;
use std::time::Duration;

use locktop::feed::digest::Digest;
use locktop::feed::history::{Limits, Store};
use locktop::feed::recount::Recount;
use locktop::model::backend::{Backend, State};
use locktop::model::lock::{Lock, LockMode, LockTag, LockType, VirtualTransaction};
use locktop::model::lock_name::LockNames;
use locktop::model::snapshot::Snapshot;
use locktop::model::thresholds::Thresholds;
use locktop::model::timeline::Step;
use locktop::model::view::TargetId;
use rustix::time::{ClockId, clock_gettime};

/// Processor time of this thread.
fn spent() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let before = spent();
    let done = work();
    (done, spent().saturating_sub(before).as_secs_f64() * 1000.0)
}

/// A server whose sessions do something now and then.
struct Made {
    seed: u64,
    sessions: u32,
    /// Locks of each session.
    each: u32,
    backends: Vec<Backend>,
    locks: Vec<Vec<Lock>>,
}

impl Made {
    fn new(sessions: u32, locks: u32) -> Self {
        let mut made =
            Self { seed: 7, sessions, each: locks / sessions, backends: Vec::new(), locks: Vec::new() };
        let mut builder = sample::Builder::default();
        for pid in 0..sessions {
            let who = format!("app{}@web-{}", pid % 7, pid % 40);
            builder.session(10_000 + pid as i32, &who, State::Idle, 60.0, "SELECT 1");
        }
        made.backends = builder.backends;
        made.locks = vec![Vec::new(); sessions as usize];
        for session in 0..sessions as usize {
            made.act(session, 0.0);
        }
        made
    }

    /// A number below `end`: a linear congruential generator with the constants of Knuth's MMIX.
    fn below(&mut self, end: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % end
    }

    /// A session does something else.
    fn act(&mut self, session: usize, now: f64) {
        let since = sample::at(now - self.below(1_000_000) as f64 / 1e6);
        let (kind, text, id) = (self.below(4), self.below(200), self.below(1 << 30) as u32);
        let backend = &mut self.backends[session];
        backend.state =
            Some([State::Active, State::Active, State::Idle, State::IdleInTransaction][kind as usize]);
        backend.query = Some(
            format!("UPDATE accounts SET balance = balance - $1, touched = now() WHERE account = $2 /* form {text} */")
                .into(),
        );
        (backend.query_start, backend.state_change) = (Some(since), Some(since));
        backend.xact_start = (kind != 2).then_some(since);
        backend.backend_xid = (kind != 2).then_some(id);
        backend.wait_event_type = (kind == 2).then(|| "Client".into());
        let pid = backend.pid;
        let virtualtransaction = VirtualTransaction { proc_number: session as i32, local_xid: id };
        let lock = |tag, mode| Lock {
            tag,
            mode,
            granted: true,
            pid: Some(pid),
            virtualtransaction,
            wait_start: None,
        };
        let mut locks = Vec::new();
        for at in 0..self.each {
            let tag = match at {
                0 => LockTag { virtualxid: Some(virtualtransaction), ..LockTag::new(LockType::VirtualXid) },
                1 => LockTag { transactionid: Some(id), ..LockTag::new(LockType::TransactionId) },
                2 if session.is_multiple_of(3) => sample::advisory(session as i64),
                _ => sample::relation(2000 + (self.below(300)) as u32),
            };
            locks.push(lock(tag, LockMode::RowExclusive));
        }
        // One in twenty waits for the transaction of another.
        if kind == 0 && session % 20 == 1 {
            let other = self.locks[session - 1].get(1).map(|lock| lock.tag);
            let backend = &mut self.backends[session];
            backend.wait_event_type = Some("Lock".into());
            locks.extend(other.map(|tag| Lock {
                granted: false,
                wait_start: Some(since),
                ..lock(tag, LockMode::Share)
            }));
        }
        self.locks[session] = locks;
    }

    fn look(&mut self, now: f64, percent: u64) -> Snapshot {
        for session in 0..self.sessions as usize {
            if self.below(100) < percent {
                self.act(session, now);
            }
        }
        let backends = self.backends.clone();
        let locks = self.locks.iter().flatten().copied().collect();
        sample::Builder { backends, locks, now, ..sample::Builder::default() }.snapshot()
    }
}

/// The value below which so many percent are.
fn percentile(values: &mut [f64], percent: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(values.len() * percent / 100).min(values.len() - 1)]
}

fn main() {
    let looks = std::env::var("LOCKTOP_LOOKS").ok().and_then(|looks| looks.parse().ok()).unwrap_or(900);
    println!("{looks} looks; milliseconds of processor time");
    println!(
        "{:>22} {:>8} {:>8} {:>9} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}",
        "sessions/locks",
        "MB",
        "KB/look",
        "of JSON",
        "past",
        "blame",
        "keep",
        "all",
        "p99",
        "step",
        "p99",
        "jump",
        "p99"
    );
    for (sessions, locks) in [(500, 2_000), (1_000, 10_000)] {
        for (what, percent) in [("busy", 20), ("quiet", 1)] {
            run(&format!("{sessions}/{locks} {what}"), Made::new(sessions, locks), percent, looks);
        }
    }
}

fn run(name: &str, mut made: Made, percent: u64, looks: u32) {
    let limits = Limits { length: Duration::from_secs(86_400), memory: 4 << 30 };
    let mut store = Store::new(limits, TargetId(0), Thresholds::default());
    let mut digest = Digest::new(TargetId(0), Thresholds::default(), LockNames::default());
    let mut recount = Recount::new(1.0);
    let (mut keep, mut pasts, mut blames, mut all, mut json) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), 0);
    let mut past = digest.past();
    for second in 0..looks {
        let view = digest.snapshot_taken(made.look(f64::from(second), percent));
        let (next, copied) = timed(|| digest.past());
        let look = digest.look(std::mem::replace(&mut past, next));
        let ((), kept) = timed(|| store.keep(&look));
        // The digest has counted already, and so does this: it is the same work.
        let (_, counted) = timed(|| recount.count(&view));
        pasts.push(copied);
        blames.push(counted);
        keep.push(kept);
        all.push(copied + counted + kept);
        if second % 100 == 0 {
            json += locktop::wire::json::to_string(&view).unwrap().unwrap().len();
        }
    }
    let newest = digest.view().id;
    let bytes = store.bytes();
    let (mut steps, mut jumps) = (Vec::new(), Vec::new());
    let mut from = newest;
    for _ in 0..looks.min(300) - 1 {
        let (stepped, time) = timed(|| store.go(from, Step::Looks(-1)).unwrap().unwrap());
        from = stepped.view.id;
        steps.push(time);
    }
    for _ in 0..200 {
        let to = made.below(u64::from(looks));
        let (jumped, time) = timed(|| store.go(newest, Step::Time(sample::at(to as f64))).unwrap().unwrap());
        assert_eq!(Arc::strong_count(&jumped), 1);
        jumps.push(time);
    }
    let each = bytes as f64 / f64::from(looks);
    let of_json = each / (json as f64 / f64::from(looks.div_ceil(100)));
    println!(
        "{name:>22} {:8.2} {:8.2} {:9.4} {:7.2} {:7.2} {:7.2} {:7.2} {:7.2} {:7.2} {:7.2} {:7.2} {:7.2}",
        bytes as f64 / 1e6,
        each / 1e3,
        of_json,
        percentile(&mut pasts, 50),
        percentile(&mut blames, 50),
        percentile(&mut keep, 50),
        percentile(&mut all, 50),
        percentile(&mut all, 99),
        percentile(&mut steps, 50),
        percentile(&mut steps, 99),
        percentile(&mut jumps, 50),
        percentile(&mut jumps, 99)
    );
}
