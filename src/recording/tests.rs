#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "any number will do"
)]

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::model::backend::{Backend, BackendId, State};
use crate::model::event::{self, Event, EventBody, EventKind, Events, Length};
use crate::model::finding::{Severity, Subject};
use crate::model::held::{HeldLocks, HeldSince, HeldWatch, SessionActivity};
use crate::model::id_generator::IdGenerator;
use crate::model::lease::Lease;
use crate::model::lock::{Lock, LockMode, LockTag, LockType, Prepared, VirtualTransaction};
use crate::model::lock_key::LockKey;
use crate::model::lock_name::{LockNames, NameContext};
use crate::model::lock_waits::{LockWaits, WaitCounter, WaitedLock, waited_rows};
use crate::model::past::{CarriedState, GraphFrom, KeptObservation, Observation};
use crate::model::plan::Rights;
use crate::model::rate_limit::RateLimit;
use crate::model::redis_lease::{Expiry, KeyReading, LockValue, ServerReading, merge_sets};
use crate::model::refusals::Refusals;
use crate::model::snapshot::{
    Detection, Keepalives, Names, Pooling, Section, Server, Snapshot, Tls, WalReplay, server_rows,
};
use crate::model::source_tables::{CountedWaits, Source, SourceTables, TableRows, source_rows};
use crate::model::table_rows::TaskWorker;
use crate::model::table_rows::{Growth, Owner};
use crate::model::table_rows::{queried_rows, table_rows};
use crate::model::task::{Execution, KeyRule, Schedule, TaskSet, TaskTables, task_tables_rows};
use crate::model::thresholds::ExpectedBlocker;
use crate::model::view::{Sample, Series, View};
use crate::model::wait_graph::{Answer, Party};
use crate::model::work_queue::{Item, StateCount};
use crate::model::{QueryText, Text, Timestamp};
use crate::sample;

/// A random value of each type that a row has.
trait Rolled {
    fn rolled(dice: &mut Dice) -> Self;
}

macro_rules! rolled {
    ($($columns:ident of $row:ident { $($tag:literal $field:ident: $type:ty $(= $($column:literal)+)?,)* })*) => {
        $(impl Rolled for $row {
            fn rolled(dice: &mut Dice) -> Self {
                Self { $($field: dice.any(),)* }
            }
        })*
    };
    ($($type:ty: $value:expr;)*) => {
        $(impl Rolled for $type {
            fn rolled(dice: &mut Dice) -> Self {
                $value(dice)
            }
        })*
    };
}

// Below the macro that they use.
mod adapters;
mod again;

table_rows!(rolled);
queried_rows!(rolled);
source_rows!(rolled);
task_tables_rows!(rolled);
server_rows!(rolled);
waited_rows!(rolled);

rolled! {
    bool: Dice::bool;
    i32: Dice::i32;
    i64: Dice::i64;
    u16: Dice::u16;
    u32: Dice::u32;
    u64: Dice::roll;
    f64: Dice::f64;
    (u32, u16): |dice: &mut Dice| (dice.u32(), dice.u16());
    Text: Dice::text;
    Timestamp: Dice::time;
    Arc<[u32]>: |dice: &mut Dice| dice.some(3, Dice::u32).into();
    KeyRule: Dice::rule;
    LockKey: Dice::key;
    LockMode: |dice: &mut Dice| dice.of(&LockMode::ALL);
    LockTag: Dice::tag;
    Owner: Dice::owner;
    Growth: Dice::growth;
    Pooling: |dice: &mut Dice| dice.of(&[Pooling::None, Pooling::Sessions, Pooling::Transactions]);
    Tls: |dice: &mut Dice| dice.of(&[Tls::None, Tls::Require, Tls::VerifyCa, Tls::VerifyFull]);
    WalReplay: |dice: &mut Dice| dice.of(&[WalReplay::Nothing, WalReplay::Some, WalReplay::All]);
}

impl<T: Rolled> Rolled for Option<T> {
    fn rolled(dice: &mut Dice) -> Self {
        dice.maybe(T::rolled)
    }
}

