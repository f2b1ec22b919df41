//! A flight recorder: records stay in memory until something is critical. Then they are written, and what follows until it has been
//! over for a while.

use std::collections::VecDeque;
use std::time::Duration;

use crate::model::Timestamp;
use crate::model::finding::Severity;
use crate::model::view::View;

/// Bytes that wait at most, beside the newest group.
const MEMORY: usize = 64 << 20;

/// How much around trouble is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Around {
    /// Time before it that is recorded too.
    pub before: Duration,
    /// Time after its end that is recorded too.
    pub after: Duration,
}

/// A record that is not written yet.
#[derive(Debug)]
struct Waiting {
    bytes: Vec<u8>,
    /// Where it begins a group: when that was. What is in front of it is not needed to read it.
    begins: Option<Timestamp>,
}

/// What comes next for whoever writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Turn {
    /// Nothing is written: nothing is critical.
    Wait,
    /// Writing begins: what is critical.
    Begin(String),
    /// What waits is written now.
    Write,
    /// The same, and it was the last of it.
    End,
}

/// The records that wait, and whether they are written.
#[derive(Debug)]
pub(super) struct Flight {
    around: Around,
    waiting: VecDeque<Waiting>,
    /// The bytes of all records that wait.
    size: usize,
    /// When something was last critical; none while nothing is written.
    critical: Option<Timestamp>,
}

impl Flight {
    pub(super) fn new(around: Around) -> Self {
        Self { around, waiting: VecDeque::new(), size: 0, critical: None }
    }

    /// Takes a record of a look; `begins` where it begins a group.
    pub(super) fn look(&mut self, bytes: Vec<u8>, begins: bool, view: &View) -> Turn {
        let now = view.snapshot.as_deref().map(|snapshot| snapshot.taken_at);
        self.put(bytes, now.filter(|_| begins));
        let Some(now) = now else { return Turn::Wait };
        let critical = view.findings.iter().find(|finding| finding.severity == Severity::Critical);
        match (critical, self.critical) {
            (Some(finding), None) => {
                self.critical = Some(now);
                Turn::Begin(finding.summary.to_string())
            }
            (Some(_), Some(_)) => {
                self.critical = Some(now);
                Turn::Write
            }
            (None, Some(last)) if passed(last, now) >= self.around.after => Turn::End,
            (None, Some(_)) => Turn::Write,
            (None, None) => {
                self.forget(now);
                Turn::Wait
            }
        }
    }

    /// Takes another record; whether it is to be written now.
    pub(super) fn other(&mut self, bytes: Vec<u8>) -> bool {
        // Without a group there is nothing that it could belong to.
        if !self.waiting.is_empty() || self.critical.is_some() {
            self.put(bytes, None);
        }
        self.critical.is_some()
    }

    /// The next that is to be written.
    pub(super) fn next(&self) -> Option<&[u8]> {
        self.waiting.front().map(|waiting| &*waiting.bytes)
    }

    /// The first record that waited was written.
    pub(super) fn written(&mut self) {
        if let Some(written) = self.waiting.pop_front() {
            self.size -= written.bytes.len();
        }
    }

    /// All is written, and it waits for the next trouble.
    pub(super) fn end(&mut self) {
        *self = Self::new(self.around);
    }

    /// It could not begin: what is critical is looked at anew with the next look.
    pub(super) fn begin_again(&mut self) {
        self.critical = None;
    }

    fn put(&mut self, bytes: Vec<u8>, begins: Option<Timestamp>) {
        self.size += bytes.len();
        self.waiting.push_back(Waiting { bytes, begins });
    }

    /// Lets whole groups go that are older than what is wanted, or too large.
    fn forget(&mut self, now: Timestamp) {
        loop {
            let mut groups = self.waiting.iter().enumerate().skip(1);
            let next = groups.find_map(|(at, waiting)| Some((at, waiting.begins?)));
            let Some((at, begins)) = next else { return };
            if passed(begins, now) < self.around.before && self.size <= MEMORY {
                return;
            }
            for _ in 0..at {
                self.written();
            }
        }
    }
}

/// How long ago something was; a clock that was set back takes nothing away.
fn passed(then: Timestamp, now: Timestamp) -> Duration {
    (now - then).to_std().unwrap_or_default()
}
