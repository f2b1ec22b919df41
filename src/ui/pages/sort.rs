//! The columns to sort by.

use ratatui::Frame;
use ratatui::layout::Rect;

use crate::app::App;
use crate::app::line::{Line, Tone};
use crate::app::panes::Pane;
use crate::ui::draw_line;
use crate::ui::theme::Theme;

pub(super) fn render(
    frame: &mut Frame<'_>,
    area: Rect,
    app: &App,
    (pane, selected): (Pane, usize),
    theme: &Theme,
) {
    let columns = pane.table().headings();
    let height = u16::try_from(columns.len() + 2).unwrap_or(u16::MAX).min(area.height);
    let width = 34.min(area.width);
    let popup =
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    let inner = super::boxed(frame, popup, &format!("Sort {}", pane.title()), theme);
    let current = app.pane(pane).sort;
    for (y, (at, column)) in (inner.y..inner.bottom()).zip(columns.iter().enumerate()) {
        let arrow = match current {
            Some(sort) if sort.column == column.name => {
                if sort.descending {
                    " ↓"
                } else {
                    " ↑"
                }
            }
            _ => "",
        };
        let marker = if at == selected { "> " } else { "  " };
        let line = Line::new().with(marker, Tone::Key).with(format!("{}{arrow}", column.title), Tone::Plain);
        let row = Rect { y, height: 1, ..inner };
        draw_line(frame, row, &line, theme);
        if at == selected {
            frame.buffer_mut().set_style(row, theme.selected);
        }
    }
}