struct Dice(u64);

impl Dice {
    /// `splitmix64` (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: u64) -> u64 {
        self.roll() % end
    }

    fn any<T: Rolled>(&mut self) -> T {
        T::rolled(self)
    }

    fn bool(&mut self) -> bool {
        self.below(2) == 1
    }

    fn i64(&mut self) -> i64 {
        match self.below(7) {
            0 => i64::MIN,
            1 => i64::MAX,
            2 => self.roll().cast_signed(),
            _ => self.below(1000).cast_signed() - 500,
        }
    }

    fn u32(&mut self) -> u32 {
        [0, u32::MAX, 7, self.0 as u32][self.below(4) as usize]
    }

    fn u16(&mut self) -> u16 {
        self.u32() as u16
    }

    fn i32(&mut self) -> i32 {
        [0, i32::MIN, i32::MAX, -1, self.0 as i32][self.below(5) as usize]
    }

    fn f64(&mut self) -> f64 {
        [0.0, -1.5, 1e300, f64::MIN_POSITIVE, self.0 as f64][self.below(5) as usize]
    }

    fn time(&mut self) -> Timestamp {
        let micros = [
            0,
            -1,
            1_700_000_000_000_000,
            -8_000_000_000_000_000_000 / 1000,
            self.0 as i64 % 4_000_000_000_000_000,
        ];
        Timestamp::from_timestamp_micros(micros[self.below(5) as usize]).unwrap()
    }

    fn text(&mut self) -> Text {
        ["", "a", "app", "报表\u{1b}[31m\0\n", "SELECT 1", "x".repeat(3000).as_str()][self.below(6) as usize]
            .into()
    }

    fn line(&mut self) -> Text {
        crate::text::one_line(&self.text()).into()
    }

    fn bytes(&mut self) -> Arc<[u8]> {
        let bytes: [&[u8]; 4] = [b"", b"\xff\0", b"key", &self.0.to_le_bytes()];
        bytes[self.below(4) as usize].into()
    }

    fn maybe<T>(&mut self, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.below(3) > 0).then(|| value(self))
    }

    fn some<T>(&mut self, most: u64, mut value: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(most + 1)).map(|_| value(self)).collect()
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    fn xact(&mut self) -> VirtualTransaction {
        VirtualTransaction { proc_number: self.i32(), local_xid: self.u32() }
    }

    fn party(&mut self) -> Party {
        if self.bool() { Party::Backend(self.i32()) } else { Party::Prepared(self.xact()) }
    }

    fn tag(&mut self) -> LockTag {
        use LockType as T;
        let new = LockTag::new(self.of(&T::ALL));
        // Only the columns that a lock of this type has.
        match new.locktype() {
            T::VirtualXid => new.with_virtualxid(self.xact()),
            T::Tuple | T::Page => new
                .with_database(self.maybe(Self::u32))
                .with_relation(self.maybe(Self::u32))
                .with_page(self.maybe(Self::u32))
                .with_tuple(self.maybe(Self::u16)),
            T::ApplyTransaction => new
                .with_database(self.maybe(Self::u32))
                .with_transactionid(self.maybe(Self::u32))
                .with_objid(self.maybe(Self::u32)),
            T::Relation => new.with_database(self.maybe(Self::u32)).with_relation(self.maybe(Self::u32)),
            _ => new
                .with_database(self.maybe(Self::u32))
                .with_classid(self.maybe(Self::u32))
                .with_objid(self.maybe(Self::u32))
                .with_objsubid(self.maybe(Self::u16)),
        }
    }

    fn lock(&mut self) -> Lock {
        Lock {
            tag: self.tag(),
            mode: self.of(&LockMode::ALL),
            granted: self.bool(),
            pid: self.maybe(Self::i32),
            virtualtransaction: self.xact(),
            wait_start: self.maybe(Self::time),
        }
    }

    fn backend(&mut self) -> Backend {
        Backend {
            pid: self.i32(),
            backend_start: self.maybe(Self::time),
            leader_pid: self.maybe(Self::i32),
            datid: self.maybe(Self::u32),
            database: self.maybe(Self::text),
            user: self.maybe(Self::text),
            usesysid: self.maybe(Self::u32),
            application: self.maybe(Self::text),
            client: self.maybe(Self::text),
            client_port: self.maybe(Self::i32),
            backend_type: self.maybe(Self::text),
            state: self.maybe(|dice| dice.of(&State::ALL)),
            wait_event_type: self.maybe(Self::text),
            wait_event: self.maybe(Self::text),
            xact_start: self.maybe(Self::time),
            query_start: self.maybe(Self::time),
            state_change: self.maybe(Self::time),
            backend_xid: self.maybe(Self::u32),
            backend_xmin: self.maybe(Self::u32),
            query_id: self.maybe(Self::i64),
            query: self.maybe(Self::text).map(QueryText::from),
        }
    }

    fn section<T>(&mut self, rows: Vec<T>) -> Section<T> {
        Section::restored(Arc::new(rows), self.maybe(Self::time), self.maybe(Self::text))
    }

    fn rule(&mut self) -> KeyRule {
        let text = self.text();
        self.of(&[0, 1, 2, 3]).pipe(|kind| match kind {
            0 => KeyRule::Unsaid,
            1 => KeyRule::Id,
            2 => KeyRule::LockId,
            _ => KeyRule::Expression(text),
        })
    }

    fn owner(&mut self) -> Owner {
        Owner { name: self.text(), stranger: self.maybe(Self::text), hides: self.maybe(Self::text) }
    }

    fn growth(&mut self) -> Growth {
        Growth { rows: self.roll(), is_limited: self.bool(), old: self.maybe(Self::roll) }
    }

    fn set(&mut self) -> TaskSet {
        let tables = self.any::<TaskTables>();
        let tasks = self.some(4, Self::any::<Schedule>);
        let executions = self.some(4, Self::any::<Execution>);
        let (tasks, executions) = (self.section(tasks), self.section(executions));
        TaskSet::new(Arc::new(tables), tasks.cut(self.bool()), executions.cut(self.bool()))
    }

    fn tables<T>(&mut self, row: impl Fn(&mut Self) -> T) -> Vec<TableRows<T>> {
        self.some(2, |dice| {
            let rows = dice.some(4, &row);
            let source = Arc::new(dice.any::<Source>());
            TableRows { source, section: dice.section(rows).cut(dice.bool()) }
        })
    }

    fn systems(&mut self) -> SourceTables {
        let readings = self.some(5, |dice| ServerReading {
            server: dice.text(),
            keys: if dice.below(4) == 0 { Err(dice.text()) } else { Ok(dice.some(4, Self::reading)) },
        });
        let read_at = self.maybe(Self::time);
        let redis = merge_sets(&readings, &[readings.len() / 2, readings.len() - readings.len() / 2]);
        SourceTables {
            leases: self.tables(Self::any),
            counts: self.tables(Self::any),
            items: self.tables(Self::any),
            limits: self.tables(Self::any),
            generators: self.tables(Self::any),
            workers: self.tables(Self::any),
            contended: self.tables(Self::any),
            refusals: self.tables(Self::any),
            redis: Arc::new(crate::model::redis_lease::RedisLeases { read_at, cut: self.bool(), ..redis }),
        }
    }

    fn reading(&mut self) -> KeyReading {
        let value = match self.below(3) {
            0 => LockValue::Text { bytes: self.bytes(), whole: self.bool() },
            1 => LockValue::Redisson {
                holders: self.some(3, |dice| (dice.bytes(), dice.i64())),
                mode: self.maybe(Self::bytes),
            },
            _ => LockValue::Other(self.text()),
        };
        let left = Duration::from_nanos(self.below(1 << 40));
        let expiry = if self.bool() { Expiry::Never } else { Expiry::After(left) };
        KeyReading { key: self.bytes(), value, expiry }
    }

    fn snapshot(&mut self) -> Snapshot {
        let (server, backends) = (self.some(1, Self::any::<Server>), self.some(9, Self::backend));
        let (locks, sets) = (self.some(9, Self::lock), self.some(2, Self::set));
        let prepared = self.some(3, |dice| Prepared {
            transaction: dice.u32(),
            gid: dice.text(),
            prepared: dice.maybe(Self::time),
            owner: dice.maybe(Self::text),
            database: dice.maybe(Self::text),
        });
        Snapshot {
            taken_at: self.time(),
            server: self.section(server),
            backends: self.section(backends),
            locks: self.section(locks),
            locks_omitted: self.roll(),
            prepared: self.section(prepared),
            detection: Detection { tables: self.section(Vec::new()), adapters: self.section(Vec::new()) },
            task_sets: Arc::new(sets),
            sources: Arc::new(self.systems()),
            answers: self.some(3, Self::answer),
            names: Arc::new(Names {
                relations: self.some(5, |dice| ((dice.u32(), dice.u32()), dice.text())).into_iter().collect(),
                databases: self.some(5, |dice| (dice.u32(), dice.text())).into_iter().collect(),
                objects: self
                    .some(5, |dice| ((dice.u32(), dice.u32(), dice.u32()), dice.text()))
                    .into_iter()
                    .collect(),
            }),
            poll_seconds: self.f64(),
            adapters: Arc::new(self.some(2, Self::installation)),
        }
    }

    fn answer(&mut self) -> Answer {
        Answer { waiter: self.i32(), wait_start: self.maybe(Self::time), blockers: self.some(3, Self::i32) }
    }

    fn subject(&mut self) -> Subject {
        match self.below(9) {
            8 => Subject::JobSchedule(crate::model::source_tables::NameHash(self.roll())),
            7 => Subject::JobLease(crate::model::source_tables::NameHash(self.roll())),
            6 => Subject::JobQueue(crate::model::source_tables::NameHash(self.roll())),
            5 => Subject::Job(crate::model::source_tables::NameHash(self.roll())),
            0 => Subject::Backend(BackendId { pid: self.i32(), backend_start: self.maybe(Self::time) }),
            1 => Subject::Party(self.party()),
            2 => Subject::Lock(self.tag()),
            3 => Subject::Section(self.of(&["locks", "adapters"])),
            _ => Subject::Lease(crate::model::source_tables::NameHash(self.roll())),
        }
    }

    fn past(&mut self) -> CarriedState {
        let held: HeldLocks = self
            .some(9, |dice| {
                let tag = LockTag::new(LockType::Advisory).with_objid(dice.u32());
                ((dice.i32(), tag), HeldSince { proved: dice.time(), seen: dice.time() })
            })
            .into_iter()
            .collect();
        let holders: Vec<_> = self.some(5, |dice| {
            let doing = dice.maybe(|dice| SessionActivity {
                backend_start: dice.time(),
                xact_start: dice.maybe(Self::time),
                state_change: dice.maybe(Self::time),
            });
            (dice.i32(), doing)
        });
        let starts = holders.iter().map(|(pid, _)| (*pid, self.time())).collect();
        let waits = LockWaits {
            since: self.maybe(Self::time),
            locks: self.some(4, Self::any),
            forgotten: self.roll(),
        };
        let going_on = self.some(4, |dice| ((dice.i32(), dice.time()), dice.f64()));
        CarriedState {
            held: HeldWatch {
                since: Arc::new(held),
                locks: Arc::default(),
                holders: holders.into_iter().collect(),
                starts,
            },
            waits: WaitCounter::restored(waits, going_on),
            series: Arc::new(Series {
                samples: self.some(5, |dice| Sample { at: dice.time(), waiting: dice.u32() }),
                waiting_since: self.maybe(Self::time),
                refusals: self.some(3, Self::any),
            }),
            graph_from: self.maybe(|dice| GraphFrom {
                backends: Arc::new(dice.some(3, Self::backend)),
                answers: dice.some(3, Self::answer),
            }),
            adapters: self.job_watch(),
            ..self.marks()
        }
    }

    fn marks(&mut self) -> CarriedState {
        use crate::model::finding::deadlocks::{Broken, DeadlockCount, SeenCycle, Victims};
        let mut past = CarriedState::default();
        past.watch.free = self.some(4, |dice| ((dice.u32(), dice.i64()), dice.time())).into_iter().collect();
        past.watch.idle = self.some(4, |dice| ((dice.i32(), dice.i64()), dice.time())).into_iter().collect();
        past.new_roots.since =
            self.some(4, |dice| (dice.party(), dice.maybe(Self::time))).into_iter().collect();
        past.new_roots.has_observed = self.bool();
        past.deadlocks.counted = self.maybe(|dice| DeadlockCount {
            at: dice.time(),
            deadlocks: dice.roll(),
            databases: dice.some(3, Self::u32).into(),
            started_at: dice.maybe(Self::time),
        });
        past.deadlocks.cycles = self.some(3, |dice| SeenCycle {
            parties: dice.some(3, Self::party),
            texts: dice.some(3, Self::line),
            at: dice.time(),
        });
        past.deadlocks.broken = self.some(3, |dice| Broken {
            at: dice.time(),
            since: dice.time(),
            rise: dice.roll(),
            victims: dice.maybe(|dice| Victims {
                parties: dice.some(3, Self::party),
                texts: dice.some(3, Self::line),
            }),
        });
        past
    }

    fn observation(&mut self, before: Option<&Observation>) -> Observation {
        let snapshot = self.snapshot();
        let shared = before.filter(|_| self.bool()).and_then(|observation| observation.view.snapshot.clone());
        let snapshot = match shared {
            Some(before) => {
                Snapshot { taken_at: snapshot.taken_at, server: snapshot.server, ..Snapshot::clone(&before) }
            }
            None => snapshot,
        };
        let mut events =
            before.map(|observation| Events::clone(&observation.view.events)).unwrap_or_default();
        let bodies = self.some(5, |dice| EventBody {
            who: event::harmless(&dice.text()),
            subject: dice.maybe(Self::subject),
            length: dice.maybe(|dice| Length::AtMost(dice.f64())),
            ..EventBody::new(
                dice.time(),
                dice.of(&[EventKind::WaitBegun, EventKind::LinkLost]),
                Severity::Warning,
                "x",
            )
        });
        events.extend(snapshot.taken_at, bodies);
        let view = sample::Builder::default().view();
        let view = View {
            id: self.roll(),
            snapshot: Some(Arc::new(snapshot)),
            events: Arc::new(events),
            rights: self.maybe(|dice| {
                Arc::new(Rights {
                    role: dice.text(),
                    member_of: dice.some(3, Self::text),
                    ..Rights::default()
                })
            }),
            expected: before.filter(|_| self.bool()).map_or_else(
                || {
                    self.some(3, |dice| ExpectedBlocker {
                        application: dice.maybe(Self::text),
                        statement: dice.maybe(Self::text),
                        longest_wait: dice.maybe(|dice| Duration::from_millis(dice.roll() % 1_000_000 + 1)),
                        reason: dice.maybe(Self::line),
                        ..ExpectedBlocker::default()
                    })
                    .into()
                },
                |observation| Arc::clone(&observation.view.expected),
            ),
            lock_names: before.filter(|_| self.bool()).map_or_else(
                || {
                    let names = LockNames::new([(LockKey::Bigint(7), self.text())]);
                    let key = LockKey::Pair(-1, 3);
                    Arc::new(names.with_learned_in("app".into(), true, [(key, "pair".into(), self.text())]))
                },
                |observation| Arc::clone(&observation.view.lock_names),
            ),
            ..view
        };
        let (past, notes) = (Arc::new(self.past()), self.some(2, Self::line).into());
        Observation { view: Arc::new(view), past, notes }
    }
}

