use super::*;
use crate::model::backend::{Backend, State};
use crate::model::lock::LockMode;
use crate::model::lock_name::LockNames;
use crate::model::snapshot::{Server, Snapshot};
use crate::model::thresholds::Thresholds;
use crate::model::{namespace, words};
use crate::sample::{self, Builder, at};

/// State of an item of session 100, taken a minute ago, after `change` and `alter`.
fn state(change: impl Fn(&mut Item), alter: impl Fn(&mut Snapshot)) -> &'static str {
    let mut b = Builder::default();
    b.session(100, "app@worker-1", State::Idle, 1.0, "");
    let item = b.item(7, "mail", "processing", 60.0);
    item.backend_pid = Some(100);
    change(item);
    let mut snapshot = b.snapshot();
    alter(&mut snapshot);
    QueueBoard::of(&snapshot, &Thresholds::default()).rows.first().map_or("none", |row| row.state.as_str())
}

fn server(snapshot: &mut Snapshot, change: impl Fn(&mut Server)) {
    let mut server = snapshot.server().unwrap().clone();
    change(&mut server);
    snapshot.server.set(vec![server]);
}

fn end_session(item: &mut Item) {
    item.backend_pid = Some(101);
}

#[test]
fn an_item_is_lost_if_its_session_was_missing_after_it_started() {
    let same = |_: &mut Snapshot| {};
    assert_eq!(state(|_| {}, same), "running");
    assert_eq!(state(|item| item.backend_pid = Some(101), same), "lost", "its session ended");
    assert_eq!(
        state(|item| item.backend_start = Some(at(-9.0)), same),
        "lost",
        "another session with its process id"
    );
    let young = |item: &mut Item| (item.backend_pid, item.started_at) = (Some(101), Some(at(-1.0)));
    assert_eq!(state(young, same), "running", "it may have started after the sessions were read");
    assert_eq!(
        state(young, |snapshot| server(snapshot, |server| server.in_recovery = true)),
        "unknown",
        "a standby"
    );
    assert_eq!(state(|item| item.backend_pid = None, same), "unknown");
    assert_eq!(state(|item| item.backend_start = None, same), "unknown");
    let hidden = |snapshot: &mut Snapshot| {
        let mut backends = snapshot.backends.last_rows().to_vec();
        backends[0].backend_start = None;
        snapshot.backends.set(backends);
    };
    assert_eq!(state(|_| {}, hidden), "unknown", "this role cannot see the start of the session");
    let unread = |snapshot: &mut Snapshot| snapshot.backends = snapshot.backends.stale("no".into());
    assert_eq!(state(|item| item.backend_pid = Some(101), unread), "unknown");
    let old = |snapshot: &mut Snapshot| {
        let mut systems = (*snapshot.sources).clone();
        systems.items[0] = systems.items[0].stale("locked".into());
        snapshot.sources = systems.into();
    };
    assert_eq!(state(|item| item.backend_pid = Some(101), old), "unknown", "its row is stale");
    for (status, expected) in
        [("failed", "failed"), ("pending", "pending"), ("completed", "none"), ("?", "none")]
    {
        assert_eq!(state(|item| item.status = Some(status.into()), same), expected);
    }
}

#[test]
fn an_item_is_settling_for_the_grace_after_its_last_sign_of_life_and_the_start_of_the_server() {
    let same = |_: &mut Snapshot| {};
    let beat = |seconds: f64| {
        move |item: &mut Item| {
            end_session(item);
            item.heartbeat_at = Some(at(-seconds));
        }
    };
    assert_eq!((state(beat(29.0), same), state(beat(30.0), same)), ("settling", "lost"));
    let up = |change: fn(&mut Server)| move |snapshot: &mut Snapshot| server(snapshot, change);
    assert_eq!(state(end_session, up(|server| server.started_at = Some(at(-29.0)))), "settling", "a start");
    assert_eq!(
        state(end_session, up(|server| server.replayed_at = Some(at(-29.0)))),
        "settling",
        "a promotion"
    );
    assert_eq!(state(end_session, up(|server| server.replayed_at = Some(at(-31.0)))), "lost");
    // The launchers' start counts more: the last transaction may be long ago, or replayed while the server was a standby.
    let launched = |seconds: f64| {
        move |snapshot: &mut Snapshot| {
            server(snapshot, |server| server.replayed_at = Some(at(-5.0)));
            let mut backends = snapshot.backends.last_rows().to_vec();
            backends.push(Backend {
                pid: 7,
                backend_type: Some("autovacuum launcher".into()),
                backend_start: Some(at(-seconds)),
                ..backends[0].clone()
            });
            snapshot.backends.set(backends);
        }
    };
    assert_eq!(
        (state(end_session, launched(29.0)), state(end_session, launched(31.0))),
        ("settling", "lost")
    );
}

#[test]
fn an_item_is_slow_past_its_own_time_or_else_the_usual_one() {
    let same = |_: &mut Snapshot| {};
    let runs = |seconds: f64, limit: Option<f64>| {
        move |item: &mut Item| (item.started_at, item.timeout) = (Some(at(-seconds)), limit)
    };
    assert_eq!(
        (state(runs(60.0, Some(60.0)), same), state(runs(61.0, Some(60.0)), same)),
        ("running", "slow")
    );
    assert_eq!((state(runs(1800.0, None), same), state(runs(1801.0, None), same)), ("running", "slow"));
    let lost = |item: &mut Item| {
        runs(9000.0, Some(60.0))(item);
        end_session(item);
    };
    assert_eq!(state(lost, same), "lost", "lost counts more than slow");
}

