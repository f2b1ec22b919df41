//! The three states of everything that is read, listed or counted.

use super::Text;

/// What is known of something that was to be read. There is no conversion to a list or a number: what has no answer stays without one
/// until it is printed.
#[derive(Debug, Clone, PartialEq)]
pub enum Observed<T> {
    /// It was read, and this is it.
    Read(T),
    /// It does not exist here. The search for it succeeded and found nothing, or nothing of that kind is configured.
    Absent,
    /// It could not be read, or not yet; the reason in one line.
    Unknown(Text),
}

impl<T> Observed<T> {
    /// The same of a value that is worked out from this one.
    pub fn map<U>(self, value: impl FnOnce(T) -> U) -> Observed<U> {
        self.and_then(|read| Observed::Read(value(read)))
    }

    /// The same where working it out may leave it unknown as well.
    pub fn and_then<U>(self, value: impl FnOnce(T) -> Observed<U>) -> Observed<U> {
        match self {
            Self::Read(read) => value(read),
            Self::Absent => Observed::Absent,
            Self::Unknown(reason) => Observed::Unknown(reason),
        }
    }

    /// Why it is not known; none if it is, or certainly does not exist.
    pub fn reason(&self) -> Option<&Text> {
        match self {
            Self::Unknown(reason) => Some(reason),
            _ => None,
        }
    }
}