trait Pipe: Sized {
    fn pipe<T>(self, then: impl FnOnce(Self) -> T) -> T {
        then(self)
    }
}

impl Pipe for i32 {}

fn same_section<T: PartialEq + std::fmt::Debug>(kept: &Section<T>, was: &Section<T>) {
    assert_eq!((kept.last_rows(), kept.taken_at, &kept.error), (was.last_rows(), was.taken_at, &was.error));
}

fn same_tables<T: PartialEq + std::fmt::Debug>(kept: &[TableRows<T>], was: &[TableRows<T>]) {
    assert_eq!(kept.len(), was.len());
    for (kept, was) in kept.iter().zip(was) {
        same_growth(&kept.source.growth, &was.source.growth);
        assert_eq!((&kept.source, kept.section.is_cut), (&was.source, was.section.is_cut));
        same_section(&kept.section, &was.section);
    }
}

/// Compares the fields, because all `Growth` values compare equal.
fn same_growth(kept: &Growth, was: &Growth) {
    assert_eq!((kept.rows, kept.is_limited, kept.old), (was.rows, was.is_limited, was.old));
}

fn same(kept: &KeptObservation, observation: &Observation) {
    let (new, old) = (&kept.snapshot, observation.view.snapshot.as_ref().unwrap());
    assert_eq!(
        (kept.id, new.taken_at, new.locks_omitted),
        (observation.view.id, old.taken_at, old.locks_omitted)
    );
    assert_eq!(new.poll_seconds.to_bits(), old.poll_seconds.to_bits());
    same_section(&new.server, &old.server);
    same_section(&new.backends, &old.backends);
    same_section(&new.locks, &old.locks);
    same_section(&new.prepared, &old.prepared);
    same_section(&new.detection.tables, &old.detection.tables);
    same_section(&new.detection.adapters, &old.detection.adapters);
    assert_eq!(new.answers, old.answers);
    assert_eq!((&new.names.relations, &new.names.databases), (&old.names.relations, &old.names.databases));
    assert_eq!(new.task_sets.len(), old.task_sets.len());
    for (new, old) in new.task_sets.iter().zip(old.task_sets.iter()) {
        same_growth(&new.tables.growth, &old.tables.growth);
        assert_eq!(new.tables, old.tables);
        same_section(&new.tasks, &old.tasks);
        same_section(&new.executions, &old.executions);
        assert_eq!((new.tasks.is_cut, new.executions.is_cut), (old.tasks.is_cut, old.executions.is_cut));
    }
    assert_eq!(adapters::told(&new.adapters), adapters::told(&old.adapters));
    let (new, old) = (&new.sources, &old.sources);
    same_tables(&new.leases, &old.leases);
    same_tables(&new.counts, &old.counts);
    same_tables(&new.items, &old.items);
    same_tables(&new.limits, &old.limits);
    same_tables(&new.generators, &old.generators);
    same_tables(&new.workers, &old.workers);
    same_tables(&new.contended, &old.contended);
    same_tables(&new.refusals, &old.refusals);
    assert_eq!(new.redis, old.redis);
    assert_eq!((&kept.notes, &kept.rights), (&observation.notes, &observation.view.rights));
    assert_eq!(kept.expected.as_ref(), Some(&observation.view.expected));
    let of = |names: &LockNames, key| {
        names.resolve(key, NameContext { database: Some("app"), ..NameContext::default() })
    };
    for key in [LockKey::Bigint(7), LockKey::Pair(-1, 3), LockKey::Bigint(8)] {
        assert_eq!(of(&kept.lock_names, key), of(&observation.view.lock_names, key));
    }
    let (new, old) = (&kept.past, &observation.past);
    assert_eq!(new.series, old.series);
    assert_eq!(new.held.since, old.held.since);
    assert_eq!(new.held.holders, old.held.holders);
    assert_eq!(new.held.starts, old.held.starts);
    assert_eq!(new.waits.waits, old.waits.waits);
    let seconds = |past: &CarriedState| {
        let waits = past.waits.going_on.iter();
        waits
            .map(|(wait, counted)| (*wait, counted.seconds.to_bits()))
            .collect::<std::collections::BTreeMap<_, _>>()
    };
    assert_eq!(seconds(new), seconds(old));
    assert_eq!((&new.watch.free, &new.watch.idle), (&old.watch.free, &old.watch.idle));
    assert_eq!((&new.adapters.free, new.adapters.epoch), (&old.adapters.free, old.adapters.epoch));
    assert_eq!(new.new_roots.since, old.new_roots.since);
    assert_eq!(format!("{:?}", new.deadlocks), format!("{:?}", old.deadlocks));
    let known = observation.view.snapshot.as_ref().unwrap().locks.is_known();
    assert_eq!(new.graph_from, old.graph_from.clone().filter(|_| !known));
}

