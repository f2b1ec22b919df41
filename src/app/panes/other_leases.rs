//! The leases of other systems: leaders, semaphores, locks in a row.
//!
//! ```text
//!   STATE  SOURCE     LEASE         OWNER          LEFT   HELD  NOTE
//!   held   Liquibase  changelog 1   pod-7 (10.…)      -   3h2m  never released automatically: liquibase release-locks
//! ```

use super::column::{Columns, pane_rows};
use super::definition::{Definition, Read};
use super::facts::{Fact, count, gaps, is_tried, of_source, read_at, source, with_version};
use super::{Cell, Row, RowId, Value};
use crate::app::context::Context;
use crate::app::detail::{ago, end_label, field, fields, held_by, keep_said, state, words};
use crate::app::line::{Line, Tone};
use crate::model::adapter::{OtherLeaseRow, Part, Parts, TermState};
use crate::text;

pane_rows! {
    Leases<'a> = &'a OtherLeaseRow,
    |context, row| context.view.adapters.leases.get(row.at()?),
    |row| RowId::OtherLease(row.id)
}

static COLUMNS: Columns<Leases> = Columns {
    shown: &[
        Column::state(
            ("STATE", "state", "held; over: it has expired, the next request gets it; free"),
            (7, 7),
            |row, _| (row.state.as_str(), tone(row.state)),
        ),
        source::<Leases>(|row, _| Some(&row.source)).rank(0),
        Column::text(("LEASE", "lease", "its name"), (12, 40), |row, _| Some(&row.lease.id)),
        Column::text(("OWNER", "owner", "its owner, or last owner"), (10, 30), |row, _| {
            row.lease.owner.as_deref()
        }),
        Column::sorted(
            ("LEFT", "left", "time until it expires, or since; - without an end"),
            (9, 10),
            |row, _, _| left(row),
            |row, _| Value::number(row.left),
        )
        .right(),
        Column::age(
            ("HELD", "held", "how long this owner has held it"),
            (7, 7),
            Tone::Plain,
            |row, context| context.age(row.lease.acquired_at).filter(|_| row.state == TermState::Held),
        ),
        Column::text(("TOKEN", "token", "fencing token"), (6, 12), |row, _| row.lease.token.as_deref())
            .rank(2)
            .only_where(|context| {
                let mut all =
                    context.snapshot.adapters.iter().flat_map(|rows| rows.leases.section.last_rows().iter());
                all.any(|lease| lease.token.is_some())
            }),
        Column::text(("NOTE", "note", "more from its system"), (10, 0), |row, _| row.lease.note.as_deref())
            .rank(1),
    ],
    others: &[],
};

pub(super) static PANE: Definition = Definition {
    is_there: Some(|_, snapshot| is_tried(snapshot, &[Part::Leases])),
    search: Some(|snapshot| &snapshot.detection.adapters),
    empty: "no leases",
    parts: Parts::of(&[Part::Leases]),
    facts: |context, _| facts(context),
    read: |context| Read { at: read_at(context, Part::Leases), error: None },
    is_state: |word| TermState::named(word).is_some(),
    name: |context, id| of_source("Lease", of(context, id).map(|row| &row.source)),
    label: |_, _| "a lease of another system".to_owned(),
    detail: |context, id, _| detail(context, id),
    ..Definition::new(("Leases of other systems", "a lease"), &COLUMNS, |context, _| {
        Row::all(context.view.adapters.leases.len())
    })
};

fn of<'a>(context: &Context<'a>, id: RowId) -> Option<&'a OtherLeaseRow> {
    context.view.adapters.leases.iter().find(|row| RowId::OtherLease(row.id) == id)
}

/// A lease that has ended is not a problem: this is how these leases end.
fn tone(state: TermState) -> Tone {
    match state {
        TermState::Held => Tone::Good,
        TermState::Unknown => Tone::Plain,
        TermState::Over | TermState::Free => Tone::Dim,
    }
}

/// Time until it ends, or since it ended: `41s ago`.
fn left(row: &OtherLeaseRow) -> Cell {
    match row.left {
        Some(left) if left > 0.0 => Cell::plain(text::age(left)),
        Some(left) => Cell::toned(format!("{} ago", text::age(-left)), Tone::Dim),
        None => Cell::none(),
    }
}

fn facts(context: &Context<'_>) -> Vec<Fact> {
    let leases = &context.view.adapters.leases;
    let held = leases.iter().filter(|row| row.state == TermState::Held).count();
    let mut facts =
        vec![(count(leases.len(), "lease", "leases"), Tone::Plain), (format!("{held} held"), Tone::Plain)];
    facts.extend(gaps(context, Part::Leases));
    facts
}

fn detail(context: &Context<'_>, id: RowId) -> Option<Vec<Line>> {
    let row = of(context, id)?;
    let lease = &row.lease;
    let why = match (row.state, row.left) {
        (TermState::Held, None) if lease.key.is_some() => ": its lock is held",
        (TermState::Held, None) => ": it never expires",
        (TermState::Over, _) => ": the next request gets it",
        (TermState::Unknown, _) => ": its row does not show whether it is held",
        _ => "",
    };
    let ends = row.left.map(|left| match left {
        left if left > 0.0 => format!("in {}", text::duration(left)),
        left => format!("{} ago", text::age(-left)),
    });
    let mut lines = vec![
        state(row.state.as_str(), tone(row.state), why),
        field("lease", text::one_line(&lease.id), Tone::Plain),
        field("kept in", with_version(context, row.place.0), Tone::Plain),
        field("owner", words(lease.owner.as_ref()), Tone::Plain),
        field("token", words(lease.token.as_ref()), Tone::Plain),
        fields(&[
            ("taken", ago(context, lease.acquired_at)),
            (end_label(row.left), ends.unwrap_or_default()),
        ]),
        field("note", words(lease.note.as_ref()), Tone::Plain),
    ];
    keep_said(&mut lines);
    lines.extend(held_by(context, lease.key, row.pid));
    Some(lines)
}
