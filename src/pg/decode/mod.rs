//! From the bytes of the server to the rows of the model.
//!
//! The large sections arrive as binary COPY: one message a row, no allocation a row, every value decoded from the
//! bytes where they lie. Nothing here fails because of what a value says: text is read by its database's encoding, with
//! replacement characters for what is none, an infinite timestamp is none, NULL is a value, an unknown word is `Other` or its row is
//! left out. Only bytes that are not what the protocol promises are an error.

pub mod backends;
pub mod copy;
pub mod encoding;
pub mod locks;
pub mod prepared;
pub(super) mod row;
mod rows;
pub mod texts;
pub mod value;

/// Bytes that are not what the protocol promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The stream does not begin as a binary COPY does.
    #[error("the answer is not a binary COPY")]
    NotCopy,
    /// A row ends before its last column does.
    #[error("a row of the answer is cut short")]
    Short,
    /// A row has fewer columns than were asked for.
    #[error("a row of the answer has {found} columns, not {expected}")]
    Columns {
        /// Columns that the row has.
        found: usize,
        /// Columns that the statement has.
        expected: usize,
    },
    /// The server left out what it says that we know, and we do not: somebody else changed the settings of our session.
    #[error("the answer omits rows that are not known")]
    Unknown,
}
