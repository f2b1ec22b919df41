//! Queries and actions of adapters: one statement each, with `{…}` placeholders for values that are known only at a server.
//!
//! A query runs with the rights of the locktop user. So it may name only the tables described by the adapter, which are
//! locked and whose owners are checked first, and only built-in functions, types and operators. Checks that the text alone
//! does not permit are made at the server before the query is planned (`pg::jobs::adapters`).

mod plain_names;

use plain_names::names_are_plain;

use super::{ActionKind, ActionValue};
use crate::model::Text;

/// Maximum length of a query, in characters.
const LONGEST: usize = 20_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplatePiece {
    Text(Text),
    /// `{jobs}`: the table with this key.
    Table(Text),
    /// `{jobs:oid}`: the OID of the table, as a literal.
    Oid(Text),
    /// `{jobs:name}`: the unqualified name, for INSERT.
    Name(Text),
    /// `{limit}`: one more than the number of rows kept.
    Limit,
    /// `{most}`: one more than the number of rows counted.
    Most,
    /// `{set:rescue_after}`: a setting, as a literal.
    Setting(Text),
    /// `{each}`: the name of the queue, as a literal.
    Each,
    /// `{id}`, `{worker}`, …: a value of the row, in an action.
    Value(ActionValue),
}

impl TemplatePiece {
    pub fn source(&self) -> String {
        match self {
            Self::Text(text) => text.to_string(),
            Self::Table(key) => format!("{{{key}}}"),
            Self::Oid(key) => format!("{{{key}:oid}}"),
            Self::Name(key) => format!("{{{key}:name}}"),
            Self::Limit => "{limit}".to_owned(),
            Self::Most => "{most}".to_owned(),
            Self::Setting(name) => format!("{{set:{name}}}"),
            Self::Each => "{each}".to_owned(),
            Self::Value(value) => format!("{{{}}}", value.as_str()),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct TemplateWords<'a> {
    pub tables: &'a [Text],
    pub settings: &'a [Text],
    pub has_each: bool,
    /// None: the statement is a query.
    pub action: Option<ActionKind>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<TemplatePiece>);

impl Template {
    /// Checks a query.
    ///
    /// # Errors
    /// If the query is not permitted: what is wrong, and how to correct it.
    pub fn parse(text: &str, words: TemplateWords<'_>) -> Result<Self, String> {
        let text = text.trim();
        if text.chars().count() > LONGEST {
            return Err(format!("it has more than {LONGEST} characters"));
        }
        if let Some(found) = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
            return Err(format!("it has the control character U+{:04X}", u32::from(found)));
        }
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        let mut outside = String::new();
        while let Some(next) = rest.chars().next() {
            let length = match next {
                '\'' | '"' => quoted(rest, next)?,
                '{' => {
                    let (name, length) = braces(rest)?;
                    let piece = words.piece(name)?;
                    if !plain.is_empty() {
                        pieces.push(TemplatePiece::Text(std::mem::take(&mut plain).into()));
                    }
                    pieces.push(piece);
                    rest = rest.get(length..).unwrap_or_default();
                    outside.push_str(" ?table ");
                    continue;
                }
                _ => refused(rest, next)?,
            };
            let (taken, tail) = rest.split_at(length);
            plain.push_str(taken);
            // Text in quotes is ignored below; a quoted identifier is replaced by a placeholder name.
            outside.push_str(match next {
                '\'' => " ?value ",
                '"' => "?name",
                _ => taken,
            });
            rest = tail;
        }
        if !plain.is_empty() {
            pieces.push(TemplatePiece::Text(plain.into()));
        }
        names_are_plain(&outside, words.action.is_some())?;
        let template = Self(pieces);
        match words.action {
            Some(kind) => template.identifies_row(kind),
            None => Ok(template),
        }
    }

    /// An action must name the row, and a value that distinguishes this run or holder from the next.
    fn identifies_row(self, kind: ActionKind) -> Result<Self, String> {
        let has = |value: ActionValue| self.values().any(|one| one == value);
        let brace = |value: &ActionValue| format!("{{{}}}", value.as_str());
        if !has(ActionValue::Id) {
            return Err("it does not have {id}: which row it is".into());
        }
        if !kind.identifying_values().iter().any(|value| has(*value)) {
            let words: Vec<String> = kind.identifying_values().iter().map(brace).collect();
            return Err(format!(
                "it has none of {}: the next run could not be distinguished from this one",
                words.join(", ")
            ));
        }
        Ok(self)
    }

    pub fn values(&self) -> impl Iterator<Item = ActionValue> {
        self.0.iter().filter_map(|piece| match piece {
            TemplatePiece::Value(value) => Some(*value),
            _ => None,
        })
    }

    pub fn pieces(&self) -> &[TemplatePiece] {
        &self.0
    }

    pub fn source(&self) -> String {
        self.0.iter().map(TemplatePiece::source).collect()
    }

    pub fn tables(&self) -> Vec<&Text> {
        let mut keys: Vec<&Text> = Vec::new();
        for piece in &self.0 {
            if let TemplatePiece::Table(key) | TemplatePiece::Oid(key) | TemplatePiece::Name(key) = piece
                && !keys.contains(&key)
            {
                keys.push(key);
            }
        }
        keys
    }
}

impl TemplateWords<'_> {
    fn piece(&self, name: &str) -> Result<TemplatePiece, String> {
        let table = |key: &str| self.tables.iter().find(|one| &***one == key).cloned();
        let value = self.action.map(ActionKind::values).unwrap_or_default();
        if let Some(value) = value.iter().find(|value| value.as_str() == name) {
            return Ok(TemplatePiece::Value(*value));
        }
        let found = match name {
            "limit" if self.action.is_some() => None,
            "limit" => Some(TemplatePiece::Limit),
            "most" => Some(TemplatePiece::Most),
            "each" if self.has_each => Some(TemplatePiece::Each),
            _ => match name.split_once(':') {
                None => table(name).map(TemplatePiece::Table),
                Some((key, "oid")) => table(key).map(TemplatePiece::Oid),
                Some((key, "name")) if self.action.is_some() => table(key).map(TemplatePiece::Name),
                Some(("set", name)) => {
                    self.settings.iter().find(|one| &***one == name).cloned().map(TemplatePiece::Setting)
                }
                Some(_) => None,
            },
        };
        found.ok_or_else(|| {
            let tables: Vec<String> = self.tables.iter().map(|key| format!("{{{key}}}")).collect();
            let settings: Vec<String> = self.settings.iter().map(|name| format!("{{set:{name}}}")).collect();
            let each: &[&str] = if self.has_each { &["{each}"] } else { &[] };
            let counts: &[&str] = if self.action.is_some() { &[] } else { &["{limit}", "{most}"] };
            let words = counts.iter().chain(each).map(|word| (*word).to_owned());
            let values = self.action.map(ActionKind::values).unwrap_or_default();
            let values = values.iter().map(|value| format!("{{{}}}", value.as_str())).collect();
            let known = [words.collect(), values, tables, settings].concat();
            format!("{{{name}}} is not a known placeholder: expected {}, or {{TABLE:oid}}", known.join(", "))
        })
    }
}

