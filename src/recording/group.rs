use std::sync::Arc;

use bytes::Bytes;
use prost::Message;
use zstd_safe::{DCtx, DParameter};

use super::cell::{RecordedColumn, rows, time};
use super::frame::{LARGEST, LONG_GROUP, Payload};
use super::strings::{Decoded, RecordError};
use super::tables;
use super::tables::States;
use super::{KINDS, PartKind};
use super::{adapters, blame, known, memory};
use crate::model::backend::Backend;
use crate::model::blame::{Blame, SnapshotBlame};
use crate::model::event::{Event, Events};
use crate::model::lock::{Lock, Prepared};
use crate::model::past::{CarriedState, KeptObservation};
use crate::model::redis_lease::RedisLeases;
use crate::model::snapshot::{Detection, Server, Snapshot};
use crate::model::source_tables::SourceTables;
use crate::model::thresholds::ExpectedBlocker;
use crate::model::wait_graph::Answer;

#[derive(Debug)]
struct DecodedSnapshot {
    head: Payload,
    parts: [Bytes; KINDS],
    blame: Option<Arc<Blame>>,
    tick: Option<Arc<SnapshotBlame>>,
    expected: Option<Arc<[ExpectedBlocker]>>,
}

#[derive(Debug, Default)]
pub struct SnapshotGroup {
    strings: Decoded,
    snapshots: Vec<DecodedSnapshot>,
    size: usize,
    /// Total costs of waiting as of the last requested snapshot; keeping them for each snapshot would need much memory.
    counted: Option<(usize, Arc<Blame>)>,
}

impl SnapshotGroup {
    pub fn len(&self) -> usize {
        self.snapshots.len()
    }

    pub fn is_empty(&self) -> bool {
        self.snapshots.is_empty()
    }

    /// Opens the next snapshot.
    pub fn open(&mut self, bytes: &[u8]) -> Result<(), RecordError> {
        let mut parts = self.snapshots.last().map(|last| last.parts.clone()).unwrap_or_default();
        let payload = decompress(bytes, &parts.concat())?;
        self.size += payload.len();
        if self.size > LONG_GROUP + LARGEST {
            return Err(RecordError::TooLarge);
        }
        let mut head = Payload::decode(Bytes::from(payload)).map_err(|_| RecordError::Damaged)?;
        self.strings.extend(&std::mem::take(&mut head.strings))?;
        for part in std::mem::take(&mut head.parts) {
            // Parts that only a later release knows are ignored.
            if let Some(place) = usize::try_from(part.kind).ok().and_then(|kind| parts.get_mut(kind)) {
                *place = part.content;
            }
        }
        self.strings.begin();
        let tick = head.tick.take().and_then(|tick| blame::tick(&tick, &self.strings)).map(Arc::new);
        let blame = head.blame.take().map(|table| {
            let last = tick.clone().unwrap_or_default();
            Arc::new(Blame { last, ..blame::table(&table, &self.strings) })
        });
        let expected = self.expected(&mut head);
        self.snapshots.push(DecodedSnapshot { head, parts, blame, tick, expected });
        Ok(())
    }

    fn expected(&self, head: &mut Payload) -> Option<Arc<[ExpectedBlocker]>> {
        let Some(kept) = head.expected.take() else { return self.snapshots.last()?.expected.clone() };
        self.strings.begin();
        Some(known::expected(&rows(&kept, &self.strings)).into())
    }

    fn blame(&mut self, at: usize) -> Option<Arc<Blame>> {
        let snapshots = self.snapshots.get(..=at)?;
        let first = snapshots.iter().rposition(|snapshot| snapshot.blame.is_some())?;
        let known = self.counted.take().filter(|(known, _)| (first..=at).contains(known));
        let (from, mut blame) = known.or_else(|| Some((first, snapshots.get(first)?.blame.clone()?)))?;
        for tick in snapshots.iter().skip(from + 1).filter_map(|snapshot| snapshot.tick.as_ref()) {
            Arc::make_mut(&mut blame).add(Arc::clone(tick));
        }
        self.counted = Some((at, Arc::clone(&blame)));
        Some(blame)
    }

    /// Total costs of waiting up to an opened snapshot, `None` if they were not kept, and the events kept with it.
    pub fn glance(&mut self, at: usize) -> Result<(Option<Arc<Blame>>, Vec<Event>), RecordError> {
        let blame = self.blame(at);
        let opened = self.snapshots.get(at).ok_or(RecordError::NoKey)?;
        self.strings.begin();
        let events = rows::<Event>(&opened.head.events, &self.strings).into_iter().map(known::harmless);
        Ok((blame, events.collect()))
    }

