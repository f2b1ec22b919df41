//! The search for tables: in catalogs that other roles have made large, and when one of its statements fails.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use locktop::clock;
use locktop::config::adapter::built_in;
use locktop::model::snapshot::Snapshot;
use locktop::pg::conninfo::ConnInfo;
use locktop::pg::poll::{PollConnection, PollLimits};

use super::faults::{Fault, Faults};
use super::ground::{Ground, one_version};
use super::snapshots::limits;
use super::support::{TIMEOUT, is_long, versions};

fn detecting() -> PollLimits {
    let adapters = built_in().unwrap().into_iter().map(Arc::new).collect();
    PollLimits { adapters, adapter_timeout: Duration::from_secs(5), ..limits(&[]) }
}

/// Polls until `done` returns true; a refusal on a busy server is tried again.
async fn until(session: &mut PollConnection, done: impl Fn(&Snapshot) -> bool) -> Snapshot {
    tokio::time::timeout(TIMEOUT, async {
        let mut snapshot = session.poll(None).await.unwrap();
        while !done(&snapshot) {
            tokio::time::sleep(Duration::from_millis(20)).await;
            snapshot = session.poll(Some(&snapshot)).await.unwrap();
        }
        snapshot
    })
    .await
    .expect("the expected state was not reached")
}

fn is_known(snapshot: &Snapshot) -> bool {
    let found = [&snapshot.detection.tables, &snapshot.detection.adapters];
    found.iter().all(|section| section.taken_at.is_some() && section.error.is_none())
}

/// Chains of partitions, each the only one of the one before, with names as Spring's lock table has them.
pub(super) fn chains(count: usize, length: usize) -> String {
    let columns = "lock_key text, region text, client_id text, created_date timestamp";
    let mut sql = "SET search_path = evil;".to_owned();
    for chain in 0..count {
        let _ = write!(sql, "CREATE TABLE c{chain}_0_lock ({columns}) PARTITION BY LIST (lock_key);");
        for place in 1..length {
            let parts = if place + 1 < length { "PARTITION BY LIST (lock_key)" } else { "" };
            let before = place - 1;
            let _ = write!(
                sql,
                "CREATE TABLE c{chain}_{place}_lock PARTITION OF c{chain}_{before}_lock DEFAULT {parts};"
            );
        }
    }
    sql
}

