//! Statements that are alike: what of one stays when its literals are left out, and what its comments say of where it came from.

use super::statement::{forms, scan};

/// Characters of a fingerprint; what is alike so far is taken together.
const LENGTH: usize = 200;

/// Keys of a comment that say which part of a program a statement is of, as sqlcommenter, Marginalia and Rails write them
/// (<https://google.github.io/sqlcommenter/spec/>, <https://guides.rubyonrails.org/configuring.html>). Others change with each request.
const TAGS: [&str; 10] = [
    "application",
    "service",
    "controller",
    "namespaced_controller",
    "action",
    "route",
    "job",
    "component",
    "endpoint",
    "framework",
];

/// One harmless line that statements have in common which differ in their literals, their comments and their layout, and in how
/// many values a list has.
pub fn fingerprint(statement: &str) -> String {
    if is_number(statement) || is_hash(statement) {
        return statement.to_owned();
    }
    // Longer ones are cut before anybody reads them.
    let begin = statement
        .char_indices()
        .nth(20 * LENGTH)
        .map_or(statement, |(end, _)| statement.get(..end).unwrap_or_default());
    let bare = without_literals(begin);
    let mut words = String::new();
    let mut rest = bare.as_str();
    while let Some(first) = rest.chars().next() {
        let taken = match first {
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            _ => first.len_utf8(),
        };
        let (piece, tail) = rest.split_at_checked(taken.max(1)).unwrap_or((rest, ""));
        words.push_str(if piece.len() > 1 && piece.starts_with(['-', '/']) { " " } else { piece });
        rest = tail;
    }
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    crate::text::one_line_prefix(&without_lists(&words), LENGTH).into_owned()
}

/// `(?, ?, ?)` is `(?)`.
fn without_lists(words: &str) -> String {
    let mut short = String::with_capacity(words.len());
    let mut rest = words;
    while let Some(at) = rest.find('?') {
        let (before, after) = rest.split_at_checked(at + 1).unwrap_or((rest, ""));
        short.push_str(before);
        let mut tail = after;
        while let Some(next) =
            tail.trim_start().strip_prefix(',').and_then(|next| next.trim_start().strip_prefix('?'))
        {
            tail = next;
        }
        rest = tail;
    }
    short + rest
}

/// What the comments of a statement say of where it came from: `controller=users action=show`; nothing where they say nothing
/// that others have in common.
pub fn tag(statement: &str) -> String {
    let mut found: Vec<String> = Vec::new();
    let mut rest = statement;
    while let Some((_, comment)) = rest.split_once("/*") {
        let (comment, tail) = comment.split_once("*/").unwrap_or((comment, ""));
        let pairs =
            comment.split(',').filter_map(|pair| pair.split_once('=').or_else(|| pair.split_once(':')));
        for (key, value) in pairs {
            let (key, value) = (key.trim(), value.trim().trim_matches('\''));
            if TAGS.contains(&key) && !value.is_empty() {
                found.push(format!("{key}={value}"));
            }
        }
        rest = tail;
    }
    crate::text::one_line_prefix(&found.join(" "), LENGTH / 2).into_owned()
}

