//! All findings; Enter jumps to what one is about.

use ratatui::Frame;
use ratatui::layout::Rect;

use crate::app::App;
use crate::app::line::{Line, Tone};
use crate::app::message::Spot;
use crate::app::page::{self, FindingId};
use crate::model::finding::Finding;
use crate::model::output::Channel;
use crate::ui::finding_line::{about, finding_line, help};
use crate::ui::theme::Theme;
use crate::ui::viewport::Viewport;
use crate::ui::{draw_line, split_bottom};

/// The selected finding has so many rows below the list, in which it is whole; always the same, so that nothing jumps.
const FOOT: u16 = 5;

/// On fewer rows than these all are for the list.
const LEAST: u16 = 15;

pub(super) fn render(
    frame: &mut Frame<'_>,
    area: Rect,
    app: &App,
    (chosen, was): (Option<&FindingId>, usize),
    viewport: &mut Viewport,
    theme: &Theme,
) {
    let (area, foot) = split_bottom(area, if area.height < LEAST { 0 } else { FOOT });
    let room = usize::from(area.height.saturating_sub(1));
    viewport.page_rows = room;
    let findings = app.view.as_ref().map(|view| view.findings.as_slice()).unwrap_or_default();
    if findings.is_empty() {
        let calm = [Line::new(), Line::new().with("  No problems found.", Tone::Good)];
        return super::scrolled(frame, area, "Findings", &calm, 0, theme);
    }
    let selected = page::position(findings, chosen);
    let place = selected.unwrap_or(was.min(findings.len() - 1));
    let scroll = (place + 1).saturating_sub(room);
    let lines: Vec<Line> = findings
        .iter()
        .enumerate()
        .map(|(at, finding)| {
            let mut line = Line::new().with(if Some(at) == selected { "> " } else { "  " }, Tone::Key);
            line.spans.extend(finding_line(app, finding, area.width).spans);
            let beside = help(app, finding).map_or(0, |help| help.width() + 2);
            about(&mut line, finding, usize::from(area.width).saturating_sub(beside));
            line
        })
        .collect();
    let age = crate::text::duration(app.silence.floor());
    let old = if app.is_stale() { format!(" · {age} old") } else { String::new() };
    super::scrolled(frame, area, &format!("Findings · {}{old}", findings.len()), &lines, scroll, theme);
    for (y, finding) in (area.y + 1..area.bottom()).zip(findings.iter().skip(scroll)) {
        viewport.spot(Rect { y, height: 1, ..area }, Spot::Finding(page::finding_id(finding)));
        // What helps stands at the edge, over the end of a line that is too long.
        let mut right = Line::new().with("  ", Tone::Plain);
        right.spans.extend(help(app, finding).unwrap_or_default().spans);
        let width = u16::try_from(right.width()).unwrap_or(0).min(area.width);
        if right.spans.len() > 1 {
            draw_line(frame, Rect { x: area.right() - width, y, width, height: 1 }, &right, theme);
        }
    }
    if let Some(finding) = selected.and_then(|at| findings.get(at)) {
        whole(frame, foot, finding, theme);
    }
    let y = area.y + 1 + u16::try_from(place.saturating_sub(scroll)).unwrap_or(0);
    if selected.is_some() && y < area.bottom() {
        frame.buffer_mut().set_style(Rect { y, height: 1, ..area }, theme.selected);
    }
}

/// The selected finding whole: in its line its end is mostly cut.
fn whole(frame: &mut Frame<'_>, area: Rect, finding: &Finding, theme: &Theme) {
    let room = usize::from(area.width.saturating_sub(4));
    let rule = Line::new().with("─".repeat(usize::from(area.width)), Tone::Dim);
    draw_line(frame, Rect { height: area.height.min(1), ..area }, &rule, theme);
    let part = |text: &str, tone| crate::text::lines(text, room).into_iter().map(move |line| (line, tone));
    let about = finding.about_in(Channel::Screen);
    let lines = part(&finding.summary, Tone::Title).chain(part(&about, Tone::Plain));
    for (y, (line, tone)) in (area.y + 1..area.bottom()).zip(lines) {
        let line = Line::new().with("  ", Tone::Plain).with(line, tone);
        draw_line(frame, Rect { y, height: 1, ..area }, &line, theme);
    }
}