    /// An opened snapshot. Its events are those kept with the snapshots since the first of the group.
    pub fn snapshot(&mut self, at: usize) -> Result<KeptObservation, RecordError> {
        let blame = self.blame(at);
        let opened = self.snapshots.get(at).ok_or(RecordError::NoKey)?;
        self.strings.begin();
        let snapshot = opened.snapshot(&self.strings)?;
        let (lock_names, notes, rights) = known::known(&opened.part(PartKind::Known)?, &self.strings);
        let past = opened.past(&snapshot, &self.strings)?;
        let mut events = Events::default();
        for opened in self.snapshots.get(..=at).unwrap_or_default() {
            for event in rows::<Event>(&opened.head.events, &self.strings) {
                events.append(known::harmless(event));
            }
        }
        Ok(KeptObservation {
            id: opened.head.id,
            snapshot,
            past,
            rights,
            lock_names,
            notes,
            events: Arc::new(events),
            blame,
            expected: opened.expected.clone(),
        })
    }
}

impl DecodedSnapshot {
    fn part<T: Message + Default>(&self, kind: PartKind) -> Result<T, RecordError> {
        let content = self.parts.get(kind as usize).cloned().unwrap_or_default();
        T::decode(content).map_err(|_| RecordError::Damaged)
    }

    fn snapshot(&self, strings: &Decoded) -> Result<Snapshot, RecordError> {
        let head = &self.head;
        let mut states = States::new(rows(&head.sections, strings));
        let server = rows::<Server>(&self.part(PartKind::Server)?, strings);
        let backends = rows::<Backend>(&self.part(PartKind::Backends)?, strings);
        let locks = rows::<Lock>(&self.part(PartKind::Locks)?, strings);
        let prepared = rows::<Prepared>(&self.part(PartKind::Prepared)?, strings);
        let (server, backends) = (states.section(server), states.section(backends));
        let (locks, prepared) = (states.section(locks), states.section(prepared));
        let task_sets = tables::sets(&self.part(PartKind::Tasks)?, &mut states, strings);
        let systems = tables::systems(&self.part(PartKind::SourceTables)?, &mut states, strings);
        // These come after the sections of earlier releases, which do not have them.
        let at = time(head.taken_at).ok_or(RecordError::Damaged)?;
        let detection = Detection { tables: states.later_section(at), adapters: states.later_section(at) };
        let redis: tables::Redis = self.part(PartKind::Redis)?;
        let redis = RecordedColumn::<RedisLeases>::get(&redis, 0, strings);
        Ok(Snapshot {
            taken_at: at,
            server,
            backends,
            locks,
            locks_omitted: head.locks_omitted,
            prepared,
            detection,
            task_sets: Arc::new(task_sets),
            sources: Arc::new(SourceTables { redis: Arc::new(redis), ..systems }),
            answers: rows::<Answer>(&self.part(PartKind::Answers)?, strings),
            names: Arc::new(known::names(&self.part(PartKind::Names)?, strings)),
            poll_seconds: head.poll_seconds,
            // A field that is not kept is added here, with its value for "not known".
            adapters: Arc::new(adapters::installations(&self.part(PartKind::Adapters)?, strings)),
        })
    }

    fn past(&self, snapshot: &Snapshot, strings: &Decoded) -> Result<CarriedState, RecordError> {
        let (watch, deadlocks, new_roots) = memory::marks(&self.part(PartKind::Marks)?, strings);
        let beside: memory::NextTo = self.part(PartKind::GraphFrom)?;
        let has_graph = self.parts.get(PartKind::GraphFrom as usize).is_some_and(|part| !part.is_empty());
        let graph_from =
            (has_graph && !snapshot.locks.is_known()).then(|| memory::graph_from(&beside, strings));
        Ok(CarriedState {
            watch,
            adapters: adapters::marks(&self.part(PartKind::JobMarks)?, strings),
            deadlocks,
            new_roots,
            held: memory::held(&self.part(PartKind::Held)?, strings),
            waits: memory::waits(&self.part(PartKind::Waits)?, strings),
            series: Arc::new(memory::series(&self.part(PartKind::Series)?, strings)),
            graph_from,
        })
    }
}

fn decompress(bytes: &[u8], prefix: &[u8]) -> Result<Vec<u8>, RecordError> {
    let size = zstd_safe::get_frame_content_size(bytes).ok().flatten().ok_or(RecordError::Damaged)?;
    let size = usize::try_from(size).map_err(|_| RecordError::TooLarge)?;
    if size > LARGEST {
        return Err(RecordError::TooLarge);
    }
    let mut context = DCtx::try_create().ok_or(RecordError::TooLarge)?;
    context.set_parameter(DParameter::WindowLogMax(27)).map_err(|_| RecordError::Damaged)?;
    context.ref_prefix(prefix).map_err(|_| RecordError::Damaged)?;
    let mut payload = Vec::with_capacity(size);
    context.decompress(&mut payload, bytes).map_err(|_| RecordError::Damaged)?;
    Ok(payload)
}
