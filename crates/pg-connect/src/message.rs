use tokio_postgres::error::SqlState;

use crate::bounds;

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
        None if error.is_closed() => match bounds::last() {
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
}
