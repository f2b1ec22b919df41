//! All functions that the server has for advisory locks are reached through the library: the server's own log says so.

use std::collections::BTreeSet;

use locktop::locks::advisory::{Acquired, Key, Mode, Session, SessionLock, Wait, xact_lock};
use locktop::pg::conninfo::ConnInfo;

use super::look::Eye;
use super::support::{database, server_of, versions, wait_until};

/// Everything the library can be asked for, on one session; its process id.
async fn ask_for_everything(info: &ConnInfo) -> i32 {
    let mut session = Session::open(info).await.unwrap();
    let pid = session.pid();
    for key in [Key::Bigint(21), Key::Pair(2, 1)] {
        for mode in [Mode::Exclusive, Mode::Shared] {
            for wait in [Wait::Forever, Wait::Never] {
                let Acquired::Held(lock) = SessionLock::acquire(session, key, mode, wait).await.unwrap()
                else {
                    panic!("it is free")
                };
                let released = lock.release().await.unwrap();
                assert!(released.held, "{key:?} {mode:?} {wait:?}");
                session = released.session;
                let transaction = session.client_mut().transaction().await.unwrap();
                assert!(xact_lock(&transaction, key, mode, wait).await.unwrap());
                transaction.commit().await.unwrap();
            }
        }
    }
    session.into_connection().await.unwrap();
    pid
}

/// `name(types)` of each call in the log of one backend.
fn calls(log: &str, pid: i32) -> BTreeSet<String> {
    let of_backend = format!("[{pid}] LOG:  statement: ");
    let statements =
        log.lines().filter_map(|line| line.split_once(&of_backend)).flat_map(|(_, text)| text.split("; "));
    statements
        .filter_map(|statement| statement.strip_prefix("SELECT pg_catalog."))
        .filter(|call| call.contains("advisory"))
        .map(|call| {
            let (name, arguments) = call.strip_suffix(')').unwrap().split_once('(').unwrap();
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
        let eye = Eye::open(&info).await;
        let name = info.dbname();
        eye.ask(&format!(
            "ALTER DATABASE {name} SET log_statement = 'all'; ALTER DATABASE {name} SET log_min_messages = 'log'"
        ))
        .await;
        let pid = ask_for_everything(&info).await;
        let all: BTreeSet<String> = eye
            .ask("SELECT oid::regprocedure FROM pg_proc WHERE proname ~ '^pg_(try_)?advisory_'")
            .await
            .lines()
            .map(str::to_owned)
            .collect();
        assert_eq!(all.len(), 21, "{version}");
        let mut found = BTreeSet::new();
        wait_until("the log to be written", async || {
            let log = std::fs::read(server.socket_dir().join("log")).unwrap();
            found = calls(&String::from_utf8_lossy(&log), pid);
            found.contains("pg_advisory_unlock_all()")
        })
        .await;
        assert_eq!(found, all, "{version}");
    }
}