fn round_trip(observations: &[Observation]) -> Vec<Frame> {
    let mut encoder = Encoder::with_events();
    let frames: Vec<Frame> =
        observations.iter().map(|observation| encoder.encode(observation).unwrap()).collect();
    let mut group = SnapshotGroup::default();
    let mut first = 0;
    for (at, (frame, observation)) in frames.iter().zip(observations).enumerate() {
        if frame.is_key {
            (group, first) = (SnapshotGroup::default(), at);
        }
        group.open(&frame.bytes).unwrap();
        let kept = group.snapshot(at - first).unwrap();
        same(&kept, observation);
        // Only the last of the events before the group are kept.
        let end = |events: &Events| events.iter().rev().take(5).cloned().collect::<Vec<Event>>();
        assert_eq!(end(&kept.events), end(&observation.view.events));
    }
    frames
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn every_observation_survives_a_round_trip(seed in any::<u64>()) {
        let mut dice = Dice(seed);
        let mut observations: Vec<Observation> = Vec::new();
        for _ in 0..4 {
            let observation = dice.observation(observations.last());
            observations.push(observation);
        }
        round_trip(&observations);
    }

    #[test]
    fn damaged_data_is_rejected_or_read_without_a_panic(
        seed in any::<u64>(), at in any::<prop::sample::Index>(), with in any::<u8>(), cut in any::<prop::sample::Index>(),
    ) {
        let mut dice = Dice(seed);
        let mut encoder = Encoder::with_events();
        let first = dice.observation(None);
        let second = dice.observation(Some(&first));
        let frames = [encoder.encode(&first).unwrap(), encoder.encode(&second).unwrap()];
        let mut group = SnapshotGroup::default();
        for frame in frames {
            let mut bytes = frame.bytes;
            let place = at.index(bytes.len());
            bytes[place] ^= with;
            if with % 4 == 0 {
                bytes.truncate(cut.index(bytes.len()));
            }
            if group.open(&bytes).is_ok() {
                let _ = group.snapshot(group.len() - 1);
            }
        }
    }

    /// A checksum excludes accidental damage, but a file can be crafted.
    #[test]
    fn crafted_data_is_rejected_or_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut group = SnapshotGroup::default();
        let mut packed = Vec::with_capacity(1000);
        zstd_safe::compress(&mut packed, &bytes, 1).unwrap();
        if group.open(&packed).is_ok() {
            let _ = group.snapshot(0);
        }
        let _ = SnapshotGroup::default().open(&bytes);
    }
}

