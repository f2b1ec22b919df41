//! Snapshots as bytes: one codec for memory and for files.
//!
//! The data from the server and the remembered state are kept; the wait graph, the states of tasks and the findings are
//! computed again. The format is Protocol Buffers with a column for each field (described in `assets/record.proto`),
//! compressed by zstd with the previous snapshot as the prefix.

mod activity;
mod adapters;
mod blame;
mod cell;
mod columns;
pub mod container;
mod frame;
mod group;
mod known;
mod memory;
mod strings;
mod tables;
#[cfg(test)]
mod tests;

use std::ops::Range;

pub use frame::{Encoder, Frame};
pub use group::SnapshotGroup;
pub use strings::RecordError;

/// The parts of a snapshot. Numbers are never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum PartKind {
    Server = 0,
    Backends = 1,
    Locks = 2,
    Prepared = 3,
    Answers = 4,
    Names = 5,
    Tasks = 6,
    SourceTables = 7,
    Redis = 8,
    Known = 9,
    Held = 10,
    Marks = 11,
    Waits = 12,
    Series = 13,
    GraphFrom = 14,
    Adapters = 15,
    JobMarks = 16,
}

const KINDS: usize = 17;

/// The parts of a snapshot, concatenated: the prefix of the next one's compression.
#[derive(Debug, Default)]
struct PartPrefix {
    bytes: Vec<u8>,
    ends: [usize; KINDS],
}

impl PartPrefix {
    fn all(&self) -> &[u8] {
        &self.bytes
    }

    fn get(&self, kind: u32) -> &[u8] {
        self.place(kind).and_then(|place| self.bytes.get(place)).unwrap_or_default()
    }

    fn set(&mut self, kind: u32, content: &[u8]) {
        let Some(place) = self.place(kind) else { return };
        let all = self.bytes.len();
        let end = place.start + content.len();
        let behind = all - place.end;
        // Reserves exactly as much as needed: with many locks this is large, and it stays allocated.
        self.bytes.reserve_exact(content.len().saturating_sub(place.len()));
        self.bytes.resize(all.max(end + behind), 0);
        self.bytes.copy_within(place.end..all, end);
        self.bytes.truncate(end + behind);
        if let Some(at) = self.bytes.get_mut(place.start..end) {
            at.copy_from_slice(content);
        }
        for later in self.ends.iter_mut().skip(kind as usize) {
            *later = *later - place.len() + content.len();
        }
    }

    fn place(&self, kind: u32) -> Option<Range<usize>> {
        let kind = usize::try_from(kind).ok()?;
        let start = kind.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or_default();
        Some(start..*self.ends.get(kind)?)
    }
}
