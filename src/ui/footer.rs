use ratatui::layout::{Position, Rect};
use ratatui::widgets::Clear;

use super::{Canvas, split_bottom};
use crate::app::App;
use crate::app::dialog::{self, Dialog};
use crate::app::keymap::{self, Action};
use crate::app::line::{Line, Tone};
use crate::app::message::ClickTarget;
use crate::app::page::{Page, Prompt, PromptKind};
use crate::app::panes::{Pane, RowId};
use crate::app::screens::Screen;
use crate::keys::Key;
use crate::order::SortExt;

pub(super) fn render(canvas: &mut Canvas<'_, '_>, area: Rect) {
    let app = canvas.app;
    if let Some(prompt) = &app.prompt {
        return render_prompt(canvas, area, prompt);
    }
    if let Some(dialog) = &app.dialog {
        return canvas.line(area, &dialog_keys(dialog));
    }
    if let Some(notice) = &app.notice {
        let above = Rect { height: area.y + area.height, y: 0, ..area };
        return render_lowest(canvas, above, &notice.text, Tone::Warning);
    }
    let right = Line::joined([Action::Help, Action::Quit].into_iter().filter_map(|action| key(app, action)));
    let mut left = Line::new();
    if let Some(pending) = app.pending_actions.first() {
        left.push(format!("{}  ", pending.words()), Tone::Warning);
    }
    if let Some(followed) = app.follow {
        left.push(format!("following {}  ", followed_name(app, followed)), Tone::Key);
    }
    let room = usize::from(area.width).saturating_sub(right.width() + left.width() + 2);
    left.spans.extend(fitting(pieces(app), room).spans);
    canvas.ends(area, &left, &right);
    let width = u16::try_from(right.width()).unwrap_or(u16::MAX).min(area.width);
    spots(canvas, Rect { width: area.width.saturating_sub(width + 1), ..area }, &left);
    spots(canvas, Rect { x: area.right() - width, width, ..area }, &right);
}

fn spots(canvas: &mut Canvas<'_, '_>, area: Rect, line: &Line) {
    let mut x = area.x;
    let mut last = None;
    for span in &line.spans {
        let width = u16::try_from(crate::text::width(&span.text)).unwrap_or(u16::MAX);
        let end = x.saturating_add(width).min(area.right());
        let key = Key::parse(&span.text).ok().filter(|_| span.tone == Tone::Key);
        let blank = span.text.trim().is_empty();
        let keymap = &canvas.app.settings.keymap;
        last = if blank { None } else { key.and_then(|key| keymap.action(key)).or(last) };
        // A misplaced click must not quit.
        if let Some(action) = last.filter(|action| *action != Action::Quit) {
            canvas.viewport.spot(Rect { x, width: end.saturating_sub(x), ..area }, ClickTarget::Key(action));
        }
        x = end;
    }
}

fn dialog_keys(dialog: &Dialog) -> Line {
    let mut line = Line::new().with("Esc", Tone::Key).with(" back", Tone::Plain);
    if dialog.choices().len() > 1 {
        line = line.with("  Tab", Tone::Key).with(" other choice", Tone::Plain);
    }
    line.with("  PgDn PgUp", Tone::Key).with(" scroll", Tone::Plain)
}

const NOTICE_ROWS: u16 = 3;

fn render_lowest(canvas: &mut Canvas<'_, '_>, area: Rect, text: &str, tone: Tone) {
    let mut lines = crate::text::lines(text, usize::from(area.width));
    let rows = u16::try_from(lines.len()).unwrap_or(u16::MAX).clamp(1, NOTICE_ROWS);
    let (_, place) = split_bottom(area, rows);
    canvas.frame.render_widget(Clear, place.intersection(canvas.frame.area()));
    // Text that does not fit is cut at the end of the last row, where the cut is visible.
    let last = usize::from(place.height).saturating_sub(1).min(lines.len());
    let rest = lines.split_off(last).join(" ");
    canvas.lines(place, lines.into_iter().chain([rest]).map(|text| Line::new().with(text, tone)));
}

/// The keys that work here, in display order, each with its rank; the highest ranks are omitted first.
fn pieces(app: &App) -> Vec<(usize, Line)> {
    let here = if app.past.is_some() { Vec::new() } else { dialog::here(app) };
    let here = here.into_iter().map(|(action, does)| (0, app.settings.keymap.hint(action, does)));
    let on_page = !app.pages.is_empty();
    let is_alone = |action: Action| !on_page && matches!(action, Action::NextPane) && app.panes().len() < 2;
    let actions = actions(app).into_iter().filter(|(_, action)| !is_alone(*action));
    let keys = here.chain(actions.map(|(rank, action)| (rank, key(app, action))));
    let screens = [(3, screens(app)), (6, Some(Line::new().with(" screen", Tone::Plain)))];
    let all = keys.chain(screens.into_iter().filter(|_| !on_page));
    all.filter_map(|(rank, line)| Some((rank, line?))).collect()
}

