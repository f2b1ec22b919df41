//! `locktop demo`: everything in one.

use rustix::process::{Pid, Signal};

use crate::process::children;
use crate::screen::Screen;
use crate::support::{exists, is_gone, wait_for};

/// All processes below one.
fn family(pid: Pid) -> Vec<i32> {
    let below = children(pid);
    let deeper = below.iter().filter_map(|child| Pid::from_raw(*child)).flat_map(family);
    deeper.chain(below.clone()).collect()
}

/// The directory of the server, from the command line of one of its processes.
fn directory(pids: &[i32]) -> std::path::PathBuf {
    let line = pids.iter().find_map(|pid| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).into_owned();
        let at = line.split('\0').find_map(|word| word.strip_prefix("unix_socket_directories="));
        at.map(str::to_owned)
    });
    line.expect("a server is running").into()
}

#[test]
fn it_shows_its_scenarios_and_leaves_nothing_behind() {
    let ends: [&dyn Fn(&mut Screen) -> u32; 3] = [
        &|screen| {
            screen.keys("q");
            0
        },
        &|screen| {
            screen.signal(Signal::TERM);
            128 + 15
        },
        &|screen| {
            screen.keys("<ctrl-c>");
            0
        },
    ];
    for end in ends {
        let mut screen = Screen::spawn((120, 35), &[], &["--refresh", "0.2s", "demo"]);
        screen.shows("LIVE");
        let family = family(screen.pid());
        let (directory, first) = (directory(&family), family[0]);
        let expected = end(&mut screen);
        assert_eq!(screen.wait_exit(), expected);
        screen.assert_restored();
        wait_for("the server and its directory to go", || {
            is_gone(&directory, first) && !family.iter().any(|pid| exists(*pid))
        });
    }
}

#[test]
fn tasks_and_all_three_lock_scenarios_appear() {
    let mut screen = Screen::spawn((160, 50), &[], &["--refresh", "0.2s", "demo"]);
    for who in ["psql-anna", "deploy-ci", "picker-"] {
        screen.shows(who);
    }
    screen.shows("1 deadlock");
    screen.keys("4");
    screen.shows("· 10 running");
    screen.shows("worker-");
}

#[test]
fn lost_workers_and_late_tasks_are_told() {
    let mut screen = Screen::spawn((160, 50), &[], &["--refresh", "0.2s", "demo", "--scenario", "crash"]);
    screen.keys("4");
    for state in ["orphan", "slow"] {
        screen.shows(state);
    }
    screen.keys("q");
    assert_eq!(screen.wait_exit(), 0);
}
