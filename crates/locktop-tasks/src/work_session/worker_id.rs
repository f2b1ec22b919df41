use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// In characters.
const LONGEST: usize = 100;

/// The name of a worker, as it appears in the log. It is unique, so that people can tell workers apart; the server does
/// so by their sessions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WorkerId(Arc<str>);

/// Why a text is not a valid worker name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkerIdError {
    /// Empty, or only blanks.
    #[error("a worker's id cannot be empty")]
    Empty,
    /// More than 100 characters; with their number.
    #[error("a worker's id has at most {LONGEST} characters; this one has {0}")]
    TooLong(usize),
    /// It has control or invisible characters.
    #[error("a worker's id cannot have control or invisible characters")]
    Unprintable,
}

impl WorkerId {
    /// The name as it is stored in `worker_id`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for WorkerId {
    type Err = WorkerIdError;

    fn from_str(text: &str) -> Result<Self, WorkerIdError> {
        if text.trim().is_empty() {
            return Err(WorkerIdError::Empty);
        }
        let length = text.chars().count();
        if length > LONGEST {
            return Err(WorkerIdError::TooLong(length));
        }
        // Text that has to be sanitized for a terminal is not printable.
        if locktop_base::text::one_line(text) != text {
            return Err(WorkerIdError::Unprintable);
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_can_be_read_on_a_screen() {
        for name in ["w", "worker-007", "报表 3", "node1/a b"] {
            assert_eq!(name.parse::<WorkerId>().unwrap().as_str(), name);
        }
        for (name, error) in [
            ("", WorkerIdError::Empty),
            ("  ", WorkerIdError::Empty),
            ("a\nb", WorkerIdError::Unprintable),
            ("a\u{1b}[2Jb", WorkerIdError::Unprintable),
            ("a\u{202e}b", WorkerIdError::Unprintable),
            (&"x".repeat(101), WorkerIdError::TooLong(101)),
        ] {
            assert_eq!(name.parse::<WorkerId>(), Err(error), "{name:?}");
        }
        assert!("ä".repeat(100).parse::<WorkerId>().is_ok());
    }
}
