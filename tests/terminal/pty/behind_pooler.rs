//! The program behind a pooler that an application uses too.

use std::collections::BTreeSet;

use locktop::pg::connect::Connection;
use locktop::pg::conninfo::ConnInfo;

use super::desk::{Desk, is_there};
use super::incident::Incident;
use super::pooler::Pooler;
use super::{binary, support};

/// Sessions that the pooler may have at the server.
const POOL: usize = 5;

/// What an application finds in every session of the pool: all settings, and what else a session can keep.
async fn found(pool: &ConnInfo) -> Vec<String> {
    let mut clients: Vec<Connection> = Vec::new();
    let mut found = Vec::new();
    for _ in 0..POOL {
        clients.push(support::open(pool).await);
    }
    // All at once, so that each has another session.
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

/// Fails with the lines that are not the same.
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
async fn in_session_mode_it_works_and_says_so_and_leaves_nothing_behind() {
    let incident = Incident::crowd(3).await;
    let root = incident.root();
    let pooler = Pooler::start_with(&incident.server, "session", &lines(POOL));
    let target = pooler.target(&incident.info());
    let pool = ConnInfo::parse(&target).unwrap();
    let before = found(&pool).await;
    let look = support::open(&incident.info()).await.client;

    for size in [(80, 24), (120, 35), (200, 60)] {
        let mut desk = Desk::at(size, &target, &["--screen", "chains"]);
        desk.screen.shows(&root.to_string());
        desk.screen.shows("primary · pooler · ");
        desk.quit();
    }
    let mut desk = Desk::at((120, 35), &target, &["--screen", "chains"]);
    desk.select_first(&root.to_string());
    desk.question("K", "y terminate");
    desk.screen.keys("y");
    support::wait_until("it has ended", async || !is_there(&look, root).await).await;
    desk.screen.shows("terminated");
    desk.quit();
    assert_same(&found(&pool).await, &before);
}

/// A pool that hands its sessions on as they were left.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn nothing_is_left_either_where_the_pooler_resets_nothing() {
    let incident = Incident::crowd(3).await;
    let more = "\nserver_reset_query =";
    let pooler = Pooler::start_with(&incident.server, "session", &(lines(POOL) + more));
    let target = pooler.target(&incident.info());
    let pool = ConnInfo::parse(&target).unwrap();
    let before = found(&pool).await;
    let mut desk = Desk::at((120, 35), &target, &[]);
    desk.screen.shows(&incident.root().to_string());
    desk.quit();
    assert_same(&found(&pool).await, &before);
    let left = binary::run(binary::locktop(&["-w", "snapshot", "--format", "json", &target]));
    assert_eq!(left.status, Some(0), "{left:?}");
    assert_same(&found(&pool).await, &before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn in_transaction_mode_it_names_the_way_past_it_and_has_set_nothing() {
    let incident = Incident::crowd(3).await;
    for more in ["", "\nserver_round_robin = 1"] {
        let pooler = Pooler::start_with(&incident.server, "transaction", &(lines(POOL) + more));
        let target = pooler.target(&incident.info());
        let pool = ConnInfo::parse(&target).unwrap();
        let before = found(&pool).await;
        let application = support::open(&pool).await.client;
        application.simple_query("SELECT 1").await.unwrap();

        let mut desk = Desk::at((120, 35), &target, &[]);
        assert_eq!(desk.screen.wait_exit(), 1);
        let said = desk.screen.contents();
        for words in [
            "a pooler in transaction mode is in between",
            "connect past it, to the host and port of the server",
        ] {
            assert!(said.replace('\n', " ").contains(words), "{said}");
        }
        for words in [&["snapshot", "--format", "json"][..], &["recover", "--dry-run"], &["schema", "status"]]
        {
            let left = binary::run(binary::locktop(&[&["-w"], words, &[&target]].concat()));
            assert_eq!((left.status, left.out.as_str()), (Some(1), ""), "{left:?}");
            assert!(left.err.contains("a pooler in transaction mode is in between"), "{left:?}");
        }
        drop(desk);
        drop(application);
        assert_same(&found(&pool).await, &before);
    }
    assert!(incident.root() > 0);
}

/// Where a second connection says nothing of the first, nobody can tell whose session it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn in_statement_mode_and_in_a_pool_of_one_session_it_names_the_way_past_it() {
    let incident = Incident::crowd(3).await;
    for (mode, sessions) in [("statement", POOL), ("session", 1)] {
        let pooler = Pooler::start_with(&incident.server, mode, &lines(sessions));
        let target = pooler.target(&incident.info());
        let left = binary::run(binary::locktop(&["-w", "snapshot", &target]));
        assert_eq!((left.status, left.out.as_str()), (Some(1), ""), "{left:?}");
        let said =
            "a pooler is in between, and a second connection does not tell whether it keeps sessions apart";
        assert!(
            left.err.contains(said) && left.err.contains("connect past it, to the host and port"),
            "{left:?}"
        );
    }
}
