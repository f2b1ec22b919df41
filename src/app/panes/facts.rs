use super::Column;
use super::column::{Rows, Words};
use crate::app::context::Context;
use crate::app::line::Tone;
use crate::model::adapter::{InstallationRows, Part};
use crate::model::snapshot::Snapshot;
use crate::model::systems::TableRows;
use crate::model::{Text, Timestamp};
use crate::text;

pub type Fact = (String, Tone);

/// A number with its noun in the singular or plural: `2 roots`.
pub(super) fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

pub fn stale(context: &Context<'_>, taken: Option<Timestamp>, error: &str) -> Fact {
    let age = context
        .age(taken)
        .map_or_else(|| "cannot be read".to_owned(), |age| format!("{} old", text::duration(age)));
    (format!("{age}: {}", text::one_line_prefix(error, 500)), Tone::Past)
}

pub(super) fn stale_tables<T>(context: &Context<'_>, tables: &[TableRows<T>]) -> Vec<Fact> {
    let error =
        |table: &TableRows<T>| Some(stale(context, table.section.taken_at, table.section.error.as_ref()?));
    tables.iter().filter_map(error).collect()
}

/// When one of the tables was read; `None` before the first time.
pub(super) fn taken<T>(tables: &[TableRows<T>]) -> Option<Timestamp> {
    tables.iter().find_map(|table| table.section.taken_at)
}

pub(super) fn more_unread(is_cut: bool) -> Option<Fact> {
    is_cut.then(|| ("more are not read".to_owned(), Tone::Warning))
}

pub(super) fn cut<T>(tables: &[TableRows<T>]) -> Option<Fact> {
    more_unread(tables.iter().any(|table| table.section.is_cut))
}

/// `3 keys`: the rows of all tables.
pub(super) fn rows<T>(tables: &[TableRows<T>], one: &str, many: &str) -> String {
    let number: usize = tables.iter().map(|table| table.section.last_rows().len()).sum();
    format!("{} {}", text::count(number as u64), if number == 1 { one } else { many })
}

/// If the search for tables failed, a table may exist.
pub(super) fn is_unsearched(snapshot: &Snapshot) -> bool {
    snapshot.detection.tables.error.is_some()
}

/// Whether one of these parts of a job system was read, or could not be.
pub(super) fn is_tried(snapshot: &Snapshot, parts: &[Part]) -> bool {
    let is_tried = |rows: &InstallationRows, part: &Part| {
        let (taken_at, error, _) = rows.read_of(*part);
        taken_at.is_some() || error.is_some()
    };
    snapshot.adapters.iter().any(|rows| parts.iter().any(|part| is_tried(rows, part)))
}

const SOURCE: Words = ("SOURCE", "source", "the system it belongs to, and its schema");

/// With several installations, their names distinguish rows.
pub(super) const fn source<R: Rows>(
    get: for<'a> fn(R::Row<'a>, &Context<'a>) -> Option<&'a str>,
) -> Column<R> {
    Column::text(SOURCE, (11, 20), get).rank(3).only_where(|context| context.snapshot.adapters.len() > 1)
}

pub(super) fn name(rows: &InstallationRows) -> String {
    text::one_line_prefix(&rows.installation.label(), 40).into_owned()
}

/// The title of a detail page: `Job of GoodJob`.
pub(super) fn of_source(what: &str, source: Option<&Text>) -> String {
    source.map_or_else(|| what.to_owned(), |source| format!("{what} of {}", text::one_line(source)))
}

/// An installation by its index, for a detail page: `pg_cron cron, version 1.6`.
pub(super) fn with_version(context: &Context<'_>, place: usize) -> String {
    let Some(rows) = context.snapshot.adapters.get(place) else { return String::new() };
    let version = rows.installation.version.as_deref();
    let version = version.map(|version| format!(", {}", text::one_line(version))).unwrap_or_default();
    format!("{}{version}", text::one_line(&rows.installation.label()))
}

/// Parts that could not be read, or not completely, in all installations; the first of each.
pub(super) fn gaps(context: &Context<'_>, part: Part) -> Vec<Fact> {
    let parts = || context.snapshot.adapters.iter().map(|rows| rows.read_of(part));
    let mut facts: Vec<Fact> =
        parts().find_map(|(at, error, _)| Some(stale(context, at, error?))).into_iter().collect();
    facts.extend(more_unread(parts().any(|(.., is_cut)| is_cut)));
    facts
}

pub(super) fn read_at(context: &Context<'_>, part: Part) -> Option<Timestamp> {
    context.snapshot.adapters.iter().filter_map(|rows| rows.read_of(part).0).max()
}
