//! The record of actions: in the file before the action, and also in the database.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use locktop::action::audit::{AuditLog, ServerName};
use locktop::action::{ActionRecord, ActionRequest, Actor};
use locktop::model::backend::BackendId;
use locktop::model::finding::Subject;
use locktop::model::plan::{
    self, ExpectedTime, Outcome, SessionTarget, Target, TargetKind, TargetResult, Verb,
};
use locktop::pg::conninfo::ConnInfo;
use serde_json::Value;
use tokio_postgres::Client;

use super::binary::{Left, locktop, run_beside};
use super::db::Session;
use super::document::address;
use super::stage::Stage;
use super::support::{oldest, server_of, versions};

fn lines(directory: &Path) -> Vec<Value> {
    let text = fs::read_to_string(directory.join("audit.jsonl")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

async fn recover(stage: &Stage, home: &Path) -> Left {
    let target = address(server_of(oldest()).await, &stage.info);
    let mut command = locktop(&["recover", &target, "--yes"]);
    command.env("XDG_STATE_HOME", home);
    run_beside(command).await
}

#[tokio::test]
async fn each_action_of_the_command_is_recorded() {
    let stage = Stage::new(oldest()).await;
    stage.orphan("gone").await;
    let home = tempfile::tempdir().unwrap();
    let left = recover(&stage, home.path()).await;
    assert_eq!(left.status, Some(0), "{left:?}");
    let lines = lines(&home.path().join("locktop"));
    assert_eq!(lines.len(), 2, "{lines:?}");
    let [asked, result] = [&lines[0], &lines[1]];
    assert_eq!((&asked["event"], &asked["verb"]), (&"asked".into(), &"recover".into()));
    assert_eq!((&asked["target"]["kind"], &asked["target"]["worker"]), (&"execution".into(), &"gone".into()));
    assert_eq!(
        (&asked["target"]["task_name"], &asked["target"]["schema"]),
        (&"gone".into(), &"locktop".into())
    );
    assert_eq!(
        (&asked["who"]["tool"], &asked["who"]["role"]),
        (&"locktop recover".into(), &"postgres".into())
    );
    assert_eq!(asked["server"]["database"], stage.info.dbname());
    let identifier = stage.admin.ask("SELECT system_identifier FROM pg_control_system()").await;
    assert_eq!(asked["server"]["system_identifier"], identifier);
    assert_eq!((&result["fate"], &result["id"]), (&"done".into(), &asked["id"]));
    assert_eq!(stage.audit().await, "recovered|gone");
}

#[tokio::test]
async fn without_a_record_nothing_is_done() {
    let stage = Stage::new(oldest()).await;
    stage.orphan("gone").await;
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join("locktop")).unwrap();
    fs::set_permissions(home.path().join("locktop"), fs::Permissions::from_mode(0o777)).unwrap();
    let left = recover(&stage, home.path()).await;
    assert_eq!(left.status, Some(1), "{left:?}");
    let path = home.path().display();
    let message = format!("{path}/locktop: other users can write to it; chmod go-w {path}/locktop, or set");
    assert!(left.err.contains(&message) && left.err.contains("; nothing was changed"), "{left:?}");
    assert_eq!(stage.audit().await, "");
    // A file that cannot be written is detected only when it is written.
    fs::set_permissions(home.path().join("locktop"), fs::Permissions::from_mode(0o700)).unwrap();
    fs::create_dir(home.path().join("locktop/audit.jsonl")).unwrap();
    let left = recover(&stage, home.path()).await;
    assert_eq!(left.status, Some(1), "{left:?}");
    assert!(left.out.contains("not done, because it could not be recorded"), "{left:?}");
    assert_eq!(stage.audit().await, "");
}

fn target(pid: i32) -> Target {
    let start = "2026-11-21T03:00:00.123456Z".parse().unwrap();
    let session = SessionTarget {
        client: plan::Client::default(),
        state_change: ExpectedTime::Any,
        pid,
        backend_start: start,
        xact_start: ExpectedTime::Any,
        query_start: ExpectedTime::Any,
        holds: None,
        keeps: false,
        blocks: false,
    };
    let subject = Subject::Backend(BackendId { pid, backend_start: Some(start) });
    Target { what: TargetKind::Session(session), name: format!("{pid} it's\u{1b}[2J"), subject }
}

/// An action on one target, from the request to the result; returns the errors of writes other than to the
/// file.
async fn act(log: &AuditLog, client: &Client, number: u64, pid: i32) -> Vec<String> {
    let target = target(pid);
    let verb = Verb::Terminate;
    let asked = ActionRequest { number, verb, target: &target, statement: "pg_terminate_backend" };
    let entry = log.asked(Some(client), &asked).await.unwrap();
    let result = TargetResult {
        name: target.name.clone(),
        subject: target.subject,
        outcome: Outcome::Done,
        detail: "ended".to_owned(),
    };
    log.write_result(Some(client), &asked, Some(entry), &result).await.unwrap();
    log.notes().await
}

#[tokio::test]
async fn an_action_on_a_session_is_recorded_in_the_table_too() {
    for version in versions() {
        let stage = Stage::new(version).await;
        let directory = tempfile::tempdir().unwrap();
        let log = |role: &str, info: &ConnInfo| {
            let actor = Actor { tool: "test".to_owned(), role: role.to_owned(), os_user: None };
            AuditLog::new(Some(directory.path().to_owned()), actor, ServerName::of(info))
        };
        let admin = log("postgres", &stage.info);
        assert_eq!(act(&admin, &stage.admin.connection.client, 1, 4312).await, [""; 0], "{version}");
        let rows = stage
            .admin
            .ask("SELECT action, actor, target_pid, target_start = '2026-11-21T03:00:00.123456Z', detail FROM locktop_audit ORDER BY id")
            .await;
        let id = lines(directory.path())[0]["id"].as_str().unwrap().to_owned();
        let asked = format!("asked|test (role postgres)|4312|t|terminate 4312 it's\u{1b}[2J (record {id})");
        assert_eq!(rows, format!("{asked}\nresult|test (role postgres)|4312|t|done: ended"), "{version}");

        // A role that is not permitted to write there, and the grants that are reported.
        let name = format!("ops {}", stage.info.dbname());
        stage.admin.run(&format!("CREATE ROLE \"{name}\" LOGIN")).await;
        let text = server_of(version).await.conninfo().replace("user=postgres", &format!("user='{name}'"));
        let info = ConnInfo::parse(&text).unwrap().with_dbname(stage.info.dbname());
        let session = Session::open_plain(&info).await;
        let ops = log(&name, &info);
        let notes = act(&ops, &session.connection.client, 2, 1).await;
        let [note] = notes.as_slice() else { panic!("{version} {notes:?}") };
        let grants = note.split_once("the role needs ").unwrap().1;
        assert_eq!(
            act(&ops, &session.connection.client, 3, 2).await,
            [""; 0],
            "{version}: it is reported once"
        );
        assert_eq!(stage.admin.ask("SELECT count(*) FROM locktop_audit").await, "2", "{version}");
        stage.admin.run(grants).await;
        assert_eq!(act(&ops, &session.connection.client, 4, 3).await, [""; 0], "{version}");
        assert_eq!(stage.admin.ask("SELECT count(*) FROM locktop_audit").await, "4", "{version} {grants}");

        // A table that another session has locked delays no action.
        let other = Session::open(&stage.info).await;
        other.run("BEGIN; LOCK TABLE locktop_audit IN ACCESS EXCLUSIVE MODE").await;
        let notes = act(&admin, &stage.admin.connection.client, 5, 4).await;
        assert!(notes.len() == 1 && notes[0].contains("55P03"), "{version} {notes:?}");
        assert_eq!(lines(directory.path()).len(), 10, "{version}: the file has all of them");
    }
}
