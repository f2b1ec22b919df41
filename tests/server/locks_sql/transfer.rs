//! locktop's optimistic transfer.

use super::crowd::{sessions, size};
use super::db::{Session, installed};
use super::printed::blocked;
use super::support::versions;

async fn accounts(version: u32) -> (Session, Session) {
    let info = installed(version).await;
    let session = Session::open(&info).await;
    session.run("INSERT INTO accounts (username, balance) VALUES ('a', 100), ('b', 100)").await;
    (session, Session::open(&info).await)
}

const STATE: &str = "SELECT balance, version FROM accounts ORDER BY id";

#[tokio::test]
async fn money_is_moved_and_both_versions_grow() {
    for version in versions() {
        let (session, _) = accounts(version).await;
        assert_eq!(session.ask("SELECT transfer_optimistic(1, 2, 30.50)").await, "t");
        assert_eq!(session.ask("SELECT * FROM try_transfer(2, 1, 0.5)").await, "t|1");
        assert_eq!(session.ask(STATE).await, "70.00|2\n130.00|2", "{version}");
        // With versions that were read before.
        assert_eq!(session.ask("SELECT transfer_at_versions(1, 2, 2, 2, 10)").await, "t");
        for (from, to) in [(2, 3), (3, 2), (2, 2)] {
            let call = format!("SELECT transfer_at_versions(1, {from}, 2, {to}, 10)");
            assert_eq!(session.ask(&call).await, "f", "{version}: one side has changed");
        }
        // Within a transaction, and undone with it.
        session.run("BEGIN; SELECT transfer_optimistic(1, 2, 1); ROLLBACK").await;
        assert_eq!(session.ask(STATE).await, "60.00|3\n140.00|3", "{version}");
    }
}

#[tokio::test]
async fn invalid_transfers_are_refused_and_change_nothing() {
    for version in versions() {
        let (session, _) = accounts(version).await;
        session.run("INSERT INTO accounts (username, balance) VALUES ('rich', 99999999.99)").await;
        for (call, error) in [
            ("1, 99, 10", "P0002 there is no account 99"),
            ("99, 1, 10", "P0002 there is no account 99"),
            ("1, NULL, 10", "P0002 there is no account <NULL>"),
            ("1, 2, 100.01", "23514 account 1 has 100.00 and not 100.01"),
            ("1, 2, 0", "22023 cannot transfer 0: an amount is above 0 and has at most 2 decimals"),
            ("1, 2, -150", "22023 cannot transfer -150: an amount is above 0 and has at most 2 decimals"),
            ("1, 2, 0.005", "22023 cannot transfer 0.005: an amount is above 0 and has at most 2 decimals"),
            ("1, 2, 'NaN'", "22023 cannot transfer NaN: an amount is above 0 and has at most 2 decimals"),
            (
                "1, 2, 'Infinity'",
                "22023 cannot transfer Infinity: an amount is above 0 and has at most 2 decimals",
            ),
            ("1, 2, NULL", "22023 cannot transfer null: an amount is above 0 and has at most 2 decimals"),
            ("1, 1, 10", "22023 account 1 cannot transfer to itself"),
            ("1, 2, 10, 0", "22023 p_max_retries is 0: expected 1 or more"),
            ("1, 3, 10", "22003 numeric field overflow"),
        ] {
            assert_eq!(
                session.refused(&format!("SELECT transfer_optimistic({call})")).await,
                error,
                "{version}: {call}"
            );
        }
        assert_eq!(session.ask(STATE).await, "100.00|0\n100.00|0\n99999999.99|0", "{version}");
    }
}

