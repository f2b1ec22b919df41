//! Text of any encoding and any length.

use std::sync::Arc;

use locktop::demo::postgres::Options;
use locktop::model::snapshot::Snapshot;
use tokio_postgres::Client;

use crate::helpers::{assert_fresh, client, info, on_every_version, on_every_version_with, pid, session};

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
            let row =
                snapshot.backends.rows.iter().find(|row| row.database.as_deref() == Some(database)).unwrap();
            row.query.as_deref().unwrap().to_owned()
        };
        assert_eq!(query("latin"), "SELECT 'caf\u{fffd}'");
        assert!(query("japan").starts_with("SELECT '\u{fffd}"), "{}", query("japan"));
        assert!(query("ascii").contains("\u{1b}]0;title\u{7}\n"));
        assert!(query("ascii").ends_with(&format!("{long}'")));
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
        let query =
            |snapshot: &Snapshot| Arc::clone(snapshot.backend(other_pid).unwrap().query.as_ref().unwrap());
        assert_eq!(&*query(&first), long);
        assert!(Arc::ptr_eq(&query(&first), &query(&second)));
        assert_eq!(first.server().unwrap().query_size, 1 << 20);
    })
    .await;
}
