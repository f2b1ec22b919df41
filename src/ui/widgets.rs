//! A table that builds only the visible rows, and a sparkline.

use ratatui::layout::Rect;

use super::Canvas;
use crate::app::App;
use crate::app::line::Tone;
use crate::app::message::ClickTarget;
use crate::app::panes::{Cell, Heading, Pane, fitted};
use crate::text::Align;

/// Columns for the cursor and the mark, before the first column.
const MARKER: u16 = 2;

fn headings_of(pane: Pane) -> u16 {
    u16::from(!pane.definition().is_headless)
}

/// The first row to draw. The worst rows are at the top, so a table is scrolled away from them only if it has the focus or
/// a row is followed.
pub(in crate::ui) fn offset(canvas: &mut Canvas<'_, '_>, area: Rect, pane: Pane) -> usize {
    let app = canvas.app;
    let state = app.pane(pane);
    let is_followed = app.follow.is_some() && app.follow == state.selected;
    let cursor = match app.marked(pane) {
        _ if app.focus == pane || is_followed => state.cursor,
        marked => marked.unwrap_or(0),
    };
    let height = usize::from(area.height.saturating_sub(headings_of(pane)));
    canvas.viewport.offset(pane, cursor, state.rows.len(), height)
}

pub(in crate::ui) fn render(canvas: &mut Canvas<'_, '_>, area: Rect, pane: Pane, offset: usize) {
    let (app, theme) = (canvas.app, canvas.theme);
    let state = app.pane(pane);
    let columns = fitted(pane, shown(pane, app), state.column_offset, area.width.saturating_sub(MARKER));
    let above = headings_of(pane);
    if above > 0 {
        headings(canvas, area, pane, &columns);
    }
    let body = Rect { y: area.y + above, height: area.height.saturating_sub(above), ..area };
    canvas.viewport.place(pane, body, offset);
    if app.focus == pane {
        canvas.viewport.page_rows = usize::from(body.height);
        canvas.viewport.table_rows = usize::from(body.height);
    }
    let Some(context) = app.context() else { return };
    let table = pane.table();
    let place = |(heading, width): &(Heading, u16)| Some((table.position(heading.name)?, *heading, *width));
    let columns: Vec<(usize, Heading, u16)> = columns.iter().filter_map(place).collect();
    let of_finding = app.marked(pane);
    let is_old = pane == Pane::Findings && app.is_stale();
    for (y, at) in (body.y..body.bottom()).zip(offset..state.rows.len()) {
        let Some(row) = state.rows.get(at).copied() else { break };
        let id = table.id(&context, row);
        let selected = id.is_some() && id == state.selected;
        let marked = id.is_some_and(|id| state.marks.contains(&id));
        let followed = id.is_some() && id == app.follow;
        let pointer = match (selected && app.focus == pane, marked) {
            (true, true) => ">*",
            (true, false) => "> ",
            (false, true) => " *",
            _ if of_finding == Some(at) => "· ",
            (false, false) => "  ",
        };
        let buffer = canvas.frame.buffer_mut();
        buffer.set_stringn(area.x, y, pointer, usize::from(area.width), theme.style(Tone::Key));
        let mut x = area.x + MARKER;
        for (nth, (position, column, width)) in columns.iter().enumerate() {
            let first = nth == 0;
            let cell = table.cell(&context, row, *position, *width);
            // Old rows must be recognizable without colours, too.
            let dim_from = dim_from(&cell, *width, column.align());
            let text = if is_old && first { cell.text.to_lowercase() } else { cell.text };
            let text = crate::text::fit_pad(&text, usize::from(*width), column.align());
            let tone = match cell.tone {
                _ if is_old => Tone::Past,
                _ if followed && first => Tone::Key,
                _ if !state.is_hit(at) => Tone::Dim,
                tone => tone,
            };
            buffer.set_stringn(x, y, text, usize::from(area.right().saturating_sub(x)), theme.style(tone));
            if tone == Tone::Plain && dim_from < *width {
                let end = Rect { x: x + dim_from, y, width: width - dim_from, height: 1 };
                buffer.set_style(end.intersection(area), theme.style(Tone::Dim));
            }
            x = x.saturating_add(width + 1);
        }
        if selected && app.focus == pane {
            buffer.set_style(Rect { x: area.x, y, width: area.width, height: 1 }, theme.selected);
        }
    }
}

fn dim_from(cell: &Cell, width: u16, align: Align) -> u16 {
    let spare = usize::from(width).saturating_sub(crate::text::width(&cell.text));
    let at = if align == Align::Right { spare + cell.dim_from } else { cell.dim_from };
    u16::try_from(at).ok().filter(|_| cell.dim_from > 0).unwrap_or(width)
}

fn headings(canvas: &mut Canvas<'_, '_>, area: Rect, pane: Pane, columns: &[(Heading, u16)]) {
    let state = canvas.app.pane(pane);
    let style = canvas.theme.style(Tone::Dim);
    let mut x = area.x + MARKER;
    for (column, width) in columns {
        let title = format!("{}{}", column.title, state.arrow(column.name));
        let text = crate::text::fit_pad(&title, usize::from(*width), column.align());
        let room = usize::from(area.right().saturating_sub(x));
        canvas.frame.buffer_mut().set_stringn(x, area.y, text, room, style);
        canvas
            .viewport
            .spot(Rect { x, y: area.y, width: *width, height: 1 }, ClickTarget::Heading(pane, column.name));
        x = x.saturating_add(width + 1);
    }
}

/// Omits columns that do not distinguish rows.
fn shown(pane: Pane, app: &App) -> Vec<Heading> {
    let context = app.context();
    let headings = pane.table().headings().into_iter();
    headings.filter_map(|heading| heading.over(context.as_ref())).collect()
}

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// One bar per value, newest at the right, in exactly `columns` columns. A measured zero is the lowest bar; columns before
/// the first measurement are blank. The tallest value reaches the top.
pub(in crate::ui) fn bars(values: &[u32], columns: usize) -> String {
    let most = values.iter().copied().max().unwrap_or(0).max(1);
    let blanks = columns.saturating_sub(values.len());
    let shown = values.iter().skip(values.len().saturating_sub(columns));
    let bar = |value: &u32| {
        // Any value above zero must be taller than zero.
        let step = if *value == 0 { 0 } else { 1 + (u64::from(*value) * 6 / u64::from(most)) };
        usize::try_from(step).ok().and_then(|step| BARS.get(step)).copied().unwrap_or('█')
    };
    std::iter::repeat_n(' ', blanks).chain(shown.map(bar)).collect()
}

#[cfg(test)]
mod tests {
    use super::bars;

    #[test]
    fn bars_have_one_column_each_and_the_newest_is_right() {
        assert_eq!(bars(&[], 4), "    ");
        assert_eq!(bars(&[0, 0], 4), "  ▁▁");
        assert_eq!(bars(&[0, 1, 100], 3), "▁▂█");
        assert_eq!(bars(&[5, 5, 0, 0], 2), "▁▁");
        assert_eq!(bars(&[u32::MAX, 1], 2), "█▂");
    }
}
