//! A session is signalled only if it is exactly as it was seen: each part of it is changed in turn.

use chrono::TimeDelta;
use locktop::model::lock::{LockMode, LockTag, LockType};
use locktop::model::namespace;
use locktop::model::plan::{self, ActionCommand, ExpectedTime, Outcome, SessionTarget, TargetKind, Verb};
use locktop::model::task::TaskKey;
use locktop::model::view::TargetId;
use locktop::pg::conninfo::ConnInfo;
use tokio_postgres::Client;

use super::stage::{Hands, Running, Session, command, is_connected, seen, seen_in_any_state};
use super::support::{self, open};

/// A holder that is idle in its transaction, and a session that waits for it.
struct Pair {
    info: ConnInfo,
    observer: Client,
    hands: Hands,
    holder: Session,
    waiter: Running,
}

impl Pair {
    async fn of(version: u32) -> Self {
        let info = support::database(support::server_of(version).await).await;
        let observer = open(&info).await.client;
        observer.batch_execute("CREATE TABLE t (id int)").await.unwrap();
        let hands = Hands::of(&info).await;
        let holder = Session::open(&info).await;
        holder.run("BEGIN; LOCK TABLE t").await;
        let waiter = Session::open(&info).await.begin("SELECT FROM t", &observer, "Lock").await;
        Self { info, observer, hands, holder, waiter }
    }

    async fn target(&self) -> SessionTarget {
        SessionTarget { blocks: true, ..seen(&self.observer, self.holder.pid).await }
    }

    /// Sends the request, which must have no effect: the session neither ends, nor is its work disturbed.
    async fn is_left_alone(&mut self, verb: Verb, target: SessionTarget, words: &str) {
        let pid = target.pid;
        let (outcome, detail) = self.hands.one(verb, TargetKind::Session(target)).await;
        assert_eq!(outcome, Outcome::Changed, "{detail}");
        assert!(detail.contains(words), "{detail}");
        assert!(is_connected(&self.observer, pid).await || words.contains("no session"), "{detail}");
        // A signal on its way would end this.
        if pid == self.holder.pid {
            self.holder.run("SELECT pg_sleep(0.02)").await;
        }
    }
}

#[tokio::test]
async fn a_terminated_root_frees_its_waiter() {
    for version in support::versions() {
        let mut pair = Pair::of(version).await;
        let target = pair.target().await;
        let (outcome, detail) = pair.hands.one(Verb::Terminate, TargetKind::Session(target)).await;
        assert_eq!((outcome, detail.as_str()), (Outcome::Done, "its session ended"));
        assert!(!is_connected(&pair.observer, pair.holder.pid).await);
        assert_eq!(pair.waiter.end().await, None);
        let [asked, result] = pair.hands.notes.all().try_into().unwrap();
        let pid = pair.holder.pid;
        assert!(
            asked.starts_with(&format!("asked {pid}: pg_terminate_backend({pid}) if backend_start")),
            "{asked}"
        );
        assert_eq!(result, format!("result {pid}: done"));
    }
}

#[tokio::test]
async fn a_query_is_cancelled_and_its_session_stays() {
    for version in support::versions() {
        let mut pair = Pair::of(version).await;
        let pid = pair.waiter.pid;
        let mut target = seen(&pair.observer, pid).await;
        target.query_start = target.xact_start;
        let (outcome, detail) = pair.hands.one(Verb::Cancel, TargetKind::Session(target)).await;
        assert_eq!((outcome, detail.as_str()), (Outcome::Done, "its query has ended"));
        let (connection, result) = pair.waiter.task.await.unwrap();
        assert_eq!(result.unwrap_err().code().unwrap().code(), "57014");
        assert!(is_connected(&pair.observer, pid).await);
        connection.client.batch_execute("SELECT 1").await.unwrap();
    }
}

#[tokio::test]
async fn another_session_or_transaction_is_left_alone() {
    for version in support::versions() {
        let mut pair = Pair::of(version).await;
        let target = pair.target().await;
        let micro = TimeDelta::microseconds(1);
        let other = SessionTarget { backend_start: target.backend_start - micro, ..target.clone() };
        pair.is_left_alone(Verb::Terminate, other, "is another session: began").await;
        let ExpectedTime::Same(Some(began)) = target.xact_start else { panic!("{target:?}") };
        for verb in [Verb::Terminate, Verb::Cancel] {
            let other =
                SessionTarget { xact_start: ExpectedTime::Same(Some(began + micro)), ..target.clone() };
            pair.is_left_alone(verb, other, "its transaction has changed: began").await;
        }
        let none = SessionTarget { xact_start: ExpectedTime::Same(None), ..target.clone() };
        pair.is_left_alone(Verb::Terminate, none, "it has a transaction now").await;
        // The same session, and really another transaction, which holds the same lock.
        pair.holder.run("COMMIT").await;
        pair.holder.run("BEGIN; LOCK TABLE t").await;
        pair.is_left_alone(Verb::Terminate, target.clone(), "its transaction has changed: began").await;
        pair.holder.run("COMMIT").await;
        pair.is_left_alone(Verb::Terminate, target.clone(), "its transaction has ended").await;
        // A session that has ended.
        let ended = SessionTarget { pid: i32::MAX, ..target };
        pair.is_left_alone(Verb::Terminate, ended, "no session has pid").await;
    }
}

