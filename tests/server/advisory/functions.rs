//! All functions that the server has for advisory locks are reached through the library: the server's own log
//! shows them.

use std::collections::BTreeSet;

use locktop::locks::advisory::{Key, Locks, Mode, Wait, xact_lock};
use locktop::pg::conninfo::ConnInfo;

use super::observer::{Observer, is_free, take};
use super::support::{database, open, server_of, versions, wait_until};

/// Every request to the library.
async fn ask_for_everything(info: &ConnInfo) {
    let locks = Locks::new(info.clone());
    for key in [Key::Bigint(21), Key::Pair(2, 1)] {
        for mode in [Mode::Exclusive, Mode::Shared] {
            for wait in [Wait::Forever, Wait::Never] {
                let guard = match mode {
                    Mode::Exclusive => locks.try_lock(&key, wait).await,
                    Mode::Shared => locks.shared(&key, wait).await,
                };
                guard.unwrap().expect("it is free").release().await.unwrap();
                let mut connection = open(info).await;
                let transaction = connection.client.transaction().await.unwrap();
                assert!(xact_lock(&transaction, &key, mode, wait).await.unwrap());
                transaction.commit().await.unwrap();
            }
        }
    }
    let _holder = take(info, 2, Mode::Exclusive).await;
    assert!(locks.all(&[Key::Bigint(1), Key::Bigint(2)], Wait::Never).await.unwrap().is_none());
    assert!(is_free(info, 1).await, "of all or none it is none");
}

/// `name(types)` of each call in the log.
fn calls(log: &str) -> BTreeSet<String> {
    let all = log.match_indices("pg_catalog.pg_").map(|(at, text)| &log[at + text.len() - 3..]);
    all.filter_map(|call| call.split_once(')'))
        .filter(|(call, _)| call.contains("advisory"))
        .map(|(call, _)| {
            let (name, arguments) = call.split_once('(').unwrap();
            let types: Vec<&str> = arguments
                .split(", ")
                .filter(|argument| !argument.is_empty())
                .map(|argument| match argument.rsplit_once("::pg_catalog.").unwrap().1 {
                    "int8" => "bigint",
                    "int4" => "integer",
                    other => panic!("{other}"),
                })
                .collect();
            format!("{name}({})", types.join(","))
        })
        .collect()
}

#[tokio::test]
async fn all_twenty_one_are_reached() {
    for version in versions() {
        let server = server_of(version).await;
        let info = database(server).await;
        let observer = Observer::open(&info).await;
        let name = info.dbname();
        observer.ask(&format!(
            "ALTER DATABASE {name} SET log_statement = 'all'; ALTER DATABASE {name} SET log_min_messages = 'log'"
        ))
        .await;
        ask_for_everything(&info).await;
        let all: BTreeSet<String> = observer
            .ask("SELECT oid::regprocedure FROM pg_proc WHERE proname ~ '^pg_(try_)?advisory_'")
            .await
            .lines()
            .map(str::to_owned)
            .collect();
        assert_eq!(all.len(), 21, "{version}");
        let mut found = BTreeSet::new();
        wait_until("the log to be written", async || {
            let log = std::fs::read(server.socket_dir().join("log")).unwrap();
            found = calls(&String::from_utf8_lossy(&log));
            found.contains("pg_advisory_unlock_all()")
        })
        .await;
        assert_eq!(found, all, "{version}");
    }
}
