//! The only place that reads a clock; all other code receives the time.

use std::time::{Duration, Instant};

/// The wall clock of this machine. Ages are never computed from it, but from the server's clock in a snapshot.
#[cfg(feature = "chrono")]
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the clock")]
pub fn wall() -> chrono::DateTime<chrono::Utc> {
    chrono::Utc::now()
}

/// The current time zone of this machine, for times of day on a screen.
#[cfg(feature = "chrono")]
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the clock")]
pub fn offset() -> chrono::FixedOffset {
    *chrono::Local::now().offset()
}

#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the clock")]
pub fn monotonic() -> Instant {
    Instant::now()
}

/// The time since this machine was booted, including the time it was asleep: a monotonic clock that also shows how long a
/// process, or the whole machine, was suspended.
#[must_use]
pub fn since_boot() -> Duration {
    #[cfg(target_os = "linux")]
    let clock = rustix::time::ClockId::Boottime;
    // Other systems: the monotonic clock, which on macOS also advances during sleep.
    #[cfg(not(target_os = "linux"))]
    let clock = rustix::time::ClockId::Monotonic;
    let time = rustix::time::clock_gettime(clock);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}
