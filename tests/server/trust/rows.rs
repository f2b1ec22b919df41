//! Tables of a harmless role that is not named as trusted: small ones are shown as if it were, large ones with the option to type.

use std::io::{Read, Seek};

use serde_json::Value;

use super::forged::installed;
use super::ground::{Ground, one_version};
use super::snapshots::snapshot;
use super::support::{versions, wait_until};

/// All values from users' tables, without those that depend on the time of the snapshot.
fn content(json: &Value) -> Vec<(&'static str, Value)> {
    let keys = ["tasks", "executions", "leases", "queue", "sections"];
    keys.into_iter()
        .map(|key| {
            let mut value = json[key].clone();
            without_ages(&mut value);
            (key, value)
        })
        .collect()
}

fn without_ages(value: &mut Value) {
    match value {
        Value::Object(object) => {
            // A settling execution is an orphan a moment later; how often a task failed is counted over the rows that were read.
            if object.contains_key("evidence")
                && (object["state"] == "settling" || object["maybe"] == "orphan")
            {
                object.insert("state".to_owned(), "orphan".into());
            }
            object.retain(|key, _| {
                !matches!(key.as_str(), "taken_at" | "evidence" | "maybe" | "orphan_in" | "failed_in_a_row")
            });
            object.values_mut().for_each(without_ages);
        }
        Value::Array(array) => array.iter_mut().for_each(without_ages),
        _ => {}
    }
}

/// A snapshot that trusts no owner and one that trusts the tables' owner. On a busy server a statement sometimes times out, and its
/// rows are missing: such a snapshot is taken again.
async fn answered(ground: &Ground) -> [Value; 2] {
    let mut both = [Value::Null, Value::Null];
    wait_until("two snapshots of which every statement is answered in time", async || {
        for (json, more) in both.iter_mut().zip([&[][..], &["--trust-owner", "app"]]) {
            if !is_in_time(json) {
                *json = snapshot(ground, "monitor", more).await;
            }
        }
        let [plain, trusted] = both.each_ref().map(errors);
        let are_in_time = both.iter().all(is_in_time);
        if are_in_time && plain != trusted {
            both = [Value::Null, Value::Null];
        }
        are_in_time && plain == trusted
    })
    .await;
    both
}

fn is_in_time(json: &Value) -> bool {
    json.is_object() && !json["sections"].to_string().contains("statement timeout")
}

fn errors(json: &Value) -> Vec<(String, Value)> {
    let sections = json["sections"].as_object().into_iter().flatten();
    sections.map(|(name, section)| (name.clone(), section["error"].clone())).collect()
}

/// The same, but for the rows of `more`, of which a copy may show more, and for the numbers of `exact`, which it knows better.
async fn same(ground: &Ground, more: &[&str], exact: &[&str]) -> Value {
    let [plain, trusted] = answered(ground).await;
    for ((name, plain), (_, trusted)) in content(&plain).into_iter().zip(content(&trusted)) {
        if exact.contains(&name) {
            continue;
        }
        let may_be_more = more.contains(&name);
        let (plain, trusted) = (lines(&plain), lines(&trusted));
        let of = |lines: &[String]| lines.iter().cloned().collect::<std::collections::HashSet<_>>();
        let (of_plain, of_trusted) = (of(&plain), of(&trusted));
        let more: Vec<_> = plain.iter().filter(|line| !of_trusted.contains(*line)).collect();
        let less: Vec<_> = trusted.iter().filter(|line| !of_plain.contains(*line)).collect();
        let is_more = more.is_empty() || may_be_more;
        assert!(
            is_more && less.is_empty() && plain.len() >= trusted.len(),
            "{name}: {} by a copy, {} by a statement\nonly by a copy {}: {:#?}\nonly by a statement {}: {:#?}",
            plain.len(),
            trusted.len(),
            more.len(),
            more.iter().take(5).collect::<Vec<_>>(),
            less.len(),
            less.iter().take(5).collect::<Vec<_>>()
        );
    }
    plain
}

/// Each row as text: their order counts only on a sorted screen.
fn lines(value: &Value) -> Vec<String> {
    match value {
        Value::Array(rows) => rows.iter().map(ToString::to_string).collect(),
        value => vec![value.to_string()],
    }
}

/// Items of each status.
fn counts(json: &Value) -> [u64; 4] {
    ["pending", "processing", "completed", "failed"].map(|status| json["queue"][status].as_u64().unwrap())
}

#[tokio::test]
async fn small_tables_of_a_role_that_is_not_named_are_shown_as_they_are() {
    for version in versions() {
        let ground = Ground::new(version).await;
        ground.tables("app").await;
        let json = same(&ground, &[], &[]).await;
        let count = |key: &str| json[key].as_array().map(Vec::len);
        assert_eq!(
            (count("tasks"), count("executions"), count("leases")),
            (Some(3), Some(3), Some(2)),
            "{json}"
        );
        assert_eq!(counts(&json), [1, 1, 1, 1], "{}", json["queue"]);
        let evidence = json["executions"][0]["evidence"].as_str().unwrap();
        assert!(evidence.starts_with("no session holds key"), "{json}");
    }
}

