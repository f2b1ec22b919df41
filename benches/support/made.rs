//! A simulated server, and the measurements that use it.

use std::time::Duration;

use locktop::model::backend::{Backend, State};
use locktop::model::lock::{Lock, LockMode, LockTag, LockType, VirtualTransaction};
use locktop::model::snapshot::Snapshot;
use rustix::time::{ClockId, clock_gettime};

use crate::sample;

/// CPU time of this thread.
fn spent() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

pub fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let before = spent();
    let done = work();
    (done, spent().saturating_sub(before).as_secs_f64() * 1000.0)
}

/// A simulated server whose sessions change from time to time.
pub struct Made {
    seed: u64,
    sessions: u32,
    /// Locks per session.
    each: u32,
    backends: Vec<Backend>,
    locks: Vec<Vec<Lock>>,
}

impl Made {
    pub fn new(sessions: u32, locks: u32) -> Self {
        let mut made =
            Self { seed: 7, sessions, each: locks / sessions, backends: Vec::new(), locks: Vec::new() };
        let mut builder = sample::Builder::default();
        for pid in 0..sessions {
            let identity = format!("app{}@web-{}", pid % 7, pid % 40);
            builder.session(10_000 + pid as i32, &identity, State::Idle, 60.0, "SELECT 1");
        }
        made.backends = builder.backends;
        made.locks = vec![Vec::new(); sessions as usize];
        for session in 0..sessions as usize {
            made.act(session, 0.0);
        }
        made
    }

    /// A number below `end`: a linear congruential generator with the constants of Knuth's MMIX.
    pub fn below(&mut self, end: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % end
    }

    /// A session starts something else.
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
                0 => LockTag::new(LockType::VirtualXid).with_virtualxid(virtualtransaction),
                1 => LockTag::new(LockType::TransactionId).with_transactionid(id),
                2 if session.is_multiple_of(3) => sample::advisory(session as i64),
                _ => sample::relation(2000 + (self.below(300)) as u32),
            };
            locks.push(lock(tag, LockMode::RowExclusive));
        }
        // One in twenty waits for the transaction of another session.
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

    pub fn snapshot(&mut self, now: f64, percent: u64) -> Snapshot {
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

/// The value that `percent` of the values do not exceed.
pub fn percentile(values: &mut [f64], percent: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(values.len() * percent / 100).min(values.len() - 1)]
}
