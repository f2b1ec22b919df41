use super::*;

#[test]
fn an_episode_records_how_it_ended() {
    let mut polls = Polls::default();
    polls.waits(0.0, &[(1, 41, -5.0), (2, 42, -5.0)]);
    let ended = BackendId { pid: 141, backend_start: Some(at(-3600.0)) };
    polls.counter.acted(ended, "terminated 141 app@billing: it is gone\u{1b}[31m");
    let another = BackendId { pid: 142, backend_start: Some(at(0.0)) };
    polls.counter.acted(another, "of a process of before");
    for second in 1..6 {
        polls.waits(f64::from(second), &[]);
    }
    let ends: Vec<_> = polls.blame.table.episodes.iter().map(|one| (one.pid, one.ending)).collect();
    let disconnected = |episode: &Episode| &*episode.note == "its session ended";
    assert!(polls.blame.table.episodes.iter().any(|one| disconnected(one)));
    assert!(ends.contains(&(141, Ending::Action)) && ends.contains(&(142, Ending::Itself)), "{ends:?}");
    let noted = polls.blame.table.episodes.iter().find(|one| one.pid == 141).unwrap();
    assert!(noted.note.starts_with("terminated 141") && !noted.note.contains('\u{1b}'));
}

/// A session waits behind a transaction for three polls; `after` builds the next one.
fn left(after: impl Fn(&mut Builder)) -> (Ending, String) {
    let mut polls = Polls::default();
    for second in 0..9 {
        let mut builder = Builder { now: f64::from(second), ..Builder::default() };
        let waited = builder.now + 5.0;
        if second < 3 {
            builder.session(50, "app@billing", State::IdleInTransaction, waited, "UPDATE t SET a = 1");
            builder.lock(50, relation(1), LockMode::AccessExclusive, None);
            builder.session(51, "app@web", State::Active, waited, "SELECT 1");
            builder.lock(51, relation(1), LockMode::AccessShare, Some(waited));
        } else if second == 3 {
            after(&mut builder);
        }
        polls.poll(builder);
    }
    let episode = &polls.blame.table.episodes[0];
    (episode.ending, episode.note.to_string())
}

#[test]
fn the_end_of_a_transaction_is_described_as_far_as_it_is_visible() {
    let ended = |state, query: &'static str| {
        let (ending, note) = left(|builder| {
            builder.session(50, "app@billing", state, 0.5, query);
        });
        assert_eq!(ending, Ending::Itself);
        note
    };
    assert_eq!(ended(State::Idle, "commit ;"), "COMMIT ended its transaction");
    assert_eq!(ended(State::Idle, "ROLLBACK"), "ROLLBACK ended its transaction");
    assert_eq!(ended(State::Idle, "ROLLBACK TO SAVEPOINT a"), "its transaction ended");
    assert_eq!(ended(State::Idle, "SELECT 1"), "its transaction ended");
    assert_eq!(
        ended(State::Active, "COMMIT"),
        "its transaction ended",
        "the statement belongs to the next transaction"
    );
    let (_, disconnected) = left(|_| {});
    assert_eq!(disconnected, GONE);
    let (_, continued) = left(|builder| {
        builder.session(50, "app@billing", State::IdleInTransaction, 8.0, "UPDATE t SET a = 1");
    });
    assert_eq!(continued, "the waits ended; its transaction continued");
}

