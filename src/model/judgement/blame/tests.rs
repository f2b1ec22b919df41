#![expect(clippy::float_cmp, reason = "sums of times that are exact")]

mod endings;
mod errors;

use std::sync::Arc;

use chrono::TimeDelta;
use proptest::prelude::*;

use super::*;
use crate::model::backend::{BackendId, State};
use crate::model::finding::Deadlocks;
use crate::model::lock::LockMode;
use crate::model::snapshot::Snapshot;
use crate::model::snapshot_index::SnapshotIndex;
use crate::model::view::View;
use crate::model::wait_graph::{Input, WaitGraph};
use crate::sample::{Builder, advisory, at, relation};

#[derive(Default)]
struct Polls {
    counter: Counter,
    deadlocks: Deadlocks,
    blame: Blame,
}

impl Polls {
    fn poll(&mut self, builder: Builder) -> &Blame {
        self.observe(&builder.snapshot())
    }

    fn observe(&mut self, snapshot: &Snapshot) -> &Blame {
        let graph = WaitGraph::build(Input {
            locks: snapshot.locks.last_rows(),
            backends: snapshot.backends.last_rows(),
            answers: &[],
            ..Default::default()
        });
        let index = SnapshotIndex::of(snapshot, &graph);
        self.deadlocks.observe(snapshot, &graph, &index);
        let graph = Arc::new(graph);
        let view = View {
            snapshot: Some(Arc::new(snapshot.clone())),
            graph: Arc::clone(&graph),
            index: Arc::new(index),
            ..View::default()
        };
        if let Some(tick) = self.counter.update(view.with_snapshot().unwrap(), &self.deadlocks) {
            self.blame.advance(tick, &graph);
        }
        &self.blame
    }

    /// `waits`: session, key and the start of its wait. The holder of a key has the process id 100 plus the key.
    fn waits(&mut self, now: f64, waits: &[(i32, i64, f64)]) -> &Blame {
        let mut builder = Builder { now, ..Builder::default() };
        for (pid, key, began) in waits {
            let holder = 100 + i32::try_from(*key).unwrap();
            if builder.backends.iter().all(|backend| backend.pid != holder) {
                builder.session(
                    holder,
                    "app@billing",
                    State::IdleInTransaction,
                    now + 50.0,
                    "UPDATE t SET a = 1",
                );
                builder.lock(holder, advisory(*key), LockMode::Exclusive, None);
            }
            builder.session(*pid, "app@web", State::Active, now - began, "SELECT 2");
            builder.lock(*pid, advisory(*key), LockMode::Exclusive, Some(now - began));
        }
        self.poll(builder)
    }
}

/// Name, seconds, maximum waiters, waits, and episodes of each root.
fn rows(blame: &Blame, group: BlameGrouping) -> Vec<(String, f64, u32, u64, u64)> {
    let rows = blame.by(group, BlamePeriod::All);
    rows.into_iter()
        .map(|row| (row.name, row.sums.seconds, row.sums.most, row.sums.waits, row.episodes))
        .collect()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-6 * (1.0 + a.abs())
}

#[test]
fn each_waiter_adds_the_time_since_the_previous_snapshot() {
    let mut polls = Polls::default();
    assert_eq!(polls.waits(0.0, &[(1, 41, -5.0)]).total(BlamePeriod::All).seconds, 0.0, "no snapshot before");
    polls.waits(1.0, &[(1, 41, -5.0), (2, 41, 0.5)]);
    polls.waits(2.0, &[(2, 41, 0.5)]);
    let blame = polls.waits(3.0, &[]);
    let name = "billing idle in xact, UPDATE t SET a = ?".to_owned();
    assert_eq!(rows(blame, BlameGrouping::Root), [(name, 3.0, 2, 2, 1)]);
    assert_eq!(rows(blame, BlameGrouping::Lock), [("advisory 41".to_owned(), 3.0, 2, 2, 1)]);
    assert_eq!(rows(blame, BlameGrouping::Tag)[0].0, "no query tag");
    let total = blame.total(BlamePeriod::All);
    assert_eq!((total.seconds, total.waits, total.most), (3.0, 2, 2));
    assert_eq!((blame.polls, blame.since, blame.until), (4, Some(at(0.0)), Some(at(3.0))));
}

