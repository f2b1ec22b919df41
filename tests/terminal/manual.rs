//! The commands and SQL blocks of README and manual work as shown: they are run, in the order of their page,
//! against a real server. A command that needs a terminal or a network is only parsed by the program. A
//! command of another program is run, or is in `NOT_RUN` with the reason; any other command is a failure.

#[path = "../support/manual.rs"]
mod pages;
#[path = "../support/suite.rs"]
mod support;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tokio_postgres::Client;

use pages::{Block, blocks, root};
use support::{open, server};

use crate::binary;

/// Changes to the command lines of the manual for the test: names of servers that do not exist, paths that
/// need root, and commands that would run for ever or ask a question.
const PLACEHOLDERS: &[(&str, &str)] = &[
    ("postgres://monitor@db.example.com/", "postgres://monitor@@SOCKET_URI@/"),
    ("db.example.com", "@SOCKET@"),
    ("/var/lib/locktop/", "@HOME@/recordings/"),
    ("/usr/lib/nagios/plugins/", "@HOME@/plugins/"),
    ("/etc/locktop/", "@HOME@/"),
    ("locktop recover ", "locktop recover --yes "),
    ("locktop recover --yes --dry-run ", "locktop recover --dry-run "),
    ("locktop record incident.ltr app", "locktop record --for 1s incident.ltr app"),
    ("locktop record --for 1s incident.ltr app --for", "locktop record incident.ltr app --for"),
    ("locktop record @HOME@/recordings/", "locktop record --for 1s @HOME@/recordings/"),
    ("locktop schema purge ", "locktop schema purge --yes "),
    ("locktop schema drop app", "locktop schema drop --yes app && locktop schema install app"),
    ("locktop worker ", "locktop worker --exit-with-stdin "),
];

/// Beginnings of lines that are not run, with the reason. The arguments of `cargo` are checked nevertheless
/// ([`cargo`]).
const NOT_RUN: &[(&str, &str)] = &[
    ("cargo ", "builds the program; .ci/run does"),
    ("tests/run.sh", "is the run that this test is a part of"),
    (".ci/run", "has this test in it"),
    ("packaging/", "builds packages; packaging/test.sh does"),
    ("sudo ", "changes the machine"),
    ("journalctl ", "needs a service"),
];

/// The first words after `locktop` of commands that need a terminal, or their own server; they are parsed.
const PARSED: &[(&str, &str)] =
    &[("demo", "starts servers of its own; the suite `demo` runs it"), ("replay", "needs a terminal")];

/// Exit statuses that are a result: 1 of `check` and `lock-of` reports a problem.
fn is_answer(words: &[&str], status: i32) -> bool {
    let most = match words {
        ["check_locktop", ..] | ["locktop", "check", ..] => 2,
        ["locktop", "lock-of", ..] => 1,
        _ => 0,
    };
    (0..=most).contains(&status)
}

/// One page at a time: all use a database of the same name.
static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// The environment in which the commands of one page run.
struct Stage {
    _turn: tokio::sync::MutexGuard<'static, ()>,
    home: tempfile::TempDir,
    socket: PathBuf,
    client: Client,
}

