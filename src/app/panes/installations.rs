use super::Column;
use super::column::Rows;
use super::facts::{Fact, stale};
use super::words::Words;
use crate::app::context::Context;
use crate::app::line::Tone;
use crate::model::Timestamp;
use crate::model::adapter::{InstallationRows, PartRows};
use crate::text;

const SOURCE: Words = ("SOURCE", "source", "the system it belongs to, and its schema");

pub(super) const fn source<R: Rows>(
    get: for<'a> fn(R::Row<'a>, &Context<'a>) -> Option<&'a str>,
) -> Column<R> {
    Column::text(SOURCE, (11, 20), get).rank(3).only_where(has_several)
}

/// With several installations, their names distinguish rows.
pub(super) fn has_several(context: &Context<'_>) -> bool {
    context.snapshot.adapters.len() > 1
}

pub(super) fn name(rows: &InstallationRows) -> String {
    text::one_line_prefix(&rows.installation.label(), 40).into_owned()
}

/// An installation by its index, for a detail page: `pg_cron cron, version 1.6`.
pub(super) fn with_version(context: &Context<'_>, place: usize) -> String {
    let Some(rows) = context.snapshot.adapters.get(place) else { return String::new() };
    let version = rows.installation.version.as_deref();
    let version = version.map(|version| format!(", {}", text::one_line(version))).unwrap_or_default();
    format!("{}{version}", text::one_line(&rows.installation.label()))
}

/// Parts that could not be read, or not completely, in all installations; the first of each.
pub(super) fn gaps<T: 'static>(
    context: &Context<'_>,
    part: impl Fn(&InstallationRows) -> &PartRows<T>,
) -> Vec<Fact> {
    let installations = &context.snapshot.adapters;
    let parts = || installations.iter().map(&part);
    let error =
        |read: &PartRows<T>| Some(stale(context, read.section.taken_at, read.section.error.as_deref()?));
    let mut facts: Vec<Fact> = parts().find_map(error).into_iter().collect();
    if parts().any(|read| read.is_cut) {
        facts.push(("more are not read".to_owned(), Tone::Warning));
    }
    facts
}

pub(super) fn read_at<T>(
    context: &Context<'_>,
    part: impl Fn(&InstallationRows) -> &PartRows<T>,
) -> Option<Timestamp> {
    context.snapshot.adapters.iter().filter_map(|rows| part(rows).section.taken_at).max()
}
