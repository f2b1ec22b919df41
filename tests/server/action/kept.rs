//! A session lock that a client left behind in a pool in transaction mode.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use locktop::feed::view_builder::ViewBuilder;
use locktop::model::lock::{LockMode, LockTag};
use locktop::model::lock_name::LockNames;
use locktop::model::plan::{self, Ask, CautionKind, Outcome, PlanContext, SessionTarget, TargetKind, Verb};
use locktop::model::row_id::{LockOwner, RowId};
use locktop::model::task::TaskKey;
use locktop::model::thresholds::Thresholds;
use locktop::model::view::{TargetId, View};
use locktop::pg::conninfo::ConnInfo;
use locktop::pg::poll::{PollConnection as Poll, PollLimits};
use tokio_postgres::Client;

use super::pooler::Pooler;
use super::stage::{Hands, Session, is_connected, pid, seen_in_any_state};
use super::support::{self, open, wait_until};

const KEY: i64 = 1000;

async fn tag(observer: &Client) -> LockTag {
    let sql = "SELECT oid FROM pg_database WHERE datname = current_database()";
    TaskKey::Raw(KEY).tag(observer.query_one(sql, &[]).await.unwrap().get(0))
}

/// Clients of the pool, one after the other, until this is dropped.
struct Traffic(Arc<AtomicBool>);

impl Traffic {
    fn start(pool: &ConnInfo) -> Self {
        let (stop, pool) = (Arc::new(AtomicBool::new(false)), pool.clone());
        let ends = Arc::clone(&stop);
        tokio::spawn(async move {
            while !ends.load(Ordering::Relaxed) {
                let client = open(&pool).await.client;
                for _ in 0..20 {
                    // The one that is served while the session is terminated gets an error.
                    let _ = client.batch_execute("SELECT count(*) FROM hosted").await;
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            }
        });
        Self(stop)
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn context(view: &View) -> PlanContext<'_> {
    PlanContext { view, rights: None, own_pids: &[], terminated: &[] }
}

#[tokio::test]
async fn a_lock_left_in_a_pool_is_released_whichever_client_is_served() {
    for version in support::versions() {
        let server = support::server_of(version).await;
        let info = support::database(server).await;
        let observer = open(&info).await.client;
        observer.batch_execute("CREATE TABLE hosted AS SELECT generate_series(1, 100) AS id").await.unwrap();
        let pooler = Pooler::start_with(server, "transaction", "default_pool_size = 1");
        let pool = ConnInfo::parse(&pooler.target(&info)).unwrap();
        let mut hands = Hands::of(&info).await;
        let held = (tag(&observer).await, LockMode::Exclusive);
        for (of_roots, is_holder) in [(true, false), (false, true)] {
            let first = open(&pool).await.client;
            first.batch_execute(&format!("SELECT pg_advisory_lock({KEY})")).await.unwrap();
            let holder = pid(&first).await;
            drop(first);
            let waiter = Session::open(&info).await;
            let waiter = waiter.begin(&format!("SELECT pg_advisory_lock({KEY})"), &observer, "Lock").await;
            let traffic = Traffic::start(&pool);
            let mut session = Poll::open(&info, PollLimits::default()).await.unwrap();
            let mut view_builder = ViewBuilder::new(TargetId(0), Thresholds::default(), LockNames::default());
            let mut plan = None;
            wait_until("the lock to outlive other statements", async || {
                let view = view_builder.snapshot_taken(session.poll(view_builder.snapshot()).await.unwrap());
                let id = view.snapshot.as_deref().unwrap().backend(holder).unwrap().id();
                let row = if is_holder {
                    RowId::Lock(held.0, LockOwner::Backend(id), held.1)
                } else {
                    RowId::Backend(id)
                };
                let asked = plan::sessions(
                    &context(&view),
                    &Ask { of_roots, ..Ask::new(Verb::Terminate, vec![row]) },
                );
                let is_kept = asked.rows[0].cautions.iter().any(|caution| caution.kind == CautionKind::Keeps);
                plan = Some(asked);
                is_kept
            })
            .await;
            let plan = plan.unwrap();
            // Others are served meanwhile, and the question stays.
            for _ in 0..5 {
                let view = view_builder.snapshot_taken(session.poll(view_builder.snapshot()).await.unwrap());
                assert_eq!(plan::still_there(&plan, &context(&view)), [None]);
            }
            let report = hands.act(plan.command(TargetId::default(), 1, Duration::from_secs(20))).await;
            assert_eq!(report.results[0].outcome, Outcome::Done, "{report:?}");
            assert_eq!(waiter.end().await, None, "the waiter got the lock");
            assert!(!is_connected(&observer, holder).await);
            drop(traffic);
        }
        let asked = hands.notes.all().join("\n");
        assert!(asked.contains("it holds ExclusiveLock on its advisory lock of its session 1000"), "{asked}");
    }
}

/// A key held by the transaction belongs to another client, even if the session held the same key before.
#[tokio::test]
async fn a_lock_that_may_be_of_the_transaction_is_left_alone() {
    for version in support::versions() {
        let info = support::database(support::server_of(version).await).await;
        let observer = open(&info).await.client;
        let mut hands = Hands::of(&info).await;
        let holder = Session::open(&info).await;
        holder.run(&format!("SELECT pg_advisory_lock({KEY})")).await;
        let holds = Some((tag(&observer).await, LockMode::Exclusive));
        let target = SessionTarget { holds, keeps: true, ..seen_in_any_state(&observer, holder.pid).await };

        holder.run(&format!("SELECT pg_advisory_unlock({KEY})")).await;
        let (outcome, detail) = hands.one(Verb::Terminate, TargetKind::Session(target.clone())).await;
        assert_eq!((outcome, detail.starts_with("it no longer holds")), (Outcome::Changed, true), "{detail}");

        // Its transaction has the key, and nothing proves that the session has it too.
        holder.run(&format!("BEGIN; SELECT pg_advisory_xact_lock({KEY})")).await;
        let waiter = Session::open(&info).await;
        let waiter = waiter.begin(&format!("SELECT pg_advisory_lock({KEY})"), &observer, "Lock").await;
        let (outcome, detail) = hands.one(Verb::Terminate, TargetKind::Session(target.clone())).await;
        assert_eq!(outcome, Outcome::Changed, "{detail}");
        assert!(detail.starts_with("it was in a transaction at every try"), "{detail}");
        holder.run("SELECT pg_sleep(0.02); COMMIT").await;
        assert_eq!(waiter.end().await, None);

        // Another session has been waiting since before the transaction: the session has held the lock all
        // the time.
        holder.run(&format!("SELECT pg_advisory_lock({KEY})")).await;
        let waiter = Session::open(&info).await;
        let waiter = waiter.begin(&format!("SELECT pg_advisory_lock({KEY})"), &observer, "Lock").await;
        holder.run("BEGIN; SELECT 1").await;
        let renamed = "SET application_name = 'another client'";
        holder.run(renamed).await;
        let (outcome, detail) = hands.one(Verb::Terminate, TargetKind::Session(target.clone())).await;
        assert_eq!(outcome, Outcome::Done, "{detail}");
        assert_eq!(waiter.end().await, None);
        // Another process id does not match.
        let other = SessionTarget { pid: pid(&observer).await, ..target };
        let (outcome, detail) = hands.one(Verb::Terminate, TargetKind::Session(other)).await;
        assert_eq!(outcome, Outcome::Changed, "{detail}");
    }
}
