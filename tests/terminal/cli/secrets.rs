//! A session that blocks others by `ALTER ROLE … PASSWORD '…'`, and others that wait in such a statement: no
//! output and no file of the program contains a password, and the output of `check` contains no literal.

use std::path::{Path, PathBuf};

use locktop::demo::postgres::{EmbeddedServer, Options};
use tokio::task::JoinHandle;

use super::binary::{Left, locktop, run_beside};
use super::support::{conninfo, is_long, open, versions, wait_until};

/// The beginning of each password.
const SECRET: &str = "s3cr";

/// A literal that is not a password.
const LITERAL: &str = "l1teral";

/// The last statement of the root, and those of the others: in many forms, since another part of the program
/// prints each.
const ROOT: &str = "ALTER ROLE victim PASSWORD 's3cr-root' -- s3cr";
const WAITERS: [&str; 5] = [
    "ALTER ROLE victim PASSWORD\n's3cr-'\n -- it's\n's3cr-waits'",
    "ALTER USER victim WITH ENCRYPTED PASSWORD E's3cr\\'s' VALID UNTIL 'infinity'",
    "DO $$ BEGIN ALTER ROLE victim PASSWORD 's3cr-do'; END $$",
    "SELECT 'l1teral', set_config('app.token', 's3cr-set', false) FROM t",
    "SELECT 'l1teral', 4711001 AS number FROM t -- l1teral",
];

struct Scene {
    server: EmbeddedServer,
    folder: tempfile::TempDir,
    _waiters: Vec<JoinHandle<()>>,
    _root: locktop::pg::connect::Connection,
}

impl Scene {
    async fn new(version: u32) -> Self {
        let options = Options { version: Some(version), ..Options::default() };
        let options = options.with("log_lock_waits", "on").with("deadlock_timeout", "50ms");
        let options = options.with("logging_collector", "on").with("log_destination", "csvlog");
        let options = options.with("log_directory", "log").with("log_filename", "server.log");
        let server = EmbeddedServer::start(options).await.unwrap();
        let admin = open(&conninfo(&server)).await.client;
        admin.batch_execute("CREATE ROLE victim; CREATE TABLE t (a int)").await.unwrap();
        let root = open(&conninfo(&server)).await;
        root.client.batch_execute("BEGIN; LOCK TABLE t").await.unwrap();
        root.client.batch_execute(ROOT).await.unwrap();
        let mut waiters = Vec::new();
        for statement in WAITERS {
            let client = open(&conninfo(&server)).await.client;
            waiters.push(tokio::spawn(async move { drop(client.batch_execute(statement).await) }));
        }
        wait_until("all to wait", async || {
            let sql = "SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted";
            admin.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) == 5
        })
        .await;
        Self { server, folder: tempfile::tempdir().unwrap(), _waiters: waiters, _root: root }
    }

    fn at(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    async fn run(&self, arguments: &[&str]) -> Left {
        let mut command = locktop(arguments);
        command.env("LOCKTOP_LOG", "debug").env("XDG_STATE_HOME", self.folder.path());
        run_beside(command).await
    }

    /// The same for a command that connects, with a log of its own.
    async fn live(&self, arguments: &[&str]) -> Left {
        let (target, log) = (self.server.conninfo(), self.at("locktop.log"));
        // `lock-of` keeps no log.
        let has_log = !arguments.contains(&"lock-of");
        let log: &[&str] = if has_log { &["--log", &log] } else { &[] };
        self.run(&[&["-w"], arguments, log, &["-d", &target]].concat()).await
    }

    /// The server's log.
    async fn server_log(&self) -> String {
        let client = open(&conninfo(&self.server)).await.client;
        let row = client.query_one("SHOW data_directory", &[]).await.unwrap();
        format!("{}/log/server.csv", row.get::<_, &str>(0))
    }

    /// Every file that the program has written.
    fn files(&self) -> Vec<PathBuf> {
        fn below(folder: &Path, found: &mut Vec<PathBuf>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { below(&path, found) } else { found.push(path) }
            }
        }
        let mut found = Vec::new();
        below(self.folder.path(), &mut found);
        found
    }
}

fn has(bytes: &[u8], part: &str) -> bool {
    bytes.windows(part.len()).any(|window| window == part.as_bytes())
}

