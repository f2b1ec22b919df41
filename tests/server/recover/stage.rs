//! A database with the schema, tasks in it, and workers that connect and disconnect.

use std::time::Duration;

use locktop::action::Actor;
use locktop::model::plan::{RecoveryPlan, RecoveryResult, Request, Selection};
use locktop::pg::conninfo::ConnInfo;
use locktop::schema::SchemaName;
use locktop_tasks::recovery::{RecoveryOrder, execute, plan};

use super::db::{Session, installed};
use super::support::wait_until;

pub(crate) struct Stage {
    pub(crate) info: ConnInfo,
    /// A session that observes, and makes the changes that a test needs.
    pub(crate) admin: Session,
}

impl Stage {
    /// An empty schema, without any grace: the server has just been started, and there would be nothing but waiting.
    pub(crate) async fn new(version: u32) -> Self {
        let info = installed(version).await;
        let set = format!("ALTER DATABASE {} SET locktop.orphan_grace = '0'", info.dbname());
        Session::open_plain(&info).await.run(&set).await;
        let admin = Session::open(&info).await;
        Self { info, admin }
    }

    /// A task of this name, run by a worker of the same name; its session.
    pub(crate) async fn run(&self, name: &str) -> Session {
        let due = format!(
            "INSERT INTO scheduled_tasks (task_name, task_type, next_run_at) VALUES ('{name}', 'x', now()) RETURNING id"
        );
        let id = self.admin.ask(&due).await;
        let worker = Session::open(&self.info).await;
        // Not by a fetch, which would take an orphan of another name.
        assert_eq!(worker.ask(&format!("SELECT try_acquire_task_lock({id}, '{name}')")).await, "t");
        worker
    }

    /// Another task, run by the same worker in the same session, in time.
    pub(crate) async fn also(&self, worker: &Session, name: &str, max_attempts: u32) {
        let due = format!(
            "INSERT INTO scheduled_tasks (task_name, task_type, next_run_at, max_attempts)
             VALUES ('{name}', 'x', now(), {max_attempts}) RETURNING id"
        );
        let id = self.admin.ask(&due).await;
        assert_eq!(worker.ask(&format!("SELECT try_acquire_task_lock({id}, '{name}')")).await, "t");
    }

    /// The same, past its timeout.
    pub(crate) async fn slow(&self, name: &str) -> Session {
        let worker = self.run(name).await;
        let slow = format!(
            "UPDATE task_execution_log SET started_at = now() - interval '31 minutes' WHERE worker_id = '{name}'"
        );
        self.admin.run(&slow).await;
        worker
    }

    /// The same, and its session ended.
    pub(crate) async fn orphan(&self, name: &str) {
        let worker = self.slow(name).await;
        drop(worker);
        self.state(name, "orphan").await;
    }

    /// Waits until an execution is in a state.
    pub(crate) async fn state(&self, name: &str, state: &str) {
        let sql = format!("SELECT state FROM running_tasks WHERE task_name = '{name}'");
        wait_until(&format!("{name} to be {state}"), async || self.admin.ask(&sql).await == state).await;
    }

    /// The executions of a task in the log: status, and the actor that recovered each.
    pub(crate) async fn log(&self, name: &str) -> String {
        let sql = format!(
            "SELECT status, recovered_by FROM task_history WHERE task_name = '{name}' ORDER BY execution_id"
        );
        self.admin.ask(&sql).await
    }

    /// The audit: each action and its worker.
    pub(crate) async fn audit(&self) -> String {
        self.admin.ask("SELECT action, worker_id FROM locktop_audit ORDER BY id").await
    }

    pub(crate) async fn plan(&self, select: Selection, terminate: bool) -> RecoveryPlan {
        let request = Request { select, task: None, terminate };
        plan(&self.admin.connection.client, &SchemaName::default(), &request).await.unwrap()
    }

    /// Carries a plan out on another session.
    pub(crate) async fn execute(&self, plan: &RecoveryPlan) -> Vec<RecoveryResult> {
        let session = Session::open_plain(&self.info).await;
        execute(&session.connection.client, &SchemaName::default(), plan, &order(), |_| {}).await
    }
}

pub(crate) fn order() -> RecoveryOrder {
    let actor = Actor { tool: "test".to_owned(), role: "postgres".to_owned(), os_user: None };
    RecoveryOrder { actor, reason: Some("it's \\ gone".to_owned()), wait: Duration::from_secs(20) }
}

/// Task and outcome of each.
pub(crate) fn outcomes(plan: &RecoveryPlan, results: &[RecoveryResult]) -> Vec<String> {
    let rows = plan.rows.iter().zip(results);
    rows.map(|(row, result)| format!("{} {}", row.seen.task_name, result.outcome.as_str())).collect()
}