#[test]
fn time_without_snapshots_is_not_counted() {
    let mut polls = Polls::default();
    polls.waits(0.0, &[(1, 41, 0.0)]);
    let late = polls.waits(10.0, &[(1, 41, 0.0)]);
    assert_eq!(
        (late.total(BlamePeriod::All).seconds, late.missing),
        (2.0, 8.0),
        "at most twice the usual time"
    );
    polls.counter.gap();
    let lost = polls.waits(11.0, &[(1, 41, 0.0)]);
    assert_eq!((lost.total(BlamePeriod::All).seconds, lost.missing), (2.0, 9.0));
    polls.counter.refresh(5.0);
    assert_eq!(polls.waits(20.0, &[(1, 41, 0.0)]).total(BlamePeriod::All).seconds, 11.0);
    let back = polls.waits(15.0, &[(1, 41, 0.0)]);
    assert_eq!(back.total(BlamePeriod::All).seconds, 11.0, "a clock that was set back subtracts no time");
    let mut stale = Builder { now: 16.0, ..Builder::default() }.snapshot();
    stale.locks.error = Some("canceled".into());
    let before = back.clone();
    assert_eq!(*polls.observe(&stale), before);
}

#[test]
fn a_wait_behind_several_roots_is_split_among_them() {
    let mut polls = Polls::default();
    for second in 0..3 {
        let mut builder = Builder { now: f64::from(second), ..Builder::default() };
        for (pid, who) in [(10, "app@one"), (11, "app@two")] {
            builder.session(pid, who, State::IdleInTransaction, 60.0 + f64::from(second), "SELECT");
            builder.lock(pid, relation(7), LockMode::AccessShare, None);
        }
        // 12 waits for both, 13 behind 12, and 14 for 11 alone.
        let waited = 4.0 + f64::from(second);
        builder.session(12, "app@ddl", State::Active, 5.0, "ALTER TABLE");
        builder.lock(12, relation(7), LockMode::AccessExclusive, Some(1.0 + waited));
        builder.session(13, "app@web", State::Active, 4.0, "SELECT");
        builder.lock(13, relation(7), LockMode::AccessShare, Some(waited));
        builder.lock(11, relation(8), LockMode::Exclusive, None);
        builder.session(14, "app@web", State::Active, 4.0, "SELECT");
        builder.lock(14, relation(8), LockMode::Exclusive, Some(waited));
        polls.poll(builder);
    }
    let by = rows(&polls.blame, BlameGrouping::Application);
    assert_eq!(by, [("two".to_owned(), 4.0, 2, 3, 2), ("one".to_owned(), 2.0, 2, 2, 1)]);
    let by_lock = rows(&polls.blame, BlameGrouping::Lock);
    assert_eq!(by_lock[0], ("relation 7".to_owned(), 4.0, 2, 4, 2));
    assert_eq!(polls.blame.total(BlamePeriod::All).seconds, 6.0);
}

#[test]
fn sessions_in_a_wait_cycle_are_blamed_by_what_they_have_in_common() {
    let mut polls = Polls::default();
    for second in 0..2 {
        let mut builder = Builder { now: f64::from(second), ..Builder::default() };
        for (pid, other, who) in [(1, 2, "app@web"), (2, 1, "ops@web")] {
            builder.session(pid, who, State::Active, 5.0, "UPDATE t SET a = 1");
            builder.lock(pid, advisory(pid.into()), LockMode::Exclusive, None);
            builder.lock(pid, advisory(other.into()), LockMode::Exclusive, Some(5.0));
        }
        polls.poll(builder);
    }
    for (group, name) in [
        (BlameGrouping::Root, "web sessions that wait for each other, UPDATE t SET a = ?"),
        (BlameGrouping::Application, "web"),
        (BlameGrouping::Role, "app | ops"),
        (BlameGrouping::Statement, "UPDATE t SET a = ?"),
    ] {
        let names: Vec<_> = rows(&polls.blame, group).into_iter().map(|row| row.0).collect();
        assert_eq!(names, [name], "{group:?}");
    }
    assert_eq!(polls.blame.total(BlamePeriod::All).seconds, 2.0);
}