/// Sessions wait for each other for three polls; then an action ends one of them, or the server does.
fn wait_cycle(acted: bool) -> (Ending, String) {
    let mut polls = Polls::default();
    for second in 0..9 {
        let mut builder = Builder { now: f64::from(second), ..Builder::default() };
        for (pid, other) in [(1, 2), (2, 1)] {
            builder.session(pid, "app@web", State::Active, 5.0, "UPDATE");
            builder.lock(pid, relation(1), LockMode::AccessShare, None);
            if second < 3 {
                builder.lock(pid, advisory(40 + i64::from(pid)), LockMode::Exclusive, None);
                builder.lock(
                    pid,
                    advisory(40 + i64::from(other)),
                    LockMode::Exclusive,
                    Some(5.0 + builder.now),
                );
            }
        }
        let mut snapshot = builder.snapshot();
        let server = &mut Arc::make_mut(snapshot.server.rows_mut())[0];
        server.deadlocks_of = [1].into();
        server.deadlocks = if second < 3 || acted { 3 } else { 4 };
        if second == 3 && acted {
            let session = BackendId { pid: 2, backend_start: Some(at(-3600.0)) };
            polls.counter.acted(session, "terminate 2 done");
        }
        polls.observe(&snapshot);
    }
    let episode = &polls.blame.table.episodes[0];
    assert_eq!((episode.pid, &*episode.who), (0, "sessions that wait for each other"));
    (episode.ending, episode.note.to_string())
}

#[test]
fn a_deadlock_is_broken_by_the_server_or_by_an_action() {
    assert_eq!(wait_cycle(false), (Ending::Deadlock, String::new()));
    assert_eq!(wait_cycle(true), (Ending::Action, "terminate 2 done".to_owned()));
}

/// Three sessions wait behind a root, the first one blocks the others; it is cancelled, and from `over_at` on no session
/// waits.
#[test]
fn cancelling_the_request_that_blocks_the_others_ends_the_episode() {
    let cancelled = "cancelled 1 app@web";
    for (cancelled_at, over_at, ending) in [
        (3, 3, Ending::Action),
        (3, 4, Ending::Action),
        // The others continued to wait: something else ended that.
        (3, 6, Ending::Itself),
    ] {
        let mut polls = Polls::default();
        for second in 0..12 {
            if second == cancelled_at {
                let session = BackendId { pid: 1, backend_start: Some(at(-3600.0)) };
                polls.counter.acted(session, cancelled);
            }
            let waits: &[(i32, i64, f64)] = &[(1, 41, -5.0), (2, 41, -5.0), (3, 41, -5.0)];
            let waits = match second {
                _ if second >= over_at => &[],
                _ if second >= cancelled_at => &waits[1..],
                _ => waits,
            };
            polls.waits(f64::from(second), waits);
        }
        let episode = &polls.blame.table.episodes[0];
        assert_eq!(
            (episode.ending, &*episode.note == cancelled),
            (ending, ending == Ending::Action),
            "{over_at}"
        );
    }
}

/// A report reads; an ALTER waits for it, and readers wait for the ALTER: they would not wait without it.
#[test]
fn an_episode_names_the_waiter_in_line_that_blocks_the_others() {
    for (readers, expected) in [(2, vec![]), (3, vec![(2, "ALTER TABLE t ADD a int")])] {
        let mut polls = Polls::default();
        for second in 0..3 {
            let mut builder = Builder { now: f64::from(second), ..Builder::default() };
            builder.session(1, "app@report", State::Active, 60.0, "SELECT sum(a) FROM t");
            builder.lock(1, relation(1), LockMode::AccessShare, None);
            builder.session(2, "deploy@ci", State::Active, 20.0, "ALTER TABLE t ADD a int");
            builder.lock(2, relation(1), LockMode::AccessExclusive, Some(20.0 + builder.now));
            for reader in 3..3 + readers {
                builder.session(reader, "app@web", State::Active, 10.0, "SELECT 1 FROM t");
                builder.lock(reader, relation(1), LockMode::AccessShare, Some(10.0 + builder.now));
            }
            polls.poll(builder);
        }
        let ran = &polls.blame.table.episodes[0].ran;
        let in_line = ran.iter().filter(|ran| ran.in_line != 0);
        assert_eq!(in_line.map(|ran| (ran.in_line, &*ran.statement)).collect::<Vec<_>>(), expected);
        assert!(ran.iter().any(|ran| ran.in_line == 0 && &*ran.statement == "SELECT sum(a) FROM t"));
    }
}
