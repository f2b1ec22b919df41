//! A snapshot as bytes.
//!
//! A snapshot is a head and parts (sessions, locks, the tables, remembered state); an omitted part is unchanged. All parts
//! as of the previous snapshot are the prefix of its compression. A group begins with a snapshot that has all parts and
//! needs no other.

use std::sync::Arc;

use bytes::Bytes;
use prost::Message;
use zstd_safe::{CCtx, CParameter};

use super::cell::{column, micros};
use super::strings::{RecordError, Strings, TextBlock};
use super::tables;
use super::tables::{SectionState, SectionStates};
use super::{PartKind, PartPrefix};
use super::{adapters, blame, known, memory};
use crate::model::blame::Blame;
use crate::model::event::Event;
use crate::model::past::Observation;
use crate::model::redis_lease::RedisLeases;
use crate::model::snapshot::Snapshot;
use crate::model::task::TaskSet;
use crate::model::thresholds::ExpectedBlocker;
use crate::model::view::View;

/// Snapshots of a group if the oldest group is dropped as a whole; minimum of a long group.
const SNAPSHOTS: usize = 64;

/// Maximum of a long group. A damaged snapshot makes the rest of its group unreadable.
const MOST: usize = 256;

/// A long group continues until its other snapshots together are so many times as large as its first. The first is complete
/// and otherwise takes most of the space for a quiet server (bench `record`).
const SHARE: usize = 8;

/// Uncompressed bytes of a group, all of which are read to reach its last snapshot.
const GROUP: usize = 8 << 20;

/// The same for a long group.
pub(super) const LONG_GROUP: usize = 24 << 20;

/// Maximum uncompressed bytes of a snapshot; a larger one is not kept.
pub(super) const LARGEST: usize = 32 << 20;

/// Bytes from which a snapshot is large: with the parts before it, about ten thousand locks.
const LARGE: usize = 256 << 10;

/// Compression level for so many bytes. The default of zstd is 3. At 10,000 locks, level 2 needs an eighth less time to
/// keep a snapshot, and a quarter more bytes (bench `history`). Level 1 no longer finds the previous snapshot.
fn level(size: usize) -> i32 {
    if size < LARGE { 3 } else { 2 }
}