impl Stage {
    /// A database `app` as in the manual: roles, tables, published tables, locktop's schema, and a recording
    /// with an incident.
    async fn new() -> Self {
        const ROLES: [&str; 4] = ["app", "monitor", "ops", "worker"];
        let turn = TURN.lock().await;
        let server = server().await;
        let first = open(&support::conninfo(server)).await.client;
        run(&first, "DROP DATABASE IF EXISTS app WITH (FORCE); CREATE DATABASE app").await.unwrap();
        for role in ROLES {
            run(&first, &format!("DROP ROLE IF EXISTS {role}; CREATE ROLE {role} LOGIN SUPERUSER"))
                .await
                .unwrap();
        }
        let client = open(&support::conninfo(server).with_dbname("app")).await.client;
        for published in ["tests/server/tasks/recipe.sql", "tests/server/systems/printed.sql"] {
            let sql = std::fs::read_to_string(root().join(published)).unwrap();
            client.batch_execute(&sql).await.unwrap();
        }
        client
            .batch_execute(
                "CREATE TABLE orders (id int PRIMARY KEY, placed_at timestamptz); CREATE TABLE t (id int);
                 CREATE SCHEMA shop; CREATE TABLE shop.orders (placed_at timestamptz);
                 CREATE TYPE mail_state AS ENUM ('picked', 'waiting');
                 CREATE TABLE mail_jobs (id int PRIMARY KEY, kind text, state mail_state, picked_at timestamptz, picked_by int);
                 CREATE TABLE mail_nodes (id int PRIMARY KEY, seen_at timestamptz)",
            )
            .await
            .unwrap();
        let home = tempfile::Builder::new().prefix("manual").tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let stage = Self { _turn: turn, home, socket: server.socket_dir().to_owned(), client };
        stage.prepare().await;
        stage
    }

    async fn prepare(&self) {
        let home = self.home.path();
        let written = [".local/state/locktop", ".cache/locktop", ".config/locktop"];
        for folder in ["bin", "recordings", "plugins"].into_iter().chain(written) {
            std::fs::create_dir_all(home.join(folder)).unwrap();
        }
        for name in ["locktop", "check_locktop"] {
            std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_locktop"), home.join("bin").join(name)).unwrap();
        }
        // "ssh db locktop …" runs on this machine.
        script(&home.join("bin/ssh"), "shift\nexec \"$@\"");
        std::fs::write(home.join("migration.sql"), "BEGIN; ALTER TABLE orders ADD COLUMN note text; COMMIT")
            .unwrap();
        std::fs::write(home.join("recipe.sql"), "SELECT 1").unwrap();
        let target = format!(
            "[targets.prod]\nconninfo = \"host={} dbname=app user=postgres\"\n",
            self.socket.display()
        );
        std::fs::write(home.join("config.toml"), target).unwrap();
        self.must("locktop schema install app").await;
        // One session waits for another, so that a recording has an episode.
        let waiter = open(&support::conninfo(server().await).with_dbname("app")).await.client;
        self.client.batch_execute("SELECT pg_advisory_lock(72707369)").await.unwrap();
        let waits =
            tokio::spawn(async move { waiter.batch_execute("SELECT pg_advisory_lock(72707369)").await });
        let is_waiting = "SELECT 1 / count(*) FROM pg_locks WHERE NOT granted AND objid = 72707369";
        support::wait_until("a session that waits", async || {
            self.client.batch_execute(is_waiting).await.is_ok()
        })
        .await;
        self.must("locktop record incident.ltr app --for 2s && cp incident.ltr recordings/2026-01-01.ltr")
            .await;
        self.client.batch_execute("SELECT pg_advisory_unlock(72707369)").await.unwrap();
        waits.await.unwrap().unwrap();
    }

    async fn must(&self, line: &str) {
        let (status, err) = self.shell(line).await;
        assert_eq!(status, 0, "{line}: {err}");
    }

