//! Objects that can be stored with a table (a), in any schema (b): the planner evaluates a part of it as soon
//! as a statement names the table, without any row.

use locktop::pg::jobs::sources::TableLocations;
use locktop::pg::poll::PollLimits;

use super::ground::{Ground, NAMES, is_whole, one_version, watchers};
use super::snapshots::{ALL, feed, limits, poll_once, rows, snapshot};
use super::support::{versions, wait_until};

/// Everything at once on all tables of mallory's.
pub(crate) async fn trapped(version: u32) -> Ground {
    Ground::like(version, "traps", trap).await
}

pub(crate) async fn trap(ground: &Ground) {
    ground.tables("mallory").await;
    for name in NAMES {
        ground.run("mallory", &format!("CALL evil.trap('{name}')")).await;
    }
}

#[tokio::test]
async fn nothing_that_is_stored_with_a_table_is_evaluated() {
    for version in versions() {
        let ground = trapped(version).await;
        for name in NAMES {
            ground.run("mallory", &format!("CALL evil.rule('{name}')")).await;
        }
        for role in watchers(version) {
            let view = poll_once(&ground.info(role), &limits(&[])).await;
            ground.is_clean(role);
            // The tables were read all the same.
            assert_eq!(rows(&view), ALL, "{role}");
            if is_whole(version) {
                feed(&ground.info(role), &limits(&[]), false).await;
                feed(&ground.info(role), &limits(&[]), true).await;
                ground.is_clean(&format!("the feed of {role}"));
                let json = snapshot(&ground, role, &[]).await;
                ground.is_clean(&format!("the snapshot of {role}"));
                assert_eq!(json["leases"].as_array().map(Vec::len), Some(2), "{json}");
            }
        }
    }
}

/// A test that cannot fail is none: with the owner trusted, the tables are read by statements.
#[tokio::test]
async fn code_stored_with_tables_of_a_trusted_role_is_evaluated() {
    for version in versions() {
        let ground = trapped(version).await;
        let expected: Vec<String> = NAMES
            .iter()
            .map(|name| name.strip_prefix("public.").unwrap_or(name))
            .flat_map(|name| {
                ["index predicate", "index expression", "statistics"].map(|what| format!("{name} {what}"))
            })
            .collect();
        // Names are learned for two seconds at most, and a busy machine may need more than one snapshot.
        wait_until("every trap to be sprung", async || {
            let view = poll_once(&ground.info("monitor"), &limits(&["mallory"])).await;
            assert_eq!(rows(&view), ALL);
            let tags = ground.tags();
            expected.iter().all(|tag| tags.contains(tag))
        })
        .await;
        if is_whole(version) {
            let before = ground.calls().len();
            snapshot(&ground, "boss", &["--trust-owner", "app", "--trust-owner", "mallory"]).await;
            assert!(ground.calls()[before..].iter().any(|call| call.role == "boss"), "{version}");
        }
    }
}

/// Names of roles are compared as they are.
#[tokio::test]
async fn trusting_a_role_of_a_similar_name_does_not_trust_the_owner() {
    for version in one_version() {
        let ground = trapped(version).await;
        for other in
            ["Mallory", "MALLORY", "\"mallory\"", "mallory ", "mallor_", "m%", "app,mallory", "public", ""]
        {
            poll_once(&ground.info("boss"), &limits(&["app", other])).await;
            ground.is_clean(other);
        }
    }
}

/// Each alone: none hides another one by being refused.
#[tokio::test]
async fn a_partitioned_table_of_a_stranger_is_not_read() {
    let parted = include_str!("parted.sql");
    for version in versions() {
        let ground = Ground::new(version).await;
        ground.run("mallory", parted).await;
        for role in watchers(version) {
            let view = poll_once(&ground.info(role), &limits(&[])).await;
            ground.is_clean(role);
            let seen = rows(&view);
            assert!(!seen.is_empty() && seen.iter().all(|line| line.contains("mallory")), "{seen:?}");
            assert!(
                seen.iter().all(|line| line.contains("trust-owner") || line.contains("trusted_owners")),
                "{seen:?}"
            );
        }
        poll_once(&ground.info("monitor"), &limits(&["mallory"])).await;
        let tags = ground.tags();
        assert!(tags.iter().any(|tag| tag == "partition key"), "{version}: {tags:?}");
    }
}

/// The owner of a table does not become trusted because the config names the table.
#[tokio::test]
async fn a_table_that_the_config_names_is_a_strangers_all_the_same() {
    for version in versions() {
        let ground = trapped(version).await;
        let move_all =
            "ALTER TABLE scheduled_tasks SET SCHEMA evil; ALTER TABLE task_execution_log SET SCHEMA evil;
            ALTER TABLE distlock SET SCHEMA evil; ALTER TABLE task_queue SET SCHEMA evil;
            ALTER TABLE rate_limit SET SCHEMA evil; ALTER TABLE id_generator SET SCHEMA evil";
        ground.run("mallory", move_all).await;
        for role in watchers(version) {
            let view = poll_once(&ground.info(role), &in_schema("evil", limits(&[]))).await;
            ground.is_clean(role);
            assert_eq!(rows(&view), ALL, "{role}");
        }
    }
}

/// All six tables in this schema, by the config.
pub(crate) fn in_schema(schema: &str, limits: PollLimits) -> PollLimits {
    let names =
        ["scheduled_tasks", "task_execution_log", "distlock", "task_queue", "rate_limit", "id_generator"];
    let tables = TableLocations(names.map(|name| (name, format!("\"{schema}\".{name}"))).into());
    PollLimits { tables, ..limits }
}
