//! A pool of sessions, and a client that has disconnected by the time of the confirmation: the next client on
//! the same backend, in the same situation and under the same name, is not signalled.
//!
//! Ten rounds of each, 200 in the long tests.

use std::time::Duration;

use locktop::feed::view_builder::ViewBuilder;
use locktop::model::lock_name::LockNames;
use locktop::model::plan::{self, ActionPlan, Ask, Outcome, PlanContext, Verb};
use locktop::model::row_id::{LockOwner, RowId};
use locktop::model::thresholds::Thresholds;
use locktop::model::view::{TargetId, View};
use locktop::pg::conninfo::ConnInfo;
use locktop::pg::poll::{PollConnection as Poll, PollLimits};
use tokio_postgres::Client;

use super::pooler::Pooler;
use super::stage::{Hands, Running, Session, is_connected, pid};
use super::support::{self, open, wait_until};

/// On which screen the target is chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Screen {
    Chains,
    Locks,
    Backends,
}

/// A pool with one session of the server for all its clients, and an observer, a poll and an executor that
/// bypass it.
struct Stage {
    info: ConnInfo,
    pool: ConnInfo,
    observer: Client,
    session: Poll,
    view_builder: ViewBuilder,
    hands: Hands,
    _pooler: Pooler,
}

impl Stage {
    async fn of(version: u32) -> Self {
        let server = support::server_of(version).await;
        let info = support::database(server).await;
        let observer = open(&info).await.client;
        observer.batch_execute("CREATE TABLE t (id int)").await.unwrap();
        let lines = "default_pool_size = 1\nserver_reset_query = DISCARD ALL";
        let pooler = Pooler::start_with(server, "session", lines);
        let pool = ConnInfo::parse(&pooler.target(&info)).unwrap();
        let session = Poll::open(&info, PollLimits::default()).await.unwrap();
        let view_builder = ViewBuilder::new(TargetId(0), Thresholds::default(), LockNames::default());
        let hands = Hands::of(&info).await;
        Self { info, pool, observer, session, view_builder, hands, _pooler: pooler }
    }

    /// The view that the screens show now.
    async fn view(&mut self) -> std::sync::Arc<View> {
        let snapshot = self.session.poll(self.view_builder.snapshot()).await.unwrap();
        self.view_builder.snapshot_taken(snapshot)
    }

    /// The question about a session, as a shortcut on that screen opens it.
    async fn question(&mut self, verb: Verb, screen: Screen, pid: i32) -> ActionPlan {
        let view = self.view().await;
        let snapshot = view.snapshot.as_deref().unwrap();
        let id = snapshot.backend(pid).unwrap().id();
        let of_user = |tag: &locktop::model::lock::LockTag| tag.virtualxid().is_none();
        let held = snapshot
            .locks
            .last_rows()
            .iter()
            .find(|lock| lock.pid == Some(pid) && lock.granted && of_user(&lock.tag));
        let chosen = match (screen, held) {
            (Screen::Locks, Some(lock)) => RowId::Lock(lock.tag, LockOwner::Backend(id), lock.mode),
            _ => RowId::Backend(id),
        };
        let ask = Ask { from_chains: screen == Screen::Chains, ..Ask::new(verb, vec![chosen]) };
        let plan = plan::sessions(&context(&view), &ask);
        assert_eq!((plan.rows.len(), plan.refused.as_slice()), (1, [].as_slice()), "{screen:?}");
        plan
    }

    /// Another client has the session now: the question closes, and a confirmation from a moment before has
    /// no effect.
    async fn is_left_alone(&mut self, plan: &ActionPlan) {
        let report = self.hands.act(plan.command(TargetId::default(), 1, Duration::from_secs(20))).await;
        let [result] = report.results.as_slice() else { panic!("{report:?}") };
        assert_eq!(result.outcome, Outcome::Changed, "{result:?}");
        let view = self.view().await;
        let changes = plan::still_there(plan, &context(&view));
        assert!(changes.iter().all(Option::is_some), "the question stays open: {plan:?}");
    }

    /// A session that waits for the lock, if one has to wait for the holder to be listed in Chains.
    async fn waiter(&self, sql: Option<&str>) -> Option<Running> {
        let sql = sql?;
        Some(Session::open(&self.info).await.begin(sql, &self.observer, "Lock").await)
    }

    /// One client disconnects, and the next one does the same.
    async fn swap(&mut self, case: &Case, screen: Screen) {
        let waits = case.waits.filter(|_| screen != Screen::Backends);
        let first = open(&self.pool).await;
        let shared = pid(&first.client).await;
        first.client.batch_execute(case.does).await.unwrap();
        let waiter = self.waiter(waits).await;
        let plan = self.question(Verb::Terminate, screen, shared).await;
        first.client.batch_execute(case.ends).await.unwrap();
        drop(first);
        if let Some(waiter) = waiter {
            assert_eq!(waiter.end().await, None);
        }
        let second = open(&self.pool).await;
        assert_eq!(pid(&second.client).await, shared, "it is the same session");
        second.client.batch_execute(case.does).await.unwrap();
        let waiter = self.waiter(waits).await;
        self.is_left_alone(&plan).await;
        // A signal on its way would end this.
        second.client.batch_execute("SELECT pg_sleep(0.001)").await.unwrap();
        second.client.batch_execute(case.ends).await.unwrap();
        assert!(is_connected(&self.observer, shared).await);
        drop(second);
        if let Some(waiter) = waiter {
            assert_eq!(waiter.end().await, None);
        }
    }

