//! The footer: the keys that work here, the line that is being typed, or a word to the user.

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::widgets::Clear;

use super::theme::Theme;
use super::viewport::Viewport;
use super::{draw_ends, draw_line};
use crate::app::dialog;
use crate::app::keymap::{self, Action};
use crate::app::line::{Line, Tone};
use crate::app::message::Spot;
use crate::app::page::{Page, Prompt, Typing};
use crate::app::panes::RowId;
use crate::app::screens::Screen;
use crate::app::{App, Notice};
use crate::keys::Key;

pub(super) fn render(frame: &mut Frame<'_>, area: Rect, app: &App, viewport: &mut Viewport, theme: &Theme) {
    if let Some(prompt) = &app.prompt {
        return render_prompt(frame, area, prompt, theme);
    }
    if app.dialog.is_some() {
        return render_dialog_keys(frame, area, app, theme);
    }
    if let Some(notice) = &app.notice {
        return render_notice(frame, area, notice, theme);
    }
    let right = keys(app, &[Action::Help, Action::Quit]);
    let mut left = Line::new();
    if let Some(flight) = app.flights.first() {
        left.push(format!("{}  ", flight.words()), Tone::Warning);
    }
    if let Some(followed) = app.follow {
        left.push(format!("following {}  ", followed_name(app, followed)), Tone::Key);
    }
    let room = usize::from(area.width).saturating_sub(right.width() + left.width() + 2);
    let (pieces, needed) = pieces(app);
    for span in fitting(app, &pieces, needed, room).spans {
        left.push(span.text, span.tone);
    }
    draw_ends(frame, area, &left, &right, theme);
    let width = u16::try_from(right.width()).unwrap_or(u16::MAX).min(area.width);
    spots(app, Rect { width: area.width.saturating_sub(width + 1), ..area }, &left, viewport);
    spots(app, Rect { x: area.right() - width, width, ..area }, &right, viewport);
}

/// Where the keys are that can be clicked, each with its words.
fn spots(app: &App, area: Rect, line: &Line, viewport: &mut Viewport) {
    let mut x = area.x;
    let mut last = None;
    for span in &line.spans {
        let width = u16::try_from(crate::text::width(&span.text)).unwrap_or(u16::MAX);
        let end = x.saturating_add(width).min(area.right());
        let key = Key::parse(&span.text).ok().filter(|_| span.tone == Tone::Key);
        let blank = span.text.trim().is_empty();
        last = if blank { None } else { key.and_then(|key| app.settings.keymap.action(key)).or(last) };
        // A click beside what was meant ends nothing.
        if let Some(action) = last.filter(|action| *action != Action::Quit) {
            viewport.spot(Rect { x, width: end.saturating_sub(x), ..area }, Spot::Key(action));
        }
        x = end;
    }
}

/// The keys of a question that are the same in all.
fn render_dialog_keys(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) {
    let mut line = Line::new().with("Esc", Tone::Key).with(" back", Tone::Plain);
    if app.dialog.as_ref().is_some_and(|dialog| dialog.choices().len() > 1) {
        line.push("  Tab", Tone::Key);
        line.push(" other choice", Tone::Plain);
    }
    line.push("  PgDn PgUp", Tone::Key);
    line.push(" scroll", Tone::Plain);
    draw_line(frame, area, &line, theme);
}

/// Rows that a long word to the user may take.
const NOTICE_ROWS: u16 = 3;

/// A word to the user, over as many of the rows above as it needs.
fn render_notice(frame: &mut Frame<'_>, area: Rect, notice: &Notice, theme: &Theme) {
    let above = Rect { height: area.y + area.height, y: 0, ..area };
    render_lowest(frame, above, (&notice.text, Tone::Warning), theme);
}

