//! Roles with few privileges: they see what they are permitted to, and the missing privilege is reported.

use std::collections::{BTreeMap, BTreeSet};

use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::demo::scenario::{Scenario, ScratchSchema, Timing};

use super::binary::{locktop, run_beside};
use super::document::{Document, printed};
use super::support::{conninfo, open};

async fn server() -> EmbeddedServer {
    let options = Options::default().with("deadlock_timeout", "1h").with("max_parallel_workers", 8);
    let server = EmbeddedServer::start(options).await.unwrap();
    let make = "CREATE ROLE \"on call\" LOGIN";
    open(&conninfo(&server)).await.client.batch_execute(make).await.unwrap();
    server
}

/// The document that the role without privileges gets.
async fn seen(server: &EmbeddedServer) -> Document {
    let target = server.conninfo().replace("user=postgres", "user='on call'");
    let left = run_beside(locktop(&["snapshot", "--format", "json", &target])).await;
    assert_eq!((left.status, left.err.as_str()), (Some(0), ""), "{}", left.out);
    serde_json::from_str(&left.out).unwrap_or_else(|error| panic!("{error} in {}", left.out))
}

#[tokio::test]
async fn without_pg_read_all_stats_the_edges_are_still_right() {
    let server = server().await;
    let info = conninfo(&server);
    let client = open(&info).await.client;
    for scenario in [Scenario::ParallelHolder, Scenario::Convoy, Scenario::TupleLocks, Scenario::Prepared] {
        let scratch = ScratchSchema::open(&info).await.unwrap();
        let running = scenario.start(&scratch, Timing::TEST).await.unwrap();
        let question = "SELECT pid, pg_blocking_pids(pid) FROM
            (SELECT DISTINCT pid FROM pg_locks WHERE NOT granted AND pid IS NOT NULL) waiting";
        let expected: BTreeMap<i32, BTreeSet<i32>> = client
            .query(question, &[])
            .await
            .unwrap()
            .iter()
            .map(|row| (row.get(0), row.get::<_, Vec<i32>>(1).into_iter().collect()))
            .collect();
        let document = seen(&server).await;
        document.assert_whole();
        let found: BTreeMap<i32, BTreeSet<i32>> =
            expected.keys().map(|waiter| (*waiter, document.blockers(*waiter))).collect();
        assert_eq!(found, expected, "{}", scenario.as_str());
        let roots: BTreeSet<i32> = document.roots.iter().map(|root| root.pid).collect();
        let facts: BTreeSet<i32> =
            running.facts.roots.iter().map(locktop::demo::scenario::Blocker::pid).collect();
        assert_eq!(roots, facts, "{}", scenario.as_str());
        running.stop().await.unwrap();
        scratch.remove().await.unwrap();
    }
}

#[tokio::test]
async fn the_grant_that_would_show_more_is_named() {
    let server = server().await;
    let admin = open(&conninfo(&server)).await.client;
    let document = seen(&server).await;
    document.assert_whole();
    let finding = document.findings.iter().find(|finding| finding.check == "hidden_activity").unwrap();
    assert!(finding.summary.contains("GRANT pg_read_all_stats TO \"on call\""), "{finding:?}");
    let admin_pid: i32 = admin.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    let hidden = document.backend(admin_pid);
    assert_eq!((hidden.user.as_deref(), hidden.start), (Some("postgres"), None), "{hidden:?}");
    assert!(!hidden.query.as_deref().unwrap_or_default().contains("SELECT"), "{hidden:?}");
    admin.batch_execute("GRANT pg_read_all_stats TO \"on call\"").await.unwrap();
    let document = seen(&server).await;
    assert!(document.findings.iter().all(|finding| finding.check != "hidden_activity"));
    let shown = document.backend(admin_pid);
    assert!(shown.start.is_some() && shown.query.as_deref().unwrap().starts_with("GRANT"), "{shown:?}");
}

#[tokio::test]
async fn an_unreadable_section_reports_why_and_the_others_are_complete() {
    let server = server().await;
    let admin = open(&conninfo(&server)).await.client;
    admin.batch_execute("SELECT pg_advisory_lock(7)").await.unwrap();
    for (section, function) in [
        ("backends", "pg_stat_get_activity(int4)"),
        ("locks", "pg_lock_status()"),
        ("prepared", "pg_prepared_xact()"),
        ("server", "pg_stat_get_db_deadlocks(oid)"),
    ] {
        admin.batch_execute(&format!("REVOKE EXECUTE ON FUNCTION {function} FROM PUBLIC")).await.unwrap();
        let document = seen(&server).await;
        for (name, state) in &document.sections {
            if name == section {
                let error = state.error.as_deref().unwrap_or_else(|| panic!("{section} was read"));
                let named = function.split('(').next().unwrap();
                assert!(error.contains(named) && error.contains("SQLSTATE 42501"), "{error}");
                assert_eq!(state.taken_at, None, "{section}");
            } else if ["tables", "adapters"].contains(&&**name) {
                // The catalog is searched less often.
                assert!(state.error.is_none() && state.taken_at.is_some(), "{name}: {state:?}");
            } else {
                assert_eq!((&state.error, state.taken_at), (&None, Some(document.taken_at)), "{name}");
            }
        }
        assert_eq!(document.sections.len(), 6, "{:?}", document.sections);
        assert_eq!(document.backends.is_empty(), section == "backends");
        assert_eq!(document.locks.is_empty(), section == "locks");
        let is_reported = document.findings.iter().any(|finding| finding.summary.contains(section));
        assert!(is_reported, "a finding reports that {section} is missing: {:?}", document.findings);
        admin.batch_execute(&format!("GRANT EXECUTE ON FUNCTION {function} TO PUBLIC")).await.unwrap();
    }
    assert!(printed(&server, &conninfo(&server), "table").await.contains("PostgreSQL"));
}
