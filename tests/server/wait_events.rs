//! Waits that `pg_locks` does not show: a finding reports the wait event, and ends with the wait.

#[path = "../support/suite.rs"]
mod support;

use std::collections::BTreeSet;
use std::sync::Arc;

use locktop::feed::once::once;
use locktop::model::lock_name::LockNames;
use locktop::model::thresholds::Thresholds;
use locktop::model::view::View;
use locktop::model::wait_graph::Party;
use locktop::pg::conninfo::ConnInfo;
use locktop::pg::poll::PollLimits;
use support::{all_versions, database, is_oldest, open, pid, server_of, versions, wait_until};
use tokio_postgres::Client;

async fn view(info: &ConnInfo) -> Arc<View> {
    let thresholds = Thresholds { wait: 0.0, ..Thresholds::default() };
    once(info, PollLimits::default(), thresholds, LockNames::default()).await.unwrap()
}

/// The finding about the wait of a session.
async fn found(info: &ConnInfo, waiter: i32) -> Option<String> {
    let view = view(info).await;
    let mut findings = view.findings.iter().filter(|finding| finding.check == "wait_event");
    findings
        .find(|finding| finding.is_about(Party::Backend(waiter)))
        .map(|finding| finding.summary.to_string())
}

async fn waits(admin: &Client, waiter: i32, event: &str) {
    let sql = "SELECT wait_event IS NOT DISTINCT FROM $2 FROM pg_stat_activity WHERE pid = $1";
    let is = async || admin.query_one(sql, &[&waiter, &event]).await.unwrap().get(0);
    wait_until(event, is).await;
}

#[tokio::test]
async fn a_buffer_pin_wait_is_reported_with_its_possible_blocker() {
    for version in versions() {
        let own = database(server_of(version).await).await;
        let admin = open(&own).await.client;
        let fill = "CREATE TABLE audit (id int, t text); INSERT INTO audit SELECT i, repeat('x', 100) FROM generate_series(1, 5000) AS i;
            DELETE FROM audit WHERE id % 3 = 0";
        admin.batch_execute(fill).await.unwrap();
        is_oldest(&admin).await;
        let (held, asks) = (open(&own).await.client, open(&own).await.client);
        held.batch_execute("BEGIN; DECLARE c CURSOR FOR SELECT * FROM audit; FETCH 1 FROM c").await.unwrap();
        let (first, second) = (pid(&held).await, pid(&asks).await);
        let asking = tokio::spawn(async move { asks.batch_execute("VACUUM (FREEZE) audit").await });
        waits(&admin, second, "BufferPin").await;
        let summary = found(&own, second).await.unwrap_or_default();
        assert!(summary.contains("a page that another session has pinned"), "{version}: {summary}");
        assert!(summary.contains(&format!("perhaps {first}")), "{version}, {first}: {summary}");
        admin.execute("SELECT pg_terminate_backend($1)", &[&first]).await.unwrap();
        asking.await.unwrap().unwrap();
        assert_eq!(found(&own, second).await, None, "{version}: it has ended");
    }
}

/// `pg_locks` does not show the wait: the server names the blockers, and the session is in a chain as for any lock.
#[tokio::test]
async fn a_safe_snapshot_is_waited_for_in_a_chain() {
    for version in versions() {
        let own = database(server_of(version).await).await;
        let admin = open(&own).await.client;
        admin.batch_execute("CREATE TABLE ledger (id int); INSERT INTO ledger VALUES (1)").await.unwrap();
        let (held, asks) = (open(&own).await.client, open(&own).await.client);
        held.batch_execute("BEGIN ISOLATION LEVEL SERIALIZABLE; UPDATE ledger SET id = 2").await.unwrap();
        let (first, second) = (pid(&held).await, pid(&asks).await);
        let asking = tokio::spawn(async move {
            let dump =
                "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE; SELECT * FROM ledger; COMMIT";
            asks.batch_execute(dump).await
        });
        waits(&admin, second, "SafeSnapshot").await;
        let seen = view(&own).await;
        let roots: Vec<_> =
            seen.graph.roots.iter().map(|root| (root.party, root.blocked, root.frees)).collect();
        assert_eq!(roots, [(Party::Backend(first), 1, 1)], "{version}");
        assert_eq!(found(&own, second).await, None, "{version}: it is reported once");
        let findings: Vec<_> = seen.findings.iter().filter(|it| it.is_about(Party::Backend(first))).collect();
        assert!(findings.iter().any(|it| it.summary.contains("blocks 1")), "{version}: {findings:?}");
        let reason = locktop::model::why::why(&seen, Party::Backend(second)).join(" ");
        assert!(reason.contains("safe snapshot") && reason.contains(&first.to_string()), "{reason}");
        admin.execute("SELECT pg_terminate_backend($1)", &[&first]).await.unwrap();
        asking.await.unwrap().unwrap();
        assert!(view(&own).await.graph.roots.is_empty(), "{version}: it has ended");
    }
}

/// Each wait event in the manual exists.
#[tokio::test]
async fn the_events_of_the_manual_are_those_of_the_server() {
    let page = include_str!("../../docs/blockers.md");
    let table = page.split("## Wait events").nth(1).unwrap().split("\n## ").next().unwrap();
    let names: Vec<&str> = table
        .lines()
        .filter(|line| line.contains('|'))
        .flat_map(|line| line.split('|').next().unwrap().split('`').skip(1).step_by(2))
        .collect();
    assert!(names.len() > 15, "{names:?}");
    for version in all_versions().into_iter().filter(|version| *version >= 17) {
        let own = database(server_of(version).await).await;
        let admin = open(&own).await.client;
        let rows = admin.query("SELECT type, name FROM pg_wait_events", &[]).await.unwrap();
        let known: BTreeSet<String> =
            rows.iter().flat_map(|row| [row.get::<_, String>(0), row.get(1)]).collect();
        for name in &names {
            assert!(known.contains(*name), "{version} has no wait event {name}");
        }
    }
}
