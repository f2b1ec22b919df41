//! Information of the system about a process.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// The state of the process: `S`, `T`, …
pub(crate) fn state(pid: Pid) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before the state, in parentheses, can contain anything.
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

pub(crate) fn is_stopped(pid: Pid) -> bool {
    state(pid) == Some('T')
}

/// Number of write calls of its first thread, which draws.
pub(crate) fn writes(pid: Pid) -> u64 {
    let io = fs::read_to_string(format!("/proc/{pid}/task/{pid}/io")).unwrap();
    let line = io.lines().find_map(|line| line.strip_prefix("syscw: ")).unwrap();
    line.parse().unwrap()
}

/// Process ids of its children.
pub(crate) fn children(pid: Pid) -> Vec<i32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let parent = |process: i32| -> Option<i32> {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|process| parent(*process) == Some(pid.as_raw_nonzero().get()))
        .collect()
}

/// Kills the process, also if it is stopped.
pub(crate) fn end(pid: Pid) {
    let _ = kill_process(pid, Signal::KILL);
}
