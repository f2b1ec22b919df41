//! Behind a pooler: a session lock belongs to a worker only if the session does.

use locktop::locks::PoolerError;
use locktop::locks::pooler::refuse_transaction_mode;
use locktop::pg::conninfo::ConnInfo;

use super::binary::{locktop, run_beside};
use super::db::{Session, installed};
use super::hand::{ended, task};
use super::pooler::Pooler;
use super::process::Process;
use super::support::{open, server, server_of, versions};

#[tokio::test]
async fn a_pool_in_transaction_mode_is_refused_and_nothing_is_left_on_its_connections() {
    for version in versions() {
        let info = installed(version).await;
        let pooler = Pooler::start(server_of(version).await, "transaction");
        let target = pooler.target(&info);
        let left = run_beside(locktop(&["-w", "worker", "--id", "w", &target])).await;
        assert_eq!(left.status, Some(1), "{version}: {}", left.err);
        assert!(left.err.contains("a pooler in transaction mode"), "{}", left.err);
        assert_eq!(left.err.lines().count(), 1, "{}", left.err);
        // The pool still has it, unchanged.
        let session = Session::open_plain(&ConnInfo::parse(&target).unwrap()).await;
        assert_eq!(session.ask("SHOW lock_timeout").await, "0");
        assert_eq!(session.ask("SELECT count(*) FROM pg_listening_channels()").await, "0");
    }
}

/// Others use the pool, so that a process id seen twice proves nothing.
#[tokio::test]
async fn it_is_known_in_a_busy_pool_too() {
    let version = server().await.version();
    let info = installed(version).await;
    let pooler = Pooler::start(server_of(version).await, "transaction");
    let target = ConnInfo::parse(&pooler.target(&info)).unwrap();
    let mut others = Vec::new();
    for _ in 0..4 {
        let client = open(&target).await.client;
        others.push(tokio::spawn(async move {
            loop {
                client.batch_execute("SELECT 1").await.unwrap();
            }
        }));
    }
    for _ in 0..20 {
        let first = open(&target).await;
        assert_eq!(refuse_transaction_mode(&first.client, &target).await, Err(PoolerError::Transactions));
    }
    others.iter().for_each(tokio::task::JoinHandle::abort);
}

/// Its connections in turn: with three of them each client got the same one every time.
#[tokio::test]
async fn it_is_known_however_many_connections_are_taken_in_turn() {
    let version = server().await.version();
    let info = installed(version).await;
    for size in 1..=7 {
        let lines = format!("server_round_robin = 1\ndefault_pool_size = {size}");
        let pooler = Pooler::start_with(server_of(version).await, "transaction", &lines);
        let target = ConnInfo::parse(&pooler.target(&info)).unwrap();
        let mut all = Vec::new();
        for _ in 0..size {
            let client = open(&target).await.client;
            client.batch_execute("BEGIN").await.unwrap();
            all.push(client);
        }
        for client in &all {
            client.batch_execute("ROLLBACK").await.unwrap();
        }
        for _ in 0..10 {
            let first = open(&target).await;
            let result = refuse_transaction_mode(&first.client, &target).await;
            assert_eq!(result, Err(PoolerError::Transactions), "{size} in turn");
        }
    }
}

#[tokio::test]
async fn a_pool_in_statement_mode_is_refused_in_its_own_words() {
    let version = server().await.version();
    let info = installed(version).await;
    let pooler = Pooler::start(server_of(version).await, "statement");
    let left = run_beside(locktop(&["-w", "worker", "--id", "w", &pooler.target(&info)])).await;
    assert_eq!(left.status, Some(1), "{}", left.err);
    assert!(
        left.err.contains("not known whether a pooler") && left.err.contains("statement pool"),
        "{}",
        left.err
    );
}

#[tokio::test]
async fn a_pool_in_session_mode_serves_as_well_as_the_server() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        task(&session, "t", "sql", "'{\"statement\": \"SELECT 1\"}'").await;
        let pooler = Pooler::start(server_of(version).await, "session");
        let process = Process::start("w", &[], &pooler.target(&info));
        ended(&session, 1).await;
        assert_eq!(session.ask("SELECT status FROM task_execution_log").await, "completed", "{version}");
        process.signal(rustix::process::Signal::TERM);
        assert_eq!(process.ended().await.status, Some(0));
    }
}
