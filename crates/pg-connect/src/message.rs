//! The meaning and the text of a driver error.

use tokio_postgres::error::{DbError, Severity, SqlState};

use super::socket;

/// In characters: a server's message may have any length.
const MESSAGE: usize = 300;

/// The server's message with its SQLSTATE, or the driver's error, in one sanitized line.
#[must_use]
pub fn message(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(db) => {
            let message = format!("{} (SQLSTATE {})", said(db.message()), said(db.code().code()));
            // "You might need to increase max_locks_per_transaction": only the hint shows which memory was exhausted.
            match db.hint().filter(|_| *db.code() == SqlState::OUT_OF_MEMORY) {
                Some(hint) => format!("{message}. {}", said(hint)),
                None => message,
            }
        }
        None if error.is_closed() => match socket::last() {
            Some(refused) => format!("it was interrupted: {refused}"),
            None => "it ended without an error message".to_owned(),
        },
        None => match std::error::Error::source(error) {
            Some(cause) => said(&format!("{error}: {cause}")),
            None => said(&error.to_string()),
        },
    }
}

/// Text of a server or driver as one line of limited length.
fn said(text: &str) -> String {
    locktop_base::text::fit(&locktop_base::text::one_line_prefix(text, MESSAGE), MESSAGE).into_owned()
}

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
    fn what_a_server_says_is_one_harmless_line_of_limited_length() {
        assert_eq!(said("no"), "no");
        assert_eq!(
            said("a\u{1b}[2Jb\nc\u{9b}d\u{202e}"),
            locktop_base::text::one_line("a\u{1b}[2Jb\nc\u{9b}d\u{202e}")
        );
        assert!(!said("a\u{1b}[2J\r\nb\u{7f}").contains(char::is_control));
        let long = said(&"x".repeat(100_000));
        assert_eq!((long.chars().count(), long.ends_with('…')), (300, true));
    }

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