#[test]
fn an_episode_has_gaps_of_at_most_three_snapshots() {
    let mut polls = Polls::default();
    let mut seen = Vec::new();
    for (second, waits) in (0..).zip("##..#...#....#....".chars()) {
        let now = f64::from(second);
        let waits = if waits == '#' { vec![(1, 41, -5.0)] } else { Vec::new() };
        polls.waits(now, &waits);
        seen.push(polls.blame.table.episodes.iter().filter(|one| polls.blame.is_ongoing(one)).count());
    }
    assert_eq!(seen[..6], [1, 1, 0, 0, 1, 0]);
    let episodes = &polls.blame.table.episodes;
    let found: Vec<_> =
        episodes.iter().map(|one| (one.begin, one.last, one.sums.seconds, one.ending)).collect();
    let expected = [(at(0.0), at(8.0), 3.0, Ending::Itself), (at(12.0), at(13.0), 1.0, Ending::Itself)];
    assert_eq!(found, expected);
    assert_eq!(&*polls.blame.episode(1).unwrap().lock, "advisory 41");
}

#[test]
fn waits_before_the_first_snapshot_are_reported_but_not_summed() {
    let mut polls = Polls::default();
    let blame = polls.waits(0.0, &[(1, 41, -250.0), (2, 41, -3.0)]);
    let before = WaitsBefore { sessions: 2, longest: Some(250.0), seconds: 253.0 };
    assert_eq!((blame.before, blame.total(BlamePeriod::All).seconds), (before, 0.0));
    let blame = polls.waits(1.0, &[(1, 41, -250.0), (2, 41, -3.0), (3, 41, 0.5)]);
    assert_eq!((blame.before, blame.total(BlamePeriod::All).seconds), (before, 3.0));
    assert_eq!(
        before.words().unwrap(),
        "2 sessions were already waiting at the first snapshot, the longest for 4m10s, 4m13s in total; not included in the sum"
    );
    assert_eq!(WaitsBefore::default().words(), None);
}

/// The statement that took the lock is usually not the one seen when others wait.
#[test]
fn the_statements_of_a_transaction_are_remembered() {
    let mut polls = Polls::default();
    let statements = ["BEGIN", "UPDATE accounts SET a = 1", "SELECT 1", "SELECT 2", "SELECT 3"];
    for (second, statement) in (0..).zip(statements) {
        let now = f64::from(second);
        let mut builder = Builder { now, ..Builder::default() };
        let root = builder.session(10, "app@web", State::IdleInTransaction, 0.5, statement);
        (root.xact_start, root.query_start) = (Some(at(-0.5)), Some(at(now - 0.5)));
        builder.lock(10, relation(7), LockMode::Exclusive, None);
        // The session's next transaction has none of these statements.
        builder.session(11, "app@web", State::IdleInTransaction, 0.1, statement);
        builder.lock(11, relation(8), LockMode::Exclusive, None);
        if second >= 2 {
            for (pid, table) in [(20, 7), (21, 8)] {
                builder.session(pid, "app@web", State::Active, 0.2, "UPDATE");
                builder.lock(pid, relation(table), LockMode::Exclusive, Some(0.2));
            }
        }
        polls.poll(builder);
    }
    let ran = |pid: i32| -> Vec<Vec<&str>> {
        let episodes = polls.blame.table.episodes.iter().filter(|one| one.pid == pid);
        episodes.map(|one| one.ran.iter().map(|ran| &*ran.statement).collect()).collect()
    };
    assert_eq!(ran(10), [statements.to_vec()]);
    assert_eq!(ran(11), [["SELECT 1"], ["SELECT 2"], ["SELECT 3"]]);
}

#[test]
fn an_episode_is_blamed_by_what_its_root_did_in_each_snapshot() {
    let mut polls = Polls::default();
    for second in 0..5 {
        let now = f64::from(second);
        let mut builder = Builder { now, ..Builder::default() };
        let state = if second < 3 { State::Active } else { State::IdleInTransaction };
        builder.session(10, "app@web", state, 5.0 + now, "UPDATE accounts SET a = 7 /*controller='pay'*/");
        builder.lock(10, relation(7), LockMode::Exclusive, None);
        builder.session(20, "app@web", State::Active, 3.0 + now, "UPDATE");
        builder.lock(20, relation(7), LockMode::Exclusive, Some(3.0 + now));
        polls.poll(builder);
    }
    let by = rows(&polls.blame, BlameGrouping::Root);
    let names: Vec<_> = by.iter().map(|row| (&*row.0, row.1, row.4)).collect();
    let expected =
        [("web UPDATE accounts SET a = ?", 2.0, 1), ("web idle in xact, UPDATE accounts SET a = ?", 2.0, 1)];
    assert_eq!(names, expected);
    assert_eq!(rows(&polls.blame, BlameGrouping::Tag)[0].0, "controller=pay");
    assert_eq!(polls.blame.table.episodes.len(), 1);
}