/// A text in the lowest rows of an area, over what is there.
fn render_lowest(frame: &mut Frame<'_>, area: Rect, (text, tone): (&str, Tone), theme: &Theme) {
    let lines = crate::text::lines(text, usize::from(area.width));
    let rows = u16::try_from(lines.len()).unwrap_or(u16::MAX).clamp(1, NOTICE_ROWS).min(area.height);
    let place = Rect { y: area.bottom().saturating_sub(rows), height: rows, ..area };
    frame.render_widget(Clear, place.intersection(frame.area()));
    let last = usize::from(rows).saturating_sub(1);
    for (at, y) in (place.y..place.bottom()).enumerate() {
        let text = match lines.get(at) {
            // What has no room is cut where everybody sees it.
            Some(_) if at == last => lines.get(at..).map(|rest| rest.join(" ")).unwrap_or_default(),
            Some(text) => text.clone(),
            None => String::new(),
        };
        draw_line(frame, Rect { y, height: 1, ..area }, &Line::new().with(text, tone), theme);
    }
}

/// The keys that work here, the most useful first, and how many of them should be seen whatever else is: those that act.
fn pieces(app: &App) -> (Vec<Line>, usize) {
    let all = actions(app);
    let first = if app.pages.is_empty() { 2 } else { 1 };
    let here = if app.past.is_some() { Vec::new() } else { dialog::here(app) };
    let acting = here.into_iter().map(|(action, does)| named(app, action, does));
    let keys = |actions: &[Action]| actions.iter().map(|action| keys(app, &[*action])).collect::<Vec<_>>();
    // Without a row there is nothing to open.
    let (head, tail) = all.split_at(first.min(all.len()));
    let is_dead = |action: &Action| {
        *action == Action::Open && app.pages.is_empty() && app.pane(app.focus).selected.is_none()
    };
    let head: Vec<Action> = head.iter().copied().filter(|action| !is_dead(action)).collect();
    let shown =
        |lines: Vec<Line>| lines.into_iter().filter(|line| !line.spans.is_empty()).collect::<Vec<_>>();
    let mut pieces = shown(keys(&head).into_iter().chain(acting).collect());
    let needed = pieces.len();
    pieces.extend(shown(keys(tail)));
    (pieces, needed)
}

/// A key and what it does here.
fn named(app: &App, action: Action, does: &str) -> Line {
    match app.settings.keymap.key(action) {
        Some(key) => Line::new().with(key.to_string(), Tone::Key).with(format!(" {does}"), Tone::Plain),
        None => Line::new(),
    }
}

fn actions(app: &App) -> Vec<Action> {
    match app.pages.last() {
        Some(Page::Help { .. }) => {
            vec![Action::Back, Action::Filter, Action::NextPane, Action::PageDown, Action::PageUp]
        }
        Some(Page::Findings { .. } | Page::Sort { .. } | Page::Related { .. }) => {
            vec![Action::Open, Action::Back]
        }
        Some(Page::Finding { .. }) => vec![Action::Back, Action::PageDown, Action::Copy],
        Some(Page::Detail { .. }) => {
            vec![
                Action::Back,
                Action::PageDown,
                Action::Related,
                Action::Follow,
                Action::Wrap,
                Action::Copy,
                Action::Pause,
            ]
        }
        None if app.past.is_some() => {
            let mut actions = vec![
                Action::LookBack,
                Action::LookOn,
                Action::MinuteBack,
                Action::MinuteOn,
                Action::GoToTime,
                Action::Open,
                Action::Filter,
                Action::Sort,
                Action::Follow,
                Action::NextPane,
                Action::Copy,
                Action::Findings,
            ];
            let own = own(app);
            if own.len() > 1 {
                actions.splice(2..2, own);
            }
            actions
        }
        None => {
            let mut actions =
                vec![Action::Open, Action::Filter, Action::Sort, Action::Mark, Action::Follow, Action::Pause];
            let hidden = app.panes().len() > app.visible_panes().len();
            match app.panes().len() {
                0 | 1 => {}
                // There is more than is seen.
                _ if hidden && !app.zoom => actions.insert(1, Action::NextPane),
                _ => actions.extend([Action::NextPane, Action::Zoom]),
            }
            let own = own(app);
            // A screen with several keys of its own is about these.
            let place = if own.len() > 1 { 1 } else { actions.len() };
            actions.splice(place..place, own);
            actions.extend([Action::Copy, Action::Findings]);
            actions
        }
    }
}

/// The keys that do something on the panes of this screen alone.
fn own(app: &App) -> Vec<Action> {
    app.panes().iter().flat_map(|pane| pane.definition().keys).copied().collect()
}

