//! Quoted SQL, and the name of a database and its server.

use super::one_line;

/// An SQL string literal on one safe line that means exactly `text`
/// (<https://www.postgresql.org/docs/current/sql-syntax-lexical.html#SQL-SYNTAX-STRINGS-ESCAPE>).
#[must_use]
pub fn literal(text: &str) -> String {
    if one_line(text) == text && !text.contains('\\') {
        return format!("'{}'", text.replace('\'', "''"));
    }
    let escaped: String = text.chars().map(|character| unicode(character, '\'', "\\U", 8)).collect();
    format!("E'{escaped}'")
}

/// A quoted identifier on one safe line that means exactly `name`.
#[must_use]
pub fn identifier(name: &str) -> String {
    if one_line(name) == name {
        return format!("\"{}\"", name.replace('"', "\"\""));
    }
    // `U&""` has no escapes other than those of Unicode: a backslash is doubled there, too.
    let text: String = name.chars().map(|character| unicode(character, '"', "\\+", 6)).collect();
    format!("U&\"{text}\"")
}

/// Escapes a character for a quoted form in which a backslash escapes.
fn unicode(character: char, quote: char, prefix: &str, digits: usize) -> String {
    match character {
        '\\' => "\\\\".to_owned(),
        _ if character == quote => format!("{quote}{quote}"),
        ' '..='~' => character.to_string(),
        _ if character.is_alphanumeric() => character.to_string(),
        _ => format!("{prefix}{:0digits$X}", u32::from(character)),
    }
}

/// `app@db.example.com:5432`; `app@/run/postgresql:5432` for a socket in that directory.
#[must_use]
pub fn place(database: &str, host: &str, port: u16) -> String {
    let host =
        if host.contains(':') && !host.starts_with('/') { format!("[{host}]") } else { host.to_owned() };
    format!("{database}@{host}:{port}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_exactly_itself() {
        assert_eq!(literal("order-17"), "'order-17'");
        assert_eq!(literal("it's"), "'it''s'");
        assert_eq!(literal("a\\b\n"), "E'a\\\\b\\U0000000A'");
        assert_eq!(identifier("watcher"), "\"watcher\"");
        assert_eq!(identifier("a\"b"), "\"a\"\"b\"");
        assert_eq!(identifier("a\\b"), "\"a\\b\"");
        assert_eq!(identifier("a\"\\\u{1b}b"), "U&\"a\"\"\\\\\\+00001Bb\"");
    }
}
