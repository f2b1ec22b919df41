//! `record`, `replay` and `cut`, as programs.

use std::path::Path;
use std::process::{Child, Stdio};

use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::feed::replay::Recording;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::binary::{finish, locktop, run};
use super::support::{conninfo, is_long, open, wait_for, wait_until};

/// A recorder that polls ten times a second.
fn recorder(target: &str, place: &str) -> Child {
    locktop(&["-w", "record", place, target, "--refresh", "0.1s"]).spawn().unwrap()
}

/// The number of snapshots in a recording; 0 before it exists.
fn snapshots(path: &Path) -> usize {
    Recording::open(path).map_or(0, |recording| recording.moments().len())
}

/// The lines of a recording's export.
fn exported(place: &str) -> Vec<Value> {
    let left = run(locktop(&["replay", place, "--export", "jsonl"]));
    assert_eq!((left.status, left.err.as_str()), (Some(0), ""));
    left.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Whenever a recorder is killed, its recording can be read, and the next recorder continues it.
/// `LOCKTOP_LONG=1` kills five hundred recorders.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_recorder_loses_at_most_the_snapshot_being_written() {
    let server = EmbeddedServer::start(Options::default()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("killed.ltr");
    let place = path.to_str().unwrap();
    let mut before = 0;
    for round in 0..if is_long() { 500 } else { 6 } {
        let mut child = recorder(&server.conninfo(), place);
        // Each time after another number of snapshots, and sometimes before the first.
        let wanted = before + round % 4;
        wait_for("snapshots to be recorded", || snapshots(&path) >= wanted);
        let seen = snapshots(&path);
        kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
        child.wait().unwrap();
        let mut recording = Recording::open(&path);
        assert!(recording.is_ok() || seen == 0, "round {round}: {recording:?}");
        let count = recording.as_ref().map_or(0, |recording| recording.moments().len());
        assert!(count >= seen, "round {round}: {count} of at least {seen} snapshots are recorded");
        if let Ok(recording) = &mut recording {
            for place in before..count {
                recording.view(place).unwrap();
            }
        }
        before = count;
    }
    let child = recorder(&server.conninfo(), place);
    wait_for("the recording to be continued", || snapshots(&path) > before);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let left = finish(child, "the recorder");
    assert_eq!((left.status, left.err.as_str()), (Some(0), ""), "it ends with status 0 when asked to end");
    assert_eq!(exported(place).len(), snapshots(&path));
}

/// A session that is idle and has a lock that another waits for is critical at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flight_recorder_records_only_around_an_incident() {
    let server = EmbeddedServer::start(Options::default()).await.unwrap();
    let target = server.conninfo();
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    let recordings = || -> Vec<std::path::PathBuf> {
        let paths = std::fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path());
        paths.filter(|path| path.extension().is_some_and(|suffix| suffix == "ltr")).collect()
    };
    let options = ["--refresh", "0.1s", "--on-trouble", "--before", "0.2s", "--after", "0.5s"];
    let child = locktop(&[&["-w", "record", place, &target][..], &options].concat()).spawn().unwrap();
    let holder = open(&conninfo(&server)).await.client;
    holder.batch_execute("SET application_name = 'holder'; SELECT pg_advisory_lock(7)").await.unwrap();
    let observer = open(&conninfo(&server)).await.client;
    // The last statement of a poll, twice: then the result of the first poll has reached the recorder.
    let mut polls = std::collections::BTreeSet::new();
    wait_until("the recorder to poll", async || {
        let sql = "SELECT state_change::text FROM pg_stat_activity
            WHERE application_name LIKE 'locktop%' AND query LIKE '%clock_timestamp%' AND pid <> pg_backend_pid()";
        polls.extend(observer.query(sql, &[]).await.unwrap().iter().map(|row| row.get::<_, String>(0)));
        polls.len() > 2
    })
    .await;
    assert_eq!(recordings().len(), 0, "nothing is wrong");
    let waiter = open(&conninfo(&server)).await.client;
    let waiting = tokio::spawn(async move { waiter.batch_execute("SELECT pg_advisory_lock(7)").await });
    wait_for("the incident to be recorded", || recordings().first().is_some_and(|path| snapshots(path) > 2));
    holder.batch_execute("SELECT pg_advisory_unlock(7)").await.unwrap();
    waiting.await.unwrap().unwrap();
    let path = recordings().remove(0);
    let ended =
        || std::fs::read(&path).unwrap().windows(5).any(|bytes| bytes == [0xF5, b'L', b'T', b'R', 127]);
    wait_for("its end", ended);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let left = finish(child, "the recorder");
    assert_eq!(left.status, Some(0), "{left:?}");
    assert!(left.err.contains(": recording to ") && left.err.contains("the incident is over"), "{left:?}");
    let all = exported(path.to_str().unwrap());
    let critical =
        |one: &Value| one["findings"].as_array().unwrap().iter().any(|found| found["severity"] == "critical");
    assert!(!critical(&all[0]) && !critical(all.last().unwrap()), "the snapshots before and after it");
    assert!(all.iter().any(critical));
    let left = run(locktop(&["record", place, &target, "--before", "1m"]));
    assert_eq!(left.status, Some(2), "{left:?}");
}

