use super::*;

#[test]
fn an_idle_session_that_holds_a_lock_is_worth_knowing() {
    let locks = vec![
        lock(advisory(815), Some(7), (3, 1)),
        lock(advisory(816), Some(7), (3, 1)),
        lock(advisory(817), Some(8), (3, 2)),
        lock(advisory(818), Some(9), (3, 3)),
        lock(accounts(), Some(10), (3, 4)),
        Lock { granted: false, ..lock(advisory(819), Some(10), (3, 4)) },
    ];
    let idle = |pid, seconds| Backend { state_change: ago(seconds), ..backend(pid, State::Idle) };
    let backends = vec![
        idle(7, 720),
        idle(8, 599),
        Backend { state_change: ago(30), ..backend(9, State::IdleInTransaction) },
        idle(10, 720),
    ];
    let mut stage = Stage::new().locks(locks).backends(backends);
    let finding = stage.only();
    assert_eq!((finding.check, finding.severity), ("idle_session_lock", Severity::Info));
    assert_eq!(&*finding.summary, "7 idle 12m00s holds advisory lock 815 and 1 more, no waiters");
    assert_eq!((finding.since, finding.help), (ago(720), Some("terminate")));

    stage.snapshot.locks = stage.snapshot.locks.stale("timeout".into());
    assert!(
        stage.find().iter().all(|finding| finding.check == "stale_section"),
        "the locks are of another moment"
    );
}

#[test]
fn an_idle_worker_with_its_name_lock_is_not_reported() {
    let name = advisory(815).with_classid(0x4C4E_0001);
    let idle = Backend { state_change: ago(7200), ..backend(7, State::Idle) };
    let mut stage = Stage::new().locks(vec![lock(name, Some(7), (3, 1))]).backends(vec![idle]);
    assert!(stage.find().is_empty());
    let more = lock(advisory(816), Some(7), (3, 1));
    stage
        .snapshot
        .locks
        .set(stage.snapshot.locks.last_rows().iter().copied().chain([more]).collect::<Vec<_>>());
    assert!(stage.only().summary.ends_with("holds advisory lock 816, no waiters"));
}

#[test]
fn an_idle_session_that_blocks_is_reported_once() {
    let stage = Stage::new()
        .locks(vec![lock(advisory(815), Some(7), (3, 1))])
        .backends(vec![Backend { state_change: ago(720), ..backend(7, State::Idle) }])
        .root(Party::Backend(7), 1, 1, ago(1));
    assert_eq!(stage.only().check, "root_blocker");
}

#[test]
fn connections_near_the_limit() {
    for (used, severity) in [
        (89, None),
        (90, Some(Severity::Warning)),
        (96, Some(Severity::Warning)),
        (97, Some(Severity::Critical)),
        (100, Some(Severity::Critical)),
    ] {
        let findings = Stage::new().server(|server| server.connections = used).find();
        assert_eq!(findings.first().map(|finding| finding.severity), severity, "{used}");
    }
    let finding =
        Stage::new().server(|server| (server.connections, server.max_connections) = (4_990, 5_000)).only();
    assert_eq!(&*finding.summary, "4,990 of 5,000 connections are in use");
    assert_eq!(Stage::new().server(|server| server.max_connections = 0).find(), []);
}

#[test]
fn a_pile_up_counts_working_backends_on_one_event() {
    let on = |pid, kind: &str, event: &str, state| Backend {
        wait_event_type: Some(kind.into()),
        wait_event: Some(event.into()),
        ..backend(pid, state)
    };
    let mut rows: Vec<_> = (0..10).map(|pid| on(pid, "LWLock", "WALWrite", State::Active)).collect();
    rows.extend((10..22).map(|pid| on(pid, "IPC", "SyncRep", State::Active)));
    rows.extend((30..39).map(|pid| on(pid, "IO", "DataFileRead", State::Active)));
    rows.extend((40..60).map(|pid| on(pid, "IO", "DataFileRead", State::Idle)));
    rows.extend((60..80).map(|pid| on(pid, "Client", "ClientWrite", State::Active)));
    let findings = Stage::new().backends(rows).find();
    let summaries: Vec<_> = findings.iter().map(|finding| &*finding.summary).collect();
    assert_eq!(
        summaries,
        ["12 backends wait for a synchronous standby (SyncRep)", "10 backends wait on LWLock WALWrite",]
    );
}

