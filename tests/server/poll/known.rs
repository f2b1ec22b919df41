//! Rows that are not read again, since they cannot have changed.

use std::time::Duration;

use locktop::demo::postgres::EmbeddedServer;
use locktop::model::lock::{Lock, LockType};
use locktop::model::snapshot::Snapshot;
use locktop::model::wait_graph::{Input, Party, WaitGraph};
use locktop::pg::poll::{PollConnection, PollLimits};
use tokio_postgres::Client;

use super::helpers::{client, info, on_every_version, patient, pid, poll_until, waits};
use super::raw::Raw;
use super::views::Views;
use crate::support::wait_until;

/// Steps of sessions, by number. Each ends idle, or idle in a transaction, or failed in one.
const STEPS: [(usize, &str); 30] = [
    (0, "BEGIN"),
    (0, "LOCK TABLE a IN SHARE MODE"),
    (1, "SELECT pg_advisory_lock(n) FROM generate_series(1, 20) AS n"),
    (2, "BEGIN; UPDATE b SET i = 2"),
    (0, "SAVEPOINT s; LOCK TABLE b IN ACCESS SHARE MODE"),
    (1, "SELECT pg_advisory_unlock(3)"),
    (0, "ROLLBACK TO s"),
    (1, "LISTEN x"),
    (3, "NOTIFY x"),
    (3, "SET application_name = 'another'"),
    (2, "PREPARE TRANSACTION 'p'"),
    (1, "BEGIN; SELECT pg_advisory_xact_lock(77), pg_advisory_lock(78)"),
    (3, "NOTIFY x, 'again'"),
    (1, "COMMIT"),
    (3, "COMMIT PREPARED 'p'"),
    (0, "DECLARE c CURSOR FOR TABLE b"),
    (0, "FETCH c"),
    (2, "BEGIN; SELECT pg_advisory_lock_shared(5, 5)"),
    (2, "SELECT 1 / 0"),
    (2, "ROLLBACK"),
    (0, "COMMIT"),
    (1, "SELECT pg_advisory_unlock_all()"),
    (0, "BEGIN; CREATE TABLE c (); SELECT pg_current_xact_id()"),
    (3, "BEGIN; LOCK TABLE a IN ROW SHARE MODE; LOCK TABLE b IN ROW SHARE MODE"),
    (0, "ROLLBACK"),
    (3, "COMMIT AND CHAIN"),
    (3, "SELECT 1 FROM b FOR UPDATE"),
    (3, "ROLLBACK"),
    (1, "DISCARD ALL"),
    (2, "SELECT pg_advisory_lock(1)"),
];

/// Every row, however little there is, is left out as soon as it can be, and never read again for that reason alone.
fn eager() -> PollLimits {
    let long = Duration::from_secs(86_400);
    PollLimits { quiet_from: 0, quiet_for: long, clock_slack: Duration::ZERO, ..patient() }
}

async fn sessions(server: &EmbeddedServer) -> Vec<Client> {
    let info = info(server);
    let mut sessions = Vec::new();
    for _ in 0..4 {
        sessions.push(client(&info).await);
    }
    sessions[0]
        .batch_execute("CREATE TABLE a (i int); CREATE TABLE b (i int); INSERT INTO b VALUES (1)")
        .await
        .unwrap();
    sessions
}

/// Whether the last poll sent the server a time since which to read.
async fn has_since(session: &PollConnection) -> bool {
    let asked =
        session.client().unwrap().query_one("SELECT current_setting('locktop.since') <> '0'", &[]).await;
    asked.unwrap().get(0)
}

