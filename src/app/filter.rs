//! What is typed behind `/`: which rows are shown.
//!
//! Terms are separated by spaces and all must hold. `web` is found anywhere in a row, `who:web` in one column,
//! `wait>30` compares (seconds, or `2m`, `1h`), and `!` in front turns a term round. Letter case does not matter. Text in
//! double quotes keeps its spaces. The whole name of a state means that state and no other. A colon behind a word that is no column of this table is just text.

use super::table::{Value, is_state};

/// A filter; the empty one lets everything through.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Filter {
    terms: Vec<Term>,
}

#[derive(Debug, Clone, PartialEq)]
struct Term {
    not: bool,
    column: Option<&'static str>,
    test: Test,
}

#[derive(Debug, Clone, PartialEq)]
enum Test {
    Contains(String),
    Less(f64),
    Greater(f64),
}

/// A comparison that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// What is compared with.
    #[error("\"{0}\" is no number; write seconds (30) or a duration (2m, 1h)")]
    Number(String),
    /// What is compared.
    #[error("no column {0} here; there are {1}")]
    Column(String, String),
}

impl Filter {
    /// Reads a filter over a table with these columns.
    ///
    /// # Errors
    /// When a comparison is not with a number.
    pub fn parse(text: &str, columns: &[&'static str]) -> Result<Self, FilterError> {
        let terms =
            words(text).into_iter().map(|word| term(&word, columns)).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { terms })
    }

    /// Whether it lets everything through.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether a row passes. `value` gives what the row says in a column.
    pub fn passes<'a>(&self, columns: &[&'static str], value: impl Fn(&'static str) -> Value<'a>) -> bool {
        self.terms.iter().all(|term| {
            let holds = match term.column {
                Some(column) => term.test.holds(&value(column)),
                None => columns.iter().any(|column| term.test.holds(&value(column))),
            };
            holds != term.not
        })
    }
}

impl Test {
    fn holds(&self, value: &Value<'_>) -> bool {
        match (self, value) {
            (Self::Contains(needle), Value::Text(text)) => contains(text, needle),
            // The name of a state means that state: "idle" is another one than "idle in transaction".
            (Self::Contains(needle), Value::State(state, text)) => {
                // A doubt about it does not make it another.
                state.trim_end_matches('?').eq_ignore_ascii_case(needle)
                    || (!is_state(needle) && (contains(state, needle) || contains(text, needle)))
            }
            (Self::Contains(needle), Value::Number(number)) => contains(&format!("{number:.0}"), needle),
            (Self::Less(limit), Value::Number(number)) => number < limit,
            (Self::Greater(limit), Value::Number(number)) => number > limit,
            _ => false,
        }
    }
}

/// Whether `text` contains `needle`, which is lower case already.
fn contains(text: &str, needle: &str) -> bool {
    if needle.is_ascii() {
        let (text, needle) = (text.as_bytes(), needle.as_bytes());
        return needle.is_empty()
            || text.windows(needle.len()).any(|window| window.eq_ignore_ascii_case(needle));
    }
    text.to_lowercase().contains(needle)
}

fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quoted = false;
    for character in text.chars() {
        match character {
            '"' => quoted = !quoted,
            character if character.is_whitespace() && !quoted => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            character => word.push(character),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

fn term(word: &str, columns: &[&'static str]) -> Result<Term, FilterError> {
    let (not, rest) = match word.strip_prefix('!') {
        Some(rest) if !rest.is_empty() => (true, rest),
        _ => (false, word),
    };
    let column_of = |name: &str| columns.iter().find(|column| column.eq_ignore_ascii_case(name)).copied();
    for separator in [':', '>', '<'] {
        let Some((name, operand)) = rest.split_once(separator) else { continue };
        let Some(column) = column_of(name) else {
            // Text may have a colon in it; a word that is compared with a number is a column that is not there.
            if separator != ':'
                && name.chars().all(char::is_alphabetic)
                && !name.is_empty()
                && number(operand).is_ok()
            {
                return Err(FilterError::Column(name.to_owned(), columns.join(" ")));
            }
            continue;
        };
        let test = match separator {
            ':' => Test::Contains(operand.to_lowercase()),
            '>' => Test::Greater(number(operand)?),
            _ => Test::Less(number(operand)?),
        };
        return Ok(Term { not, column: Some(column), test });
    }
    Ok(Term { not, column: None, test: Test::Contains(rest.to_lowercase()) })
}

fn number(text: &str) -> Result<f64, FilterError> {
    let error = || FilterError::Number(text.to_owned());
    let (digits, unit) = match text.char_indices().last() {
        Some((at, 's')) => (text.get(..at), 1.0),
        Some((at, 'm')) => (text.get(..at), 60.0),
        Some((at, 'h')) => (text.get(..at), 3600.0),
        Some((at, 'd')) => (text.get(..at), 86400.0),
        _ => (Some(text), 1.0),
    };
    let number: f64 = digits.unwrap_or_default().parse().map_err(|_| error())?;
    if number.is_finite() { Ok(number * unit) } else { Err(error()) }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    const COLUMNS: &[&str] = &["pid", "who", "wait", "state", "query"];

    fn passes(filter: &str) -> bool {
        Filter::parse(filter, COLUMNS).unwrap().passes(COLUMNS, |column| match column {
            "pid" => Value::Number(4312.0),
            "who" => Value::Text(Cow::Borrowed("app@Web-3")),
            "wait" => Value::Number(95.0),
            "query" => Value::Text(Cow::Borrowed("SELECT 'Ärger at 10:30' FROM accounts")),
            "state" => Value::State("idle in transaction".into(), "idle in xact 3m12s".into()),
            _ => Value::Missing,
        })
    }

    #[test]
    fn a_row_passes_when_every_term_holds() {
        for (filter, expected) in [
            ("", true),
            ("web", true),
            ("who:web", true),
            ("WHO:WEB", true),
            ("query:web", false),
            ("!web", false),
            ("!who:batch", true),
            ("web accounts", true),
            ("web nothing", false),
            ("4312", true),
            ("pid:43", true),
            ("wait>90", true),
            ("wait>1m", true),
            ("wait>2m", false),
            ("wait<2m", true),
            ("!wait>90", false),
            ("10:30", true),
            ("\"at 10\"", true),
            ("\"at 11\"", false),
            ("ärger", true),
            ("!", false),
            ("who>5", false),
            ("idle", false),
            ("!idle", true),
            ("state:idle", false),
            ("!state:idle", true),
            ("state:active", false),
            ("state:\"idle in transaction\"", true),
            ("state:\"idle in xact\"", false),
            ("state:transaction", true),
            ("state:3m12s", true),
            ("state:idl", true),
        ] {
            assert_eq!(passes(filter), expected, "{filter:?}");
        }
    }

    #[test]
    fn a_comparison_needs_a_number() {
        assert!(
            Filter::parse("age>30", COLUMNS)
                .unwrap_err()
                .to_string()
                .starts_with("no column age here; there are pid who")
        );
        assert!(Filter::parse("a->>b", COLUMNS).is_ok(), "text of a query");
        for filter in ["wait>", "wait>soon", "wait<1x", "wait>nan", "wait>m"] {
            assert!(Filter::parse(filter, COLUMNS).is_err(), "{filter:?}");
        }
    }
}
