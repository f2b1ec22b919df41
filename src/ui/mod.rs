//! Drawing reads the state of the screens and a theme, and changes neither.
//!
//! Colour follows meaning and is never the only sign: every tone has its words, and `mono` uses modifiers only.

mod body;
mod dialog;
mod footer;
mod header;
pub mod layout;
mod pages;
#[cfg(test)]
mod tests;
pub mod theme;
mod widgets;

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
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        too_small(frame, area, theme);
    } else {
        let (header, rest) = split_top(area, crate::app::HEADER);
        let (body, footer) = split_bottom(rest, 1);
        header::render(frame, header, app, theme);
        if !pages::render_full(frame, body, app, viewport, theme) {
            body::render(frame, body, app, viewport, theme);
        }
        pages::render_popup(frame, body, app, viewport, theme);
        footer::render(frame, footer, app, viewport, theme);
        dialog::render(frame, body, app, viewport, theme);
    }
    if theme.ascii {
        replace(frame.buffer_mut());
    }
}

fn too_small(frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let words = [
        format!("locktop needs {}x{}", SMALLEST.0, SMALLEST.1),
        format!("this is {}x{}", area.width, area.height),
        "q quits".to_owned(),
    ];
    let top = area.height.saturating_sub(3) / 2;
    for (at, text) in (0u16..).zip(&words) {
        let line = Line::new().with(text.as_str(), Tone::Plain);
        let left = area.width.saturating_sub(u16::try_from(line.width()).unwrap_or(0)) / 2;
        draw_line(frame, Rect { x: left, y: top + at, width: area.width, height: 1 }, &line, theme);
    }
}

/// Draws a line at the top left of an area, truncated with an ellipsis if it is too long. Never writes outside the frame.
fn draw_line(frame: &mut Frame<'_>, area: Rect, line: &Line, theme: &Theme) {
    let area = area.intersection(frame.area());
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
        let (end, _) = frame.buffer_mut().set_stringn(x, area.y, &text, room, theme.style(span.tone));
        left = area.right().saturating_sub(end);
        if left == 0 {
            break;
        }
    }
}

fn draw_ends(frame: &mut Frame<'_>, area: Rect, left: &Line, right: &Line, theme: &Theme) {
    let width = u16::try_from(right.width()).unwrap_or(u16::MAX).min(area.width);
    let gap = u16::from(width > 0);
    let start = Rect { width: area.width.saturating_sub(width + gap), ..area };
    draw_line(frame, start, left, theme);
    draw_line(frame, Rect { x: area.right() - width, width, ..area }, right, theme);
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