#[tokio::test]
async fn a_snapshot_matches_the_views_after_every_step() {
    on_every_version(async |server| {
        for whole_table in [250_000, 0] {
            let sessions = sessions(&server).await;
            let views = Views::open(&info(&server)).await;
            let mut whole = PollConnection::open(&info(&server), eager()).await.unwrap();
            let mut narrow =
                PollConnection::open(&info(&server), PollLimits { whole_table, ..eager() }).await.unwrap();
            views.agree(&mut whole).await;
            for (number, step) in STEPS {
                // Some fail, which is a state too.
                let _ = sessions[number].batch_execute(step).await;
                let (snapshot, _) = views.agree(&mut whole).await;
                assert!(has_since(&whole).await);
                let other = narrow.poll(None).await.unwrap();
                let known = |lock| snapshot.locks.last_rows().contains(lock);
                let advisory = |rows: &[Lock]| {
                    rows.iter().filter(|lock| lock.tag.locktype() == LockType::Advisory).count()
                };
                assert_eq!(advisory(other.locks.last_rows()), advisory(snapshot.locks.last_rows()), "{step}");
                let strange = other.locks.last_rows().iter().find(|lock| lock.pid.is_none() && !known(*lock));
                assert_eq!(strange, None, "{step}");
            }
            drop(sessions);
            views.agree(&mut whole).await;
            let cleanup = client(&info(&server)).await;
            cleanup.batch_execute("DROP TABLE a, b").await.unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn a_wait_for_a_quiet_session_has_that_session_as_holder() {
    on_every_version(async |server| {
        let sessions = sessions(&server).await;
        sessions[0].batch_execute("BEGIN; UPDATE b SET i = 2; SELECT pg_advisory_lock(1)").await.unwrap();
        let limits = [eager(), PollLimits { whole_table: 0, ..eager() }];
        for limits in limits {
            let mut session = PollConnection::open(&info(&server), limits).await.unwrap();
            session.poll(None).await.unwrap();
            for sql in ["UPDATE b SET i = 3", "SELECT pg_advisory_lock(1)", "DROP TABLE b"] {
                let waiter = client(&info(&server)).await;
                let waiter_pid = pid(&waiter).await;
                let waiting = tokio::spawn(async move { waiter.batch_execute(sql).await });
                let snapshot = poll_until(&mut session, |snapshot| waits(snapshot, waiter_pid)).await;
                let awaited = snapshot
                    .locks
                    .last_rows()
                    .iter()
                    .find(|lock| lock.pid == Some(waiter_pid) && !lock.granted)
                    .unwrap();
                let holder = pid(&sessions[0]).await;
                let holds =
                    |lock: &&Lock| lock.granted && lock.tag == awaited.tag && lock.pid == Some(holder);
                assert_eq!(snapshot.locks.last_rows().iter().filter(holds).count(), 1, "{sql}");
                sessions[1].execute("SELECT pg_terminate_backend($1)", &[&waiter_pid]).await.unwrap();
                assert!(waiting.await.unwrap().is_err());
                poll_until(&mut session, |snapshot| snapshot.backend(waiter_pid).is_none()).await;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn the_locks_of_an_ended_session_disappear_with_it() {
    on_every_version(async |server| {
        let sessions = sessions(&server).await;
        sessions[0].batch_execute("BEGIN; LOCK TABLE a; SELECT pg_advisory_lock(1)").await.unwrap();
        let ended = pid(&sessions[0]).await;
        sessions[0].batch_execute("SELECT 1").await.unwrap();
        let views = Views::open(&info(&server)).await;
        let mut session = PollConnection::open(&info(&server), eager()).await.unwrap();
        views.agree(&mut session).await;
        let (before, _) = views.agree(&mut session).await;
        assert!(has_since(&session).await);
        assert!(before.locks.last_rows().iter().any(|lock| lock.pid == Some(ended)));
        sessions[1].execute("SELECT pg_terminate_backend($1, 10000)", &[&ended]).await.unwrap();
        let after = session.poll(Some(&before)).await.unwrap();
        assert!(after.locks.last_rows().iter().all(|lock| lock.pid != Some(ended)));
        assert!(after.backend(ended).is_none());
        views.agree(&mut session).await;
    })
    .await;
}

/// A lock that a session acquires without a change of its state: Describe, and no Sync.
#[tokio::test]
async fn a_waiter_has_its_root_that_acquired_the_lock_unseen_within_two_polls() {
    on_every_version(async |server| {
        sessions(&server).await;
        for (before, whole_table) in [("SELECT 1", 250_000), ("BEGIN", 250_000), ("BEGIN", 0)] {
            let mut quiet = Raw::open(&server, "postgres", "postgres").await;
            quiet.prepare("describe", "SELECT * FROM a").await;
            quiet.run(before.as_bytes()).await;
            let limits = PollLimits { whole_table, ..eager() };
            let mut session = PollConnection::open(&info(&server), limits).await.unwrap();
            let mut snapshot = session.poll(None).await.unwrap();
            // From here on its rows are left out.
            tokio::time::sleep(Duration::from_millis(10)).await;
            snapshot = session.poll(Some(&snapshot)).await.unwrap();
            quiet.describe("describe").await;
            snapshot = session.poll(Some(&snapshot)).await.unwrap();
            assert!(has_since(&session).await);
            let waiter = client(&info(&server)).await;
            let waiter_pid = pid(&waiter).await;
            let waiting =
                tokio::spawn(async move { waiter.batch_execute("BEGIN; LOCK TABLE a; COMMIT").await });
            let holder = holder(&server, waiter_pid).await;
            for _ in 0..2 {
                snapshot = session.poll(Some(&snapshot)).await.unwrap();
            }
            assert!(waits(&snapshot, waiter_pid));
            assert_eq!(roots(&snapshot), [Party::Backend(holder)], "{before}, {whole_table}");
            // The rows that were read stay.
            snapshot = session.poll(Some(&snapshot)).await.unwrap();
            assert!(has_since(&session).await);
            assert_eq!(roots(&snapshot), [Party::Backend(holder)], "{before}, {whole_table}");
            drop(quiet);
            waiting.await.unwrap().unwrap();
        }
    })
    .await;
}

/// The pid that blocks this process according to `pg_blocking_pids`, once it waits.
async fn holder(server: &EmbeddedServer, waiter: i32) -> i32 {
    let asking = client(&info(server)).await;
    let mut holders = Vec::new();
    wait_until("the waiter to wait", async || {
        holders = asking.query_one("SELECT pg_blocking_pids($1)", &[&waiter]).await.unwrap().get(0);
        !holders.is_empty()
    })
    .await;
    holders[0]
}

fn roots(snapshot: &Snapshot) -> Vec<Party> {
    let (locks, backends) = (snapshot.locks.last_rows(), snapshot.backends.last_rows());
    let graph = WaitGraph::build(Input {
        locks,
        backends,
        answers: &snapshot.answers,
        is_partial: false,
        own_pid: None,
    });
    graph.roots.iter().map(|root| root.party).collect()
}
