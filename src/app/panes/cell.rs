use std::borrow::Cow;

use crate::app::context::Context;
use crate::app::line::Tone;
use crate::model::QueryText;
use crate::model::backend::Backend;
use crate::model::disclosure::{Channel, shown};
use crate::model::job_state::JobState;
use crate::model::lock::Lock;
use crate::model::wait_graph::Party;
use crate::text::one_line_prefix;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cell {
    pub text: String,
    pub tone: Tone,
    /// The text is dim from this screen column on; 0 for none.
    pub dim_from: usize,
}

impl Cell {
    pub fn plain(text: impl Into<String>) -> Self {
        Self::toned(text, Tone::Plain)
    }

    pub fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: text.into(), tone, dim_from: 0 }
    }

    pub fn none() -> Self {
        Self::toned("-", Tone::Dim)
    }

    /// Shows the end of the text dim, if the cell is plain.
    pub fn with_dim_end(mut self, end: &str) -> Self {
        if self.tone == Tone::Plain && self.text.ends_with(end) {
            self.dim_from = crate::text::width(&self.text).saturating_sub(crate::text::width(end));
        }
        self
    }

    /// Text of the server as one line that is safe for the terminal.
    pub fn server(text: Option<&str>) -> Self {
        match text {
            // No screen is wider; a query may have a megabyte.
            Some(text) => Self::plain(crate::text::one_line_prefix(text, 500)),
            None => Self::none(),
        }
    }

    /// A statement as the screen may show it, in one line that is safe for the terminal.
    pub fn statement(query: Option<&QueryText>) -> Self {
        Self::server(query.map(|query| shown(Channel::Screen, query)).as_deref())
    }

    /// The same for a column of statements: without text that would hide the first words. Empty if there is no statement.
    pub fn query(query: Option<&QueryText>, room: u16) -> Self {
        let clean = |query| clean(&shown(Channel::Screen, query), room);
        query.map_or_else(Self::default, |query| Self::toned(clean(query), Tone::Dim))
    }

    /// An age in whole seconds; a dash for `None`.
    pub fn age(seconds: Option<f64>, tone: Tone) -> Self {
        seconds.map_or_else(Self::none, |seconds| Self::toned(crate::text::age(seconds), tone))
    }

    /// A measured or configured duration, in seconds; a dash for `None`.
    pub fn duration(seconds: Option<f64>, tone: Tone) -> Self {
        seconds.map_or_else(Self::none, |seconds| Self::toned(crate::text::duration(seconds), tone))
    }

    /// A cell without a value stays as it is.
    pub fn with_tone(self, tone: Tone) -> Self {
        if self == Self::none() { self } else { Self { tone, ..self } }
    }

    pub fn into_value<'a>(self) -> SortValue<'a> {
        if self == Self::none() || self.text.is_empty() {
            SortValue::Missing
        } else {
            SortValue::Text(Cow::Owned(self.text))
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum SortValue<'a> {
    /// NULL or unknown: sorted last in both directions.
    Missing,
    /// A count, or an age in seconds.
    Number(f64),
    Text(Cow<'a, str>),
    /// The name of a state, and the whole text of its cell.
    State(Cow<'a, str>, Cow<'a, str>),
}

impl<'a> SortValue<'a> {
    pub fn number(value: Option<f64>) -> Self {
        value.map_or(Self::Missing, Self::Number)
    }

    #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53, and nothing is sorted wrongly beyond")]
    pub fn whole(value: Option<i64>) -> Self {
        value.map_or(Self::Missing, |value| Self::Number(value as f64))
    }

    pub fn text(text: Option<&'a str>) -> Self {
        text.map_or(Self::Missing, |text| Self::Text(Cow::Borrowed(text)))
    }

    pub fn statement(query: Option<&'a QueryText>) -> Self {
        query.map_or(Self::Missing, |query| Self::Text(shown(Channel::Screen, query)))
    }

    pub fn state(name: impl Into<Cow<'a, str>>) -> Self {
        let name = name.into();
        Self::State(name.clone(), name)
    }
}

pub(super) fn job_tone(state: JobState) -> Tone {
    use JobState as S;
    match state {
        S::Orphan | S::Lost | S::GivenUp => Tone::Critical,
        S::Running | S::MaybeRunning | S::Uncommitted | S::MaybeUncommitted => Tone::Good,
        S::Blocked | S::Due | S::Retry | S::Pending => Tone::Plain,
        S::Scheduled | S::Resting | S::Idle | S::Disabled | S::Done => Tone::Dim,
        _ => Tone::Warning,
    }
}

/// `█████▌░░░  61%`: a share as a bar with its percentage, in a given width.
pub(super) fn bar(share: f64, room: u16) -> String {
    let columns = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    let width = usize::from(room.min(22)).saturating_sub(6);
    let filled = (0..width).filter(|cell| columns(*cell) + 0.5 < share * columns(width)).count();
    let percent = if share < 10.0 { format!("{:>4.0}%", (share * 100.0).floor()) } else { " >9x".to_owned() };
    format!("{}{}{percent}", "█".repeat(filled), "░".repeat(width.saturating_sub(filled)))
}

/// The bar of the share of a limit that is used up.
pub(super) fn used_up(share: f64, room: u16) -> Cell {
    Cell::toned(bar(share, room), if share >= 1.0 { Tone::Warning } else { Tone::Plain })
}

/// The same for a part of a whole, rounded to the nearest percent; a part above 0 is never shown as 0%.
pub(super) fn part_bar(share: f64, room: u16) -> String {
    // A hundredth has no exact value as a double: a value just below it would be truncated.
    let bar = bar((share * 100.0).round() / 100.0 + 1e-9, room);
    if share > 0.0 && share < 0.005 { bar.replace("   0%", "  <1%") } else { bar }
}

/// A narrower column shows all names without their schemas, so that rows can be compared.
const ROOM_FOR_SCHEMAS: u16 = 36;

/// Removes the schemas from names if there is no room for them. The detail view has the full names.
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

pub(super) fn table_name(name: Option<&str>, room: u16) -> Cell {
    Cell::toned(fit_names(Cell::server(name).text, room), Tone::Dim)
}

/// `2/3`: an attempt, and how many are permitted.
pub(super) fn attempts(attempt: Option<i64>, most: Option<i64>) -> Cell {
    match (attempt, most) {
        (None, _) => Cell::none(),
        (Some(attempt), None) => Cell::plain(attempt.to_string()),
        (Some(attempt), Some(most)) => Cell::plain(format!("{attempt}/{most}")),
    }
}

/// The name of a worker, shortened in the middle if necessary: its end distinguishes `worker-0012` from `worker-0013`.
pub(super) fn worker(name: Option<&str>, room: u16) -> Cell {
    let cell = Cell::server(name);
    let fitted = crate::text::fit_middle(&cell.text, usize::from(room)).into_owned();
    Cell { text: fitted, ..cell }
}

/// The session or the prepared transaction that holds it.
pub(super) fn party(lock: &Lock) -> Party {
    lock.pid.map_or(Party::Prepared(lock.virtualtransaction), Party::Backend)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Certainty {
    /// The start is known: from the server, or from the execution that holds the lock.
    Exactly,
    /// It may be longer, but not shorter.
    AtLeast,
    /// Seen in every snapshot for that long; it may have been released and taken again between snapshots.
    Seen,
}

pub(super) fn lock_age(context: &Context<'_>, lock: &Lock) -> Option<(f64, Certainty)> {
    let key = (lock.pid?, lock.tag);
    if let Some(began) = context.view.runs_since.get(&key) {
        return context.age(Some(*began)).map(|age| (age, Certainty::Exactly));
    }
    let since = context.view.held_since.get(&key)?;
    if since.proved <= since.seen {
        return context.age(Some(since.proved)).map(|age| (age, Certainty::AtLeast));
    }
    context.age(Some(since.seen)).map(|age| (age, Certainty::Seen))
}

/// The duration with its prefix: `7s`, `≥41s`, `seen 12s`.
pub(super) fn age_words((seconds, known): (f64, Certainty)) -> String {
    let age = crate::text::age(seconds);
    match known {
        Certainty::Exactly => age,
        Certainty::AtLeast if seconds < 1.0 => "≥0s".to_owned(),
        Certainty::AtLeast => format!("≥{age}"),
        Certainty::Seen => format!("seen {age}"),
    }
}

/// Number of characters read of a statement: no screen is wider.
const LONGEST: usize = 500;

/// A narrower column omits the select list: the table is more informative.
const NARROW: u16 = 24;

/// A statement in a column: without leading comments and line breaks, so that the first words are visible.
fn clean(query: &str, room: u16) -> String {
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

/// The whole statement of a session in one line; `None` if it has none.
pub fn query_of(backend: &Backend) -> Option<String> {
    let query = backend.query.as_ref().filter(|query| !query.is_blank())?;
    Some(clean(&shown(Channel::Screen, query), u16::MAX))
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
    fn a_part_of_a_whole_is_rounded_and_never_nothing() {
        let said = |share: f64| part_bar(share, 14).trim_start_matches(['█', '░']).trim().to_owned();
        let all = [0.0, 0.004, 0.0098, 0.254, 0.255, 0.29, 0.9951, 1.0].map(said);
        assert_eq!(all, ["0%", "<1%", "1%", "25%", "26%", "29%", "100%", "100%"]);
        // A limit that is not reached is not shown as reached: 99.51 % of it.
        assert!(bar(0.9951, 14).ends_with(" 99%"));
    }

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
