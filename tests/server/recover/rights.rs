//! Roles that are permitted only a part.

use locktop::action::Actor;
use locktop::model::plan::{Reason, RecoveryOutcome, RecoveryPlan, Request, Selection, Step};
use locktop::pg::conninfo::ConnInfo;
use locktop::schema::SchemaName;
use locktop_tasks::recovery::{RecoverError, RecoveryNeed, RecoveryOrder, execute, grants, plan};

use super::db::Session;
use super::stage::{Stage, order};
use super::support::{server_of, versions};

/// A new role for a stage, and its connection parameters.
async fn role(stage: &Stage, version: u32) -> (String, ConnInfo) {
    let name = format!("Ops {}", stage.info.dbname());
    stage.admin.run(&format!("CREATE ROLE \"{name}\" LOGIN")).await;
    let text = server_of(version).await.conninfo().replace("user=postgres", &format!("user='{name}'"));
    (name, ConnInfo::parse(&text).unwrap().with_dbname(stage.info.dbname()))
}

async fn planned(session: &Session, select: Selection) -> Result<RecoveryPlan, RecoverError> {
    let request = Request { select, task: None, terminate: true };
    plan(&session.connection.client, &SchemaName::default(), &request).await
}

#[tokio::test]
async fn the_reported_grants_are_enough_for_each_step_of_a_recovery() {
    for version in versions() {
        let stage = Stage::new(version).await;
        stage.orphan("gone").await;
        let worker = stage.slow("slow").await;
        let (name, info) = role(&stage, version).await;
        let session = Session::open_plain(&info).await;
        let actor = Actor { tool: "test".to_owned(), role: name.clone(), os_user: None };
        let order = RecoveryOrder { actor, ..order() };
        let schema = SchemaName::default();
        let needs = |need: RecoveryNeed| grants(&schema, &name, need).join("; ");
        let lists = |detail: &str, need: RecoveryNeed| {
            detail.ends_with(&format!("what the role needs: {}", needs(need)))
        };

        let error = planned(&session, Selection::Orphans).await.unwrap_err().to_string();
        assert!(error.contains("42501") && lists(&error, RecoveryNeed::Plan), "{version} {error}");
        stage.admin.run(&needs(RecoveryNeed::Plan)).await;
        let orphans = planned(&session, Selection::Orphans).await.unwrap();
        assert_eq!(orphans.rows.len(), 1, "{version}");
        let client = &session.connection.client;
        let results = execute(client, &schema, &orphans, &order, |_| {}).await;
        assert_eq!(results[0].outcome, RecoveryOutcome::Forbidden, "{version}");
        assert!(lists(&results[0].detail, RecoveryNeed::Recover), "{version} {results:?}");
        stage.admin.run(&needs(RecoveryNeed::Recover)).await;
        let results = execute(client, &schema, &orphans, &order, |_| {}).await;
        assert_eq!(results[0].outcome, RecoveryOutcome::Recovered, "{version} {results:?}");

        let slow = planned(&session, Selection::Longer(None)).await.unwrap();
        assert_eq!(slow.rows[0].step, Step::Leave(Reason::Hidden), "{version}");
        // It can see the session, but is not permitted to terminate it.
        stage.admin.run(&format!("GRANT pg_read_all_stats TO \"{name}\"")).await;
        let slow = planned(&session, Selection::Longer(None)).await.unwrap();
        stage.admin.run(&format!("CREATE ROLE \"w {name}\" LOGIN")).await;
        let results = execute(client, &schema, &slow, &order, |_| {}).await;
        assert_eq!(results[0].outcome, RecoveryOutcome::Forbidden, "{version} {results:?}");
        assert!(
            lists(&results[0].detail, RecoveryNeed::Terminate) && results[0].audit_id.is_some(),
            "{results:?}"
        );
        assert_eq!(worker.ask("SELECT 1").await, "1", "{version}: it is still connected");
        assert_eq!(stage.audit().await, "recovered|gone\nasked|slow");
        ends_a_worker_of_a_plain_role(&stage, version, &name, &order, &session).await;
    }
}

/// It cannot terminate a superuser's session, but that of another role.
async fn ends_a_worker_of_a_plain_role(
    stage: &Stage,
    version: u32,
    name: &str,
    order: &RecoveryOrder,
    session: &Session,
) {
    let schema = SchemaName::default();
    stage.admin.run(&grants(&schema, name, RecoveryNeed::Terminate).join("; ")).await;
    stage.admin.run(&format!("SELECT pg_terminate_backend(backend_pid) FROM task_execution_log; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA locktop TO \"w {name}\"; GRANT USAGE ON SCHEMA locktop TO \"w {name}\"; GRANT ALL ON ALL SEQUENCES IN SCHEMA locktop TO \"w {name}\"")).await;
    stage.state("slow", "orphan").await;
    stage
        .admin
        .run("INSERT INTO scheduled_tasks (task_name, task_type, next_run_at) VALUES ('plain', 'x', now())")
        .await;
    let text = server_of(version).await.conninfo().replace("user=postgres", &format!("user='w {name}'"));
    let worker = Session::open(&ConnInfo::parse(&text).unwrap().with_dbname(stage.info.dbname())).await;
    let take = "SELECT try_acquire_task_lock(id, 'plain') FROM scheduled_tasks WHERE task_name = 'plain'";
    assert_eq!(worker.ask(take).await, "t", "{version}");
    // A worker that can see nothing knows when the server was started.
    assert_eq!(worker.ask("SELECT up_since()").await, stage.admin.ask("SELECT up_since()").await);
    stage
        .admin
        .run("UPDATE task_execution_log SET started_at = now() - interval '1 day' WHERE worker_id = 'plain'")
        .await;
    let slow = planned(session, Selection::Longer(Some(3_600.0))).await.unwrap();
    assert_eq!(slow.ended_pids(), [worker.pid], "{version}");
    let results = execute(&session.connection.client, &schema, &slow, order, |_| {}).await;
    assert_eq!(results[0].outcome, RecoveryOutcome::Recovered, "{version} {results:?}");
    let actor = "SELECT actor, session_role FROM locktop_audit ORDER BY id DESC LIMIT 1";
    assert_eq!(stage.admin.ask(actor).await, format!("test (role {name})|{name}"));
}