#[tokio::test]
async fn a_session_that_no_longer_blocks_is_left_alone() {
    for version in support::versions() {
        let mut pair = Pair::of(version).await;
        let target = pair.target().await;
        pair.waiter.task.abort();
        let waiter = pair.waiter.pid;
        pair.observer.execute("SELECT pg_terminate_backend($1)", &[&waiter]).await.unwrap();
        support::wait_until("no session waits", async || !is_connected(&pair.observer, waiter).await).await;
        pair.is_left_alone(Verb::Terminate, target.clone(), "it no longer blocks any session").await;
        // Without that condition the session matches.
        let target = SessionTarget { blocks: false, ..target };
        let (outcome, detail) = pair.hands.one(Verb::Terminate, TargetKind::Session(target)).await;
        assert_eq!(outcome, Outcome::Done, "{detail}");
    }
}

#[tokio::test]
async fn a_session_that_released_its_key_is_left_alone() {
    for version in support::versions() {
        let mut pair = Pair::of(version).await;
        let idle = Session::open(&pair.info).await;
        idle.run("SELECT pg_advisory_lock(72707369), pg_advisory_lock_shared(-3, 7)").await;
        let datid = datid(&pair.observer).await;
        let key = |classid: u32, objid: u32, objsubid: u16| {
            LockTag::new(LockType::Advisory)
                .with_database(datid)
                .with_classid(classid)
                .with_objid(objid)
                .with_objsubid(objsubid)
        };
        let big = Some((key(0, 72_707_369, 1), LockMode::Exclusive));
        let pairs = Some((key((-3_i32).cast_unsigned(), 7, 2), LockMode::Share));
        let target = SessionTarget { holds: big, ..seen(&pair.observer, idle.pid).await };
        assert_eq!(target.xact_start, ExpectedTime::Same(None));
        // Another mode, another space of keys, another key.
        for holds in [
            Some((key(0, 72_707_369, 1), LockMode::Share)),
            Some((key(0, 72_707_369, 2), LockMode::Exclusive)),
            Some((key(1, 72_707_369, 1), LockMode::Exclusive)),
            Some((key(0, 72_707_369, 1).with_database(1), LockMode::Exclusive)),
        ] {
            let other = SessionTarget { holds, ..target.clone() };
            pair.is_left_alone(Verb::Terminate, other, "it no longer holds").await;
        }
        idle.run("SELECT pg_advisory_unlock(72707369)").await;
        pair.is_left_alone(
            Verb::Terminate,
            target,
            "it has run another statement since: its last query began",
        )
        .await;
        let target = SessionTarget { holds: big, ..seen(&pair.observer, idle.pid).await };
        let words = "it no longer holds ExclusiveLock on its advisory";
        pair.is_left_alone(Verb::Terminate, target.clone(), words).await;
        let target = SessionTarget { holds: pairs, ..target };
        let (outcome, detail) = pair.hands.one(Verb::Terminate, TargetKind::Session(target)).await;
        assert_eq!(outcome, Outcome::Done, "{detail}");
        assert!(is_connected(&pair.observer, pair.holder.pid).await);
    }
}

/// A worker continues with its next item in the same session, and in no transaction as before.
#[tokio::test]
async fn a_worker_on_another_item_by_now_is_left_alone() {
    for version in support::versions() {
        let mut pair = Pair::of(version).await;
        let worker = Session::open(&pair.info).await;
        let datid = datid(&pair.observer).await;
        let key = |item: i64| {
            let number = namespace::number_of(namespace::QUEUE, item).unwrap();
            (number, TaskKey::Raw(number).tag(datid))
        };
        let ((nine, tag), (ten, next)) = (key(9), key(10));
        worker.run(&format!("SELECT pg_advisory_lock({nine})")).await;
        let on = |tag| Some((tag, LockMode::Exclusive));
        let target = SessionTarget { holds: on(tag), ..seen_in_any_state(&pair.observer, worker.pid).await };
        worker.run(&format!("SELECT pg_advisory_unlock({nine}), pg_advisory_lock({ten})")).await;
        pair.is_left_alone(Verb::Terminate, target.clone(), "it no longer holds ExclusiveLock").await;
        assert!(is_connected(&pair.observer, worker.pid).await, "{version}");
        let target = SessionTarget { holds: on(next), ..target };
        let (outcome, detail) = pair.hands.one(Verb::Terminate, TargetKind::Session(target)).await;
        assert_eq!(outcome, Outcome::Done, "{version}: {detail}");
    }
}