#[test]
fn a_rising_count_of_deadlocks_names_the_parties_it_saw() {
    let cycle = vec![Party::Backend(4410), Party::Backend(4466)];
    let with = |deadlocks| Stage::new().server(|server| server.deadlocks = deadlocks);
    for (before, now, cycles, text) in [
        (3, 4, vec![cycle.clone()], "the server broke a deadlock of 4410 and 4466"),
        (3, 4, vec![], "the server broke a deadlock"),
        (3, 1_003, vec![cycle.clone()], "the server broke 1,000 deadlocks, the last of 4410 and 4466"),
    ] {
        let mut stage = with(now);
        stage.previous = vec![(with(before).snapshot, of_cycles(cycles))];
        let finding = stage.only();
        assert_eq!((&*finding.summary, finding.severity), (text, Severity::Warning));
    }
    let mut reset = with(0);
    reset.previous = vec![(with(3).snapshot, WaitGraph::default())];
    assert_eq!(reset.find(), [], "the statistics were reset");
    let mut restarted = with(4).server(|server| server.started_at = ago(1));
    restarted.previous = vec![(with(3).snapshot, WaitGraph::default())];
    assert_eq!(restarted.find(), [], "another server's count");
}

/// One of the two sessions has ended as soon as the deadlock is broken, and its description with it.
#[test]
fn a_broken_deadlock_keeps_its_parties_and_their_locks() {
    use crate::sample;
    let mut crossed = sample::Builder {
        relations: vec![(2001, "accounts"), (2003, "orders")],
        ..sample::Builder::default()
    };
    for (pid, name, has, wants) in [(4410, "deploy@ci", 2001, 2003), (4466, "app@web", 2003, 2001)] {
        crossed.session(pid, name, State::Active, 2.0, "LOCK TABLE something");
        crossed.lock(pid, sample::relation(has), LockMode::AccessExclusive, None);
        crossed.lock(pid, sample::relation(wants), LockMode::RowExclusive, Some(2.0));
    }
    let count = |snapshot: &mut Snapshot, deadlocks| {
        let mut server = snapshot.server.last_rows()[0].clone();
        (server.deadlocks, server.deadlocks_of) = (deadlocks, [5].into());
        snapshot.server = Section::fresh(vec![server], snapshot.taken_at);
    };
    let graph = |snapshot: &Snapshot| {
        WaitGraph::build(crate::model::wait_graph::Input {
            locks: snapshot.locks.last_rows(),
            backends: snapshot.backends.last_rows(),
            answers: &[],
            ..Default::default()
        })
    };
    let mut before = crossed.snapshot();
    count(&mut before, 3);
    let mut after = sample::Builder { now: 1.0, ..sample::Builder::default() }.snapshot();
    count(&mut after, 4);
    let mut stage = Stage::new();
    let crossing = graph(&before);
    stage.previous = vec![(before, crossing)];
    stage.snapshot = after;
    let found = stage.find();
    let finding = found.iter().find(|finding| finding.check == "deadlocks").unwrap();
    let expected = [
        "4410 deploy@ci waited for RowExclusive on orders: LOCK TABLE something",
        "4466 app@web waited for RowExclusive on accounts: LOCK TABLE something",
    ];
    assert_eq!(finding.details.iter().map(|line| &**line).collect::<Vec<_>>(), expected);
    assert_eq!(&*finding.summary, &*format!("the server broke a deadlock: {}; {}", expected[0], expected[1]));
    assert_eq!(&*finding.short, "the server broke a deadlock of 4410 and 4466");
}

#[test]
fn a_cycle_that_still_exists_is_not_the_broken_deadlock() {
    let cycles = vec![vec![Party::Backend(1), Party::Backend(2)]];
    let mut stage = Stage::new().server(|server| server.deadlocks = 4);
    stage.graph.cycles.clone_from(&cycles);
    stage.previous = vec![(Stage::new().snapshot, of_cycles(cycles))];
    let findings = stage.find();
    let deadlock = findings.iter().find(|finding| finding.check == "deadlocks").unwrap();
    assert_eq!(&*deadlock.summary, "the server broke a deadlock");
}