#[test]
fn real_snapshots_are_read_back_in_groups() {
    let observations: Vec<Observation> = (0..150)
        .map(|second| {
            let now = f64::from(second);
            let scene = if second % 40 < 20 { sample::incident(now) } else { sample::jobs(now) };
            let view = sample::view(scene.snapshot(), second as u64);
            Observation { view: Arc::new(view), past: Arc::default(), notes: Arc::default() }
        })
        .collect();
    let frames = round_trip(&observations);
    let keys: Vec<usize> =
        frames.iter().enumerate().filter(|(_, frame)| frame.is_key).map(|(at, _)| at).collect();
    assert_eq!(keys, [0, 64, 128]);
    let (key, next) = (&frames[0], &frames[1]);
    assert!(next.bytes.len() * 4 < key.bytes.len(), "{} and {} bytes", key.bytes.len(), next.bytes.len());
}

/// With few changes, the first snapshot is most of the group, so a long group continues; with many changes, it ends as
/// early as others.
#[test]
fn a_long_group_ends_once_its_changes_outgrow_its_first_snapshot() {
    let keys = |encoder: Encoder, scene: fn(f64) -> sample::Builder| {
        let mut encoder = encoder;
        let is_key = |second: u32| {
            let view = sample::view(scene(f64::from(second)).snapshot(), u64::from(second));
            let observation =
                Observation { view: Arc::new(view), past: Arc::default(), notes: Arc::default() };
            encoder.encode(&observation).unwrap().is_key
        };
        let mut is_key = is_key;
        (0..600).filter(|second| is_key(*second)).collect::<Vec<u32>>()
    };
    let idle: fn(f64) -> sample::Builder = |now| sample::Builder { now, ..sample::jobs(0.0) };
    assert_eq!(keys(Encoder::with_events(), idle)[..3], [0, 64, 128]);
    let ends = keys(Encoder::with_events().in_long_groups(), idle);
    assert!(ends[1] > 192 && ends[1] <= 256, "{ends:?}");
    let busy: fn(f64) -> sample::Builder = |now| {
        let mut scene = sample::incident(now);
        for backend in &mut scene.backends {
            backend.query = Some(format!("SELECT {}", (now * 7919.0) as u64).repeat(40).into());
        }
        scene
    };
    let ends = keys(Encoder::with_events().in_long_groups(), busy);
    assert!(ends[1] >= 64 && ends[1] < 256, "{ends:?}");
}

