use ratatui::Frame;
use ratatui::layout::Rect;

use crate::app::line::{Line, Tone};
use crate::app::related::Related;
use crate::ui::theme::Theme;

const LABEL: usize = 60;

pub(super) fn render(frame: &mut Frame<'_>, area: Rect, (related, at): (&[Related], usize), theme: &Theme) {
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
    super::choices(frame, area, "Go to", (&lines, at), theme);
}
