//! Episodes: a root blocker of a lock, from its first waiter to its last. The newest first.

use super::backends::several_databases;
use super::blame::{self, party};
use super::column::{DB, PID, pane_rows};
use super::definition::{Fact, PaneDefinition, ReadState, count};
use super::events::time;
use super::{Cell, Row, RowId, Rows, SortValue};
use crate::app::context::Context;
use crate::app::line::Tone;
use crate::model::blame::{Ending, Episode};
use crate::order::SortExt;
use crate::text;

pane_rows! {
    Episodes<'a> = &'a Episode,
    |context, row| context.view.blame.episode(*context.index.blame.episodes.get(row.at()?)?),
    |episode| RowId::Episode(episode.number)
}

static COLUMNS: &[Column] = &[
    Column::sorted(
        ("BEGAN", "began", "when it began to block others"),
        (8, 8),
        |episode, context, _| Cell::plain(time(context, episode.begin)),
        |episode, context| SortValue::Text(context.day_and_time(episode.begin).into()),
    ),
    Column::sorted(
        ("LENGTH", "length", "from the first waiter to the last; … while it is ongoing"),
        (7, 7),
        |episode, context, _| length(context, episode),
        |episode, _| SortValue::Number(episode.length()),
    )
    .right(),
    Column::number(
        ("MAX", "max", "the most sessions that waited at the same time"),
        (4, 5),
        Tone::Plain,
        |episode, _| Some(episode.sums.most.into()),
    ),
    Column::duration(
        ("COST", "cost", "how long others waited for it, in total"),
        (7, 7),
        Tone::Warning,
        |episode, _| Some(episode.sums.seconds),
    ),
    Column::number(PID, (7, 8), Tone::Plain, |episode, _| Some(episode.pid.into()).filter(|pid| *pid != 0)),
    Column::text(("WHO", "who", "role@application"), (12, 22), |episode, _| Some(&*episode.who)),
    Column::cell(("ON", "on", "the lock others waited for"), (10, 20), |episode, _, room| {
        Cell::plain(blame::lock(&episode.lock, room))
    }),
    Column::cell(("ENDED", "ended", "how it ended"), (12, 0), |episode, context, _| ended(context, episode)),
    Column::text(DB, (6, 12), |episode, _| episode.keys.last().map(|key| &*key.database))
        .rank(3)
        .only_where(several_databases),
];

pub(super) static PANE: PaneDefinition = PaneDefinition {
    order: |context, rows| {
        let number = |row: &Row| Episodes::get(context, *row).map(|episode| episode.number);
        rows.order_by_key(|row| std::cmp::Reverse(number(row)));
    },
    empty: "none",
    facts: |context, _| facts(context),
    read: |context| ReadState { at: context.view.blame.until, error: None },
    name: |context, id| {
        episode(context, id)
            .map_or_else(|| "An episode".to_owned(), |one| format!("{} on {}", party(one), one.lock))
    },
    label: |context, id| {
        episode(context, id).map_or_else(|| "an episode".to_owned(), |one| format!("episode {}", one.number))
    },
    detail: |context, id, _| Some(blame::episode(context, episode(context, id)?)),
    ..PaneDefinition::new(
        ("Episodes", "a root blocker of a lock, from its first waiter to its last"),
        &COLUMNS,
        |context, _| Row::all(context.index.blame.episodes.len()),
    )
};

fn episode<'a>(context: &Context<'a>, id: RowId) -> Option<&'a Episode> {
    let RowId::Episode(number) = id else { return None };
    context.view.blame.episode(number)
}

/// `3 episodes · of billing idle in xact`
fn facts(context: &Context<'_>) -> Vec<Fact> {
    let shown = &context.index.blame;
    let mut facts = vec![(count(shown.episodes.len(), "episode", "episodes"), Tone::Plain)];
    if let Some(row) = shown.of.and_then(|of| shown.row(of)) {
        facts.push((format!("of {}", text::fit(&row.name, 60)), Tone::Plain));
    }
    let (forgotten, _) = context.view.blame.table.forgotten;
    if forgotten > 0 {
        facts.push((format!("{} smaller ones dropped", text::count(forgotten)), Tone::Dim));
    }
    facts
}

fn length(context: &Context<'_>, episode: &Episode) -> Cell {
    let length = text::duration(episode.length());
    if context.view.blame.is_ongoing(episode) {
        Cell::toned(format!("{length}…"), Tone::Warning)
    } else {
        Cell::plain(length)
    }
}

fn ended(context: &Context<'_>, episode: &Episode) -> Cell {
    match episode.ending {
        Ending::GoesOn if context.view.blame.is_ongoing(episode) => Cell::toned("ongoing", Tone::Warning),
        Ending::GoesOn => Cell::toned("no waiters now", Tone::Dim),
        Ending::Itself if episode.note.is_empty() => {
            Cell::toned("its transaction ended, or the waits ended", Tone::Dim)
        }
        Ending::Itself => Cell::toned(episode.note.to_string(), Tone::Dim),
        Ending::Deadlock => Cell::toned("the server broke a deadlock", Tone::Critical),
        // The name is in the column next to it.
        Ending::Action => Cell::plain(episode.note.replacen(&format!(" {}", party(episode)), "", 1)),
    }
}
