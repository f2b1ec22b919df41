//! A session blocks others by `ALTER ROLE … PASSWORD '…'`, and one waits in a statement with a token: no
//! screen, question, title, clipboard or record contains any part of them.

use super::dashboard::{Dashboard, becomes};
use super::incident::Incident;
use super::support::{self, wait_for};

/// The beginning of each secret, and the same in the encoding of the clipboard, which has three variants.
const SECRET: &str = "s3cr";
const ENCODED: [&str; 3] = ["czNjc", "MzY3I", "zM2Ny"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_screen_and_no_question_has_the_password_of_others() {
    let incident = Incident::none().await;
    let info = incident.info();
    let observer = support::open(&info).await.client;
    observer.batch_execute("CREATE ROLE victim; CREATE TABLE t (a int)").await.unwrap();
    let root = support::open(&info).await;
    let pid = support::pid(&root.client).await;
    root.client.batch_execute("BEGIN; LOCK TABLE t; SELECT pg_advisory_lock(7)").await.unwrap();
    root.client.batch_execute("ALTER ROLE victim PASSWORD 's3cr-root'").await.unwrap();
    let waits = [
        "ALTER ROLE victim PASSWORD E's3cr\\'s' /* s3cr */",
        "SELECT set_config('app.token', 's3cr-set', false) FROM t",
    ];
    for statement in waits {
        let client = support::open(&info).await.client;
        tokio::spawn(async move { drop(client.batch_execute(statement).await) });
    }
    becomes(&observer, "SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted", "2").await;

    let config = "notify = [\"bell\", \"title\", \"osc9\"]\n";
    let mut dashboard = Dashboard::with((200, 50), &incident.server.conninfo(), &[], config);
    dashboard.screen.shows(&pid.to_string());
    let mut seen = Vec::new();
    for (keys, text) in [
        ("1", "PASSWORD ?"),
        ("!", "PASSWORD ?"),
        ("<esc>", "PASSWORD ?"),
        ("2", "PASSWORD ?"),
        ("g<enter>", "ALTER ROLE victim PASSWORD ?"),
        ("y", "copied"),
        ("g<esc>", "PASSWORD ?"),
        ("3a", "of all types"),
        ("7", "PASSWORD ?"),
        ("/password<enter>", "shows"),
        ("<esc>", "─ Backends "),
        ("9", "─ Blame "),
        ("g<enter>", "PASSWORD ?"),
        ("<esc>", "─ Blame "),
    ] {
        dashboard.screen.keys(keys);
        dashboard.screen.shows(text);
        seen.push(dashboard.screen.contents());
    }
    dashboard.screen.keys("2");
    dashboard.select_first(&pid.to_string());
    dashboard.question("K", "y terminate");
    seen.push(dashboard.screen.contents());
    dashboard.screen.keys("y");
    wait_for("the result to be on record", || dashboard.on_record("\"event\":\"result\"") > 0);
    dashboard.screen.keys("8");
    dashboard.screen.shows("─ Events ·");
    seen.push(dashboard.screen.contents());
    dashboard.quit();
    for contents in &seen {
        assert!(!contents.contains(SECRET), "{contents}");
    }
    let seen = dashboard.screen.seen();
    let asked = seen.emulator.callbacks();
    let mut printed: Vec<String> =
        asked.titles.iter().map(|title| String::from_utf8_lossy(title).into_owned()).collect();
    printed.push(String::from_utf8_lossy(&seen.raw).into_owned());
    let copied: Vec<_> = asked.copied.iter().map(|text| String::from_utf8_lossy(text)).collect();
    assert!(!copied.is_empty(), "{copied:?}");
    for text in &printed {
        assert!(!text.contains(SECRET), "{text}");
    }
    for text in copied {
        assert!(!ENCODED.iter().any(|secret| text.contains(secret)), "{text}");
    }
    assert_eq!(dashboard.on_record(SECRET), 0);
}
