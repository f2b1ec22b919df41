//! Text of any encoding and any length.

use std::sync::Arc;

use locktop::demo::postgres::Options;
use locktop::model::snapshot::Snapshot;
use locktop::pg::poll::PollConnection;

use super::helpers::{
    assert_fresh, client, info, on_every_version, on_every_version_with, patient, pid, poll_until, session,
};
use super::raw::Raw;

#[tokio::test]
async fn text_in_any_encoding_is_data() {
    on_every_version(async |server| {
        let admin = client(&info(&server)).await;
        for (database, encoding) in [("latin", "LATIN1"), ("japan", "EUC_JP"), ("ascii", "SQL_ASCII")] {
            let sql =
                format!("CREATE DATABASE {database} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0");
            admin.batch_execute(&sql).await.unwrap();
        }
        let mut clients = Vec::new();
        for (database, query) in
            [("latin", "SELECT 'café'"), ("japan", "SELECT '日本'"), ("ascii", "SELECT '日本'")]
        {
            let client = client(&info(&server).with_dbname(database)).await;
            client.batch_execute("SET application_name = E'\\x1b[31m\\nred'").await.unwrap();
            client.batch_execute(query).await.unwrap();
            clients.push(client);
        }
        let long = "x".repeat(900);
        clients[2].batch_execute(&format!("SELECT '\u{1b}]0;title\u{7}\n{long}'")).await.unwrap();
        let mut session = session(&server).await;
        let snapshot = session.poll(None).await.unwrap();
        assert_fresh(&snapshot);
        let query = |database: &str| {
            let row = snapshot
                .backends
                .last_rows()
                .iter()
                .find(|row| row.database.as_deref() == Some(database))
                .unwrap();
            row.query.clone().unwrap()
        };
        assert_eq!(query("latin"), "SELECT 'café'".into());
        assert_eq!(query("japan"), "SELECT '日本'".into());
        assert!(query("ascii").contains("\u{1b}]0;title\u{7}\n"));
        assert!(query("ascii").unredacted().ends_with(&format!("{long}'")));
    })
    .await;
}

#[tokio::test]
async fn a_query_of_a_hundred_kilobytes_arrives_whole_and_is_kept_once() {
    let options = Options::default().with("track_activity_query_size", "1MB");
    on_every_version_with(options, async |server| {
        let other = client(&info(&server)).await;
        let long = format!("SELECT length('{}')", "数".repeat(35_000));
        let other_pid = pid(&other).await;
        other.batch_execute(&long).await.unwrap();
        let mut session = session(&server).await;
        let first = session.poll(None).await.unwrap();
        let second = session.poll(Some(&first)).await.unwrap();
        let query = |snapshot: &Snapshot| {
            Arc::clone(snapshot.backend(other_pid).unwrap().query.as_ref().unwrap().unredacted())
        };
        assert_eq!(&*query(&first), long);
        assert!(Arc::ptr_eq(&query(&first), &query(&second)));
        assert_eq!(first.server().unwrap().query_size, 1 << 20);
    })
    .await;
}

/// `SQL_ASCII` checks nothing: a byte that is in no encoding may be anywhere.
#[tokio::test]
async fn invalid_bytes_in_any_name_or_query_are_replaced() {
    on_every_version(async |server| {
        let admin = client(&info(&server)).await;
        admin
            .batch_execute("CREATE DATABASE ascii ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
            .await
            .unwrap();
        let mut raw = Raw::open(&server, "postgres", "ascii").await;
        raw.run(b"CREATE ROLE \"r\xfe\" LOGIN SUPERUSER").await;
        raw.run(b"CREATE DATABASE \"d\xff\" ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0").await;
        raw.run(b"CREATE TABLE \"t\xc3\" ()").await;
        raw.run(b"BEGIN; SET ROLE \"r\xfe\"; LOCK TABLE \"t\xc3\" IN SHARE MODE").await;
        raw.run(b"PREPARE TRANSACTION 'g\xf5\xe9'").await;
        raw.run(b"SET application_name = 'a\xf0\x9f'").await;
        raw.run(b"SELECT '\xff\xfe\xe9', '\xe2\x82', '\xed\xa0\x80', '\xc0\x80'").await;
        let mut session = PollConnection::open(&info(&server).with_dbname("ascii"), patient()).await.unwrap();
        let named =
            |snapshot: &Snapshot| snapshot.names.relations.values().any(|name| &**name == "t\u{fffd}");
        let snapshot = poll_until(&mut session, named).await;
        assert_fresh(&snapshot);
        assert!(snapshot.names.databases.values().any(|name| &**name == "d\u{fffd}"));
        let [prepared] = &snapshot.prepared.last_rows()[..] else { panic!("{:?}", snapshot.prepared) };
        assert_eq!(&*prepared.gid, "g\u{fffd}\u{fffd}");
        assert_eq!(
            (prepared.owner.as_deref(), prepared.database.as_deref()),
            (Some("r\u{fffd}"), Some("ascii"))
        );
        let bad =
            "SELECT '\u{fffd}\u{fffd}\u{fffd}', '\u{fffd}', '\u{fffd}\u{fffd}\u{fffd}', '\u{fffd}\u{fffd}'";
        let row = snapshot.backends.last_rows().iter().find(|row| row.query == Some(bad.into()));
        let row = row.unwrap_or_else(|| panic!("{:?}", snapshot.backends.last_rows()));
        // Before version 16 the server puts a question mark for each such byte of the name, and since then its code.
        let name = if server.version() >= 16 { r"a\xf0\x9f" } else { "a??" };
        assert_eq!(row.application.as_deref(), Some(name));
    })
    .await;
}

/// The server cuts between characters as the database that is asked from counts them, and not as they are.
#[tokio::test]
async fn a_query_that_was_cut_within_a_character_is_data() {
    let options = Options::default().with("track_activity_query_size", "100");
    on_every_version_with(options, async |server| {
        let admin = client(&info(&server)).await;
        for (database, encoding) in [("ascii", "SQL_ASCII"), ("utf8", "UTF8")] {
            let sql =
                format!("CREATE DATABASE {database} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0");
            admin.batch_execute(&sql).await.unwrap();
        }
        let writer = client(&info(&server).with_dbname("utf8")).await;
        let pid = pid(&writer).await;
        // 99 bytes are kept: 8 of them before the text, 30 characters, and the first byte of one more.
        writer.batch_execute(&format!("SELECT '{}'", "数".repeat(50))).await.unwrap();
        for (database, end) in [("ascii", "\u{fffd}"), ("utf8", "")] {
            let info = info(&server).with_dbname(database);
            let mut session = PollConnection::open(&info, patient()).await.unwrap();
            let snapshot = session.poll(None).await.unwrap();
            assert_fresh(&snapshot);
            assert_eq!(snapshot.server().unwrap().query_size, 100);
            let query = snapshot.backend(pid).unwrap().query.as_ref().unwrap().unredacted();
            assert_eq!(**query, format!("SELECT '{}{end}", "数".repeat(30)), "{database}");
            let again = session.poll(Some(&snapshot)).await.unwrap();
            let (before, after) = (snapshot.backend(pid).unwrap(), again.backend(pid).unwrap());
            assert!(Arc::ptr_eq(
                before.query.as_ref().unwrap().unredacted(),
                after.query.as_ref().unwrap().unredacted()
            ));
        }
    })
    .await;
}
