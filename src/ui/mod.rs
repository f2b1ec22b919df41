//! Drawing reads the state of the screens and a theme, and changes neither.
//!
//! Colour follows meaning and is never the only sign: every tone has its words, and `mono` uses modifiers only.

mod body;
mod footer;
mod header;
pub mod layout;
mod pages;
#[cfg(test)]
mod tests;
pub mod theme;
mod widgets;

use std::borrow::Borrow;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::App;
pub use crate::app::SMALLEST;
use crate::app::line::{Line, Tone};
use layout::Viewport;
use theme::Theme;

pub fn render(frame: &mut Frame<'_>, app: &App, viewport: &mut Viewport, theme: &Theme) {
    let area = frame.area();
    viewport.begin();
    let mut canvas = Canvas { app, theme, frame, viewport };
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        too_small(&mut canvas, area);
    } else {
        let (header, rest) = split_top(area, crate::app::HEADER);
        let (body, footer) = split_bottom(rest, 1);
        header::render(&mut canvas, header);
        if !pages::render_full(&mut canvas, body) {
            body::render(&mut canvas, body);
        }
        pages::render_popup(&mut canvas, body);
        footer::render(&mut canvas, footer);
        pages::render_dialog(&mut canvas, body);
    }
    if theme.ascii {
        replace(canvas.frame.buffer_mut());
    }
}

/// What one frame is drawn from, and what it is drawn to.
struct Canvas<'a, 'b> {
    app: &'a App,
    theme: &'a Theme,
    frame: &'a mut Frame<'b>,
    viewport: &'a mut Viewport,
}

impl Canvas<'_, '_> {
    /// Draws a line at the top left of an area, truncated with an ellipsis if it is too long. Never writes outside the
    /// frame.
    fn line(&mut self, area: Rect, line: &Line) {
        let area = area.intersection(self.frame.area());
        if area.is_empty() {
            return;
        }
        let mut left = area.width;
        let whole = line.width() <= usize::from(area.width);
        for span in &line.spans {
            let room = usize::from(left);
            // The span at the edge ends in an ellipsis, even if only later spans are cut.
            let text = if whole { span.text.as_str().into() } else { crate::text::fit(&span.text, room) };
            let x = area.x + (area.width - left);
            let style = self.theme.style(span.tone);
            let (end, _) = self.frame.buffer_mut().set_stringn(x, area.y, &text, room, style);
            left = area.right().saturating_sub(end);
            if left == 0 {
                break;
            }
        }
    }

    /// Draws as many lines as there are rows.
    fn lines(&mut self, area: Rect, lines: impl IntoIterator<Item = impl Borrow<Line>>) {
        for (y, line) in (area.y..area.bottom()).zip(lines) {
            self.line(Rect { y, height: 1, ..area }, line.borrow());
        }
    }

    fn ends(&mut self, area: Rect, left: &Line, right: &Line) {
        let width = u16::try_from(right.width()).unwrap_or(u16::MAX).min(area.width);
        let gap = u16::from(width > 0);
        self.line(Rect { width: area.width.saturating_sub(width + gap), ..area }, left);
        self.line(Rect { x: area.right() - width, width, ..area }, right);
    }
}

fn too_small(canvas: &mut Canvas<'_, '_>, area: Rect) {
    let words = [
        format!("locktop needs {}x{}", SMALLEST.0, SMALLEST.1),
        format!("this is {}x{}", area.width, area.height),
        "q quits".to_owned(),
    ];
    let top = area.height.saturating_sub(3) / 2;
    for (at, text) in (0u16..).zip(&words) {
        let line = Line::new().with(text.as_str(), Tone::Plain);
        let left = area.width.saturating_sub(u16::try_from(line.width()).unwrap_or(0)) / 2;
        canvas.line(Rect { x: left, y: top + at, width: area.width, height: 1 }, &line);
    }
}

fn split_top(area: Rect, height: u16) -> (Rect, Rect) {
    let height = height.min(area.height);
    (Rect { height, ..area }, Rect { y: area.y + height, height: area.height - height, ..area })
}

fn split_bottom(area: Rect, height: u16) -> (Rect, Rect) {
    let height = height.min(area.height);
    (Rect { height: area.height - height, ..area }, Rect { y: area.bottom() - height, height, ..area })
}

/// Replaces every non-ASCII character by an ASCII one of the same width. Works on the finished screen, so that nothing is
/// missed.
fn replace(buffer: &mut Buffer) {
    let area = buffer.area;
    for y in area.top()..area.bottom() {
        for x in area.left()..area.right() {
            let Some(cell) = buffer.cell_mut((x, y)) else { continue };
            if cell.symbol().is_ascii() {
                continue;
            }
            let width = crate::text::width(cell.symbol());
            let replacement = glyph(cell.symbol());
            cell.set_char(replacement);
            for beside in 1..u16::try_from(width).unwrap_or(1).max(1) {
                if let Some(cell) = buffer.cell_mut((x.saturating_add(beside), y)) {
                    cell.set_char(replacement);
                }
            }
        }
    }
}

fn glyph(symbol: &str) -> char {
    match symbol {
        "─" | "▃" => '-',
        "│" | "├" => '|',
        "└" => '`',
        "┌" | "┐" | "┘" | "▅" => '+',
        "…" | "±" => '~',
        "≥" | "→" => '>',
        "≤" => '<',
        "×" => 'x',
        "·" | "▂" | "░" => '.',
        "↑" | "␛" | "▲" => '^',
        "↓" => 'v',
        "▁" => '_',
        "▄" => '=',
        "▆" => '*',
        "▇" => '%',
        "█" => '#',
        _ => '?',
    }
}
