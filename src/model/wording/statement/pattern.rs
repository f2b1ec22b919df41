//! Patterns of statement forms, and matching of tokens.
//!
//! A pattern consists of words, which match themselves, and: `[A B]` optional; `{A|B}` alternatives; `@` a relation, `@.` a
//! column with its relation, `@+` several relations, `(@+)` the same in parentheses, `%` any name; `()` a group in
//! parentheses, `(A)` one that contains the word A; `*` everything before the next word of the pattern, with groups taken
//! whole; `=` an expression of constants and functions that are not volatile, `~` one with a volatile function; `$` a name
//! that is kept; `^` the name of a created object, which locks its schema; `#schema` an object of a kind (`-` for a space
//! in its key words), `#schema+` several of them, `#` and `#+` the same preceded by the key words. A pattern must match all
//! tokens: `*` at its end takes the rest.

use super::object::{self, Object, ObjectKind};
use super::token::{Relation, Token, TokenKind, depths, group, relation};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NamedObjects {
    Relations(Vec<Relation>),
    Objects(Vec<Object>),
    Created(Relation),
    Name(String),
}

#[derive(Debug, PartialEq, Eq)]
enum Element<'p> {
    Word(&'p str),
    Optional(Vec<Element<'p>>),
    Either(Vec<Vec<Element<'p>>>),
    Relation,
    OfColumn,
    Relations,
    Grouped,
    Name,
    Group(&'p str),
    Anything,
    Stable,
    Volatile,
    Kept,
    Created,
    /// `None` if the statement has the key words of the kind; and whether there may be several.
    Object(Option<&'static ObjectKind>, bool),
}

/// The names found so far, and the number of tokens left where no pattern could continue.
#[derive(Debug)]
pub(super) struct Matching {
    named: Vec<NamedObjects>,
    /// The fewest tokens left by any pattern that was tried.
    pub(super) left: usize,
}

impl Matching {
    pub(super) fn of(tokens: &[Token<'_>]) -> Self {
        Self { named: Vec::new(), left: tokens.len() }
    }

    pub(super) fn matched(&mut self, pattern: &str, tokens: &[Token<'_>]) -> Option<Vec<NamedObjects>> {
        // Most patterns begin with another word: they are not compiled.
        let first = pattern.split([' ', '[']).next().unwrap_or_default();
        let is_word = !first.is_empty() && first.bytes().all(|byte| byte.is_ascii_uppercase());
        if is_word && !tokens.first()?.is(first) {
            return None;
        }
        let elements = compile(&mut pattern.split_ascii_whitespace().flat_map(pieces).peekable(), "");
        self.named.clear();
        take(&Rest { elements: &elements, after: None }, tokens, self)
            .then(|| std::mem::take(&mut self.named))
    }
}

/// Brackets are separate pieces, even without spaces.
fn pieces(word: &str) -> Vec<&str> {
    if word.starts_with('(') {
        let (group, rest) = word
            .split_once(')')
            .map_or((word, ""), |(group, rest)| (word.get(..=group.len()).unwrap_or(word), rest));
        return std::iter::once(group).chain(pieces(rest)).filter(|piece| !piece.is_empty()).collect();
    }
    let Some(at) = word.find(['[', ']', '{', '}', '|', '(']) else { return vec![word] };
    if word.get(at..).is_some_and(|rest| rest.starts_with('(')) {
        let (before, rest) = word.split_at(at);
        return std::iter::once(before).chain(pieces(rest)).collect();
    }
    let (before, rest) = word.split_at(at);
    let (bracket, rest) = rest.split_at(1);
    let head = [before, bracket].into_iter().filter(|piece| !piece.is_empty());
    let tail = if rest.is_empty() { Vec::new() } else { pieces(rest) };
    head.chain(tail).collect()
}

fn compile<'p>(
    words: &mut std::iter::Peekable<impl Iterator<Item = &'p str>>,
    end: &str,
) -> Vec<Element<'p>> {
    let mut found = Vec::new();
    while let Some(word) = words.peek().copied() {
        if word == "|" || word == end {
            break;
        }
        words.next();
        found.push(match word {
            "[" => {
                let inner = compile(&mut *words, "]");
                words.next();
                Element::Optional(inner)
            }
            "{" => {
                let mut either = vec![compile(&mut *words, "}")];
                while words.next() == Some("|") {
                    either.push(compile(&mut *words, "}"));
                }
                Element::Either(either)
            }
            "@" => Element::Relation,
            "@." => Element::OfColumn,
            "@+" => Element::Relations,
            "(@+)" => Element::Grouped,
            "%" => Element::Name,
            "*" => Element::Anything,
            "=" => Element::Stable,
            "~" => Element::Volatile,
            "$" => Element::Kept,
            "^" => Element::Created,
            _ if word.starts_with('#') => {
                let several = word.ends_with('+');
                let kind = object::kind_of(&word.trim_matches(['#', '+']).replace('-', " "));
                Element::Object(kind, several)
            }
            _ => match word.strip_prefix('(').and_then(|word| word.strip_suffix(')')) {
                Some(word) => Element::Group(word),
                None => Element::Word(word),
            },
        });
    }
    found
}

struct Rest<'r, 'p> {
    elements: &'r [Element<'p>],
    after: Option<&'r Rest<'r, 'p>>,
}

fn take(rest: &Rest<'_, '_>, tokens: &[Token<'_>], found: &mut Matching) -> bool {
    found.left = found.left.min(tokens.len());
    let Some((first, elements)) = rest.elements.split_first() else {
        return match rest.after {
            Some(after) => take(after, tokens, found),
            None => tokens.is_empty(),
        };
    };
    let next = Rest { elements, after: rest.after };
    let known = found.named.len();
    let relations = |(all, used): (Vec<Relation>, usize)| (used, Some(NamedObjects::Relations(all)));
    let single = |(relation, used): (Relation, usize)| relations((vec![relation], used));
    let is_name = |token: &&Token<'_>| !token.is_any(&NO_NAMES);
    // The number of tokens that the first element takes, and what it names.
    let step = match first {
        Element::Word(word) => tokens.first().filter(|token| token.is(word)).map(|_| (1, None)),
        Element::Name => name(tokens).map(|used| (used, None)),
        Element::Relation => one(tokens, false).map(single),
        Element::OfColumn => relation(tokens, true).map(single),
        Element::Relations => several(tokens).map(relations),
        Element::Grouped => group(tokens).and_then(|used| {
            let (all, _) = several(tokens.get(1..used - 1)?)?;
            Some(relations((all, used)))
        }),
        Element::Kept => {
            let kept = tokens.first().filter(is_name).and_then(Token::name);
            kept.map(|kept| (1, Some(NamedObjects::Name(kept))))
        }
        Element::Created => {
            let created = tokens.first().filter(is_name).and_then(|_| relation(tokens, false));
            created.map(|(created, used)| (used, Some(NamedObjects::Created(created))))
        }
        Element::Object(kind, several) => {
            objects(*kind, *several, tokens).map(|(all, used)| (used, Some(NamedObjects::Objects(all))))
        }
        Element::Group(word) => {
            group(tokens).filter(|used| has(tokens, *used, word)).map(|used| (used, None))
        }
        Element::Anything => Some((skipped(tokens, elements), None)),
        Element::Stable => (!is_volatile(tokens)).then_some((0, None)),
        Element::Volatile => is_volatile(tokens).then_some((0, None)),
        Element::Optional(inner) => {
            return take(&Rest { elements: inner, after: Some(&next) }, tokens, found) || {
                found.named.truncate(known);
                take(&next, tokens, found)
            };
        }
        Element::Either(either) => {
            return either.iter().any(|inner| {
                found.named.truncate(known);
                take(&Rest { elements: inner, after: Some(&next) }, tokens, found)
            });
        }
    };
    let Some((used, named)) = step else { return false };
    let Some(tokens) = tokens.get(used..) else { return false };
    found.named.extend(named);
    let is = take(&next, tokens, found);
    if !is {
        found.named.truncate(known);
    }
    is
}

/// Words that are never a name unless quoted, where one of them may follow instead.
const NO_NAMES: [&str; 2] = ["ON", "IF"];

fn objects(
    kind: Option<&'static ObjectKind>,
    several: bool,
    tokens: &[Token<'_>],
) -> Option<(Vec<Object>, usize)> {
    let (kind, mut used) = match kind {
        Some(kind) => (kind, 0),
        None => object::leading(tokens)?,
    };
    if if_exists(tokens.get(used..)?) {
        used += 2;
    }
    let (found, more) = listed(tokens.get(used..)?, several, |tokens| object::one(kind, tokens))?;
    Some((found, used + more))
}

/// One, or several that commas separate, and their number of tokens.
fn listed<T>(
    tokens: &[Token<'_>],
    several: bool,
    one: impl Fn(&[Token<'_>]) -> Option<(T, usize)>,
) -> Option<(Vec<T>, usize)> {
    let (first, mut used) = one(tokens)?;
    let mut found = vec![first];
    while several && tokens.get(used).is_some_and(|token| token.sign(',')) {
        let (next, more) = one(tokens.get(used + 1..)?)?;
        found.push(next);
        used += 1 + more;
    }
    Some((found, used))
}

fn if_exists(tokens: &[Token<'_>]) -> bool {
    matches!(tokens, [first, second, ..] if first.is("IF") && second.is("EXISTS"))
}

/// A name of any number of parts; the name of an index or trigger is never a word that may follow in its place.
fn name(tokens: &[Token<'_>]) -> Option<usize> {
    if tokens.first()?.is_any(&NO_NAMES) {
        return None;
    }
    relation(tokens, false).map(|(_, used)| used)
}

/// A relation as in most commands, `[ONLY] name [*]`, and its number of tokens.
fn one(tokens: &[Token<'_>], columns: bool) -> Option<(Relation, usize)> {
    let is_only = tokens.first()?.is("ONLY");
    let rest = tokens.get(usize::from(is_only)..)?;
    // No relation has one of these names unless quoted.
    if rest.first()?.is_among("ON IF TO FROM CONCURRENTLY ALL ONLY TABLE TABLES USING IN SEQUENCE") {
        return None;
    }
    let (mut relation, mut used) = relation(rest, false)?;
    relation.only = is_only;
    used += usize::from(rest.get(used).is_some_and(|token| token.sign('*')));
    if columns && rest.get(used).is_some_and(|token| token.sign('(')) {
        used += group(rest.get(used..)?)?;
    }
    Some((relation, used + usize::from(is_only)))
}

fn several(tokens: &[Token<'_>]) -> Option<(Vec<Relation>, usize)> {
    listed(tokens, true, |tokens| one(tokens, true))
}

fn has(tokens: &[Token<'_>], used: usize, word: &str) -> bool {
    word.is_empty() || tokens.get(..used).unwrap_or_default().iter().any(|token| token.is(word))
}

/// The number of tokens before the next word of the pattern. There is no backtracking, since a statement may be long.
fn skipped(tokens: &[Token<'_>], elements: &[Element<'_>]) -> usize {
    let ends: Vec<&str> = match elements.first() {
        Some(Element::Word(word)) => vec![word],
        Some(Element::Either(either)) => either
            .iter()
            .filter_map(|inner| match inner.first() {
                Some(Element::Word(word)) => Some(*word),
                _ => None,
            })
            .collect(),
        _ => return tokens.len(),
    };
    let end = depths(tokens).position(|(depth, token)| depth == 0 && token.is_any(&ends));
    end.unwrap_or(tokens.len())
}

/// Server functions that are not volatile, among those common in defaults.
const NOT_VOLATILE: &str = "NOW TRANSACTION_TIMESTAMP STATEMENT_TIMESTAMP DATE_TRUNC TIMEZONE TO_TIMESTAMP MAKE_INTERVAL MAKE_DATE COALESCE LOWER UPPER CAST NUMERIC VARCHAR CURRENT_SETTING JSONB_BUILD_OBJECT";

/// Whether an expression may call a volatile function; an unknown function counts as volatile.
fn is_volatile(tokens: &[Token<'_>]) -> bool {
    tokens.windows(2).any(|pair| match pair {
        [called, open] => {
            open.sign('(')
                && matches!(called.kind, TokenKind::Word | TokenKind::Quoted)
                && !called.is_among(NOT_VOLATILE)
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::statement::token::tokens;

    #[test]
    fn patterns() {
        for (pattern, text, expected) in [
            ("DROP TABLE [IF EXISTS] @+ [CASCADE]", "drop table if exists a, s.\"B\" CASCADE", Some("a,s.B")),
            ("DROP TABLE [IF EXISTS] @+", "DROP VIEW a", None),
            ("CREATE [UNIQUE] INDEX [[IF NOT EXISTS] %] ON [ONLY] @ *", "CREATE INDEX ON t (a)", Some("t")),
            (
                "CREATE [UNIQUE] INDEX [[IF NOT EXISTS] %] ON [ONLY] @ *",
                "CREATE UNIQUE INDEX IF NOT EXISTS s.i ON ONLY t",
                Some("t"),
            ),
            (
                "CREATE TRIGGER % * ON @ *",
                "CREATE TRIGGER x BEFORE UPDATE OF a, b ON s.t FOR EACH ROW",
                Some("s.t"),
            ),
            ("VACUUM (FULL) @+", "VACUUM (ANALYZE, FULL) a (x, y), b", Some("a,b")),
            ("VACUUM (FULL) @+", "VACUUM (ANALYZE) a", None),
            ("SET {LOGGED|UNLOGGED}", "SET UNLOGGED", Some("")),
            ("ADD % * DEFAULT ~ *", "ADD a int DEFAULT random()", Some("")),
            ("ADD % * DEFAULT ~ *", "ADD a timestamptz DEFAULT now()", None),
            ("COMMENT ON COLUMN @. IS *", "COMMENT ON COLUMN s.t.c IS 'x'", Some("s.t")),
            ("INHERITS (@+)", "INHERITS (a, b)", Some("a,b")),
            ("VACUUM", "VACUUM a", None),
            ("VACUUM", "VACUUM", Some("")),
            (
                "DROP #+ [CASCADE]",
                "DROP FUNCTION IF EXISTS f(int, s.t), g CASCADE",
                Some("function f,function g"),
            ),
            ("DROP #+ [CASCADE]", "DROP TEXT SEARCH PARSER s.p", Some("text search parser s.p")),
            ("COMMENT ON # IS *", "COMMENT ON OPERATOR s.=== (int, int) IS 'x'", Some("operator s.===")),
            ("COMMENT ON # IS *", "COMMENT ON CAST (a AS b) IS 'x'", Some("cast ( a AS b )")),
            ("CREATE TABLE ^ ()", "CREATE TABLE s.t (a int)", Some("+s.t")),
            ("DROP CONSTRAINT $", "DROP CONSTRAINT c", Some("=c")),
        ] {
            let tokens = tokens(text);
            let words = |named: NamedObjects| match named {
                NamedObjects::Relations(all) => {
                    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
                }
                NamedObjects::Objects(all) => {
                    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
                }
                NamedObjects::Created(created) => format!("+{created}"),
                NamedObjects::Name(name) => format!("={name}"),
            };
            let found = Matching::of(&tokens).matched(pattern, &tokens);
            let found = found.map(|found| found.into_iter().map(words).collect::<Vec<_>>().join(","));
            assert_eq!(found.as_deref(), expected, "{pattern}: {text}");
        }
    }
}
