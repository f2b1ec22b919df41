//! CPU time and memory of a process, as Linux reports them.

use std::fs;

/// CPU time of one thread, in seconds.
fn thread(stat: &str) -> Option<f64> {
    let text = fs::read_to_string(stat).ok()?;
    Some(text.split_whitespace().next()?.parse::<f64>().ok()? / 1e9)
}

/// CPU time of a process with one thread, such as a server's backend; 0 if it has ended.
pub(crate) fn backend_cpu(pid: i32) -> f64 {
    thread(&format!("/proc/{pid}/schedstat")).unwrap_or_default()
}

/// CPU time of a process with all its threads, in seconds, to the nanosecond.
pub(crate) fn cpu(pid: u32) -> f64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    threads.flatten().filter_map(|entry| thread(&format!("{}/schedstat", entry.path().display()))).sum()
}

/// A value of `/proc/PID/status` in megabytes: `VmRSS`, `VmHWM`.
pub(crate) fn megabytes(pid: u32, name: &str) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}
