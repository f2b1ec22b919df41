//! A slow execution of a published log: its session is terminated only if it is the one that was seen, holds the key, and works on the row that was
//! seen. A row whose key is held for another execution is closed without it.

use locktop::model::lock::{LockMode, LockTag};
use locktop::model::plan::{
    Outcome, PublishedHolder, PublishedTarget, RowTarget, SessionTarget, TargetKind, Verb,
};
use locktop::model::task::{Execution, TaskKey};
use tokio_postgres::Client;

use super::stage::{Hands, Session, is_connected, seen_in_any_state};
use super::support::{self, open};

/// Two executions of task 1 in a published log, by worker-001 and worker-002.
struct Log {
    observer: Client,
    hands: Hands,
    worker: Session,
    other: Session,
    tag: LockTag,
}

impl Log {
    async fn new(version: u32) -> Self {
        let info = support::database(support::server_of(version).await).await;
        let observer = open(&info).await.client;
        observer.batch_execute(include_str!("../tasks/recipe.sql")).await.unwrap();
        let row = observer.query_one("SELECT oid FROM pg_database WHERE datname = current_database()", &[]);
        let tag = TaskKey::Raw(1).tag(row.await.unwrap().get(0));
        let (worker, other) = (Session::open(&info).await, Session::open(&info).await);
        Self { observer, hands: Hands::of(&info).await, worker, other, tag }
    }

    /// The rows as they are at first; only worker-001's session holds the key.
    async fn fill(&self) {
        self.worker.run("SELECT pg_advisory_unlock_all()").await;
        self.other.run("SELECT pg_advisory_unlock_all()").await;
        self.observer
            .batch_execute(
                "TRUNCATE task_execution_log RESTART IDENTITY;
                 INSERT INTO task_execution_log (task_id, worker_id, status, started_at, lock_id)
                 VALUES (1, 'worker-001', 'running', now() - interval '2 h', 1), (1, 'worker-002', 'running', now(), 1)",
            )
            .await
            .unwrap();
        self.worker.run("SELECT pg_advisory_lock(1)").await;
    }

    async fn target(&self, holder: PublishedHolder) -> PublishedTarget {
        let sql =
            "SELECT 'task_execution_log'::regclass::oid, started_at FROM task_execution_log WHERE id = 1";
        let row = self.observer.query_one(sql, &[]).await.unwrap();
        PublishedTarget {
            execution: RowTarget {
                table: row.get(0),
                source: "public.task_execution_log".into(),
                is_own: false,
                row: Execution {
                    id: 1,
                    task_id: 1,
                    worker: Some("worker-001".into()),
                    started_at: row.get(1),
                    ..Execution::default()
                },
            },
            name: None,
            key: 1,
            holder,
        }
    }

    async fn session(&self, session: &Session) -> SessionTarget {
        let seen = seen_in_any_state(&self.observer, session.pid).await;
        SessionTarget { holds: Some((self.tag, LockMode::Exclusive)), ..seen }
    }

    async fn is(&mut self, target: &PublishedTarget, outcome: Outcome, words: &str) {
        let what = TargetKind::Published(target.clone());
        let (result, detail) = self.hands.one(Verb::Recover, what).await;
        assert_eq!(result, outcome, "{detail}");
        assert!(detail.contains(words), "{detail}");
    }

    async fn statuses(&self) -> String {
        let sql = "SELECT string_agg(status, ' ' ORDER BY id) FROM task_execution_log";
        self.observer.query_one(sql, &[]).await.unwrap().get(0)
    }
}