const OWN: &str = include_str!("own.sql");

#[tokio::test]
async fn installed_tables_of_an_untrusted_role_are_shown_from_a_copy() {
    for version in one_version() {
        let ground = installed(version, "app").await;
        ground.run("app", OWN).await;
        let json = same(&ground, &[], &[]).await;
        assert_eq!(json["tasks"].as_array().map(Vec::len), Some(300), "{json}");
        let states: std::collections::BTreeSet<&str> =
            json["tasks"].as_array().unwrap().iter().filter_map(|task| task["state"].as_str()).collect();
        assert!(states.len() >= 4, "{states:?}");
        assert!(json["executions"].as_array().unwrap().len() > 100, "{json}");
    }
}

const ODD: &str = include_str!("odd.sql");

/// Types and values as they occur, in a database whose settings change how they are written.
#[tokio::test]
async fn odd_rows_are_shown_as_statements_would_show_them() {
    for version in one_version() {
        let ground = Ground::new(version).await;
        let name = ground.name();
        let settings = format!(
            "ALTER DATABASE {name} SET DateStyle = 'SQL, DMY'; ALTER DATABASE {name} SET IntervalStyle = 'postgres_verbose';
             ALTER DATABASE {name} SET TimeZone = 'Asia/Kathmandu'; ALTER DATABASE {name} SET extra_float_digits = -15;
             ALTER DATABASE {name} SET bytea_output = 'escape'; GRANT CREATE ON SCHEMA public TO app"
        );
        ground.run("postgres", &settings).await;
        ground.run("app", ODD).await;
        let json = same(&ground, &[], &["queue"]).await;
        assert_eq!(counts(&json), [1, 1, 1, 1], "{}", json["queue"]);
        let count = |key: &str| json[key].as_array().map(Vec::len);
        assert_eq!((count("tasks"), count("leases")), (Some(7), Some(8)), "{}", json["sections"]);
    }
}

/// Times without a zone are meant in the database's, summer and winter.
#[tokio::test]
async fn times_without_a_zone_are_in_the_databases_zone() {
    for version in one_version() {
        for zone in ["Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "UTC"] {
            let ground = Ground::new(version).await;
            let name = ground.name();
            let settings = format!(
                "ALTER DATABASE {name} SET TimeZone = '{zone}'; GRANT CREATE ON SCHEMA public TO app"
            );
            ground.run("postgres", &settings).await;
            ground.run("app", SEASONS).await;
            let json = same(&ground, &[], &[]).await;
            assert_eq!(json["leases"].as_array().map(Vec::len), Some(4), "{zone}");
        }
    }
}

const SEASONS: &str = "
    CREATE TABLE scheduled_tasks (id integer PRIMARY KEY, task_name text, next_run_at timestamp, last_run_at date);
    INSERT INTO scheduled_tasks VALUES (1, 'winter', '2026-01-15 12:00', '2026-01-15'), (2, 'summer', '2026-07-15 12:00', '2026-07-15');
    CREATE TABLE distlock (id integer PRIMARY KEY, expired_time interval, owner text, ts timestamp);
    INSERT INTO distlock VALUES (1, '1 hour', 'winter', '2026-01-15 12:00'), (2, '1 hour', 'summer', '2026-07-15 12:00'),
                                (3, '900 hours', 'skipped', '2026-03-29 02:30'), (4, '4000 hours', 'twice', '2026-10-25 02:30');
    GRANT SELECT ON ALL TABLES IN SCHEMA public TO PUBLIC;";

const MANY: &str = include_str!("many.sql");

/// More rows than are shown: the same ones are left out. A copy has all executions, and shows the last ones
/// of each task.
#[tokio::test]
async fn of_many_rows_the_same_are_shown() {
    for version in one_version() {
        let ground = Ground::new(version).await;
        ground.tables("app").await;
        ground.run("app", MANY).await;
        let json = same(&ground, &["executions"], &["queue"]).await;
        assert_eq!(counts(&json), [2001, 2001, 2001, 2001], "{}", json["queue"]);
        assert_eq!(json["leases"].as_array().map(Vec::len), Some(1000));
    }
}

/// A small table that becomes a large one when it is read: the server keeps such values compressed.
#[tokio::test]
async fn a_table_that_swells_when_it_is_read_does_no_harm() {
    for version in one_version() {
        let ground = Ground::with_tables(version).await;
        let swell = "ALTER TABLE distlock ALTER owner SET STORAGE MAIN;
            INSERT INTO distlock SELECT g, '1 hour', repeat('x', 150000), now() FROM generate_series(10, 2000) g;
            ALTER TABLE scheduled_tasks ALTER task_name SET STORAGE MAIN;
            ALTER TABLE scheduled_tasks DROP CONSTRAINT scheduled_tasks_task_name_key;
            INSERT INTO scheduled_tasks (task_name, task_type) SELECT repeat('x', 150000), 'x' FROM generate_series(10, 2000) g";
        ground.run("mallory", swell).await;
        for table in ["distlock", "scheduled_tasks"] {
            let size: i64 = ground.ask(&format!("pg_relation_size('{table}')")).await.parse().unwrap();
            assert!(size < 8 << 20, "{table}: {size} bytes");
        }
        // A busy server may not answer everything in the first snapshot.
        let mut found = None;
        for _ in 0..5 {
            found = swollen(&ground).await;
            if found == Some(3) {
                break;
            }
        }
        assert_eq!(found, Some(3), "the other rows are shown");
    }
}

