//! Old rows that have ended are removed on request; nothing else is.

use super::command::locktop;
use super::db::{DUE, Session, installed};
use super::support::{oldest, server_of, versions};

/// Twenty executions that ended, one a day ago, the next two, …; one that has been running for long; and the same for items and the audit.
async fn filled(version: u32) -> Session {
    let session = Session::open(&installed(version).await).await;
    session.run(&format!("{DUE}; {DUE_TOO}")).await;
    session
        .run(
            "INSERT INTO task_execution_log (task_id, worker_id, status, started_at, completed_at)
             SELECT 1, 'w', CASE g % 2 WHEN 0 THEN 'failed' ELSE 'completed' END, now() - g * interval '1 day', now() - g * interval '1 day' + interval '1 hour'
               FROM generate_series(1, 20) g;
             INSERT INTO task_execution_log (task_id, worker_id, status, started_at) VALUES (1, 'w', 'running', now() - interval '90 days');
             -- Began long ago, and ended just now.
             INSERT INTO task_execution_log (task_id, worker_id, status, started_at, completed_at)
             VALUES (1, 'w', 'completed', now() - interval '80 days', now());
             -- A task with a short history keeps all of it.
             INSERT INTO task_execution_log (task_id, worker_id, status, started_at, completed_at)
             SELECT 2, 'w', 'completed', now() - interval '70 days', now() - interval '70 days' FROM generate_series(1, 9);
             INSERT INTO task_queue (task_name, status, created_at, completed_at)
             SELECT 'x', s, now() - interval '60 days', CASE WHEN s IN ('completed', 'failed') THEN now() - interval '50 days' END
               FROM unnest('{pending,processing,completed,failed}'::text[]) s, generate_series(1, 3);
             INSERT INTO task_queue (task_name, status, completed_at) VALUES ('x', 'completed', now());
             INSERT INTO locktop_audit (action, actor, at) VALUES ('old', 'me', now() - interval '40 days'), ('new', 'me', now())",
        )
        .await;
    session
}

const DUE_TOO: &str = "INSERT INTO scheduled_tasks (task_name, task_type) VALUES ('other', 'sql')";
const EXECUTIONS: &str =
    "SELECT task_id, status, count(*) FROM task_execution_log GROUP BY 1, 2 ORDER BY 1, 2";
const ITEMS: &str = "SELECT status, count(*) FROM task_queue GROUP BY 1 ORDER BY 1";

#[tokio::test]
async fn only_old_rows_that_ended_are_removed_and_ten_per_task_are_kept() {
    for version in versions() {
        let session = filled(version).await;
        let candidates = "SELECT log, old_rows FROM purge_candidates('15 days')";
        assert_eq!(session.ask(candidates).await, "executions|5\nqueue|6\naudit|1", "{version}");
        // Those older than fifteen days; then all that are not among the last ten.
        assert_eq!(
            session.ask("SELECT purge_executions('15 days', 2), purge_executions('15 days')").await,
            "2|3"
        );
        assert_eq!(session.ask("SELECT purge_executions('15 days')").await, "0", "{version}");
        assert_eq!(session.ask("SELECT purge_executions('0')").await, "6", "{version}");
        assert_eq!(session.ask("SELECT purge_executions('0')").await, "0", "{version}");
        assert_eq!(session.ask(EXECUTIONS).await, "1|completed|5\n1|failed|5\n1|running|1\n2|completed|9");
        // Among them the ten that began last, all of which are kept.
        let last = "SELECT count(*) FROM task_execution_log WHERE task_id = 1 AND started_at > now() - interval '10 days 1 hour'";
        assert_eq!(session.ask(last).await, "10", "{version}");
        assert_eq!(session.ask("SELECT purge_queue('30 days', 4), purge_queue('30 days')").await, "4|2");
        assert_eq!(session.ask(ITEMS).await, "completed|1\npending|3\nprocessing|3", "{version}");
        assert_eq!(session.ask("SELECT purge_audit('30 days')").await, "1", "{version}");
        let record = "SELECT action, count(*) FROM locktop_audit GROUP BY 1 ORDER BY 1";
        assert_eq!(session.ask(record).await, "new|1\npurged|6", "{version}");
        // The audit is append-only, for its owner too.
        assert!(session.refused("DELETE FROM locktop_audit").await.starts_with("42501"), "{version}");
        assert!(session.refused("SELECT purge_executions()").await.starts_with("22023"), "{version}");
    }
}

