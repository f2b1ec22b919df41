mod waits;

use std::sync::Arc;

use crate::feed::view_builder::ViewBuilder;
use crate::model::backend::State;
use crate::model::event::{Event, EventKind, Length};
use crate::model::finding::{Severity, Subject};
use crate::model::lock::{LockMode, LockType};
use crate::model::lock_name::LockNames;
use crate::model::snapshot::Snapshot;
use crate::model::source_tables::SourceTables;
use crate::model::thresholds::Thresholds;
use crate::model::view::TargetId;
use crate::sample::{Builder, advisory, at, relation};

struct Story {
    view_builder: ViewBuilder,
    read: usize,
}

impl Story {
    fn of(first: Builder) -> Self {
        let view_builder = ViewBuilder::new(TargetId::default(), Thresholds::default(), LockNames::default());
        let mut story = Self { view_builder, read: 0 };
        story.then(first);
        story
    }

    fn saw(&mut self, snapshot: Snapshot) -> Vec<Event> {
        self.view_builder.snapshot_taken(snapshot);
        self.news()
    }

    fn then(&mut self, next: Builder) -> Vec<Event> {
        self.saw(next.snapshot())
    }

    fn news(&mut self) -> Vec<Event> {
        let view = self.view_builder.view();
        let new: Vec<Event> = view.events.iter().skip(self.read).cloned().collect();
        self.read += new.len();
        new
    }
}

fn lines_of(events: &[Event]) -> Vec<String> {
    events.iter().map(|event| format!("{}: {}", event.kind.as_str(), event.text())).collect()
}

fn empty(now: f64) -> Builder {
    Builder { now, relations: vec![(2001, "accounts")], ..Builder::default() }
}

/// 10 holds the table; `waiters` are process ids with the start of their wait, in seconds.
fn queue(now: f64, waiters: &[(i32, f64)]) -> Builder {
    let mut b = empty(now);
    b.session(10, "app@web", State::IdleInTransaction, now + 5.0, "");
    b.lock(10, relation(2001), LockMode::AccessExclusive, None);
    for (pid, since) in waiters {
        b.session(*pid, "app@web", State::Active, now - since, "");
        b.lock(*pid, relation(2001), LockMode::AccessShare, Some(now - since));
    }
    b
}

#[test]
fn the_first_snapshot_reports_existing_waits_and_roots() {
    let mut story = Story { read: 0, ..Story::of(queue(0.0, &[(11, -3.0)])) };
    let events = story.news();
    assert_eq!(
        lines_of(&events),
        [
            "wait: 11 app@web began to wait for AccessShare on accounts",
            "link: connected to PostgreSQL 17.2: 1 wait for a lock, roots: 1",
            "root: 10 app@web blocks others already: idle in transaction, blocks 1: 1 continues now",
        ]
    );
    assert_eq!((events[0].at, events[0].seen), (at(-3.0), at(0.0)));
    assert!(matches!(events[0].subject, Some(Subject::Backend(id)) if id.pid == 11));
    assert_eq!(story.then(queue(1.0, &[(11, -3.0)])), []);
}

#[test]
fn similar_events_of_one_snapshot_are_consecutive_and_in_order() {
    let crowd: Vec<(i32, f64)> = (0..20).map(|at| (100 + at, f64::from(at) / 100.0)).collect();
    let mut story = Story::of(empty(-1.0));
    let events = story.then(queue(1.0, &crowd));
    let waits: Vec<_> = events.iter().filter(|event| event.kind == EventKind::WaitBegun).collect();
    assert_eq!(waits.len(), 20);
    assert!(waits.windows(2).all(|pair| {
        pair[0].is_alike(pair[1]) && pair[0].number + 1 == pair[1].number && pair[0].at <= pair[1].at
    }));
}

#[test]
fn locks_that_could_not_be_read_end_nothing() {
    let mut story = Story::of(queue(0.0, &[(11, -3.0)]));
    let mut snapshot = empty(1.0).snapshot();
    snapshot.locks = queue(0.0, &[(11, -3.0)]).snapshot().locks.stale("lock timeout".into());
    assert_eq!(lines_of(&story.saw(snapshot)), ["stale: locks could not be read: lock timeout"]);
    let events = story.then(queue(3.0, &[(11, -3.0)]));
    assert_eq!(lines_of(&events), ["fresh: locks can be read again"]);
    assert_eq!(events[0].length, Some(Length::Exactly(3.0)));
}

