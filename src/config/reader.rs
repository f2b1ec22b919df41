//! Reads TOML tables and collects all mistakes with their positions.

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::{ConfigError, Mistake, Position};
use crate::text::{one_line, parse_duration};
use pg_connect::conninfo::nearest;

pub(super) type TomlValue<'a, 'i> = &'a Spanned<DeValue<'i>>;

pub(super) struct ConfigReader<'s> {
    source: &'s str,
    mistakes: Vec<Mistake>,
}

/// Parses a file and reads its tables. The error has all mistakes in it.
pub(super) fn parse<T>(
    source: &str,
    file: &Path,
    read: impl FnOnce(&mut ConfigReader<'_>, &DeTable<'_>) -> T,
) -> Result<T, ConfigError> {
    let (table, errors) = DeTable::parse_recoverable(source);
    let mut reader = ConfigReader { source, mistakes: Vec::new() };
    let found = errors.is_empty().then(|| read(&mut reader, table.get_ref()));
    reader.mistakes.sort();
    for error in errors {
        let message = format!("not valid TOML: {}", error.message().replace('\n', ", "));
        reader.mistake(&error.span().unwrap_or(0..0), message);
    }
    match found {
        Some(found) if reader.mistakes.is_empty() => Ok(found),
        _ => Err(ConfigError::Mistakes { file: file.to_owned(), mistakes: reader.mistakes }),
    }
}

impl ConfigReader<'_> {
    pub(super) fn position(&self, span: &Range<usize>) -> Position {
        Position::of(self.source, span.start)
    }

    pub(super) fn mistake(&mut self, span: &Range<usize>, message: impl Into<String>) {
        let mistake = Mistake { at: self.position(span), message: message.into() };
        self.mistakes.push(mistake);
    }

    pub(super) fn expected(&mut self, name: &str, value: TomlValue<'_, '_>, expected: &str) {
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
        let name = one_line(key.get_ref()).into_owned();
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

    pub(super) fn table<'a, 'i>(&mut self, name: &str, value: TomlValue<'a, 'i>) -> Option<&'a DeTable<'i>> {
        self.read(name, value, &format!("a table, [{name}]"), DeValue::as_table)
    }

    /// A table with no other keys than these.
    pub(super) fn section<'a, 'i>(
        &mut self,
        name: &str,
        value: TomlValue<'a, 'i>,
        keys: &[&str],
    ) -> Option<&'a DeTable<'i>> {
        let table = self.table(name, value)?;
        self.only(table, &format!(" in [{name}]"), keys);
        Some(table)
    }

    pub(super) fn tables<'a, 'i>(
        &mut self,
        name: &str,
        value: TomlValue<'a, 'i>,
    ) -> Vec<(Range<usize>, &'a DeTable<'i>)> {
        let array = self.read(name, value, &format!("a list of tables, [[{name}]]"), DeValue::as_array);
        let table = |item: &'a Spanned<DeValue<'i>>| {
            let table = self.read(name, item, &format!("a table, [[{name}]]"), DeValue::as_table)?;
            Some((item.span(), table))
        };
        array.into_iter().flatten().filter_map(table).collect()
    }

    /// The result of `read`; `None` is a mistake.
    pub(super) fn read<'a, 'i, T>(
        &mut self,
        name: &str,
        value: TomlValue<'a, 'i>,
        expected: &str,
        read: impl FnOnce(&'a DeValue<'i>) -> Option<T>,
    ) -> Option<T> {
        let found = read(value.get_ref());
        if found.is_none() {
            self.expected(name, value, expected);
        }
        found
    }

    /// The results of `read` for the items of a list; each `None` is a mistake.
    pub(super) fn list<'a, 'i, T>(
        &mut self,
        name: &str,
        value: TomlValue<'a, 'i>,
        expected: &str,
        read: impl Fn(&'a DeValue<'i>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let items = self.read(name, value, expected, DeValue::as_array)?;
        Some(items.iter().filter_map(|item| self.read(name, item, expected, &read)).collect())
    }

    /// The result of `read` for a key of a table; `None` if the key is missing, or its value a mistake.
    pub(super) fn key<'a, 'i, T>(
        &mut self,
        table: &'a DeTable<'i>,
        key: &str,
        expected: &str,
        read: impl FnOnce(&'a DeValue<'i>) -> Option<T>,
    ) -> Option<T> {
        self.read(key, get(table, key)?, expected, read)
    }

    /// A nonempty string.
    pub(super) fn string(&mut self, name: &str, value: TomlValue<'_, '_>, expected: &str) -> Option<String> {
        self.read(name, value, expected, text).map(str::to_owned)
    }

    /// The value that `parse` gives for a nonempty string. `expected` has the error text for a value of another type, and for a string
    /// that `parse` rejects.
    pub(super) fn parsed<T>(
        &mut self,
        name: &str,
        value: TomlValue<'_, '_>,
        expected: (&str, &str),
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let found = self.read(name, value, expected.0, text)?;
        self.read(name, value, expected.1, |_| parse(found))
    }

    pub(super) fn boolean(&mut self, name: &str, value: TomlValue<'_, '_>) -> Option<bool> {
        self.read(name, value, "true or false", DeValue::as_bool)
    }

    /// The flag `key` of a table; false if it is missing.
    pub(super) fn flag(&mut self, table: &DeTable<'_>, key: &str) -> bool {
        get(table, key).and_then(|value| self.boolean(key, value)).unwrap_or_default()
    }
}

/// A nonempty string.
pub(super) fn text<'a>(value: &'a DeValue<'_>) -> Option<&'a str> {
    value.as_str().filter(|text| !text.trim().is_empty())
}

pub(super) fn duration(value: &DeValue<'_>) -> Option<Duration> {
    value.as_str().and_then(parse_duration)
}

pub(super) fn get<'a, 'i>(table: &'a DeTable<'i>, key: &str) -> Option<TomlValue<'a, 'i>> {
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
            let line = one_line(text);
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
