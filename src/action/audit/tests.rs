use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use serde_json::Value;

use super::*;
use crate::clock;
use crate::model::Timestamp;
use crate::model::adapter::{ActionKind, ActionValues, Adapter, Installation};
use crate::model::backend::BackendId;
use crate::model::finding::Subject;
use crate::model::lock::{LockMode, LockTag, LockType};
use crate::model::plan::tests::orphan;
use crate::model::plan::{
    AdapterTarget, Client, ExecutionTarget, ExpectedTime, Outcome, PublishedHolder, PublishedTarget,
    RecoveryPlan, Request, RowTarget, Selection, SessionTarget, Target, TargetKind, Verb,
};
use crate::model::redis_lease::{Expiry, KeyReading, LockValue, ServerReading, merge};
use crate::model::table_rows::{Execution, Item, Lease, Schedule};

fn actor() -> Actor {
    Actor { tool: "locktop".to_owned(), role: "ops".to_owned(), os_user: Some("ann".to_owned()) }
}

fn server() -> ServerName {
    ServerName { address: "db:5432".to_owned(), database: "app".to_owned(), system_identifier: None }
}

fn open(directory: &Path) -> Arc<Audit> {
    Audit::open(directory, &actor(), LIMIT).unwrap()
}

async fn begin(audit: &Arc<Audit>, name: &str, statement: &str) -> Result<UnfinishedEntry, AuditError> {
    let asked = ActionRequest { number: 7, verb: Verb::Terminate, target: &target(name), statement };
    audit.begin(&server(), &asked).await
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn target(name: &str) -> Target {
    let start = at("2026-11-21T03:00:00.123456Z");
    let session = SessionTarget {
        pid: 4312,
        backend_start: start,
        client: Client { application: Some(name.into()), usesysid: Some(10), ..Client::default() },
        xact_start: ExpectedTime::Same(None),
        query_start: ExpectedTime::Any,
        state_change: ExpectedTime::Any,
        holds: None,
        keeps: false,
        blocks: true,
    };
    let subject = Subject::Backend(BackendId { pid: 4312, backend_start: Some(start) });
    Target { what: TargetKind::Session(session), name: name.to_owned(), subject }
}

fn outcome(outcome: Outcome) -> TargetResult {
    TargetResult { name: "x".to_owned(), subject: Subject::Server, outcome, detail: "gone".to_owned() }
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn a_request_is_recorded_before_its_result() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("state/locktop");
    let audit = open(&directory);
    let asked = begin(&audit, "4312 app@web", "SELECT 1").await.unwrap();
    let first = lines(&audit.path());
    assert_eq!(first.len(), 1);
    assert_eq!(first[0]["event"], "asked");
    assert_eq!(first[0]["format"], 1);
    assert_eq!(first[0]["verb"], "terminate");
    assert_eq!(first[0]["who"]["os_user"], "ann");
    assert_eq!(first[0]["who"]["pid"], std::process::id());
    assert_eq!(first[0]["server"]["address"], "db:5432");
    let seen = serde_json::json!({"kind": "session", "pid": 4312, "backend_start": "2026-11-21T03:00:00.123456Z",
                                  "xact_start": null, "blocks": true,
                                  "client": {"application": "4312 app@web", "usesysid": 10, "address": null, "port": null}});
    assert_eq!(first[0]["target"], seen, "values that may change are left out");
    assert_eq!(first[0]["id"], asked.id);
    audit.end(asked, &outcome(Outcome::Done)).await.unwrap();
    let both = lines(&audit.path());
    assert_eq!((both.len(), &both[1]["fate"], &both[1]["id"]), (2, &Value::from("done"), &first[0]["id"]));
    assert_eq!((mode(&directory), mode(&audit.path())), (0o700, 0o600));
    drop(audit);
    let mut left: Vec<_> = fs::read_dir(&directory).unwrap().map(|file| file.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["audit.jsonl", "audit.lock"], "a process that ends normally leaves no other file");
}

#[tokio::test]
async fn nothing_hostile_gets_into_a_line() {
    let home = tempfile::tempdir().unwrap();
    let audit = open(home.path());
    let name = "a\u{1b}]0;x\u{7}\n\u{9b}2J\u{202e}\"}\0é任";
    let asked = begin(&audit, name, &"S".repeat(100_000)).await.unwrap();
    let result = TargetResult { detail: name.to_owned(), ..outcome(Outcome::Refused) };
    audit.end(asked, &result).await.unwrap();
    let text = fs::read_to_string(audit.path()).unwrap();
    assert!(!text.replace('\n', "").contains(|c: char| c.is_control() || c == '\u{202e}'), "{text:?}");
    let both = lines(&audit.path());
    assert_eq!((both.len(), &both[0]["name"], &both[1]["detail"]), (2, &name.into(), &name.into()));
    assert!(text.len() < 10_000, "a statement is cut: {}", text.len());
}

#[tokio::test]
async fn an_entry_left_unfinished_becomes_outcome_unknown() {
    let home = tempfile::tempdir().unwrap();
    let dying = open(home.path());
    let done = begin(&dying, "first", "").await.unwrap();
    dying.end(done, &outcome(Outcome::Done)).await.unwrap();
    let lost = begin(&dying, "second", "").await.unwrap();
    let next = open(home.path());
    assert_eq!(next.unfinished().await.unwrap(), [], "it is still open");
    drop(dying);
    let other = open(home.path());
    let (found, also) = (next.unfinished().await.unwrap(), other.unfinished().await.unwrap());
    assert_eq!((found.len(), also.len()), (1, 0), "each is found once");
    assert_eq!((found[0].name.as_str(), found[0].verb.as_str()), ("second", "terminate"));
    let newest = lines(&next.path()).pop().unwrap();
    assert_eq!((&newest["fate"], &newest["id"]), (&"outcome_unknown".into(), &lost.id.into()));
    assert_eq!(newest["who"]["role"], "ops");
    assert_eq!(next.unfinished().await.unwrap(), []);
}

#[tokio::test]
async fn files_rotate_and_the_oldest_is_deleted() {
    let home = tempfile::tempdir().unwrap();
    let audit = Audit::open(home.path(), &actor(), 2_000).unwrap();
    for number in 0..60 {
        let asked = begin(&audit, &number.to_string(), "").await.unwrap();
        audit.end(asked, &outcome(Outcome::Done)).await.unwrap();
    }
    let path = |number: u32| home.path().join(format!("{}.{number}", store::FILE));
    assert!((1..=store::KEPT).all(|number| path(number).exists()) && !path(store::KEPT + 1).exists());
    let sizes = (1..=store::KEPT).map(|number| fs::metadata(path(number)).unwrap().len());
    assert!(sizes.max().unwrap() <= 2_000);
    let all = (1..=store::KEPT).rev().flat_map(|number| lines(&path(number))).chain(lines(&audit.path()));
    let names: Vec<i64> = all
        .filter(|line| line["event"] == "asked")
        .map(|line| line["name"].as_str().unwrap().parse().unwrap())
        .collect();
    assert!(names.windows(2).all(|two| two[1] == two[0] + 1) && names.last() == Some(&59), "{names:?}");
}

#[tokio::test]
async fn a_new_entry_is_on_its_own_line_after_a_partial_one() {
    let home = tempfile::tempdir().unwrap();
    let audit = open(home.path());
    drop(begin(&audit, "a", "").await.unwrap());
    let whole = fs::read_to_string(audit.path()).unwrap();
    fs::write(audit.path(), &whole.as_bytes()[..whole.len() / 2]).unwrap();
    drop(begin(&audit, "b", "").await.unwrap());
    let text = fs::read_to_string(audit.path()).unwrap();
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!((text.lines().count(), &last["name"]), (2, &"b".into()));
}

async fn refused(prepare: impl FnOnce(&Path)) -> String {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("locktop");
    fs::create_dir(&directory).unwrap();
    prepare(&directory);
    let error = match Audit::open(&directory, &actor(), LIMIT) {
        Ok(audit) => begin(&audit, "a", "").await.unwrap_err(),
        Err(error) => error,
    };
    error.to_string().replace(home.path().to_str().unwrap(), "~")
}

#[tokio::test]
async fn a_record_that_others_could_change_is_refused_with_a_remedy() {
    let open_to_all = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o666)).unwrap();
    let text = refused(|directory| {
        fs::write(directory.join(store::FILE), "").unwrap();
        open_to_all(&directory.join(store::FILE));
    });
    let path = "~/locktop/audit.jsonl";
    let expected = format!(
        "the record of actions is not written to {path}: users other than its owner can write to it, or all users can read it; \
         chmod 600 {path}, or set XDG_STATE_HOME to your own directory"
    );
    assert_eq!(text.await, expected);
    let text =
        refused(|directory| fs::set_permissions(directory, fs::Permissions::from_mode(0o777)).unwrap());
    assert!(text.await.contains("~/locktop: other users can write to it; chmod go-w ~/locktop, or set"));
    let text = refused(|directory| symlink("/dev/null", directory.join(store::FILE)).unwrap());
    assert!(text.await.contains("it is a symbolic link; remove ~/locktop/audit.jsonl, or"));
    let text = refused(|directory| fs::create_dir(directory.join(store::FILE)).unwrap());
    assert!(text.await.contains("~/locktop/audit.jsonl: it is not a plain file; "));
}