#[test]
fn a_root_hands_over_and_a_recycled_process_id_is_another_root() {
    let mut story = Story::of(queue(0.0, &[(11, -3.0)]));
    let mut next = queue(1.0, &[(11, -3.0)]);
    next.backends[0].backend_start = Some(at(0.5));
    assert_eq!(
        lines_of(&story.then(next)),
        [
            "root over: 10 app@web stopped blocking others: up to 1, its session ended",
            "root: 10 app@web began to block others: idle in transaction, blocks 1: 1 continues now",
        ]
    );
}

fn cycle(now: f64) -> Builder {
    let mut b = empty(now);
    for (pid, has, wants) in [(21, 1, 2), (22, 2, 1)] {
        b.session(pid, "app@web", State::Active, 1.0, "");
        b.lock(pid, advisory(has), LockMode::Exclusive, None);
        b.lock(pid, advisory(wants), LockMode::Exclusive, Some(now + 1.0));
    }
    b
}

fn counted(b: Builder, deadlocks: u64) -> Snapshot {
    let mut snapshot = b.snapshot();
    let mut server = snapshot.server().unwrap().clone();
    (server.deadlocks, server.deadlocks_of) = (deadlocks, std::sync::Arc::from([16384]));
    snapshot.server = crate::model::snapshot::Section::fresh(vec![server], snapshot.taken_at);
    snapshot
}

#[test]
fn a_cycle_and_the_deadlock_it_was() {
    let mut story = Story::of(empty(0.0));
    story.saw(counted(empty(0.5), 3));
    let events = story.saw(counted(cycle(1.0), 3));
    let found = events.iter().find(|event| event.kind == EventKind::CycleBegun).unwrap();
    assert_eq!(
        (found.text().as_str(), found.severity),
        ("21 and 22 waited for each other", Severity::Critical)
    );
    let events = story.saw(counted(empty(2.0), 4));
    let texts = lines_of(&events);
    assert!(texts.contains(&"cycle over: 21 and 22 no longer waited for each other".to_owned()), "{texts:?}");
    let broken = "deadlock: the server broke a deadlock: \
         21 app@web waited for Exclusive on advisory lock 2; \
         22 app@web waited for Exclusive on advisory lock 1";
    assert!(texts.contains(&broken.to_owned()), "{texts:?}");
    assert_eq!(story.saw(counted(empty(3.0), 4)), [], "reported once");
    let texts = lines_of(&story.saw(counted(empty(4.0), 6)));
    assert_eq!(texts, ["deadlock: the server broke 2 deadlocks, whose sessions no snapshot shows"]);
}

#[test]
fn no_root_is_named_for_a_waiter_behind_a_wait_cycle() {
    let mut story = Story::of(empty(0.0));
    let mut behind = cycle(1.0);
    behind.session(23, "app@web", State::Active, 1.0, "");
    behind.lock(23, advisory(2), LockMode::Exclusive, Some(0.5));
    let texts = lines_of(&story.then(behind));
    assert!(
        texts.contains(&"wait: 23 app@web began to wait for Exclusive on advisory lock 2 behind 22".into()),
        "{texts:?}"
    );
}

#[test]
fn the_victim_of_a_deadlock_is_named_if_snapshots_show_it() {
    let cycle_of_transactions = |now| {
        let mut b = cycle(now);
        b.backends.iter_mut().for_each(|backend| backend.xact_start = Some(at(0.0)));
        b
    };
    let broken = |change: fn(&mut Builder)| {
        let mut story = Story::of(empty(0.0));
        story.saw(counted(cycle_of_transactions(1.0), 3));
        let mut b = cycle_of_transactions(2.0);
        b.locks.retain(|lock| lock.wait_start.is_none());
        change(&mut b);
        // The server counts it one snapshot after breaking it.
        let mut texts = lines_of(&story.saw(counted(b, 3)));
        texts.extend(lines_of(&story.saw(counted(empty(3.0), 4))));
        texts
    };
    let aborted = broken(|b| b.backends[0].state = Some(State::IdleInTransactionAborted));
    let over = "cycle over: 21 and 22 no longer waited for each other: 21 lost its transaction";
    assert!(aborted.contains(&over.to_owned()), "{aborted:?}");
    assert!(aborted.iter().any(|text| text.ends_with("; the victim was 21")), "{aborted:?}");
    let disconnected = broken(|b| b.backends.retain(|backend| backend.pid != 22));
    assert!(disconnected.iter().any(|text| text.ends_with("; the victim was 22")), "{disconnected:?}");
    let both = broken(|b| b.backends.iter_mut().for_each(|backend| backend.xact_start = None));
    assert!(both.iter().any(|text| text.starts_with("deadlock")), "{both:?}");
    assert!(!both.iter().any(|text| text.contains("victim") || text.contains("lost its")), "{both:?}");
}

