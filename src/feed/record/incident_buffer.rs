//! A recorder that writes only incidents: it keeps records in memory until a finding is critical, then writes them and
//! what follows until the incident has been over for some time.

use std::collections::VecDeque;
use std::time::Duration;

use crate::model::Timestamp;
use crate::model::finding::Severity;
use crate::model::view::View;

/// Most bytes in memory, in addition to the newest group.
const MEMORY: usize = 64 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Around {
    pub before: Duration,
    pub after: Duration,
}

#[derive(Debug)]
struct BufferedSnapshot {
    bytes: Vec<u8>,
    /// The time, if it starts a group. A group can be decoded without earlier records.
    begins: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BufferStep {
    Wait,
    /// Start writing, because of this finding.
    Begin(String),
    Write,
    /// Write the records in memory; then the incident is over.
    End,
}

#[derive(Debug)]
pub(super) struct IncidentBuffer {
    around: Around,
    waiting: VecDeque<BufferedSnapshot>,
    size: usize,
    /// When a finding was last critical. `None` while nothing is written.
    critical: Option<Timestamp>,
}

impl IncidentBuffer {
    pub(super) fn new(around: Around) -> Self {
        Self { around, waiting: VecDeque::new(), size: 0, critical: None }
    }

    /// Adds the record of a snapshot; `begins` if it starts a group.
    pub(super) fn add(&mut self, bytes: Vec<u8>, begins: bool, view: &View) -> BufferStep {
        let now = view.snapshot.as_deref().map(|snapshot| snapshot.taken_at);
        self.put(bytes, now.filter(|_| begins));
        let Some(now) = now else { return BufferStep::Wait };
        let critical = view.findings.iter().find(|finding| finding.severity == Severity::Critical);
        match (critical, self.critical) {
            (Some(finding), None) => {
                self.critical = Some(now);
                BufferStep::Begin(finding.summary.to_string())
            }
            (Some(_), Some(_)) => {
                self.critical = Some(now);
                BufferStep::Write
            }
            (None, Some(last)) if passed(last, now) >= self.around.after => BufferStep::End,
            (None, Some(_)) => BufferStep::Write,
            (None, None) => {
                self.forget(now);
                BufferStep::Wait
            }
        }
    }

    /// Adds another record. Returns whether to write it now.
    pub(super) fn other(&mut self, bytes: Vec<u8>) -> bool {
        // Without a group it would belong to nothing.
        if !self.waiting.is_empty() || self.critical.is_some() {
            self.put(bytes, None);
        }
        self.critical.is_some()
    }

    pub(super) fn next(&self) -> Option<&[u8]> {
        self.waiting.front().map(|waiting| &*waiting.bytes)
    }

    pub(super) fn written(&mut self) {
        if let Some(written) = self.waiting.pop_front() {
            self.size -= written.bytes.len();
        }
    }

    pub(super) fn end(&mut self) {
        *self = Self::new(self.around);
    }

    /// The file could not be opened; the next snapshot decides again.
    pub(super) fn begin_again(&mut self) {
        self.critical = None;
    }

    fn put(&mut self, bytes: Vec<u8>, begins: Option<Timestamp>) {
        self.size += bytes.len();
        self.waiting.push_back(BufferedSnapshot { bytes, begins });
    }

    /// Drops whole groups that are too old, or exceed the memory limit.
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

/// Elapsed time; 0 if the clock was set back.
fn passed(then: Timestamp, now: Timestamp) -> Duration {
    (now - then).to_std().unwrap_or_default()
}
