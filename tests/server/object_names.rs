//! Locks of objects other than tables are shown with the names of these objects.

#[path = "../support/suite.rs"]
mod support;

use std::collections::BTreeSet;

use locktop::feed::once::once;
use locktop::model::lock_name::LockNames;
use locktop::model::thresholds::Thresholds;
use locktop::model::words;
use locktop::pg::conninfo::ConnInfo;
use locktop::pg::poll::PollLimits;
use support::{database, open, pid, server_of, versions, wait_until};

/// The objects that sessions wait for, as shown.
async fn awaited(info: &ConnInfo) -> BTreeSet<String> {
    let view = once(info, PollLimits::default(), Thresholds::default(), LockNames::default()).await.unwrap();
    let snapshot = view.snapshot.as_deref().unwrap();
    let queues = view.graph.queues.iter();
    queues.map(|queue| words::target(snapshot, &LockNames::default(), &queue.tag, None)).collect()
}

#[tokio::test]
async fn locks_that_sessions_wait_for_are_shown_with_object_names() {
    for version in versions() {
        let own = database(server_of(version).await).await;
        let admin = open(&own).await.client;
        let name = own.dbname();
        let make = format!(
            "CREATE SCHEMA staging; CREATE ROLE \"r {name}\"; CREATE TYPE mood AS ENUM ('ok'); CREATE PUBLICATION events;
             CREATE FUNCTION f(int) RETURNS int LANGUAGE sql AS 'SELECT 1'"
        );
        admin.batch_execute(&make).await.unwrap();
        let objects = [
            ("SCHEMA staging".to_owned(), "schema staging".to_owned()),
            ("EXTENSION plpgsql".to_owned(), "extension plpgsql".to_owned()),
            (format!("DATABASE \"{name}\""), format!("database {name}")),
            (format!("ROLE \"r {name}\""), format!("role \"r {name}\"")),
            ("TYPE mood".to_owned(), "type public.mood".to_owned()),
            ("PUBLICATION events".to_owned(), "publication events".to_owned()),
            ("FUNCTION f(int)".to_owned(), "function public.f(integer)".to_owned()),
        ];
        let mut sessions = Vec::new();
        for (object, _) in &objects {
            let (held, asks) = (open(&own).await.client, open(&own).await.client);
            held.batch_execute(&format!("BEGIN; COMMENT ON {object} IS 'one'")).await.unwrap();
            let (waiter, other) = (pid(&asks).await, format!("COMMENT ON {object} IS 'other'"));
            sessions.push((held, tokio::spawn(async move { asks.batch_execute(&other).await })));
            let sql = "SELECT EXISTS (SELECT FROM pg_locks WHERE pid = $1 AND NOT granted)";
            wait_until(object, async || admin.query_one(sql, &[&waiter]).await.unwrap().get(0)).await;
        }
        let expected: BTreeSet<String> = objects.into_iter().map(|(_, words)| words).collect();
        let shown = awaited(&own).await;
        assert!(expected.is_subset(&shown), "{version}: {shown:?}");
        for (held, asking) in sessions {
            held.batch_execute("ROLLBACK").await.unwrap();
            asking.await.unwrap().unwrap();
        }
    }
}
