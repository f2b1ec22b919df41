//! The Blame screen: which sessions made others wait, and the cost. Below it are the episodes of the selected line.
//!
//! ```text
//!   COST    SHARE             MAX ROOT                                   ON        EPISODES
//! ▸ 43m12s  ██████░░░░   61%   17 billing idle in xact, UPDATE accounts… accounts         3
//!   18m04s  ██░░░░░░░░   25%    9 migrate ALTER TABLE orders ADD COLUMN… orders           1
//! ```

pub(super) mod detail;

use crate::app::context::Context;
use crate::app::keymap::Action;
use crate::app::line::Tone;
use crate::app::panes::cell::{fit_names, part_bar};
use crate::app::panes::column::Columns;
use crate::app::panes::definition::{Definition, Read};
use crate::app::panes::facts::Fact;
use crate::app::panes::row::{Row, RowId};
use crate::app::panes::{Cell, Rows, Value};
use crate::model::blame::{self, Blame, Group, Span};
use crate::text;

struct Roots;

impl Rows for Roots {
    type Row<'a> = &'a blame::Row;

    fn get<'a>(context: &Context<'a>, row: Row) -> Option<&'a blame::Row> {
        context.index.blame.rows.get(row.at()?)
    }

    fn id(_: &Context<'_>, row: &blame::Row) -> Option<RowId> {
        Some(RowId::Blamed(row.id))
    }
}

type Column = crate::app::panes::Column<Roots>;

static COLUMNS: Columns<Roots> = Columns {
    shown: &[
        Column::duration(
            ("COST", "cost", "how long others waited for it, in total"),
            (7, 7),
            Tone::Warning,
            |row, _| Some(row.sums.seconds),
        ),
        Column::sorted(
            ("SHARE", "share", "share of all waiting in this time"),
            (11, 14),
            |row, context, room| Cell::plain(part_bar(share(context, row), room)),
            |row, context| Value::Number(100.0 * share(context, row)),
        ),
        Column::number(
            ("MAX", "max", "the most sessions that waited at the same time"),
            (4, 5),
            Tone::Plain,
            |row, _| Some(row.sums.most.into()),
        ),
        Column::cell(
            ("ROOT", "root", "the root blocker: application, state, and its statement without literals"),
            (24, 0),
            |row, _, _| Cell::plain(row.name.clone()),
        ),
        Column::sorted(
            ("ON", "on", "the lock they waited for; if several, the one that cost the most"),
            (12, 20),
            |row, _, room| Cell::plain(on(row, room)),
            |row, _| Value::text(Some(&row.on)),
        ),
        Column::number(
            (
                "EPISODES",
                "episodes",
                "number of episodes: one root blocker of one lock, from its first waiter to its last",
            ),
            (8, 8),
            Tone::Plain,
            |row, _| i64::try_from(row.episodes).ok(),
        ),
        Column::number(
            ("WAITS", "waits", "waits whose start was seen; a wait behind several roots counts for each"),
            (7, 7),
            Tone::Plain,
            |row, _| i64::try_from(row.sums.waits).ok(),
        )
        .rank(1),
        Column::sorted(
            ("±", "error", "error of the cost: two standard errors"),
            (6, 6),
            |row, _, _| Cell::toned(text::duration(error(&row.sums)), Tone::Dim),
            |row, _| Value::Number(error(&row.sums)),
        )
        .right()
        .rank(2),
    ],
    others: &[],
};

pub(super) static PANE: Definition = Definition {
    empty: "no session was seen waiting for a lock in this time",
    facts: |context, _| facts(context),
    read: |context| Read { at: context.view.blame.until, error: None },
    keys: &[Action::BlameBy, Action::BlameSpan],
    name: |context, id| row(context, id).map_or_else(|| "Blame".to_owned(), |row| row.name.clone()),
    label: |context, id| {
        row(context, id).map_or_else(|| "a root".to_owned(), |row| text::fit(&row.name, 20).into_owned())
    },
    detail: |context, id, _| Some(detail::root(context, row(context, id)?)),
    ..Definition::new(("Blame", "a root blocker; its episodes are below"), &COLUMNS, |context, _| {
        Row::all(context.index.blame.rows.len())
    })
};

fn row<'a>(context: &Context<'a>, id: RowId) -> Option<&'a blame::Row> {
    let RowId::Blamed(id) = id else { return None };
    context.index.blame.row(id)
}

/// Two standard errors, in seconds: the sum is within them in 19 of 20 cases.
fn error(sums: &blame::Sums) -> f64 {
    2.0 * sums.standard_error()
}

fn share(context: &Context<'_>, row: &blame::Row) -> f64 {
    let total = context.view.blame.total(context.index.blame.span).seconds;
    if total > 0.0 { (row.sums.seconds / total).clamp(0.0, 1.0) } else { 0.0 }
}

/// The locked object; in a narrow column without the prefix that most names have.
pub(super) fn lock(name: &str, room: u16) -> String {
    let name = fit_names(name.to_owned(), room);
    match name.strip_prefix("rows of ") {
        Some(table) if text::width(&name) > usize::from(room) => table.to_owned(),
        _ => name,
    }
}

/// The lock with the highest cost, and the number of others: `accounts +2`.
fn on(row: &blame::Row, room: u16) -> String {
    let name = lock(&row.on, room);
    if row.more == 0 {
        return name;
    }
    let more = format!(" +{}", row.more);
    format!("{}{more}", text::fit(&name, usize::from(room).saturating_sub(more.len())))
}

/// `last 15m · 71m of waiting ± 33s · 812 waits · by role`
fn facts(context: &Context<'_>) -> Vec<Fact> {
    let (blame, shown) = (&context.view.blame, &context.index.blame);
    let total = blame.total(shown.span);
    let mut facts = vec![(span(context, blame, shown.span), Tone::Plain)];
    if shown.group != Group::Root {
        facts.push((format!("by {}", shown.group.as_str()), Tone::Key));
    }
    if total.seconds > 0.0 || total.waits > 0 {
        let waited =
            format!("{} of waiting ± {}", text::duration(total.seconds), text::duration(error(&total)));
        facts.push((waited, Tone::Plain));
        let waits = if total.waits == 1 { "wait" } else { "waits" };
        facts.push((format!("{} {waits}", text::count(total.waits)), Tone::Plain));
    }
    if blame.missing >= 1.0 {
        facts.push((format!("{} not seen", text::duration(blame.missing)), Tone::Past));
    }
    // It does not apply to a span that begins later.
    if shown.span.first_minute(blame).is_none() && blame.before.sessions > 0 {
        let longest = blame.before.longest.map(|longest| format!(", ≤ {}", text::duration(longest)));
        let longest = longest.unwrap_or_default();
        facts.push((format!("{} already waiting{longest}", blame.before.sessions), Tone::Past));
    }
    facts
}

/// `last 15m`; `since 13:40:02` if there is no more than that.
fn span(context: &Context<'_>, blame: &Blame, span: Span) -> String {
    match (span.minutes().filter(|_| span.first_minute(blame).is_some()), blame.since) {
        (Some(60), _) => "last 1h".to_owned(),
        (Some(minutes), _) => format!("last {minutes}m"),
        (None, Some(since)) => format!("since {}", context.time_of_day(since)),
        (None, None) => "nothing was counted".to_owned(),
    }
}
