//! The meaning of a driver error for a request: refused by the server, or unknown.

use tokio_postgres::error::{DbError, Severity};

/// The server's error if it refused: the request is undone, and the session continues. `None` if the session has ended,
/// which the server may also report by an error (57P01 when an administrator terminates it): then the request may be
/// done or not.
#[must_use]
pub fn refusal(error: &tokio_postgres::Error) -> Option<&DbError> {
    let goes_on = |db: &&DbError| !is_last_word(db.parsed_severity(), db.severity(), db.code().code());
    error.as_db_error().filter(goes_on)
}

/// The localized severity may be in any language. The nonlocalized one is missing before PostgreSQL 9.6 and from some
/// poolers; then class 57P, operator intervention, counts as an end.
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
            // A parallel worker was terminated: its leader only lost the statement.
            (Some(Severity::Error), "ERROR", "57P01", false),
            (None, "FATAL", "08P01", true),
            (None, "致命错误", "57P01", true),
            (None, "ERROR", "55P03", false),
        ] {
            assert_eq!(is_last_word(severity, word, code), last, "{severity:?} {word} {code}");
        }
    }
}
