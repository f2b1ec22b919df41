//! Connections that end, and their locks.

use locktop::locks::advisory::source::Direct;
use locktop::locks::advisory::{Conn, Key, Mode, Source};
use locktop::locks::{Error, Held as _, Lost};
use locktop::pg::conninfo::ConnInfo;

use super::observer::{Observer, is_free, take};
use super::support::{database, server_of, versions};

const KEY: Key = Key::Bigint(-4_242);

#[tokio::test]
async fn a_dropped_guard_takes_its_backend_with_it() {
    for version in versions() {
        let info = database(server_of(version).await).await;
        let observer = Observer::open(&info).await;
        let lock = take(&info, KEY, Mode::Exclusive).await;
        let pid = lock.pid();
        assert_eq!(observer.rows(pid).await, "1");
        drop(lock);
        observer.until_ended(pid).await;
        assert!(is_free(&info, KEY).await, "{version}");
    }
}

#[tokio::test]
async fn a_holder_is_notified_when_its_connection_ends() {
    for version in versions() {
        let info = database(server_of(version).await).await;
        let observer = Observer::open(&info).await;
        let lock = take(&info, KEY, Mode::Exclusive).await;
        let lost = lock.lost();
        assert_eq!(lock.check(), Ok(()));
        observer.ask(&format!("SELECT pg_terminate_backend({})", lock.pid())).await;
        let reason = lost.await;
        assert!(
            reason.to_string().contains("terminating connection due to administrator command"),
            "{version}: {reason}"
        );
        assert_eq!(lock.check(), Err(reason.clone()));
        assert_eq!(lock.lost().await, reason, "a later call returns the same reason");
        observer.until_ended(lock.pid()).await;
        assert!(is_free(&info, KEY).await, "{version}");
        let error = lock.release().await.unwrap_err();
        assert!(matches!(error, Error::NotHeld(Lost::Ended(_))), "{version}: {error}");
    }
}

/// A port that is free at the moment.
fn port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[tokio::test]
async fn a_connection_of_its_own_may_idle_and_is_watched_from_the_servers_side() {
    for version in versions() {
        let mut started = None;
        for _ in 0..5 {
            let port = port();
            let options = locktop::demo::postgres::Options { version: Some(version), ..Default::default() }
                .with("listen_addresses", "127.0.0.1")
                .with("port", port)
                .with("idle_session_timeout", "1h");
            if let Ok(server) = locktop::demo::postgres::EmbeddedServer::start(options).await {
                started = Some((server, port));
                break;
            }
        }
        let (_server, port) = started.expect("a free port in five attempts");
        let tcp = ConnInfo::parse(&format!(
            "host=127.0.0.1 port={port} user=postgres dbname=postgres sslmode=disable"
        ));
        let mut connection = tcp.unwrap().get().await.unwrap();
        for (name, expected) in [
            ("idle_session_timeout", "0"),
            // The state of the socket in the kernel.
            ("tcp_keepalives_idle", "30"),
            ("tcp_keepalives_interval", "10"),
            ("tcp_keepalives_count", "3"),
        ] {
            let setting = connection.ask(&format!("{}SHOW {name}", Direct::SETTINGS)).await.unwrap();
            assert_eq!(setting.as_deref(), Some(expected), "{version}: {name}");
        }
    }
}
