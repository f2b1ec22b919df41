//! Two sessions against each other, one of them held at a chosen step.
//!
//! A session that has set `test.gate` to the name of a step stops there until the gate, an advisory lock, is opened. Steps in the
//! middle of a function are those where it writes (triggers) or calls another function (put before it).

use std::sync::Arc;

use locktop::pg::conninfo::ConnInfo;

use super::db::{Session, installed};
use super::support::wait_until;

const GATES: &str = "
CREATE FUNCTION public.gate(step text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('test.gate', true) = step THEN
        PERFORM pg_catalog.pg_advisory_lock_shared(1, 42), pg_catalog.pg_advisory_unlock_shared(1, 42);
    END IF;
END $$;
CREATE FUNCTION public.gate_trigger() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM public.gate(TG_ARGV[0]);
    RETURN NEW;
END $$;
CREATE TRIGGER gate BEFORE UPDATE ON locktop.task_execution_log FOR EACH ROW EXECUTE FUNCTION public.gate_trigger('log');
CREATE TRIGGER gate_insert BEFORE INSERT ON locktop.task_execution_log FOR EACH ROW EXECUTE FUNCTION public.gate_trigger('insert');
CREATE TRIGGER gate BEFORE UPDATE ON locktop.scheduled_tasks FOR EACH ROW EXECUTE FUNCTION public.gate_trigger('task');
CREATE TRIGGER gate BEFORE INSERT ON locktop.locktop_audit FOR EACH ROW EXECUTE FUNCTION public.gate_trigger('audit');
CREATE CONSTRAINT TRIGGER gate_commit AFTER INSERT OR UPDATE ON locktop.task_execution_log
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.gate_trigger('commit');

ALTER FUNCTION locktop.key_holders(bigint) RENAME TO true_key_holders;
CREATE FUNCTION locktop.key_holders(p_key bigint)
RETURNS TABLE (pid integer, backend_start timestamptz, mode text, prepared_gid text) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM public.gate('holders');
    RETURN QUERY SELECT * FROM locktop.true_key_holders(p_key);
END $$;
ALTER FUNCTION locktop.own_backend_start() RENAME TO true_own_backend_start;
CREATE FUNCTION locktop.own_backend_start() RETURNS timestamptz LANGUAGE plpgsql AS $$
BEGIN
    PERFORM public.gate('begin');
    RETURN locktop.true_own_backend_start();
END $$;
";

/// A task that is due, with an execution of it by the session `worker`.
pub(crate) struct Stage {
    pub(crate) info: ConnInfo,
    pub(crate) worker: Arc<Session>,
    pub(crate) one: Arc<Session>,
    pub(crate) two: Arc<Session>,
    pub(crate) watcher: Session,
    pub(crate) task: String,
    pub(crate) execution: String,
}

impl Stage {
    pub(crate) async fn new(version: u32) -> Self {
        let info = installed(version).await;
        let watcher = Session::open(&info).await;
        watcher.run(GATES).await;
        let task = watcher.ask(super::db::DUE).await;
        let [worker, one, two] =
            [Session::open(&info).await, Session::open(&info).await, Session::open(&info).await];
        assert_eq!(worker.ask(&format!("SELECT try_acquire_task_lock({task}, 'w')")).await, "t");
        let execution = watcher.ask("SELECT id FROM task_execution_log").await;
        Self { info, worker: worker.into(), one: one.into(), two: two.into(), watcher, task, execution }
    }

    /// As [`Stage::new`], and the worker's session, which is still connected, has lost its key.
    pub(crate) async fn orphaned(version: u32) -> Self {
        let stage = Self::new(version).await;
        stage.worker.run("SELECT pg_advisory_unlock_all()").await;
        stage
    }

    pub(crate) fn recover(&self) -> String {
        format!("SELECT outcome, holder_pid FROM recover_execution({}, 'test')", self.execution)
    }

    pub(crate) fn finish(&self) -> String {
        format!("SELECT try_release_task_lock({}, 'w', 'completed')", self.task)
    }

    pub(crate) fn acquire(&self) -> String {
        format!("SELECT try_acquire_task_lock({}, 'v')", self.task)
    }

    /// Runs `held` in a session up to a step, then `free` in another until it is done or waits, then opens
    /// the gate. Returns both results, and whether `held` reached the step at all.
    pub(crate) async fn race(
        &self,
        step: &str,
        (held, held_sql): (&Arc<Session>, &str),
        (free, free_sql): (&Arc<Session>, &str),
    ) -> (String, String, bool) {
        self.watcher.run("SELECT pg_advisory_lock(1, 42)").await;
        held.run(&format!("SET test.gate = '{step}'")).await;
        let first = start(held, held_sql);
        let stopped = format!(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND pid = {} AND classid = 1 AND objid = 42",
            held.pid
        );
        wait_until("the first to reach the step", async || {
            first.is_finished() || self.watcher.ask(&stopped).await == "1"
        })
        .await;
        let reached = !first.is_finished();
        let second = start(free, free_sql);
        let waits = format!("SELECT cardinality(pg_blocking_pids({})) > 0", free.pid);
        wait_until("the other to end or wait", async || {
            second.is_finished() || self.watcher.ask(&waits).await == "t"
        })
        .await;
        self.watcher.run("SELECT pg_advisory_unlock(1, 42)").await;
        let results = (first.await.unwrap(), second.await.unwrap(), reached);
        held.run("RESET test.gate").await;
        results
    }

    /// The status of the first execution, and who recovered it.
    pub(crate) async fn mark(&self) -> String {
        self.watcher
            .ask(&format!(
                "SELECT status, recovered_by FROM task_execution_log WHERE id = {}",
                self.execution
            ))
            .await
    }

    /// How often it was marked by another session than its worker's.
    pub(crate) async fn marks(&self) -> String {
        self.watcher
            .ask(&format!(
                "SELECT count(*) FROM locktop_audit WHERE execution_id = {} AND action IN ('recovered', 'gave_up', 'superseded')",
                self.execution
            ))
            .await
    }

    /// Failures counted, and whether the task runs by its schedule or is due (again).
    pub(crate) async fn plan(&self) -> String {
        self.watcher
            .ask(
                "SELECT attempts, CASE WHEN next_run_at = cron_next('0 0 1 1 *', now()) THEN 'schedule'
                       WHEN next_run_at > now() THEN 'retry' ELSE 'due' END FROM scheduled_tasks",
            )
            .await
    }
}

fn start(session: &Arc<Session>, sql: &str) -> tokio::task::JoinHandle<String> {
    let (session, sql) = (Arc::clone(session), sql.to_owned());
    tokio::spawn(async move { session.ask(&sql).await })
}
