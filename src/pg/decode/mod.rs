//! Decodes the bytes of the server into rows of the model.
//!
//! Large sections arrive as binary COPY: one message per row, no allocation per row, each value decoded in place. No
//! value causes an error: text is read in its database's encoding with replacement characters, an infinite timestamp is
//! None, NULL is a value, and an unknown word becomes `Other` or its row is left out. Only bytes that violate the
//! protocol are an error.

pub mod backends;
pub mod copy;
pub mod locks;
pub(in crate::pg) mod rows;
pub mod texts;
pub mod value;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("the answer is not a binary COPY")]
    NotCopy,
    #[error("a row of the answer is cut short")]
    Short,
    #[error("a row of the answer has {found} columns, not {expected}")]
    Columns { found: usize, expected: usize },
    /// The server left out rows as already known, but they are not: the settings of the session were changed by other
    /// software.
    #[error("the answer omits rows that are not known")]
    Unknown,
}
