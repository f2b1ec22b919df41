//! What is left out of the statements that are recorded.

use std::sync::Arc;

use crate::model::Text;
use crate::model::event::{Events, Kind};
use crate::model::past::KeptLook;
use crate::model::snapshot::Snapshot;

/// What is left out. Whatever it is, statements that speak of a password have no literals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Redaction {
    /// Nothing else.
    #[default]
    None,
    /// Strings, numbers and comments.
    Literals,
    /// Whole statements: what stays is a number, the same for the same statement with other literals.
    Queries,
}

impl Redaction {
    /// Its word on the command line and in the file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Literals => "literals",
            Self::Queries => "queries",
        }
    }

    /// Takes it out of a snapshot. What is made of the snapshot does not have it either.
    pub fn apply(self, snapshot: &mut Snapshot) {
        let has_any = |text: &Text| self != Self::None || speaks_of_password(text);
        if !snapshot.backends.rows.iter().any(|backend| backend.query.as_ref().is_some_and(has_any)) {
            return;
        }
        for backend in Arc::make_mut(&mut snapshot.backends.rows) {
            if let Some(query) = &mut backend.query {
                *query = self.redacted(query);
            }
        }
    }

    /// Takes it out of a look that was kept. Events that were made of statements have all of their text taken out that may be one.
    pub fn apply_to_kept(self, kept: &mut KeptLook) {
        self.apply(&mut kept.snapshot);
        if self == Self::None {
            return;
        }
        if let Some(graph) = &mut kept.past.graph_from {
            for backend in Arc::make_mut(&mut graph.backends) {
                backend.query = backend.query.as_ref().map(|query| self.redacted(query));
            }
        }
        let said = |said: &mut Vec<Text>| {
            for text in said {
                *text = before_statement(text);
            }
        };
        kept.past.deadlocks.cycles.iter_mut().for_each(|cycle| said(&mut cycle.said));
        let broken = kept.past.deadlocks.broken.iter_mut();
        broken.filter_map(|broken| broken.victims.as_mut()).for_each(|victims| said(&mut victims.said));
        let mut events = Events::default();
        for event in kept.events.iter() {
            let mut event = event.clone();
            if event.kind == Kind::Deadlock {
                event.draft.what = before_statement(&event.what);
            }
            events.append(event);
        }
        kept.events = Arc::new(events);
    }

    fn redacted(self, query: &Text) -> Text {
        match self {
            Self::None if !speaks_of_password(query) => Text::clone(query),
            Self::None | Self::Literals => without_literals(query).into(),
            // What was taken out once stays as it is.
            Self::Queries if is_number(query) => Text::clone(query),
            Self::Queries => {
                format!("query {:08x}", crc32fast::hash(without_literals(query).as_bytes())).into()
            }
        }
    }
}

/// `4410 deploy@ci waited for Share on accounts: ALTER TABLE …` without its statements.
fn before_statement(text: &str) -> Text {
    without_literals(text.split_once(": ").map_or(text, |(before, _)| before)).into()
}

fn is_number(query: &str) -> bool {
    let number = query.strip_prefix("query ");
    number.is_some_and(|number| number.len() == 8 && number.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn speaks_of_password(query: &str) -> bool {
    const WORD: &[u8] = b"password";
    query.as_bytes().windows(WORD.len()).any(|part| part.eq_ignore_ascii_case(WORD))
}

/// A statement with `?` for its strings and numbers, and without what its comments say. One that the server cut within a
/// string ends there. As the server's scanner reads them (`src/backend/parser/scan.l`).
#[must_use]
pub fn without_literals(query: &str) -> String {
    let mut out = String::with_capacity(query.len());
    let mut rest = query;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let is_word = before.is_alphanumeric() || before == '_' || before == '$';
        let (taken, shown) = match first {
            '\'' => (string(rest, matches!(before, 'e' | 'E')), "?"),
            '"' => (quoted(rest), ""),
            '$' if !is_word && dollar_tag(rest).is_some() => (dollar_quoted(rest), "?"),
            '-' if rest.starts_with("--") => (rest.find('\n').unwrap_or(rest.len()), "--"),
            '/' if rest.starts_with("/*") => (comment(rest), "/**/"),
            '0'..='9' if !is_word => (number(rest), "?"),
            _ => (first.len_utf8(), ""),
        };
        let (word, tail) = rest.split_at_checked(taken.max(1)).unwrap_or((rest, ""));
        out.push_str(if shown.is_empty() { word } else { shown });
        before = if shown.is_empty() { word.chars().next_back().unwrap_or(' ') } else { ' ' };
        rest = tail;
    }
    out
}

/// Bytes up to the end of a string; with backslashes where it begins with E.
fn string(text: &str, escapes: bool) -> usize {
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' if escapes => drop(characters.next()),
            '\'' if characters.peek().is_some_and(|(_, next)| *next == '\'') => drop(characters.next()),
            '\'' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn quoted(text: &str) -> usize {
    text.get(1..).and_then(|rest| rest.find('"')).map_or(text.len(), |end| end + 2)
}

/// `$tag$` at the beginning.
fn dollar_tag(text: &str) -> Option<&str> {
    let end = text.get(1..)?.find('$')? + 2;
    let tag = text.get(..end)?;
    let name = tag.trim_matches('$');
    let is_name = name.chars().all(|character| character.is_alphanumeric() || character == '_');
    (is_name && !name.starts_with(|character: char| character.is_ascii_digit())).then_some(tag)
}

fn dollar_quoted(text: &str) -> usize {
    let Some(tag) = dollar_tag(text) else { return 1 };
    let rest = text.get(tag.len()..).unwrap_or_default();
    rest.find(tag).map_or(text.len(), |end| tag.len() + end + tag.len())
}

/// Comments may stand in comments.
fn comment(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

fn number(text: &str) -> usize {
    let is_part = |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '_');
    text.find(|character| !is_part(character)).unwrap_or(text.len())
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
    fn a_password_is_never_kept() {
        let secret: Text = "alter role app PassWord 's3cret' valid until '2027'".into();
        for redaction in [Redaction::None, Redaction::Literals, Redaction::Queries] {
            assert!(!redaction.redacted(&secret).contains("s3cret"), "{redaction:?}");
        }
        let other: Text = "SELECT 's3cret'".into();
        assert_eq!(Redaction::None.redacted(&other), other);
        let number = Redaction::Queries.redacted(&other);
        assert_eq!(number, Redaction::Queries.redacted(&"SELECT 'x'".into()));
        assert_eq!(Redaction::Queries.redacted(&number), number);
    }

    proptest! {
        #[test]
        fn any_text_is_taken_and_none_twice(text in "[a-zE'\"$*/\\\\0-9 \n-]{0,60}") {
            let once = without_literals(&text);
            prop_assert!(once.len() <= text.len() + 8);
            let _ = without_literals(&once);
        }
    }
}
