//! A table that builds only the rows that are seen, whatever their number.

use ratatui::Frame;
use ratatui::layout::Rect;

use crate::app::App;
use crate::app::line::Tone;
use crate::app::message::Spot;
use crate::app::pane::PaneState;
use crate::app::panes::{Heading, Pane};
use crate::text::Align;
use crate::ui::theme::Theme;
use crate::ui::viewport::Viewport;

/// The cursor and the mark stand before the first column.
const MARKER: u16 = 2;

/// Lines above the rows.
const HEADINGS: u16 = 1;

/// The first row to draw in this room. What is worst stands on top: only where the keys go, or a row is followed, a table is
/// scrolled away from it.
pub(in crate::ui) fn offset(area: Rect, pane: Pane, app: &App, viewport: &mut Viewport) -> usize {
    let state = app.pane(pane);
    let is_followed = app.follow.is_some() && app.follow == state.selected;
    let cursor = if app.focus == pane || is_followed { state.cursor } else { 0 };
    viewport.offset(pane, cursor, state.rows.len(), usize::from(area.height.saturating_sub(HEADINGS)))
}

/// Draws the headings and the rows of a pane, from one on.
pub(in crate::ui) fn render(
    frame: &mut Frame<'_>,
    area: Rect,
    (pane, offset): (Pane, usize),
    app: &App,
    viewport: &mut Viewport,
    theme: &Theme,
) {
    let state = app.pane(pane);
    let columns = comfortable(pane, shown(pane, app), area.width.saturating_sub(MARKER));
    let columns = fitted(&columns, state.column_offset, area.width.saturating_sub(MARKER));
    headings(frame, area, (pane, state), &columns, viewport, theme);
    let body = Rect { y: area.y + HEADINGS, height: area.height.saturating_sub(HEADINGS), ..area };
    viewport.place(pane, body, offset);
    if app.focus == pane {
        viewport.page_rows = usize::from(body.height);
    }
    let Some(context) = app.context() else { return };
    let table = pane.table();
    let place = |(heading, width): &(Heading, u16)| Some((table.position(heading.name)?, *heading, *width));
    let columns: Vec<(usize, Heading, u16)> = columns.iter().filter_map(place).collect();
    for (y, at) in (body.y..body.bottom()).zip(offset..state.rows.len()) {
        let Some(row) = state.rows.get(at).copied() else { break };
        let id = table.id(&context, row);
        let selected = id.is_some() && id == state.selected;
        let marked = id.is_some_and(|id| state.marks.contains(&id));
        let followed = matches!((id, app.follow), (Some(id), Some(followed)) if id == followed);
        let pointer = match (selected && app.focus == pane, marked) {
            (true, true) => ">*",
            (true, false) => "> ",
            (false, true) => " *",
            (false, false) => "  ",
        };
        let buffer = frame.buffer_mut();
        buffer.set_stringn(area.x, y, pointer, usize::from(area.width), theme.style(Tone::Key));
        let mut x = area.x + MARKER;
        for (first, (position, column, width)) in
            columns.iter().enumerate().map(|(at, column)| (at == 0, column))
        {
            let cell = table.cell(&context, row, *position, *width);
            let align = if column.right { Align::Right } else { Align::Left };
            let text = crate::text::fit_pad(&cell.text, usize::from(*width), align);
            let tone = match cell.tone {
                _ if followed && first => Tone::Key,
                _ if !state.is_hit(at) => Tone::Dim,
                tone => tone,
            };
            buffer.set_stringn(x, y, text, usize::from(area.right().saturating_sub(x)), theme.style(tone));
            x = x.saturating_add(width + 1);
        }
        if selected && app.focus == pane {
            buffer.set_style(Rect { x: area.x, y, width: area.width, height: 1 }, theme.selected);
        }
    }
}

fn headings(
    frame: &mut Frame<'_>,
    area: Rect,
    (pane, state): (Pane, &PaneState),
    columns: &[(Heading, u16)],
    viewport: &mut Viewport,
    theme: &Theme,
) {
    let mut x = area.x + MARKER;
    for (column, width) in columns {
        let arrow = match state.sort {
            Some(sort) if sort.column == column.name => {
                if sort.descending {
                    "↓"
                } else {
                    "↑"
                }
            }
            _ => "",
        };
        let title = format!("{}{arrow}", column.title);
        let align = if column.right { Align::Right } else { Align::Left };
        let text = crate::text::fit_pad(&title, usize::from(*width), align);
        let room = usize::from(area.right().saturating_sub(x));
        frame.buffer_mut().set_stringn(x, area.y, text, room, theme.style(Tone::Dim));
        viewport.spot(Rect { x, y: area.y, width: *width, height: 1 }, Spot::Heading(pane, column.name));
        x = x.saturating_add(width + 1);
    }
}

