//! A session that observes locks, and helpers for the tests of advisory locks.

use std::sync::Arc;

use locktop::locks::Error;
use locktop::locks::advisory::source::{self, Refusal};
use locktop::locks::advisory::{Conn, Guard, Key, Locks, Mode, Source, Wait};
use locktop::pg::connect::Connection;
use locktop::pg::conninfo::ConnInfo;
use tokio_postgres::SimpleQueryMessage;

use super::support::{open, wait_until};

/// A session that only observes.
pub(crate) struct Observer(pub(crate) Connection);

impl Observer {
    pub(crate) async fn open(info: &ConnInfo) -> Self {
        Self(open(info).await)
    }

    /// Columns with `|` between them, rows with newlines.
    pub(crate) async fn ask(&self, sql: &str) -> String {
        ask(&self.0.client, sql).await
    }

    /// How many rows the lock manager has for the advisory locks of a session.
    pub(crate) async fn rows(&self, pid: i32) -> String {
        self.ask(&format!("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = {pid}")).await
    }

    pub(crate) async fn until(&self, what: &str, sql: &str) {
        wait_until(what, async || self.ask(sql).await == "t").await;
    }

    pub(crate) async fn until_ended(&self, pid: i32) {
        let sql = format!("SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = {pid})");
        self.until("the backend to end", &sql).await;
    }

    /// Waits until some session waits for an advisory lock, and returns its process id.
    pub(crate) async fn waiting(&self) -> i32 {
        let sql = "SELECT a.pid FROM pg_stat_activity a JOIN pg_locks l ON l.pid = a.pid
            WHERE l.locktype = 'advisory' AND NOT l.granted AND a.datname = current_database()";
        let mut pid = String::new();
        wait_until("a session to wait", async || {
            pid = self.ask(sql).await;
            !pid.is_empty()
        })
        .await;
        pid.parse().unwrap()
    }
}

pub(crate) async fn ask(client: &tokio_postgres::Client, sql: &str) -> String {
    let messages = client.simple_query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => {
            Some((0..row.len()).map(|index| row.get(index).unwrap_or("-")).collect::<Vec<_>>().join("|"))
        }
        _ => None,
    });
    rows.collect::<Vec<_>>().join("\n")
}

/// Acquires a lock that must be free.
pub(crate) async fn take(info: &ConnInfo, key: impl Into<Key>, mode: Mode) -> Guard {
    let (locks, key) = (Locks::new(info.clone()).without_pooler_test(), key.into());
    let guard = match mode {
        Mode::Exclusive => locks.try_lock(&key, Wait::Never).await,
        Mode::Shared => locks.shared(&key, Wait::Never).await,
    };
    guard.unwrap().unwrap_or_else(|| panic!("{key} is not free"))
}

/// Whether a session gets a lock at once; the lock is released.
pub(crate) async fn gets<S: Source>(locks: &Locks<S>, key: impl Into<Key>, mode: Mode) -> bool {
    let guard = match mode {
        Mode::Exclusive => locks.try_lock(key, Wait::Never).await,
        Mode::Shared => locks.shared(key, Wait::Never).await,
    };
    let Some(guard) = guard.unwrap() else { return false };
    guard.release().await.unwrap();
    true
}

/// Whether no session holds a key.
pub(crate) async fn is_free(info: &ConnInfo, key: impl Into<Key>) -> bool {
    gets(&Locks::new(info.clone()).without_pooler_test(), key, Mode::Exclusive).await
}

/// One connection, used for every lock, on which a test can also run statements that no guard knows of.
#[derive(Clone)]
pub(crate) struct Shared(pub(crate) Arc<Connection>);

impl Shared {
    pub(crate) async fn open(info: &ConnInfo) -> (Self, Locks<Self>) {
        let shared = Self(Arc::new(open(info).await));
        (shared.clone(), Locks::new(shared).without_pooler_test())
    }

    pub(crate) async fn run(&self, sql: &str) -> String {
        ask(&self.0.client, sql).await
    }
}

impl Source for Shared {
    type Conn = Self;

    async fn get(&self) -> Result<Self, Error> {
        Ok(self.clone())
    }
}

impl Conn for Shared {
    async fn ask(&mut self, sql: &str) -> Result<Option<String>, Refusal> {
        source::ask(&self.0.client, sql).await
    }

    async fn ended(&mut self) -> String {
        while !self.0.client.is_closed() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        "it is closed".to_owned()
    }

    fn discard(self) {
        self.0.driver.abort();
    }
}
