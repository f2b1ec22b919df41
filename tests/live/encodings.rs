//! Text of the server is data, whatever its bytes: only what cannot be represented is lost, and nothing of it
//! reaches a terminal as a command.

use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::pg::conninfo::ConnInfo;
use locktop::pg::decode::Encoding;
use tokio_postgres::Client;

use crate::document::{Document, printed, snapshot};
use crate::support::{conninfo, open};

/// A query of 100 kB, with multibyte characters up to its end.
fn long_query() -> String {
    format!("SELECT length('{}') AS \"最後\"", "数据库lock".repeat(8_000))
}

struct Stage {
    server: EmbeddedServer,
    info: ConnInfo,
    clients: Vec<Client>,
}

/// Sessions in databases of several encodings, each with a last query that is shown.
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
        // This asserts that no section failed, and reads the output as UTF-8.
        let document = snapshot(&stage.server, &stage.info).await;
        assert_eq!(query(&document, "latin"), "SELECT 'caf\u{e9} \u{a0}\u{ff}'");
        assert_eq!(query(&document, "japan"), "SELECT '日本語' AS \"列\"");
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

/// Names of relations, tasks, leases and prepared transactions in a database whose encoding differs from that
/// of the watched one, and in the watched one itself.
#[tokio::test]
async fn names_are_read_by_the_encoding_of_their_database() {
    for version in super::versions() {
        let options = Options { version, ..Options::default() }.with("max_prepared_transactions", "5");
        let server = EmbeddedServer::start(options).await.unwrap();
        let info = conninfo(&server);
        let admin = open(&info).await.client;
        for (name, encoding, word) in
            [("latin", "LATIN1", "caf\u{e9}"), ("japan", "EUC_JP", "日本"), ("ascii", "SQL_ASCII", "r\u{e9}")]
        {
            let make = format!(
                "CREATE DATABASE {name} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
            );
            admin.batch_execute(&make).await.unwrap();
            let there = info.clone().with_dbname(name);
            let client = open(&there).await.client;
            if encoding == "SQL_ASCII" {
                client.batch_execute("SET client_encoding = SQL_ASCII").await.unwrap();
            }
            let table = format!(
                "CREATE TABLE \"{word}\" (); BEGIN; LOCK \"{word}\"; PREPARE TRANSACTION '{word}';
                 CREATE TABLE scheduled_tasks (id int PRIMARY KEY, task_name text, is_enabled bool, next_run_at timestamptz);
                 INSERT INTO scheduled_tasks VALUES (1, '{word}')"
            );
            for statement in table.split(';') {
                client.batch_execute(statement).await.unwrap();
            }
            // A session waits for it, so that it is shown.
            let other = open(&there).await.client;
            if encoding == "SQL_ASCII" {
                other.batch_execute("SET client_encoding = SQL_ASCII").await.unwrap();
            }
            let statement = format!("SELECT FROM \"{word}\"");
            let waiter = tokio::spawn(async move { other.batch_execute(&statement).await });
            crate::support::wait_until("a session to wait", async || {
                crate::frozen::waiting(&admin).await.len() == 1
            })
            .await;
            for (from, is_same_database) in [(&there, true), (&info, false)] {
                let document = snapshot(&server, from).await;
                assert!(
                    document.prepared.iter().any(|row| row.gid == word),
                    "{name}: {:?}",
                    document.prepared
                );
                let expected = format!("SELECT FROM \"{word}\"");
                assert_eq!(query_waiting(&document), Some(expected.as_str()), "{name}");
                if is_same_database {
                    let named = |lock: &crate::document::Lock| lock.relation_name.as_deref() == Some(word);
                    assert!(document.locks.iter().any(named), "{name}: {:?}", document.locks);
                    let text = printed(&server, from, "json").await;
                    assert!(text.contains(&format!("\"name\":\"{word}\"")), "{name}: {text}");
                }
            }
            client.batch_execute(&format!("ROLLBACK PREPARED '{word}'")).await.unwrap();
            waiter.await.unwrap().unwrap();
        }
    }
}

/// The query of the waiting session.
fn query_waiting(document: &Document) -> Option<&str> {
    let waiter = document.edges.first()?.waiter;
    document.backends.iter().find(|backend| backend.pid == waiter)?.query.as_deref()
}

/// Every character of every encoding, compared with the server's own conversion. No character becomes a wrong
/// one: at most a replacement character.
#[tokio::test]
async fn each_encoding_is_read_as_the_server_reads_it() {
    let server = EmbeddedServer::start(Options::default()).await.unwrap();
    let client = open(&conninfo(&server)).await.client;
    let function = "CREATE FUNCTION read(b bytea, e text) RETURNS text LANGUAGE plpgsql AS
        $$BEGIN RETURN convert_from(b, e); EXCEPTION WHEN OTHERS THEN RETURN NULL; END$$";
    client.batch_execute(function).await.unwrap();
    let (one, two) = ("SELECT set_byte('\\x00', 0, i)", "SELECT set_byte(set_byte('\\x0000', 0, i), 1, j)");
    let three = "SELECT set_byte(set_byte('\\x8f0000', 1, i), 2, j)";
    let high = "generate_series(128, 255)";
    let mut most_unknown = 0.0_f64;
    for encoding in [
        "LATIN1",
        "LATIN2",
        "LATIN3",
        "LATIN4",
        "LATIN5",
        "LATIN6",
        "LATIN7",
        "LATIN8",
        "LATIN9",
        "LATIN10",
        "ISO_8859_5",
        "ISO_8859_6",
        "ISO_8859_7",
        "ISO_8859_8",
        "WIN1250",
        "WIN1251",
        "WIN1252",
        "WIN1253",
        "WIN1254",
        "WIN1255",
        "WIN1256",
        "WIN1257",
        "WIN1258",
        "WIN866",
        "WIN874",
        "KOI8R",
        "KOI8U",
        "EUC_JP",
        "EUC_KR",
        "EUC_CN",
        "EUC_TW",
        "EUC_JIS_2004",
    ] {
        let sql = format!(
            "SELECT b, t FROM ({one} AS b FROM {high} AS i UNION ALL {two} FROM {high} AS i, {high} AS j
                               UNION ALL {three} FROM {high} AS i, {high} AS j) AS x, read(b, '{encoding}') AS t
              WHERE char_length(t) = 1 AND ('{encoding}' LIKE 'EUC%' OR length(b) = 1)"
        );
        let known = Encoding::named(encoding);
        let (mut count, mut unknown) = (0.0, 0.0);
        for row in client.query(&sql, &[]).await.unwrap() {
            let (bytes, text): (Vec<u8>, String) = (row.get(0), row.get(1));
            let read = known.decode(&bytes).into_owned();
            count += 1.0;
            if read.contains('\u{fffd}') {
                unknown += 1.0;
            } else {
                assert_eq!(read, text, "{encoding} {bytes:02x?}");
            }
        }
        assert!(count > 50.0, "{encoding}: {count}");
        if !["EUC_TW", "EUC_JIS_2004"].contains(&encoding) {
            most_unknown = most_unknown.max(unknown / count);
        }
    }
    assert!(most_unknown < 0.01, "{most_unknown}");
}

/// If a session waits, the queries are in the table.
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
        assert_eq!(rows, 3, "one line each for the finding, the holder and the waiter: {text}");
        task.abort();
    }
}
