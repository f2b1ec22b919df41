//! The settings of a session, which are pinned before anything else is sent, the search path first; its kind, and its
//! errors.
//!
//! A database owner can set `search_path` for all sessions (`ALTER DATABASE … SET`), and put operators before those of
//! the server. With the pinned path, every name in the program's own statements is the server's. The role's own path is
//! kept: it determines which tables unqualified names mean.

use futures_util::future::{Either, join, select};
use tokio_postgres::error::{DbError, Severity, SqlState};
use tokio_postgres::{Client, SimpleQueryMessage};

use super::Raw;
use crate::conninfo::SessionAttrs;

/// Settings that the owner of a database or role may have changed for all sessions, and that the program's own
/// statements rely on. This is the one list of them. `TimeZone` is not included: it determines which moment a time
/// without a zone is.
const SETTINGS: [(&str, &str); 15] = [
    ("standard_conforming_strings", "on"),
    ("statement_timeout", "'10s'"),
    ("lock_timeout", "'3s'"),
    ("idle_in_transaction_session_timeout", "'60s'"),
    ("default_transaction_isolation", "'read committed'"),
    ("default_transaction_deferrable", "off"),
    ("client_min_messages", "warning"),
    ("quote_all_identifiers", "off"),
    ("DateStyle", "'ISO, MDY'"),
    ("IntervalStyle", "postgres"),
    ("bytea_output", "hex"),
    ("extra_float_digits", "1"),
    ("xmloption", "content"),
    ("array_nulls", "on"),
    ("transform_null_equals", "off"),
];

const PATH: &str = "search_path = pg_catalog, pg_temp;";

/// Settings that terminate a session that is idle or slow, if the server has them: `idle_session_timeout` since 14, `transaction_timeout` since 17.
const ENDS: &str = "SELECT pg_catalog.set_config(name, '0', false) FROM (VALUES ('idle_session_timeout'), ('transaction_timeout')) AS v (name) \
     WHERE pg_catalog.current_setting(name, true) IS NOT NULL";

/// The statements that make these settings for the rest of a transaction, each ended by a semicolon. None of them reads
/// a catalog or searches a path, so they run no other code and wait for no lock.
#[must_use]
pub fn local_settings() -> String {
    format!("SET LOCAL {PATH}{}", settings_on_own_path())
}

/// The same, with the role's own search path.
#[must_use]
pub fn settings_on_own_path() -> String {
    made("SET LOCAL")
}

fn made(scope: &str) -> String {
    SETTINGS.iter().map(|(name, value)| format!("{scope} {name} = {value};")).collect::<Vec<_>>().concat()
}

/// A role's own search path: schema names, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchPath(Vec<String>);

impl SearchPath {
    /// The schema names, with `pg_catalog` first unless the path says otherwise, as in the server.
    #[must_use]
    pub fn schemas(&self) -> &[String] {
        &self.0
    }

    /// Parses the result of `SHOW search_path`, for a role. (`SplitIdentifierString` in `src/backend/utils/adt/varlena.c`.)
    fn parse(text: &str, role: &str) -> Self {
        let mut schemas: Vec<String> = Vec::new();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let (name, after) = if let Some(quoted) = rest.strip_prefix('"') {
                unquote(quoted)
            } else {
                let (name, after) = rest.split_at(rest.find(',').unwrap_or(rest.len()));
                (name.trim_end().to_lowercase(), after)
            };
            let name = if name == "$user" { role.to_owned() } else { name };
            if !name.is_empty() && !schemas.contains(&name) {
                schemas.push(name);
            }
            rest = after.trim_start().strip_prefix(',').unwrap_or_default().trim_start();
        }
        if !schemas.iter().any(|name| name == "pg_catalog") {
            schemas.insert(0, "pg_catalog".to_owned());
        }
        Self(schemas)
    }
}

/// A quoted name, without its opening quotation mark, and the text after it.
fn unquote(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut rest = text;
    while let Some((part, after)) = rest.split_once('"') {
        name.push_str(part);
        match after.strip_prefix('"') {
            Some(more) => {
                name.push('"');
                rest = more;
            }
            None => return (name, after),
        }
    }
    (name, "")
}

/// Makes the settings of a new connection, before anything else is sent on it.
///
/// # Errors
/// If the server refuses, or the connection breaks: then nothing else may be sent.
pub async fn pin(client: &Client) -> Result<SearchPath, tokio_postgres::Error> {
    let pin = format!("SHOW search_path; SET {PATH}{} SELECT current_user", made("SET"));
    let (messages, ends) = join(client.simple_query(&pin), client.simple_query(ENDS)).await;
    ends.and(Ok(()))?;
    let messages = messages?;
    let mut values = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.try_get(0).ok().flatten(),
        _ => None,
    });
    let (path, role) = (values.next().unwrap_or_default(), values.next().unwrap_or_default());
    Ok(SearchPath::parse(path, role))
}

