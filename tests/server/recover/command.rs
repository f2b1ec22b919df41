//! `locktop recover` as a script runs it.

use locktop::demo::postgres::EmbeddedServer;
use locktop::pg::conninfo::ConnInfo;
use locktop::schema::{self, SchemaName};
use serde_json::Value;

use super::binary::{Left, finish, locktop, run_beside};
use super::db::Session;
use super::document::address;
use super::stage::Stage;
use super::support::{database, oldest, open, server_of, versions};

pub(crate) const ROW: [&str; 19] = [
    "id",
    "task_id",
    "task_name",
    "worker_id",
    "state",
    "started_at",
    "heartbeat_at",
    "run",
    "timeout",
    "attempt",
    "max_attempts",
    "lock_key",
    "holder_pid",
    "backend_pid",
    "backend_start",
    "step",
    "reason",
    "effect",
    "also_ended",
];
const DONE: [&str; 10] = [
    "id",
    "task_id",
    "task_name",
    "outcome",
    "detail",
    "holder_pid",
    "ended_pid",
    "audit_id",
    "next_run_at",
    "also_ended",
];

async fn on(server: &EmbeddedServer, info: &ConnInfo, arguments: &[&str]) -> Left {
    let target = address(server, info);
    run_beside(locktop(&[&["recover", &target], arguments].concat())).await
}

async fn recover(stage: &Stage, arguments: &[&str]) -> Left {
    on(server_of(oldest()).await, &stage.info, arguments).await
}

