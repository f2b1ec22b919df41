//! `locktop report --log`: what a real server wrote into its log between snapshots.

use std::path::{Path, PathBuf};

use locktop::demo::postgres::{EmbeddedServer, Options};
use serde_json::Value;
use tokio_postgres::Client;

use super::binary::{Left, locktop, run};
use super::support::{conninfo, open, versions, wait_for};

/// A server that logs waits of more than a tenth of a second, in a zone that is not the recorder's.
async fn logging(version: u32) -> EmbeddedServer {
    let formats = if version >= 15 { "jsonlog,csvlog" } else { "csvlog" };
    let options = Options { version: Some(version), ..Options::default() }
        .with("logging_collector", "on")
        .with("log_destination", formats)
        .with("log_directory", "log")
        .with("log_filename", "server.log")
        .with("log_rotation_age", 0)
        .with("log_min_messages", "warning")
        .with("log_lock_waits", "on")
        .with("deadlock_timeout", "100ms")
        .with("log_timezone", "America/St_Johns");
    EmbeddedServer::start(options).await.unwrap()
}

async fn client(server: &EmbeddedServer, name: &str) -> Client {
    let client = open(&conninfo(server)).await.client;
    client.batch_execute(&format!("SET application_name = '{name}'")).await.unwrap();
    client
}

async fn log_of(server: &EmbeddedServer, ending: &str) -> PathBuf {
    let observer = open(&conninfo(server)).await.client;
    let row = observer.query_one("SHOW data_directory", &[]).await.unwrap();
    Path::new(row.get::<_, &str>(0)).join("log").join(format!("server.{ending}"))
}

fn occurrences(log: &Path, what: &str) -> usize {
    std::fs::read_to_string(log).unwrap_or_default().matches(what).count()
}

/// Records one snapshot, which is appended to the recording.
async fn record_snapshot(server: &EmbeddedServer, place: &str) {
    let target = server.conninfo();
    let line = ["-w", "record", place, &target, "--refresh", "60s", "--for", "1s"].map(str::to_owned);
    let left = tokio::task::spawn_blocking(move || {
        let line: Vec<&str> = line.iter().map(String::as_str).collect();
        run(locktop(&line))
    });
    assert_eq!(left.await.unwrap().status, Some(0));
}

fn report(place: &str, log: &Path, more: &[&str]) -> Left {
    run(locktop(&[&["report", place, "--log", log.to_str().unwrap()][..], more].concat()))
}

/// A session waits until the wait is logged, and gets the lock.
async fn a_wait(server: &EmbeddedServer, log: &Path, statement: &str) {
    let (holder, waiter) = (client(server, "billing").await, client(server, "web").await);
    holder.batch_execute("BEGIN; LOCK TABLE accounts").await.unwrap();
    let before = occurrences(log, "still waiting for");
    let statement = statement.to_owned();
    let waiting = tokio::spawn(async move { waiter.batch_execute(&statement).await });
    wait_for("the wait to be logged", || occurrences(log, "still waiting for") > before);
    let before = occurrences(log, " acquired ");
    holder.batch_execute("COMMIT").await.unwrap();
    waiting.await.unwrap().unwrap();
    wait_for("its end to be logged", || occurrences(log, " acquired ") > before);
}