fn actions(app: &App) -> Vec<(usize, Action)> {
    use Action::{
        Back, Copy, Filter, Follow, GoToTime, LookBack, LookOn, Mark, MinuteBack, MinuteOn, NextPane, Open,
        PageDown, PageUp, Pause, Related, Sort, Wrap, Zoom,
    };
    let ranked = |actions: &[Action]| actions.iter().copied().enumerate().collect();
    match app.pages.last() {
        Some(Page::Help { .. }) => ranked(&[Back, Filter, NextPane, PageDown, PageUp]),
        Some(Page::Sort { .. } | Page::Related { .. }) => ranked(&[Open, Back]),
        Some(Page::Detail { .. }) => ranked(&[Back, PageDown, Related, Follow, Wrap, Copy, Pause]),
        None => {
            let times = [LookBack, LookOn, MinuteBack, MinuteOn, GoToTime].map(|action| (1, action));
            let mut actions = if app.past.is_some() { times.to_vec() } else { Vec::new() };
            let panes = app.panes().into_iter();
            actions.extend([(1, Open), (2, Filter)]);
            actions.extend(panes.flat_map(|pane| pane.definition().keys).map(|action| (4, *action)));
            actions.extend([(5, Sort), (9, Mark), (10, Follow), (2, NextPane), (12, Zoom), (8, Pause)]);
            actions.push((13, Copy));
            actions
        }
    }
}

/// As many keys as fit: the lowest ranks first, in display order.
fn fitting(pieces: Vec<(usize, Line)>, room: usize) -> Line {
    let mut order: Vec<usize> = (0..pieces.len()).collect();
    order.order_by_key(|at| pieces.get(*at).map(|(rank, _)| *rank));
    let (mut shown, mut used) = (vec![false; pieces.len()], 0);
    for at in order {
        let width = pieces.get(at).map_or(0, |(_, line)| between(line) + line.width());
        if used + width <= room + 2
            && let Some(shown) = shown.get_mut(at)
        {
            (*shown, used) = (true, used + width);
        }
    }
    let mut line = Line::new();
    for ((_, piece), _) in pieces.into_iter().zip(shown).filter(|(_, shown)| *shown) {
        let gap = if line.spans.is_empty() { 0 } else { between(&piece) };
        line.push(" ".repeat(gap), Tone::Plain);
        line.spans.extend(piece.spans);
    }
    line
}

fn between(piece: &Line) -> usize {
    if piece.spans.first().is_some_and(|span| span.text.starts_with(' ')) { 0 } else { 2 }
}

fn followed_name(app: &App, followed: RowId) -> String {
    app.context().map(|context| (followed.home().definition().label)(&context, followed)).unwrap_or_default()
}

/// `1-9`: the keys of the first and the last screen.
fn screens(app: &App) -> Option<Line> {
    let key = |screen: &Screen| app.settings.keymap.key(Action::Go(*screen));
    let (first, last) = (key(Screen::ALL.first()?)?, key(Screen::ALL.last()?)?);
    Some(Line::new().with(format!("{first}-{last}"), Tone::Key))
}

fn key(app: &App, action: Action) -> Option<Line> {
    let binding = keymap::binding(action)?;
    let does = match action {
        // A page has parts instead of panes.
        Action::NextPane if !app.pages.is_empty() => "next part",
        Action::Open if app.focus == Pane::Locks && app.pages.is_empty() => "queue",
        _ if app.replay.is_some() => binding.in_recording().short,
        _ => binding.short,
    };
    app.settings.keymap.hint(action, does)
}

fn render_prompt(canvas: &mut Canvas<'_, '_>, area: Rect, prompt: &Prompt) {
    let width = usize::from(area.width);
    if let Some(error) = &prompt.error {
        let above = Rect { height: area.y, y: 0, ..area };
        render_lowest(canvas, above, error, Tone::Critical);
    }
    let (label, keys) = match prompt.typing {
        PromptKind::Filter | PromptKind::Search => ("/", "Enter keep  Esc undo"),
        PromptKind::Save => ("save to ", "Enter writes  Esc back"),
        PromptKind::Note => ("note ", "Enter notes it  Esc back"),
        PromptKind::Time => ("time ", "14:02  -90s  worst  Enter jump  Esc cancel"),
    };
    let right = Line::new().with(keys, Tone::Dim);
    let room = width.saturating_sub(right.width() + label.len() + 2);
    let scroll = prompt.input.visual_scroll(room);
    let shown: String = prompt.input.value().chars().skip(scroll).collect();
    let line = Line::new().with(label, Tone::Key).with(shown, Tone::Plain);
    canvas.ends(area, &line, &right);
    let column = prompt.input.visual_cursor().saturating_sub(scroll).min(room);
    let x = area.x + u16::try_from(label.len() + column).unwrap_or(0);
    canvas.frame.set_cursor_position(Position { x: x.min(area.right().saturating_sub(1)), y: area.y });
}
