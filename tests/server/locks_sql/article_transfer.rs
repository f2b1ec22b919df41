//! Faults of the printed transfer. Its Python sends these statements; each fault has its counterpart in `transfer`.

use super::db::{Session, ask};
use super::printed::{block, blocked, printed};
use super::support::versions;

const ACCOUNTS: &str = "INSERT INTO accounts (username, balance) VALUES ('a', 100), ('b', 100)";
const TOTAL: &str = "SELECT sum(balance) FROM accounts";

/// The statement with values in place of its parameters.
fn filled(name: &str, values: &[&str]) -> String {
    let mut sql = block(name).to_owned();
    for (index, value) in values.iter().enumerate() {
        sql = sql.replace(&format!("${}", index + 1), &format!("({value})"));
    }
    sql
}

/// The statements of the first attempt of `transfer_optimistic`.
async fn transfer(session: &Session, from: &str, to: &str, amount: &str) {
    session.run("BEGIN").await;
    let read = session.ask(&filled("transfer_read", &[from])).await;
    let (balance, version) = read.split_once('|').unwrap();
    assert!(balance.parse::<f64>().unwrap() >= amount.parse().unwrap(), "the printed check");
    session.run(&filled("transfer_debit", &[amount, from, version])).await;
    session.run(&filled("transfer_credit", &[amount, to])).await;
    session.run("COMMIT").await;
}

#[tokio::test]
async fn money_sent_to_a_missing_account_is_lost() {
    for version in versions() {
        let (session, _) = printed(version, &[block("accounts"), ACCOUNTS]).await;
        transfer(&session, "1", "99", "30").await;
        assert_eq!(session.ask(TOTAL).await, "170.00", "{version}: of 200");
    }
}

#[tokio::test]
async fn a_negative_amount_overdraws_the_other_account() {
    for version in versions() {
        let (session, _) = printed(version, &[block("accounts"), ACCOUNTS]).await;
        transfer(&session, "1", "2", "-150").await;
        assert_eq!(
            session.ask("SELECT balance FROM accounts ORDER BY id").await,
            "250.00\n-50.00",
            "{version}"
        );
    }
}

#[tokio::test]
async fn rounding_on_both_sides_creates_money() {
    for version in versions() {
        let (session, _) = printed(version, &[block("accounts"), ACCOUNTS]).await;
        transfer(&session, "1", "2", "0.005").await;
        assert_eq!(session.ask(TOTAL).await, "200.01", "{version}");
    }
}

#[tokio::test]
async fn two_that_cross_deadlock() {
    for version in versions() {
        let (one, other) = printed(version, &[block("accounts"), ACCOUNTS]).await;
        for (session, from) in [(&one, "1"), (&other, "2")] {
            session.run("BEGIN").await;
            session.run(&filled("transfer_debit", &["10", from, "0"])).await;
        }
        let (first, second) =
            (filled("transfer_credit", &["10", "2"]), filled("transfer_credit", &["10", "1"]));
        let watcher =
            Session::open_plain(&super::support::conninfo(super::support::server_of(version).await)).await;
        let (first, second) = tokio::join!(ask(&one.connection.client, &first), async {
            blocked(&watcher, one.pid).await;
            ask(&other.connection.client, &second).await
        });
        let failed = [first, second].into_iter().filter_map(Result::err).collect::<Vec<_>>();
        assert_eq!(failed, ["40P01 deadlock detected"], "{version}");
    }
}
