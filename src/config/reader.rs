//! Reads TOML tables and collects all mistakes with their positions.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::error::{Mistake, Position};
use crate::text;
use pg_connect::conninfo::nearest;

pub(super) type Value<'a, 'i> = &'a Spanned<DeValue<'i>>;

pub(super) struct Reader<'s> {
    source: &'s str,
    mistakes: Vec<Mistake>,
}

impl<'s> Reader<'s> {
    pub(super) fn new(source: &'s str) -> Self {
        Self { source, mistakes: Vec::new() }
    }

    pub(super) fn finish(mut self) -> Vec<Mistake> {
        self.mistakes.sort();
        self.mistakes
    }

    pub(super) fn position(&self, span: &Range<usize>) -> Position {
        Position::of(self.source, span.start)
    }

    pub(super) fn mistake(&mut self, span: &Range<usize>, message: impl Into<String>) {
        let mistake = Mistake { at: self.position(span), message: message.into() };
        self.mistakes.push(mistake);
    }

    pub(super) fn expected(&mut self, name: &str, value: Value<'_, '_>, expected: &str) {
        let found = show(value.get_ref());
        self.mistake(&value.span(), format!("{name} is {found}: expected {expected}"));
    }

    pub(super) fn unknown(
        &mut self,
        what: &str,
        section: &str,
        key: &Spanned<DeString<'_>>,
        allowed: &[&str],
    ) {
        let name = text::one_line(key.get_ref()).into_owned();
        let help = match nearest(&name, allowed.iter().copied()) {
            Some(meant) => format!("did you mean \"{meant}\"?"),
            None => format!("expected one of {}", allowed.join(", ")),
        };
        self.mistake(&key.span(), format!("unknown {what} \"{name}\"{section}: {help}"));
    }

    pub(super) fn only(&mut self, table: &DeTable<'_>, section: &str, allowed: &[&str]) {
        for key in table.keys().filter(|key| !allowed.contains(&key.get_ref().as_ref())) {
            self.unknown("key", section, key, allowed);
        }
    }

    pub(super) fn table<'a, 'i>(&mut self, name: &str, value: Value<'a, 'i>) -> Option<&'a DeTable<'i>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            self.expected(name, value, &format!("a table, [{name}]"));
        }
        table
    }

    pub(super) fn tables<'a, 'i>(
        &mut self,
        name: &str,
        value: Value<'a, 'i>,
    ) -> Vec<(Range<usize>, &'a DeTable<'i>)> {
        let Some(array) = value.get_ref().as_array() else {
            self.expected(name, value, &format!("a list of tables, [[{name}]]"));
            return Vec::new();
        };
        let mut tables = Vec::new();
        for item in array {
            match item.get_ref().as_table() {
                Some(table) => tables.push((item.span(), table)),
                None => self.expected(name, item, &format!("a table, [[{name}]]")),
            }
        }
        tables
    }

    /// A nonempty string.
    pub(super) fn string(&mut self, name: &str, value: Value<'_, '_>, expected: &str) -> Option<String> {
        match value.get_ref().as_str() {
            Some(text) if !text.trim().is_empty() => Some(text.to_owned()),
            _ => {
                self.expected(name, value, expected);
                None
            }
        }
    }

    pub(super) fn boolean(&mut self, name: &str, value: Value<'_, '_>) -> Option<bool> {
        let found = value.get_ref().as_bool();
        if found.is_none() {
            self.expected(name, value, "true or false");
        }
        found
    }
}

pub(super) fn get<'a, 'i>(table: &'a DeTable<'i>, key: &str) -> Option<Value<'a, 'i>> {
    table.get(key)
}

/// An integer in any radix.
pub(super) fn integer(value: &DeValue<'_>) -> Option<i64> {
    let number = value.as_integer()?;
    i64::from_str_radix(number.as_str(), number.radix()).ok()
}

/// A finite number, integer or float.
pub(super) fn number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Float(float) => float.as_str().parse().ok().filter(|number: &f64| number.is_finite()),
        other => integer(other).and_then(|number| i32::try_from(number).ok()).map(f64::from),
    }
}

fn show(value: &DeValue<'_>) -> String {
    const SHOWN: usize = 40;
    match value {
        DeValue::String(text) => {
            let line = text::one_line(text);
            match line.char_indices().nth(SHOWN) {
                Some((end, _)) => format!("\"{}…\"", line.get(..end).unwrap_or_default()),
                None => format!("\"{line}\""),
            }
        }
        DeValue::Integer(number) => format!("the number {number}"),
        DeValue::Float(number) => format!("the number {number}"),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}
