//! Actions on rows, requested as by the dashboard: the triggers and rules of a table's owner would run in
//! their statements.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use locktop::action::audit::{AuditLog, ServerName};
use locktop::action::{Executor, ExecutorOrder, ExecutorReply};
use locktop::model::plan::{ActionCommand, ActionReport, Outcome, RowTarget, TargetKind, Verb};
use locktop::pg::conninfo::ConnInfo;

use super::ground::{Ground, one_version, watchers};
use super::stage::{self, Line, command, pid, settings};
use super::stored::trapped;
use super::support::{open, versions};

/// Requests an action of an executor that keeps its record in a file and in the database.
async fn executor(info: &ConnInfo) -> (Executor, tempfile::TempDir) {
    let client = Arc::new(open(info).await.client);
    let pids = vec![pid(&client).await];
    let state = tempfile::tempdir().unwrap();
    let log = AuditLog::new(Some(state.path().to_owned()), settings().actor, ServerName::of(info));
    (Executor::start(Line { client, pids }, log, settings()), state)
}

pub(crate) async fn answered(info: &ConnInfo, order: ExecutorOrder) -> ExecutorReply {
    let (mut executor, _state) = executor(info).await;
    assert_eq!(executor.order(order), None);
    loop {
        match executor.answer().await.unwrap() {
            ExecutorReply::Progress(..) => {}
            answer => return answer,
        }
    }
}

pub(crate) async fn act(info: &ConnInfo, command: ActionCommand) -> ActionReport {
    match answered(info, ExecutorOrder::Act(Arc::new(command))).await {
        ExecutorReply::Reported(report) => Arc::unwrap_or_clone(report),
        answer => panic!("{answer:?}"),
    }
}

/// Whether the text names the owner and the option to type.
pub(crate) fn names_the_owner(text: &str) -> bool {
    text.contains("mallory") && text.contains("--trust-owner")
}

/// Each verb for rows with a row for it.
pub(crate) async fn targets(ground: &Ground, schema: &str, is_own: bool) -> Vec<(Verb, TargetKind)> {
    let client = ground.client("postgres").await;
    let oid = async |table: &str| -> u32 {
        client.query_one(&format!("SELECT '{schema}.{table}'::regclass::oid"), &[]).await.unwrap().get(0)
    };
    let source = |table: &str| format!("{schema}.{table}").into();
    let mut all = Vec::new();
    let token = if is_own { "token" } else { "NULL::int8" };
    let sql = format!(
        "SELECT id::text, owner, ts, EXTRACT(epoch FROM expired_time)::float8, {token} FROM {schema}.distlock ORDER BY id LIMIT 1"
    );
    let row = client.query_one(&sql, &[]).await.unwrap();
    let lease = RowTarget {
        table: oid("distlock").await,
        source: source("distlock"),
        is_own,
        row: stage::lease(&row),
    };
    all.push((Verb::Unlock, TargetKind::Lease(lease)));
    let sql = format!(
        "SELECT id::int8, task_name, is_enabled, next_run_at FROM {schema}.scheduled_tasks ORDER BY id DESC LIMIT 1"
    );
    let row = client.query_one(&sql, &[]).await.unwrap();
    let task = RowTarget {
        table: oid("scheduled_tasks").await,
        source: source("scheduled_tasks"),
        is_own,
        row: stage::task(&row),
    };
    for verb in [Verb::MakeDue, Verb::Disable, Verb::Enable] {
        all.push((verb, TargetKind::Task(task.clone())));
    }
    let attempt = if is_own { "attempt::int8" } else { "NULL::int8" };
    let sql = format!("SELECT id, status, worker_id, {attempt} FROM {schema}.task_queue ORDER BY id");
    for row in client.query(&sql, &[]).await.unwrap() {
        let item = RowTarget {
            table: oid("task_queue").await,
            source: source("task_queue"),
            is_own,
            row: stage::item(&row),
        };
        let verbs: &[Verb] = match item.status.as_deref() {
            Some("pending") => &[Verb::SetAside],
            Some("processing") => &[Verb::Requeue, Verb::SetAside],
            Some("failed") => &[Verb::Requeue],
            _ => &[],
        };
        all.extend(verbs.iter().map(|verb| (*verb, TargetKind::Item(item.clone()))));
    }
    all
}

/// No action changes rows of an untrusted role's tables, and the refusal names the owner.
pub(crate) async fn refuses(ground: &Ground, role: &str, targets: Vec<(Verb, TargetKind)>) {
    for (verb, what) in targets {
        let report = act(&ground.info(role), command(verb, vec![what.clone()])).await;
        ground.is_clean(&format!("{role}, {verb:?} of {what:?}"));
        let result = &report.results[0];
        assert!(
            matches!(result.outcome, Outcome::Refused | Outcome::Forbidden),
            "{role}, {verb:?}: {result:?}"
        );
        assert!(names_the_owner(&result.detail), "{role}, {verb:?}: {result:?}");
    }
}