/// A file for a reader that may see the waits, but no names.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recording_without_names_has_none() {
    let server = EmbeddedServer::start(Options::default()).await.unwrap();
    let admin = open(&conninfo(&server)).await.client;
    admin.batch_execute("CREATE ROLE s3cret_role SUPERUSER LOGIN").await.unwrap();
    admin.batch_execute("CREATE DATABASE s3cret_db").await.unwrap();
    let target =
        format!("{} dbname=s3cret_db user=s3cret_role application_name=s3cret_app", server.conninfo());
    let info = locktop::pg::conninfo::ConnInfo::parse(&target).unwrap();
    let (holder, waiter) = (open(&info).await.client, open(&info).await.client);
    holder.batch_execute("CREATE TABLE s3cret_t (s3cret_c int)").await.unwrap();
    holder.batch_execute("BEGIN; LOCK TABLE s3cret_t; SELECT pg_advisory_lock(7) AS s3cret").await.unwrap();
    let waiting = tokio::spawn(async move { waiter.batch_execute("SELECT s3cret_c FROM s3cret_t").await });
    wait_until("a session to wait", async || {
        let sql = "SELECT count(*) FROM pg_locks WHERE NOT granted";
        admin.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) == 1
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (names, plain, cut) = (at("names.ltr"), at("plain.ltr"), at("cut.ltr"));
    let with = |place: &str, more: &[&str]| {
        let left = run(locktop(
            &[&["-w", "record", place, &target, "--refresh", "0.1s", "--for", "2s"][..], more].concat(),
        ));
        assert_eq!((left.status, left.err.as_str()), (Some(0), ""));
    };
    with(&names, &["--redact", "names"]);
    with(&plain, &[]);
    let left = run(locktop(&["cut", &plain, "-o", &cut, "--redact", "names"]));
    assert_eq!((left.status, left.err.as_str()), (Some(0), ""));
    let has = |lines: &[Value]| lines.iter().any(|line| line.to_string().contains("s3cret"));
    assert!(has(&exported(&plain)));
    for path in [&names, &cut] {
        let (lines, bytes) = (exported(path), std::fs::read(path).unwrap());
        assert!(!has(&lines) && !bytes.windows(6).any(|bytes| bytes == b"s3cret"), "{path}");
        let last = lines.last().unwrap();
        assert_eq!(last["roots"][0]["blocked"], 1, "{last}");
        let lock = last["locks"].as_array().unwrap().iter().find(|lock| lock["granted"] == false).unwrap();
        assert!(lock["relation_name"].as_str().unwrap().starts_with("rel-"), "{lock}");
        let report = run(locktop(&["report", path])).out;
        assert!(
            report.contains("query-") && !report.contains("query-?") && !report.contains("s3cret"),
            "{report}"
        );
        assert!(
            report.contains("## Root blockers") && report.starts_with("# names-left-out from "),
            "{report}"
        );
    }
    let left = run(locktop(&["-w", "record", &names, &target, "--redact", "names"]));
    assert!(left.status == Some(2) && left.err.contains("needs a new file"), "{left:?}");
    holder.batch_execute("ROLLBACK").await.unwrap();
    waiting.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recordings_can_be_piped_and_cut() {
    let server = EmbeddedServer::start(Options::default()).await.unwrap();
    let target = server.conninfo();
    let mut record =
        locktop(&["-w", "record", "-", &target, "--refresh", "0.1s", "--for", "2s"]).spawn().unwrap();
    let mut replay = locktop(&["replay", "-", "--export", "jsonl"]);
    replay.stdin(Stdio::from(record.stdout.take().unwrap()));
    let left = run(replay);
    assert_eq!((left.status, left.err.as_str()), (Some(0), ""));
    assert!(left.out.lines().count() > 1, "{}", left.out);
    assert_eq!(record.wait().unwrap().code(), Some(0));

    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (whole, part) = (at("whole.ltr"), at("part.ltr"));
    let left = run(locktop(&["-w", "record", &whole, &target, "--refresh", "0.1s", "--for", "3s"]));
    assert_eq!((left.status, left.err.as_str()), (Some(0), ""));
    let all = exported(&whole);
    let left = run(locktop(&["replay", &whole, "--export", "csv"]));
    assert_eq!((left.status, left.err.as_str()), (Some(0), ""));
    let (head, lines) = left.out.split_once("\r\n").unwrap();
    assert!(head.starts_with("taken_at,waiting,"), "{head}");
    assert_eq!(lines.lines().count(), all.len());
    let left = run(locktop(&["cut", &whole, "--from", "-1s", "-o", &part]));
    assert_eq!((left.status, left.err.as_str()), (Some(0), ""));
    let cut = exported(&part);
    assert!(!cut.is_empty() && cut.len() < all.len(), "{} of {}", cut.len(), all.len());
    let last = all.iter().rev().zip(cut.iter().rev());
    assert!(
        last.into_iter()
            .all(|(was, is)| was["taken_at"] == is["taken_at"] && was["backends"] == is["backends"])
    );
    let left = run(locktop(&["cut", &whole, "-o", &part]));
    assert!(left.status == Some(1) && left.err.contains(": file exists; "), "{left:?}");
    let other = at("other.txt");
    std::fs::write(&other, "no recording").unwrap();
    std::fs::set_permissions(&other, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let left = run(locktop(&["replay", &other, "--export", "jsonl"]));
    assert!(left.status == Some(1) && left.err.contains("not a recording of locktop"), "{left:?}");
    let left = run(locktop(&["-w", "record", &other, &target]));
    assert!(left.status == Some(1) && left.err.contains("not a recording"), "{left:?}");
}

/// A report, on standard output and in files that only their owner can read.
#[test]
fn a_report_is_not_overwritten_and_wrong_arguments_are_reported() {
    use std::os::unix::fs::PermissionsExt;

    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recordings/format-1.ltr");
    let left = run(locktop(&["report", recording]));
    assert_eq!((left.status, left.err.as_str()), (Some(0), ""));
    assert!(left.out.starts_with("# ") && left.out.contains("## Root blockers"), "{}", left.out);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("incident.html");
    let place = path.to_str().unwrap();
    let left = run(locktop(&["report", recording, "--last", "30s", "-o", place]));
    assert_eq!((left.status, left.out.as_str(), left.err.as_str()), (Some(0), "", ""));
    let page = std::fs::read_to_string(&path).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"), "{page}");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let left = run(locktop(&["report", recording, "-o", place]));
    assert!(left.status == Some(1) && left.err.contains(": file exists; "), "{left:?}");
    let left = run(locktop(&["report", recording, "--format", "json", "--from", "-20s"]));
    let document: Value = serde_json::from_str(&left.out).unwrap();
    assert!(document["looks"].as_u64().unwrap() <= 21 && document["blame"]["seconds"].is_number());
    for (arguments, status, words) in [
        (vec!["--episode", "4711"], 1, "no episode 4711"),
        (
            vec!["--from", "2001-01-01 00:00", "--to", "2001-01-01 00:01"],
            1,
            "no snapshot between these times",
        ),
        (vec!["--last", "1h", "--from", "14:02"], 2, "cannot be used with"),
        (vec!["--top", "0"], 2, "0 is not in 1..=100"),
    ] {
        let left = run(locktop(&[&["report", recording], arguments.as_slice()].concat()));
        assert!(left.status == Some(status) && left.err.contains(words), "{arguments:?}: {left:?}");
    }
    // A recording without costs has none after a cut: they are counted from the snapshots both times.
    let part = folder.path().join("part.ltr");
    let left = run(locktop(&["cut", recording, "-o", part.to_str().unwrap()]));
    assert_eq!((left.status, left.err.as_str()), (Some(0), ""));
    let headline = |place: &str| run(locktop(&["report", place])).out.lines().nth(2).unwrap().to_owned();
    assert_eq!(headline(part.to_str().unwrap()), headline(recording));
    assert!(headline(recording).contains(" of waiting"), "{}", headline(recording));
    let cut = folder.path().join("cut.ltr");
    let bytes = std::fs::read(recording).unwrap();
    std::fs::write(&cut, &bytes[..bytes.len() * 2 / 3]).unwrap();
    let left = run(locktop(&["report", cut.to_str().unwrap()]));
    assert!(left.status == Some(0) && left.out.contains("## Root blockers"), "{left:?}");
}

/// Without a connection nothing is recorded, and an existing recording is unchanged.
#[tokio::test]
async fn without_a_connection_an_existing_recording_is_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("a.ltr");
    let path = place.to_str().unwrap();
    let in_vain = || run(locktop(&["record", path, "host=/nonexistent"]));
    let left = in_vain();
    assert!(left.status == Some(1) && left.err.contains("no server socket"), "{}", left.err);
    assert!(!place.exists());
    let server = EmbeddedServer::start(Options::default()).await.unwrap();
    let left = run(locktop(&["record", path, &server.conninfo(), "--for", "3s"]));
    assert_eq!(left.status, Some(0), "{}", left.err);
    let before = std::fs::read(&place).unwrap();
    assert_eq!(in_vain().status, Some(1));
    assert_eq!(std::fs::read(&place).unwrap(), before);
}