#[test]
fn a_period_ends_with_the_last_snapshot() {
    let mut polls = Polls::default();
    polls.counter.refresh(60.0);
    for minute in 0..90 {
        polls.waits(f64::from(minute) * 60.0, &[(1, 41, -5.0)]);
    }
    let seconds = |span: BlamePeriod| polls.blame.total(span).seconds;
    assert_eq!(
        [BlamePeriod::Five, BlamePeriod::Quarter, BlamePeriod::Hour].map(seconds),
        [300.0, 900.0, 3600.0]
    );
    assert_eq!(seconds(BlamePeriod::All), 89.0 * 60.0);
    assert_eq!(polls.blame.by(BlameGrouping::Role, BlamePeriod::Five)[0].sums.seconds, 300.0);
    let begin = BlamePeriod::Five.begin(&polls.blame).unwrap();
    assert_eq!((polls.blame.until.unwrap() - begin).num_minutes(), 4);
    assert_eq!(BlamePeriod::All.begin(&polls.blame), Some(at(0.0)));
}

#[test]
fn of_too_many_the_cheapest_are_taken_together() {
    let mut blame = Blame::default();
    for number in 0..25_000_u64 {
        let seconds = if number == 3 { 500.0 } else { 1.0 };
        let sums = Sums { seconds, variance: 1.0, waits: 1, most: 1 };
        let key = Arc::new(BlameKey { application: number.to_string().into(), ..BlameKey::default() });
        let begun = EpisodeStart {
            episode: number,
            pid: 1,
            backend_start: None,
            xact_start: None,
            who: "".into(),
            lock: "".into(),
            at: at(0.0),
        };
        blame.add(Arc::new(SnapshotBlame {
            at: at(0.0) + TimeDelta::milliseconds(100 * i64::try_from(number).unwrap()),
            total: sums,
            begun: vec![begun],
            costs: vec![Cost { episode: number, key, sums }],
            ended: vec![EpisodeEnd { episode: number, ending: Ending::Itself, note: "".into() }],
            ..SnapshotBlame::default()
        }));
        assert!(blame.table.keys.len() <= KEYS && blame.table.episodes.len() <= EPISODES);
    }
    let rows = blame.by(BlameGrouping::Root, BlamePeriod::All);
    assert_eq!((&*rows[0].name, rows[0].sums.seconds), ("3", 500.0));
    assert!(rows.last().unwrap().name.ends_with("others, each with less waiting time"));
    let sum: f64 = rows.iter().map(|row| row.sums.seconds).sum();
    assert!(near(sum, blame.total(BlamePeriod::All).seconds) && near(sum, 25_499.0), "{sum}");
    let kept: f64 = blame.table.episodes.iter().map(|one| one.sums.seconds).sum();
    assert!(near(kept + blame.table.forgotten.1, 25_499.0));
    assert!(blame.episode(3).is_some());
}

/// A window contains the waits of its polls, also if the recorder was restarted.
#[test]
fn a_window_has_the_waits_of_its_polls() {
    let mut window = BlameTotals::default();
    let mut polls = Polls::default();
    for second in 0..20 {
        let blame = polls.waits(f64::from(second), &[(1, 41, -5.0), (2, 42, -5.0)]);
        if second >= 10 {
            window.take(blame);
            window.take(blame);
        }
    }
    let mut again = Polls::default();
    for second in 25..30 {
        window.take(again.waits(f64::from(second), &[(1, 41, -5.0)]));
    }
    let blame = window.blame();
    assert_eq!(blame.total(BlamePeriod::All).seconds, 20.0 + 4.0);
    let found: Vec<_> =
        blame.table.episodes.iter().map(|one| (one.number, one.sums.seconds, one.begin)).collect();
    assert_eq!(found, [(1, 10.0, at(0.0)), (2, 10.0, at(0.0)), (3, 4.0, at(25.0))]);
    assert_eq!(rows(&blame, BlameGrouping::Lock).iter().map(|row| row.1).sum::<f64>(), 24.0);
}