#[tokio::test]
async fn a_path_that_is_not_a_directory_is_reported() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    fs::write(&file, "").unwrap();
    let error = Audit::open(&file.join("locktop"), &actor(), LIMIT).unwrap_err().to_string();
    assert!(error.contains("cannot be written") && error.contains("XDG_STATE_HOME"), "{error}");
}

#[tokio::test]
async fn a_record_that_stays_locked_is_reported_as_busy() {
    let home = tempfile::tempdir().unwrap();
    let audit = open(home.path());
    let turn = audit.store.write_slot().unwrap();
    let error = begin(&open(home.path()), "a", "").await.unwrap_err();
    assert!(matches!(error, AuditError::Busy(_)), "{error}");
    drop(turn);
    let _ = begin(&audit, "a", "").await.unwrap();
}

/// Set for a child process of this test program; the value is the directory to write to.
const ROLE: &str = "LOCKTOP_TEST_AUDIT_DIRECTORY";
/// Lines per process, and a maximum file size with which all lines are kept.
const EACH: usize = 100;
const SMALL: u64 = 60_000;

fn process(test: &str, directory: &Path) -> std::process::Child {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("action::audit::tests::{test}"), "--nocapture"]);
    command.env(ROLE, directory).stdout(std::process::Stdio::null()).spawn().unwrap()
}

