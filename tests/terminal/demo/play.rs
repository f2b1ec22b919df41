//! Tasks, workers, and one object at the end.

use super::headless::play;

#[test]
fn workers_share_the_tasks_and_run_none_twice_at_a_time() {
    let left =
        play(&["--scenario", "tasks", "--until", "completed=30", "--duration", "100s", "--format", "json"]);
    assert_eq!((left.status, left.err.as_str()), (Some(0), ""), "{left:?}");
    assert_eq!((left.number("workers"), left.number("tasks")), (10, 100));
    assert_eq!(left.number("double_runs"), 0);
    assert_eq!(left.number("executions"), left.number("runs"), "each was witnessed");
    let sum = ["completed", "failed", "running"].map(|key| left.number(key)).iter().sum::<u64>();
    assert_eq!(sum, left.number("executions"), "{left:?}");
    assert!(left.number("lost_workers") == 0 && left.number("failed") > 0, "{left:?}");
}

#[test]
fn the_default_output_is_a_table_and_missed_goals_are_reported() {
    let left = play(&["--workers", "3", "--tasks", "7", "--duration", "1s", "--until", "completed=1000000"]);
    assert_eq!(left.status, Some(1), "{left:?}");
    assert!(left.out.lines().any(|line| line.starts_with("double runs  ")), "{left:?}");
    let shown = |name: &str| left.out.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    assert_eq!((shown("workers"), shown("tasks")), (Some("3"), Some("7")), "{left:?}");
    // On a busy machine no task is run within a second, and that is reported first.
    let error = left.err.replace("no task was run\n", "");
    assert_eq!(error, "locktop: not within 1s: completed=1000000\n", "{left:?}");
}

#[test]
fn a_demo_of_sessions_that_wait_has_nothing_to_count() {
    let left = play(&["--scenario", "chain"]);
    assert_eq!((left.status, left.out.as_str()), (Some(2), ""));
    let expected =
        "locktop: --headless counts results: --scenario must be tasks, crash, stall, leases, ratelimit, ";
    assert!(left.err.starts_with(expected), "{left:?}");
}

#[test]
fn an_unknown_number_is_reported_with_the_known_ones() {
    let left = play(&["--scenario", "leases", "--until", "leases.takenover=1"]);
    assert_eq!((left.status, left.out.as_str()), (Some(2), ""), "{left:?}");
    assert!(
        left.err.contains("unknown number \"leases.takenover\"") && left.err.contains("leases.taken_over"),
        "{left:?}"
    );
    let left = play(&["--scenario", "leases", "--recipe", "/nonexistent"]);
    assert_eq!(left.err, "locktop: --recipe is for the scenarios tasks, crash and stall\n", "{left:?}");
}
