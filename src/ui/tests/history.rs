//! The past on the screens: equal to the live screens, but marked as past.

use std::time::Duration;

use super::*;
use crate::feed::history::{HistoryLimits, HistoryStore};
use crate::feed::learn::Learned;
use crate::feed::view_builder::ViewBuilder;
use crate::model::Text;
use crate::model::backend::State;
use crate::model::lock::LockMode;
use crate::model::lock_key::LockKey;
use crate::model::lock_name::LockNames;
use crate::model::past::TimeStep;
use crate::model::snapshot::Snapshot;
use crate::model::thresholds::{ExpectedBlocker, Thresholds};
use crate::model::wait_graph::Answer;

struct World {
    seed: u64,
    view_builder: ViewBuilder,
    store: HistoryStore,
    views: Vec<Arc<View>>,
    last: Option<Snapshot>,
}

impl World {
    fn new(seed: u64) -> Self {
        let limits = HistoryLimits { length: Duration::from_secs(100_000), memory: 1 << 30 };
        Self {
            seed,
            view_builder: ViewBuilder::new(TargetId(0), Thresholds::default(), LockNames::default()),
            store: HistoryStore::new(limits, TargetId(0), Thresholds::default()),
            views: Vec::new(),
            last: None,
        }
    }

    /// A linear congruential generator with the constants of Knuth's MMIX.
    fn below(&mut self, end: usize) -> usize {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.seed >> 33).unwrap() % end
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn snapshot(&mut self, now: f64) -> Snapshot {
        let scene = match self.below(4) {
            0 => sample::jobs(now),
            1 => sample::crowd(12, 30, now),
            2 => sample::Builder { now, ..sample::Builder::default() },
            _ => sample::incident(now),
        };
        let mut builder = scene;
        for pid in 7000..7006 {
            if self.chance(60) {
                let state = [State::Active, State::Idle, State::IdleInTransaction][self.below(3)];
                let since = f64::from(u32::try_from(self.below(300)).unwrap());
                builder.session(pid, "app@random", state, since, "UPDATE t SET a = 'x'");
                let tag = if self.chance(50) { sample::advisory(pid.into()) } else { sample::relation(2001) };
                let waits = self.chance(30).then_some(1.5);
                builder.lock(pid, tag, LockMode::Exclusive, waits);
            }
        }
        if self.chance(20) {
            // A wait cycle.
            for (pid, other) in [(7100_i32, 7101_i32), (7101, 7100)] {
                builder.session(pid, "app@circle", State::Active, 3.0, "UPDATE");
                builder.lock(
                    pid,
                    sample::relation(u32::try_from(pid).unwrap()),
                    LockMode::AccessExclusive,
                    None,
                );
                builder.lock(
                    pid,
                    sample::relation(u32::try_from(other).unwrap()),
                    LockMode::AccessExclusive,
                    Some(2.0),
                );
            }
        }
        builder.now = now;
        let mut snapshot = builder.snapshot();
        self.disturb(&mut snapshot);
        snapshot
    }

    fn disturb(&mut self, snapshot: &mut Snapshot) {
        let server = Arc::make_mut(snapshot.server.rows_mut());
        if let Some(server) = server.first_mut() {
            server.deadlocks_of = [1, 2].into();
            server.deadlocks = 3 + self.views.len() as u64 / 7;
        }
        if let Some(last) = &self.last {
            if self.seed.is_multiple_of(5) {
                snapshot.locks = last.locks.stale("canceling statement due to lock timeout".into());
            }
            if self.seed.is_multiple_of(11) {
                snapshot.backends = last.backends.stale("gone".into());
            }
        }
        if self.chance(30) {
            let waiting = snapshot.locks.last_rows().iter().find(|lock| !lock.granted);
            snapshot.answers = waiting
                .and_then(|lock| {
                    Some(Answer { waiter: lock.pid?, wait_start: lock.wait_start, blockers: vec![4312] })
                })
                .into_iter()
                .collect();
        }
    }

    fn poll(&mut self, now: f64) {
        if self.chance(5) {
            self.view_builder.link_lost("connection reset", 1, Duration::from_secs(1));
        }
        if self.chance(5) {
            let named = [(LockKey::Bigint(7001), format!("named {now}").into())];
            let known = Arc::new(LockNames::new(named));
            self.view_builder.learned(Learned { names: known, notes: [Text::from("no table")].into() });
        }
        if self.chance(5) {
            let rights = crate::model::plan::Rights { role: "ops".into(), ..Default::default() };
            self.view_builder.rights_read(Some(Arc::new(rights)));
        }
        if self.views.len() % 40 == 10 {
            let entry = |application: &str| ExpectedBlocker {
                application: Some(application.into()),
                reason: Some(format!("since {now}").into()),
                ..ExpectedBlocker::default()
            };
            let expected =
                if self.views.len() % 80 == 10 { vec![entry("web-3"), entry("random")] } else { Vec::new() };
            self.view_builder.expect(expected.into());
        }
        let past = self.view_builder.past();
        let snapshot = self.snapshot(now);
        self.last = Some(snapshot.clone());
        self.views.push(self.view_builder.snapshot_taken(snapshot));
        self.store.keep(&self.view_builder.observation(past));
    }
}

