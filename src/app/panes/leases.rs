//! The leases: their screen, and a pane of the Overview.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::cell::{bar, table_name};
use super::column::{Listed, listed_rows};
use super::definition::{Fact, PaneDefinition, ReadState, cut, is_unsearched, stale_tables, taken};
use super::{Cell, RowId, Rows, SortValue};
use crate::app::context::Context;
use crate::app::detail::{ago, end_label, field, fields, heading, in_or_ago, session};
use crate::app::line::{Line, Tone};
use crate::model::lease::{LeaseRow, LeaseState};
use crate::order::SortExt;
use crate::text;

listed_rows!(Leases = LeaseRow, |context| &context.view.leases.rows, |row| RowId::Lease(row.id));

static COLUMNS: &[Column] = &[
    Column::state("held, expired, released or free; split: several owners in Redis", 8, |row, _| state(row)),
    Column::sorted(
        ("LEASE", "lease", "name of the lease"),
        (8, 30),
        |row, _, _| Cell::server(Some(&row.name)),
        |row, _| name_value(row),
    ),
    Column::text(("OWNER", "owner", "its owner"), (10, 30), |row, _| row.owner.as_deref()),
    Column::sorted(
        ("LEFT", "left", "time until it expires, or since"),
        (10, 10),
        |row, _, _| left(row),
        |row, _| SortValue::number(row.left.filter(|_| is_owned(row))),
    )
    .right(),
    Column::measure(
        ("OF TERM", "gauge", "how much of its term is left"),
        (14, 22),
        |row, _| share(row),
        |share, room| Cell::toned(bar(share, room), if share < 0.2 { Tone::Warning } else { Tone::Plain }),
    )
    .left()
    .rank(1),
    Column::number(
        ("TOKEN", "token", "fencing token: grows with every new owner"),
        (5, 10),
        Tone::Plain,
        |row, _| row.token,
    ),
    Column::since(("RENEWED", "renewed", "since it was last renewed"), (7, 7), Tone::Dim, |row, _| {
        row.renewed_at
    })
    .rank(4),
    Column::sorted(
        ("TERM", "term", "how long it lasts without a renewal; ≥: the longest remaining time observed"),
        (6, 7),
        |row, _, _| term(row).map_or_else(Cell::none, |term| Cell::toned(term, Tone::Dim)),
        |row, _| SortValue::number(row.term.or(row.observed.term)),
    )
    .right()
    .rank(3),
    Column::measure(
        ("WAITERS", "waiters", "sessions that wait for it"),
        (7, 7),
        |row, _| Some(row.waiting.into()),
        |count, _| if count > 0.0 { Cell::toned(count.to_string(), Tone::Warning) } else { Cell::none() },
    )
    .rank(2),
    Column::cell(
        ("ALIVE", "alive", "whether the owner's session is connected, if known"),
        (5, 5),
        |row, _, _| alive(row),
    )
    .rank(6),
    Column::sorted(
        ("HELD", "held", "how long this owner has held it; ≥: since it was first observed"),
        (6, 7),
        |row, context, _| held(context, row),
        |row, context| {
            SortValue::number(context.age(row.acquired_at).or(row.observed.held).filter(|_| is_owned(row)))
        },
    )
    .right()
    .rank(5),
    Column::sorted(
        ("SOURCE", "source", "its table or Redis; 3/5: on 3 of 5 servers"),
        (9, 0),
        |row, _, room| table_name(Some(&source(row)), room),
        |row, _| SortValue::Text(source(row)),
    ),
];

pub(in crate::app::panes) static PANE: PaneDefinition = PaneDefinition {
    order: |context, rows| rows.order_by(|a, b| urgency(Leases::get(context, *a), Leases::get(context, *b))),
    is_there: Some(|view, snapshot| {
        let systems = &snapshot.sources;
        let is_empty = systems.leases.is_empty() && systems.redis.servers.is_empty();
        is_unsearched(snapshot) || !view.leases.rows.is_empty() || !is_empty
    }),
    absent: Some("no table distlock here; [tables] in the config can name one"),
    empty: "no leases",
    facts: |context, _| facts(context),
    read: |context| ReadState { at: taken(&context.snapshot.sources.leases), error: None },
    is_state: |word| LeaseState::named(word).is_some(),
    name: |context, id| match of(context, id) {
        Some(row) => format!("Lease {}", text::one_line(&row.name)),
        None => "Lease".to_owned(),
    },
    label: |context, id| {
        let name = of(context, id).map(|row| text::one_line(&row.name).into_owned());
        format!("lease {}", text::fit(&name.unwrap_or_default(), 20))
    },
    detail: |context, id, _| lines(context, id),
    ..PaneDefinition::new(("Leases", "a lease"), &COLUMNS, Leases::rows)
};

