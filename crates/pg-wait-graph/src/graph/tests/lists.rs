use super::script::{Scan, backend, names};
use crate::backend::{Backend, State};
use crate::graph::{End, Party, Release};
use locktop_base::Timestamp;

fn at(second: i64) -> Option<Timestamp> {
    Timestamp::from_timestamp(second, 0)
}

fn idle(pid: i32, since: i64) -> Backend {
    let state = Some(State::IdleInTransaction);
    Backend { state, state_change: at(since), backend_start: at(0), ..client(pid) }
}

fn active(pid: i32, since: i64, query: &str) -> Backend {
    let state = Some(State::Active);
    Backend { state, query_start: at(since), query: Some(query.into()), backend_start: at(0), ..client(pid) }
}

fn client(pid: i32) -> Backend {
    Backend { backend_type: Some("client backend".into()), datid: Some(5), ..backend(pid, None, true) }
}

/// The effect of ending one session: `now 11; turn 12; still 13 by 14; unsure 15 by 16`.
fn ends(locks: &str, backends: Vec<Backend>, pids: &[i32]) -> String {
    let mut scan = Scan::read(locks);
    scan.backends = backends;
    let parties: Vec<Party> = pids.iter().copied().map(Party::Backend).collect();
    let Release { now, in_turn, still, unsure, others, possible, standby, .. } =
        scan.graph().release(&parties, End::Session);
    let part = |word: &str, parties: &[Party], by: &[Party]| match (parties, by) {
        ([], _) => None,
        (parties, []) => Some(format!("{word} {}", names(parties))),
        (parties, by) => Some(format!("{word} {} by {}", names(parties), names(by))),
    };
    let parts = [
        part("now", &now, &[]),
        part("turn", &in_turn, &[]),
        part("still", &still, &others),
        part("unsure", &unsure, &possible),
        standby.then(|| "standby".to_owned()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// 10 has the row, 11 is first in line, 12 and 13 are behind it.
const LINE: &str = "10 holds xid10 X; 10 holds rel16 RX; 11 holds rel16 RX; 11 holds xid11 X; 11 holds tup1 X; 11 waits xid10 S @1;
    12 holds rel16 RX; 12 waits tup1 X @2; 13 holds rel16 RX; 13 waits tup1 X @3";

#[test]
fn those_in_line_for_a_row_follow_one_after_another() {
    assert_eq!(ends(LINE, Vec::new(), &[10]), "now 11; turn 12 13");
    assert_eq!(ends(LINE, Vec::new(), &[11]), "still 12 13 by 10", "12 has the place, and waits for 10");
    assert_eq!(ends(LINE, Vec::new(), &[10, 11]), "now 12; turn 13");
    assert_eq!(ends(LINE, Vec::new(), &[12]), "still 13 by 10", "13 is still behind 11, which is behind 10");
}

/// A row that a child refers to is updated while it is locked: 11 waits with the old version, 12 with the new one.
#[test]
fn of_those_with_versions_of_one_row_one_continues_first() {
    let row = |held: &str| {
        format!("10 holds xid10 X; 10 holds rel16 {held}; 11 holds rel16 RS; 11 holds tup1 AX; 11 waits xid10 S @1;
            12 holds rel16 RS; 12 holds tup4 AX; 12 waits xid10 S @2")
    };
    assert_eq!(ends(&row("RS"), Vec::new(), &[10]), "turn 11 12", "which of them comes first is not known");
    assert_eq!(ends(&row("RX"), Vec::new(), &[10]), "now 11 12", "what 10 has updated has no new version");
}

#[test]
fn a_row_that_several_may_have_locked_is_no_promise() {
    let row = |held: &str, place: &str| {
        format!("10 holds xid10 X; 10 holds rel16 {held}; 14 holds xid14 X; 14 holds rel16 RS; 15 holds rel16 RS; 11 holds rel16 RX;
            11 holds tup1 {place}; 11 waits xid10 S @1")
    };
    assert_eq!(ends(&row("RS", "AX"), Vec::new(), &[10]), "unsure 11 by 14", "15 has no transaction id");
    assert_eq!(ends(&row("RS", "AX"), Vec::new(), &[10, 14]), "now 11");
    assert_eq!(ends(&row("RX", "AX"), Vec::new(), &[10]), "unsure 11 by 14", "a key that a child refers to");
    assert_eq!(ends(&row("RX", "X"), Vec::new(), &[10]), "now 11", "FOR KEY SHARE does not stop this update");
    assert_eq!(ends(&row("RS", "RS"), Vec::new(), &[10]), "now 11", "FOR SHARE waits for one at most");
}

#[test]
fn of_two_that_insert_one_key_one_waits_for_the_other() {
    let one = "10 holds xid10 X; 11 waits xid10 S @1";
    assert_eq!(ends(one, Vec::new(), &[10]), "now 11");
    let two = format!("{one}; 12 waits xid10 S @2");
    assert_eq!(ends(&two, Vec::new(), &[10]), "turn 11 12");
    // More than a list has room for.
    let many: Vec<String> = (100..200).map(|pid| format!("{pid} waits xid10 S @{pid}")).collect();
    assert!(ends(&format!("{one}; {}", many.join("; ")), Vec::new(), &[10]).starts_with("turn 11 100 101 "));
    assert_eq!(
        ends(
            &format!("{two}; 12 holds xid12 X; 12 holds rel16 RS; 13 holds xid13 X; 13 holds rel16 RS"),
            Vec::new(),
            &[10]
        ),
        "unsure 11 12 by 13"
    );
    let deadlock = "13 holds rel20 AX; 13 waits rel21 AX @4; 14 holds rel21 AX; 14 waits rel20 AX @5";
    let outside = format!(
        "{two}; 12 holds xid12 X; 12 holds rel16 RS; 13 holds xid13 X; 13 holds rel16 RS; {deadlock}"
    );
    assert_eq!(
        ends(&outside, Vec::new(), &[10]),
        "unsure 11 12",
        "12 may wait for 13, which is in a deadlock"
    );
    let cycle = format!(
        "{two}; 11 holds rel17 AX; 13 holds xid13 X; 13 waits rel17 AX @3; 11 holds xid11 X; 11 holds rel18 RS; 13 holds rel18 RS; 13 holds rel16 RX"
    );
    assert_eq!(ends(&cycle, Vec::new(), &[10]), "unsure 11 12 13", "11 may wait for 13, which waits for 11");
}

#[test]
fn an_index_waits_for_all_that_write_and_for_old_snapshots() {
    let locks = "10 holds vx10 X; 10 holds rel16 RX; 11 holds rel16 SUX; 11 waits vx10 S @5; 12 holds rel16 RX; 13 holds rel16 AS";
    let create = || active(11, 5, "CREATE INDEX CONCURRENTLY i ON t (a)");
    let drop = || active(11, 5, "/* x */ drop index concurrently i");
    let all = |own: Backend| vec![idle(10, 1), own, idle(12, 2), idle(13, 3)];
    assert_eq!(ends(locks, all(create()), &[10]), "still 11 by 12");
    assert_eq!(ends(locks, all(create()), &[10, 12]), "now 11");
    assert_eq!(ends(locks, all(drop()), &[10]), "still 11 by 12 13", "it waits for readers, too");
    let snapshot = || Backend { backend_xmin: Some(7), ..idle(13, 3) };
    assert_eq!(ends(locks, vec![idle(10, 1), create(), idle(12, 2), snapshot()], &[10]), "still 11 by 12 13");
    let elsewhere = || Backend { datid: Some(6), ..snapshot() };
    assert_eq!(ends(locks, vec![idle(10, 1), create(), idle(12, 2), elsewhere()], &[10]), "still 11 by 12");
    // It may have started after the list was made.
    let late = || Backend { state_change: at(9), ..idle(12, 9) };
    assert_eq!(ends(locks, vec![idle(10, 1), create(), late()], &[10]), "unsure 11 by 12");
    assert_eq!(ends(locks, vec![idle(10, 1)], &[10]), "unsure 11", "the statement is hidden");
}

#[test]
fn a_partition_that_is_detached_requests_new_locks_after_its_wait() {
    let detach = active(11, 5, "ALTER TABLE t DETACH PARTITION p CONCURRENTLY");
    let locks = "10 holds vx10 X; 10 holds rel16 AS; 11 waits vx10 S @5; 12 waits rel16 AX @6";
    assert_eq!(
        ends(locks, vec![idle(10, 1), detach, active(12, 6, "ALTER TABLE t ADD a int")], &[10]),
        "now 12; unsure 11"
    );
}

#[test]
fn a_slot_waits_for_all_that_have_written() {
    let locks = "10 holds xid10 X; 11 waits xid10 S @5; 12 holds xid12 X; 13 holds xid9 X; 14 holds xid14 X";
    let slot = || active(11, 5, "CREATE_REPLICATION_SLOT cdc LOGICAL test_decoding");
    assert_eq!(ends(locks, vec![idle(10, 1), slot(), idle(12, 2), idle(14, 9)], &[10]), "still 11 by 12 13");
    assert_eq!(
        ends(locks, vec![idle(10, 1), slot(), idle(12, 2), idle(14, 9)], &[10, 12, 13]),
        "unsure 11 by 14"
    );
}

#[test]
fn a_commit_with_notify_waits_for_the_standby_as_well() {
    let locks = "10 holds notify AX; 11 waits notify AX @1; 12 waits notify AX @2";
    let stuck = || Backend { wait_event: Some("SyncRep".into()), ..active(10, 0, "COMMIT") };
    let all = || vec![stuck(), active(11, 1, "COMMIT"), active(12, 2, "COMMIT")];
    assert_eq!(ends(locks, all(), &[10]), "still 11 12; standby");
    let quick = vec![active(10, 0, "COMMIT"), active(11, 1, "COMMIT"), active(12, 2, "COMMIT")];
    assert_eq!(ends(locks, quick, &[10]), "now 11; turn 12");
    // They get any other lock that they wait for, and may then commit as that one does.
    assert_eq!(ends(LINE, vec![stuck()], &[10]), "now 11; unsure 12 13; standby");
}
