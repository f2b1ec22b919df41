//! Rows of `pg_locks`.

use locktop::model::lock::LockType;
use locktop::model::lock_key::LockKey;
use locktop::model::snapshot::Snapshot;
use locktop::pg::poll::{PollConnection, PollLimits};

use super::helpers::{
    assert_fresh, client, info, on_every_version, patient, pid, poll_until, session, waits,
};
use super::views::{Lines, Views};

#[tokio::test]
async fn above_the_limit_only_advisory_and_awaited_locks_are_fetched() {
    on_every_version(async |server| {
        let info = info(&server);
        let (holder, waiter, other) = (client(&info).await, client(&info).await, client(&info).await);
        holder
            .batch_execute("CREATE TABLE a (i int PRIMARY KEY); CREATE TABLE b (); INSERT INTO a VALUES (1)")
            .await
            .unwrap();
        holder.batch_execute("BEGIN; UPDATE a SET i = 2; SELECT pg_advisory_lock(9)").await.unwrap();
        other
            .batch_execute("BEGIN; TABLE b; INSERT INTO b DEFAULT VALUES; PREPARE TRANSACTION 'p'")
            .await
            .unwrap();
        let waiter_pid = pid(&waiter).await;
        let waiting = tokio::spawn(async move { waiter.batch_execute("UPDATE a SET i = 3").await });
        let limits = PollLimits { whole_table: 0, ..patient() };
        let mut session = PollConnection::open(&info, limits).await.unwrap();
        let whole =
            poll_until(&mut session, |snapshot| waits(snapshot, waiter_pid) && snapshot.locks_omitted == 0)
                .await;
        let narrow = session.poll(Some(&whole)).await.unwrap();
        assert_fresh(&narrow);
        assert_eq!(
            narrow.locks.last_rows().len() as u64 + narrow.locks_omitted,
            whole.locks.last_rows().len() as u64
        );
        assert!(narrow.locks_omitted > 0);
        let holds = |snapshot: &Snapshot| {
            let waiting = snapshot.locks.last_rows().iter().find(|lock| !lock.granted).unwrap().tag;
            snapshot.locks.last_rows().iter().filter(|lock| lock.tag == waiting).count()
        };
        assert_eq!((holds(&narrow), holds(&whole)), (2, 2));
        assert!(
            narrow.locks.last_rows().iter().any(|lock| lock.tag.advisory_key() == Some(LockKey::Bigint(9)))
        );
        assert!(
            narrow.locks.last_rows().iter().any(|lock| lock.pid.is_none()),
            "the name of a prepared transaction"
        );
        waiting.abort();
    })
    .await;
}

const TABLES: &str =
    "CREATE TABLE a (i int PRIMARY KEY, t text); INSERT INTO a VALUES (1); CREATE TYPE e AS ENUM ()";
const HOLD: &str =
    "BEGIN; UPDATE a SET i = 2; SELECT pg_advisory_lock(1), pg_advisory_lock(-1), pg_advisory_lock(1 << 30),
        pg_advisory_lock(9223372036854775807), pg_advisory_lock(0, 0), pg_advisory_lock_shared(-5, 7);
    COMMENT ON COLUMN a.t IS 'x'; COMMENT ON TYPE e IS 'x'; COMMENT ON ROLE postgres IS 'x'";

/// An index whose expression waits for an advisory lock each second time it is evaluated: once when an
/// insertion checks for a conflict, and once when it has inserted a row on trial and holds the token of that.
const TRIAL: &str = "CREATE SEQUENCE calls; CREATE TABLE trial (key text);
    CREATE FUNCTION stop(key text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
        IF nextval('calls') % 2 = 0 THEN PERFORM pg_advisory_xact_lock(77); END IF; RETURN key; END $$;
    CREATE UNIQUE INDEX ON trial (stop(key))";

/// Every column of every row is as in the view, in the whole scan and in the narrow one.
#[tokio::test]
async fn locks_are_those_of_the_view() {
    on_every_version(async |server| {
        let info = info(&server);
        let (holder, first, second, third) =
            (client(&info).await, client(&info).await, client(&info).await, client(&info).await);
        holder.batch_execute(TABLES).await.unwrap();
        holder.batch_execute(TRIAL).await.unwrap();
        holder.batch_execute(HOLD).await.unwrap();
        holder.batch_execute("SELECT pg_advisory_lock(77)").await.unwrap();
        let prepared = client(&info).await;
        prepared.batch_execute("BEGIN; LOCK TABLE pg_enum; SELECT pg_current_xact_id()").await.unwrap();
        prepared.batch_execute("PREPARE TRANSACTION 'p'").await.unwrap();
        let pids = [pid(&first).await, pid(&second).await, pid(&third).await];
        let update = "UPDATE a SET i = 3";
        let insert = "INSERT INTO trial VALUES ('x') ON CONFLICT DO NOTHING";
        let mut waiting = Vec::new();
        for (waiter, sql) in [(first, update), (second, update), (third, insert)] {
            waiting.push(tokio::spawn(async move { waiter.batch_execute(sql).await }));
        }
        let mut session = session(&server).await;
        poll_until(&mut session, |snapshot| pids.iter().all(|pid| waits(snapshot, *pid))).await;
        let views = Views::open(&info).await;
        let (_, view) = views.agree(&mut session).await;
        for kind in [
            LockType::Advisory,
            LockType::Object,
            LockType::Relation,
            LockType::SpecToken,
            LockType::TransactionId,
            LockType::Tuple,
            LockType::VirtualXid,
        ] {
            assert!(view.locks.iter().any(|row| row.starts_with(kind.as_str())), "{kind:?}");
        }
        let limits = PollLimits { whole_table: 0, ..patient() };
        let mut narrow = PollConnection::open(&info, limits).await.unwrap();
        let first = narrow.poll(None).await.unwrap();
        let narrow = Lines::of(&narrow.poll(Some(&first)).await.unwrap(), &[narrow.server().own_pid]).locks;
        assert!(narrow.iter().all(|row| view.locks.contains(row)), "{narrow:#?}");
        assert!(narrow.iter().any(|row| row.starts_with("tuple")) && narrow.len() < view.locks.len());
        waiting.iter().for_each(tokio::task::JoinHandle::abort);
    })
    .await;
}
