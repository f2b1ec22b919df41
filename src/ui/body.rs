use std::borrow::Cow;

use ratatui::layout::Rect;

use super::layout::PaneArea;
use super::{Canvas, header, layout, pages, split_bottom, split_top, widgets};
use crate::app::context::Context;
use crate::app::line::{Line, Tone};
use crate::app::panes::{Fact, Pane, Total, findings};
use crate::app::screens::Screen;
use crate::app::strip::{strip, strip_below};
use crate::app::{App, TALL, subject};
use crate::model::view::ConnectionState;

/// Facts in a title that are shorter than this are shown whole or not at all.
const SHORT: usize = 24;

/// Column at which the words of a finding and the strip begin.
const INDENT: usize = 14;

pub(super) fn render(canvas: &mut Canvas<'_, '_>, area: Rect) {
    let app = canvas.app;
    let strip = if app.size.1 < TALL { 3 } else { 4 };
    let (area, below) = split_bottom(area, if app.has_strip_below() { strip } else { 0 });
    draw_strip(canvas, below);
    let (places, detail) = layout::places(area, app);
    for PaneArea { pane, area, is_line } in places {
        if is_line {
            draw_title(canvas, area, pane, None);
        } else if pane == Pane::Findings {
            draw_findings(canvas, area);
        } else {
            draw(canvas, area, pane);
        }
    }
    if let Some(area) = detail {
        draw_detail(canvas, area);
    }
}

fn draw_detail(canvas: &mut Canvas<'_, '_>, area: Rect) {
    let app = canvas.app;
    let Some((context, row)) = app.context().zip(app.pane(app.focus).selected) else { return };
    let row = subject::subject_of(&context, row).unwrap_or(row);
    let lines = app.detail_lines(row, usize::from(area.width)).unwrap_or_default();
    pages::scrolled(canvas, area, &crate::app::detail::title(&context, row), &lines, 0);
}

fn draw_strip(canvas: &mut Canvas<'_, '_>, area: Rect) {
    let Some((title, lines)) = strip_below(canvas.app).filter(|_| area.height > 0) else { return };
    let mut head = Line::new().with("─ ", Tone::Dim).with(title, Tone::Title).with(" ", Tone::Plain);
    head.push("─".repeat(usize::from(area.width).saturating_sub(head.width())), Tone::Dim);
    let indented = lines.into_iter().map(|line| indented(line, 2));
    canvas.lines(area, std::iter::once(head).chain(indented));
}

fn indented(line: Line, columns: usize) -> Line {
    let mut shown = Line::new().with(" ".repeat(columns), Tone::Plain);
    shown.spans.extend(line.spans);
    shown
}

fn draw_findings(canvas: &mut Canvas<'_, '_>, area: Rect) {
    let app = canvas.app;
    let about = match app.shows_detail() {
        true => 0,
        false if app.size.1 >= TALL => 3,
        false => 2,
    };
    let (mut above, below) = split_bottom(area, about);
    let down = down(app, above);
    if app.context().is_none() || !down.is_empty() {
        let (title, rest) = split_top(above, 1);
        draw_title(canvas, title, Pane::Findings, None);
        canvas.lines(rest, &down);
        let used = u16::try_from(down.len()).unwrap_or(u16::MAX).min(rest.height);
        (_, above) = split_top(rest, used);
        if app.context().is_some() && above.height > 0 {
            let offset = widgets::offset(canvas, above, Pane::Findings);
            widgets::render(canvas, above, Pane::Findings, offset);
        }
    } else {
        draw(canvas, above, Pane::Findings);
    }
    canvas.lines(below, strip(app).into_iter().map(|line| indented(line, INDENT)));
}

fn down(app: &App, area: Rect) -> Vec<Line> {
    match app.link() {
        ConnectionState::Down { .. } if app.past.is_none() => {
            header::why_down(app, area.width, usize::from(area.height.saturating_sub(1)))
        }
        _ if app.context().is_none() => {
            let target = crate::text::one_line_prefix(&app.settings.target, 500);
            vec![Line::new().with(format!("  connecting to {target} …"), Tone::Plain)]
        }
        _ => Vec::new(),
    }
}

fn draw(canvas: &mut Canvas<'_, '_>, area: Rect, pane: Pane) {
    let app = canvas.app;
    let (title, mut rest) = split_top(area, 1);
    let Some(context) = app.context() else { return draw_title(canvas, title, pane, None) };
    if let Some(above) = pane.definition().above {
        let (line, below) = split_top(rest, 1);
        canvas.line(line, &above(&context));
        rest = below;
    }
    let offset = widgets::offset(canvas, rest, pane);
    let out = scrolled_out(&context, (pane, offset), usize::from(rest.height), app);
    draw_title(canvas, title, pane, out);
    let is_quiet = pane == Pane::Findings && app.pane(pane).filter.is_empty();
    if is_quiet {
        let rows = u16::try_from(app.pane(pane).rows.len()).unwrap_or(u16::MAX);
        canvas.lines(split_top(rest, rows).1, findings::quiet(&context));
    }
    if app.pane(pane).rows.is_empty() {
        if !is_quiet {
            let room = usize::from(rest.width).saturating_sub(2);
            let line = Line::new().with(format!("  {}", nothing(pane, app, &context, room)), Tone::Dim);
            let skipped = u16::from(!pane.definition().is_headless);
            canvas.line(split_top(rest, skipped).1, &line);
        }
        if app.focus == pane {
            canvas.viewport.page_rows = usize::from(rest.height);
        }
        return;
    }
    widgets::render(canvas, rest, pane, offset);
}