async fn datid(observer: &Client) -> u32 {
    let sql = "SELECT oid FROM pg_database WHERE datname = current_database()";
    observer.query_one(sql, &[]).await.unwrap().get(0)
}

/// The key alone identifies no session: a successor on the same backend has the same one.
#[tokio::test]
async fn the_holder_of_a_key_that_was_taken_again_is_left_alone() {
    for version in support::versions() {
        let mut pair = Pair::of(version).await;
        let idle = Session::open(&pair.info).await;
        idle.run("SELECT pg_advisory_lock(77)").await;
        let key = TaskKey::Raw(77).tag(datid(&pair.observer).await);
        let holds = Some((key, LockMode::Exclusive));
        let target = SessionTarget { holds, ..seen(&pair.observer, idle.pid).await };
        for moved in ["SELECT pg_advisory_unlock_all(), pg_advisory_lock(77)", ""] {
            idle.run(moved).await;
            pair.is_left_alone(Verb::Terminate, target.clone(), "it has run another statement since: its ")
                .await;
        }
        let again = SessionTarget { holds, ..seen(&pair.observer, idle.pid).await };
        // Each of the two times is enough.
        let query = SessionTarget { state_change: target.state_change, ..again.clone() };
        pair.is_left_alone(Verb::Terminate, query, "it has run another statement since: its state began")
            .await;
        let (outcome, detail) = pair.hands.one(Verb::Terminate, TargetKind::Session(again)).await;
        assert_eq!(outcome, Outcome::Done, "{version}: {detail}");
    }
}

#[tokio::test]
async fn another_client_is_left_alone_also_in_the_same_transaction() {
    for version in support::versions() {
        let mut pair = Pair::of(version).await;
        let target = pair.target().await;
        let client = |change: fn(&mut plan::Client)| {
            let mut other = target.clone();
            change(&mut other.client);
            other
        };
        for other in [
            client(|client| client.usesysid = Some(1)),
            client(|client| client.address = Some("192.0.2.7".into())),
            client(|client| client.port = Some(7)),
        ] {
            let words = "another client: its role or its address";
            pair.is_left_alone(Verb::Terminate, other, words).await;
        }
        // A name that could not be read is compared with nothing.
        let unread = client(|client| client.application = Some("caf\u{fffd}".into()));
        pair.holder.run("SET application_name = 'the next one'").await;
        let words = "it now serves another client: the next one, not ";
        pair.is_left_alone(Verb::Cancel, target.clone(), words).await;
        pair.is_left_alone(Verb::Terminate, target, words).await;
        let (outcome, detail) = pair.hands.one(Verb::Terminate, TargetKind::Session(unread)).await;
        assert_eq!(outcome, Outcome::Done, "{version}: {detail}");
    }
}

#[tokio::test]
async fn another_query_or_none_is_not_cancelled() {
    for version in support::versions() {
        let mut pair = Pair::of(version).await;
        let waiter = seen(&pair.observer, pair.waiter.pid).await;
        let ExpectedTime::Same(Some(began)) = waiter.xact_start else { panic!("{waiter:?}") };
        let other = SessionTarget {
            query_start: ExpectedTime::Same(Some(began - TimeDelta::microseconds(1))),
            ..waiter.clone()
        };
        pair.is_left_alone(Verb::Cancel, other, "its query has changed: began").await;
        // Cancelling one that is idle in its transaction would return true and free nothing.
        let idle = pair.target().await;
        pair.is_left_alone(Verb::Cancel, idle, "it is idle in transaction").await;
        pair.holder.run("COMMIT").await;
        assert_eq!(pair.waiter.end().await, None, "it was not cancelled");
    }
}

/// It was confirmed while another server was on the screen: both can have a process with that id.
#[tokio::test]
async fn a_command_for_another_server_is_not_tried() {
    let mut pair = Pair::of(support::oldest()).await;
    let target = TargetKind::Session(pair.target().await);
    let other = ActionCommand { server: TargetId(1), ..command(Verb::Terminate, vec![target.clone()]) };
    let report = pair.hands.act(other).await;
    let [result] = report.results.try_into().unwrap();
    assert_eq!(
        (result.outcome, result.detail.as_str()),
        (Outcome::NotTried, "not tried: that belongs to another server")
    );
    assert!(is_connected(&pair.observer, pair.holder.pid).await);
    assert_eq!(pair.hands.notes.all(), Vec::<String>::new());
    // A command for its own server is.
    assert_eq!(pair.hands.one(Verb::Terminate, target).await.0, Outcome::Done);
    assert_eq!(pair.waiter.end().await, None);
}