#[tokio::test]
async fn a_setting_defines_the_retention_and_locked_rows_are_skipped() {
    for version in versions() {
        let session = filled(version).await;
        let other = Session::open(&session.info).await;
        session.run("SET locktop.keep_queue = '30 days'").await;
        assert_eq!(session.ask("SELECT log, keep FROM purge_candidates()").await, "queue|30 days");
        other.run("BEGIN; SELECT * FROM task_queue WHERE id = 7 FOR UPDATE").await;
        session.run("CALL purge()").await;
        assert_eq!(session.ask(ITEMS).await, "completed|2\npending|3\nprocessing|3", "{version}");
        other.run("ROLLBACK").await;
        session.run("CALL purge()").await;
        assert_eq!(session.ask(ITEMS).await, "completed|1\npending|3\nprocessing|3", "{version}");
        assert_eq!(
            session.ask("SELECT count(*) FROM task_execution_log").await,
            "31",
            "no retention is set for it"
        );
        // A role that can delete, but does not own the audit, cannot purge it.
        let role = format!("cleaner_of_{}", session.info.dbname());
        session
            .run(&format!(
                "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA locktop TO {role}; GRANT ALL ON ALL TABLES IN SCHEMA locktop TO {role};
                 GRANT ALL ON ALL SEQUENCES IN SCHEMA locktop TO {role}; SET SESSION AUTHORIZATION {role}"
            ))
            .await;
        let error = session.refused("SELECT purge_audit('30 days')").await;
        assert!(error.starts_with("42501 DELETE of locktop.locktop_audit is refused"), "{version}: {error}");
    }
}

/// From the planner's statistics only: the rows are not counted.
#[tokio::test]
async fn a_log_that_is_past_its_retention_is_a_finding() {
    for version in versions() {
        let session = Session::open(&installed(version).await).await;
        session
            .run(&format!(
                "{DUE}; INSERT INTO task_execution_log (task_id, worker_id, status, started_at, completed_at)
                 SELECT 1, 'w', 'completed', now() - g * interval '2 minutes', now() - g * interval '2 minutes' FROM generate_series(1, 36000) g;
                 ANALYZE task_execution_log; ALTER DATABASE {} SET locktop.keep_executions = '30 days'",
                session.info.dbname()
            ))
            .await;
        let server = server_of(version).await;
        let output = locktop(server, &session.info, &["snapshot", "--format", "json"]);
        let json: serde_json::Value = serde_json::from_str(&output.1).unwrap();
        let summaries: Vec<&str> = json["findings"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|finding| finding["check"] == "log_growth")
            .map(|finding| finding["summary"].as_str().unwrap())
            .collect();
        // Twenty of fifty days.
        let expected =
            "locktop.task_execution_log: about 14.4k rows are past their retention; locktop schema purge";
        let [summary] = summaries[..] else { panic!("{version}: {summaries:?} {output:?}") };
        let digits = summary.replace(|c: char| !(c.is_ascii_digit() || c == '.'), "");
        let digits = digits.trim_matches('.');
        assert_eq!(summary.replace(digits, "14.4"), expected, "{version}");
        assert!((13.5..15.5).contains(&digits.parse::<f64>().unwrap()), "{version}: {summary}");
    }
}

#[tokio::test]
async fn the_command_reports_what_it_removes() {
    let version = oldest();
    let session = filled(version).await;
    let server = server_of(version).await;
    let run = |arguments: &[&str]| {
        let arguments = [&["schema", "purge", "--yes"], arguments].concat();
        let (status, out, error) = locktop(server, &session.info, &arguments);
        (status, out + &error)
    };
    let (status, printed) = run(&[]);
    assert!(status == 2 && printed.contains("no retention is set: give --keep 30d"), "{printed}");
    let removed = "Removed 5 rows of task_execution_log, 6 rows of task_queue.\n";
    let keep = ["--keep", "15d", "--only", "executions", "--only", "queue"];
    assert_eq!(run(&keep), (0, removed.to_owned()));
    let nothing = "task_execution_log: 0 rows older than 15 days\ntask_queue: 0 rows older than 15 days\nNothing to remove.\n";
    assert_eq!(run(&keep), (0, nothing.to_owned()));
    let database = session.info.dbname();
    session.run(&format!("ALTER DATABASE {database} SET locktop.keep_audit = '30 days'")).await;
    assert_eq!(run(&[]), (0, "Removed 1 row of locktop_audit.\n".to_owned()));
}
