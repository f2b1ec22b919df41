use ratatui::Frame;
use ratatui::layout::Rect;

use crate::app::App;
use crate::app::detail;
use crate::app::line::{Line, Tone};
use crate::app::panes::RowId;
use crate::ui::theme::Theme;
use crate::ui::viewport::Viewport;

pub(super) fn render(
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
    super::scrolled(frame, area, &title, &lines, scroll, theme);
}

fn gone() -> Vec<Line> {
    vec![Line::new(), Line::new().with("  No longer exists. Esc returns.", Tone::Warning)]
}
