//! The cores of this machine, and threads pinned to one of them.

/// The cores that this process can use. Empty except on Linux: macOS does not pin threads to cores.
#[cfg(target_os = "linux")]
pub(crate) fn all() -> Vec<usize> {
    let set = rustix::thread::sched_getaffinity(None).unwrap();
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()
}

/// Pins this thread, and the processes that it starts, to one core.
#[cfg(target_os = "linux")]
pub(crate) fn pin(core: usize) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(core);
    rustix::thread::sched_setaffinity(None, &set).unwrap();
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn all() -> Vec<usize> {
    Vec::new()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn pin(_: usize) {}
