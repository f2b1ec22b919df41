//! Whether a session blocks another one, as the server sees it.

use locktop::model::lock::{LockMode, LockTag, LockType};
use locktop::model::plan::{Outcome, SessionTarget, TargetKind, Verb};

use super::stage::{Hands, Session, is_connected, seen, seen_in_any_state};
use super::support::{self, open};

#[tokio::test]
async fn one_ahead_in_a_queue_blocks_and_one_behind_does_not() {
    for version in support::versions() {
        let info = support::database(support::server_of(version).await).await;
        let observer = open(&info).await.client;
        observer.batch_execute("CREATE TABLE t (id int)").await.unwrap();
        let mut hands = Hands::of(&info).await;
        let reader = Session::open(&info).await;
        reader.run("BEGIN; SELECT FROM t").await;
        let ahead = Session::open(&info).await.begin("BEGIN; LOCK TABLE t", &observer, "Lock").await;
        let behind = Session::open(&info).await.begin("SELECT FROM t", &observer, "Lock").await;
        // The last of the queue blocks no session, although its request conflicts with that of the one ahead.
        let last = SessionTarget { blocks: true, ..seen(&observer, behind.pid).await };
        let (outcome, detail) = hands.one(Verb::Terminate, TargetKind::Session(last)).await;
        assert_eq!(
            (outcome, detail.as_str()),
            (Outcome::Changed, "it no longer blocks any session"),
            "{version}"
        );
        let first = SessionTarget { blocks: true, ..seen(&observer, ahead.pid).await };
        let (outcome, detail) = hands.one(Verb::Cancel, TargetKind::Session(first)).await;
        assert_eq!(outcome, Outcome::Done, "{version}: {detail}");
        assert_eq!(behind.end().await, None, "it continues");
        // And the reader, which all sessions waited for, no longer blocks any.
        let root = SessionTarget { blocks: true, ..seen(&observer, reader.pid).await };
        let (outcome, detail) = hands.one(Verb::Terminate, TargetKind::Session(root)).await;
        assert_eq!(
            (outcome, detail.as_str()),
            (Outcome::Changed, "it no longer blocks any session"),
            "{version}"
        );
        reader.run("COMMIT").await;
    }
}

/// A member of the target's own group is no other session: its workers wait for no lock of their leader, and their locks are its own.
#[tokio::test]
async fn a_leader_blocks_with_the_locks_of_its_workers() {
    for version in support::versions() {
        let info = support::database(support::server_of(version).await).await;
        let observer = open(&info).await.client;
        observer.batch_execute("CREATE TABLE big AS SELECT generate_series(1, 1000) AS id; ALTER TABLE big SET (parallel_workers = 2)")
            .await
            .unwrap();
        let mut hands = Hands::of(&info).await;
        let leader = Session::open(&info).await;
        leader
            .run(
                "SET min_parallel_table_scan_size = 0; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
                 CREATE FUNCTION slow(int) RETURNS int LANGUAGE plpgsql PARALLEL SAFE AS
                 'BEGIN PERFORM pg_sleep(0.5); RETURN $1; END'",
            )
            .await;
        let leader = leader.begin("SELECT sum(slow(id)) FROM big", &observer, "Timeout").await;
        let workers = "SELECT count(*) FROM pg_stat_activity WHERE leader_pid = $1";
        support::wait_until("it has workers", async || {
            observer.query_one(workers, &[&leader.pid]).await.unwrap().get::<_, i64>(0) > 0
        })
        .await;
        let alone = SessionTarget { blocks: true, ..seen(&observer, leader.pid).await };
        let (outcome, detail) = hands.one(Verb::Cancel, TargetKind::Session(alone.clone())).await;
        assert_eq!(
            (outcome, detail.as_str()),
            (Outcome::Changed, "it no longer blocks any session"),
            "{version}"
        );
        let waiter = Session::open(&info).await.begin("BEGIN; LOCK TABLE big", &observer, "Lock").await;
        let (outcome, detail) = hands.one(Verb::Terminate, TargetKind::Session(alone)).await;
        assert_eq!(outcome, Outcome::Done, "{version}: {detail}");
        let remaining = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1 OR leader_pid = $1";
        support::wait_until("its workers end with it", async || {
            observer.query_one(remaining, &[&leader.pid]).await.unwrap().get::<_, i64>(0) == 0
        })
        .await;
        waiter.end().await;
    }
}

/// The leader holds a lock that only its worker has acquired.
#[tokio::test]
async fn a_leader_holds_the_locks_of_its_workers() {
    for version in support::versions() {
        let info = support::database(support::server_of(version).await).await;
        let observer = open(&info).await.client;
        observer.batch_execute(
            "CREATE TABLE big AS SELECT generate_series(1, 1000) AS id; ALTER TABLE big SET (parallel_workers = 2);
             CREATE TABLE other (id int);
             CREATE FUNCTION slow(int) RETURNS int LANGUAGE plpgsql PARALLEL SAFE AS
             'BEGIN PERFORM FROM other; PERFORM pg_sleep(0.5); RETURN $1; END'",
        )
        .await
        .unwrap();
        let mut hands = Hands::of(&info).await;
        let leader = Session::open(&info).await;
        leader
            .run(
                "SET min_parallel_table_scan_size = 0; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
                 SET parallel_leader_participation = off",
            )
            .await;
        let leader = leader.begin("SELECT sum(slow(id)) FROM big", &observer, "IPC").await;
        let held = "SELECT l.database, l.relation, l.pid FROM pg_locks AS l
                     WHERE l.relation = 'other'::regclass AND l.granted";
        support::wait_until("a worker has locked it", async || {
            !observer.query(held, &[]).await.unwrap().is_empty()
        })
        .await;
        let rows = observer.query(held, &[]).await.unwrap();
        assert!(rows.iter().all(|row| row.get::<_, i32>(2) != leader.pid), "{version}");
        let tag = LockTag::new(LockType::Relation)
            .with_database(rows[0].get::<_, u32>(0))
            .with_relation(rows[0].get::<_, u32>(1));
        let seen = seen(&observer, leader.pid).await;
        let of = |mode| SessionTarget { holds: Some((tag, mode)), ..seen.clone() };
        let (outcome, detail) = hands.one(Verb::Terminate, TargetKind::Session(of(LockMode::Share))).await;
        assert_eq!(outcome, Outcome::Changed, "{version}: {detail}");
        let (outcome, detail) =
            hands.one(Verb::Terminate, TargetKind::Session(of(LockMode::AccessShare))).await;
        assert_eq!(outcome, Outcome::Done, "{version}: {detail}");
    }
}

/// The views over the functions join catalogs, and would wait for a session that has locked them.
#[tokio::test]
async fn a_session_that_locked_the_catalogs_can_be_terminated() {
    for version in support::versions() {
        let info = support::database(support::server_of(version).await).await;
        let observer = open(&info).await.client;
        let mut hands = Hands::of(&info).await;
        let holder = Session::open(&info).await;
        let target = seen_in_any_state(&observer, holder.pid).await;
        holder.run("BEGIN; LOCK TABLE pg_class, pg_database IN ACCESS EXCLUSIVE MODE").await;
        let (outcome, detail) = hands.one(Verb::Terminate, TargetKind::Session(target)).await;
        assert_eq!(outcome, Outcome::Done, "{version}: {detail}");
        assert!(!is_connected(&observer, holder.pid).await);
    }
}
