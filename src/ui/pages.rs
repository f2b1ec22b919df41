use ratatui::layout::Rect;
use ratatui::widgets::Clear;

use super::{Canvas, split_bottom, split_top};
use crate::app::dialog::{self, Dialog};
use crate::app::line::{Line, Tone};
use crate::app::page::Page;
use crate::app::panes::{Heading, Pane, RowId};
use crate::app::related::RelatedLink;
use crate::app::{App, detail, help};
use crate::model::plan::{Choice, Confirm, Verb};
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

fn render_choices(canvas: &mut Canvas<'_, '_>, area: Rect, title: &str, lines: &[Line], selected: usize) {
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
    render_choices(canvas, area, &format!("Sort {}", pane.title()), &lines, selected);
}

const LABEL: usize = 60;

fn render_related(canvas: &mut Canvas<'_, '_>, area: Rect, related: &[RelatedLink], at: usize) {
    let room = usize::from(area.width).saturating_sub(28).min(LABEL);
    let widest = related.iter().map(|link| crate::text::width(&link.label)).max().unwrap_or(0).min(room);
    let line = |link: &RelatedLink| {
        Line::new()
            .with(format!("{:<10}", link.what), Tone::Dim)
            .with(crate::text::fit_pad(&link.label, widest, Align::Left), Tone::Plain)
            .with(format!("  {}", link.screen.definition().title), Tone::Dim)
    };
    let lines: Vec<Line> = related.iter().map(line).collect();
    render_choices(canvas, area, "Go to", &lines, at);
}

/// Rows besides the text lines: the border, and what is below the lines.
const BESIDE: u16 = 4;

/// Rows of the findings and their strip on a large screen, which the question leaves visible.
const FINDINGS: u16 = 9;
/// Rows that the question can use in any case.
const LEAST: u16 = 15;

/// A question before an action, over everything else.
///
/// ```text
/// ┌ Terminate 27524 app@worker-1 ──────────────────────────────────────────┐
/// │ blocks    2: 0 continue now, 2 still blocked: 3 more must end          │
/// │ still     27565 app@api-stop, 27573 app@api-stop-2                     │
/// │ effect    rolls back its transaction, which may have written           │
/// │ SQL       pg_terminate_backend(27524)                                  │
/// │                                                                        │
/// │ t [this session]   b all 4 blockers: 1 continues now, 1 in turn        │
/// │ [Back] Enter       y terminate                                         │
/// └────────────────────────────────────────────────────────────────────────┘
/// ```
pub(super) fn render_dialog(canvas: &mut Canvas<'_, '_>, area: Rect) {
    let app = canvas.app;
    let Some(dialog) = &app.dialog else {
        canvas.viewport.dialog_rows = 0;
        return;
    };
    let width = dialog::width(area.width);
    let lines = dialog.lines(area.width);
    let mut options = choices(&dialog.choices(), usize::from(width.saturating_sub(4)));
    options.extend(asked(app, dialog));
    if dialog.over.is_some() {
        options.clear();
    }
    let bottom = BESIDE + u16::try_from(options.len()).unwrap_or(0);
    // Below the findings and their strip, if there is room.
    let most = area.height.saturating_sub(FINDINGS).max(LEAST).min(area.height);
    let height = u16::try_from(lines.len()).unwrap_or(u16::MAX).saturating_add(bottom);
    let height = height.max(canvas.viewport.dialog_rows).min(most);
    canvas.viewport.dialog_rows = height;
    let popup = Rect { x: area.x + (area.width - width) / 2, y: area.bottom() - height, width, height };
    let inner = boxed(canvas, popup, &dialog.title());
    let inner = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
    let (body, below) = split_bottom(inner, bottom - 2);
    let room = usize::from(body.height);
    canvas.viewport.page_rows = room.max(1);
    let scroll = dialog.scroll.min(lines.len().saturating_sub(room));
    canvas.lines(body, lines.iter().skip(scroll));
    if lines.len() > room {
        // In the border, if not all lines are visible.
        let text = format!(" {}-{} of {} ", scroll + 1, (scroll + room).min(lines.len()), lines.len());
        let width = u16::try_from(text.len()).unwrap_or(0);
        let x = popup.right().saturating_sub(width + 2).max(popup.x);
        let place = Rect { x, y: popup.bottom().saturating_sub(1), width, height: 1 };
        canvas.line(place, &Line::new().with(text, Tone::Warning));
    }
    let (above, answer) = split_bottom(below, 1);
    canvas.lines(split_top(above, 1).1, &options);
    answers(canvas, answer, dialog);
    canvas.viewport.dialog = Some(dialog.revision);
}

fn choices(choices: &[Choice], room: usize) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for choice in choices {
        let title = match (choice.taken, choice.is_switch) {
            (taken, true) => format!("[{}] {}", if taken { "x" } else { " " }, choice.title),
            (true, false) => format!("[{}]", choice.title),
            (false, false) => choice.title.clone(),
        };
        let mut piece = Line::new().with(choice.letter.to_string(), Tone::Key);
        piece.push(format!(" {title}"), if choice.taken { Tone::Title } else { Tone::Plain });
        match lines.last_mut().filter(|line| line.width() + 3 + piece.width() <= room) {
            Some(line) => {
                line.push("   ", Tone::Plain);
                line.spans.extend(piece.spans);
            }
            None => lines.push(piece),
        }
    }
    lines
}

/// The text to type, if more than a key is needed; an empty line until an answer is possible.
fn asked(app: &App, dialog: &Dialog) -> Option<Line> {
    if !dialog.types() || app.cannot_ask().is_some() {
        return None;
    }
    Some(match &dialog.word {
        _ if !dialog.is_armed() => Line::new(),
        Some(word) if dialog.typed.is_empty() => Line::new().with(word.as_str(), Tone::Warning),
        _ => Line::new().with(dialog.plan.confirm.asks(dialog.plan.verb == Verb::Unlock), Tone::Plain),
    })
}

/// The possible answers: Back, which has the focus, and the one that confirms. "Cancel" is reserved for canceling a query.
fn answers(canvas: &mut Canvas<'_, '_>, area: Rect, dialog: &Dialog) {
    let (label, verb) = ("[Back]", dialog.plan.verb.does());
    let mut line = Line::new().with(label, Tone::Title).with(" Enter   ", Tone::Dim);
    match (&dialog.plan.confirm, canvas.app.cannot_ask()) {
        _ if dialog.over.is_some() => {}
        (_, Some(why)) => line.push(why, Tone::Critical),
        (Confirm::Nothing, _) => line.push(dialog.word.clone().unwrap_or_default(), Tone::Warning),
        _ if !dialog.is_armed() => line.push("…", Tone::Dim),
        (Confirm::Yes, _) => {
            line.push("y", Tone::Key);
            line.push(format!(" {verb}"), Tone::Plain);
        }
        (Confirm::Count(_) | Confirm::Owner(_), _) => {
            let typed = crate::text::one_line(&dialog.typed).into_owned();
            line.push(format!("{verb}: "), Tone::Plain);
            line.push(format!("{}_", crate::text::fit(&typed, 42)), Tone::Key);
        }
    }
    canvas.line(area, &line);
    let button = u16::try_from(label.len()).unwrap_or(0).min(area.width);
    canvas.frame.buffer_mut().set_style(Rect { width: button, ..area }, canvas.theme.selected);
}