#[test]
fn an_item_that_is_not_due_rests_and_does_not_count_as_one_that_waits() {
    let same = |_: &mut Snapshot| {};
    let due = |seconds: f64| {
        move |item: &mut Item| (item.status, item.due_at) = (Some("pending".into()), Some(at(seconds)))
    };
    assert_eq!((state(due(9.0), same), state(due(0.0), same)), ("resting", "pending"));
    let mut b = Builder::default();
    b.item(7, "mail", "pending", 60.0).due_at = Some(at(9.0));
    b.count("pending", 1, false).oldest_at = Some(at(9.0));
    let snapshot = b.snapshot();
    let board = QueueBoard::of(&snapshot, &Thresholds::default());
    assert_eq!(board.rows[0].due_in(&snapshot), Some(9.0));
    assert_eq!(board.depth.oldest_pending_at, None);
}

#[test]
fn with_raw_ids_a_free_key_is_proof_and_a_held_one_needs_a_link() {
    let states = |who: Option<&str>, since: f64, has_function: bool| {
        let mut b = Builder { raw_queue: true, ..Builder::default() };
        b.item(7, "mail", "processing", since).heartbeat_at = None;
        if let Some(who) = who {
            b.session(100, who, State::Idle, 1.0, "");
            b.lock(100, sample::advisory(7), LockMode::Exclusive, None);
        }
        let mut snapshot = b.snapshot();
        let mut systems = (*snapshot.sources).clone();
        let source =
            crate::model::source_tables::Source { has_function, ..(*systems.items[0].source).clone() };
        systems.items[0].source = source.into();
        snapshot.sources = systems.into();
        let rows = QueueBoard::of(&snapshot, &Thresholds::default()).rows;
        (rows[0].state.as_str(), rows[0].pid)
    };
    assert_eq!(states(Some("app@worker-7"), 60.0, false), ("running", Some(100)));
    assert_eq!(states(Some("app@worker-7"), 3000.0, false), ("slow", Some(100)));
    assert_eq!(states(Some("app@worker-1"), 60.0, false), ("running?", Some(100)));
    assert_eq!(states(Some("app@worker-1"), 3000.0, true), ("slow?", Some(100)));
    assert_eq!(states(None, 1.0, true), ("running", None));
    assert_eq!(states(None, 20.0, true), ("settling", None));
    assert_eq!(states(None, 60.0, true), ("lost", None));
    assert_eq!(states(None, 60.0, false), ("lost?", None));
}

#[test]
fn counts_of_all_tables_are_summed_and_marked_if_truncated() {
    let mut b = Builder::default();
    b.count("pending", 4, false).oldest_at = Some(at(-90.0));
    b.count("completed", 10_000, true).last_minute = Some(120);
    b.count("odd\n", 3, false);
    let mut snapshot = b.snapshot();
    let mut systems = (*snapshot.sources).clone();
    systems.counts.push(systems.counts[0].clone());
    snapshot.sources = systems.into();
    let depth = QueueBoard::of(&snapshot, &Thresholds::default()).depth;
    let shown = [depth.pending, depth.processing, depth.completed, depth.failed, depth.other];
    assert_eq!(shown.map(|count| count.to_string()), ["8", "0", "20,000+", "0", "6"]);
    assert_eq!((depth.oldest_pending_at, depth.per_minute), (Some(at(-90.0)), Some(240)));
    let mut b = Builder::default();
    b.count("completed", 9, false).last_minute = None;
    assert_eq!(
        QueueBoard::of(&b.snapshot(), &Thresholds::default()).depth.per_minute,
        None,
        "unknown is not zero"
    );
}

#[test]
fn urgent_items_are_first() {
    let mut b = Builder::default();
    for (id, status, since) in [
        (1, "pending", 10.0),
        (2, "pending", 90.0),
        (3, "failed", 500.0),
        (4, "failed", 50.0),
        (5, "processing", 60.0),
        (6, "processing", 600.0),
    ] {
        b.item(id, "mail", status, since);
    }
    let snapshot = b.snapshot();
    let mut rows = QueueBoard::of(&snapshot, &Thresholds::default()).rows;
    rows.sort_by_key(|row| row.urgency(&snapshot));
    assert_eq!(rows.iter().map(|row| row.id.id).collect::<Vec<_>>(), [6, 5, 4, 3, 2, 1]);
}

#[test]
fn a_key_has_the_name_of_an_existing_item_or_generator() {
    let name = |b: Builder, number: i64| {
        let snapshot = b.snapshot();
        let name = words::lock_name(&snapshot, &LockNames::default(), &sample::advisory(number), None);
        name.map(|name| name.to_string())
    };
    let builder = |raw: bool| {
        let mut b = Builder { raw_queue: raw, ..Builder::default() };
        b.item(7, "mail", "processing", 60.0);
        b.item(8, "mail", "failed", 60.0);
        b.generator(3, -1.0);
        b
    };
    let key = |namespace, id| namespace::number_of(namespace, id).unwrap();
    for (raw, number, expected) in [
        (false, key(namespace::QUEUE, 7), Some("queue item 7")),
        (false, key(namespace::QUEUE, 8), Some("queue item 8")),
        (false, key(namespace::QUEUE, 9), None),
        (false, key(namespace::GENERATORS, 3), Some("id generator 3")),
        (false, key(namespace::GENERATORS, 4), None),
        (false, 7, None),
        (true, 7, Some("queue item 7?")),
        (true, 8, None),
        (true, key(namespace::QUEUE, 7), None),
        (true, 3, Some("id generator 3?")),
    ] {
        assert_eq!(name(builder(raw), number).as_deref(), expected, "{number} raw {raw}");
    }
}
