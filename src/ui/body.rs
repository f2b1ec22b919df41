//! The panes of a screen.

use ratatui::Frame;
use ratatui::layout::Rect;

use super::theme::Theme;
use super::viewport::Viewport;
use super::widgets::table;
use super::{draw_line, layout, split_top};
use crate::app::App;
use crate::app::index::Scene;
use crate::app::line::{Line, Tone};
use crate::app::screen::{Pane, Screen};
use crate::model::Timestamp;
use crate::model::backend::{Backend, State};
use crate::model::lock::LockType;
use crate::model::systems::TableRows;

/// Facts in a title that are shorter than this are shown whole or not at all.
const SHORT: usize = 24;

pub(super) fn render(frame: &mut Frame<'_>, area: Rect, app: &App, viewport: &mut Viewport, theme: &Theme) {
    let panes = app.visible_panes();
    let calm: Vec<bool> = panes.iter().map(|pane| panes.len() > 1 && is_calm(*pane, app)).collect();
    for ((pane, area), calm) in panes.iter().zip(layout::areas(area, &calm)).zip(calm) {
        if calm {
            draw_calm(frame, area, *pane, app, theme);
        } else {
            draw(frame, area, *pane, app, viewport, theme);
        }
    }
}

/// Whether a pane has nothing to show, and no filter hides it.
fn is_calm(pane: Pane, app: &App) -> bool {
    let state = app.pane(pane);
    app.scene().is_some() && state.rows.is_empty() && state.filter.is_empty()
}

/// `─ Advisory · no advisory lock is held ─────`
fn draw_calm(frame: &mut Frame<'_>, area: Rect, pane: Pane, app: &App, theme: &Theme) {
    let Some(scene) = app.scene() else { return };
    let mut facts = vec![(nothing(pane, app, &scene).to_owned(), Tone::Dim)];
    // Why there is nothing may be that it could not be read.
    facts.extend(self::facts(pane, app).into_iter().filter(|(_, tone)| *tone == Tone::Past));
    draw_title(frame, area, (pane, facts), app, theme);
}

fn draw(frame: &mut Frame<'_>, area: Rect, pane: Pane, app: &App, viewport: &mut Viewport, theme: &Theme) {
    let (title, mut rest) = split_top(area, 1);
    draw_title(frame, title, (pane, facts(pane, app)), app, theme);
    let Some(scene) = app.scene() else { return };
    if pane == Pane::Backends {
        let (line, below) = split_top(rest, 1);
        draw_line(frame, line, &wait_classes(&scene), theme);
        rest = below;
    }
    if app.pane(pane).rows.is_empty() {
        let line = Line::new().with(format!("  {}", nothing(pane, app, &scene)), Tone::Dim);
        draw_line(frame, Rect { y: rest.y + 1, height: rest.height.saturating_sub(1), ..rest }, &line, theme);
        if app.focus == pane {
            viewport.page_rows = usize::from(rest.height);
        }
        return;
    }
    table::render(frame, rest, pane, app, viewport, theme);
}