/// Held between its read and its write while another session changes an account, N times.
#[tokio::test]
async fn it_tries_again_when_another_was_quicker_and_gives_up_in_the_end() {
    for version in versions() {
        let (session, other) = accounts(version).await;
        // Before each attempt another session changes the account that gets the money.
        other
            .run(
                "ALTER FUNCTION transfer_at_versions(int, int, int, int, numeric) RENAME TO true_transfer;
                 CREATE SEQUENCE locktop.quicker;
                 CREATE FUNCTION locktop.transfer_at_versions(int, int, int, int, numeric) RETURNS boolean LANGUAGE plpgsql AS $$
                 BEGIN
                     IF nextval('locktop.quicker') < current_setting('test.quicker')::int THEN
                         UPDATE locktop.accounts SET version = version + 1 WHERE id = $3;
                     END IF;
                     RETURN locktop.true_transfer($1, $2, $3, $4, $5);
                 END $$",
            )
            .await;
        for (quicker, answer) in [(1, "t|1"), (2, "t|2"), (3, "t|3"), (4, "f|3")] {
            other.run("ALTER SEQUENCE quicker RESTART").await;
            session.run(&format!("SET test.quicker = {quicker}")).await;
            assert_eq!(session.ask("SELECT * FROM try_transfer(1, 2, 1)").await, answer, "{version}");
        }
        assert_eq!(session.ask("SELECT balance FROM accounts ORDER BY id").await, "97.00\n103.00");
        other.run("ALTER SEQUENCE quicker RESTART").await;
        let error = session.refused("SELECT transfer_optimistic(1, 2, 1)").await;
        assert_eq!(
            error,
            "40001 gave up the transfer from account 1 to 2 after 3 attempts: others changed them each time",
            "{version}"
        );
        assert_eq!(session.ask("SELECT sum(balance) FROM accounts").await, "200.00");
    }
}

#[tokio::test]
async fn two_that_cross_wait_and_both_are_done() {
    for version in versions() {
        let (one, other) = accounts(version).await;
        one.run("BEGIN; SELECT transfer_optimistic(1, 2, 10)").await;
        let (answer, ()) = tokio::join!(other.ask("SELECT * FROM try_transfer(2, 1, 20)"), async {
            blocked(&one, other.pid).await;
            one.run("COMMIT").await;
        });
        assert_eq!(answer, "t|2", "{version}: its first attempt lost");
        assert_eq!(one.ask(STATE).await, "110.00|2\n90.00|2");
        // With one snapshot for the whole transaction trying again is useless, and the server reports an
        // error.
        one.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM accounts").await;
        other.run("SELECT transfer_optimistic(1, 2, 1)").await;
        assert!(one.refused("SELECT transfer_optimistic(1, 2, 1)").await.starts_with("40001"), "{version}");
    }
}

/// Twenty sessions move money between a few accounts as fast as they can.
#[tokio::test]
async fn a_crowd_makes_no_money_and_loses_none() {
    for version in versions() {
        let info = installed(version).await;
        let each = size(50, 500);
        let crowd = sessions(&info, 20).await;
        let watcher = Session::open(&info).await;
        watcher
            .run("INSERT INTO accounts (username, balance) SELECT 'a' || g, 100 FROM generate_series(1, 5) g")
            .await;
        let tasks: Vec<_> = crowd
            .into_iter()
            .enumerate()
            .map(|(index, session)| {
                tokio::spawn(async move {
                    let (mut done, mut retries, mut gave_up, mut poor) = (0, 0, 0, 0);
                    for turn in 0..each {
                        let from = (index + turn) % 5 + 1;
                        let to = (from + turn % 4) % 5 + 1;
                        let amount = 1 + (index * 7 + turn * 13) % 60;
                        let call = format!("SELECT * FROM try_transfer({from}, {to}, {amount})");
                        match super::db::ask(&session.connection.client, &call).await {
                            Ok(answer) => {
                                let (transferred, attempts) = answer.split_once('|').unwrap();
                                retries += attempts.parse::<usize>().unwrap() - 1;
                                if transferred == "t" { done += 1 } else { gave_up += 1 }
                            }
                            Err(error) if error.starts_with("23514 account") => poor += 1,
                            Err(error) => panic!("{call}: {error}"),
                        }
                    }
                    (done, retries, gave_up, poor)
                })
            })
            .collect();
        let (mut done, mut retries, mut gave_up, mut poor) = (0, 0, 0, 0);
        for task in tasks {
            let counts = task.await.unwrap();
            (done, retries, gave_up, poor) =
                (done + counts.0, retries + counts.1, gave_up + counts.2, poor + counts.3);
        }
        assert_eq!(done + gave_up + poor, 20 * each, "{version}");
        assert_eq!(
            watcher.ask("SELECT sum(balance), sum(version), min(balance) >= 0 FROM accounts").await,
            format!("500.00|{}|t", 2 * done),
            "{version}"
        );
        assert!(
            done > 0 && retries > 0,
            "{version}: {done} done, {retries} retries, {gave_up} gave up, {poor} poor"
        );
    }
}
