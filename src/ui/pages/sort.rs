use ratatui::Frame;
use ratatui::layout::Rect;

use crate::app::App;
use crate::app::line::{Line, Tone};
use crate::app::panes::Pane;
use crate::ui::theme::Theme;

pub(super) fn render(
    frame: &mut Frame<'_>,
    area: Rect,
    app: &App,
    (pane, selected): (Pane, usize),
    theme: &Theme,
) {
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
    super::choices(frame, area, &format!("Sort {}", pane.title()), (&lines, selected), theme);
}