fn shown(view: &Arc<View>, (width, height): (u16, u16), keys: &str) -> String {
    let mut stage = Stage::new(width, height);
    stage.app.update(Message::View(TargetId(0), Arc::clone(view)));
    stage.keys(keys).text()
}

const SCREENS: [&str; 18] = [
    "9",
    "9<tab><enter>",
    "9bbvv<tab>jj",
    "9j<enter>",
    "",
    "2",
    "3",
    "3a",
    "4",
    "5",
    "6",
    "7",
    "8",
    "!",
    "<enter>",
    "3j<enter>",
    "7jj<enter>",
    "4<enter>",
];

/// The picture from the history must equal the live one, to the last character. `LOCKTOP_LONG=1` compares a thousand
/// snapshots, with all screens of each.
#[test]
fn the_picture_from_the_history_is_the_one_that_was_live() {
    let is_long = std::env::var_os("LOCKTOP_LONG").is_some();
    let (snapshots, each) = if is_long { (1000u32, SCREENS.len()) } else { (150, 3) };
    let mut world = World::new(42);
    for second in 0..snapshots {
        world.poll(f64::from(second));
    }
    let mut compared = 0;
    for _ in 0..snapshots {
        let place = world.below(snapshots as usize);
        let live = Arc::clone(&world.views[place]);
        let past = world.store.go(live.id, TimeStep::Snapshots(0)).unwrap().unwrap();
        for _ in 0..each {
            let at = if is_long { compared } else { world.below(SCREENS.len()) };
            let (size, keys) = (SIZES[compared % SIZES.len()], SCREENS[at % SCREENS.len()]);
            let (now, then) = (shown(&live, size, keys), shown(&past.view, size, keys));
            assert!(
                now == then,
                "snapshot {place}, {keys:?} at {size:?}, live:\n{now}\nfrom the history:\n{then}"
            );
            compared += 1;
        }
    }
    assert!(compared >= 300);
    let stale = world.views.iter().filter(|view| view.snapshot.as_ref().unwrap().locks.error.is_some());
    assert!(stale.count() > 5 && world.views.iter().any(|view| !view.graph.cycles.is_empty()));
    assert!(world.views.iter().any(|view| view.findings.iter().any(|finding| finding.check == "deadlocks")));
    let expected = |view: &Arc<View>| view.findings.iter().any(|finding| finding.expected.is_some());
    assert!(world.views.iter().any(expected) && !world.views.iter().all(expected));
}

fn past(width: u16, height: u16) -> (World, Stage) {
    let mut world = World::new(1);
    for second in 0..200u32 {
        let now = f64::from(second);
        let snapshot = match second {
            60..=90 => sample::incident(now).snapshot(),
            120..=125 => sample::jobs(now).snapshot(),
            _ => sample::Builder { now, ..sample::Builder::default() }.snapshot(),
        };
        let past = world.view_builder.past();
        world.views.push(world.view_builder.snapshot_taken(snapshot));
        world.store.keep(&world.view_builder.observation(past));
    }
    let mut stage = Stage::new(width, height);
    stage.app.settings.history = true;
    stage.app.update(Message::View(TargetId(0), Arc::clone(world.views.last().unwrap())));
    let newest = world.views.last().unwrap().id;
    let answer = world.store.go(newest, TimeStep::Snapshots(-120)).unwrap();
    stage.app.update(Message::Past(Ok(answer)));
    (world, stage)
}

#[test]
fn past_screens_are_marked_as_past() {
    for (width, height) in SIZES {
        let (_, mut stage) = past(width, height);
        check("past", &mut stage);
    }
    let (_, stage) = past(80, 24);
    check_whole("past_blame", &mut stage.keys("9"));
    let (_, stage) = past(80, 24);
    check_whole("past_time", &mut stage.keys("t14:0"));
    let (_, mut stage) = past(80, 24);
    let link =
        ConnectionState::Down { reason: "connection reset".into(), attempt: 2, wait: Duration::from_secs(1) };
    let newest = View { link, ..View::clone(stage.app.latest.as_ref().unwrap()) };
    stage.app.update(Message::View(TargetId(0), Arc::new(newest)));
    check_whole("past_down", &mut stage);
}

#[test]
fn esc_in_the_past_returns_to_the_newest_snapshot() {
    let (world, stage) = past(80, 24);
    let mut stage = stage.keys("<esc>");
    assert_eq!(stage.text(), shown(world.views.last().unwrap(), (80, 24), ""));
}
