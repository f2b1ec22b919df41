use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::widgets::Clear;

use super::draw_line;
use super::layout::Viewport;
use super::theme::Theme;
use crate::app::line::{Line, Tone};
use crate::app::page::Page;
use crate::app::panes::{Pane, RowId};
use crate::app::related::Related;
use crate::app::{App, detail, help};

pub(super) fn render_full(
    frame: &mut Frame<'_>,
    area: Rect,
    app: &App,
    viewport: &mut Viewport,
    theme: &Theme,
) -> bool {
    let full = app.pages.iter().rev().find(|page| !matches!(page, Page::Sort { .. } | Page::Related { .. }));
    match full {
        Some(Page::Help { scroll, search }) => {
            render_help(frame, area, app, (*scroll, search), viewport, theme);
        }
        Some(Page::Detail { subject, scroll }) => {
            render_detail(frame, area, app, (*subject, *scroll), viewport, theme);
        }
        Some(Page::Sort { .. } | Page::Related { .. }) | None => return false,
    }
    true
}

pub(super) fn render_popup(
    frame: &mut Frame<'_>,
    area: Rect,
    app: &App,
    viewport: &mut Viewport,
    theme: &Theme,
) {
    match app.pages.last() {
        Some(Page::Sort { pane, selected }) => {
            viewport.page_rows = 5;
            render_sort(frame, area, app, (*pane, *selected), theme);
        }
        Some(Page::Related { links, at }) => {
            viewport.page_rows = 5;
            render_related(frame, area, (links, *at), theme);
        }
        _ => {}
    }
}

fn choices(
    frame: &mut Frame<'_>,
    area: Rect,
    title: &str,
    (lines, selected): (&[Line], usize),
    theme: &Theme,
) {
    let widest = lines.iter().map(Line::width).max().unwrap_or(0);
    let width = u16::try_from(widest + 6).unwrap_or(u16::MAX).max(34).min(area.width);
    let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX).min(area.height);
    let popup =
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    let inner = boxed(frame, popup, title, theme);
    let skipped = (selected + 1).saturating_sub(usize::from(inner.height));
    for (y, (at, line)) in (inner.y..inner.bottom()).zip(lines.iter().enumerate().skip(skipped)) {
        let row = Rect { y, height: 1, ..inner };
        let mut shown = Line::new().with(if at == selected { "> " } else { "  " }, Tone::Key);
        shown.spans.extend(line.spans.iter().cloned());
        draw_line(frame, row, &shown, theme);
        if at == selected {
            frame.buffer_mut().set_style(row, theme.selected);
        }
    }
}

pub(super) fn scrolled(
    frame: &mut Frame<'_>,
    area: Rect,
    title: &str,
    lines: &[Line],
    scroll: usize,
    theme: &Theme,
) {
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
    draw_line(frame, Rect { height: 1, ..area }, &head, theme);
    for (y, line) in (area.y + 1..area.bottom()).zip(lines.iter().skip(scroll)) {
        draw_line(frame, Rect { y, height: 1, ..area }, line, theme);
    }
}

pub(super) fn boxed(frame: &mut Frame<'_>, area: Rect, title: &str, theme: &Theme) -> Rect {
    let area = area.intersection(frame.area());
    frame.render_widget(Clear, area);
    if area.width < 2 || area.height < 2 {
        return Rect::default();
    }
    let inner = usize::from(area.width - 2);
    let title = crate::text::fit(title, inner.saturating_sub(2)).into_owned();
    let rest = "─".repeat(inner.saturating_sub(crate::text::width(&title) + 2));
    let top = Line::new().with("┌ ", Tone::Dim).with(title, Tone::Title).with(format!(" {rest}┐"), Tone::Dim);
    draw_line(frame, Rect { height: 1, ..area }, &top, theme);
    for y in area.y + 1..area.bottom() - 1 {
        for x in [area.x, area.right() - 1] {
            let side = Rect { x, y, width: 1, height: 1 };
            draw_line(frame, side, &Line::new().with("│", Tone::Dim), theme);
        }
    }
    let bottom = Line::new().with(format!("└{}┘", "─".repeat(inner)), Tone::Dim);
    draw_line(frame, Rect { y: area.bottom() - 1, height: 1, ..area }, &bottom, theme);
    Rect { x: area.x + 1, y: area.y + 1, width: area.width - 2, height: area.height - 2 }
}

fn render_help(
    frame: &mut Frame<'_>,
    area: Rect,
    app: &App,
    (scroll, search): (usize, &str),
    viewport: &mut Viewport,
    theme: &Theme,
) {
    viewport.page_rows = usize::from(area.height.saturating_sub(1));
    let lines = help::lines(app, usize::from(area.width), search);
    let title = if search.is_empty() { "Help".to_owned() } else { format!("Help · /{search}") };
    scrolled(frame, area, &title, &lines, scroll, theme);
}

fn render_detail(
    frame: &mut Frame<'_>,
    area: Rect,
    app: &App,
    (subject, scroll): (RowId, usize),
    viewport: &mut Viewport,
    theme: &Theme,
) {
    viewport.page_rows = usize::from(area.height.saturating_sub(1));
    let Some(context) = app.context() else { return };
    let title = detail::title(&context, subject);
    let lines = app.detail_lines(subject, usize::from(area.width)).unwrap_or_else(gone);
    scrolled(frame, area, &title, &lines, scroll, theme);
}

fn gone() -> Vec<Line> {
    vec![Line::new(), Line::new().with("  No longer exists. Esc returns.", Tone::Warning)]
}

fn render_sort(frame: &mut Frame<'_>, area: Rect, app: &App, (pane, selected): (Pane, usize), theme: &Theme) {
    let current = app.pane(pane).sort;
    let line = |(title, name): (&str, &str)| {
        let arrow = match current.filter(|sort| sort.column == name) {
            Some(sort) if sort.descending => " ↓",
            Some(_) => " ↑",
            None => "",
        };
        Line::new().with(format!("{title}{arrow}"), Tone::Plain)
    };
    let headings = pane.table().headings();
    let columns = headings.iter().map(|column| line((column.title, column.name)));
    let usual = Line::new().with("default (worst first)", Tone::Plain);
    let lines: Vec<Line> = columns.chain([usual]).collect();
    choices(frame, area, &format!("Sort {}", pane.title()), (&lines, selected), theme);
}

const LABEL: usize = 60;

fn render_related(frame: &mut Frame<'_>, area: Rect, (related, at): (&[Related], usize), theme: &Theme) {
    let room = usize::from(area.width).saturating_sub(28).min(LABEL);
    let widest = related.iter().map(|link| crate::text::width(&link.label)).max().unwrap_or(0).min(room);
    let line = |link: &Related| {
        let label = crate::text::fit(&link.label, widest);
        let rest = widest.saturating_sub(crate::text::width(&label));
        Line::new()
            .with(format!("{:<10}", link.what), Tone::Dim)
            .with(format!("{label}{}", " ".repeat(rest)), Tone::Plain)
            .with(format!("  {}", link.screen.definition().title), Tone::Dim)
    };
    let lines: Vec<Line> = related.iter().map(line).collect();
    choices(frame, area, "Go to", (&lines, at), theme);
}