// Checks a server against `target_session_attrs`.
// Since PostgreSQL 14 a server reports `in_hot_standby` and `default_transaction_read_only` at the start of a session;
// if something in between removes them, they are queried, as in libpq (`CONNECTION_CHECK_TARGET` in
// `src/interfaces/libpq/fe-connect.c`).

/// The error names the actual state.
pub(super) async fn check(raw: &mut Raw, wanted: SessionAttrs) -> Result<(), String> {
    let (fits, problem) = match wanted {
        SessionAttrs::Any | SessionAttrs::PreferStandby => return Ok(()),
        SessionAttrs::Primary => (!is_standby(raw).await?, "it is a standby"),
        SessionAttrs::Standby => (is_standby(raw).await?, "it is not a standby"),
        SessionAttrs::ReadWrite => (!is_read_only(raw).await?, "its sessions are read-only"),
        SessionAttrs::ReadOnly => (is_read_only(raw).await?, "its sessions are not read-only"),
    };
    if fits { Ok(()) } else { Err(problem.to_owned()) }
}

async fn is_standby(raw: &mut Raw) -> Result<bool, String> {
    if let Some(standby) = reported(raw, "in_hot_standby") {
        return Ok(standby);
    }
    Ok(query(raw, "SELECT pg_catalog.pg_is_in_recovery()").await? == "t")
}

async fn is_read_only(raw: &mut Raw) -> Result<bool, String> {
    let both = reported(raw, "in_hot_standby").zip(reported(raw, "default_transaction_read_only"));
    if let Some((standby, read_only)) = both {
        return Ok(standby || read_only);
    }
    Ok(query(raw, "SHOW transaction_read_only").await? == "on")
}

fn reported(raw: &Raw, name: &str) -> Option<bool> {
    raw.connection.parameter(name).map(|value| value == "on")
}

/// Runs a query while no task drives the connection.
async fn query(raw: &mut Raw, question: &str) -> Result<String, String> {
    let Raw { client, connection, .. } = raw;
    let asking = std::pin::pin!(client.simple_query(question));
    let answer = match select(asking, &mut *connection).await {
        Either::Left((answer, _)) => answer,
        Either::Right((ended, _)) => {
            return Err(ended
                .err()
                .map_or_else(|| "it closed the connection".to_owned(), |error| message(&error)));
        }
    };
    let rows = answer.map_err(|error| message(&error))?;
    let value = rows.iter().find_map(|row| match row {
        SimpleQueryMessage::Row(row) => row.try_get(0).ok().flatten().map(str::to_owned),
        _ => None,
    });
    value.ok_or_else(|| "it did not report its state".to_owned())
}

/// In characters: a server's message may have any length.
const MESSAGE: usize = 300;

/// The server's message with its SQLSTATE, or the driver's error, in one sanitized line.
#[must_use]
pub fn message(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(db) => {
            let message =
                format!("{} (SQLSTATE {})", server_text(db.message()), server_text(db.code().code()));
            // "You might need to increase max_locks_per_transaction": only the hint shows which memory was exhausted.
            match db.hint().filter(|_| *db.code() == SqlState::OUT_OF_MEMORY) {
                Some(hint) => format!("{message}. {}", server_text(hint)),
                None => message,
            }
        }
        None if error.is_closed() => match crate::socket::last() {
            Some(refused) => format!("it was interrupted: {refused}"),
            None => "it ended without an error message".to_owned(),
        },
        None => match std::error::Error::source(error) {
            Some(cause) => server_text(&format!("{error}: {cause}")),
            None => server_text(&error.to_string()),
        },
    }
}

/// Text of a server or driver as one line of limited length.
fn server_text(text: &str) -> String {
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
    fn a_path_is_read_as_the_server_reads_it() {
        for (text, expected) in [
            ("\"$user\", public", &["pg_catalog", "ann", "public"][..]),
            ("", &["pg_catalog"]),
            ("\"\"", &["pg_catalog"]),
            ("Jobs ,\"My \"\"Jobs\"\", x\", pg_catalog", &["jobs", "My \"Jobs\", x", "pg_catalog"]),
            ("public, public", &["pg_catalog", "public"]),
            ("\"open", &["pg_catalog"]),
        ] {
            assert_eq!(SearchPath::parse(text, "ann").schemas(), expected, "{text}");
        }
    }

    #[test]
    fn server_text_is_one_harmless_line_of_limited_length() {
        assert_eq!(server_text("no"), "no");
        assert_eq!(
            server_text("a\u{1b}[2Jb\nc\u{9b}d\u{202e}"),
            locktop_base::text::one_line("a\u{1b}[2Jb\nc\u{9b}d\u{202e}")
        );
        assert!(!server_text("a\u{1b}[2J\r\nb\u{7f}").contains(char::is_control));
        let long = server_text(&"x".repeat(100_000));
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