/// Whether that is all that was kept of a statement.
pub fn is_number(query: &str) -> bool {
    let number = query.strip_prefix("query ");
    number.is_some_and(|number| number.len() == 8 && number.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Whether that is the form of a statement and the hash of it, `UPDATE query-0f3a91c27e`, as `--redact names` leaves them.
pub fn is_hash(query: &str) -> bool {
    let is_form = |form: &str| form.is_empty() || forms().iter().any(|(known, _)| known.name == form);
    query.rsplit_once("query-").is_some_and(|(form, hash)| {
        hash.len() == 10 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) && is_form(form.trim_end())
    })
}

/// A statement with `?` for its strings and numbers, and without what its comments say. One that the server cut within a
/// string ends there. As the server's scanner reads them (`src/backend/parser/scan.l`).
pub fn without_literals(query: &str) -> String {
    let mut out = String::with_capacity(query.len());
    let mut rest = query;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let is_word = before.is_alphanumeric() || before == '_' || before == '$';
        let (taken, shown) = match first {
            '\'' => (scan::string(rest, matches!(before, 'e' | 'E')), "?"),
            '"' => (scan::quoted(rest), ""),
            '$' if !is_word && scan::dollar_tag(rest).is_some() => (scan::dollar_quoted(rest), "?"),
            '-' if rest.starts_with("--") => (rest.find('\n').unwrap_or(rest.len()), "--"),
            '/' if rest.starts_with("/*") => (scan::comment(rest), "/**/"),
            '0'..='9' if !is_word => (scan::number(rest), "?"),
            _ => (first.len_utf8(), ""),
        };
        let (word, tail) = rest.split_at_checked(taken.max(1)).unwrap_or((rest, ""));
        out.push_str(if shown.is_empty() { word } else { shown });
        before = if shown.is_empty() { word.chars().next_back().unwrap_or(' ') } else { ' ' };
        rest = tail;
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn strings_numbers_and_comments_are_taken_out() {
        for (query, expected) in [
            ("SELECT * FROM t1 WHERE a = 'it''s' AND b2 = 42", "SELECT * FROM t1 WHERE a = ? AND b2 = ?"),
            (r"SELECT E'a\'b', 'c\', 1.5e10, x", "SELECT E?, ?, ?, x"),
            ("SELECT $$it's$$, $fn$ $$ $fn$, $1, $12::int", "SELECT ?, ?, $1, $12::int"),
            ("SELECT \"a'b1\".c FROM \"T 2\"", "SELECT \"a'b1\".c FROM \"T 2\""),
            ("SELECT 1 -- don't\n, 2 /* a /* 'b' */ c */ FROM t", "SELECT ? --\n, ? /**/ FROM t"),
            ("UPDATE t SET secret = 'abc", "UPDATE t SET secret = ?"),
            ("报表 = '宽字符' AND n=-7", "报表 = ? AND n=-?"),
            ("SELECT $tag$ never ends", "SELECT ?"),
            ("a1b2 _3 0x1F", "a1b2 _3 ?"),
        ] {
            assert_eq!(without_literals(query), expected);
        }
    }

    #[test]
    fn statements_that_are_alike_have_one_fingerprint() {
        for (statement, expected) in [
            ("SELECT *\n  FROM t -- don't\n WHERE a IN (1, 2,3)", "SELECT * FROM t WHERE a IN (?)"),
            ("/*controller='x'*/ UPDATE t SET a = 'b'", "UPDATE t SET a = ?"),
            ("INSERT INTO t VALUES (1,'x'), (2,'y')", "INSERT INTO t VALUES (?), (?)"),
            ("query 01234567", "query 01234567"),
            ("UPDATE query-0123456789", "UPDATE query-0123456789"),
            ("query-9123456789", "query-9123456789"),
            ("SELECT 's' FROM query-0123456789", "SELECT ? FROM query-?"),
            ("SELECT '\u{1b}[31m'", "SELECT ?"),
            ("", ""),
        ] {
            assert_eq!(fingerprint(statement), expected);
        }
        assert!(fingerprint(&"SELECT x ".repeat(100_000)).len() < 1000);
    }

    #[test]
    fn a_comment_says_where_a_statement_came_from() {
        for (statement, expected) in [
            (
                "SELECT 1 /*controller='users',action='show',traceparent='00-5b'*/",
                "controller=users action=show",
            ),
            ("/*application:Shop,job:Mailer*/ SELECT 1", "application=Shop job=Mailer"),
            ("SELECT 1 /* nothing */ /*+ IndexScan(t) */", ""),
            ("SELECT 1 /*route='/a", "route=/a"),
        ] {
            assert_eq!(tag(statement), expected);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_taken_and_none_twice(text in "[a-zE'\"$*/\\\\0-9 \n-]{0,60}") {
            let once = without_literals(&text);
            prop_assert!(once.len() <= text.len() + 8);
            let _ = without_literals(&once);
        }

        #[test]
        fn any_text_has_a_fingerprint(text in "[a-zE'\"$*/,?()\\\\0-9 \n-]{0,60}") {
            let once = fingerprint(&text);
            prop_assert!(!once.contains(char::is_control));
            let _ = tag(&text);
        }
    }
}
