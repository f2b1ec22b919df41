use super::*;
use crate::model::Timestamp;
use crate::model::lock::{LockMode, LockType};
use crate::model::snapshot::Snapshot;
use crate::sample::{self, Builder, at};

fn lease(end: Option<f64>) -> Lease {
    Lease {
        id: "7".into(),
        owner: Some("node1".into()),
        term: Some(20.0),
        expires_at: end.map(at),
        ..Lease::default()
    }
}

#[test]
fn a_lease_expires_by_the_servers_clock_unless_it_was_released() {
    let now: Timestamp = at(0.0);
    let released = Lease { released_at: Some(at(-1.0)), ..lease(Some(-1.0)) };
    for (lease, expected) in [
        (lease(Some(12.0)), LeaseState::Held),
        (lease(Some(0.0)), LeaseState::Expired),
        (lease(Some(-41.0)), LeaseState::Expired),
        (lease(None), LeaseState::Held),
        (Lease { owner: None, ..lease(Some(12.0)) }, LeaseState::Free),
        (Lease { owner: None, ..lease(Some(-41.0)) }, LeaseState::Free),
        (Lease { owner: Some("".into()), ..lease(Some(-41.0)) }, LeaseState::Expired),
        (released.clone(), LeaseState::Released),
        (Lease { released_at: None, term: Some(0.0), ..released.clone() }, LeaseState::Released),
        (Lease { released_at: None, ..released }, LeaseState::Expired),
        (Lease::default(), LeaseState::Free),
    ] {
        assert_eq!(lease.state(now), expected, "{lease:?}");
    }
}

fn leases() -> Builder {
    let mut b = Builder::default();
    b.lease("2", "node2", 20.0, 8.0);
    b.lease("7", "node1", 20.0, 61.0);
    b.lease("3", "node3", 20.0, 15.0);
    b.lease("8", "node1", 20.0, 90.0);
    b.lease("10", "", 20.0, 5.0).owner = None;
    b.lease("9", "", 20.0, 5.0).owner = None;
    b.lease("11", "forever", 20.0, 5.0).expires_at = None;
    b.lease("12", "node4", 0.0, 5.0);
    b
}

fn names(rows: &[LeaseRow]) -> Vec<&str> {
    rows.iter().map(|row| &*row.name).collect()
}

#[test]
fn ended_leases_are_first_then_those_with_the_least_time_left() {
    let mut rows = LeaseBoard::of(&leases().snapshot()).rows;
    rows.sort_by(LeaseRow::urgency);
    assert_eq!(names(&rows), ["8", "7", "3", "2", "11", "12", "9", "10"]);
    let board = LeaseBoard::of(&leases().snapshot());
    assert_eq!(
        LeaseState::ALL.iter().map(|state| board.count(*state)).collect::<Vec<_>>(),
        [2, 3, 0, 0, 1, 2]
    );
}

#[test]
fn stale_rows_are_judged_as_of_the_time_they_were_read() {
    let mut snapshot = leases().snapshot();
    snapshot.taken_at = at(3600.0);
    let board = |snapshot: &Snapshot| LeaseBoard::of(snapshot).count(LeaseState::Expired);
    assert_eq!(board(&snapshot), 2);
    let mut systems = (*snapshot.sources).clone();
    systems.leases[0].section = systems.leases[0].section.clone().taken(Some(at(3600.0)));
    snapshot.sources = systems.into();
    assert_eq!(board(&snapshot), 4, "read an hour later");
}

#[test]
fn waiters_for_a_row_or_key_are_counted_at_its_lease() {
    let mut b = leases();
    b.leases[0].place = Some((0, 7));
    b.leases[1].name = Some("it's".into());
    let table = |oid| sample::relation(oid).with_relation(oid);
    let row = |oid, line| table(oid).with_locktype(LockType::Tuple).with_page(0).with_tuple(line);
    for (pid, tag, waits) in [
        (1, row(3010, 7), None),
        (2, row(3010, 7), Some(1.0)),
        (3, row(3010, 8), None),
        (4, row(3011, 7), Some(1.0)),
        (5, table(3010), None),
    ] {
        b.lock(pid, tag, LockMode::Exclusive, waits);
    }
    // Sessions that wait for the queue of a lease, and the first in it.
    let queue = crate::model::lock_name::hashtextextended(b"locktop lease \"My \"\"Jobs\" 3", 0);
    let named = crate::model::lock_name::hashtextextended(b"locktop lease \"My \"\"Jobs\" 'it''s'", 0);
    b.lock(10, sample::advisory(named), LockMode::Exclusive, None);
    b.leases[2].backend_pid = Some(9);
    for (pid, mode, waits) in [
        (6, LockMode::Exclusive, None),
        (7, LockMode::Exclusive, Some(1.0)),
        (8, LockMode::Share, Some(1.0)),
        (9, LockMode::Exclusive, None),
    ] {
        b.lock(pid, sample::advisory(queue), mode, waits);
    }
    let mut snapshot = b.snapshot();
    let mut board = |own_keys| {
        let mut systems = (*snapshot.sources).clone();
        let source = std::sync::Arc::make_mut(&mut systems.leases[0].source);
        (source.own_keys, source.name) = (own_keys, "My \"Jobs.distlock".into());
        snapshot.sources = systems.into();
        LeaseBoard::of(&snapshot)
    };
    assert!(board(false).rows.iter().all(|row| row.name == row.key));
    let board = board(true);
    assert!(board.rows.iter().any(|row| &*row.name == "it's" && &*row.key != "it's"));
    assert_eq!(board.rows.iter().map(|row| row.waiting).collect::<Vec<_>>(), [2, 1, 2, 0, 0, 0, 0, 0]);
}