/// The output contains no secret, and contains `part`.
fn assert_no_secret(left: &Left, what: &str, part: &str) {
    assert!(!left.out.contains(SECRET) && !left.err.contains(SECRET), "{what}: {left:?}");
    assert!(left.out.contains(part), "{what} has no {part}: {left:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_command_prints_or_writes_the_password_of_others() {
    let newest = versions().into_iter().max().into_iter().collect();
    for version in if is_long() { versions() } else { newest } {
        let scene = Scene::new(version).await;
        for format in ["plugin", "checkmk", "json", "zabbix", "openmetrics"] {
            let left =
                scene.live(&["check", "--format", format, "-w", "longest_wait=0", "-w", "waiting=0"]).await;
            assert_no_secret(&left, format, "waiting");
            assert!(!left.out.contains(LITERAL) && !left.out.contains("4711001"), "{format}: {left:?}");
        }
        // The blocking statement, without its literals.
        assert_no_secret(
            &scene.live(&["check", "--only", "worst_root"]).await,
            "check",
            "ALTER ROLE victim PASSWORD ?",
        );
        assert_no_secret(&scene.live(&["snapshot"]).await, "snapshot", "victim PASSWORD ?");
        assert_no_secret(&scene.live(&["snapshot"]).await, "snapshot", "SELECT 'l");
        assert_no_secret(
            &scene.live(&["snapshot", "--format", "json"]).await,
            "json",
            "ALTER ROLE victim PASSWORD ?",
        );
        for format in ["table", "json"] {
            let left = scene.live(&["lock-of", "--format", format, "DROP TABLE t"]).await;
            assert_no_secret(&left, "lock-of", "ALTER ROLE victim PASSWORD ?");
            let left = scene.live(&["lock-of", "--format", format, "ALTER ROLE 's3cr-argument'"]).await;
            assert_no_secret(&left, "lock-of", "ALTER ROLE");
        }
        for mode in ["none", "literals", "queries", "names"] {
            recorded(&scene, mode).await;
        }
        reported(&scene, &scene.at("none.ltr")).await;
        let cut = scene.at("cut.ltr");
        for mode in ["none", "literals", "queries", "names"] {
            let left = scene.run(&["cut", &scene.at("none.ltr"), "-o", &cut, "--redact", mode]).await;
            assert_eq!(left.status, Some(0), "{left:?}");
            exported(&scene, &cut, mode).await;
            std::fs::remove_file(&cut).unwrap();
        }
        for file in scene.files() {
            assert!(!has(&std::fs::read(&file).unwrap(), SECRET), "{} has a password", file.display());
        }
    }
}

/// Records with a redaction mode, and checks the exported recording.
async fn recorded(scene: &Scene, mode: &str) {
    let place = scene.at(&format!("{mode}.ltr"));
    let left = scene.live(&["record", &place, "--redact", mode, "--refresh", "0.1s", "--for", "1s"]).await;
    assert_eq!(left.status, Some(0), "{left:?}");
    exported(scene, &place, mode).await;
}

/// Checks all exports of a recording.
async fn exported(scene: &Scene, place: &str, mode: &str) {
    let left = scene.run(&["replay", place, "--export", "jsonl"]).await;
    assert_no_secret(&left, mode, "\"query\":");
    let parts = match mode {
        "none" => vec![("ALTER ROLE victim PASSWORD ?", true), (LITERAL, true), ("4711001", true)],
        "literals" => vec![("ALTER ROLE victim PASSWORD ?", true), (LITERAL, false), ("4711001", false)],
        "queries" => vec![("ALTER ROLE", false), (LITERAL, false), ("4711001", false)],
        _ => vec![("victim", false), (LITERAL, false), ("4711001", false)],
    };
    for (part, is_expected) in parts {
        assert_eq!(left.out.contains(part), is_expected, "{mode}: {part}: {}", left.out);
    }
    assert_no_secret(&scene.run(&["replay", place, "--export", "csv"]).await, mode, "taken_at");
}

/// The report of a recording, with and without the server's log.
async fn reported(scene: &Scene, place: &str) {
    let log = scene.server_log().await;
    for format in ["md", "html", "json"] {
        assert_no_secret(
            &scene.run(&["report", place, "--format", format]).await,
            format,
            "ALTER ROLE victim PASSWORD",
        );
        for mode in ["none", "literals", "queries"] {
            let arguments = ["report", place, "--format", format, "--redact", mode];
            let left = scene.run(&[&arguments[..], &["--log", &log]].concat()).await;
            assert_no_secret(&left, mode, "");
            assert!(mode == "none" || !left.out.contains(LITERAL), "{mode} {format}: {}", left.out);
        }
    }
}