/// The number of executions in a snapshot, taken with little more memory than a snapshot of any server needs.
async fn swollen(ground: &Ground) -> Option<usize> {
    let start = locktop::clock::monotonic();
    let target = ground.target("boss");
    let program = env!("CARGO_BIN_EXE_locktop");
    let script = "ulimit -v 1500000; exec \"$@\"";
    let mut command = std::process::Command::new("/bin/sh");
    command.args(["-c", script, "sh", program, "-w", "snapshot", "--format", "json", &target]);
    command.env("XDG_STATE_HOME", "/nonexistent").env("XDG_CONFIG_HOME", "/nonexistent");
    command
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let left = super::binary::run_beside(command).await;
    assert_eq!(left.status, Some(0), "{}", left.err);
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
    let json: Value = serde_json::from_str(&left.out).unwrap();
    json["executions"].as_array().map(Vec::len)
}

/// A table of an untrusted role is read up to eight megabytes.
#[tokio::test]
async fn a_large_table_is_not_read_and_its_owner_is_named() {
    for version in one_version() {
        let ground = Ground::new(version).await;
        ground.tables("app").await;
        let fill = "INSERT INTO task_execution_log (task_id, worker_id, status, started_at, completed_at, error_message)
                        SELECT 1, 'w', 'completed', now(), now(), repeat('x', 500) FROM generate_series(1, 20000);
                    INSERT INTO task_queue (task_name, payload, status) SELECT 'x', to_jsonb(repeat('x', 500)), 'completed'
                        FROM generate_series(1, 20000)";
        ground.run("app", fill).await;
        let json = snapshot(&ground, "monitor", &[]).await;
        let findings: Vec<&str> = json["findings"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|finding| finding["summary"].as_str())
            .collect();
        for table in ["task_execution_log", "task_queue"] {
            let names_owner =
                |text: &str| text.contains(table) && text.contains("app") && text.contains("trust");
            let in_sections = names_owner(&json["sections"].to_string());
            assert!(
                in_sections || findings.iter().any(|text| names_owner(text)),
                "{table}: {} {findings:?}",
                json["sections"]
            );
        }
        assert_eq!(json["executions"].as_array().map(Vec::len), Some(0), "none that may be old");
        // The other tables are as before.
        assert_eq!(json["tasks"].as_array().map(Vec::len), Some(3));
        assert_eq!(json["leases"].as_array().map(Vec::len), Some(2));
        let json = snapshot(&ground, "monitor", &["--trust-owner", "app"]).await;
        assert!(!json["executions"].as_array().unwrap().is_empty());
        assert_eq!(json["queue"]["pending"].as_u64(), Some(1));
    }
}

/// The TOAST values of a small table count as well: neither the server nor the program has them in memory at any poll.
#[tokio::test]
async fn toast_values_count_towards_the_size_of_a_small_table() {
    for version in one_version() {
        let ground = Ground::new(version).await;
        ground.tables("app").await;
        let length = if super::support::is_long() { 300_000_000 } else { 60_000_000 };
        let fill = format!(
            "ALTER TABLE distlock ALTER owner SET STORAGE EXTERNAL;
             INSERT INTO distlock SELECT g, '1 hour', repeat('x', {length}), now() FROM generate_series(10, 11) g"
        );
        ground.run("app", &fill).await;
        let heap: i64 = ground.ask("pg_relation_size('distlock')").await.parse().unwrap();
        assert!(heap < 64 << 10, "{heap}");
        let (target, line) = (ground.target("monitor"), ["snapshot", "--watch=0.1s", "--count", "20"]);
        let watch = [&["-w"], &line[..], &["--format", "json", &target]].concat();
        let mut command = super::binary::locktop(&watch);
        let mut out = tempfile::tempfile().unwrap();
        command.stdout(out.try_clone().unwrap());
        let limit = std::time::Duration::from_secs(60);
        let watched = tokio::task::spawn_blocking(move || crate::connect::flood::watched(command, limit));
        let (left, peak) = watched.await.unwrap();
        println!("PostgreSQL {version}: {peak} MB for values of {} MB", length / 1_000_000);
        assert!(peak <= 64, "{peak} MB");
        let mut text = String::new();
        out.rewind().unwrap();
        out.read_to_string(&mut text).unwrap();
        let last: Value = serde_json::from_str(text.lines().last().unwrap_or_default())
            .unwrap_or_else(|error| panic!("{error}: {text} {}", left.err));
        let reported = last["sections"].to_string() + &last["findings"].to_string();
        assert!(reported.contains("distlock") && reported.contains(" MB"), "{reported}");
        assert_eq!(last["tasks"].as_array().map(Vec::len), Some(3), "the other tables are read");
    }
}