async fn a_deadlock(server: &EmbeddedServer, log: &Path) {
    let (one, other) = (client(server, "one").await, client(server, "other").await);
    one.batch_execute("BEGIN; UPDATE accounts SET a = 0 WHERE id = 1").await.unwrap();
    other.batch_execute("BEGIN; UPDATE accounts SET a = 0 WHERE id = 2").await.unwrap();
    let second =
        tokio::spawn(async move { one.batch_execute("UPDATE accounts SET a = 11 WHERE id = 2").await });
    let first = other.batch_execute("UPDATE accounts SET a = 22 WHERE id = 1").await;
    drop(other);
    assert!(first.is_err() != second.await.unwrap().is_err(), "one of them fails");
    wait_for("the deadlock to be logged", || occurrences(log, "deadlock detected") > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_shows_the_waits_that_were_logged_between_snapshots() {
    for version in versions().into_iter().filter(|version| [14, 15, 18].contains(version)) {
        let server = logging(version).await;
        let admin = client(&server, "admin").await;
        let table =
            "CREATE TABLE accounts (id int PRIMARY KEY, a int); INSERT INTO accounts VALUES (1, 0), (2, 0)";
        admin.batch_execute(table).await.unwrap();
        let log = log_of(&server, "csv").await;
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("incident.ltr");
        let place = place.to_str().unwrap();
        record_snapshot(&server, place).await;

        let forged = "2026-11-23 13:31:00.500 UTC,\"app\",\"app\",1,,1.1,1,,,,,LOG,40P01,\"deadlock detected\",,,,,,,,,\"\",,,";
        let hostile =
            format!("/* <script>alert(1)</script> | \n{forged}\n\" */ SELECT 's3cret' FROM accounts LIMIT 1");
        a_wait(&server, &log, &hostile).await;
        a_deadlock(&server, &log).await;
        let holder = client(&server, "billing").await;
        holder.batch_execute("BEGIN; LOCK TABLE accounts").await.unwrap();
        let patient = client(&server, "patient").await;
        let failed = patient.batch_execute("SET lock_timeout = '300ms'; SELECT 1 FROM accounts").await;
        assert!(failed.is_err());
        assert!(patient.batch_execute("BEGIN; LOCK TABLE accounts NOWAIT").await.is_err());
        patient.batch_execute("ROLLBACK").await.unwrap();
        // Any role can raise a message in a function.
        let raise = "DO $$ BEGIN RAISE LOG 'process % still waiting for ShareLock on transaction 1 after 9000000.000 ms', \
                     pg_backend_pid(); END $$";
        patient.batch_execute(raise).await.unwrap();
        // And one that is in a snapshot.
        let slow = client(&server, "slow").await;
        let before = occurrences(&log, "still waiting for");
        let waiting = tokio::spawn(async move { slow.batch_execute("DELETE FROM accounts").await });
        wait_for("the wait to be logged", || occurrences(&log, "still waiting for") > before);
        record_snapshot(&server, place).await;
        holder.batch_execute("COMMIT").await.unwrap();
        waiting.await.unwrap().unwrap();
        wait_for("its end to be logged", || {
            occurrences(&log, " acquired AccessShare") + occurrences(&log, " acquired RowExclusive") > 1
        });

        for ending in if version >= 15 { &["json", "csv"][..] } else { &["csv"] } {
            let log = log_of(&server, ending).await;
            check_report(place, &log, version);
        }
    }
}

/// Checks the report of such a log.
fn check_report(place: &str, log: &Path, version: u32) {
    let left = report(place, log, &["--format", "json"]);
    assert_eq!((left.status, left.err.as_str()), (Some(0), ""), "{version}");
    let document: Value = serde_json::from_str(&left.out).unwrap();
    let logged = &document["log"];
    assert_eq!(
        (logged["other_server"].as_str(), logged["files"][0]["damaged"].as_u64()),
        (None, Some(0)),
        "{logged}"
    );
    let waits = logged["waits"].as_array().unwrap();
    let of = |name: &str| -> Vec<&Value> {
        waits.iter().filter(|wait| wait["who"].as_str().unwrap().ends_with(&format!("@{name}"))).collect()
    };
    let [web] = of("web")[..] else { panic!("{version}: {logged:#}") };
    assert_eq!(
        [&web["mode"], &web["lock"], &web["ended"], &web["seen"]].map(|value| value.as_str().unwrap()),
        ["AccessShare", "accounts", "got the lock", "between snapshots"],
        "{version}"
    );
    assert!(web["seconds"].as_f64().unwrap() > 0.1 && web["statement"].as_str().unwrap().contains("s3cret"));
    assert!(web["behind"].as_str().unwrap().parse::<i32>().is_ok(), "{web}");
    let [patient] = of("patient")[..] else { panic!("{version}: {logged:#}") };
    assert_eq!(patient["ended"], "canceled while waiting for a lock (lock_timeout)");
    let [slow] = of("slow")[..] else { panic!("{version}: {logged:#}") };
    assert_eq!((&slow["seen"], &slow["ended"]), (&"also in snapshots".into(), &"got the lock".into()));
    assert!(slow["behind"].as_str().unwrap().ends_with("postgres@billing"), "{slow}");
    let is_real = |wait: &Value| wait["seconds"].as_f64().unwrap() < 1_000.0;
    assert!(waits.iter().all(is_real), "a message raised by a function is no wait: {logged:#}");
    let deadlocks = logged["deadlocks"].as_array().unwrap();
    assert_eq!(deadlocks.len(), 1, "{logged:#}");
    let lines = deadlocks[0]["waits"].as_array().unwrap();
    assert!(
        lines.len() == 2
            && lines.iter().all(|line| line.as_str().unwrap().contains("UPDATE accounts SET a = "))
    );
    let ended: Vec<_> =
        logged["ended"].as_array().unwrap().iter().map(|one| one["text"].as_str().unwrap()).collect();
    assert!(
        ended.iter().any(|line| line.contains("@patient failed to acquire a lock at once (NOWAIT)")),
        "{ended:?}"
    );

    // Redacted values are redacted here, too.
    let left = report(place, log, &["--redact", "literals", "--format", "json"]);
    assert!(!left.out.contains("s3cret") && left.out.contains("FROM accounts LIMIT"), "{}", left.out);
    for format in ["md", "html"] {
        let left = report(place, log, &["--format", format]);
        let kind =
            if log.extension().is_some_and(|ending| ending == "csv") { "(csvlog, " } else { "(jsonlog, " };
        for wanted in ["that no snapshot shows", "not part of the costs above", "deadlock: ", kind] {
            assert!(left.out.contains(wanted), "{format}: {wanted}: {}", left.out);
        }
        assert!(!left.out.contains("<script"), "{format}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_of_another_server_or_another_day_is_reported() {
    let version = *versions().last().unwrap();
    let (server, other) = (logging(version).await, logging(version).await);
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("incident.ltr");
    let place = place.to_str().unwrap();
    let stays = client(&other, "stays").await;
    let own = client(&server, "own").await;
    let log = log_of(&other, "json").await;
    // A session has to be connected for a second before a snapshot is sure to contain it.
    record_snapshot(&server, place).await;
    record_snapshot(&server, place).await;
    record_snapshot(&server, place).await;
    // An entry after the last snapshot is outside the time of the report.
    for client in [&stays, &own] {
        assert!(client.batch_execute("SELECT 1 / 0").await.is_err());
    }
    record_snapshot(&server, place).await;
    wait_for("the error to be logged", || occurrences(&log, "division by zero") > 0);
    let left = report(place, &log, &[]);
    assert!(left.out.contains("It is the log of another server: its process "), "{}", left.out);
    let foreign = log;
    let log = log_of(&server, "json").await;
    let left = report(place, &log, &[]);
    assert!(!left.out.contains("another server") && left.out.contains("It has no wait"), "{}", left.out);
    // The wrong one among several is the only one that is reported.
    let left = report(place, &log, &["--log", foreign.to_str().unwrap()]);
    assert_eq!(left.out.matches("It is the log of another server").count(), 1, "{}", left.out);
    assert!(left.out.contains("It has no wait"), "{}", left.out);

    let old = folder.path().join("old.json");
    let text = std::fs::read_to_string(&log).unwrap();
    let year = &text[14..18];
    std::fs::write(&old, text.replace(&format!("\"{year}-"), "\"2001-")).unwrap();
    let left = report(place, &old, &[]);
    assert!(left.out.contains("It has no entry from the time of this report"), "{}", left.out);
    for (name, text) in [("empty", ""), ("stderr", "2026-11-23 14:02:31.123 UTC [1] LOG:  x\n")] {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let left = report(place, &path, &[]);
        assert!(left.status == Some(1) && left.err.contains(name), "{left:?}");
    }
}
