//! The leases of other systems: leaders, semaphores, locks in a row.
//!
//! ```text
//!   STATE  SOURCE     LEASE         OWNER          LEFT   HELD  NOTE
//!   held   Liquibase  changelog 1   pod-7 (10.…)      -   3h2m  never released automatically: liquibase release-locks
//! ```

use super::column::{Listed, listed_rows};
use super::definition::{
    Fact, PaneDefinition, ReadState, count, gaps, is_tried, of_source, read_at, source, with_version,
};
use super::{Cell, RowId};
use crate::app::context::Context;
use crate::app::detail::{ago, drop_empty, end_label, field, fields, held_by, state, words};
use crate::app::line::{Line, Tone};
use crate::model::adapter::{Part, Parts};
use crate::model::lease::{LeaseRow, LeaseState};
use crate::text;

listed_rows!(Leases = LeaseRow, |context| &context.view.adapters.leases, |row| RowId::OtherLease(row.id));

static COLUMNS: &[Column] = &[
    Column::state("held; over: it has expired, the next request gets it; free", 7, |row, _| state_of(row)),
    source::<Leases>(|row, _| Some(&row.source)).rank(0),
    Column::text(("LEASE", "lease", "its name"), (12, 40), |row, _| Some(&row.key)),
    Column::text(("OWNER", "owner", "its owner, or last owner"), (10, 30), |row, _| row.owner.as_deref()),
    Column::measure(
        ("LEFT", "left", "time until it expires, or since; - without an end"),
        (9, 10),
        |row, _| row.left,
        |left, _| match left {
            left if left > 0.0 => Cell::plain(text::age(left)),
            left => Cell::toned(format!("{} ago", text::age(-left)), Tone::Dim),
        },
    ),
    Column::since(("HELD", "held", "how long this owner has held it"), (7, 7), Tone::Plain, |row, _| {
        row.acquired_at.filter(|_| row.state == LeaseState::Held)
    }),
    Column::text(("TOKEN", "token", "fencing token"), (6, 12), |row, _| row.token_text.as_deref())
        .rank(2)
        .only_where(|context| {
            let mut all = context.snapshot.adapters.iter().flat_map(|rows| rows.leases.last_rows().iter());
            all.any(|lease| lease.token.is_some())
        }),
    Column::text(("NOTE", "note", "more from its system"), (10, 0), |row, _| row.note.as_deref()).rank(1),
];

pub(super) static PANE: PaneDefinition = PaneDefinition {
    is_there: Some(|_, snapshot| is_tried(snapshot, &[Part::Leases])),
    empty: "no leases",
    parts: Parts::of(&[Part::Leases]),
    facts: |context, _| facts(context),
    read: |context| ReadState { at: read_at(context, Part::Leases), error: None },
    is_state: |word| LeaseState::named(word).is_some(),
    name: |context, id| of_source("Lease", Leases::find(context, id).map(|row| &row.source)),
    label: |_, _| "a lease of another system".to_owned(),
    detail: |context, id, _| detail(context, id),
    ..PaneDefinition::new(("Leases of other systems", "a lease"), &COLUMNS, Leases::rows)
};

/// A lease that has ended is not a problem: this is how these leases end.
fn state_of(row: &LeaseRow) -> (&'static str, Tone) {
    let tone = match row.state {
        LeaseState::Held => Tone::Good,
        LeaseState::Unknown => Tone::Plain,
        _ => Tone::Dim,
    };
    (row.state.as_str(), tone)
}

fn facts(context: &Context<'_>) -> Vec<Fact> {
    let leases = &context.view.adapters.leases;
    let held = leases.iter().filter(|row| row.state == LeaseState::Held).count();
    let mut facts =
        vec![(count(leases.len(), "lease", "leases"), Tone::Plain), (format!("{held} held"), Tone::Plain)];
    facts.extend(gaps(context, Part::Leases));
    facts
}

fn detail(context: &Context<'_>, id: RowId) -> Option<Vec<Line>> {
    let row = Leases::find(context, id)?;
    let why = match (row.state, row.left) {
        (LeaseState::Held, None) if row.queue.is_some() => ": its lock is held",
        (LeaseState::Held, None) => ": it never expires",
        (LeaseState::Over, _) => ": the next request gets it",
        (LeaseState::Unknown, _) => ": its row does not show whether it is held",
        _ => "",
    };
    let ends = row.left.map(|left| match left {
        left if left > 0.0 => format!("in {}", text::duration(left)),
        left => format!("{} ago", text::age(-left)),
    });
    let mut lines = vec![
        state(state_of(row), why),
        field("lease", text::one_line(&row.key), Tone::Plain),
        field("kept in", with_version(context, row.place.0), Tone::Plain),
        field("owner", words(row.owner.as_ref()), Tone::Plain),
        field("token", words(row.token_text.as_ref()), Tone::Plain),
        fields(&[("taken", ago(context, row.acquired_at)), (end_label(row.left), ends.unwrap_or_default())]),
        field("note", words(row.note.as_ref()), Tone::Plain),
    ];
    drop_empty(&mut lines);
    lines.extend(held_by(context, row.queue, row.owner_pid));
    Some(lines)
}
