//! Durations for people.

/// A duration for people, at most six columns: `0.4s`, `41s`, `2m51s`, `3h02m`, `12d04h`, `210d`. Negative ones are `0s`.
///
/// It is cut, never rounded up: nothing is shown older than it is. What is no number is `0s`, too.
#[must_use]
pub fn duration(seconds: f64) -> String {
    if seconds.is_nan() || seconds < 0.1 {
        return "0s".to_owned();
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and saturates")]
    let tenths = (seconds * 10.0) as u64;
    let whole = tenths / 10;
    let (minutes, hours, days) = (whole / 60, whole / 3600, whole / 86_400);
    match whole {
        0..10 => format!("{whole}.{}s", tenths % 10),
        10..60 => format!("{whole}s"),
        60..3600 => format!("{minutes}m{:02}s", whole % 60),
        3600..86_400 => format!("{hours}h{:02}m", minutes % 60),
        _ if days < 100 => format!("{days}d{:02}h", hours % 24),
        _ if days < 100_000 => format!("{days}d"),
        _ => format!("{}y", (days / 365).min(99_999)),
    }
}
