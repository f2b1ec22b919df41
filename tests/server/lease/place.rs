//! Databases with leases in them, and sessions there.

use locktop::locks::lease::{Lease, Request};
use locktop::pg::connect::Connection;
use locktop::pg::conninfo::ConnInfo;
use locktop::schema::{self, SchemaName};
use tokio_postgres::SimpleQueryMessage;

use super::support::{database, open, server_of};

/// A term that does not end during a test.
pub(crate) const LONG: std::time::Duration = std::time::Duration::from_secs(3_600);

/// A new database with the schema in it.
pub(crate) async fn installed(version: u32) -> ConnInfo {
    let info = database(server_of(version).await).await;
    let mut connection = open(&info).await;
    schema::install(&mut connection.client, &SchemaName::default()).await.unwrap();
    info
}

pub(crate) struct Session(pub(crate) Connection);

impl Session {
    pub(crate) async fn open(info: &ConnInfo) -> Self {
        let session = Self(open(info).await);
        // A statement that would wait forever fails, and does not hang.
        session.ask("SET search_path = locktop, public; SET statement_timeout = '30s'").await;
        session
    }

    /// Columns with `|` between them, rows with newlines; NULL is `-`. Without rows: how many were changed.
    pub(crate) async fn ask(&self, sql: &str) -> String {
        self.try_ask(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// The error of a statement that has to fail: SQLSTATE and message.
    pub(crate) async fn refused(&self, sql: &str) -> String {
        match self.try_ask(sql).await {
            Ok(answer) => panic!("{sql} was answered: {answer}"),
            Err(error) => error,
        }
    }

    async fn try_ask(&self, sql: &str) -> Result<String, String> {
        let messages = self.0.client.simple_query(sql).await.map_err(|error| match error.as_db_error() {
            Some(db) => format!("{} {}", db.code().code(), db.message()),
            None => error.to_string(),
        })?;
        let (mut rows, mut changed) = (Vec::new(), 0);
        for message in messages {
            match message {
                SimpleQueryMessage::Row(row) => {
                    let columns: Vec<_> = (0..row.len()).map(|index| row.get(index).unwrap_or("-")).collect();
                    rows.push(columns.join("|"));
                }
                SimpleQueryMessage::CommandComplete(count) => changed = count,
                _ => {}
            }
        }
        Ok(if rows.is_empty() { changed.to_string() } else { rows.join("\n") })
    }

    /// A token, which must exist.
    pub(crate) async fn token(&self, sql: &str) -> i64 {
        self.ask(sql).await.parse().unwrap()
    }

    /// Lets the term of a lease end as if time had passed.
    pub(crate) async fn let_pass(&self, id: i32, time: &str) {
        assert_eq!(
            self.ask(&format!("UPDATE distlock SET ts = ts - interval '{time}' WHERE id = {id}")).await,
            "1"
        );
    }
}

/// Acquires a lease that must be free.
pub(crate) async fn hold(info: &ConnInfo, request: &Request) -> Lease {
    Lease::acquire(info, request).await.unwrap().expect("it is free")
}
