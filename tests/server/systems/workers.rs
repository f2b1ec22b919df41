//! The first and the third article's tables and workers, as they are printed: the state of each task and item at each moment, and the findings.
//! Tasks and items have the same numbers, and so the same keys.

use locktop::model::plan::{self, PlanContext};
use locktop::model::row_id::RowId;
use locktop::model::view::View;
use tokio_postgres::Client;

use super::stage::Stage;
use super::support::{self, pid, wait_until};

/// A block of an article's SQL.
fn block(text: &'static str, name: &str) -> &'static str {
    text.split("--@ ").find_map(|block| block.strip_prefix(name)?.strip_prefix('\n')).unwrap()
}

/// In its functions, a name shared by a column and an output parameter means the column.
fn tables() -> String {
    let tasks = include_str!("../schema/article.sql");
    let queue = include_str!("../locks_sql/article.sql");
    let repaired =
        |text, name| block(text, name).replace("AS $$\n", "AS $$\n#variable_conflict use_column\n");
    let functions = ["acquire", "release", "fetch"].map(|name| repaired(tasks, name)).concat();
    format!(
        "{} {functions} {} {}
         UPDATE scheduled_tasks SET next_run_at = now() - interval '2 h' WHERE id = 1;
         INSERT INTO task_queue (id, task_name, created_at)
         VALUES (2, 'mail', now() - interval '2 h'), (3, 'mail', now());",
        block(tasks, "tables"),
        block(queue, "queue_table"),
        repaired(queue, "consume"),
    )
}

/// The worker of section 7, which waits where the article sleeps.
const DO_BLOCK: &str = "DO $$
DECLARE
    v_task record;
BEGIN
    SELECT * INTO v_task FROM worker_fetch_and_execute_task('worker-001');
    IF v_task.acquired THEN
        PERFORM pg_advisory_xact_lock(4711);
        PERFORM release_task_lock(v_task.task_id, 'worker-001', 'completed');
    END IF;
END $$;";

/// Task or item, its state, and the session that works on it.
fn states(view: &View) -> Vec<(i64, &'static str, Option<i32>)> {
    let tasks = view.tasks.rows.iter().map(|row| (row.task.id, row.state.as_str(), row.holder));
    let mut all: Vec<_> = tasks.collect();
    let mut items: Vec<_> =
        view.queue.rows.iter().map(|row| (row.id.id, row.state.as_str(), row.pid)).collect();
    items.sort_unstable();
    all.extend(items);
    all
}

/// The findings about tasks, keys and the queue.
fn findings(view: &View) -> Vec<&'static str> {
    let about = ["_task", "_lock", "_item", "queue_pending"];
    let checks = view.findings.iter().map(|finding| finding.check);
    checks.filter(|check| about.iter().any(|end| check.ends_with(end))).collect()
}

async fn run(client: &Client, sql: &str) {
    client.batch_execute(sql).await.unwrap();
}

#[tokio::test]
async fn each_task_and_item_has_its_state_at_each_moment() {
    for version in support::versions() {
        let mut stage = Stage::on(support::server_of(version).await, &tables()).await;
        let (gate, worker, consumer) = (stage.client().await, stage.client().await, stage.client().await);
        let (on_task, on_item) = (pid(&worker).await, pid(&consumer).await);
        let due = |id| (id, "due", None);
        let uncommitted = |id, pid| (id, "running (uncommitted)", Some(pid));

        // The worker is in its DO block; the consumer's driver began a transaction with its first statement.
        run(&gate, "BEGIN; SELECT pg_advisory_xact_lock(4711)").await;
        let works = worker.batch_execute(DO_BLOCK);
        let moments = async {
            wait_until("the worker to be in its task", async || {
                let sql = "SELECT EXISTS (SELECT FROM pg_locks WHERE pid = $1 AND NOT granted)";
                gate.query_one(sql, &[&on_task]).await.unwrap().get(0)
            })
            .await;
            run(&consumer, "BEGIN; SELECT * FROM consume_task()").await;
            let view = stage.poll().await;
            let expected =
                [uncommitted(1, on_task), due(2), due(3), uncommitted(2, on_item), (3, "pending", None)];
            assert_eq!(states(&view), expected, "PostgreSQL {version}");
            assert_eq!(findings(&view), [""; 0], "PostgreSQL {version}");
            assert_eq!((view.queue.depth.pending.number, view.queue.depth.processing.number), (1, 1));
            run(&gate, "COMMIT").await;
        };
        let (done, ()) = tokio::join!(works, moments);
        done.unwrap();
        let view = stage.poll().await;
        assert_eq!(states(&view)[0], (1, "idle", None), "PostgreSQL {version}: completed");

        // The consumer has committed, and the key is still held: no worker can run task 2.
        run(
            &consumer,
            "UPDATE task_queue SET status = 'completed', completed_at = now() WHERE id = 2; COMMIT",
        )
        .await;
        stage.poll().await;
        let view = stage.poll().await;
        assert_eq!(states(&view)[1], (2, "leaked", Some(on_item)), "PostgreSQL {version}");
        assert_eq!(findings(&view), ["leaked_lock"], "PostgreSQL {version}");
        let context = PlanContext { view: &view, rights: None, own_pids: &[], terminated: &[] };
        let refused =
            plan::rows(&context, plan::Verb::Recover, &[RowId::Task(view.tasks.rows[1].task, None)]).refused;
        assert!(refused[0].reason.ends_with("K terminates that session"), "{refused:?}");
        run(&consumer, "SELECT pg_advisory_unlock(2)").await;
        let view = stage.poll().await;
        assert_eq!(states(&view)[1], due(2), "PostgreSQL {version}");

        // A worker that commits its start, and is slow.
        run(&worker, "SELECT try_acquire_task_lock(3, 'worker-001')").await;
        let view = stage.poll().await;
        assert_eq!(states(&view)[2], (3, "running", Some(on_task)), "PostgreSQL {version}");
        run(&gate, "UPDATE task_execution_log SET started_at = now() - interval '2 h' WHERE task_id = 3")
            .await;
        let view = stage.poll().await;
        assert_eq!(states(&view)[2], (3, "slow", Some(on_task)), "PostgreSQL {version}");
        assert_eq!(findings(&view), ["slow_task"], "PostgreSQL {version}");
        let context = PlanContext { view: &view, rights: None, own_pids: &[], terminated: &[] };
        let plan = plan::rows(&context, plan::Verb::Recover, &[RowId::Task(view.tasks.rows[2].task, None)]);
        let does = format!("pg_terminate_backend({on_task}), then UPDATE public.task_execution_log");
        assert!(plan.rows[0].does.starts_with(&does), "{plan:?}");
    }
}