/// The columns that tell rows apart.
fn shown(pane: Pane, app: &App) -> Vec<Heading> {
    let context = app.context();
    let headings = pane.table().headings().into_iter();
    headings.filter_map(|heading| heading.over(context.as_ref())).collect()
}

/// From this rank on a column gives way to names that would be cut.
const DISPENSABLE: u8 = 3;

/// Where names are read before what can be done without, that goes while they have not the room they want.
fn comfortable(pane: Pane, mut columns: Vec<Heading>, width: u16) -> Vec<Heading> {
    if !pane.definition().prefers_names {
        return columns;
    }
    let wants = |column: &Heading| match column.max {
        max if column.right || max < 24 => column.min,
        max => max.min(column.min + 12),
    };
    let wanted = |columns: &[Heading]| columns.iter().map(|column| wants(column) + 1).sum::<u16>();
    while wanted(&columns) > width + 1 {
        let most = columns.iter().map(|column| column.rank).max().filter(|rank| *rank >= DISPENSABLE);
        let Some(most) = most else { break };
        columns.retain(|column| column.rank != most);
    }
    columns
}

/// Chooses the columns that fit into `width`, and how wide each is. The first stays when the others are scrolled.
fn fitted(all: &[Heading], offset: usize, width: u16) -> Vec<(Heading, u16)> {
    let mut columns: Vec<Heading> = all
        .iter()
        .enumerate()
        .filter(|(at, _)| *at == 0 || *at > offset)
        .map(|(_, column)| *column)
        .collect();
    let least = |columns: &[Heading]| -> u16 {
        columns.iter().map(|column| column.min + 1).sum::<u16>().saturating_sub(1)
    };
    while least(&columns) > width {
        let Some(rank) = columns.iter().map(|column| column.rank).max().filter(|rank| *rank > 0) else {
            break;
        };
        columns.retain(|column| column.rank < rank);
    }
    while least(&columns) > width && columns.len() > 1 {
        columns.pop();
    }
    let spare = width.saturating_sub(least(&columns));
    grown(&columns, spare)
}

/// Gives the spare room away: to those that can use some in proportion to what they can use, and what is left, but
/// at least a third, to the one that takes any width.
fn grown(columns: &[Heading], spare: u16) -> Vec<(Heading, u16)> {
    let flexible = columns.iter().any(|column| column.max == 0);
    let wanted: u16 = columns.iter().map(|column| column.max.saturating_sub(column.min)).sum();
    let given = if flexible { wanted.min(spare - spare / 3) } else { wanted.min(spare) };
    let mut rest = spare;
    let mut widths: Vec<(Heading, u16)> = columns
        .iter()
        .map(|column| {
            let wants = u32::from(column.max.saturating_sub(column.min));
            let part = u16::try_from(wants * u32::from(given) / u32::from(wanted.max(1))).unwrap_or(0);
            rest = rest.saturating_sub(part);
            (*column, column.min + part)
        })
        .collect();
    if let Some((_, width)) = widths.iter_mut().find(|(column, _)| column.max == 0) {
        *width += rest;
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_fill_the_width_and_never_pass_it() {
        for pane in Pane::ALL {
            for offset in 0..pane.table().headings().len() {
                for width in 0..300 {
                    let columns = fitted(&pane.table().headings(), offset, width);
                    let total: u16 =
                        columns.iter().map(|(_, width)| width + 1).sum::<u16>().saturating_sub(1);
                    assert!(!columns.is_empty());
                    assert!(columns.len() == 1 || total <= width, "{pane:?} at {width}: {total}");
                }
            }
        }
    }

    #[test]
    fn at_80_columns_what_matters_is_there() {
        let names = |pane: Pane| {
            let columns = fitted(&pane.table().headings(), 0, 78);
            columns.iter().map(|(column, _)| column.name).collect::<Vec<_>>()
        };
        assert_eq!(names(Pane::Chains), ["pid", "blocks", "frees", "wait", "state", "who", "query"]);
        assert!(names(Pane::Locks).starts_with(&["lock", "mode", "state", "age", "waiters", "pid"]));
        assert!(names(Pane::Backends).contains(&"query"));
    }
}