/// As many keys as there is room for, the screens among them; those in few words where a key that is needed would have no room.
fn fitting(app: &App, pieces: &[Line], needed: usize, room: usize) -> Line {
    let mut screens = if app.pages.is_empty() { screen_keys(app) } else { Line::new() };
    let least: usize = pieces.iter().take(needed).map(|piece| piece.width() + 2).sum();
    if !screens.spans.is_empty() && least + screens.width() + 2 > room {
        screens = screens_in_short(app);
    }
    let room = room.saturating_sub(screens.width() + 2);
    let mut line = Line::new();
    for piece in pieces {
        if line.width() + piece.width() + 2 > room {
            break;
        }
        line.push(if line.spans.is_empty() { "" } else { "  " }, Tone::Plain);
        line.spans.extend(piece.spans.iter().cloned());
    }
    if !screens.spans.is_empty() {
        line.push("  ", Tone::Plain);
        line.spans.extend(screens.spans);
    }
    line
}

/// Who is followed, in a few words.
fn followed_name(app: &App, followed: RowId) -> String {
    app.context().map(|context| (followed.home().definition().label)(&context, followed)).unwrap_or_default()
}

/// `1 2 3 7 Overview`: the keys of the screens, and which one this is.
fn screen_keys(app: &App) -> Line {
    let mut line = Line::new();
    let has = app.has();
    for screen in Screen::ALL.into_iter().filter(|screen| screen.is_there(has)) {
        let Some(key) = app.settings.keymap.key(Action::Go(screen)) else { continue };
        let here = screen == app.screen;
        line.push(key.to_string(), Tone::Key);
        line.push(if here { format!(" {} ", screen.title()) } else { " ".to_owned() }, Tone::Title);
    }
    line
}

/// `1-8`: the first and the last of them.
fn screens_in_short(app: &App) -> Line {
    let key = |screen: &Screen| app.settings.keymap.key(Action::Go(*screen)).map(|key| key.to_string());
    match Screen::ALL.first().and_then(key).zip(Screen::ALL.last().and_then(key)) {
        Some((first, last)) => Line::new().with(format!("{first}-{last}"), Tone::Key),
        None => Line::new(),
    }
}

fn keys(app: &App, actions: &[Action]) -> Line {
    let mut line = Line::new();
    for action in actions {
        let (Some(key), Some(binding)) = (app.settings.keymap.key(*action), keymap::binding(*action)) else {
            continue;
        };
        let binding = if app.replay.is_some() { binding.in_recording() } else { *binding };
        line.push(if line.spans.is_empty() { "" } else { "  " }, Tone::Plain);
        line.push(key.to_string(), Tone::Key);
        // A page has no panes, and parts.
        let is_part = *action == Action::NextPane && !app.pages.is_empty();
        line.push(format!(" {}", if is_part { "next part" } else { binding.short }), Tone::Plain);
    }
    line
}

fn render_prompt(frame: &mut Frame<'_>, area: Rect, prompt: &Prompt, theme: &Theme) {
    let width = usize::from(area.width);
    if let Some(error) = &prompt.error {
        let above = Rect { height: area.y, y: 0, ..area };
        render_lowest(frame, above, (error, Tone::Critical), theme);
    }
    let (label, keys) = match prompt.typing {
        Typing::Filter | Typing::Search => ("/", "Enter keep  Esc undo"),
        Typing::Save => ("save to ", "Enter writes  Esc back"),
        Typing::Note => ("note ", "Enter notes it  Esc back"),
        Typing::Time => ("time ", "14:02  -90s  worst  Enter goes  Esc stays"),
    };
    let right = Line::new().with(keys, Tone::Dim);
    let room = width.saturating_sub(right.width() + label.len() + 2);
    let scroll = prompt.input.visual_scroll(room);
    let shown: String = prompt.input.value().chars().skip(scroll).collect();
    let line = Line::new().with(label, Tone::Key).with(shown, Tone::Plain);
    draw_ends(frame, area, &line, &right, theme);
    let column = prompt.input.visual_cursor().saturating_sub(scroll).min(room);
    let x = area.x + u16::try_from(label.len() + column).unwrap_or(0);
    frame.set_cursor_position(Position { x: x.min(area.right().saturating_sub(1)), y: area.y });
}
