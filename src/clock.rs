//! The only place that asks what time it is; everybody else is handed the answer.

use std::time::Instant;

/// The wall clock of this machine. Ages never come from it: they come from the server's clock in a snapshot.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the clock")]
pub fn wall() -> chrono::DateTime<chrono::Utc> {
    chrono::Utc::now()
}

/// The time zone of this machine as it is now, for times of day on a screen.
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
