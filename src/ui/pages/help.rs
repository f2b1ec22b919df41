use ratatui::Frame;
use ratatui::layout::Rect;

use crate::app::{App, help};
use crate::ui::theme::Theme;
use crate::ui::viewport::Viewport;

pub(super) fn render(
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
    super::scrolled(frame, area, &title, &lines, scroll, theme);
}
