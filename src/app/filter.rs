//! The filter that is typed after `/` and determines which rows are shown.
//!
//! Terms are separated by spaces, and all of them must match. `web` matches anywhere in a row, `who:web` in one column,
//! `db=app` a whole column, and `web|batch` either text; `wait>30` compares (seconds, or `2m`, `1h`), and `!` before a
//! term negates it. Case is ignored. The full name of a state matches only that state. Text in double quotes is
//! literal, with its spaces, colons and bars.

use super::panes::{SortValue, is_state};

/// An empty filter passes every row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Filter {
    terms: Vec<Term>,
}

#[derive(Debug, Clone, PartialEq)]
struct Term {
    not: bool,
    /// Position of the column; `None` for any column on the screen.
    column: Option<usize>,
    tests: Vec<Test>,
}

#[derive(Debug, Clone, PartialEq)]
enum Test {
    /// Lower case, and whether it is the name of a state.
    Contains(String, bool),
    /// The whole cell, in lower case.
    Is(String),
    Less(f64),
    Greater(f64),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    #[error("\"{0}\" is not a number: write seconds (30) or a duration (2m, 1h)")]
    Number(String),
    /// The unknown column, the existing columns, and the text in quotes.
    #[error("no column {0} here; columns: {1}. To search for the text, put it in quotes: \"{2}\"")]
    Column(String, String, String),
}

impl Filter {
    /// `columns` has the names of all columns of the table, those on the screen first.
    pub fn parse(text: &str, columns: &[&str]) -> Result<Self, FilterError> {
        // A single `!` is an incomplete term.
        let words = words(text).into_iter().filter(|word| word.text != "!" || word.quoted_from.is_some());
        let terms = words.map(|word| term(&word, columns)).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { terms })
    }

    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether a row passes. `shown` is the number of columns on the screen; `value` returns the value of the row in a
    /// column.
    pub fn passes<'a>(&self, shown: usize, value: impl Fn(usize) -> SortValue<'a>) -> bool {
        self.terms.iter().all(|term| {
            let holds = match term.column {
                Some(column) => term.holds(&value(column)),
                None => (0..shown).any(|column| term.holds(&value(column))),
            };
            holds != term.not
        })
    }
}

impl Term {
    fn holds(&self, value: &SortValue<'_>) -> bool {
        self.tests.iter().any(|test| test.holds(value))
    }
}

impl Test {
    fn contains(text: &str) -> Self {
        Self::Contains(text.to_lowercase(), is_state(text))
    }

    fn holds(&self, value: &SortValue<'_>) -> bool {
        match (self, value) {
            (Self::Contains(needle, _), SortValue::Text(text)) => contains(text, needle),
            // The name of a state matches only that state: "idle" is not "idle in transaction".
            (Self::Contains(needle, true) | Self::Is(needle), SortValue::State(state, _)) => {
                is(state, needle)
            }
            (Self::Contains(needle, false), SortValue::State(state, text)) => {
                contains(state, needle) || contains(text, needle)
            }
            (Self::Contains(needle, _), SortValue::Number(number)) => {
                contains(&format!("{number:.0}"), needle)
            }
            (Self::Is(needle), SortValue::Text(text)) => text.to_lowercase() == *needle,
            (Self::Is(needle), SortValue::Number(number)) => format!("{number:.0}") == *needle,
            (Self::Less(limit), SortValue::Number(number)) => number < limit,
            (Self::Greater(limit), SortValue::Number(number)) => number > limit,
            _ => false,
        }
    }
}

/// Whether `state` has this name; a `?` after it marks doubt and is ignored.
fn is(state: &str, name: &str) -> bool {
    state.trim_end_matches('?').eq_ignore_ascii_case(name)
}

/// `needle` must be lower case.
fn contains(text: &str, needle: &str) -> bool {
    if needle.is_ascii() {
        let (text, needle) = (text.as_bytes(), needle.as_bytes());
        return needle.is_empty()
            || text.windows(needle.len()).any(|window| window.eq_ignore_ascii_case(needle));
    }
    text.to_lowercase().contains(needle)
}

/// A word of a filter: the text between spaces outside quotes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Word {
    text: String,
    /// Number of bytes before the first quote; `None` without a quote.
    quoted_from: Option<usize>,
}

fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut word = Word::default();
    let mut quoted = false;
    for character in text.chars() {
        match character {
            '"' => {
                quoted = !quoted;
                word.quoted_from = word.quoted_from.or(Some(word.text.len()));
            }
            character if character.is_whitespace() && !quoted => {
                if !word.text.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            character => word.text.push(character),
        }
    }
    if !word.text.is_empty() {
        words.push(word);
    }
    words
}

