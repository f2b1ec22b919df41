//! A statement in a column: without leading comments and line breaks, so that the first words are visible.

use crate::text::one_line_prefix;

/// Number of characters read of a statement: no screen is wider.
const LONGEST: usize = 500;

/// A narrower column omits the select list: the table is more informative.
const NARROW: u16 = 24;

pub fn clean(query: &str, room: u16) -> String {
    let line = one_line_prefix(without_comments(query), 4 * LONGEST).into_owned();
    let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
    let text = words.join(" ");
    let list = text.get(..7).filter(|head| room < NARROW && head.eq_ignore_ascii_case("select "));
    // Only ASCII letters are changed, so that positions are the same in both texts.
    let from = list.and_then(|_| text.to_ascii_lowercase().find(" from "));
    let text = match from {
        Some(from) => {
            format!("{}…{}", text.get(..7).unwrap_or_default(), text.get(from..).unwrap_or_default())
        }
        None => text,
    };
    one_line_prefix(&text, LONGEST).into_owned()
}

fn without_comments(query: &str) -> &str {
    let mut rest = query.trim_start();
    loop {
        let after = match rest.get(..2) {
            Some("--") => rest.split_once('\n').map(|(_, after)| after),
            Some("/*") => end_of_comment(rest),
            _ => None,
        };
        match after.map(str::trim_start).filter(|after| !after.is_empty()) {
            Some(after) => rest = after,
            None => return rest,
        }
    }
}

/// The text after a comment; comments may be nested.
fn end_of_comment(text: &str) -> Option<&str> {
    let mut depth = 0usize;
    let mut at = 0;
    loop {
        match (text.get(at..at + 2), text.as_bytes().get(at)) {
            (_, None) => return None,
            (Some("/*"), _) => (depth, at) = (depth + 1, at + 2),
            (Some("*/"), _) if depth == 1 => return text.get(at + 2..),
            (Some("*/"), _) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_words_of_a_statement_are_seen() {
        for (query, room, shown) in [
            ("SELECT  1", 60, "SELECT 1"),
            (
                "-- page of orders\n/* a /* nested */ one */ SELECT a,\n   b\tFROM orders",
                60,
                "SELECT a, b FROM orders",
            ),
            ("SELECT a, b FROM orders", 17, "SELECT … FROM orders"),
            ("select now()", 17, "select now()"),
            ("-- nothing else", 17, "-- nothing else"),
            ("/* open", 17, "/* open"),
            ("UPDATE é SET x = 1 FROM y", 17, "UPDATE é SET x = 1 FROM y"),
        ] {
            assert_eq!(clean(query, room), shown, "{query}");
        }
    }
}
