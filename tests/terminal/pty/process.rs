//! What the system says about a process.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// Its state: `S`, `T`, …
pub(crate) fn state(pid: Pid) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it, in parentheses, can hold anything.
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

pub(crate) fn is_stopped(pid: Pid) -> bool {
    state(pid) == Some('T')
}

/// How often its first thread, which draws, has written to something.
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

/// Ends it at once, also when it is stopped.
pub(crate) fn end(pid: Pid) {
    let _ = kill_process(pid, Signal::KILL);
}
