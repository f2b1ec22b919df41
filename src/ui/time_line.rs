//! The line of all kept snapshots, while one of the past is shown.
//!
//! ```text
//! 13:47 ···▁▁··▂▂▁··!▃▅▆█▲▇▇▅·a·▁·· 14:02  ▲ 631 of 900   ( ) trouble  Esc now
//! ```

use ratatui::Frame;
use ratatui::layout::Rect;

use super::theme::Theme;
use super::{draw_ends, widgets};
use crate::app::App;
use crate::app::keymap::Action;
use crate::app::line::{Line, Tone};
use crate::model::timeline::{Moment, PastView};

/// Below this length of the past, in minutes, its ends are shown with seconds.
const SHORT: i64 = 10;

pub(super) fn render(frame: &mut Frame<'_>, area: Rect, app: &App, past: &PastView, theme: &Theme) {
    let (Some(first), Some(last)) = (past.moments.first(), past.moments.last()) else { return };
    // Both ends of a short past would show the same minute, or nearly.
    let is_short = (last.at - first.at).num_minutes() < SHORT;
    let format = if is_short { "%H:%M:%S" } else { "%H:%M" };
    let time = |moment: &Moment| moment.at.with_timezone(&app.settings.zone).format(format).to_string();
    let (begin, end) = (format!("{} ", time(first)), format!(" {}", time(last)));
    let place = format!("▲ {} of {}", past.place + 1, past.moments.len());
    let keys = keys(app);
    let beside = crate::text::width(&place) + keys.width() + 4;
    let room = usize::from(area.width).saturating_sub(begin.len() + end.len() + beside);
    let (bars, at) = bars(past, room.max(10));
    let mut line = Line::new().with(begin.as_str(), Tone::Dim);
    for (column, bar) in bars.iter().enumerate() {
        match (*bar, column == at) {
            (_, true) => line.push("▲", Tone::Key),
            (Bar::Sign(sign), _) => line.push(sign.to_string(), Tone::Critical),
            (Bar::Waiting(bar), _) => line.push(bar.to_string(), Tone::Warning),
            (Bar::Calm, _) => line.push("·", Tone::Dim),
        }
    }
    line.push(end, Tone::Dim);
    line.push("  ", Tone::Plain);
    line.push(place, Tone::Key);
    draw_ends(frame, area, &line, &keys, theme);
}

fn keys(app: &App) -> Line {
    let key = |action| app.settings.keymap.key(action).map(|key| key.to_string()).unwrap_or_default();
    let mut line = Line::new();
    line.push(format!("{} {}", key(Action::TroubleBefore), key(Action::NextTrouble)), Tone::Key);
    line.push(" incident  ", Tone::Dim);
    match app.replay {
        None => {
            line.push(key(Action::Back), Tone::Key);
            line.push(" now", Tone::Dim);
        }
        Some(replay) => {
            line.push(key(Action::Pause), Tone::Key);
            line.push(if replay.plays { " stop" } else { " play" }, Tone::Dim);
        }
    }
    line
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bar {
    /// No session waited.
    Calm,
    Waiting(char),
    /// There was trouble; the sign of the worst.
    Sign(char),
}

fn bars(past: &PastView, room: usize) -> (Vec<Bar>, usize) {
    let count = past.moments.len();
    let columns = room.min(count).max(1);
    let column = |place: usize| place * columns / count.max(1);
    let mut most = vec![0; columns];
    let mut signs = vec![None; columns];
    for (place, moment) in past.moments.iter().enumerate() {
        if let (Some(most), Some(sign)) = (most.get_mut(column(place)), signs.get_mut(column(place))) {
            *most = moment.waiting.max(*most);
            *sign = moment.trouble.max(*sign);
        }
    }
    let heights = widgets::bars(&most, columns);
    let bars = heights.chars().zip(most).zip(signs).map(|((bar, most), sign)| match (sign, most) {
        (Some(trouble), _) => Bar::Sign(trouble.sign()),
        (None, 0) => Bar::Calm,
        (None, _) => Bar::Waiting(bar),
    });
    (bars.collect(), column(past.place).min(columns - 1))
}