#[test]
fn a_deadlock_and_its_cycle_are_kept_for_a_minute() {
    let cycle = vec![Party::Backend(4410), Party::Backend(4466)];
    let at = |seconds, deadlocks| {
        let mut snapshot = Stage::new().server(|server| server.deadlocks = deadlocks).snapshot;
        snapshot.taken_at = ago(seconds).unwrap();
        snapshot
    };
    let quiet = WaitGraph::default;
    // The count rises ten seconds after the cycle, half a minute ago.
    let mut stage = Stage::new().server(|server| server.deadlocks = 4);
    stage.previous = vec![
        (at(50, 3), of_cycles(vec![cycle.clone()])),
        (at(49, 3), quiet()),
        (at(40, 3), quiet()),
        (at(39, 4), quiet()),
    ];
    let finding = stage.only();
    assert_eq!(&*finding.summary, "the server broke a deadlock of 4410 and 4466");
    assert_eq!(finding.since, ago(40));
    // Another deadlock, whose cycle was not seen.
    stage.previous.push((at(2, 5), quiet()));
    assert_eq!(&*stage.only().summary, "the server broke 2 deadlocks, the last of 4410 and 4466");
    // More than a minute later, and a cycle of that age.
    let mut stage = Stage::new().server(|server| server.deadlocks = 4);
    stage.previous = vec![(at(70, 3), quiet()), (at(61, 4), quiet())];
    assert_eq!(stage.find(), []);
    stage.previous = vec![(at(61, 3), of_cycles(vec![cycle])), (at(1, 3), quiet())];
    assert_eq!(&*stage.only().summary, "the server broke a deadlock");
}

#[test]
fn sums_over_other_databases_are_not_compared() {
    let with = |deadlocks, databases: &[u32]| {
        Stage::new().server(|server| (server.deadlocks, server.deadlocks_of) = (deadlocks, databases.into()))
    };
    // A database was added; the names were not known at first.
    for databases in [&[5, 6][..], &[]] {
        let mut stage = with(523, &[5]);
        stage.previous = vec![(with(0, databases).snapshot, WaitGraph::default())];
        assert_eq!(stage.find(), [], "{databases:?}");
    }
    // From then on they are.
    let mut stage = with(524, &[5]);
    stage.previous =
        vec![(with(0, &[]).snapshot, WaitGraph::default()), (with(523, &[5]).snapshot, WaitGraph::default())];
    assert_eq!(&*stage.only().summary, "the server broke a deadlock");
}

#[test]
fn locks_that_could_not_be_read_are_no_finding() {
    let mut stage = Stage::new()
        .backends(vec![backend(11, State::Active)])
        .root(Party::Backend(11), 2, 2, ago(500))
        .queue(advisory(815), &[(11, LockMode::Exclusive)], vec![waiter(8, LockMode::Exclusive, ago(500))]);
    stage.graph.cycles = vec![vec![Party::Backend(1), Party::Backend(2)]];
    assert!(stage.find().len() >= 3);
    stage.snapshot.locks = stage.snapshot.locks.stale("lock timeout".into());
    assert_eq!(stage.only().check, "stale_section");
}

#[test]
fn a_section_that_failed_is_reported_with_its_age() {
    let mut stage = Stage::new();
    stage.snapshot.locks = stage.snapshot.locks.stale("statement timeout".into()).taken(ago(12));
    let finding = stage.only();
    assert_eq!((finding.check, finding.severity), ("stale_section", Severity::Warning));
    assert_eq!(&*finding.summary, "cannot read locks: statement timeout; the rows shown are 12s old");
    assert_eq!((&*finding.short, finding.subject), ("cannot read locks, 12s old", Subject::Section("locks")));

    let mut stage = Stage::new();
    stage.snapshot.prepared = Section::default().stale("permission denied".into());
    assert_eq!(&*stage.only().summary, "cannot read prepared: permission denied");
}

#[test]
fn hidden_activity_is_reported_with_the_grant() {
    let finding =
        Stage::new().server(|server| (server.sees_all, server.user) = (false, "web\"x".into())).only();
    assert_eq!(finding.severity, Severity::Info);
    assert_eq!(&*finding.summary, "other roles' activity is hidden: GRANT pg_read_all_stats TO \"web\"\"x\"");
}

fn of_cycles(cycles: Vec<Vec<Party>>) -> WaitGraph {
    let mut graph = WaitGraph::default();
    graph.cycles = cycles;
    graph
}

#[test]
fn a_forgotten_transaction_is_worth_knowing_before_anybody_waits() {
    let forgotten = |stage: &Stage| -> Vec<(String, Severity)> {
        let found = stage.find().into_iter().filter(|finding| finding.check == "forgotten_transaction");
        found.map(|finding| (finding.summary.to_string(), finding.severity)).collect()
    };
    let mut stage = Stage::new();
    let prepared = |gid: &str, seconds: i64| crate::model::lock::Prepared {
        transaction: 9,
        gid: gid.into(),
        prepared: ago(seconds),
        owner: None,
        database: None,
    };
    stage.snapshot.prepared = crate::model::snapshot::Section::fresh(
        vec![prepared("order-1", 7200), prepared("new", 5)],
        stage.snapshot.taken_at,
    );
    assert_eq!(
        forgotten(&stage),
        [("prepared transaction 'order-1' 2h00m holds locks, no waiters".to_owned(), Severity::Warning)]
    );
    stage.snapshot.prepared.error = Some("denied".into());
    assert_eq!(forgotten(&stage), []);
}

