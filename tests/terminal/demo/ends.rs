//! Nothing remains after the end of the demo, however it ends.

#[cfg(feature = "redis")]
use std::collections::BTreeSet;

use rustix::process::Signal;

#[cfg(feature = "redis")]
use super::headless::demo;
use super::headless::{Running, workers};
use super::support::{exists, wait_for};

#[test]
fn an_interrupted_demo_prints_its_results_and_leaves_no_worker() {
    for signal in [Signal::INT, Signal::TERM] {
        let running = Running::start(&["--duration", "1h", "--format", "json", "--tasks", "20"]);
        wait_for("its workers", || workers(running.pid()).len() == 10);
        let pids = workers(running.pid());
        running.signal(signal);
        let left = running.finish();
        // The number of runs depends on the machine.
        assert_eq!((left.number("workers"), left.number("double_runs")), (10, 0), "{left:?}");
        assert!(pids.iter().all(|(pid, _)| !exists(*pid)), "{pids:?}");
    }
}

#[test]
fn a_killed_demo_leaves_no_worker_behind_not_even_one_that_is_stopped() {
    let running = Running::start(&["--duration", "1h", "--scenario", "crash"]);
    let mut pids = Vec::new();
    wait_for("a worker to be stopped", || {
        pids = workers(running.pid());
        pids.iter().any(|(_, state)| *state == 'T')
    });
    running.signal(Signal::KILL);
    wait_for("all of them to go", || pids.iter().all(|(pid, _)| !exists(*pid)));
}

#[cfg(feature = "redis")]
#[test]
fn a_killed_demo_of_leases_and_redis_leaves_no_process_and_no_server_behind() {
    let place = tempfile::Builder::new().prefix("lt").tempdir_in("/tmp").unwrap();
    let mut command = demo(&["--duration", "1h", "--scenario", "leases", "--scenario", "redis"]);
    let running = Running::of(command.env("TMPDIR", place.path()));
    let servers = || {
        let entries = std::fs::read_dir(place.path()).unwrap().flatten();
        entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("locktop-redis-")).count()
    };
    // All processes so far: they are killed and replaced meanwhile, so that not all twelve exist when one is stopped.
    let mut pids = BTreeSet::new();
    let mut observe = || {
        let alive = workers(running.pid());
        pids.extend(alive.iter().map(|(pid, _)| *pid));
        (pids.len(), alive.iter().any(|(_, state)| *state == 'T'))
    };
    wait_for("its servers", || servers() == 6);
    wait_for("its processes", || observe().0 >= 12);
    wait_for("a process to be stopped", || observe().1);
    running.signal(Signal::KILL);
    wait_for("the processes to go", || pids.iter().all(|pid| !exists(*pid)));
    wait_for("the servers to go", || servers() == 0);
}