/// The length of a quoted text, including both quotation marks.
fn quoted(text: &str, quote: char) -> Result<usize, String> {
    let mut inside = text.char_indices().skip(1);
    while let Some((at, letter)) = inside.next() {
        match letter {
            '\\' => {
                return Err("it has a backslash, which is an escape on some servers: use chr(92)".into());
            }
            _ if letter != quote => {}
            _ if text.get(at + 1..).is_some_and(|rest| rest.starts_with(quote)) => {
                inside.next();
            }
            _ => return Ok(at + 1),
        }
    }
    Err(format!("a quotation mark {quote} has no end"))
}

/// The text in braces, and its length including the braces.
fn braces(text: &str) -> Result<(&str, usize), String> {
    let end = text.find('}').ok_or_else(|| "a brace { has no end".to_owned())?;
    Ok((text.get(1..end).unwrap_or_default(), end + 1))
}

/// The length of a character outside of quotes, or an error if it is not allowed in a query.
fn refused(text: &str, letter: char) -> Result<usize, String> {
    match letter {
        ';' => Err("it has a semicolon: a query is one statement without one".into()),
        '$' => Err("it has a $, which begins a parameter or a quotation: write '…'".into()),
        '\\' => Err("it has a backslash, which no query needs".into()),
        '-' if text.starts_with("--") => Err("it has a comment: put it into the file, after #".into()),
        '/' if text.starts_with("/*") => Err("it has a comment: put it into the file, after #".into()),
        _ => Ok(letter.len_utf8()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Template, String> {
        let (tables, settings) = (["jobs".into(), "processes".into()], ["rescue_after".into()]);
        Template::parse(
            text,
            TemplateWords { tables: &tables, settings: &settings, has_each: false, action: None },
        )
    }

    #[test]
    fn a_query_is_its_pieces() {
        let query = parse(
            "SELECT '{jobs}' FROM {jobs} j, {processes} WHERE oid = {jobs:oid} AND x < {set:rescue_after}::interval LIMIT {limit}",
        );
        let query = query.unwrap();
        let text = |text: &str| TemplatePiece::Text(text.into());
        let expected = [
            text("SELECT '{jobs}' FROM "),
            TemplatePiece::Table("jobs".into()),
            text(" j, "),
            TemplatePiece::Table("processes".into()),
            text(" WHERE oid = "),
            TemplatePiece::Oid("jobs".into()),
            text(" AND x < "),
            TemplatePiece::Setting("rescue_after".into()),
            text("::interval LIMIT "),
            TemplatePiece::Limit,
        ];
        assert_eq!(query.pieces(), expected);
        let keys: Vec<&str> = query.tables().iter().map(|key| &***key).collect();
        assert_eq!(keys, ["jobs", "processes"]);
    }

    #[test]
    fn queries_that_adapters_need_are_permitted() {
        for text in [
            "SELECT 1",
            " (SELECT a FROM {jobs} LIMIT 1) UNION ALL (SELECT b FROM {jobs} j)",
            "WITH RECURSIVE q (a) AS (SELECT 1) SELECT * FROM q",
            "SELECT j.a ->> 'b' AS \"odd;name\", 'it''s; -- fine /* */ $1' FROM {jobs} j WHERE j.a - 1 < 2",
            "SELECT left(j.error, 200), j.errors[array_upper(j.errors, 1)] FROM {jobs} j",
            "SELECT x::bit(64)::bigint, coalesce(p.a || ':', '') || p.pid FROM {jobs} p",
            "SELECT c.reltuples FROM pg_catalog.pg_class c WHERE c.oid = {jobs:oid}",
            "SELECT pg_catalog.now()",
            "SELECT j.updated_at, j.deleted FROM {jobs} j",
            "SELECT extract(epoch FROM j.a), a IS NOT DISTINCT FROM j.b FROM {jobs} j",
        ] {
            assert!(parse(text).is_ok(), "{text}: {:?}", parse(text));
        }
    }

    #[test]
    fn text_other_than_one_query_of_known_tables_is_rejected() {
        for (text, expected) in [
            ("SELECT 1; DROP TABLE x", "semicolon"),
            ("SELECT 1;", "semicolon"),
            ("DROP TABLE x", "does not begin with SELECT"),
            ("", "does not begin with SELECT"),
            ("TABLE x", "does not begin with SELECT"),
            ("SELECT 1 -- x", "comment"),
            ("SELECT 1 /* x */", "comment"),
            ("SELECT $1", "a $"),
            ("SELECT $x$;$x$", "a $"),
            ("SELECT 'a\\'; DROP TABLE x; --'", "backslash"),
            ("SELECT E'\\''", "backslash"),
            ("SELECT U&\"\\0041\"", "backslash"),
            ("SELECT 'a", "no end"),
            ("SELECT \"a", "no end"),
            ("SELECT {jobs", "no end"),
            ("SELECT {job}", "{job} is not a known placeholder: expected {limit}, {most}, {jobs}"),
            ("SELECT {set:x}", "is not a known placeholder"),
            ("SELECT {jobs:name}", "is not a known placeholder"),
            ("SELECT {}", "is not a known placeholder"),
            ("SELECT {each}", "is not a known placeholder"),
            ("SELECT public.f()", "public.f"),
            ("SELECT \"public\".\"f\" ()", "\"…\""),
            ("SELECT 1::public.t", "public.t"),
            ("SELECT cast(1 AS public.t)", "public.t"),
            ("SELECT * FROM public.secret", "public.secret"),
            ("SELECT * FROM ONLY evil.t", "evil.t"),
            ("SELECT a.b.c FROM {jobs}", "a.b"),
            ("SELECT 1 OPERATOR(public.+) 2", "operator"),
            ("WITH d AS (DELETE FROM {jobs} RETURNING 1) SELECT * FROM d", "DELETE"),
            ("SELECT 1 INTO x", "INTO"),
            ("SELECT 1 FROM {jobs} FOR UPDATE", "UPDATE"),
            ("SELECT pg_terminate_backend(1)", "pg_terminate_backend"),
            ("SELECT pg_catalog.PG_SLEEP(1)", "pg_sleep"),
            ("SELECT set_config('a', 'b', false)", "set_config"),
            ("SELECT pg_try_advisory_lock(1)", "pg_try_advisory_"),
            ("SELECT '\u{1b}'", "control character U+001B"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        assert!(parse(&format!("SELECT '{}'", "x".repeat(LONGEST))).is_err());
    }
}