    /// Runs a line in a shell, with its own home directory.
    async fn shell(&self, line: &str) -> (i32, String) {
        let home = self.home.path();
        let path = format!("{}:{}", home.join("bin").display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("(set -o pipefail) 2>/dev/null && set -o pipefail; {line}")])
            .current_dir(home)
            .env_clear();
        command.envs([
            ("PATH", path.as_str()),
            ("LANG", "C.UTF-8"),
            ("PGUSER", "postgres"),
            ("PGSSLMODE", "disable"),
        ]);
        command.env("HOME", home).env("PGHOST", &self.socket).env("LOCKTOP_CONFIG", home.join("config.toml"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let left = binary::run_beside(command).await;
        (left.status.unwrap_or(-1), left.err)
    }

    /// Checks a line of a block; an error if it fails.
    async fn check_line(&self, line: &str) -> Result<(), String> {
        let line = line.split(" #").next().unwrap().trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        let start = line.trim_start_matches(|c: char| c.is_ascii_uppercase() || matches!(c, '_' | '=' | '1'));
        if let Some((program, _)) = NOT_RUN.iter().find(|(begin, _)| start.trim_start().starts_with(begin)) {
            return if *program == "cargo " { cargo(start.trim_start()) } else { Ok(()) };
        }
        let line = PLACEHOLDERS.iter().fold(line.to_owned(), |line, (name, real)| line.replace(name, real));
        let line = line
            .replace("@SOCKET_URI@", &self.socket.display().to_string().replace('/', "%2F"))
            .replace("@SOCKET@", &self.socket.display().to_string())
            .replace("@HOME@", &self.home.path().display().to_string());
        let words = words(&line)?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        if needs_a_terminal(&words) {
            return parse(&words);
        }
        let (status, err) = self.shell(&line).await;
        let lines: Vec<&str> = err.lines().collect();
        if is_answer(&words, status) {
            Ok(())
        } else {
            Err(format!("exit status {status}: {}", lines.join(" / ")))
        }
    }
}

fn script(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// The dashboard and the commands in `PARSED`, also behind a pipe.
fn needs_a_terminal(words: &[&str]) -> bool {
    words.split(|word| *word == "|").any(|words| {
        let [program, rest @ ..] = words else { return false };
        let is_locktop = *program == "locktop";
        let is_listed = rest.first().is_some_and(|first| PARSED.iter().any(|(name, _)| name == first));
        let is_export = rest.contains(&"--export");
        is_locktop && !is_export && (is_listed || is_dashboard(rest))
    })
}

/// Without a subcommand the program starts the dashboard.
fn is_dashboard(words: &[&str]) -> bool {
    let line = std::iter::once("locktop").chain(words.iter().copied()).map(OsString::from);
    locktop::cli::parse(line).is_ok_and(|cli| cli.command.is_none())
}

/// Parses each program of the line with locktop's own parser.
fn parse(words: &[&str]) -> Result<(), String> {
    for words in words.split(|word| *word == "|") {
        let words = if let ["ssh", _, rest @ ..] = words { rest } else { words };
        if words.first() != Some(&"locktop") {
            return Err(format!("{:?} is no command of locktop, and is not run", words.join(" ")));
        }
        locktop::cli::parse(words.iter().map(OsString::from)).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Splits the line into words like a shell, as far as the manual needs that.
fn words(line: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match quote {
            Some(end) if c == end => quote = None,
            None if c == '\'' || c == '"' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c == ' ' => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err("a quote is not closed".to_owned());
    }
    words.extend(word);
    Ok(words)
}

/// Whether the tests, benches, examples and crates that a line names exist.
fn cargo(line: &str) -> Result<(), String> {
    let words: Vec<&str> = line.split(' ').collect();
    let package = words.windows(2).find(|pair| pair[0] == "-p").map_or(".", |pair| pair[1]);
    let folder = if package == "." { root().to_owned() } else { root().join("crates").join(package) };
    if !folder.join("Cargo.toml").exists() {
        return Err(format!("there is no crate {package}"));
    }
    for pair in words.windows(2) {
        let place = match pair[0] {
            "--bench" => "benches",
            "--test" => "tests",
            "--example" => "examples",
            _ => continue,
        };
        let path = folder.join(place).join(pair[1]);
        if !path.with_extension("rs").exists() && !path.join("main.rs").exists() {
            return Err(format!("it lacks {}", path.display()));
        }
    }
    Ok(())
}

/// Runs each statement separately, as psql does. A role that exists is recreated.
async fn run(client: &Client, sql: &str) -> Result<(), String> {
    for statement in statements(sql) {
        if let Some(rest) = statement.strip_prefix("CREATE ROLE ") {
            let name = rest.split([' ', ';']).next().unwrap();
            let again = format!(
                "DO $$ BEGIN DROP OWNED BY {name}; DROP ROLE {name}; EXCEPTION WHEN undefined_object THEN NULL; END $$"
            );
            client.batch_execute(&again).await.map_err(|error| message(&error))?;
        }
        client
            .batch_execute(&statement)
            .await
            .map_err(|error| format!("{statement}: {}", message(&error)))?;
    }
    Ok(())
}

fn message(error: &tokio_postgres::Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), |error| error.message().to_owned())
}

/// The statements of a text, without comments.
fn statements(sql: &str) -> Vec<String> {
    let without = sql.lines().map(|line| line.split("-- ").next().unwrap().trim_end());
    let text = without.collect::<Vec<_>>().join("\n");
    let (mut found, mut statement, mut in_quotes) = (Vec::new(), String::new(), false);
    for c in text.chars() {
        in_quotes ^= c == '\'';
        if c == ';' && !in_quotes {
            found.push(std::mem::take(&mut statement));
        } else {
            statement.push(c);
        }
    }
    found.push(statement);
    found.into_iter().map(|statement| statement.trim().to_owned()).filter(|text| !text.is_empty()).collect()
}

/// Checks a block; returns its errors.
async fn check(stage: &Stage, block: &Block<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    match block.language {
        "sql" => wrong.extend(run(&stage.client, &block.lines.join("\n")).await.err()),
        "sh" => {
            for line in &block.lines {
                wrong.extend(stage.check_line(line).await.err().map(|error| format!("{line}: {error}")));
            }
        }
        "toml" => wrong.extend(check_toml(stage, &block.lines.join("\n")).await.err()),
        _ => {}
    }
    wrong
}

/// A block of TOML is a config, or the file of an adapter, which the commands below the block check.
async fn check_toml(stage: &Stage, text: &str) -> Result<(), String> {
    if text.starts_with("format = 1") {
        return std::fs::write(stage.home.path().join("mailer.toml"), text)
            .map_err(|error| error.to_string());
    }
    let file = stage.home.path().join("block.toml");
    std::fs::write(&file, text).map_err(|error| error.to_string())?;
    let (status, err) = stage.shell("locktop config check --config block.toml").await;
    if status == 0 { Ok(()) } else { Err(err) }
}

#[tokio::test]
async fn every_command_and_block_of_the_manual_runs() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for page in pages::pages() {
        let blocks = blocks(&page.text);
        let checked = |block: &&Block<'_>| ["sh", "sql", "toml"].contains(&block.language);
        if !blocks.iter().any(|block| checked(&block)) {
            continue;
        }
        let stage = Stage::new().await;
        for block in blocks.iter().filter(checked) {
            count += 1;
            let found = check(&stage, block).await;
            wrong.extend(found.into_iter().map(|error| format!("{}:{}: {error}", page.path, block.line)));
        }
    }
    assert!(count > 40, "only {count} blocks were found");
    assert!(wrong.is_empty(), "{} of {count} blocks:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test]
async fn wrong_commands_and_blocks_are_found() {
    let stage = Stage::new().await;
    for line in [
        "locktop snapshto --format json app",
        "locktop --no-such-option app",
        "locktop demo --no-such-option",
        "locktop check --only no_such_check app",
        "no-such-program",
        "cargo bench --bench no_such_bench",
        "ssh db locktop recrod - | locktop replay -",
    ] {
        assert!(stage.check_line(line).await.is_err(), "{line}");
    }
    assert!(run(&stage.client, "SELECT no_such_function()").await.is_err());
    assert!(check_toml(&stage, "no_such_key = 1").await.is_err());
}

#[test]
fn a_line_is_cut_as_a_shell_does_and_sql_into_statements() {
    assert_eq!(words("a 'b c' d=\"e f\" | g").unwrap(), ["a", "b c", "d=e f", "|", "g"]);
    assert_eq!(statements("SELECT ';'; -- one; two\nSELECT 2;"), ["SELECT ';'", "SELECT 2"]);
}