fn json(left: &Left) -> Value {
    assert_eq!((left.out.lines().count(), left.err.as_str()), (1, ""), "{left:?}");
    serde_json::from_str(&left.out).unwrap()
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

fn sorted<'a>(names: &[&'a str]) -> Vec<&'a str> {
    let mut names = names.to_vec();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn a_dry_run_shows_the_plan_and_changes_nothing() {
    let stage = Stage::new(oldest()).await;
    stage.orphan("报表生成任务").await;
    stage.orphan("evil\u{1b}[2J\n").await;
    let worker = stage.slow("slow").await;
    for arguments in [&["--dry-run"][..], &["--dry-run", "--yes", "--orphans"]] {
        let left = recover(&stage, arguments).await;
        assert_eq!((left.status, left.err.as_str()), (Some(0), ""), "{left:?}");
        let lines: Vec<&str> = left.out.lines().collect();
        assert_eq!(lines.len(), 3, "{}", left.out);
        assert!(lines[0].contains("EXECUTION") && lines[1].contains("报表生成任务"), "{}", left.out);
        assert!(lines[1].ends_with("due again in 10s; attempt 1 of 3 failed"), "{}", left.out);
        assert!(!left.out.contains('\u{1b}'), "{:?}", left.out);
    }
    let left = recover(&stage, &["--dry-run", "--timeout", "--terminate", "--task", "slow"]).await;
    let ended = format!(
        "the worker's session {} will be terminated; due again in 10s; attempt 1 of 3 failed",
        worker.pid
    );
    assert!(left.status == Some(0) && left.out.trim_end().ends_with(&ended), "{left:?}");
    let document = json(&recover(&stage, &["--dry-run", "--timeout=10m", "--format", "json"]).await);
    assert_eq!(
        keys(&document),
        sorted(&["format", "schema", "taken_at", "orphan_grace", "dry_run", "plan", "results"])
    );
    assert_eq!(
        (&document["format"], &document["schema"], &document["dry_run"]),
        (&1.into(), &"locktop".into(), &true.into())
    );
    let rows = document["plan"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    for row in rows {
        assert_eq!(keys(row), sorted(&ROW));
        let held = row["task_name"] == "slow";
        assert_eq!(row["step"], if held { "leave" } else { "recover" }, "{row}");
        assert_eq!(row["reason"], if held { "held".into() } else { Value::Null }, "{row}");
        assert!(row["run"].as_f64().unwrap() >= 1_860.0 && row["timeout"] == 1_800.0, "{row}");
        assert_eq!(row["lock_key"]["kind"], "bigint");
    }
    assert_eq!(document["results"].as_array().unwrap().len(), 0);
    assert_eq!((stage.audit().await.as_str(), worker.ask("SELECT 1").await.as_str()), ("", "1"));
}

#[tokio::test]
async fn with_yes_it_recovers_and_exits_with_1_unless_all_are_recovered() {
    let stage = Stage::new(oldest()).await;
    stage.orphan("gone").await;
    stage.orphan("other").await;
    let worker = stage.slow("slow").await;
    let left = recover(&stage, &["--yes", "--task", "gone", "--reason", "node 3 is gone"]).await;
    assert_eq!((left.status, left.err.as_str()), (Some(0), ""), "{left:?}");
    assert!(left.out.contains("gone (execution 1): recovered, runs next at 20"), "{}", left.out);
    assert!(left.out.ends_with("\n1 of 1 recovered.\n"), "{}", left.out);
    let audit = stage.admin.ask("SELECT actor, reason FROM locktop_audit").await;
    assert!(
        audit.starts_with("locktop recover (role postgres") && audit.ends_with(")|node 3 is gone"),
        "{audit}"
    );

    let left = recover(&stage, &["--yes", "--timeout", "--format", "json"]).await;
    assert_eq!(left.status, Some(1), "{left:?}");
    let document = json(&left);
    let results = document["results"].as_array().unwrap();
    let outcomes: Vec<&str> = results.iter().map(|result| result["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["recovered", "left_alone"]);
    assert!(results.iter().all(|result| keys(result) == sorted(&DONE)));
    assert!(results[1]["detail"].as_str().unwrap().contains(&format!("pid {} holds its key", worker.pid)));
    assert_eq!(worker.ask("SELECT 1").await, "1");

    let left = recover(&stage, &["--yes", "--timeout", "--terminate", "--wait", "20s"]).await;
    assert_eq!(left.status, Some(0), "{left:?}");
    assert!(left.out.contains(&format!("pid {} was terminated; key ", worker.pid)), "{}", left.out);
    let left = recover(&stage, &["--yes"]).await;
    assert_eq!((left.status, left.out.as_str()), (Some(0), "Nothing to recover.\n"));
}

#[tokio::test]
async fn a_script_needs_yes_and_invalid_arguments_exit_with_2() {
    let stage = Stage::new(oldest()).await;
    stage.orphan("gone").await;
    let left = recover(&stage, &[]).await;
    assert_eq!((left.status, left.out.as_str()), (Some(2), ""), "{left:?}");
    assert!(
        left.err.starts_with("locktop: recover asks before it acts") && left.err.contains("--yes"),
        "{}",
        left.err
    );
    for wrong in [
        &["--terminate"][..],
        &["--orphans", "--timeout"],
        &["--timeout", "soon"],
        &["--wait", "11m"],
        &["--schema", "pg_x"],
        &["--format", "xml"],
        &["another"],
    ] {
        let left = recover(&stage, &[&["--yes"], wrong].concat()).await;
        assert_eq!((left.status, left.out.as_str()), (Some(2), ""), "{wrong:?} {left:?}");
    }
    let left = recover(&stage, &["--yes", "--task", "n\u{1b}one"]).await;
    assert_eq!(left.status, Some(1));
    assert_eq!(left.err, "locktop: no task \"n␛one\" in the schema \"locktop\"\n");
    assert_eq!(stage.audit().await, "");
}

#[tokio::test]
async fn a_read_only_target_is_not_written_to() {
    let stage = Stage::new(oldest()).await;
    stage.orphan("gone").await;
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.toml");
    let target = address(server_of(oldest()).await, &stage.info);
    std::fs::write(&config, format!("[targets.prod]\nconninfo = \"{target}\"\nread_only = true\n")).unwrap();
    let run = async |arguments: &[&str]| {
        let start = ["recover", "prod", "--config", config.to_str().unwrap()];
        run_beside(locktop(&[&start, arguments].concat())).await
    };
    let left = run(&["--yes"]).await;
    assert!(left.status == Some(2) && left.err.starts_with("locktop: this target is read-only"), "{left:?}");
    assert_eq!(run(&["--dry-run"]).await.status, Some(0));
    assert_eq!(stage.audit().await, "");
}

const PRINTED: &str = "CREATE TABLE scheduled_tasks (id serial PRIMARY KEY, task_name text NOT NULL UNIQUE, next_run_at timestamptz);
    CREATE TABLE task_execution_log (id bigserial PRIMARY KEY, task_id int, worker_id text, status text, started_at timestamptz, lock_id bigint);
    INSERT INTO scheduled_tasks (task_name) VALUES ('sync');
    INSERT INTO task_execution_log (task_id, worker_id, status, started_at, lock_id) VALUES (1, 'w', 'running', now() - interval '1 day', 1)";

#[tokio::test]
async fn a_missing_schema_is_reported_with_the_alternatives() {
    for version in versions() {
        let server = server_of(version).await;
        let info = database(server).await;
        let error = async |arguments: &[&str]| {
            let left = on(server, &info, arguments).await;
            assert_eq!((left.status, left.out.as_str()), (Some(1), ""), "{version} {left:?}");
            left.err.trim_end().to_owned()
        };
        let expected =
            "locktop: this database has no schema \"locktop\" of locktop: run \"locktop schema install\"";
        assert_eq!(error(&["--yes"]).await, expected, "{version}");
        let session = Session::open_plain(&info).await;
        session.run(PRINTED).await;
        // Tables as an article prints them.
        let printed = "; for the tables in \"public\" use --schema public";
        assert_eq!(error(&["--yes"]).await, format!("{expected}{printed}"), "{version}");
        // The server has only just started.
        let ends = on(server, &info, &["--yes", "--timeout", "--terminate", "--schema", "public"]).await;
        assert!(ends.status == Some(1) && ends.out.contains("not known yet whether"), "{ends:?}");
        assert_eq!(session.ask("SELECT status FROM task_execution_log").await, "running");
        // With another name, and a hostile one.
        let name = "My \"Jobs\\' $name @schema@";
        let mut client = open(&info).await.client;
        schema::install(&mut client, &SchemaName::new(name).unwrap()).await.unwrap();
        assert!(
            error(&["--yes"]).await.contains("there is one named \"My \"Jobs\\' $name @schema@\" (--schema)")
        );
        let left = on(server, &info, &["--yes", "--schema", name]).await;
        assert_eq!((left.status, left.out.as_str()), (Some(0), "Nothing to recover.\n"), "{left:?}");
    }
}

/// A held key, a killed worker, a leftover row, and a small number held by another program: as on the screens.
#[tokio::test]
async fn in_published_tables_only_executions_with_a_free_key_are_failed() {
    for version in versions() {
        let server = server_of(version).await;
        let info = database(server).await;
        let admin = Session::open_plain(&info).await;
        admin.run(include_str!("../tasks/recipe.sql")).await;
        admin
            .run(
                "DELETE FROM task_execution_log; DELETE FROM scheduled_tasks;
                 INSERT INTO scheduled_tasks (id, task_name, task_type, next_run_at)
                 SELECT i, n, 'x', now() FROM unnest('{holds,killed,late,left,other,guess}'::text[]) WITH ORDINALITY AS u (n, i);
                 INSERT INTO task_execution_log (task_id, worker_id, status, started_at, lock_id)
                 SELECT t, 'worker-' || w, 'running', now() - a, l
                   FROM (VALUES (1, '001', interval '2 minutes', 1), (2, '002', '2 minutes', 2), (3, '003', '2 hours', 3),
                                (4, '004', '3 hours', 4), (4, '005', '2 minutes', 4), (5, '006', '2 minutes', 5),
                                (6, '007', '2 minutes', 4711)) AS v (t, w, a, l)",
            )
            .await;
        let holders = [("worker-001", 1), ("worker-005", 4), ("psql", 5)];
        let mut sessions = Vec::new();
        for (name, key) in holders {
            let session = Session::open_plain(&info).await;
            session.run(&format!("SET application_name = '{name}'")).await;
            session.run(&format!("SELECT pg_advisory_lock({key})")).await;
            sessions.push(session);
        }
        let config = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(config.path(), "[thresholds]\norphan_grace = \"0s\"\n").unwrap();
        let config = config.path().to_str().unwrap();
        let run = async |arguments: &[&str]| {
            on(server, &info, &[&["--schema", "public", "--config", config], arguments].concat()).await
        };
        let plan = json(&run(&["--dry-run", "--timeout", "1s", "--format", "json"]).await);
        let rows: Vec<(String, String, String)> = plan["plan"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| ["worker_id", "state", "step"].map(|key| row[key].as_str().unwrap().to_owned()).into())
            .collect();
        let row =
            |worker: &str, state: &str, step: &str| (worker.to_owned(), state.to_owned(), step.to_owned());
        let mut expected = [
            row("worker-001", "running", "leave"),
            row("worker-002", "orphan", "recover"),
            row("worker-003", "orphan", "recover"),
            row("worker-004", "unknown", "leave"),
            row("worker-005", "running", "leave"),
            row("worker-006", "unknown", "leave"),
            row("worker-007", "unknown", "leave"),
        ];
        expected.sort();
        let mut found = rows;
        found.sort();
        assert_eq!(found, expected, "{version}");
        let left = run(&["--yes"]).await;
        assert_eq!(left.status, Some(0), "{version} {left:?}");
        assert!(left.out.ends_with("2 of 2 recovered.\n"), "{left:?}");
        let failed = "SELECT string_agg(worker_id, ' ' ORDER BY worker_id) FROM task_execution_log WHERE status = 'failed'";
        assert_eq!(admin.ask(failed).await, "worker-002 worker-003");
        // Whether its number is its key is a guess: it is recovered only by its name.
        let left = run(&["--yes", "--task", "guess"]).await;
        assert!(left.status == Some(0) && left.out.ends_with("1 of 1 recovered.\n"), "{left:?}");
        assert_eq!(admin.ask(failed).await, "worker-002 worker-003 worker-007");
    }
}

#[tokio::test]
async fn an_older_schema_is_reported_with_the_command_to_upgrade() {
    let server = server_of(oldest()).await;
    let info = database(server).await;
    schema::install_up_to(&mut open(&info).await.client, &SchemaName::default(), 1).await.unwrap();
    let left = on(server, &info, &["--yes"]).await;
    let expected =
        "locktop: the schema \"locktop\" is too old for this: run \"locktop schema install\" to upgrade it\n";
    assert_eq!((left.status, left.err.as_str()), (Some(1), expected));
}

/// The reader of the output may end: the recovery is completed, and the exit status is correct.
#[tokio::test]
async fn without_a_reader_it_is_done_all_the_same() {
    let stage = Stage::new(oldest()).await;
    stage.orphan("gone").await;
    let _slow = stage.slow("slow").await;
    let target = address(server_of(oldest()).await, &stage.info);
    for (arguments, status) in [(&["--yes"][..], 0), (&["--yes", "--timeout"], 1)] {
        let mut child = locktop(&[&["recover", &target], arguments].concat()).spawn().unwrap();
        drop(child.stdout.take());
        let left = tokio::task::spawn_blocking(move || finish(child, "locktop recover")).await.unwrap();
        assert_eq!((left.status, left.err.as_str()), (Some(status), ""), "{arguments:?}");
        assert_eq!(stage.audit().await, "recovered|gone");
    }
}
