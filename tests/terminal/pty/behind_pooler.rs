//! The program behind a pooler that an application uses too.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::Duration;

use locktop::pg::connect::Connection;
use locktop::pg::conninfo::ConnInfo;

use super::dashboard::{Dashboard, session_exists};
use super::incident::Incident;
use super::pooler::Pooler;
use super::{binary, support};

/// Number of sessions of the pooler at the server.
const POOL: usize = 5;

/// The state that an application finds in every session of the pool: all settings, and whatever else a
/// session can keep.
async fn found(pool: &ConnInfo) -> Vec<String> {
    let mut clients: Vec<Connection> = Vec::new();
    let mut found = Vec::new();
    for _ in 0..POOL {
        clients.push(support::open(pool).await);
    }
    // At the same time, so that each has a different session.
    for Connection { client, .. } in &clients {
        let messages = client.simple_query("BEGIN; SHOW ALL").await.unwrap();
        let kept = "SELECT (SELECT count(*) FROM pg_prepared_statements), (SELECT count(*) FROM pg_listening_channels()),
            (SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'),
            current_setting('locktop.datid', true)";
        let kept = client.simple_query(kept).await.unwrap();
        let mut rows = String::new();
        for message in messages.iter().chain(&kept) {
            if let tokio_postgres::SimpleQueryMessage::Row(row) = message {
                let value = |at| row.get(at).unwrap_or_default();
                rows.extend([value(0), " ", value(1), "\n"]);
            }
        }
        found.push(rows);
    }
    for Connection { client, driver, .. } in clients {
        client.batch_execute("ROLLBACK").await.unwrap();
        drop(client);
        driver.await.unwrap().unwrap();
    }
    found.sort();
    found
}

/// Fails with the lines that differ.
fn assert_same(after: &[String], before: &[String]) {
    let lines = |all: &[String]| all.concat().lines().map(str::to_owned).collect::<BTreeSet<_>>();
    let (now, then) = (lines(after), lines(before));
    let changed: Vec<_> = now.symmetric_difference(&then).collect();
    assert!(changed.is_empty(), "not as before: {changed:?}");
    assert_eq!(after.len(), before.len());
}

fn lines(pool: usize) -> String {
    format!("default_pool_size = {pool}\nserver_lifetime = 3600")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn in_session_mode_it_works_shows_the_pooler_and_leaves_nothing_behind() {
    let incident = Incident::crowd(3).await;
    let root = incident.root();
    let pooler = Pooler::start_with(&incident.server, "session", &lines(POOL));
    let target = pooler.target(&incident.info());
    let pool = ConnInfo::parse(&target).unwrap();
    let before = found(&pool).await;
    let observer = support::open(&incident.info()).await.client;

    for size in [(80, 24), (120, 35), (200, 60)] {
        let mut dashboard = Dashboard::at(size, &target, &["--screen", "chains"]);
        dashboard.screen.shows(&root.to_string());
        dashboard.screen.shows(" primary");
        dashboard.screen.shows(" · pooler · ");
        dashboard.quit();
    }
    let mut dashboard = Dashboard::at((120, 35), &target, &["--screen", "chains"]);
    dashboard.select_first(&root.to_string());
    dashboard.question("K", "y terminate");
    dashboard.screen.keys("y");
    support::wait_until("the session to end", async || !session_exists(&observer, root).await).await;
    dashboard.screen.shows("terminated");
    dashboard.quit();
    assert_same(&found(&pool).await, &before);
}

/// A pool that returns its sessions to clients without a reset.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn nothing_is_left_behind_when_the_pooler_does_not_reset_sessions() {
    let incident = Incident::crowd(3).await;
    let more = "\nserver_reset_query =";
    let pooler = Pooler::start_with(&incident.server, "session", &(lines(POOL) + more));
    let target = pooler.target(&incident.info());
    let pool = ConnInfo::parse(&target).unwrap();
    let before = found(&pool).await;
    let mut dashboard = Dashboard::at((120, 35), &target, &[]);
    dashboard.screen.shows(&incident.root().to_string());
    dashboard.quit();
    assert_same(&found(&pool).await, &before);
    let left = binary::run(binary::locktop(&["-w", "snapshot", "--format", "json", &target]));
    assert_eq!(left.status, Some(0), "{left:?}");
    assert_same(&found(&pool).await, &before);
}

/// In transaction mode each poll is one transaction, and each action one message. `more`: the pool assigns
/// sessions in turn, so that consecutive transactions have different ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn in_transaction_mode_it_works_shows_the_mode_and_leaves_nothing_behind() {
    for more in ["", "\nserver_round_robin = 1"] {
        let incident = Incident::crowd(3).await;
        let root = incident.root();
        let pooler = Pooler::start_with(&incident.server, "transaction", &(lines(POOL) + more));
        let target = pooler.target(&incident.info());
        let pool = ConnInfo::parse(&target).unwrap();
        let before = found(&pool).await;
        let observer = support::open(&incident.info()).await.client;
        let application = support::open(&pool).await.client;

        for size in [(80, 24), (120, 35), (200, 60)] {
            let mut dashboard = Dashboard::at(size, &target, &["--screen", "chains"]);
            dashboard.screen.shows(&root.to_string());
            dashboard.screen.shows(" primary");
            dashboard.screen.shows(" · txn pool · ");
            application.simple_query("SELECT 1").await.unwrap();
            dashboard.quit();
        }
        for words in [&["snapshot", "--format", "json"][..], &["check", "--format", "json"]] {
            let left = binary::run(binary::locktop(&[&["-w"], words, &[&target]].concat()));
            assert!(left.out.contains(&root.to_string()), "{left:?}");
        }
        assert_same(&found(&pool).await, &before);

        let mut dashboard = Dashboard::at((200, 60), &target, &["--screen", "chains"]);
        dashboard.select_first(&root.to_string());
        dashboard.screen.keys("?\u{1b}[6~");
        dashboard.screen.shows("This connection");
        dashboard.screen.shows("yes, in transaction mode: each poll is one transaction");
        dashboard.screen.shows("no: a local socket");
        dashboard.screen.keys("\u{1b}");
        dashboard.screen.shows("─ Chains");
        dashboard.question("K", "y terminate");
        dashboard.screen.keys("y");
        support::wait_until("the session to end", async || !session_exists(&observer, root).await).await;
        dashboard.screen.shows("terminated");
        dashboard.quit();
        drop(application);
        assert_same(&found(&pool).await, &before);
    }
}