#[test]
fn a_snapshot_needs_the_earlier_ones_of_its_group() {
    let mut encoder = Encoder::default();
    let observation = |now: f64| Observation {
        view: Arc::new(sample::incident(now).view()),
        past: Arc::default(),
        notes: Arc::default(),
    };
    let frames = [encoder.encode(&observation(0.0)).unwrap(), encoder.encode(&observation(1.0)).unwrap()];
    let mut group = SnapshotGroup::default();
    let opened = group.open(&frames[1].bytes);
    assert!(opened.is_err() || group.snapshot(0).is_err(), "{opened:?}");
    encoder.begin_group();
    assert!(encoder.encode(&observation(2.0)).unwrap().is_key);
}

/// A crafted file can have anything in texts that are shown unchanged.
#[test]
fn text_of_a_file_is_fit_for_a_screen() {
    let mut dice = Dice(1);
    let evil: Text = "\u{1b}]0;x\u{7}".into();
    let mut past = CarriedState::default();
    past.deadlocks.cycles.push(crate::model::finding::deadlocks::SeenCycle {
        parties: Vec::new(),
        texts: vec![Text::clone(&evil)],
        at: dice.time(),
    });
    let mut events = Events::default();
    let body = EventBody::new(dice.time(), EventKind::LinkLost, Severity::Warning, "x");
    events.extend(dice.time(), [EventBody { who: Text::clone(&evil), more: Text::clone(&evil), ..body }]);
    let view = View { events: Arc::new(events), ..sample::Builder::default().view() };
    let observation = Observation { view: Arc::new(view), past: Arc::new(past), notes: [evil].into() };
    let mut group = SnapshotGroup::default();
    group.open(&Encoder::with_events().encode(&observation).unwrap().bytes).unwrap();
    let kept = group.snapshot(0).unwrap();
    let event = kept.events.iter().next().unwrap().text();
    for text in [event.as_str(), &kept.past.deadlocks.cycles[0].texts[0], &kept.notes[0]] {
        assert!(!text.contains(char::is_control), "{text:?}");
    }
}

#[test]
fn a_part_is_replaced_by_a_longer_and_a_shorter_one_and_the_others_stay() {
    let mut parts = PartPrefix::default();
    let mut wanted: [Vec<u8>; KINDS] = Default::default();
    let script: [(u32, &[u8]); 8] = [
        (2, b"locks"),
        (0, b"server"),
        (16, b"marks"),
        (2, b""),
        (2, b"many locks"),
        (0, b"s"),
        (5, b"names"),
        (99, b"no"),
    ];
    for (kind, content) in script {
        parts.set(kind, content);
        if let Some(part) = wanted.get_mut(kind as usize) {
            *part = content.to_vec();
        }
        assert_eq!(parts.all(), wanted.concat());
        assert!((0u32..).zip(&wanted).all(|(kind, part)| parts.get(kind) == part));
    }
}
