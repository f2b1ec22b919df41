//! Text of the server is data, whatever its bytes: nothing of it is lost but what no character can stand for, and
//! nothing of it reaches a terminal as a command.

use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::pg::conninfo::ConnInfo;
use tokio_postgres::Client;

use crate::document::{Document, printed, snapshot};
use crate::support::{conninfo, open};

/// A query of a hundred kilobytes, with characters of several bytes to its end.
fn long_query() -> String {
    format!("SELECT length('{}') AS \"最後\"", "数据库lock".repeat(8_000))
}

struct Stage {
    server: EmbeddedServer,
    info: ConnInfo,
    clients: Vec<Client>,
}

/// Sessions in databases of several encodings, each with a last query to be seen.
async fn stage(version: Option<u32>) -> Stage {
    let options = Options { version, ..Options::default() }.with("track_activity_query_size", "1MB");
    let server = EmbeddedServer::start(options).await.unwrap();
    let info = conninfo(&server);
    let admin = open(&info).await.client;
    let mut clients = Vec::new();
    for (name, encoding, query) in [
        ("latin", "LATIN1", "SELECT 'caf\u{e9} \u{a0}\u{ff}'"),
        ("japan", "EUC_JP", "SELECT '日本語' AS \"列\""),
        ("ascii", "SQL_ASCII", "SELECT '\u{1b}]0;title\u{7}\u{1b}[2J\r\n\ttab \u{202e}right'"),
    ] {
        let make = format!("CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0");
        admin.batch_execute(&make).await.unwrap();
        let client = open(&info.clone().with_dbname(name)).await.client;
        client.batch_execute("SET application_name = E'\\x1b[31mred\\x1b]0;title\\x07\\n'").await.unwrap();
        client.batch_execute(query).await.unwrap();
        clients.push(client);
    }
    let client = open(&info).await.client;
    client.batch_execute("SET application_name = 'long'").await.unwrap();
    client.batch_execute(&long_query()).await.unwrap();
    clients.extend([admin, client]);
    Stage { server, info, clients }
}

/// The query of the session in that database.
fn query<'a>(document: &'a Document, database: &str) -> &'a str {
    let mut there = document.backends.iter().filter(|backend| backend.database.as_deref() == Some(database));
    there.next().unwrap().query.as_deref().unwrap()
}

#[tokio::test]
async fn text_in_any_encoding_is_data() {
    for version in super::versions() {
        let stage = stage(version).await;
        // It asserts that no section failed, and reads the output as UTF-8.
        let document = snapshot(&stage.server, &stage.info).await;
        // Three bytes that are no UTF-8, one replacement each; everything else as it was.
        assert_eq!(query(&document, "latin"), "SELECT 'caf\u{fffd} \u{fffd}\u{fffd}'");
        let japan = query(&document, "japan");
        let kept: String = japan.chars().filter(|c| *c != '\u{fffd}').collect();
        assert!(kept.starts_with("SELECT '") && kept.contains("' AS \"") && kept.ends_with('"'), "{japan:?}");
        assert!(japan.contains('\u{fffd}'), "{japan:?}");
        assert_eq!(query(&document, "ascii"), "SELECT '\u{1b}]0;title\u{7}\u{1b}[2J\r\n\ttab \u{202e}right'");
        let long = document.backends.iter().find(|row| row.application.as_deref() == Some("long")).unwrap();
        assert_eq!(long.query.as_deref(), Some(long_query().as_str()));
        let odd = document.backends.iter().filter(|row| {
            row.application.as_deref().is_some_and(|name| name.contains("[31mred") && name.contains("title"))
        });
        assert_eq!(odd.count(), 3);
        assert_eq!(stage.clients.len(), 5);
    }
}

/// Where somebody waits, their queries are in the table.
#[tokio::test]
async fn nothing_in_the_table_is_a_command_for_the_terminal() {
    for version in super::versions() {
        let stage = stage(version).await;
        let ascii = &stage.clients[2];
        ascii.batch_execute("SELECT pg_advisory_lock(5)").await.unwrap();
        let waiter = open(&stage.info.clone().with_dbname("ascii")).await.client;
        waiter.batch_execute("SET application_name = E'\\x1b[31m\\nred'").await.unwrap();
        let statement = "SELECT pg_advisory_lock(5), '\u{1b}]0;title\u{7}\u{1b}[2J\r\n\u{202e}right'";
        let task = tokio::spawn(async move { waiter.batch_execute(statement).await });
        crate::support::wait_until("a session to wait", async || {
            crate::frozen::waiting(&stage.clients[3]).await.len() == 1
        })
        .await;
        let text = printed(&stage.server, &stage.info, "table").await;
        assert!(text.contains("[31m") && text.contains("]0;title"), "it is shown: {text}");
        let command = text.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
        assert_eq!(command, None, "{text:?}");
        let rows = text.lines().filter(|line| line.contains("pg_advisory_lock(5)")).count();
        assert_eq!(rows, 2, "one line each: {text}");
        task.abort();
    }
}
