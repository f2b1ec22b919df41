//! Workers that work inside their transaction: their rows are not visible yet, but their key is.

use locktop::model::plan::{self, Ask, PlanContext, TargetKind, Verb};
use locktop::model::row_id::RowId;
use locktop::model::view::View;

use super::stage::Stage;
use super::support::pid;
use super::{PRINTED, own, support};

const ROWS: &str = "INSERT INTO locktop.scheduled_tasks (task_name, task_type, next_run_at) VALUES ('late', 'sql', now() - interval '1 h');
    INSERT INTO task_queue (task_name, created_at) VALUES ('printed', now() - interval '1 h');";

fn states(view: &View) -> Vec<(&'static str, Option<i32>)> {
    let tasks = view.tasks.rows.iter().map(|row| (row.state.as_str(), row.holder));
    tasks.chain(view.queue.rows.iter().map(|row| (row.state.as_str(), row.pid))).collect()
}

/// The sessions that `K` on the task and on each item would terminate.
fn terminated(view: &View) -> Vec<i32> {
    let tasks = view.tasks.rows.iter().map(|row| RowId::Task(row.task, row.again));
    let rows = tasks.chain(view.queue.rows.iter().map(|row| RowId::Item(row.id)));
    let ask = Ask::new(Verb::Terminate, rows.collect());
    let plan = plan::sessions(&PlanContext { view, rights: None, own_pids: &[], terminated: &[] }, &ask);
    let pid = |what: &TargetKind| match what {
        TargetKind::Session(session) => session.pid,
        other => panic!("{other:?}"),
    };
    plan.rows.iter().map(|row| pid(&row.target.what)).collect()
}

#[tokio::test]
async fn work_in_an_open_transaction_is_neither_overdue_nor_pending() {
    for version in support::versions() {
        let server = support::server_of(version).await;
        let mut stage = Stage::on(server, &format!("{PRINTED}{}{ROWS}", own())).await;
        let mut pids = Vec::new();
        let mut clients = Vec::new();
        for work in [
            "SELECT task_name FROM locktop.worker_fetch_and_execute_task('w-1') WHERE acquired",
            "SELECT pg_try_advisory_lock(id) FROM public.task_queue WHERE status = 'pending' FOR UPDATE SKIP LOCKED",
        ] {
            let client = stage.client().await;
            client.batch_execute("BEGIN").await.unwrap();
            assert_eq!(client.query(work, &[]).await.unwrap().len(), 1, "{work}");
            pids.push(pid(&client).await);
            clients.push(client);
        }
        let view = stage.poll().await;
        let mut expected: Vec<_> = pids.iter().map(|pid| ("running (uncommitted)", Some(*pid))).collect();
        let mut seen = states(&view);
        expected.sort_unstable();
        seen.sort_unstable();
        assert_eq!(seen, expected, "PostgreSQL {version}");
        let checks = view.findings.iter().map(|one| one.check).filter(|one| one.ends_with("_task"));
        assert_eq!(checks.collect::<Vec<_>>(), [""; 0], "PostgreSQL {version}");
        let (mut meant, mut all) = (terminated(&view), pids);
        meant.sort_unstable();
        all.sort_unstable();
        assert_eq!(meant, all, "PostgreSQL {version}");
        // Once it is committed the tables show it.
        for client in &clients {
            client.batch_execute("COMMIT").await.unwrap();
        }
        let view = stage.poll().await;
        assert!(
            states(&view).iter().all(|(state, _)| !state.contains("uncommitted")),
            "PostgreSQL {version}"
        );
    }
}
