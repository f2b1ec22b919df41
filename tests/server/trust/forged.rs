//! A forged schema (S2): marked like one of locktop's, and everything in it is mallory's.

use locktop::action::{ExecutorOrder, ExecutorReply};
use locktop::model::plan::{Outcome, Request, Selection, TargetKind, Verb};
use locktop::model::view::TargetId;
use locktop::schema::{self, SchemaName};

use super::actions::{act, answered, names_the_owner, refuses, targets};
use super::commands::every_command;
use super::ground::{Ground, one_version, watchers};
use super::snapshots::{command, limits, poll_once};
use super::stage::{Session, command as confirmed, seen};
use super::support::versions;

/// Objects that record every call of them.
const FORGED: &str = include_str!("forged.sql");

/// A database with locktop's schema, which is this role's.
pub(crate) async fn installed(version: u32, owner: &'static str) -> Ground {
    let ground =
        Ground::like(version, &format!("installed by {owner}"), async |ground| install(ground, owner).await)
            .await;
    without_grace(&ground).await;
    ground
}

async fn install(ground: &Ground, owner: &str) {
    ground.run("postgres", &format!("GRANT CREATE ON DATABASE {} TO {owner}", ground.name())).await;
    let mut client = ground.client(owner).await;
    schema::install(&mut client, &SchemaName::default()).await.unwrap();
    let grants =
        "GRANT USAGE ON SCHEMA locktop TO PUBLIC; GRANT ALL ON ALL TABLES IN SCHEMA locktop TO PUBLIC;
                  GRANT ALL ON ALL SEQUENCES IN SCHEMA locktop TO PUBLIC";
    client.batch_execute(grants).await.unwrap();
}

/// The server has just been started.
async fn without_grace(ground: &Ground) {
    let set = format!("ALTER DATABASE {} SET locktop.orphan_grace = '0'", ground.name());
    ground.run("postgres", &set).await;
}

async fn forged(version: u32) -> Ground {
    let ground = Ground::like(version, "forged", async |ground| {
        install(ground, "mallory").await;
        ground.run("mallory", FORGED).await;
    })
    .await;
    without_grace(&ground).await;
    ground
}

/// Cancels or terminates a session of an ordinary role through an executor; returns the lines of the report.
pub(crate) async fn signalled(ground: &Ground, role: &str, verb: Verb) -> Vec<String> {
    let observer = ground.client("postgres").await;
    let info = ground.info("app").with_application_name("stage");
    let session = Session::open(&info).await;
    let running = session.begin("SELECT pg_sleep(60)", &observer, "Timeout").await;
    let target = seen(&observer, running.pid).await;
    let report = act(&ground.info(role), confirmed(verb, vec![TargetKind::Session(target)])).await;
    let result = report.results[0].clone();
    if result.outcome == Outcome::Done {
        let expected = if verb == Verb::Cancel { "57014" } else { "57P01" };
        assert_eq!(running.end().await.as_deref(), Some(expected));
    } else {
        running.task.abort();
    }
    let mut lines = report.notes;
    lines.push(format!("{:?}: {}", result.outcome, result.detail));
    lines
}

#[tokio::test]
async fn to_end_a_session_writes_nothing_into_a_strangers_record() {
    for version in versions() {
        let ground = forged(version).await;
        // The monitor is not permitted to signal sessions.
        for role in watchers(version).into_iter().filter(|role| *role != "monitor") {
            for verb in [Verb::Cancel, Verb::Terminate] {
                let lines = signalled(&ground, role, verb).await;
                ground.is_clean(&format!("{role}, {verb:?}"));
                assert!(lines.iter().any(|line| names_the_owner(line)), "{role}: {lines:?}");
                assert!(lines.last().unwrap().starts_with("Done"), "{role}: {lines:?}");
            }
        }
    }
}

#[tokio::test]
async fn no_command_runs_anything_of_a_forged_schema() {
    for version in versions() {
        let ground = forged(version).await;
        for role in watchers(version) {
            for (name, left) in every_command(&ground, role).await {
                let text = format!("{}{}", left.out, left.err);
                if !["snapshot", "adapters list"].contains(&name.as_str()) {
                    assert!(left.status != Some(0) && names_the_owner(&text), "{role}, {name}: {left:?}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_forged_schema_is_neither_read_nor_changed() {
    for version in versions() {
        let ground = forged(version).await;
        for role in watchers(version) {
            poll_once(&ground.info(role), &limits(&[])).await;
            ground.is_clean(role);
            let request = Request { select: Selection::Orphans, task: None, terminate: false };
            let order = ExecutorOrder::PlanRecovery {
                server: TargetId::default(),
                number: 1,
                schema: "locktop".to_owned(),
                request: request.into(),
            };
            let answer = answered(&ground.info(role), order).await;
            ground.is_clean(&format!("{role}, the plan of a recovery"));
            let ExecutorReply::RecoveryPlanned(1, Err(why)) = answer else { panic!("{answer:?}") };
            assert!(names_the_owner(&why), "{why}");
            refuses(&ground, role, targets(&ground, "locktop", true).await).await;
        }
    }
}

/// With its owner trusted, it is a schema like any other, and its code runs.
#[tokio::test]
async fn a_schema_of_a_trusted_role_is_run() {
    for version in one_version() {
        let ground = forged(version).await;
        for arguments in [
            &["recover", "--dry-run", "--trust-owner", "mallory"][..],
            &["recover", "--yes", "--trust-owner", "mallory"],
            &["schema", "status", "--trust-owner", "mallory"],
        ] {
            let before = ground.calls().len();
            let left = command(&ground, "boss", arguments).await;
            let calls = ground.calls().split_off(before);
            assert!(calls.iter().any(|call| call.role == "boss"), "{version}, {arguments:?}: {left:?}");
        }
        let tags = ground.tags();
        for tag in ["function orphan_grace", "view running_tasks", "function recover_seen_execution"] {
            assert!(tags.iter().any(|other| other == tag), "{version}: no {tag} in {tags:?}");
        }
    }
}
