//! Makes glibc's allocator return large buffers to the system.
//!
//! glibc maps a block of 128 KiB or more separately and unmaps it on free. Each such free raises that threshold, up to 32
//! MiB, and the end of a heap is not released while it is smaller than twice the threshold (mallopt(3),
//! `M_MMAP_THRESHOLD`, "dynamic mmap threshold"). So after one large poll the buffers of all later polls stay in the
//! fragmented heaps: 8 of 43 MB at 84,000 locks (bench `cost`). A threshold that is set explicitly does not change.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
const THRESHOLD: libc::c_int = 256 << 10;

/// Sets the mmap threshold for the whole process. Does nothing if the allocator is not glibc's.
#[cfg_attr(
    all(target_os = "linux", target_env = "gnu"),
    expect(unsafe_code, reason = "mallopt has no safe form")
)]
pub fn fix_mmap_threshold() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: mallopt takes its arguments by value, changes nothing but the allocator's own settings, and under its lock.
    unsafe {
        // On failure mallopt returns 0 and changes nothing.
        libc::mallopt(libc::M_MMAP_THRESHOLD, THRESHOLD);
    }
}