fn term(word: &Word, columns: &[&str]) -> Result<Term, FilterError> {
    let (not, rest) = match word.text.strip_prefix('!') {
        Some(rest) if !rest.is_empty() && word.quoted_from != Some(0) => (true, rest),
        _ => (false, word.text.as_str()),
    };
    let begins = word.text.len() - rest.len();
    let is_quoted = |at: usize| word.quoted_from.is_some_and(|from| from <= begins + at);
    let separator = rest.find([':', '=', '>', '<']).filter(|at| *at > 0 && !is_quoted(*at));
    let anywhere = || Term { not, column: None, tests: alternatives(rest, is_quoted(0), Test::contains) };
    let Some((at, name)) = separator.and_then(|at| Some((at, rest.get(..at)?))) else {
        return Ok(anywhere());
    };
    let (separator, operand) =
        (rest.get(at..=at).unwrap_or_default(), rest.get(at + 1..).unwrap_or_default());
    let Some(column) = columns.iter().position(|column| column.eq_ignore_ascii_case(name)) else {
        // A word before the sign names a column that does not exist; anything else is text, such as 10:30 or a->b.
        if !name.chars().all(|character| character.is_alphabetic() || character == '_') {
            return Ok(anywhere());
        }
        return Err(FilterError::Column(name.to_owned(), columns.join(" "), rest.to_owned()));
    };
    let verbatim = is_quoted(at + 1);
    let tests = match separator {
        ":" => alternatives(operand, verbatim, Test::contains),
        "=" => alternatives(operand, verbatim, |text| Test::Is(text.to_lowercase())),
        ">" => vec![Test::Greater(number(operand)?)],
        _ => vec![Test::Less(number(operand)?)],
    };
    Ok(Term { not, column: Some(column), tests })
}

/// `web|batch`: one test for each alternative; quoted text is one test.
fn alternatives(text: &str, verbatim: bool, make: impl Fn(&str) -> Test) -> Vec<Test> {
    let tests: Vec<Test> = text.split('|').filter(|text| !text.is_empty()).map(&make).collect();
    if verbatim || tests.is_empty() { vec![make(text)] } else { tests }
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

    const ALL: &[&str] = &["pid", "who", "wait", "state", "query", "held"];

    const SHOWN: usize = ALL.len() - 1;

    fn passes(filter: &str) -> bool {
        Filter::parse(filter, ALL).unwrap().passes(SHOWN, |at| match ALL[at] {
            "pid" => SortValue::Number(4312.0),
            "who" => SortValue::Text(Cow::Borrowed("app@Web-3")),
            "wait" => SortValue::Number(95.0),
            "held" => SortValue::Number(7.0),
            "query" => SortValue::Text(Cow::Borrowed("SELECT 'Ärger at 10:30' FROM accounts")),
            "state" => SortValue::State("idle in transaction".into(), "idle in xact 3m12s".into()),
            _ => SortValue::Missing,
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
            ("!", true),
            ("who>5", false),
            ("held>5", true),
            ("held:7", true),
            ("web|nobody", true),
            ("nobody|web", true),
            ("nobody|nothing", false),
            ("!nobody|web", false),
            ("who:nobody|web", true),
            ("who:nobody|nothing", false),
            ("who=app@web-3", true),
            ("who=WEB", false),
            ("!who=web", true),
            ("pid=4312", true),
            ("pid=431", false),
            ("state=idle", false),
            ("state=\"idle in transaction\"", true),
            ("|", false),
            ("\"a|b\"", false),
            ("\"who:web\"", false),
            ("\"at 10:30\"", true),
            ("query:\"at 10:30\"", true),
            ("!\"at 10:30\"", false),
            ("a->b", false),
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
    fn unparsable_filters_are_reported() {
        let error = |filter: &str| Filter::parse(filter, ALL).unwrap_err().to_string();
        for filter in ["age>30", "age:30", "age=30", "!age:x"] {
            let text = filter.trim_start_matches('!');
            assert_eq!(
                error(filter),
                format!(
                    "no column age here; columns: pid who wait state query held. \
                     To search for the text, put it in quotes: \"{text}\""
                )
            );
            assert!(!passes(&format!("\"{text}\"")), "in quotes it is text");
        }
        assert!(Filter::parse("a->>b", ALL).is_ok(), "text of a query");
        for filter in ["wait>", "wait>soon", "wait<1x", "wait>nan", "wait>m"] {
            assert!(Filter::parse(filter, ALL).is_err(), "{filter:?}");
        }
    }
}
