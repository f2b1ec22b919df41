//! What stands in a cell, and what a row is sorted and filtered by.

use std::borrow::Cow;

use crate::app::line::Tone;
use crate::model::QueryText;
use crate::model::output::{Channel, shown};

/// What stands in one cell: one harmless line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cell {
    /// The text, fit for a screen.
    pub text: String,
    /// What it means, which the theme has a colour for.
    pub tone: Tone,
    /// The text from here on is dim, in columns of the screen; 0: none of it.
    pub dim_from: usize,
}

impl Cell {
    /// Text that means nothing special.
    pub fn plain(text: impl Into<String>) -> Self {
        Self::toned(text, Tone::Plain)
    }

    /// Text that means what its tone says.
    pub fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: text.into(), tone, dim_from: 0 }
    }

    /// Unknown, or not there.
    pub fn none() -> Self {
        Self::toned("-", Tone::Dim)
    }

    /// A plain end of the text is dim instead.
    pub fn with_dim_end(mut self, end: &str) -> Self {
        if self.tone == Tone::Plain && self.text.ends_with(end) {
            self.dim_from = crate::text::width(&self.text).saturating_sub(crate::text::width(end));
        }
        self
    }

    /// Text of the server as one harmless line.
    pub fn server(text: Option<&str>) -> Self {
        match text {
            // No screen is wider; a query may have a megabyte.
            Some(text) => Self::plain(crate::text::one_line_prefix(text, 500)),
            None => Self::none(),
        }
    }

    /// What a screen shows of a statement, as one harmless line.
    pub fn statement(query: Option<&QueryText>) -> Self {
        Self::server(query.map(|query| shown(Channel::Screen, query)).as_deref())
    }

    /// The same in a column of statements: without what would hide its first words. Nothing if there is none.
    pub fn query(query: Option<&QueryText>, room: u16) -> Self {
        let clean = |query| super::query::clean(&shown(Channel::Screen, query), room);
        query.map_or_else(Self::default, |query| Self::toned(clean(query), Tone::Dim))
    }

    /// An age in whole seconds; a dash where there are none.
    pub fn age(seconds: Option<f64>, tone: Tone) -> Self {
        seconds.map_or_else(Self::none, |seconds| Self::toned(crate::text::age(seconds), tone))
    }

    /// A measured or configured duration in words, of seconds; a dash where there are none.
    pub fn duration(seconds: Option<f64>, tone: Tone) -> Self {
        seconds.map_or_else(Self::none, |seconds| Self::toned(crate::text::duration(seconds), tone))
    }

    /// The same text with another meaning; what is not there stays as it is.
    pub fn with_tone(self, tone: Tone) -> Self {
        if self == Self::none() { self } else { Self { tone, ..self } }
    }

    /// What it says, to sort and filter by.
    pub fn into_value<'a>(self) -> Value<'a> {
        if self == Self::none() || self.text.is_empty() {
            Value::Missing
        } else {
            Value::Text(Cow::Owned(self.text))
        }
    }
}

/// What a row is sorted and filtered by.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// NULL or unknown: sorted last, whichever way round.
    Missing,
    /// A count, or an age in seconds.
    Number(f64),
    /// Text, which is sorted letter by letter.
    Text(Cow<'a, str>),
    /// The name of a state, and all that its cell says.
    State(Cow<'a, str>, Cow<'a, str>),
}

impl<'a> Value<'a> {
    /// A number; missing where there is none.
    pub fn number(value: Option<f64>) -> Self {
        value.map_or(Self::Missing, Self::Number)
    }

    /// A whole number; missing where there is none.
    #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53, and nothing is sorted wrongly beyond")]
    pub fn whole(value: Option<i64>) -> Self {
        value.map_or(Self::Missing, |value| Self::Number(value as f64))
    }

    /// Text of the server; missing for NULL.
    pub fn text(text: Option<&'a str>) -> Self {
        text.map_or(Self::Missing, |text| Self::Text(Cow::Borrowed(text)))
    }

    /// What a screen shows of a statement; missing for NULL.
    pub fn statement(query: Option<&'a QueryText>) -> Self {
        query.map_or(Self::Missing, |query| Self::Text(shown(Channel::Screen, query)))
    }

    /// A state whose cell says nothing but its name.
    pub fn state(name: impl Into<Cow<'a, str>>) -> Self {
        let name = name.into();
        Self::State(name.clone(), name)
    }
}

/// `█████▌░░░  61%`: a share as a bar with its percentage, in so much room.
pub(super) fn bar(share: f64, room: u16) -> String {
    let columns = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    let width = usize::from(room.min(22)).saturating_sub(6);
    let filled = (0..width).filter(|cell| columns(*cell) + 0.5 < share * columns(width)).count();
    let percent = if share < 10.0 { format!("{:>4.0}%", (share * 100.0).floor()) } else { " >9x".to_owned() };
    format!("{}{}{percent}", "█".repeat(filled), "░".repeat(width.saturating_sub(filled)))
}

/// The same of a part of a whole, to the nearest hundredth; what there is of it is never said to be nothing.
pub(super) fn part_bar(share: f64, room: u16) -> String {
    // A hundredth is not a number of a double: what is just below it would be cut.
    let bar = bar((share * 100.0).round() / 100.0 + 1e-9, room);
    if share > 0.0 && share < 0.005 { bar.replace("   0%", "  <1%") } else { bar }
}

/// A column narrower than this shows names without their schemas: all of them, so that rows can be compared.
const ROOM_FOR_SCHEMAS: u16 = 36;

/// Names without their schemas where there is no room for them. The detail view has them whole.
pub(super) fn fit_names(text: String, room: u16) -> String {
    if room >= ROOM_FOR_SCHEMAS || text.contains('"') {
        return text;
    }
    let short = |word: &str| match word.rsplit_once('.') {
        Some((schema, name)) if !schema.is_empty() && !word.starts_with('(') => name.to_owned(),
        _ => word.to_owned(),
    };
    text.split(' ').map(short).collect::<Vec<_>>().join(" ")
}

/// `accounts ctid (0,1)` for `row of accounts (0,1)`: the object comes first.
pub(super) fn object_first(what: String) -> String {
    match what.strip_prefix("row of ") {
        Some(row) if !row.contains("ctid") => row.replacen(" (", " ctid (", 1),
        Some(row) => row.replacen(", ctid", " ctid", 1),
        None => what,
    }
}

/// The name of the table a row is in.
pub(super) fn table_name(name: Option<&str>, room: u16) -> Cell {
    Cell::toned(fit_names(Cell::server(name).text, room), Tone::Dim)
}

/// The name of a worker: where it has no room its beginning and its end stay, which tells `worker-0012` from `worker-0013`.
pub(super) fn worker(name: Option<&str>, room: u16) -> Cell {
    let cell = Cell::server(name);
    let fitted = crate::text::fit_middle(&cell.text, usize::from(room)).into_owned();
    Cell { text: fitted, ..cell }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_whole_is_rounded_and_never_nothing() {
        let said = |share: f64| part_bar(share, 14).trim_start_matches(['█', '░']).trim().to_owned();
        let all = [0.0, 0.004, 0.0098, 0.254, 0.255, 0.29, 0.9951, 1.0].map(said);
        assert_eq!(all, ["0%", "<1%", "1%", "25%", "26%", "29%", "100%", "100%"]);
        // What is not full is not said to be: 99.51 % of a limit.
        assert!(bar(0.9951, 14).ends_with(" 99%"));
    }
}
