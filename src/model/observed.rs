//! The three states of everything that is read, listed or counted.

use super::Text;

/// The result of a read. It cannot be converted to a list or a number: an unknown value stays unknown until it is printed.
#[derive(Debug, Clone, PartialEq)]
pub enum Observed<T> {
    Read(T),
    /// It does not exist here: the lookup succeeded and found nothing, or nothing of that kind is configured.
    Absent,
    /// It could not be read, or not yet; the reason in one line.
    Unknown(Text),
}

impl<T> Observed<T> {
    pub fn map<U>(self, value: impl FnOnce(T) -> U) -> Observed<U> {
        self.and_then(|read| Observed::Read(value(read)))
    }

    pub fn and_then<U>(self, value: impl FnOnce(T) -> Observed<U>) -> Observed<U> {
        match self {
            Self::Read(read) => value(read),
            Self::Absent => Observed::Absent,
            Self::Unknown(reason) => Observed::Unknown(reason),
        }
    }

    /// Why it is unknown; `None` if it was read or does not exist.
    pub fn reason(&self) -> Option<&Text> {
        match self {
            Self::Unknown(reason) => Some(reason),
            _ => None,
        }
    }
}
