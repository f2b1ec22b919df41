//! The fill level of the shared lock table, on servers where it can be filled.

use locktop::demo::postgres::Options;
use locktop::feed::once::once;
use locktop::model::finding::{Finding, Severity};
use locktop::model::lock_name::LockNames;
use locktop::model::thresholds::Thresholds;
use locktop::model::wait_graph::Party;
use locktop::pg::conninfo::ConnInfo;
use locktop::pg::poll::PollLimits;
use tokio_postgres::error::SqlState;

use super::helpers::{client, info, on_every_version_with, pid};

async fn found(info: &ConnInfo) -> Option<Finding> {
    let view = once(info, PollLimits::default(), Thresholds::default(), LockNames::default()).await.unwrap();
    view.findings.iter().find(|finding| finding.check == "lock_table").cloned()
}

/// The numbers of `at least 52 locks, 52% of the guaranteed 100`.
fn numbers(finding: &Finding) -> (i64, i64) {
    let words = finding.summary.replace(',', "");
    let mut numbers = words.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok());
    let (taken, _, room) = (numbers.next().unwrap(), numbers.next().unwrap(), numbers.next().unwrap());
    (taken, room)
}

/// Table locks that a session has in its own slots are not in the lock table, and the reported number is at
/// most the real one.
#[tokio::test]
async fn the_fill_is_never_more_than_the_server_has_and_grows_until_it_is_full() {
    let options =
        Options::default().with("max_locks_per_transaction", 10).with("max_prepared_transactions", 3);
    on_every_version_with(options, async |server| {
        let own = info(&server);
        let (admin, archiver, dump) = (client(&own).await, client(&own).await, client(&own).await);
        assert_eq!(found(&own).await, None);
        let tables = "DO $$ BEGIN FOR i IN 1..120 LOOP EXECUTE format('CREATE TABLE t%s ()', i); END LOOP; END $$";
        admin.batch_execute(tables).await.unwrap();
        dump.batch_execute("BEGIN").await.unwrap();
        for i in 1..=120 {
            dump.batch_execute(&format!("LOCK TABLE t{i} IN ACCESS SHARE MODE")).await.unwrap();
        }
        archiver.batch_execute("BEGIN").await.unwrap();
        let mut severities = Vec::new();
        let mut key = 0;
        let full = loop {
            let take = format!("SELECT count(pg_advisory_xact_lock(7, i)) FROM generate_series({key}, {key} + 99) AS i");
            key += 100;
            if let Err(error) = archiver.batch_execute(&format!("SAVEPOINT s; {take}")).await {
                archiver.batch_execute("ROLLBACK TO s").await.unwrap();
                break error;
            }
            let Some(finding) = found(&own).await else { continue };
            let (taken, room) = numbers(&finding);
            let sql = "SELECT count(DISTINCT (locktype, database, relation, page, tuple, virtualxid, transactionid::text, classid, objid, objsubid)),
                              (SELECT sum(setting::int) FROM pg_settings WHERE name IN ('max_connections', 'max_worker_processes',
                                   'max_wal_senders', 'max_prepared_transactions', 'autovacuum_worker_slots')
                                   OR name = 'autovacuum_max_workers' AND current_setting('server_version_num')::int < 180000) * 10
                         FROM pg_locks WHERE NOT fastpath AND mode <> 'SIReadLock'";
            let row = admin.query_one(sql, &[]).await.unwrap();
            let (real, nearly): (i64, i64) = (row.get(0), row.get(1));
            assert!(taken <= real && taken >= real - 60, "{taken} of {real}");
            assert!((nearly..=nearly + 20).contains(&room), "{room}, {nearly}");
            assert!(finding.is_about(Party::Backend(pid(&archiver).await)), "{}", finding.summary);
            severities.push(finding.severity);
        };
        assert_eq!(full.code(), Some(&SqlState::OUT_OF_MEMORY));
        severities.dedup();
        assert_eq!(severities, [Severity::Info, Severity::Warning, Severity::Critical]);
    })
    .await;
}