    /// The same with a running statement, which ends and is followed by the same statement of the next
    /// client.
    async fn swap_active(&mut self, verb: Verb, screen: Screen, gate: &Session) {
        gate.run("SELECT pg_advisory_lock(5)").await;
        let (first, shared) = self.active().await;
        let plan = self.question(verb, screen, shared).await;
        gate.run("SELECT pg_advisory_unlock(5)").await;
        assert_eq!(first.end().await, None);
        gate.run("SELECT pg_advisory_lock(5)").await;
        let (second, same) = self.active().await;
        assert_eq!(same, shared, "it is the same session");
        self.is_left_alone(&plan).await;
        gate.run("SELECT pg_advisory_unlock(5)").await;
        assert_eq!(second.end().await, None, "neither cancelled nor terminated");
    }

    /// A client of the pool whose statement waits for the gate.
    async fn active(&self) -> (Running, i32) {
        let client = Session::open(&self.pool).await;
        let shared = client.pid;
        (client.begin("SELECT pg_advisory_xact_lock(5)", &self.observer, "Lock").await, shared)
    }
}

fn context(view: &View) -> PlanContext<'_> {
    PlanContext { view, rights: None, own_pids: &[], terminated: &[] }
}

/// The statement of both clients, the statement that ends it, and one that waits for it meanwhile.
struct Case {
    does: &'static str,
    ends: &'static str,
    waits: Option<&'static str>,
    screens: &'static [Screen],
}

const IDLE: Case = Case { does: "SELECT 1", ends: "", waits: None, screens: &[Screen::Backends] };

const IN_TRANSACTION: Case = Case {
    does: "BEGIN; LOCK TABLE t",
    ends: "COMMIT",
    waits: Some("SELECT FROM t"),
    screens: &[Screen::Chains, Screen::Locks, Screen::Backends],
};

/// Like a singleton job: the next client takes the same key.
const KEY: Case = Case {
    does: "SELECT pg_advisory_lock(77)",
    ends: "",
    waits: Some("SELECT pg_advisory_xact_lock(77)"),
    screens: &[Screen::Chains, Screen::Locks, Screen::Backends],
};

fn rounds() -> usize {
    if support::is_long() { 200 } else { 10 }
}

async fn no_other_client_is_terminated(case: &Case) {
    let version = support::oldest();
    let mut stage = Stage::of(version).await;
    for screen in case.screens {
        for _ in 0..rounds() {
            stage.swap(case, *screen).await;
        }
        println!("{screen:?}: {} rounds, no other client was terminated", rounds());
    }
}

#[tokio::test]
async fn an_idle_client_and_the_next_one() {
    Box::pin(no_other_client_is_terminated(&IDLE)).await;
}

#[tokio::test]
async fn a_client_in_a_transaction_and_the_next_one() {
    Box::pin(no_other_client_is_terminated(&IN_TRANSACTION)).await;
}

#[tokio::test]
async fn the_holder_of_a_key_and_its_successor() {
    Box::pin(no_other_client_is_terminated(&KEY)).await;
}

#[tokio::test]
async fn a_client_with_a_query_and_the_next_one() {
    let mut stage = Stage::of(support::oldest()).await;
    let gate = Session::open(&stage.info).await;
    for verb in [Verb::Cancel, Verb::Terminate] {
        for screen in [Screen::Chains, Screen::Locks, Screen::Backends] {
            for _ in 0..rounds() {
                stage.swap_active(verb, screen, &gate).await;
            }
            println!("{verb:?} {screen:?}: {} rounds, no other client was signalled", rounds());
        }
    }
}

/// A client that stays is terminated: the other tests do not succeed because no signal is ever sent.
#[tokio::test]
async fn a_client_that_stays_is_ended() {
    let mut stage = Stage::of(support::oldest()).await;
    for case in [IDLE, IN_TRANSACTION, KEY] {
        for screen in case.screens {
            let client = open(&stage.pool).await;
            let shared = pid(&client.client).await;
            client.client.batch_execute(case.does).await.unwrap();
            let waiter = stage.waiter(case.waits.filter(|_| *screen == Screen::Chains)).await;
            let plan = stage.question(Verb::Terminate, *screen, shared).await;
            let report = stage.hands.act(plan.command(TargetId::default(), 1, Duration::from_secs(20))).await;
            assert_eq!(report.results[0].outcome, Outcome::Done, "{report:?}");
            if let Some(waiter) = waiter {
                assert_eq!(waiter.end().await, None);
            }
            wait_until("the session to end", async || !is_connected(&stage.observer, shared).await).await;
        }
    }
}