fn urgency(a: Option<&LeaseRow>, b: Option<&LeaseRow>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => a.urgency(b),
        (a, b) => a.is_none().cmp(&b.is_none()),
    }
}

fn of<'a>(context: &Context<'a>, id: RowId) -> Option<&'a LeaseRow> {
    if let RowId::Lease(id) = id { context.lease(id) } else { None }
}

/// A name that is a number is sorted as one.
fn name_value(row: &LeaseRow) -> SortValue<'_> {
    match row.name.parse::<f64>() {
        Ok(number) if number.is_finite() => SortValue::Number(number),
        _ => SortValue::text(Some(&row.name)),
    }
}

pub(in crate::app) fn tone(state: LeaseState) -> Tone {
    match state {
        LeaseState::Expired => Tone::Warning,
        LeaseState::Held => Tone::Good,
        _ => Tone::Dim,
    }
}

/// Whether it has an owner, or still names one.
fn is_owned(row: &LeaseRow) -> bool {
    matches!(row.state, LeaseState::Held | LeaseState::Expired)
}

/// `12s`, `41s ago`; `no end` for a lease that no other owner will ever get.
fn left(row: &LeaseRow) -> Cell {
    match row.left {
        _ if !is_owned(row) => Cell::none(),
        Some(seconds) if seconds > 0.0 => Cell::plain(text::age(seconds)),
        Some(seconds) => Cell::toned(format!("{} ago", text::age(-seconds)), Tone::Warning),
        None => Cell::toned("no end", Tone::Warning),
    }
}

/// The share of the term that is left.
fn share(row: &LeaseRow) -> Option<f64> {
    let (left, term) = row.left.zip(row.term.filter(|term| *term > 0.0))?;
    is_owned(row).then(|| (left / term).clamp(0.0, 1.0))
}

/// `20s`; `≥20s` if only remaining times have been observed.
fn term(row: &LeaseRow) -> Option<String> {
    let seen = || row.observed.term.map(|longest| format!("≥{}", text::age(longest)));
    row.term.map(text::duration).or_else(seen)
}

fn held(context: &Context<'_>, row: &LeaseRow) -> Cell {
    let observed = || row.observed.held.map(|held| format!("≥{}", text::age(held)));
    let held = context.age(row.acquired_at).map(text::age).or_else(observed);
    held.filter(|_| is_owned(row)).map_or_else(Cell::none, Cell::plain)
}

fn alive(row: &LeaseRow) -> Cell {
    match row.owner_alive {
        Some(true) => Cell::toned("yes", Tone::Good),
        Some(false) => Cell::toned("gone", Tone::Warning),
        None if is_owned(row) => Cell::toned("?", Tone::Dim),
        None => Cell::none(),
    }
}

/// The state; `split` if several owners have it on different servers.
fn state(row: &LeaseRow) -> (&'static str, Tone) {
    if row.is_split { ("split", Tone::Warning) } else { (row.state.as_str(), tone(row.state)) }
}

/// Where it is stored; `3/5 redis`: the owner has it on that many of the servers.
fn source(row: &LeaseRow) -> Cow<'_, str> {
    match row.quorum {
        Some((has, of)) => Cow::Owned(format!("{has}/{of} {}", row.shown_source())),
        None => row.shown_source(),
    }
}

/// The age of the rows of a table that could not be read; then `4 held · 1 expired`, and what was left out.
fn facts(context: &Context<'_>) -> Vec<Fact> {
    let tables = &context.snapshot.sources.leases;
    let mut facts = stale_tables(context, tables);
    let leases = &context.view.leases;
    facts.push((format!("{} held", text::count(leases.count(LeaseState::Held) as u64)), Tone::Plain));
    let expired = leases.count(LeaseState::Expired);
    facts.extend((expired > 0).then(|| (format!("{} expired", text::count(expired as u64)), Tone::Warning)));
    facts.extend(first_to_expire(context).filter(|_| expired == 0).map(|first| (first, Tone::Plain)));
    facts.extend(cut(tables));
    let redis = &context.snapshot.sources.redis;
    facts.extend(redis.down_text().map(|down| (format!("redis {down}"), Tone::Warning)));
    facts.extend(redis.cut.then(|| ("redis: not all keys".to_owned(), Tone::Dim)));
    facts
}

