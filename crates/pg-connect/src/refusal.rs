//! What an error of the driver means for what was asked: that the server did not do it, or that nobody knows.

use tokio_postgres::error::{DbError, Severity};

/// The server's words where it refused: what was asked is undone, and the session goes on. None where the session has ended, which the
/// server may say by an error too (57P01 when an administrator ends it): then what was under way may be done or not.
#[must_use]
pub fn refusal(error: &tokio_postgres::Error) -> Option<&DbError> {
    let goes_on = |db: &&DbError| !is_last_word(db.parsed_severity(), db.severity(), db.code().code());
    error.as_db_error().filter(goes_on)
}

/// The word for people may be in any language. The one for programs is not there before PostgreSQL 9.6 nor from every pooler; then
/// class 57P, operator intervention, counts as an end.
fn is_last_word(severity: Option<Severity>, word: &str, code: &str) -> bool {
    match severity {
        Some(severity) => matches!(severity, Severity::Fatal | Severity::Panic),
        None => matches!(word, "FATAL" | "PANIC") || code.starts_with("57P"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_of_any_language_is_understood() {
        for (severity, word, code, last) in [
            (Some(Severity::Fatal), "FATAL", "57P01", true),
            (Some(Severity::Fatal), "致命错误", "25P03", true),
            (Some(Severity::Panic), "PANIK", "XX000", true),
            (Some(Severity::Error), "ERROR", "57014", false),
            // A parallel worker was ended: its leader only lost the statement.
            (Some(Severity::Error), "ERROR", "57P01", false),
            (None, "FATAL", "08P01", true),
            (None, "致命错误", "57P01", true),
            (None, "ERROR", "55P03", false),
        ] {
            assert_eq!(is_last_word(severity, word, code), last, "{severity:?} {word} {code}");
        }
    }
}
