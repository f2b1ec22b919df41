//! Statements that differ only in their literals, and the origin given in their comments.

use crate::model::statement::forms;
use crate::model::statement::redacted::{redacted_pieces, speaks_of_secret, without_userinfo};
use crate::model::statement::scan::{ScanPiece, pieces};

/// Maximum characters of a fingerprint; statements that are equal up to there are grouped.
const LENGTH: usize = 200;

/// Comment keys that identify a part of a program, as written by sqlcommenter, Marginalia and Rails
/// (<https://google.github.io/sqlcommenter/spec/>, <https://guides.rubyonrails.org/configuring.html>). Other keys change
/// with each request.
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

/// One printable line that is equal for statements that differ only in their literals, their comments, their layout, and in
/// the number of values in a list.
pub fn fingerprint(statement: &str) -> String {
    if is_number(statement) || is_hash(statement) {
        return statement.to_owned();
    }
    // Longer statements are cut before they are parsed.
    let begin = statement
        .char_indices()
        .nth(20 * LENGTH)
        .map_or(statement, |(end, _)| statement.get(..end).unwrap_or_default());
    let mut words = String::new();
    for (piece, shown) in redacted_pieces(begin) {
        words.push_str(if matches!(piece, ScanPiece::LineComment | ScanPiece::Comment) {
            " "
        } else {
            shown
        });
    }
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    crate::text::one_line_prefix(&without_lists(&without_userinfo(&words)), LENGTH).into_owned()
}

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

/// The origin given in the comments of a statement: `controller=users action=show`. Empty if they contain no key of `TAGS`.
pub fn tag(statement: &str) -> String {
    let mut found: Vec<String> = Vec::new();
    let comments = pieces(statement)
        .filter(|(piece, comment)| *piece == ScanPiece::Comment && !speaks_of_secret(comment));
    for (_, comment) in comments {
        let comment = comment.trim_start_matches("/*").trim_end_matches("*/");
        let pairs =
            comment.split(',').filter_map(|pair| pair.split_once('=').or_else(|| pair.split_once(':')));
        for (key, value) in pairs {
            let (key, value) = (key.trim(), value.trim().trim_matches('\''));
            if TAGS.contains(&key) && !value.is_empty() {
                found.push(format!("{key}={value}"));
            }
        }
    }
    crate::text::one_line_prefix(&found.join(" "), LENGTH / 2).into_owned()
}

pub fn is_number(query: &str) -> bool {
    let number = query.strip_prefix("query ");
    number.is_some_and(|number| number.len() == 8 && number.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Whether it is the form of a statement and its hash, `UPDATE query-0f3a91c27e`, as `--redact names` leaves them.
pub fn is_hash(query: &str) -> bool {
    let is_form = |form: &str| form.is_empty() || forms().iter().any(|(known, _)| known.name == form);
    query.len() < LENGTH
        && query.rsplit_once("query-").is_some_and(|(form, hash)| {
            hash.len() == 10 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) && is_form(form.trim_end())
        })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
    fn tags_in_a_comment_show_the_origin_of_a_statement() {
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
        fn any_text_has_a_fingerprint(text in "[a-zE'\"$*/,?()\\\\0-9 \n-]{0,60}") {
            let once = fingerprint(&text);
            prop_assert!(!once.contains(char::is_control));
            let _ = tag(&text);
        }
    }
}
