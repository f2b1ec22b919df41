//! Faults of the printed recipe, shown with its own statements; and that a program written after it runs against locktop's table.

use locktop::pg::conninfo::ConnInfo;

use super::place::{Session, installed};
use super::support::{database, server_of, versions};

const TEXT: &str = include_str!("article.sql");

fn block(name: &str) -> &'static str {
    TEXT.split("--@ ").find_map(|block| block.strip_prefix(name)?.strip_prefix('\n')).unwrap()
}

/// A new database with the printed table.
async fn printed(version: u32) -> ConnInfo {
    let info = database(server_of(version).await).await;
    let session = Session::open(&info).await;
    session.ask(block("table")).await;
    session.ask(block("row")).await;
    info
}

#[tokio::test]
async fn two_processes_of_one_name_both_have_it() {
    for version in versions() {
        let info = printed(version).await;
        let (one, other) = (Session::open(&info).await, Session::open(&info).await);
        assert_eq!(one.ask(block("acquire node1")).await, "1");
        assert_eq!(other.ask(block("acquire node1")).await, "1", "{version}: at the same time");
    }
}

#[tokio::test]
async fn an_owner_paused_past_its_term_does_not_notice() {
    for version in versions() {
        let info = printed(version).await;
        let (paused, other) = (Session::open(&info).await, Session::open(&info).await);
        paused.ask("create table report(made_by text)").await;
        assert_eq!(paused.ask(block("acquire node1")).await, "1");
        other.let_pass(1, "21 second").await;
        assert_eq!(other.ask(block("acquire node2")).await, "1");
        other.ask("insert into report values ('node2')").await;
        // There is no token to check the write with.
        assert_eq!(paused.ask("update report set made_by = 'node1'").await, "1", "{version}");
        assert_eq!(other.ask(block("release node2")).await, "1");
        // And its renewal succeeds, as if no other owner had held the lease in between.
        assert_eq!(paused.ask(block("acquire node1")).await, "1", "{version}");
    }
}

#[tokio::test]
async fn a_release_clears_the_owner() {
    for version in versions() {
        let info = printed(version).await;
        let session = Session::open(&info).await;
        session.ask(block("acquire node2")).await;
        session.ask(block("release node2")).await;
        assert_eq!(session.ask("select owner, ts is not null from distlock").await, "-|t", "{version}");
    }
}

#[tokio::test]
async fn a_renewal_late_in_a_transaction_counts_from_its_beginning() {
    for version in versions() {
        let info = printed(version).await;
        let session = Session::open(&info).await;
        session.ask("begin").await;
        let begun = session.ask("select clock_timestamp()").await;
        session.ask(block("acquire node1")).await;
        assert_eq!(session.ask(&format!("select ts < '{begun}' from distlock")).await, "t", "{version}");
    }
}

#[tokio::test]
async fn the_printed_statements_work_on_the_installed_table_with_new_tokens() {
    for version in versions() {
        let info = installed(version).await;
        let (one, other) = (Session::open(&info).await, Session::open(&info).await);
        let token = || async { one.token("select token from distlock where id = 1").await };
        assert_eq!(one.ask(block("row")).await, "1");
        let new = token().await;
        assert_eq!(one.ask(block("acquire node1")).await, "1");
        let first = token().await;
        assert!(first > new, "{version}");
        assert_eq!(other.ask(block("acquire node2")).await, "0", "another owner holds it");
        assert_eq!(one.ask(block("acquire node1")).await, "1", "a renewal");
        assert_eq!(token().await, first, "{version}");
        one.let_pass(1, "21 second").await;
        assert_eq!(one.ask(block("acquire node1")).await, "1", "the same name, after the term");
        let second = token().await;
        assert!(second > first, "{version}");
        one.let_pass(1, "21 second").await;
        assert_eq!(other.ask(block("acquire node2")).await, "1");
        let third = token().await;
        assert!(third > second, "{version}");
        assert_eq!(
            one.ask("select lease_acquire(1, 'ours', '1 min')").await,
            "-",
            "locktop's functions cannot acquire it"
        );
        assert_eq!(other.ask(block("release node2")).await, "1");
        let fourth = one.token("select lease_acquire(1, 'ours', '1 min')").await;
        assert!(fourth > third, "{version}");
        assert_eq!(other.ask(block("acquire node1")).await, "0", "nor can the statement while they hold it");
        assert_eq!(one.ask(&format!("select lease_release(1, {fourth})")).await, "t");
        assert_eq!(other.ask(block("acquire node1")).await, "1", "{version}");
    }
}
