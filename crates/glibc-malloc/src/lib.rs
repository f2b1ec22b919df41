//! Has glibc's allocator give large buffers back to the system.
//!
//! glibc maps a block of 128 KiB or more by itself, and unmaps it when it is freed; but with each such free it raises that limit, up to
//! 32 MiB, and gives back nothing at the end of a heap that is smaller than twice the limit (mallopt(3), `M_MMAP_THRESHOLD`, "dynamic
//! mmap threshold"). After one large look at a server the buffers of all later ones stay in the heaps, with holes between them: at
//! 84,000 locks 8 of 43 MB (bench `cost`). A limit that was set does not move.

/// From this size on a block is mapped by itself.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const THRESHOLD: libc::c_int = 256 << 10;

/// Sets the limit from which on blocks are mapped by themselves, for the whole process. Does nothing where the allocator is not glibc's.
#[cfg_attr(
    all(target_os = "linux", target_env = "gnu"),
    expect(unsafe_code, reason = "mallopt has no safe form")
)]
pub fn fix_mmap_threshold() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: mallopt takes its arguments by value, changes nothing but the allocator's own settings, and under its lock.
    unsafe {
        // Refused it answers 0, and all is as it was.
        libc::mallopt(libc::M_MMAP_THRESHOLD, THRESHOLD);
    }
}