/// A rollback takes back the row of the log, and leaves the session its lock.
#[tokio::test]
async fn a_key_that_a_rollback_left_behind_is_leaked() {
    for version in support::versions() {
        let mut stage = Stage::on(support::server_of(version).await, &tables()).await;
        let worker = stage.client().await;
        run(&worker, "BEGIN; SELECT * FROM worker_fetch_and_execute_task('worker-001'); ROLLBACK").await;
        assert_eq!(states(&*stage.poll().await)[0], (1, "overdue", None), "PostgreSQL {version}: once");
        let leaked = (1, "leaked", Some(pid(&worker).await));
        stage.poll().await;
        assert_eq!(states(&*stage.poll().await)[0], leaked, "PostgreSQL {version}");
    }
}

/// Locktop's own function takes the key when it commits: until then the row shows it.
#[tokio::test]
async fn consume_task_in_an_open_transaction_is_running() {
    for version in support::versions() {
        let ddl = format!(
            "{} INSERT INTO locktop.task_queue (task_name, created_at)
             SELECT 'mail', now() - interval '2 h' + i * interval '1 s' FROM generate_series(1, 2) AS i",
            super::own()
        );
        let mut stage = Stage::on(support::server_of(version).await, &ddl).await;
        let consumer = stage.client().await;
        let works = pid(&consumer).await;
        run(&consumer, "BEGIN; SAVEPOINT s; SELECT * FROM locktop.consume_task(); SELECT 1").await;
        let view = stage.poll().await;
        let expected = [(1, "running (uncommitted)", Some(works)), (2, "pending", None)];
        assert_eq!(states(&view), expected, "PostgreSQL {version}");
        assert_eq!((view.queue.depth.pending.number, view.queue.depth.processing.number), (1, 1));
        assert_eq!(stage.json()["queue_items"][0]["state"], "running");
        run(&consumer, "SELECT * FROM locktop.consume_task()").await;
        let view = stage.poll().await;
        assert_eq!(findings(&view), [""; 0], "PostgreSQL {version}: no item waits");

        // K is about this transaction of this session, and no other one.
        let ask = || {
            let rows = view.queue.rows.iter().map(|row| RowId::Item(row.id)).collect();
            plan::Ask::new(plan::Verb::Terminate, rows)
        };
        let context = PlanContext { view: &view, rights: None, own_pids: &[], terminated: &[] };
        let plan = plan::sessions(&context, &ask());
        let targets: Vec<_> = plan.rows.iter().map(|row| &row.target.what).collect();
        let [plan::TargetKind::Session(session), ..] = targets[..] else { panic!("{plan:?}") };
        assert_eq!((session.pid, plan.rows.len()), (works, 1), "PostgreSQL {version}: {plan:?}");
        assert_eq!(session.holds.unwrap().0.locktype().as_str(), "transactionid");

        run(&consumer, "ROLLBACK").await;
        let pending = [(1, "pending", None), (2, "pending", None)];
        assert_eq!(states(&*stage.poll().await), pending, "PostgreSQL {version}");
        assert_eq!(findings(stage.view()), ["queue_pending"], "PostgreSQL {version}");
        // A change of a pending row that no worker made.
        run(&consumer, "BEGIN; UPDATE locktop.task_queue SET payload = '{}' WHERE id = 1").await;
        let guess = (1, "running? (uncommitted)", Some(works));
        assert_eq!(states(&*stage.poll().await)[0], guess, "PostgreSQL {version}");
        run(&consumer, "ROLLBACK; SELECT * FROM locktop.consume_task()").await;
        assert_eq!(states(&*stage.poll().await)[0], (1, "running", Some(works)), "PostgreSQL {version}");
    }
}