/// What an empty table says.
fn nothing(pane: Pane, app: &App, scene: &Scene<'_>) -> &'static str {
    let section = match pane {
        Pane::Backends => scene.snapshot.backends.taken_at,
        Pane::Tasks => scene.snapshot.task_sets.iter().find_map(|set| set.tasks.taken_at),
        Pane::Leases => taken(&scene.snapshot.systems.leases),
        Pane::Queue => taken(&scene.snapshot.systems.items),
        Pane::Limits => taken(&scene.snapshot.systems.limits),
        Pane::Generators => taken(&scene.snapshot.systems.generators),
        Pane::Events => Some(scene.snapshot.taken_at),
        _ => scene.snapshot.locks.taken_at,
    };
    match pane {
        _ if !app.pane(pane).filter.is_empty() => "no row matches the filter; Esc clears it",
        Pane::Tasks if !app.has().tasks => "there are no task tables here; [tables] in the config names some",
        Pane::Leases if !app.has().leases => {
            "there is no table distlock here; [tables] in the config names one"
        }
        _ if section.is_none() => "not read yet",
        Pane::Chains => "no session waits for a lock",
        Pane::Advisory => "no advisory locks held",
        Pane::Locks => "no advisory locks; a shows all lock types",
        Pane::Tasks => "no scheduled tasks",
        Pane::Leases => "no leases",
        Pane::Queue => "no pending, running or failed items",
        Pane::Limits => "no open windows",
        Pane::Generators => "no id generators",
        Pane::Backends => "no backends",
        Pane::Events => "no events yet",
    }
}

fn taken<T>(tables: &[TableRows<T>]) -> Option<Timestamp> {
    tables.iter().find_map(|table| table.section.taken_at)
}

/// `─ Chains · 2 roots · 19 blocked ─────`
fn draw_title(
    frame: &mut Frame<'_>,
    area: Rect,
    (pane, facts): (Pane, Vec<(String, Tone)>),
    app: &App,
    theme: &Theme,
) {
    let focused = app.focus == pane && app.visible_panes().len() > 1;
    let mut line = Line::new().with("─ ", Tone::Dim);
    line.push(pane.title(), if focused { Tone::Key } else { Tone::Title });
    for (text, tone) in facts {
        let width = crate::text::width(&text);
        // A number without its end is another number: what is short is left out rather than cut.
        if width < SHORT && line.width() + 3 + width > usize::from(area.width) {
            break;
        }
        line.push(" · ", Tone::Dim);
        line.push(text, tone);
    }
    line.push(" ", Tone::Plain);
    let rest = usize::from(area.width).saturating_sub(line.width());
    line.push("─".repeat(rest), Tone::Dim);
    draw_line(frame, area, &line, theme);
}

/// What the title of a pane says beside its name.
fn facts(pane: Pane, app: &App) -> Vec<(String, Tone)> {
    let Some(scene) = app.scene() else { return Vec::new() };
    let graph = &scene.view.graph;
    let state = app.pane(pane);
    let mut facts = Vec::new();
    let count =
        |number: usize, one: &str, many: &str| format!("{number} {}", if number == 1 { one } else { many });
    match pane {
        Pane::Chains => {
            if !graph.cycles.is_empty() {
                facts.push((count(graph.cycles.len(), "deadlock", "deadlocks"), Tone::Critical));
            }
            facts.push((count(graph.roots.len(), "root", "roots"), Tone::Plain));
            facts.push((format!("{} blocked", graph.waiting), Tone::Plain));
        }
        Pane::Advisory => {
            let waiting: usize = graph
                .queues
                .iter()
                .filter(|queue| queue.tag.locktype == LockType::Advisory)
                .map(|queue| queue.waiters.len())
                .sum();
            facts.push((format!("{} held", crate::text::count(state.total as u64)), Tone::Plain));
            facts.push((format!("{waiting} waiting"), if waiting > 0 { Tone::Warning } else { Tone::Plain }));
        }
        Pane::Locks => {
            let kind = if app.all_locks { "all types" } else { "advisory; a shows all" };
            facts.push((format!("{} {kind}", crate::text::count(state.total as u64)), Tone::Plain));
            if scene.snapshot.locks_omitted > 0 {
                let omitted = crate::text::count(scene.snapshot.locks_omitted);
                facts.push((format!("{omitted} uncontended ones not read"), Tone::Warning));
            }
        }
        Pane::Tasks => facts.extend(super::tasks::facts(&scene)),
        Pane::Leases => facts.extend(super::leases::facts(&scene)),
        Pane::Queue => facts.extend(super::queue::items(&scene)),
        Pane::Limits => facts.extend(super::queue::limits(&scene)),
        Pane::Generators => facts.extend(super::queue::generators(&scene)),
        Pane::Backends => facts.push((format!("{}", state.total), Tone::Plain)),
        Pane::Events => facts.extend(super::events::facts(&scene)),
    }
    facts.extend(row_facts(app, pane, &scene));
    facts
}

/// Filter, order, marks, and how old the rows are.
fn row_facts(app: &App, pane: Pane, scene: &Scene<'_>) -> Vec<(String, Tone)> {
    let state = app.pane(pane);
    let mut facts = Vec::new();
    if !state.filter_text.is_empty() {
        let text = crate::text::fit(&state.filter_text, 24).into_owned();
        facts.push((format!("/{text} shows {} of {}", state.hits(), state.total), Tone::Key));
    }
    if let Some(sort) = state.sort {
        let title = crate::app::table::columns(pane).iter().find(|column| column.name == sort.column);
        let arrow = if sort.descending { "↓" } else { "↑" };
        facts.push((format!("by {} {arrow}", title.map_or(sort.column, |column| column.title)), Tone::Key));
    }
    if !state.marks.is_empty() {
        facts.push((format!("{} marked", state.marks.len()), Tone::Key));
    }
    let (taken, error) = match pane {
        // The title has said so already.
        Pane::Tasks | Pane::Leases | Pane::Queue | Pane::Limits | Pane::Generators | Pane::Events => {
            return facts;
        }
        Pane::Backends => (scene.snapshot.backends.taken_at, &scene.snapshot.backends.error),
        _ => (scene.snapshot.locks.taken_at, &scene.snapshot.locks.error),
    };
    if let Some(error) = error {
        facts.push(stale(scene, taken, error));
    }
    facts
}

/// How old the rows are, and why.
pub(super) fn stale(
    scene: &Scene<'_>,
    taken: Option<crate::model::Timestamp>,
    error: &str,
) -> (String, Tone) {
    let age = scene
        .age(taken)
        .map_or_else(|| "never read".to_owned(), |age| format!("{} old", crate::text::duration(age)));
    (format!("{age}: {}", crate::text::one_line_prefix(error, 90)), Tone::Past)
}

/// Active sessions by what they wait for, in a fixed order and width.
fn wait_classes(scene: &Scene<'_>) -> Line {
    const CLASSES: [&str; 6] = ["CPU", "Lock", "LWLock", "IO", "IPC", "Client"];
    let active =
        |backend: &&Backend| matches!(backend.state, Some(State::Active | State::FastpathFunctionCall));
    let mut counts = [0u32; CLASSES.len()];
    let mut other = 0u32;
    for backend in scene.snapshot.backends.rows.iter().filter(active) {
        let class = backend.wait_event_type.as_deref().unwrap_or("CPU");
        match CLASSES.iter().position(|known| *known == class).and_then(|at| counts.get_mut(at)) {
            Some(count) => *count += 1,
            None => other += 1,
        }
    }
    let total: u32 = counts.iter().sum::<u32>() + other;
    let mut line = Line::new().with(format!("  active {total:<5}"), Tone::Plain);
    for (class, count) in CLASSES.iter().zip(counts) {
        let tone = match (*class, count) {
            (_, 0) => Tone::Dim,
            ("Lock", _) => Tone::Warning,
            _ => Tone::Plain,
        };
        line.push(format!(" {class} {count:<5}"), tone);
    }
    if other > 0 {
        line.push(format!(" other {other}"), Tone::Plain);
    }
    line
}

/// The name of the screen, for the footer.
pub(super) fn screen_name(screen: Screen) -> &'static str {
    screen.title()
}