fn tasks(now: f64, change: impl FnOnce(&mut Builder)) -> Builder {
    let mut b = empty(now);
    b.task(1, "sync", "sql", 600.0, -900.0);
    b.task(2, "close", "sql", 5.0, -900.0);
    change(&mut b);
    b
}

/// Execution `id` started at `since`, run by worker-1 in session 31.
fn runs(b: &mut Builder, id: i64, task: i64, since: f64) {
    let status = b.now;
    b.execution(task, "worker-1", "running", status - since, Some(31)).id = id;
    b.session(31, "jobs@worker-1", State::Idle, 0.1, "");
    let key = crate::model::task::TaskKey::own(task).unwrap().number();
    b.lock(31, advisory(key), LockMode::Exclusive, None);
}

fn ran(b: &mut Builder, id: i64, task: i64, status: &str, (from, to): (f64, f64)) {
    let now = b.now;
    let execution = b.execution(task, "worker-1", status, now - from, Some(31));
    (execution.id, execution.completed_at) = (id, Some(at(to)));
}

#[test]
fn executions_that_start_or_end_between_snapshots_are_reported() {
    let mut story = Story::of(tasks(0.0, |b| ran(b, 899, 1, "completed", (-50.0, -40.0))));
    let events = story.then(tasks(1.0, |b| {
        ran(b, 899, 1, "completed", (-50.0, -40.0));
        runs(b, 900, 1, 0.5);
        ran(b, 901, 2, "completed", (0.2, 0.7));
        // An old one that became visible because a newer one was deleted.
        ran(b, 800, 2, "completed", (-500.0, -400.0));
    }));
    assert_eq!(
        lines_of(&events),
        ["task start: sync started on worker-1", "task end: close completed on worker-1"]
    );
    assert_eq!((events[0].at, events[1].at), (at(0.5), at(0.7)));
    assert!(matches!(events[1].length, Some(Length::Exactly(seconds)) if (seconds - 0.5).abs() < 0.01));
    let events = story.then(tasks(2.0, |b| {
        ran(b, 900, 1, "failed", (0.5, 1.5));
        b.executions[0].error = Some("no\n\u{1b}[31mspace".into());
        runs(b, 902, 2, 1.2);
    }));
    assert_eq!(
        lines_of(&events),
        ["task start: close started on worker-1", "task end: sync failed on worker-1: no ␛[31mspace"]
    );
    let events = story.then(tasks(8.0, |b| runs(b, 902, 2, 1.2)));
    assert_eq!(lines_of(&events), ["task slow: close became slow on worker-1: it runs for longer than 5.0s"]);
    assert_eq!(story.then(tasks(9.0, |b| runs(b, 902, 2, 1.2))), []);
    let events = story.then(tasks(10.0, |b| {
        ran(b, 902, 2, "failed", (1.2, 9.5));
        b.executions[0].recovered_by = Some("locktop".into());
    }));
    assert_eq!(lines_of(&events), ["task recover: close was recovered by locktop, lost on worker-1"]);
}

#[test]
fn a_task_is_orphaned_overdue_and_switched() {
    let lost = |now: f64| {
        tasks(now, |b| {
            let since = now;
            b.execution(1, "worker-1", "running", since + 60.0, Some(31)).heartbeat_at = Some(at(0.0));
        })
    };
    let mut story = Story::of(lost(0.0));
    let limit = Thresholds::default().orphan_grace;
    assert_eq!(lines_of(&story.then(lost(limit - 1.0))), <[String; 0]>::default());
    let events = story.then(lost(limit + 1.0));
    assert_eq!(lines_of(&events), ["task orphan: sync was orphaned on worker-1: its session ended"]);
    let mut next = tasks(limit + 2.0, |b| b.tasks[1].enabled = Some(false));
    next.tasks[0].next_run_at = Some(at(-1000.0));
    let texts = lines_of(&story.then(next));
    assert!(texts.contains(&"task switch: close was disabled".to_owned()), "{texts:?}");
    assert!(
        texts.contains(&"task overdue: sync became overdue: no worker has taken it".to_owned()),
        "{texts:?}"
    );
    // Its result is unknown until finished executions are read.
    assert!(!texts.iter().any(|text| text.starts_with("task end")), "{texts:?}");
}

