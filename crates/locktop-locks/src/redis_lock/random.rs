use std::fmt::Write as _;
use std::time::Duration;

/// `name:` and 128 random bits, or only the bits if there is no name.
///
/// # Errors
/// If the system has no random bytes.
pub(super) fn value(name: &str) -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    let mut value = if name.is_empty() { String::new() } else { format!("{name}:") };
    for byte in bytes {
        // Writing into a string does not fail.
        let _ = write!(value, "{byte:02x}");
    }
    Ok(value)
}

/// A random time between zero and `longest`; half of it if there are no random bytes.
pub(super) fn delay(longest: Duration) -> Duration {
    let share = getrandom::u32().map_or(0.5, |chance| f64::from(chance) / f64::from(u32::MAX));
    longest.mul_f64(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_differ_and_say_whose_they_are() {
        let (one, other) = (value("worker-1").unwrap(), value("worker-1").unwrap());
        assert_ne!(one, other);
        assert!(one.starts_with("worker-1:"));
        assert_eq!(one.len(), "worker-1:".len() + 32);
        assert_eq!(value("").unwrap().len(), 32);
    }

    #[test]
    fn delays_are_within_their_bounds() {
        let longest = Duration::from_millis(200);
        let delays: Vec<_> = (0..100).map(|_| delay(longest)).collect();
        assert!(delays.iter().all(|delay| *delay <= longest));
        assert!(delays.iter().any(|delay| *delay != delays[0]));
    }
}