#[tokio::test]
async fn rows_of_a_strangers_tables_are_left_alone() {
    for version in versions() {
        let ground = trapped(version).await;
        ground.run("mallory", "GRANT ALL ON ALL TABLES IN SCHEMA public TO PUBLIC").await;
        let rows = "SELECT md5((SELECT string_agg(t::text, '') FROM scheduled_tasks t) || (SELECT string_agg(q::text, '') FROM task_queue q)
                    || (SELECT string_agg(d::text, '') FROM distlock d))";
        let before = ground.ask(&rows.replacen("SELECT ", "", 1)).await;
        for role in watchers(version) {
            refuses(&ground, role, targets(&ground, "public", false).await).await;
        }
        assert_eq!(ground.ask(&rows.replacen("SELECT ", "", 1)).await, before, "nothing was changed");
    }
}

/// A trigger on another role's table requires only a privilege: its function does not belong to the owner. Or
/// the function is the server's own, and the condition is not.
pub(crate) fn triggers(schema: &str, table: &str, events: &str) -> [String; 2] {
    [
        format!(
            "CREATE TRIGGER a_row BEFORE {events} ON {schema}.{table} FOR EACH ROW
                 EXECUTE FUNCTION evil.on_row('{table} trigger by privilege')"
        ),
        format!(
            "CREATE TRIGGER a_condition BEFORE {events} ON {schema}.{table} FOR EACH ROW
                 WHEN (evil.no('{table} condition of a trigger')) EXECUTE FUNCTION suppress_redundant_updates_trigger()"
        ),
    ]
}

#[tokio::test]
async fn a_trigger_that_is_not_the_owners_is_not_run() {
    for version in one_version() {
        for kind in 0..2 {
            let ground = Ground::new(version).await;
            ground.tables("postgres").await;
            let grants = "GRANT TRIGGER ON ALL TABLES IN SCHEMA public TO mallory;
                          GRANT ALL ON ALL TABLES IN SCHEMA public TO monitor, ops";
            ground.run("postgres", grants).await;
            for table in ["scheduled_tasks", "task_queue", "distlock"] {
                ground.run("mallory", &triggers("public", table, "UPDATE")[kind]).await;
            }
            for role in watchers(version) {
                for (verb, what) in targets(&ground, "public", false).await {
                    let report = act(&ground.info(role), command(verb, vec![what])).await;
                    ground.is_clean(&format!("{role}, {verb:?}: {report:?}"));
                }
            }
        }
    }
}

/// A trigger that exists only between the check of the triggers and the write.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trigger_created_and_dropped_in_a_race_is_not_run() {
    for version in one_version() {
        for kind in 0..2 {
            let ground = Ground::new(version).await;
            ground.tables("postgres").await;
            // No other privilege is granted, so that only the timing counts.
            let grants = "REVOKE CREATE ON SCHEMA public FROM mallory, PUBLIC; GRANT TRIGGER ON scheduled_tasks TO mallory";
            ground.run("postgres", grants).await;
            let done = AtomicBool::new(false);
            let make = &triggers("public", "scheduled_tasks", "UPDATE")[kind];
            let (count, ()) = tokio::join!(create_and_drop(&ground, make, &done), acting(&ground, &done));
            ground.is_clean(&format!("a trigger created {count} times"));
            assert!(count > 0, "the trigger never existed");
        }
    }
}

async fn create_and_drop(ground: &Ground, make: &str, done: &AtomicBool) -> usize {
    let mallory = ground.client("mallory").await;
    mallory.batch_execute("SET lock_timeout = '20ms'").await.unwrap();
    let mut count = 0;
    while !done.load(Ordering::Relaxed) {
        // Another session writes at the moment: try again.
        count += usize::from(mallory.batch_execute(make).await.is_ok());
        let drop = "DROP TRIGGER IF EXISTS a_row ON scheduled_tasks; DROP TRIGGER IF EXISTS a_condition ON scheduled_tasks";
        let _ = mallory.batch_execute(drop).await;
    }
    count
}

async fn acting(ground: &Ground, done: &AtomicBool) {
    let info = ground.info("boss");
    for _ in 0..if super::support::is_long() { 300 } else { 50 } {
        let mut all = targets(ground, "public", false).await;
        let (verb, what) = all.swap_remove(1);
        act(&info, command(verb, vec![what])).await;
    }
    done.store(true, Ordering::Relaxed);
}