#[test]
fn an_execution_ends_as_its_row_states_or_is_removed_from_the_log() {
    // Running executions are read in every poll, finished ones less often.
    let running = |now: f64| tasks(now, |b| runs(b, 900, 1, 0.5));
    let none = |now: f64| tasks(now, |b| ran(b, 899, 2, "completed", (-50.0, -40.0)));
    let mut story = Story::of(running(1.0));
    for second in 2..5 {
        assert_eq!(story.then(none(second.into())), []);
    }
    let events = story.then(tasks(5.0, |b| ran(b, 900, 1, "completed", (0.5, 1.5))));
    assert_eq!(lines_of(&events), ["task end: sync completed on worker-1"]);
    let mut story = Story::of(running(1.0));
    let lines: Vec<String> = (2..20).flat_map(|second| lines_of(&story.then(none(second.into())))).collect();
    assert_eq!(lines, ["task end: sync was removed from the log on worker-1"]);
}

fn lease(now: f64, owner: &str, token: i64, (since, term): (f64, f64)) -> Builder {
    let mut b = empty(now);
    // Always one more: in the sample, a table without rows does not exist.
    b.lease("0", "node0", 9000.0, now).acquired_at = Some(at(-9000.0));
    if !owner.is_empty() {
        let row = b.lease("7", owner, term, now - since);
        (row.token, row.acquired_at) = (Some(token), Some(at(since)));
    }
    b
}

#[test]
fn each_change_of_a_lease_is_reported() {
    let mut story = Story::of(lease(0.0, "", 0, (0.0, 0.0)));
    let mut next = |b: Builder| lines_of(&story.then(b));
    assert_eq!(
        next(lease(1.0, "node1", 1, (0.5, 5.0))),
        ["lease: lease 7 in locktop.distlock was acquired by node1, token 1"]
    );
    assert_eq!(next(lease(2.0, "node1", 1, (0.5, 5.0))), <[String; 0]>::default());
    assert_eq!(
        next(lease(7.0, "node1", 1, (0.5, 5.0))),
        ["lease expired: lease 7 in locktop.distlock expired: node1 did not release it"]
    );
    assert_eq!(
        next(lease(8.0, "node2", 2, (7.5, 50.0))),
        ["lease owner: lease 7 in locktop.distlock changed owner: node1 to node2, token 1 to 2"]
    );
    assert_eq!(
        next(lease(9.0, "node2", 3, (8.5, 50.0))),
        ["lease owner: lease 7 in locktop.distlock was acquired again by node2, token 2 to 3"]
    );
    let mut released = lease(10.0, "node2", 3, (8.5, 0.0));
    released.leases[1].released_at = Some(at(9.5));
    assert_eq!(
        next(released),
        ["lease over: lease 7 in locktop.distlock is free again; it was held by node2"]
    );
    assert_eq!(
        next(lease(11.0, "node3", 4, (10.5, 50.0))),
        ["lease: lease 7 in locktop.distlock was acquired by node3, token 4"]
    );
    assert_eq!(
        next(lease(12.0, "", 0, (0.0, 0.0))),
        ["lease over: lease 7 in locktop.distlock was removed; it was held by node3"]
    );
}

#[test]
fn a_redis_key_removed_well_before_its_expiry_was_released() {
    use crate::model::redis_lease::{Expiry, KeyReading, LockValue, RedisLeases, ServerReading, merge};

    let read = |now: f64, left: Option<u64>| {
        let key = left.map(|left| KeyReading {
            key: (*b"lock:a").into(),
            value: LockValue::text(b"worker-1"),
            expiry: Expiry::After(std::time::Duration::from_secs(left)),
        });
        let server = ServerReading { server: "s".into(), keys: Ok(key.into_iter().collect()) };
        let mut snapshot = empty(now).snapshot();
        let redis = Arc::new(RedisLeases { read_at: Some(snapshot.taken_at), ..merge(&[server]) });
        snapshot.sources = Arc::new(SourceTables { redis, ..SourceTables::clone(&snapshot.sources) });
        snapshot
    };
    for (left, removed_at, words) in
        [(30, 2.0, "was released"), (1, 2.0, "expired, or was released just before")]
    {
        let mut story = Story::of(empty(0.0));
        story.saw(read(0.5, None));
        story.saw(read(1.0, Some(left)));
        let lines = lines_of(&story.saw(read(removed_at, None)));
        assert_eq!(lines, [format!("lease over: lease lock:a in redis {words}; it was held by worker-1")]);
    }
}

