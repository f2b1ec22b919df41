//! Databases with the schema in them, and sessions there.

#![allow(dead_code, reason = "each test program uses a part of it")]

use locktop::demo::postgres::EmbeddedServer;
use locktop::pg::connect::Connection;
use locktop::pg::conninfo::ConnInfo;
use locktop::schema::{self, SchemaName};
use tokio::sync::Mutex;
use tokio_postgres::{Client, SimpleQueryMessage};

use super::support::{conninfo, database, open, server_of, wait_until};

/// A database of its own with the schema in it, as a copy of one that was made once for each server.
pub(crate) async fn installed(version: u32) -> ConnInfo {
    static MADE: Mutex<Vec<(&EmbeddedServer, String)>> = Mutex::const_new(Vec::new());
    static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let server = server_of(version).await;
    let mut made = MADE.lock().await;
    let template = if let Some((_, name)) = made.iter().find(|(of, _)| std::ptr::eq(*of, server)) {
        name.clone()
    } else {
        let name = template(server).await;
        made.push((server, name.clone()));
        name
    };
    let name = format!("tasks_{}", NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
    let admin = open(&conninfo(server)).await;
    let sql = format!("CREATE DATABASE {name} TEMPLATE {template}");
    // The session that installed the schema may need a moment to end.
    wait_until("the template to be free", async || admin.client.batch_execute(&sql).await.is_ok()).await;
    conninfo(server).with_dbname(&name)
}

async fn template(server: &EmbeddedServer) -> String {
    let info = database(server).await;
    let mut connection = open(&info).await;
    schema::install(&mut connection.client, &SchemaName::default()).await.unwrap();
    info.dbname().to_owned()
}

/// A session with the schema first in its path.
pub(crate) struct Session {
    /// The parameters of its connection.
    #[allow(dead_code, reason = "not every test program needs it")]
    pub(crate) info: ConnInfo,
    pub(crate) connection: Connection,
    pub(crate) pid: i32,
}

impl Session {
    pub(crate) async fn open(info: &ConnInfo) -> Self {
        let session = Self::open_plain(info).await;
        session.run("SET search_path = locktop, public").await;
        session
    }

    /// Without any setting.
    pub(crate) async fn open_plain(info: &ConnInfo) -> Self {
        let connection = open(info).await;
        // A statement that would wait forever fails, and does not hang.
        connection.client.batch_execute("SET statement_timeout = '30s'").await.unwrap();
        let pid = ask(&connection.client, "SELECT pg_backend_pid()").await.unwrap().parse().unwrap();
        Self { info: info.clone(), connection, pid }
    }

    pub(crate) async fn run(&self, sql: &str) {
        self.connection.client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }

    /// Columns with `|` between them, rows with newlines; NULL is `-`.
    pub(crate) async fn ask(&self, sql: &str) -> String {
        ask(&self.connection.client, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// The error of a statement that has to fail: SQLSTATE and message.
    pub(crate) async fn refused(&self, sql: &str) -> String {
        match ask(&self.connection.client, sql).await {
            Ok(answer) => panic!("{sql} was answered: {answer}"),
            Err(error) => {
                // The server reports the error before the transaction has ended and its locks are free; it
                // reports the end of this statement after that.
                self.connection.client.batch_execute("").await.unwrap();
                error
            }
        }
    }
}

/// As [`Session::ask`]; the error is SQLSTATE and message.
pub(crate) async fn ask(client: &Client, sql: &str) -> Result<String, String> {
    let messages = client.simple_query(sql).await.map_err(|error| match error.as_db_error() {
        Some(db) => format!("{} {}", db.code().code(), db.message()),
        None => error.to_string(),
    })?;
    let mut rows = Vec::new();
    for message in messages {
        if let SimpleQueryMessage::Row(row) = message {
            let columns: Vec<&str> = (0..row.len()).map(|index| row.get(index).unwrap_or("-")).collect();
            rows.push(columns.join("|"));
        }
    }
    Ok(rows.join("\n"))
}

/// A task that is due, with a schedule far off; its id.
pub(crate) const DUE: &str = "INSERT INTO locktop.scheduled_tasks (task_name, task_type, schedule_cron, next_run_at) \
     VALUES ('report', 'sql', '0 0 1 1 *', clock_timestamp() - interval '1 second') RETURNING id";