#[tokio::test]
async fn the_session_is_terminated_only_as_it_was_seen() {
    for version in support::versions() {
        let mut log = Log::new(version).await;
        log.fill().await;
        let session = log.session(&log.worker).await;
        let seen = log.target(PublishedHolder::Worker(session.clone())).await;
        let is = |holder: SessionTarget| PublishedTarget {
            holder: PublishedHolder::Worker(holder),
            ..seen.clone()
        };
        let micro = chrono::TimeDelta::microseconds(1);
        let younger = SessionTarget { backend_start: session.backend_start + micro, ..session.clone() };
        log.is(&is(younger), Outcome::Changed, "is another session").await;
        let client = locktop::model::plan::Client { application: Some("x".into()), ..session.client.clone() };
        log.is(&is(SessionTarget { client, ..session.clone() }), Outcome::Changed, "serves another client")
            .await;
        let other = log.session(&log.other).await;
        log.is(&is(other), Outcome::Changed, "no longer holds ExclusiveLock on its advisory").await;

        // It has finished that row, and works on the next one with the same key.
        for done in ["status = 'completed'", "worker_id = 'worker-003'", "started_at = now()"] {
            log.fill().await;
            let seen = PublishedTarget { ..log.target(PublishedHolder::Worker(session.clone())).await };
            let sql = format!("UPDATE task_execution_log SET {done} WHERE id = 1");
            log.observer.batch_execute(&sql).await.unwrap();
            log.is(&seen, Outcome::Changed, "the execution has ended, or another worker has it").await;
        }
        // The key is another session's by now.
        log.fill().await;
        let seen = log.target(PublishedHolder::Worker(session.clone())).await;
        log.worker.run("SELECT pg_advisory_unlock(1)").await;
        log.other.run("SELECT pg_advisory_lock(1)").await;
        log.is(&seen, Outcome::Changed, "no longer holds ExclusiveLock on its advisory").await;
        for session in [&log.worker, &log.other] {
            assert!(is_connected(&log.observer, session.pid).await, "PostgreSQL {version}");
        }
        assert_eq!(log.statuses().await, "running running", "PostgreSQL {version}");

        // Any session may acquire the key when it is free: the row still belongs to the terminated session.
        log.fill().await;
        let seen = log.target(PublishedHolder::Worker(session.clone())).await;
        let waits = log.other.run("SELECT pg_advisory_lock(1)");
        let act = log.hands.one(Verb::Recover, TargetKind::Published(seen));
        let ((result, detail), ()) = tokio::join!(act, waits);
        assert_eq!(result, Outcome::Done, "PostgreSQL {version}: {detail}");
        assert_eq!(detail, format!("session {} was terminated; marked as failed", session.pid));
        assert!(
            !is_connected(&log.observer, session.pid).await
                && is_connected(&log.observer, log.other.pid).await
        );
        assert_eq!(log.statuses().await, "failed running", "PostgreSQL {version}");
    }
}

#[tokio::test]
async fn a_row_left_over_is_closed_while_its_key_is_held_for_the_other_one() {
    for version in support::versions() {
        let mut log = Log::new(version).await;
        log.fill().await;
        let session = log.session(&log.worker).await;
        let holder = |pid, execution, worker: &str| PublishedHolder::Other {
            pid,
            backend_start: session.backend_start,
            execution,
            worker: worker.into(),
        };
        let busy = "a session holds key 1: a worker may be working on it";
        for other in [
            holder(log.other.pid, 2, "worker-002"),
            holder(session.pid, 2, "worker-003"),
            holder(session.pid, 3, "worker-002"),
        ] {
            log.is(&log.target(other).await, Outcome::Refused, busy).await;
        }
        let seen = log.target(holder(session.pid, 2, "worker-002")).await;
        log.is(&seen, Outcome::Done, "marked as failed").await;
        assert_eq!(log.statuses().await, "failed running", "PostgreSQL {version}");
        // The other one has ended as well, and the key is free.
        log.fill().await;
        let seen = log.target(holder(session.pid, 2, "worker-002")).await;
        log.observer
            .batch_execute("UPDATE task_execution_log SET status = 'completed' WHERE id = 2")
            .await
            .unwrap();
        log.is(&seen, Outcome::Refused, busy).await;
        log.worker.run("SELECT pg_advisory_unlock(1)").await;
        log.is(&seen, Outcome::Done, "marked as failed").await;
        assert!(is_connected(&log.observer, session.pid).await, "PostgreSQL {version}");
    }
}