/// Functions with this many megabytes of text each, in which the search begins again at each letter.
pub(super) fn functions(count: usize, megabytes: usize) -> String {
    let repeats = megabytes * 1_000_000 / 13;
    (0..count).fold(
        "CREATE TABLE IF NOT EXISTS public.task_queue (id int, status text);".to_owned(),
        |mut sql, number| {
            let _ = write!(
                sql,
                "DO $$ BEGIN EXECUTE pg_catalog.format('CREATE FUNCTION public.f{number}() RETURNS text LANGUAGE sql AS %L',
                 'SELECT ''' || pg_catalog.repeat('advisory_loc_', {repeats}) || '''::text'); END $$;"
            );
            sql
        },
    )
}

/// Real tables, in a database that mallory has made as bad as this.
async fn made_large(version: u32, megabytes: usize) -> Ground {
    let ground = Ground::new(version).await;
    ground.run("postgres", "CREATE TABLE public.distlock (id bigint, owner text, ts timestamptz); GRANT SELECT ON public.distlock TO PUBLIC").await;
    ground.run("mallory", &chains(4, 251)).await;
    // Each function is a transaction of its own: a text is in memory several times.
    for sql in functions(15, megabytes).split_inclusive("$$;") {
        ground.run("mallory", sql).await;
    }
    ground
}

#[tokio::test]
async fn tables_are_found_in_catalogs_made_large_by_other_roles() {
    for version in one_version() {
        let ground = made_large(version, if is_long() { 195 } else { 20 }).await;
        let faults = Faults::before(ground.server).await;
        let info = faults.info("monitor", ground.name());
        let mut session = PollConnection::open(&info, detecting()).await.unwrap();
        faults.sent();
        let snapshot = until(&mut session, |snapshot| snapshot.detection.adapters.taken_at.is_some()).await;
        assert!(is_known(&snapshot), "{:?}", snapshot.detection);
        assert_eq!(&*snapshot.sources.leases[0].source.name, "public.distlock");
        let spring = |name: &str| snapshot.adapters.iter().any(|one| &*one.installation.adapter.name == name);
        assert!(spring("spring_lock"));
        let sent = faults.sent();
        let count = |name| sent.iter().filter(|one| **one == name).count();
        assert_eq!((count("tables_find"), count("adapters_find")), (0, 1), "one search each");
    }
}

/// Processor time of a process in seconds.
fn cpu(pid: i32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
    text.split_whitespace().next().unwrap().parse::<f64>().unwrap() / 1e9
}

/// Over a minute, at a poll a second, the server spends a fiftieth of a core at most.
#[tokio::test]
async fn a_search_in_such_catalogs_costs_the_server_little() {
    if !is_long() || !std::path::Path::new("/proc/self/schedstat").exists() {
        return;
    }
    for version in versions() {
        let ground = made_large(version, 195).await;
        let mut session = PollConnection::open(&ground.info("monitor"), detecting()).await.unwrap();
        let (pid, started) = (session.server().own_pid, clock::monotonic());
        // The cost of connecting is included.
        let mut snapshot = session.poll(None).await.unwrap();
        while started.elapsed() < Duration::from_secs(60) {
            tokio::time::sleep(Duration::from_secs(1)).await;
            snapshot = session.poll(Some(&snapshot)).await.unwrap();
        }
        let spent = cpu(pid) * 1e3 / started.elapsed().as_secs_f64();
        println!("PostgreSQL {version}: {spent:.1} ms of the server's processor time a second");
        assert!(is_known(&snapshot), "{:?}", snapshot.detection);
        assert!(spent <= 20.0, "PostgreSQL {version}: {spent:.1} ms a second");
    }
}

#[tokio::test]
async fn a_search_that_fails_is_not_taken_for_one_that_found_nothing() {
    for version in one_version() {
        let ground = Ground::with_tables(version).await;
        let faults = Faults::before(ground.server).await;
        let info: ConnInfo = faults.info("monitor", ground.name());
        for fault in Fault::ALL.into_iter().filter(|fault| *fault != Fault::Lost) {
            faults.fail("tables_find", fault);
            faults.fail("adapters_find", fault);
            let mut session = PollConnection::open(&info, detecting()).await.unwrap();
            let snapshot = until(&mut session, |snapshot| snapshot.detection.adapters.error.is_some()).await;
            assert!(snapshot.detection.tables.error.is_some(), "{fault:?}");
            assert_eq!(
                (snapshot.detection.tables.taken_at, snapshot.detection.adapters.taken_at),
                (None, None)
            );
            let stale = snapshot.sections().into_iter().filter(|read| read.error.is_some());
            assert_eq!(
                stale.map(|read| read.section).collect::<Vec<_>>(),
                ["tables", "adapters"],
                "{fault:?}"
            );
            faults.heal();
            let snapshot = until(&mut session, is_known).await;
            assert!(!snapshot.task_sets.is_empty(), "{fault:?}");
        }
    }
}

/// The statements that are sent have the listed names.
#[tokio::test]
async fn a_poll_sends_the_statements_that_are_listed() {
    for version in versions() {
        let ground = Ground::with_tables(version).await;
        let faults = Faults::before(ground.server).await;
        let info = faults.info("monitor", ground.name());
        let limits =
            PollLimits { trusted_owners: ["mallory".to_owned()].into_iter().collect(), ..detecting() };
        let mut session = PollConnection::open(&info, limits).await.unwrap();
        until(&mut session, is_known).await;
        let sent: BTreeSet<&str> = faults.sent().into_iter().collect();
        for name in [
            "adapters_find",
            "backends",
            "databases",
            "executions",
            "id_generators",
            "identity",
            "known",
            "leases",
            "locks",
            "prepared",
            "queue_count",
            "queue_items",
            "rate_limits",
            "rights",
            "roles",
            "tables_find",
            "tasks",
            "tick",
        ] {
            assert!(sent.contains(name), "{name} is not among {sent:?}");
        }
        let mut session = PollConnection::open(&info, detecting()).await.unwrap();
        // Each table is copied once in a while.
        let sent = RefCell::new(BTreeSet::new());
        until(&mut session, |snapshot| {
            sent.borrow_mut().extend(faults.sent());
            is_known(snapshot) && ["table_size", "copy"].iter().all(|name| sent.borrow().contains(name))
        })
        .await;
    }
}