/// Earlier events at the beginning of a group.
const EVENTS: u64 = 256;

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct FramePart {
    #[prost(uint32, tag = 1)]
    pub(super) kind: u32,
    #[prost(bytes = "bytes", tag = 2)]
    pub(super) content: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Payload {
    #[prost(uint64, tag = 1)]
    pub(super) id: u64,
    #[prost(sfixed64, tag = 2)]
    pub(super) taken_at: i64,
    #[prost(double, tag = 3)]
    pub(super) poll_seconds: f64,
    #[prost(uint64, tag = 4)]
    pub(super) locks_omitted: u64,
    #[prost(message, required, tag = 5)]
    pub(super) strings: TextBlock,
    #[prost(message, required, tag = 6)]
    pub(super) sections: SectionStates,
    #[prost(message, required, tag = 7)]
    pub(super) events: known::Events,
    /// The total costs of waiting, if what this snapshot adds does not continue from the previous snapshot.
    #[prost(message, optional, tag = 8)]
    pub(super) blame: Option<blame::BlameTable>,
    /// The increment of this snapshot to them.
    #[prost(message, optional, tag = 9)]
    pub(super) tick: Option<blame::BlameTick>,
    /// The expected blockers, if they differ from those of the previous snapshot. Not a part, so that a release that does not
    /// know it can still decompress the snapshots after it.
    #[prost(message, optional, tag = 10)]
    pub(super) expected: Option<known::LimitRows>,
    #[prost(message, repeated, tag = 15)]
    pub(super) parts: Vec<FramePart>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// It begins a group and can be read without others.
    pub is_key: bool,
    pub size: usize,
    /// Compressed bytes; reading them needs the earlier snapshots of the group.
    pub bytes: Vec<u8>,
}

#[derive(Debug, Default)]
pub struct Encoder {
    with_events: bool,
    /// The length of a group depends on the size of its first snapshot.
    in_long_groups: bool,
    strings: Strings,
    /// As of the previous snapshot.
    parts: PartPrefix,
    /// The snapshot that the parts are of. Parts that share its rows need not be encoded again.
    last: Option<Observation>,
    snapshots: usize,
    /// Uncompressed bytes, and compressed bytes of the first snapshot and of the others.
    size: usize,
    first: usize,
    others: usize,
    room: Room,
}

/// Memory that each snapshot reuses, because allocations of the size of a snapshot are expensive.
#[derive(Debug, Default)]
struct Room {
    payload: Vec<u8>,
    packed: Vec<u8>,
}

impl Room {
    /// Releases the memory of a complete snapshot after a small one: with 84,000 locks, a fifth of the program's memory.
    fn trim(&mut self) {
        for bytes in [&mut self.payload, &mut self.packed] {
            if bytes.capacity() > LARGE && bytes.capacity() / 8 > bytes.len() {
                bytes.shrink_to(LARGE);
            }
        }
    }
}

impl Encoder {
    pub fn with_events() -> Self {
        Self { with_events: true, ..Self::default() }
    }

    /// Makes groups as long as their first snapshot is worth. A missing or damaged snapshot makes up to 256 snapshots
    /// unreadable, instead of 64.
    pub fn in_long_groups(self) -> Self {
        Self { in_long_groups: true, ..self }
    }

    pub fn begin_group(&mut self) {
        let room = std::mem::take(&mut self.room);
        let Self { with_events, in_long_groups, .. } = *self;
        *self = Self { with_events, in_long_groups, room, ..Self::default() };
    }

    /// The next snapshot as bytes. After an error, which is that there is none or that it is too large, the next one begins a
    /// group.
    pub fn encode(&mut self, observation: &Observation) -> Result<Frame, RecordError> {
        if self.is_full() {
            self.begin_group();
        }
        let frame = self.frame(observation);
        match &frame {
            Ok(frame) => {
                self.snapshots += 1;
                self.size += frame.size;
                let bytes = if frame.is_key { &mut self.first } else { &mut self.others };
                *bytes += frame.bytes.len();
                self.last = Some(observation.clone());
            }
            Err(_) => self.begin_group(),
        }
        frame
    }

    fn is_full(&self) -> bool {
        if !self.in_long_groups {
            return self.snapshots >= SNAPSHOTS || self.size >= GROUP;
        }
        let is_worth_it = self.snapshots >= SNAPSHOTS && self.others >= self.first.saturating_mul(SHARE);
        is_worth_it || self.snapshots >= MOST || self.size >= LONG_GROUP
    }

    fn frame(&mut self, observation: &Observation) -> Result<Frame, RecordError> {
        let snapshot = observation.view.snapshot.as_deref().ok_or(RecordError::Empty)?;
        let is_key = self.snapshots == 0;
        let parts = self.changed_parts(observation, snapshot);
        let mut states = vec![
            SectionState::of(&snapshot.server),
            SectionState::of(&snapshot.backends),
            SectionState::of(&snapshot.locks),
            SectionState::of(&snapshot.prepared),
        ];
        states.extend(tables::set_states(&snapshot.task_sets));
        states.extend(tables::system_states(&snapshot.sources));
        states.extend([
            SectionState::of(&snapshot.detection.tables),
            SectionState::of(&snapshot.detection.adapters),
        ]);
        let events = self.new_events(observation);
        let (blame, tick) = self.blame(&observation.view.blame);
        let payload = Payload {
            id: observation.view.id,
            taken_at: micros(Some(snapshot.taken_at)),
            poll_seconds: snapshot.poll_seconds,
            locks_omitted: snapshot.locks_omitted,
            sections: column(&states, &mut self.strings),
            events: column(&events, &mut self.strings),
            blame,
            tick,
            expected: self.expected(&observation.view.expected),
            strings: self.strings.take_new(),
            parts,
        };
        let size = payload.encoded_len();
        if size > LARGEST {
            return Err(RecordError::TooLarge);
        }
        let Room { payload: bytes, packed } = &mut self.room;
        bytes.clear();
        // Exactly as much as needed: with room to grow, the two buffers would have twice the size of the snapshot.
        bytes.reserve_exact(size);
        payload.encode(bytes).map_err(|_| RecordError::TooLarge)?;
        compress(bytes, self.parts.all(), packed).ok_or(RecordError::TooLarge)?;
        for part in &payload.parts {
            self.parts.set(part.kind, &part.content);
        }
        let frame = Frame { is_key, size, bytes: packed.as_slice().into() };
        self.room.trim();
        Ok(frame)
    }

    fn changed_parts(&mut self, observation: &Observation, snapshot: &Snapshot) -> Vec<FramePart> {
        let Observation { view, past, notes } = observation;
        let Self { strings, last, parts, snapshots, .. } = self;
        let last = last.as_ref();
        let before = last.and_then(|last| last.view.snapshot.as_deref());
        let mut made = Vec::new();
        let mut put = |kind: PartKind, content: Vec<u8>| {
            if *snapshots == 0 || parts.get(kind as u32) != content {
                made.push(FramePart { kind: kind as u32, content: content.into() });
            }
        };
        // The feed shares the rows of a snapshot in which nothing has changed.
        let is_new = |is_same: fn(&Snapshot, &Snapshot) -> bool| {
            before.is_none_or(|before| !is_same(before, snapshot))
        };
        put(PartKind::Server, column(snapshot.server.last_rows(), strings).encode_to_vec());
        put(PartKind::Prepared, column(snapshot.prepared.last_rows(), strings).encode_to_vec());
        put(PartKind::Answers, column(&snapshot.answers, strings).encode_to_vec());
        if is_new(|before, now| Arc::ptr_eq(before.backends.last_rows(), now.backends.last_rows())) {
            put(PartKind::Backends, column(snapshot.backends.last_rows(), strings).encode_to_vec());
        }
        if is_new(|before, now| Arc::ptr_eq(before.locks.last_rows(), now.locks.last_rows())) {
            put(PartKind::Locks, column(snapshot.locks.last_rows(), strings).encode_to_vec());
        }
        if is_new(|before, now| Arc::ptr_eq(&before.names, &now.names)) {
            put(PartKind::Names, known::of_names(&snapshot.names, strings).encode_to_vec());
        }
        if is_new(|before, now| same_sets(&before.task_sets, &now.task_sets)) {
            put(PartKind::Tasks, tables::of_sets(&snapshot.task_sets, strings).encode_to_vec());
        }
        if is_new(|before, now| tables::same_systems(&before.sources, &now.sources)) {
            put(PartKind::SourceTables, tables::of_systems(&snapshot.sources, strings).encode_to_vec());
        }
        let redis: &[RedisLeases] = std::slice::from_ref(&snapshot.sources.redis);
        put(PartKind::Redis, column(redis, strings).encode_to_vec());
        if last.is_none_or(|last| !same_known(last, observation)) {
            let known = known::of_known(&view.lock_names, notes, view.rights.as_deref(), strings);
            put(PartKind::Known, known.encode_to_vec());
        }
        if is_new(|before, now| Arc::ptr_eq(&before.adapters, &now.adapters)) {
            put(PartKind::Adapters, adapters::of_installations(&snapshot.adapters, strings).encode_to_vec());
        }
        put(PartKind::JobMarks, adapters::of_marks(&past.adapters, strings).encode_to_vec());
        if last.is_none_or(|last| !last.past.held.is_same(&past.held)) {
            put(PartKind::Held, memory::of_held(&past.held, strings).encode_to_vec());
        }
        let marks = memory::of_marks(&past.watch, &past.deadlocks, &past.new_roots, strings);
        put(PartKind::Marks, marks.encode_to_vec());
        put(PartKind::Waits, memory::of_waits(&past.waits, strings).encode_to_vec());
        put(PartKind::Series, memory::of_series(&past.series, strings).encode_to_vec());
        // With current locks, the input of the previous graph is not needed.
        let beside = past.graph_from.as_ref().filter(|_| !snapshot.locks.is_known());
        let beside = beside.map(|graph| memory::of_graph_from(graph, strings).encode_to_vec());
        put(PartKind::GraphFrom, beside.unwrap_or_default());
        made
    }

    /// The increment of a snapshot to the costs of waiting, if it continues from the previous one; else the totals.
    fn blame(&mut self, blame: &Blame) -> (Option<blame::BlameTable>, Option<blame::BlameTick>) {
        let before = self.last.as_ref().filter(|_| self.snapshots > 0).map(|last| &last.view.blame);
        match before.map(|before| blame.polls.checked_sub(before.polls)) {
            Some(Some(0)) => (None, None),
            Some(Some(1)) => (None, Some(blame::of_tick(&blame.last, &mut self.strings))),
            _ => {
                let table = blame::of_table(blame, &mut self.strings);
                (Some(table), Some(blame::of_tick(&blame.last, &mut self.strings)))
            }
        }
    }

    fn expected(&mut self, expected: &Arc<[ExpectedBlocker]>) -> Option<known::LimitRows> {
        let before = self.last.as_ref().filter(|_| self.snapshots > 0).map(|last| &last.view.expected);
        let is_new = before.is_none_or(|before| before != expected);
        is_new.then(|| column(&known::of_expected(expected), &mut self.strings))
    }

    /// The events since the previous snapshot; in the first of a group, also the last of the earlier events.
    fn new_events(&self, observation: &Observation) -> Vec<Event> {
        let events = &observation.view.events;
        if !self.with_events {
            return Vec::new();
        }
        let from = match &self.last {
            Some(last) => last.view.events.end(),
            None => events.end().saturating_sub(EVENTS),
        };
        (from..events.end()).filter_map(|number| events.get(number).cloned()).collect()
    }
}

fn same_sets(before: &[TaskSet], after: &[TaskSet]) -> bool {
    let same = |(before, after): (&TaskSet, &TaskSet)| {
        Arc::ptr_eq(&before.tables, &after.tables)
            && Arc::ptr_eq(before.tasks.last_rows(), after.tasks.last_rows())
            && Arc::ptr_eq(before.executions.last_rows(), after.executions.last_rows())
            && (before.tasks.is_cut, before.executions.is_cut)
                == (after.tasks.is_cut, after.executions.is_cut)
    };
    before.len() == after.len() && before.iter().zip(after).all(same)
}

fn same_known(before: &Observation, after: &Observation) -> bool {
    let rights = |view: &View| view.rights.as_ref().map(Arc::as_ptr);
    Arc::ptr_eq(&before.view.lock_names, &after.view.lock_names)
        && Arc::ptr_eq(&before.notes, &after.notes)
        && rights(&before.view) == rights(&after.view)
}

/// `None` if zstd cannot allocate memory.
fn compress(payload: &[u8], prefix: &[u8], into: &mut Vec<u8>) -> Option<()> {
    let mut context = CCtx::try_create()?;
    let size = payload.len() + prefix.len();
    context.set_parameter(CParameter::CompressionLevel(level(size))).ok()?;
    context.set_parameter(CParameter::WindowLog(window(size))).ok()?;
    context.ref_prefix(prefix).ok()?;
    into.clear();
    into.reserve_exact(zstd_safe::compress_bound(payload.len()));
    context.compress2(into, payload).ok()?;
    Some(())
}

/// The window that covers so many bytes, as a power of two.
fn window(size: usize) -> u32 {
    size.max(1 << 10).next_power_of_two().ilog2().clamp(10, 27)
}