fn nothing(pane: Pane, app: &App, context: &Context<'_>, room: usize) -> Cow<'static, str> {
    let definition = pane.definition();
    match definition.absent.filter(|_| !app.has().has(pane)) {
        _ if !app.pane(pane).filter.is_empty() => "no row matches the filter; Esc clears it".into(),
        Some(absent) => absent.into(),
        None if (definition.read)(context).at.is_none() => "not read yet".into(),
        None => definition.calm.map_or(definition.empty.into(), |calm| calm(context, room).into()),
    }
}

/// `↑ 12 above`: rows scrolled out at the top, in the tone of the first one, which is the worst. `↓ 3`: findings for which
/// there is no room, in the tone of the worst of them.
fn scrolled_out(
    context: &Context<'_>,
    (pane, offset): (Pane, usize),
    height: usize,
    app: &App,
) -> Option<Fact> {
    let rows = &app.pane(pane).rows;
    let below = rows.get(offset + height..).unwrap_or_default();
    let (out, words) = if pane == Pane::Findings && !below.is_empty() {
        (below, format!("↓ {}", crate::text::count(below.len() as u64)))
    } else {
        let first = rows.first().filter(|_| offset > 0)?;
        (std::slice::from_ref(first), format!("↑ {} above", crate::text::count(offset as u64)))
    };
    let table = pane.table();
    let columns = table.headings();
    let has = |tone| {
        let cells = || columns.iter().enumerate();
        out.iter()
            .any(|row| cells().any(|(at, column)| table.cell(context, *row, at, column.min).tone == tone))
    };
    let worst = [Tone::Critical, Tone::Warning].into_iter().find(|tone| has(*tone));
    Some((words, worst.unwrap_or(if pane == Pane::Findings { Tone::Dim } else { Tone::Warning })))
}

/// `─ Chains · 2 roots · 19 blocked ───── ↑ 12 above ─`
fn draw_title(canvas: &mut Canvas<'_, '_>, area: Rect, pane: Pane, out: Option<Fact>) {
    let app = canvas.app;
    let focused = app.focus == pane && app.visible_panes().len() > 1;
    let right = out.map_or_else(Line::new, |(text, tone)| Line::new().with(text, tone).with(" ─", Tone::Dim));
    let room = usize::from(area.width).saturating_sub(right.width() + usize::from(right.width() > 0));
    let mut line = Line::new().with("─ ", Tone::Dim);
    let name = pane.definition().advisory_title.filter(|_| !app.all_locks).unwrap_or(pane.title());
    line.push(name, if focused { Tone::Key } else { Tone::Title });
    for (text, tone) in facts(pane, app) {
        let width = crate::text::width(&text);
        // A truncated number reads as another number, so short facts are omitted rather than cut.
        if width < SHORT && line.width() + 3 + width > room {
            break;
        }
        line.push(" · ", Tone::Dim);
        line.push(text, tone);
    }
    line.push(" ", Tone::Plain);
    line.push("─".repeat(room.saturating_sub(line.width())), Tone::Dim);
    canvas.ends(area, &line, &right);
}

fn facts(pane: Pane, app: &App) -> Vec<Fact> {
    let Some(context) = app.context() else { return Vec::new() };
    // An empty pane says so in its title, since a collapsed one has no other place for it.
    let state = app.pane(pane);
    let is_calm = pane != Pane::Findings && state.rows.is_empty() && state.filter.is_empty();
    if is_calm && app.screen == Screen::Overview && !app.zoom {
        let nothing = (nothing(pane, app, &context, usize::MAX).into_owned(), Tone::Dim);
        // The pane may be empty because its rows could not be read.
        let read = pane.facts(&context, Total { rows: 0, all_locks: false }).into_iter();
        return std::iter::once(nothing).chain(read.filter(|(_, tone)| *tone == Tone::Past)).collect();
    }
    let total = Total { rows: app.pane(pane).total, all_locks: app.all_locks };
    let mut facts = pane.facts(&context, total);
    if pane == Pane::Findings && app.is_stale() {
        facts.push((format!("{} old", crate::text::duration(app.silence.floor())), Tone::Past));
    }
    facts.extend(row_facts(app, pane));
    facts
}

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
        let title = heading.map_or(sort.column, |heading| heading.title);
        facts.push((format!("by {title} {}", state.arrow(sort.column)), Tone::Key));
    }
    if !state.marks.is_empty() {
        facts.push((format!("{} marked", state.marks.len()), Tone::Key));
    }
    facts
}
