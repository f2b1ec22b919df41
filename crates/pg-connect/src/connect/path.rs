//! The settings of a session, which are pinned before anything else is sent, the search path first.
//!
//! A database owner can set `search_path` for all sessions (`ALTER DATABASE … SET`), and put operators before those of
//! the server. With the pinned path, every name in the program's own statements is the server's. The role's own path is
//! kept: it determines which tables unqualified names mean.

use futures_util::future::join;
use tokio_postgres::{Client, SimpleQueryMessage};

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
}