#[test]
fn thousands_of_failed_items_are_fifty_lines_and_a_sum() {
    let failed = |now: f64, ids: std::ops::Range<i64>, since: f64| {
        let mut b = empty(now);
        b.item(1, "old", "failed", now + 100.0);
        for id in ids {
            b.item(id, "mail", "failed", now - since).error = Some("550".into());
        }
        b
    };
    let mut story = Story::of(failed(0.0, 0..0, 0.0));
    let events = story.then(failed(1.0, 10..11, 0.5));
    assert_eq!(lines_of(&events), ["item failed: item 10 (mail) was set aside: 550"]);
    let events = story.then(failed(2.0, 10..3010, 1.5));
    assert_eq!(events.len(), 51);
    assert!(lines_of(&events).contains(&"item failed: 2,949 more queue items were set aside".to_owned()));
    // Old ones that become visible are not events.
    assert_eq!(story.then(failed(3.0, 10..3020, 1.5)), []);
}

#[test]
fn an_item_that_lost_its_worker_is_reported_once() {
    let lost = |now: f64| {
        let mut b = empty(now);
        b.item(5, "mail", "processing", now + 60.0);
        b.item(6, "mail", "pending", now + 60.0);
        if now < 1.0 {
            b.session(99, "jobs@worker-5", State::Idle, 0.1, "");
        }
        b
    };
    let mut story = Story::of(lost(0.0));
    assert_eq!(
        lines_of(&story.then(lost(1.0))),
        ["item lost: item 5 (mail) was lost: the session of worker-5 ended"]
    );
    assert_eq!(story.then(lost(2.0)), []);
}

#[test]
fn a_lost_connection_is_reported_once_and_a_restart_is_detected() {
    let mut story = Story::of(queue(0.0, &[(11, -3.0)]));
    story.view_builder.link_lost("server closed the connection", 1, std::time::Duration::ZERO);
    story.view_builder.link_lost("connection refused", 2, std::time::Duration::ZERO);
    assert_eq!(lines_of(&story.news()), ["link lost: the connection was lost: server closed the connection"]);
    let mut snapshot = empty(20.0).snapshot();
    let mut server = snapshot.server().unwrap().clone();
    server.started_at = Some(at(15.0));
    snapshot.server = crate::model::snapshot::Section::fresh(vec![server.clone()], snapshot.taken_at);
    let events = story.saw(snapshot.clone());
    let texts = lines_of(&events);
    assert_eq!(texts[0], "server: the server restarted, version 17.2, as primary");
    assert_eq!(events[0].at, at(15.0));
    assert!(texts.contains(&"link: the server answers again".to_owned()), "{texts:?}");
    assert!(texts.iter().any(|text| text.starts_with("wait over: 11 app@web disconnected")), "{texts:?}");
    server.in_recovery = true;
    snapshot.server = crate::model::snapshot::Section::fresh(vec![server.clone()], snapshot.taken_at);
    assert_eq!(lines_of(&story.saw(snapshot.clone())), ["server: the server became a standby"]);
    // Another of several hosts.
    (server.host, server.started_at) = ("db-2".into(), Some(at(1.0)));
    let place = server.place();
    snapshot.server = crate::model::snapshot::Section::fresh(vec![server], snapshot.taken_at);
    let expected = format!("server: another server answers: {place}, version 17.2, standby");
    assert_eq!(lines_of(&story.saw(snapshot)), [expected]);
}

#[test]
fn a_hostile_application_name_stays_on_one_line() {
    let mut b = queue(0.0, &[(11, -3.0)]);
    b.backends[1].application = Some("a\n\u{1b}]0;x\u{7}".repeat(100_000).into());
    let mut story = Story::of(empty(-1.0));
    for event in story.then(b) {
        assert!(!event.text().chars().any(char::is_control), "{}", event.text());
        assert!(event.text().len() < 4000);
    }
}
