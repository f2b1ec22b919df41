//! The other lock systems: no invariant is violated, however many sessions compete, and whichever are killed
//! or stopped.

use locktop::demo::contest::Contest;

use super::headless::{Left, play};
use super::support::{self, is_long, versions};

/// Plays scenarios until goals are reached.
fn until(scenarios: &[&str], goals: &[&str]) -> Left {
    let mut arguments = vec!["--duration", "120s", "--format", "json"];
    for scenario in scenarios {
        arguments.extend(["--scenario", scenario]);
    }
    for goal in goals {
        arguments.extend(["--until", goal]);
    }
    let left = play(&arguments);
    assert_eq!((left.status, left.err.as_str()), (Some(0), ""), "{left:?}");
    left
}

fn none(left: &Left, scenario: &str, keys: &[&str]) {
    for key in keys {
        assert_eq!(left.object()[scenario][key], 0, "{scenario}.{key}: {left:?}");
    }
}

#[test]
fn leases_have_one_holder_at_a_time_and_stale_writes_are_refused() {
    let goals = [
        "leases.taken_over=4",
        "leases.overslept=1",
        "leases.kills=2",
        "leases.renewed=3",
        "leases.released=3",
    ];
    let left = until(&["leases"], &goals);
    none(&left, "leases", &["overlaps", "tokens_back", "stale_writes_accepted", "lost_workers"]);
    let leases = &left.object()["leases"];
    let refused = ["stale_writes_refused", "stale_releases_refused"].map(|key| leases[key].as_u64().unwrap());
    assert!(refused.iter().sum::<u64>() > 0, "{left:?}");
    // Tasks were not played, so their numbers are missing.
    assert!(left.object().get("double_runs").is_none() && left.number("seed") == 1, "{left:?}");
}

#[test]
fn items_of_a_queue_are_ended_once_though_workers_are_killed() {
    let left =
        until(&["queue"], &["queue.kills=4", "queue.requeued=3", "queue.completed=40", "queue.failed=1"]);
    none(
        &left,
        "queue",
        &[
            "overlapping_runs",
            "finished_twice",
            "finished_undone",
            "lost_items",
            "stranded_items",
            "lost_workers",
        ],
    );
    let queue = &left.object()["queue"];
    let number = |key: &str| queue[key].as_u64().unwrap();
    assert_eq!(number("added"), number("pending") + number("completed") + number("failed"), "{left:?}");
    assert_eq!(number("finishes"), number("completed"), "{left:?}");
}

#[test]
fn limits_ids_and_transfers_hold_under_concurrency_while_tasks_run() {
    let goals = [
        "ratelimit.refused=300",
        "ratelimit.windows=4",
        "ids.ids=5000",
        "transfer.transfers=300",
        "transfer.retries=3",
        "transfer.audits=5",
        "completed=3",
    ];
    let left = until(&["ratelimit", "ids", "transfer", "tasks"], &goals);
    none(&left, "ratelimit", &["windows_met", "errors"]);
    none(&left, "ids", &["duplicates", "out_of_order", "of_another_worker", "errors"]);
    none(&left, "transfer", &["negative_balances", "wrong_balances", "wrong_audits", "errors"]);
    let object = left.object();
    assert!(
        object["ratelimit"]["max_in_window"].as_u64() <= object["ratelimit"]["limit"].as_u64(),
        "{left:?}"
    );
    assert_eq!(object["transfer"]["cents"], object["transfer"]["cents_expected"], "{left:?}");
    assert_eq!((left.number("workers"), left.number("double_runs")), (10, 0), "{left:?}");
}

#[test]
fn the_full_size_of_each_on_every_version() {
    if !is_long() {
        return;
    }
    for version in versions() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let (info, server) = runtime.block_on(async {
            let options = locktop::demo::postgres::Options { version: Some(version), ..Default::default() };
            let options = options.with("max_connections", 400);
            let server = locktop::demo::postgres::EmbeddedServer::start(options).await.unwrap();
            (support::database(&server).await, server)
        });
        let target = server.conninfo().replace("dbname=postgres", &format!("dbname={}", info.dbname()));
        let mut arguments = vec!["--duration", "30s", "--format", "json", "--url", &target];
        for contest in Contest::ALL.iter().filter(|contest| contest.as_str() != "redis") {
            arguments.extend(["--scenario", contest.as_str()]);
        }
        let left = play(&arguments);
        assert_eq!((left.status, left.err.as_str()), (Some(0), ""), "{version}: {left:?}");
        let object = left.object();
        assert!(object["leases"]["overslept"].as_u64() > Some(0), "{version}: {left:?}");
        assert!(object["queue"]["requeued"].as_u64() > Some(0), "{version}: {left:?}");
    }
}

#[cfg(feature = "redis")]
#[test]
fn locks_in_redis_have_one_holder_at_a_moment_though_servers_and_holders_are_killed() {
    let goals = [
        "redis.kills=2",
        "redis.server_kills=2",
        "redis.server_freezes=1",
        "redis.submissions=8",
        "redis.resource_uses=8",
        "redis.task_runs=5",
        "redis.taken=5",
    ];
    let left = until(&["redis"], &goals);
    none(&left, "redis", &["overlaps", "double_submissions", "double_task_runs", "lost_workers"]);
}

#[cfg(feature = "redis")]
#[test]
fn a_missing_redis_server_is_reported_with_its_path() {
    let mut command = super::headless::demo(&["--scenario", "redis"]);
    let output = command.env("LOCKTOP_REDIS_SERVER", "/nonexistent/redis-server").output().unwrap();
    let left = Left::from(output);
    assert_eq!((left.status, left.out.as_str()), (Some(1), ""), "{left:?}");
    let expected = "locktop: LOCKTOP_REDIS_SERVER names /nonexistent/redis-server, which does not exist\n";
    assert_eq!(left.err, expected, "{left:?}");
}
