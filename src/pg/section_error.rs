use tokio_postgres::error::SqlState;

use super::decode::DecodeError;
use crate::model::Text;
use pg_connect::{message, refusal};

#[derive(Debug, thiserror::Error)]
pub enum SectionError {
    #[error("{}", reason(.0))]
    Server(#[from] tokio_postgres::Error),
    /// More rows than the limit, in MB.
    #[error("the server sent more rows than the {0} MB that are kept of them")]
    TooMuch(usize),
    #[error(transparent)]
    Decode(#[from] DecodeError),
}

impl SectionError {
    /// Whether the connection failed, and not only a statement.
    pub(in crate::pg) fn is_fatal(&self) -> bool {
        self.is_last_word() || matches!(self, Self::Server(error) if error.as_db_error().is_none())
    }

    /// Whether the server understood the statement and refused it.
    pub(in crate::pg) fn is_refused(&self) -> bool {
        !self.is_fatal() && matches!(self, Self::Server(_))
    }

    /// Whether the server ended the connection with this error (severity FATAL or PANIC).
    pub(in crate::pg) fn is_last_word(&self) -> bool {
        let Self::Server(error) = self else { return false };
        error.as_db_error().is_some() && refusal(error).is_none()
    }

    pub(in crate::pg) fn code(&self) -> Option<&tokio_postgres::error::SqlState> {
        match self {
            Self::Server(error) => error.code(),
            Self::Decode(_) | Self::TooMuch(_) => None,
        }
    }

    /// The error as one line for [`crate::model::snapshot::Section`].
    pub(in crate::pg) fn text(&self) -> Text {
        self.to_string().into()
    }
}

/// The same for a statement of the poll. None of them waits for a lock, unless the server must first read a catalog again
/// to run any statement, and that catalog is locked.
fn reason(error: &tokio_postgres::Error) -> String {
    let said = message(error);
    if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) {
        return format!("a system catalog that it needs is locked: {said}");
    }
    said
}