#[test]
fn an_idle_transaction_is_reported_before_it_blocks() {
    let idle =
        |pid, seconds| Backend { state_change: ago(seconds), ..backend(pid, State::IdleInTransaction) };
    let stage = Stage::new().backends(vec![idle(7, 120), idle(8, 697), idle(9, 59)]);
    assert_eq!(&*stage.only().summary, "8 idle in transaction 11m37s, no waiters, and 1 more");
}

#[test]
fn a_thousand_tables_that_fail_for_one_reason_are_one_finding() {
    use crate::model::source_tables::{Source, TableRows};
    let mut stage = Stage::new();
    let table = |name: String, reason: String| {
        let source = std::sync::Arc::new(Source { name: name.into(), ..Source::default() });
        TableRows { source, section: Section::default().stale(reason.into()) }
    };
    let untrusted = |owner: &str, number: usize| {
        let name = format!("s{number}.distlock");
        let reason = format!("{name} is not read: {owner} is not trusted");
        table(name, reason)
    };
    let mut leases: Vec<_> = (0..1000).map(|number| untrusted("mallory", number)).collect();
    leases.extend((1000..1005).map(|number| untrusted("bob", number)));
    leases.push(table("x.distlock".to_owned(), "x.distlock was locked a moment ago".to_owned()));
    std::sync::Arc::make_mut(&mut stage.snapshot.sources).leases = leases;
    let found: Vec<_> = stage.find().iter().map(|finding| finding.summary.to_string()).collect();
    assert_eq!(
        found,
        [
            "cannot read leases of 1,000 tables (s0.distlock, s1.distlock, s2.distlock, …): it is not read: mallory is not trusted",
            "cannot read leases of 5 tables (s1000.distlock, s1001.distlock, s1002.distlock, …): it is not read: bob is not trusted",
            "cannot read leases of x.distlock: x.distlock was locked a moment ago",
        ]
    );
}

#[test]
fn a_long_transaction_that_blocks_no_session_is_worth_knowing() {
    let long = |pid, seconds, xmin| Backend {
        xact_start: ago(seconds),
        backend_xmin: xmin,
        ..backend(pid, State::Active)
    };
    let finding = Stage::new().backends(vec![long(7, 7_800, Some(900)), long(8, 1_900, None)]).only();
    let words = "7 active, transaction open for 2h10m, blocks no session; vacuum cannot remove rows that were deleted since it began; 1 other is also long";
    assert_eq!((&*finding.summary, finding.severity), (words, Severity::Info));
    assert_eq!(Stage::new().backends(vec![long(7, 1_700, Some(900))]).find(), []);
}

/// The guaranteed capacity is a hundred locks here.
#[test]
fn a_lock_table_that_fills_is_reported_with_the_session_that_has_most() {
    let strong = |number, pid| lock(advisory(number), Some(pid), (3, 1));
    let of =
        |locks: Vec<Lock>| Stage::new().locks(locks).find().into_iter().find(|it| it.check == "lock_table");
    let held =
        |number: u32| (0..number).map(|key| strong(key, if key < 30 { 7 } else { 8 })).collect::<Vec<_>>();
    assert_eq!(of(held(49)), None);
    let finding = of(held(52)).unwrap();
    let words = "lock table has at least 52 locks, 52% of the guaranteed 100; 7 has 30";
    assert_eq!((&*finding.summary, finding.severity), (words, Severity::Info));
    assert!(finding.is_about(Party::Backend(7)) && finding.help == Some("terminate"));
    assert_eq!(of(held(75)).unwrap().severity, Severity::Warning);
    assert_eq!(of(held(100)).unwrap().severity, Severity::Critical);

    // A lock shared by many is one entry. A lock in a fast-path slot has no entry; a backend has sixteen slots.
    let weak = |relation, pid| Lock {
        mode: LockMode::AccessShare,
        ..lock(accounts().with_relation(relation), Some(pid), (3, 1))
    };
    assert_eq!(of((0..200).map(|pid| strong(1, pid)).collect()), None);
    assert_eq!(of((0..90_i32).map(|pid| weak(pid.unsigned_abs(), pid)).collect()), None);
    assert_eq!(of((0..65).map(|table| weak(table, 7)).collect()), None);
    let finding = of((0..66).map(|table| weak(table, 7)).collect()).unwrap();
    assert!(finding.summary.contains("50 locks, 50% of"), "{}", finding.summary);
    let predicate = |table| Lock { mode: LockMode::SIRead, ..weak(table, 7) };
    assert_eq!(of((0..200).map(predicate).collect()), None);
}
