//! The only place that asks what time it is; everybody else is handed the answer.

use std::time::{Duration, Instant};

/// The wall clock of this machine. Ages never come from it: they come from the server's clock in a snapshot.
#[cfg(feature = "chrono")]
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the clock")]
pub fn wall() -> chrono::DateTime<chrono::Utc> {
    chrono::Utc::now()
}

/// The time zone of this machine as it is now, for times of day on a screen.
#[cfg(feature = "chrono")]
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the clock")]
pub fn offset() -> chrono::FixedOffset {
    *chrono::Local::now().offset()
}

/// A monotonic moment, for measuring how long something took here.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the clock")]
pub fn monotonic() -> Instant {
    Instant::now()
}

/// How long this machine has been up, with the time in which it slept: a monotonic moment that also shows how long a process, or the
/// whole machine, was suspended.
#[must_use]
pub fn since_boot() -> Duration {
    #[cfg(target_os = "linux")]
    let clock = rustix::time::ClockId::Boottime;
    // Elsewhere the monotonic clock; macOS's goes on while it sleeps.
    #[cfg(not(target_os = "linux"))]
    let clock = rustix::time::ClockId::Monotonic;
    let time = rustix::time::clock_gettime(clock);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}