/// With `ROLE` set, the test is one of the writing processes.
#[tokio::test]
async fn several_processes_at_once_lose_no_line() {
    if let Some(directory) = std::env::var_os(ROLE) {
        let audit = Audit::open(Path::new(&directory), &actor(), SMALL).unwrap();
        for number in 0..EACH {
            let asked = begin(&audit, &number.to_string(), "x").await.unwrap();
            audit.end(asked, &outcome(Outcome::Done)).await.unwrap();
        }
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let test = "several_processes_at_once_lose_no_line";
    let mut processes: Vec<_> = (0..3).map(|_| process(test, home.path())).collect();
    assert!(processes.iter_mut().all(|process| process.wait().unwrap().success()));
    let files: Vec<_> = fs::read_dir(home.path()).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() > 2, "it has rotated: {files:?}");
    let lines: Vec<Value> =
        files.iter().filter(|path| !path.ends_with("audit.lock")).flat_map(|path| lines(path)).collect();
    assert_eq!(lines.len(), 3 * EACH * 2);
    let ids: std::collections::BTreeSet<String> =
        lines.iter().map(|line| format!("{} {}", line["id"], line["event"])).collect();
    assert_eq!(ids.len(), lines.len(), "each appears once");
}

#[tokio::test]
async fn a_process_that_is_killed_leaves_an_outcome_unknown() {
    if let Some(directory) = std::env::var_os(ROLE) {
        let audit = open(Path::new(&directory));
        let done = begin(&audit, "before", "x").await.unwrap();
        audit.end(done, &outcome(Outcome::Done)).await.unwrap();
        let _open = begin(&audit, "in the middle", "x").await.unwrap();
        return std::future::pending().await;
    }
    let home = tempfile::tempdir().unwrap();
    let mut process = process("a_process_that_is_killed_leaves_an_outcome_unknown", home.path());
    let audit = open(home.path());
    let start = clock::monotonic();
    while fs::read_to_string(audit.path()).unwrap_or_default().lines().count() < 3 {
        assert!(start.elapsed().as_secs() < 30 && process.try_wait().unwrap().is_none());
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(audit.unfinished().await.unwrap(), [], "it is alive");
    process.kill().unwrap();
    process.wait().unwrap();
    let found = audit.unfinished().await.unwrap();
    assert_eq!(found.iter().map(|lost| lost.name.as_str()).collect::<Vec<_>>(), ["in the middle"]);
    let last = lines(&audit.path()).pop().unwrap();
    assert_eq!((&last["event"], &last["fate"]), (&"result".into(), &"outcome_unknown".into()));
}

/// A record that version 0.1.0 wrote: a terminated session, and a question whose process was killed before the result.
#[tokio::test]
async fn a_record_of_0_1_0_is_continued() {
    let home = tempfile::tempdir().unwrap();
    let old = include_str!("tests/release_0_1_0.jsonl");
    fs::write(home.path().join(store::FILE), old).unwrap();
    fs::write(home.path().join("run-bb2b275996bf8cf4"), "").unwrap();
    for name in [store::FILE, "run-bb2b275996bf8cf4"] {
        fs::set_permissions(home.path().join(name), fs::Permissions::from_mode(0o600)).unwrap();
    }
    let audit = open(home.path());
    let found = audit.unfinished().await.unwrap();
    assert_eq!(found.iter().map(|lost| lost.name.as_str()).collect::<Vec<_>>(), ["16676 ops@web-4"]);
    assert!(!home.path().join("run-bb2b275996bf8cf4").exists(), "it is settled");
    let text = fs::read_to_string(audit.path()).unwrap();
    assert!(text.starts_with(old), "what was written stays as it is");
    let last = lines(&audit.path()).pop().unwrap();
    assert_eq!((&last["id"], &last["fate"]), (&"bb2b275996bf8cf4-1".into(), &"outcome_unknown".into()));
}

fn row<R>(source: &str, row: R) -> RowTarget<R> {
    RowTarget { table: 16_384, source: source.into(), is_own: false, row }
}

/// Programs read these keys, in this order.
#[test]
fn the_line_of_each_kind_of_target_is_kept() {
    let is = |what: TargetKind, line: &str| assert_eq!(serde_json::to_string(&what).unwrap(), line);
    let request = Request { select: Selection::Orphans, task: None, terminate: false };
    let plan = Arc::new(RecoveryPlan::of("locktop", at("2026-01-01T00:00:00Z"), 30.0, &[orphan()], &request));
    is(
        TargetKind::Execution(ExecutionTarget { row: plan.rows[0].clone(), plan }),
        r#"{"kind":"execution","id":7,"schema":"locktop","task_id":1,"task_name":"report","worker":"w","started_at":"2023-11-14T22:13:20Z","backend_pid":4312,"backend_start":"2023-11-14T22:13:15Z","lock_id":42}"#,
    );
    let TargetKind::Session(session) = target("4312 app@web-3").what else { panic!() };
    let key =
        LockTag::new(LockType::Advisory).with_database(5).with_classid(0).with_objid(42).with_objsubid(1);
    let holds = Some((key, LockMode::Exclusive));
    is(
        TargetKind::Session(SessionTarget { holds, ..session }),
        r#"{"kind":"session","pid":4312,"backend_start":"2026-11-21T03:00:00.123456Z","xact_start":null,"client":{"application":"4312 app@web-3","usesysid":10,"address":null,"port":null},"holds":{"locktype":"advisory","database":5,"relation":null,"key":"42","mode":"ExclusiveLock"},"blocks":true}"#,
    );
    let lease = Lease {
        id: "7".into(),
        owner: Some("node1".into()),
        renewed_at: Some(at("2026-01-01T00:00:00.5Z")),
        term: Some(20.0),
        token: Some(12),
        ..Lease::default()
    };
    is(
        TargetKind::Lease(row("locktop.distlock", lease)),
        r#"{"kind":"lease","table":16384,"source":"locktop.distlock","id":"7","owner":"node1","renewed_at":"2026-01-01T00:00:00.500Z","term":20.0,"token":12}"#,
    );
    let task = Schedule { id: 3, name: Some("report".into()), enabled: Some(true), ..Schedule::default() };
    is(
        TargetKind::Task(row("locktop.scheduled_tasks", task)),
        r#"{"kind":"task","table":16384,"source":"locktop.scheduled_tasks","id":3,"name":"report","enabled":true,"next_run_at":null}"#,
    );
    let item = Item { id: 5, status: Some("failed".into()), attempt: Some(3), ..Item::default() };
    is(
        TargetKind::Item(row("locktop.task_queue", item)),
        r#"{"kind":"item","table":16384,"source":"locktop.task_queue","id":5,"status":"failed","attempt":3,"worker":null}"#,
    );
    let execution = Execution {
        id: 9,
        task_id: 3,
        worker: Some("w".into()),
        started_at: Some(at("2026-01-01T00:00:00Z")),
        ..Execution::default()
    };
    let started = at("2026-01-01T00:00:00Z");
    let published = |holder| {
        let execution = row("public.task_execution_log", execution.clone());
        TargetKind::Published(PublishedTarget { execution, name: Some("report".into()), key: 3, holder })
    };
    is(
        published(PublishedHolder::None),
        r#"{"kind":"published","table":16384,"source":"public.task_execution_log","id":9,"task_id":3,"worker":"w","started_at":"2026-01-01T00:00:00Z","lock_key":3}"#,
    );
    is(
        published(PublishedHolder::Other {
            pid: 7,
            backend_start: started,
            execution: 10,
            worker: "v".into(),
        }),
        r#"{"kind":"published","table":16384,"source":"public.task_execution_log","id":9,"task_id":3,"worker":"w","started_at":"2026-01-01T00:00:00Z","lock_key":3,"holder":{"other":{"pid":7,"backend_start":"2026-01-01T00:00:00Z","execution":10,"worker":"v"}}}"#,
    );
    let adapter = Arc::new(Adapter { name: "river".into(), ..Adapter::default() });
    let values =
        ActionValues { id: "5".into(), who: Some("w".into()), attempt: Some(2), ..ActionValues::default() };
    is(
        TargetKind::Adapter(AdapterTarget {
            installation: Arc::new(Installation { adapter, ..Installation::default() }),
            source: "public.river_job".into(),
            oid: 16_384,
            kind: ActionKind::Recover,
            number: 1,
            values,
        }),
        r#"{"kind":"adapter","adapter":"river","source":"public.river_job","oid":16384,"id":"5","worker":"w","attempt":2,"since":null,"until":null}"#,
    );
    let key = KeyReading {
        key: b"nightly".as_slice().into(),
        value: LockValue::text(b"host-1:abc"),
        expiry: Expiry::Never,
    };
    let readings = [ServerReading { server: "redis://s".into(), keys: Ok(vec![key]) }];
    is(
        TargetKind::RedisLease(Arc::new(merge(&readings).rows.remove(0))),
        r#"{"kind":"redis_lease","key":"nightly","value_sha256":"cc8b77d0294dda2c6f28a64a649357388a8afbc2d98b53095fcf853a540377b1","votes":1,"servers":1}"#,
    );
}