/// `first to expire: 7 in 8s`.
fn first_to_expire(context: &Context<'_>) -> Option<String> {
    let rows = context.view.leases.rows.iter().filter(|row| row.state == LeaseState::Held);
    let ends = rows.filter_map(|row| Some((row.left?, row)));
    let (left, row) = ends.min_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(format!(
        "first to expire: {} in {}",
        text::fit(&text::one_line(&row.name), 20),
        text::age(left.max(0.0))
    ))
}

fn lines(context: &Context<'_>, id: RowId) -> Option<Vec<Line>> {
    let row = of(context, id)?;
    let mut lines = vec![state_line(row)];
    let votes = row.quorum.map(|(has, of)| format!(", by its owner on {has} of {of} servers"));
    let kept = format!("{}{}", text::one_line(&row.shown_source()), votes.unwrap_or_default());
    lines.push(field("kept in", kept, Tone::Plain));
    lines.extend((row.name != row.key).then(|| field("id", text::one_line(&row.key), Tone::Plain)));
    lines.extend(servers(context, row));
    lines.extend(row.owner.as_deref().map(|owner| {
        let label = if row.state == LeaseState::Released { "last owner" } else { "owner" };
        let held = row.observed.holds.filter(|holds| *holds > 1);
        let held = held.map_or_else(String::new, |holds| format!(", locked {holds} times"));
        field(label, format!("{}{held}", text::one_line(owner)), Tone::Plain)
    }));
    lines.extend(row.owner.as_ref().map(|_| match row.owner_alive.zip(row.owner_pid) {
        Some((is_alive, pid)) => session(context, pid, is_alive, Tone::Warning),
        None => field("session", "not known: a name does not identify a session", Tone::Dim),
    }));
    lines.push(match row.token {
        Some(token) => field("token", token.to_string(), Tone::Plain),
        None => field("token", "none: an owner that returns too late cannot be fenced off", Tone::Dim),
    });
    lines.push(Line::new());
    lines.extend(times(context, row));
    if row.waiting > 0 {
        let words = format!("{} for it; 3 shows their locks", text::count(u64::from(row.waiting)));
        lines.push(field("waiting", words, Tone::Warning));
    }
    Some(lines)
}

fn servers(context: &Context<'_>, row: &LeaseRow) -> Option<Line> {
    let redis = &context.snapshot.sources.redis;
    let set = usize::from(row.set?).checked_sub(1)?;
    let before: usize = redis.sets.iter().take(set).sum();
    let members = redis.servers.iter().skip(before).take(*redis.sets.get(set)?);
    let names: Vec<_> = members.map(|server| text::one_line(&server.server)).collect();
    Some(field("servers", names.join(", "), Tone::Plain))
}

fn state_line(row: &LeaseRow) -> Line {
    let ago = |left: Option<f64>| left.map(|left| text::duration(-left)).unwrap_or_default();
    let why = match (row.state, row.left) {
        (LeaseState::Expired, left) => {
            format!(": it expired {} ago and was not released; the next request gets it", ago(left))
        }
        (LeaseState::Held, Some(left)) => format!(": {} left", text::duration(left)),
        (LeaseState::Held, None) => ": it never expires; no other owner can get it".to_owned(),
        (LeaseState::Released, _) => ": released, or ended by U".to_owned(),
        (LeaseState::Free, _) if row.is_split => {
            ": it has several owners on its servers, none with a majority, and each blocks the others"
                .to_owned()
        }
        (LeaseState::Free, _) if row.quorum.is_some() => {
            ": held on too few servers; it is being acquired or released, or that failed".to_owned()
        }
        _ => ": it is not held".to_owned(),
    };
    crate::app::detail::state(state(row), why)
}

fn times(context: &Context<'_>, row: &LeaseRow) -> Vec<Line> {
    let end = row.expires_at.zip(row.left);
    let end = end.map(|(at, left)| format!("{} ({})", in_or_ago(left), context.time_of_day(at)));
    let mut lines = vec![
        heading("Times"),
        fields(&[
            ("acquired", ago(context, row.acquired_at)),
            ("acquired or renewed", ago(context, row.renewed_at)),
            ("held for at least", row.observed.held.map(text::duration).unwrap_or_default()),
        ]),
        fields(&[("term", term(row).unwrap_or_default()), (end_label(row.left), end.unwrap_or_default())]),
    ];
    lines.retain(|line| line.spans.len() > 1 || line.spans.iter().any(|span| span.tone == Tone::Title));
    lines
}
