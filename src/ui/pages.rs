use ratatui::layout::Rect;
use ratatui::widgets::Clear;

use super::{Canvas, split_top};
use crate::app::line::{Line, Tone};
use crate::app::page::Page;
use crate::app::panes::{Heading, Pane, RowId};
use crate::app::related::Related;
use crate::app::{detail, help};
use crate::text::Align;

pub(super) fn render_full(canvas: &mut Canvas<'_, '_>, area: Rect) -> bool {
    let app = canvas.app;
    let full = app.pages.iter().rev().find(|page| !matches!(page, Page::Sort { .. } | Page::Related { .. }));
    match full {
        Some(Page::Help { scroll, search }) => render_help(canvas, area, *scroll, search),
        Some(Page::Detail { subject, scroll }) => render_detail(canvas, area, *subject, *scroll),
        Some(Page::Sort { .. } | Page::Related { .. }) | None => return false,
    }
    true
}

pub(super) fn render_popup(canvas: &mut Canvas<'_, '_>, area: Rect) {
    match canvas.app.pages.last() {
        Some(Page::Sort { pane, selected }) => render_sort(canvas, area, *pane, *selected),
        Some(Page::Related { links, at }) => render_related(canvas, area, links, *at),
        _ => {}
    }
}

fn choices(canvas: &mut Canvas<'_, '_>, area: Rect, title: &str, lines: &[Line], selected: usize) {
    canvas.viewport.page_rows = 5;
    let widest = lines.iter().map(Line::width).max().unwrap_or(0);
    let width = u16::try_from(widest + 6).unwrap_or(u16::MAX).max(34).min(area.width);
    let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX).min(area.height);
    let popup =
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    let inner = boxed(canvas, popup, title);
    let skipped = (selected + 1).saturating_sub(usize::from(inner.height));
    for (y, (at, line)) in (inner.y..inner.bottom()).zip(lines.iter().enumerate().skip(skipped)) {
        let row = Rect { y, height: 1, ..inner };
        let mut shown = Line::new().with(if at == selected { "> " } else { "  " }, Tone::Key);
        shown.spans.extend(line.spans.iter().cloned());
        canvas.line(row, &shown);
        if at == selected {
            canvas.frame.buffer_mut().set_style(row, canvas.theme.selected);
        }
    }
}

pub(super) fn scrolled(canvas: &mut Canvas<'_, '_>, area: Rect, title: &str, lines: &[Line], scroll: usize) {
    let room = usize::from(area.height.saturating_sub(1));
    let scroll = scroll.min(lines.len().saturating_sub(room));
    let mut head = Line::new().with("─ ", Tone::Dim).with(title, Tone::Title).with(" ", Tone::Dim);
    let place = if lines.len() > room {
        format!(" {}-{} of {} ─", scroll + 1, (scroll + room).min(lines.len()), lines.len())
    } else {
        String::new()
    };
    let rest = usize::from(area.width).saturating_sub(head.width() + place.len());
    head.push("─".repeat(rest), Tone::Dim);
    head.push(place, Tone::Dim);
    canvas.line(area, &head);
    canvas.lines(split_top(area, 1).1, lines.iter().skip(scroll));
}

pub(super) fn boxed(canvas: &mut Canvas<'_, '_>, area: Rect, title: &str) -> Rect {
    let area = area.intersection(canvas.frame.area());
    canvas.frame.render_widget(Clear, area);
    if area.width < 2 || area.height < 2 {
        return Rect::default();
    }
    let inner = usize::from(area.width - 2);
    let title = crate::text::fit(title, inner.saturating_sub(2)).into_owned();
    let rest = "─".repeat(inner.saturating_sub(crate::text::width(&title) + 2));
    let top = Line::new().with("┌ ", Tone::Dim).with(title, Tone::Title).with(format!(" {rest}┐"), Tone::Dim);
    canvas.line(area, &top);
    for y in area.y + 1..area.bottom() - 1 {
        for x in [area.x, area.right() - 1] {
            let side = Rect { x, y, width: 1, height: 1 };
            canvas.line(side, &Line::new().with("│", Tone::Dim));
        }
    }
    let bottom = Line::new().with(format!("└{}┘", "─".repeat(inner)), Tone::Dim);
    canvas.line(Rect { y: area.bottom() - 1, height: 1, ..area }, &bottom);
    Rect { x: area.x + 1, y: area.y + 1, width: area.width - 2, height: area.height - 2 }
}

fn render_help(canvas: &mut Canvas<'_, '_>, area: Rect, scroll: usize, search: &str) {
    canvas.viewport.page_rows = usize::from(area.height.saturating_sub(1));
    let lines = help::lines(canvas.app, usize::from(area.width), search);
    let title = if search.is_empty() { "Help".to_owned() } else { format!("Help · /{search}") };
    scrolled(canvas, area, &title, &lines, scroll);
}

fn render_detail(canvas: &mut Canvas<'_, '_>, area: Rect, subject: RowId, scroll: usize) {
    canvas.viewport.page_rows = usize::from(area.height.saturating_sub(1));
    let Some(context) = canvas.app.context() else { return };
    let title = detail::title(&context, subject);
    let gone = || vec![Line::new(), Line::new().with("  No longer exists. Esc returns.", Tone::Warning)];
    let lines = canvas.app.detail_lines(subject, usize::from(area.width)).unwrap_or_else(gone);
    scrolled(canvas, area, &title, &lines, scroll);
}

fn render_sort(canvas: &mut Canvas<'_, '_>, area: Rect, pane: Pane, selected: usize) {
    let state = canvas.app.pane(pane);
    let line = |column: &Heading| {
        let text = format!("{} {}", column.title, state.arrow(column.name));
        Line::new().with(text.trim_end(), Tone::Plain)
    };
    let usual = Line::new().with("default (worst first)", Tone::Plain);
    let lines: Vec<Line> = pane.table().headings().iter().map(line).chain([usual]).collect();
    choices(canvas, area, &format!("Sort {}", pane.title()), &lines, selected);
}

const LABEL: usize = 60;

fn render_related(canvas: &mut Canvas<'_, '_>, area: Rect, related: &[Related], at: usize) {
    let room = usize::from(area.width).saturating_sub(28).min(LABEL);
    let widest = related.iter().map(|link| crate::text::width(&link.label)).max().unwrap_or(0).min(room);
    let line = |link: &Related| {
        Line::new()
            .with(format!("{:<10}", link.what), Tone::Dim)
            .with(crate::text::fit_pad(&link.label, widest, Align::Left), Tone::Plain)
            .with(format!("  {}", link.screen.definition().title), Tone::Dim)
    };
    let lines: Vec<Line> = related.iter().map(line).collect();
    choices(canvas, area, "Go to", &lines, at);
}
