//! The panes of a screen.

use ratatui::Frame;
use ratatui::layout::Rect;

use super::layout::Need;
use super::theme::Theme;
use super::viewport::Viewport;
use super::widgets::table;
use super::{draw_ends, draw_line, layout, split_top};
use crate::app::App;
use crate::app::context::Context;
use crate::app::line::{Line, Tone};
use crate::app::panes::{Fact, Pane, Total};

/// Facts in a title that are shorter than this are shown whole or not at all.
const SHORT: usize = 24;

pub(super) fn render(frame: &mut Frame<'_>, area: Rect, app: &App, viewport: &mut Viewport, theme: &Theme) {
    let panes = app.visible_panes();
    let need = |pane: &Pane| match app.screen.share(*pane) {
        _ if panes.len() > 1 && is_calm(*pane, app) => Need::Line,
        share => Need::Share(share),
    };
    let needs: Vec<Need> = panes.iter().map(need).collect();
    for ((pane, area), need) in panes.iter().zip(layout::areas(area, &needs)).zip(needs) {
        if need == Need::Line {
            draw_calm(frame, area, *pane, app, theme);
        } else {
            draw(frame, area, *pane, app, viewport, theme);
        }
    }
}

/// Whether a pane has nothing to show, and no filter hides it.
fn is_calm(pane: Pane, app: &App) -> bool {
    let state = app.pane(pane);
    app.context().is_some() && state.rows.is_empty() && state.filter.is_empty()
}

/// `─ Advisory · no advisory lock is held ─────`
fn draw_calm(frame: &mut Frame<'_>, area: Rect, pane: Pane, app: &App, theme: &Theme) {
    let Some(context) = app.context() else { return };
    let mut facts = vec![(nothing(pane, app, &context).to_owned(), Tone::Dim)];
    // Why there is nothing may be that it could not be read.
    facts.extend(self::facts(pane, app).into_iter().filter(|(_, tone)| *tone == Tone::Past));
    draw_title(frame, area, (pane, facts), None, app, theme);
}

fn draw(frame: &mut Frame<'_>, area: Rect, pane: Pane, app: &App, viewport: &mut Viewport, theme: &Theme) {
    let (title, mut rest) = split_top(area, 1);
    let Some(context) = app.context() else {
        return draw_title(frame, title, (pane, facts(pane, app)), None, app, theme);
    };
    if let Some(above) = pane.definition().above {
        let (line, below) = split_top(rest, 1);
        draw_line(frame, line, &above(&context), theme);
        rest = below;
    }
    let offset = table::offset(rest, pane, app, viewport);
    let out = scrolled_out(&context, pane, app, offset);
    draw_title(frame, title, (pane, facts(pane, app)), out, app, theme);
    if app.pane(pane).rows.is_empty() {
        let line = Line::new().with(format!("  {}", nothing(pane, app, &context)), Tone::Dim);
        draw_line(frame, Rect { y: rest.y + 1, height: rest.height.saturating_sub(1), ..rest }, &line, theme);
        if app.focus == pane {
            viewport.page_rows = usize::from(rest.height);
        }
        return;
    }
    table::render(frame, rest, (pane, offset), app, viewport, theme);
}

/// What stands in place of the rows of an empty table.
fn nothing(pane: Pane, app: &App, context: &Context<'_>) -> &'static str {
    let definition = pane.definition();
    match definition.absent.filter(|_| !(definition.is_there)(app.has())) {
        _ if !app.pane(pane).filter.is_empty() => "no row matches the filter; Esc clears it",
        Some(absent) => absent,
        None if (definition.read)(context).at.is_none() => "not read yet",
        None => definition.empty,
    }
}

/// `↑ 12 above`: rows that are scrolled out at the top, in the tone of the first of them, which is the worst.
fn scrolled_out(context: &Context<'_>, pane: Pane, app: &App, offset: usize) -> Option<Fact> {
    let first = app.pane(pane).rows.first().copied().filter(|_| offset > 0)?;
    let table = pane.table();
    let tones = table.headings();
    let mut tones =
        tones.iter().enumerate().map(|(at, column)| table.cell(context, first, at, column.min).tone);
    let tone = if tones.any(|tone| tone == Tone::Critical) { Tone::Critical } else { Tone::Warning };
    Some((format!("↑ {} above", crate::text::count(offset as u64)), tone))
}

/// `─ Chains · 2 roots · 19 blocked ───── ↑ 12 above ─`
fn draw_title(
    frame: &mut Frame<'_>,
    area: Rect,
    (pane, facts): (Pane, Vec<Fact>),
    out: Option<Fact>,
    app: &App,
    theme: &Theme,
) {
    let focused = app.focus == pane && app.visible_panes().len() > 1;
    let right = out.map_or_else(Line::new, |(text, tone)| Line::new().with(text, tone).with(" ─", Tone::Dim));
    let room = usize::from(area.width).saturating_sub(right.width() + usize::from(right.width() > 0));
    let mut line = Line::new().with("─ ", Tone::Dim);
    line.push(pane.title(), if focused { Tone::Key } else { Tone::Title });
    for (text, tone) in facts {
        let width = crate::text::width(&text);
        // A number without its end is another number: what is short is left out rather than cut.
        if width < SHORT && line.width() + 3 + width > room {
            break;
        }
        line.push(" · ", Tone::Dim);
        line.push(text, tone);
    }
    line.push(" ", Tone::Plain);
    line.push("─".repeat(room.saturating_sub(line.width())), Tone::Dim);
    draw_ends(frame, area, &line, &right, theme);
}

/// What the title of a pane says beside its name.
fn facts(pane: Pane, app: &App) -> Vec<Fact> {
    let Some(context) = app.context() else { return Vec::new() };
    let total = Total { rows: app.pane(pane).total, all_locks: app.all_locks };
    let mut facts = pane.facts(&context, total);
    facts.extend(row_facts(app, pane));
    facts
}

/// What a title says of filter, order and marks.
fn row_facts(app: &App, pane: Pane) -> Vec<Fact> {
    let state = app.pane(pane);
    let mut facts = Vec::new();
    if !state.filter_text.is_empty() {
        let text = crate::text::fit(&state.filter_text, 24).into_owned();
        facts.push((format!("/{text} shows {} of {}", state.hits(), state.total), Tone::Key));
    }
    if let Some(sort) = state.sort {
        let headings = pane.table().headings();
        let heading = headings.iter().find(|heading| heading.name == sort.column);
        let arrow = if sort.descending { "↓" } else { "↑" };
        facts.push((
            format!("by {} {arrow}", heading.map_or(sort.column, |heading| heading.title)),
            Tone::Key,
        ));
    }
    if !state.marks.is_empty() {
        facts.push((format!("{} marked", state.marks.len()), Tone::Key));
    }
    facts
}
