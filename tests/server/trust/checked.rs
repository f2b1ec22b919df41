//! The result of `check` before and after a role without privileges interferes: a bad check stays bad or becomes UNKNOWN, and never OK.

use std::sync::Arc;

use locktop::config::adapter::built_in;
use locktop::output::check::{CheckReport, Status};
use locktop::pg::poll::PollLimits;

use super::detection::{chains, functions};
use super::ground::Ground;
use super::hidden;
use super::snapshots::limits;
use super::support::{is_long, versions};
use crate::unread::{checked, is_bad, statuses};

const RIVER: &str = include_str!("../adapters/tables/river.sql");
const GOOD_JOB: &str = include_str!("../adapters/tables/good_job.sql");

const GRANTS: &str =
    "GRANT SELECT ON ALL TABLES IN SCHEMA public TO PUBLIC; GRANT USAGE ON TYPE river_job_state TO PUBLIC;";

fn polling() -> PollLimits {
    let adapters = built_in().unwrap().into_iter().map(Arc::new).collect();
    PollLimits { adapters, ..limits(&[]) }
}

async fn check(ground: &Ground, snapshots: u32) -> CheckReport {
    checked(&ground.info("monitor"), polling(), snapshots).await.expect("a snapshot").0
}

/// These checks are bad.
fn are_bad(report: &CheckReport, names: &[&str]) {
    let before = statuses(report);
    assert!(names.iter().all(|name| before.get(name).copied().is_some_and(is_bad)), "{names:?}: {before:?}");
}

/// A check that was bad is still bad, or UNKNOWN.
fn holds(report: &CheckReport, names: &[&str], what: &str) {
    let now = statuses(report);
    for name in names {
        let status = now.get(name).copied();
        let holds = status.is_some_and(|status| is_bad(status) || status == Status::Unknown);
        assert!(holds, "{what}: {name} was bad and is {status:?}");
        println!("{what}: {name} {status:?}");
    }
    assert_ne!(report.status(), Status::Ok, "{what}");
}

/// River of a superuser, with a job whose client has disconnected.
async fn with_river(version: u32) -> Ground {
    let ground = Ground::new(version).await;
    let job = "INSERT INTO river_job (state, attempt, attempted_at, kind, attempted_by, created_at, scheduled_at)
        VALUES ('running', 1, now() - interval '2 days', 'mail', '{gone}', now() - interval '2 days', now() - interval '2 days'),
               ('available', 0, NULL, 'mail', NULL, now() - interval '2 days', now() - interval '2 days')";
    ground.run("postgres", &format!("SET search_path = public; {RIVER} {job}; {GRANTS}")).await;
    ground
}

const LOST: [&str; 1] = ["jobs_lost"];

/// Part of the tables as published.
const EXPIRED: [&str; 2] = ["leases_expired", "queue_failed"];

/// N2: empty tables in a schema with the name of the role that runs the check.
#[tokio::test]
async fn tables_in_a_schema_named_like_the_role() {
    for version in versions() {
        let ground = hidden::ground(version, "boss").await;
        are_bad(&check(&ground, 1).await, &EXPIRED);
        hidden::put(&ground, hidden::TRICKS[0].1).await;
        are_bad(&check(&ground, 1).await, &EXPIRED);
    }
}

/// N3: long chains of partitions, named like a table that is searched for.
#[tokio::test]
async fn chains_of_partitions() {
    for version in versions() {
        let ground = with_river(version).await;
        are_bad(&check(&ground, 1).await, &LOST);
        ground.run("mallory", &chains(4, if is_long() { 251 } else { 60 })).await;
        holds(&check(&ground, 1).await, &LOST, &format!("N3 on {version}"));
    }
}

/// N4: functions whose source is many megabytes.
#[tokio::test]
async fn functions_with_a_large_source() {
    for version in versions() {
        let ground = hidden::ground(version, "boss").await;
        are_bad(&check(&ground, 1).await, &EXPIRED);
        for sql in functions(15, if is_long() { 195 } else { 10 }).split_inclusive("$$;") {
            ground.run("mallory", sql).await;
        }
        holds(&check(&ground, 1).await, &EXPIRED, &format!("N4 on {version}"));
    }
}

/// N5: a lock on the table of a job system, as a migration takes it.
#[tokio::test]
async fn a_lock_on_the_jobs() {
    for version in versions() {
        let ground = with_river(version).await;
        are_bad(&check(&ground, 1).await, &LOST);
        let migration = ground.client("postgres").await;
        migration.batch_execute("BEGIN; LOCK TABLE public.river_job").await.unwrap();
        let report = check(&ground, 1).await;
        holds(&report, &LOST, &format!("N5 on {version}"));
        assert_eq!(statuses(&report)["unread"], Status::Unknown);
    }
}

/// N16: a job whose worker was killed, and whose advisory lock is free for that; a single snapshot is enough.
#[tokio::test]
async fn a_job_with_a_free_lock_is_not_ok() {
    for version in versions() {
        let ground = Ground::new(version).await;
        let job = "INSERT INTO good_job_processes (id, state, created_at, lock_type)
                VALUES ('00000000-0000-0000-0000-0000000000a2', '{\"hostname\": \"web\", \"pid\": 2}', now() - interval '2 hours', 0);
            INSERT INTO good_jobs (job_class, queue_name, executions_count, scheduled_at, performed_at, locked_at, locked_by_id, lock_type, serialized_params)
                SELECT 'Mail', 'default', 1, ago, ago, ago, '00000000-0000-0000-0000-0000000000a2', 0, '{}' FROM (SELECT now() - interval '1 hour' AS ago) AS t";
        let grants = "GRANT SELECT ON ALL TABLES IN SCHEMA public TO PUBLIC";
        ground.run("postgres", &format!("SET search_path = public; {GOOD_JOB} {job}; {grants}")).await;
        for snapshots in [1, 3] {
            let report = check(&ground, snapshots).await;
            let status = statuses(&report)["jobs_lost"];
            assert!(is_bad(status) || status == Status::Unknown, "{version}, {snapshots}: {report:?}");
            assert_ne!(report.status(), Status::Ok, "{version}, {snapshots}");
            println!("N16 on {version}, {snapshots} snapshots: jobs_lost {status:?}");
        }
    }
}

/// N17: the tables of a job system belong to a role that is not trusted.
#[tokio::test]
async fn a_job_system_of_a_role_that_is_not_trusted() {
    for version in versions() {
        let ground = with_river(version).await;
        are_bad(&check(&ground, 1).await, &LOST);
        let give = ["river_job", "river_leader", "river_queue", "river_migration"]
            .map(|table| format!("ALTER TABLE public.{table} OWNER TO mallory"));
        ground.run("postgres", &give.join("; ")).await;
        let report = check(&ground, 1).await;
        holds(&report, &LOST, &format!("N17 on {version}"));
        assert_eq!(statuses(&report)["jobs_lost"], Status::Unknown);
    }
}