/// The mode of the pool is changed while the program runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_changed_pool_mode_is_noticed() {
    let incident = Incident::crowd(3).await;
    let root = incident.root();
    let more = "\nadmin_users = postgres\nserver_round_robin = 1";
    let pooler = Pooler::start_with(&incident.server, "session", &(lines(POOL) + more));
    let target = pooler.target(&incident.info());
    let pool = ConnInfo::parse(&target).unwrap();
    let observer = support::open(&incident.info()).await.client;
    let mut dashboard = Dashboard::at((200, 60), &target, &["--screen", "chains"]);
    dashboard.screen.shows(&root.to_string());
    dashboard.screen.shows(" primary");
    dashboard.screen.shows(" · pooler · ");
    pooler.turn("session", "transaction").await;
    let application = support::open(&pool).await.client;
    support::wait_until("it is noticed", async || {
        application.simple_query("SELECT 1").await.unwrap();
        dashboard.screen.contents().contains(" · txn pool · ")
    })
    .await;
    dashboard.screen.shows("LIVE");
    dashboard.select_first(&root.to_string());
    dashboard.question("K", "y terminate");
    dashboard.screen.keys("y");
    dashboard.screen.shows("terminated");
    support::wait_until("the session to end", async || !session_exists(&observer, root).await).await;
    dashboard.quit();
}

/// If the program is killed during a poll, its transaction is still open, and the pooler gives that session
/// to no client.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn nothing_is_left_behind_after_a_kill_in_transaction_mode() {
    let incident = Incident::crowd(3).await;
    let pooler = Pooler::start_with(&incident.server, "transaction", &lines(POOL));
    let target = pooler.target(&incident.info());
    let pool = ConnInfo::parse(&target).unwrap();
    let before = found(&pool).await;
    for milliseconds in [0, 1, 3, 7, 12, 20, 45] {
        let mut command = binary::locktop(&["-w", "snapshot", "--format", "json", "--watch=0.1s", &target]);
        let mut watch = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(watch.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("\"pooler\":\"transaction\""), "{line}");
        // At any time during the next poll.
        std::thread::sleep(Duration::from_millis(100 + milliseconds));
        watch.kill().unwrap();
        watch.wait().unwrap();
        assert_same(&found(&pool).await, &before);
    }
    drop(incident);
}

/// A command that needs its own session names the way around a pooler that does not keep sessions, and has
/// changed no setting.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn in_transaction_mode_commands_that_need_a_session_are_refused() {
    let incident = Incident::crowd(3).await;
    let pooler = Pooler::start_with(&incident.server, "transaction", &lines(POOL));
    let target = pooler.target(&incident.info());
    let pool = ConnInfo::parse(&target).unwrap();
    let before = found(&pool).await;
    for words in [["schema", "status"], ["schema", "install"]] {
        let left = binary::run(binary::locktop(&[&["-w"], &words[..], &[&target]].concat()));
        assert_eq!((left.status, left.out.as_str()), (Some(1), ""), "{left:?}");
        let expected = "a pooler in transaction mode is between locktop and the server, and this needs a session of its own: connect directly to the host and port";
        assert!(left.err.contains(expected), "{left:?}");
    }
    assert_same(&found(&pool).await, &before);
    drop(incident);
}

/// A pool of one session has none for a second connection, so that the test for a pooler has no result: each
/// poll is a transaction there too. A pool in statement mode accepts no transaction.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_pool_of_one_session_is_read_and_one_in_statement_mode_is_refused() {
    let incident = Incident::crowd(3).await;
    let pooler = Pooler::start_with(&incident.server, "session", &lines(1));
    let left = binary::run(binary::locktop(&["-w", "snapshot", &pooler.target(&incident.info())]));
    assert_eq!(left.status, Some(0), "{left:?}");
    assert!(left.out.contains("via txn pool") && left.out.contains(&incident.root().to_string()), "{left:?}");
    let pooler = Pooler::start_with(&incident.server, "statement", &lines(POOL));
    let left = binary::run(binary::locktop(&["-w", "snapshot", &pooler.target(&incident.info())]));
    assert_eq!((left.status, left.out.as_str()), (Some(1), ""), "{left:?}");
    assert!(
        left.err.contains("a pooler in statement mode is between locktop and the server")
            && left.err.contains("connect directly to the host and port"),
        "{left:?}"
    );
}
