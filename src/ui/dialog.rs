//! A question before an action, over everything else.
//!
//! ```text
//! ┌ Terminate 27524 app@worker-1 ──────────────────────────────────────────┐
//! │ blocks    2: 0 continue now, 2 still blocked: 3 more must end          │
//! │ still     27565 app@api-stop, 27573 app@api-stop-2                     │
//! │ effect    rolls back its transaction, which may have written           │
//! │ SQL       pg_terminate_backend(27524)                                  │
//! │                                                                        │
//! │ t [this session]   b all 4 blockers: 1 continues now, 1 in turn        │
//! │ [Back] Enter       y terminate                                         │
//! └────────────────────────────────────────────────────────────────────────┘
//! ```

use ratatui::layout::Rect;

use super::pages::boxed;
use super::{Canvas, split_bottom, split_top};
use crate::app::App;
use crate::app::dialog::{self, Dialog};
use crate::app::line::{Line, Tone};
use crate::model::plan::{Choice, Confirm, Verb};

/// Rows besides the text lines: the border, and what is below the lines.
const BESIDE: u16 = 4;

/// Rows of the findings and their strip on a large screen, which the question leaves visible.
const FINDINGS: u16 = 9;
/// Rows that the question can use in any case.
const LEAST: u16 = 15;

pub(super) fn render(canvas: &mut Canvas<'_, '_>, area: Rect) {
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
