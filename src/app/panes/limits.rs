//! The rate limits.

use std::sync::Arc;

use super::cell::used_up;
use super::column::pane_rows;
use super::definition::{Fact, PaneDefinition, ReadState, cut, rows, stale_tables, taken};
use super::{Cell, Row, RowId, Rows, SortValue};
use crate::app::context::Context;
use crate::app::detail::{ago, end_label, field, fields, in_or_ago, of, state};
use crate::app::line::{Line, Tone};
use crate::model::rate_limit::{self, LimitRow, LimitState};
use crate::order::SortExt;
use crate::text;

pane_rows! {
    Limits<'a> = LimitRow<'a>,
    |context, row| {
        let (table, at) = row.within()?;
        rate_limit::row(context.snapshot, table, at)
    },
    |row| RowId::Limit(row.id)
}

static COLUMNS: &[Column] = &[
    Column::state("full, near its limit (80 %), open; over: the window has ended", 7, |row, _| {
        (row.state.as_str(), tone(row.state))
    }),
    Column::text(("KEY", "key", "the key of the limit"), (14, 40), |row, _| Some(&row.limit.key)),
    Column::sorted(
        ("COUNT", "count", "requests in this window"),
        (6, 9),
        |row, _, _| grouped(row.limit.count),
        |row, _| SortValue::whole(row.limit.count),
    )
    .right(),
    Column::sorted(
        ("LIMIT", "limit", "the limit"),
        (6, 9),
        |row, _, _| grouped(row.limit.max_requests),
        |row, _| SortValue::whole(row.limit.max_requests),
    )
    .right(),
    Column::measure(
        ("OF LIMIT", "gauge", "how much of the limit is used up"),
        (14, 22),
        |row, _| row.limit.share().filter(|_| row.state != LimitState::Over),
        used_up,
    )
    .left()
    .rank(1),
    Column::measure(
        ("ENDS", "ends", "time until the window ends"),
        (6, 6),
        |row, context| ends(context, &row),
        |left, _| match left {
            left if left > 0.0 => Cell::plain(text::duration(left)),
            _ => Cell::toned("over", Tone::Dim),
        },
    ),
    Column::since(("BEGAN", "began", "since the window started"), (6, 6), Tone::Dim, |row, _| {
        row.limit.window_start
    })
    .rank(2),
    Column::table((10, 0), |row, _| Some(row.source)).rank(3),
];

pub(super) static PANE: PaneDefinition = PaneDefinition {
    order: |context, rows| rows.order_by_cached_key(|row| Limits::get(context, *row).map(urgency)),
    is_there: Some(|_, snapshot| !snapshot.sources.limits.is_empty()),
    empty: "no open windows",
    facts: |context, _| facts(context),
    read: |context| ReadState { at: taken(&context.snapshot.sources.limits), error: None },
    is_state: |word| LimitState::named(word).is_some(),
    name: |_, _| "Rate limit".to_owned(),
    label: |_, _| "a rate limit".to_owned(),
    detail: |context, id, _| detail(context, id),
    ..PaneDefinition::new(("Rate limits", "a rate limit"), &COLUMNS, |context, _| {
        Row::all_of(context.snapshot.sources.limits.iter().map(|rows| rows.section.last_rows().len()))
    })
};

fn facts(context: &Context<'_>) -> Vec<Fact> {
    let tables = &context.snapshot.sources.limits;
    let mut facts = stale_tables(context, tables);
    facts.push((rows(tables, "key", "keys"), Tone::Plain));
    let full = rate_limit::rows(context.snapshot).filter(|row| row.state == LimitState::Full).count();
    facts.extend((full > 0).then(|| (format!("{full} full"), Tone::Warning)));
    facts.extend(cut(tables));
    facts
}

/// Full limits first, then those nearest to their limit.
fn urgency(row: LimitRow<'_>) -> (LimitState, i64, Arc<str>) {
    let share = row.limit.share().map_or(0, thousandths);
    // Rows without a limit are sorted by count, the busiest first.
    let most = if row.limit.max_requests.is_some() { share } else { row.limit.count.unwrap_or_default() };
    (row.state, most.saturating_neg(), row.limit.key.clone())
}

#[expect(clippy::cast_possible_truncation, reason = "saturates")]
pub(super) fn thousandths(number: f64) -> i64 {
    (number * 1000.0) as i64
}

pub(in crate::app) fn tone(state: LimitState) -> Tone {
    match state {
        LimitState::Full | LimitState::Near => Tone::Warning,
        LimitState::Open => Tone::Good,
        LimitState::Unknown => Tone::Plain,
        LimitState::Over => Tone::Dim,
    }
}

fn ends(context: &Context<'_>, row: &LimitRow<'_>) -> Option<f64> {
    row.limit.expires_at.map(|end| context.until(end))
}

fn grouped(value: Option<i64>) -> Cell {
    let count = value.map(|value| text::count(u64::try_from(value).unwrap_or_default()));
    count.map_or_else(Cell::none, Cell::plain)
}

fn detail(context: &Context<'_>, id: RowId) -> Option<Vec<Line>> {
    let row = rate_limit::rows(context.snapshot).find(|row| RowId::Limit(row.id) == id)?;
    let why = match row.state {
        LimitState::Full => ": no more requests are permitted until its window ends",
        LimitState::Near | LimitState::Open => "",
        LimitState::Unknown => ": the limit is not in the table; each caller gives it",
        LimitState::Over => ": the next request starts another window",
    };
    let left = ends(context, &row);
    Some(vec![
        state((row.state.as_str(), tone(row.state)), why),
        field("key", text::one_line(&row.limit.key), Tone::Plain),
        field("kept in", text::one_line(row.source), Tone::Plain),
        field("requests", of(row.limit.count, row.limit.max_requests), Tone::Plain),
        fields(&[
            ("window began", ago(context, row.limit.window_start)),
            (end_label(left), left.map(in_or_ago).unwrap_or_default()),
        ]),
    ])
}