#[test]
fn an_owner_is_alive_only_if_its_session_is_named_and_visible() {
    use crate::model::backend::State;
    let alive = |pid: Option<i32>, start: Option<f64>, hide: bool| {
        let mut b = Builder::default();
        b.session(100, "app@node1", State::Idle, 1.0, "");
        if hide {
            b.backends[0].backend_start = None;
        }
        let lease = b.lease("7", "node1", 20.0, 1.0);
        (lease.backend_pid, lease.backend_start) = (pid, start.map(at));
        LeaseBoard::of(&b.snapshot()).rows[0].owner_alive
    };
    for (pid, start, hide, expected) in [
        (None, None, false, None),
        (Some(100), Some(-3600.0), false, Some(true)),
        (Some(100), Some(-3000.0), false, Some(false)),
        (Some(101), Some(-3600.0), false, Some(false)),
        (Some(100), None, false, None),
        (Some(100), Some(-3600.0), true, None),
    ] {
        assert_eq!(alive(pid, start, hide), expected, "{pid:?} {start:?} {hide}");
    }
}

#[test]
fn the_identity_of_a_lease_is_its_source_and_its_id() {
    assert_eq!(LeaseId::of("public.distlock", "7"), LeaseId::of("public.distlock", "7"));
    for (source, id) in [("public.distlock", "8"), ("locktop.distlock", "7"), ("public.distlock7", "")] {
        assert_ne!(LeaseId::of("public.distlock", "7"), LeaseId::of(source, id));
    }
}

#[test]
fn the_locks_of_redis_are_leases_as_old_as_they_were_read() {
    use std::time::Duration;

    use crate::model::redis_lease::{Expiry, KeyReading, LockValue, RedisLeases, ServerReading, merge};

    let key = |key: &[u8], value: &[u8], left: Option<u64>| KeyReading {
        key: key.into(),
        value: LockValue::text(value),
        expiry: left.map_or(Expiry::Never, |left| Expiry::After(Duration::from_secs(left))),
    };
    let server = |keys: Vec<KeyReading>| ServerReading { server: "s".into(), keys: Ok(keys) };
    let list = KeyReading { value: LockValue::Other("list".into()), ..key(b"list", b"", None) };
    let leases = merge(&[
        server(vec![
            key(b"held", b"me", Some(30)),
            key(b"leak", b"me", None),
            key(b"split", b"me", Some(30)),
            list,
        ]),
        server(vec![
            key(b"held", b"me", Some(20)),
            key(b"over", b"me", Some(3)),
            key(b"split", b"you", Some(30)),
        ]),
        server(vec![key(b"\xff", b"me", Some(30)), key(b"\xfe", b"me", Some(30))]),
    ]);
    let mut snapshot = Builder::default().snapshot();
    let read_at = Some(snapshot.taken_at - chrono::TimeDelta::seconds(5));
    let redis = std::sync::Arc::new(RedisLeases { read_at, ..leases });
    let systems = crate::model::source_tables::SourceTables { redis, ..Default::default() };
    snapshot.sources = std::sync::Arc::new(systems);
    let board = LeaseBoard::of(&snapshot);
    let found: Vec<_> = board
        .rows
        .iter()
        .map(|row| {
            let left = row.left.map(f64::round);
            (&*row.name, row.state.as_str(), left, row.quorum, row.is_split)
        })
        .collect();
    assert_eq!(
        found,
        [
            ("held", "held", Some(15.0), Some((2, 3)), false),
            ("leak", "free", None, Some((1, 3)), false),
            ("split", "free", Some(25.0), Some((1, 3)), true),
            ("\u{fffd}", "free", Some(25.0), Some((1, 3)), false),
            ("\u{fffd}", "free", Some(25.0), Some((1, 3)), false),
        ]
    );
    assert!(board.rows.iter().all(|row| &*row.source == "redis"));
    assert_ne!(board.rows[3].id, board.rows[4].id);
}

#[test]
fn a_key_on_two_sets_of_servers_is_two_leases() {
    use std::time::Duration;

    use crate::model::redis_lease::{Expiry, KeyReading, LockValue, RedisLeases, ServerReading, merge_sets};

    let server = |value: &[u8]| ServerReading {
        server: "s".into(),
        keys: Ok(vec![KeyReading {
            key: (*b"printer").into(),
            value: LockValue::text(value),
            expiry: Expiry::After(Duration::from_secs(30)),
        }]),
    };
    let mut snapshot = Builder::default().snapshot();
    let leases = merge_sets(&[server(b"me"), server(b"you"), server(b"you")], &[1, 2]);
    let redis = std::sync::Arc::new(RedisLeases { read_at: Some(snapshot.taken_at), ..leases });
    let systems = crate::model::source_tables::SourceTables { redis, ..Default::default() };
    snapshot.sources = std::sync::Arc::new(systems);
    let board = LeaseBoard::of(&snapshot);
    let found: Vec<_> = board
        .rows
        .iter()
        .map(|row| format!("{} {} {:?}", row.shown_source(), row.owner.as_deref().unwrap(), row.quorum))
        .collect();
    assert_eq!(found, ["redis 1 me None", "redis 2 you Some((2, 2))"]);
    assert_ne!(board.rows[0].id, board.rows[1].id);
}
