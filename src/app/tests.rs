mod cursor;
mod dialogs;
mod filters;
mod identity;
mod known;
mod layout;
mod locks;
mod outcomes;
mod past;
mod pool;
mod related;
mod reports;
mod runs;
mod screens;
mod signs;
mod stakes;
mod unselected;

use std::cmp::Reverse;
use std::sync::Arc;

use super::message::{Effect, Message, Update};
use super::page::Page;
use super::panes::{Pane, Row};
use super::screens::Screen;
use super::subject::pid_of;
use super::{App, AppSettings};
use crate::keys::Key;
use crate::model::lock::LockMode;
use crate::model::plan::{ActionCommand, ExecutorOrder};
use crate::model::view::{ConnectionState, TargetId, View};
use crate::sample::{self, Builder};

fn begun(builder: Builder) -> App {
    let mut app = App::new(AppSettings::default(), 1.0);
    arrive(&mut app, builder.view());
    app
}

/// Like `begun`, with the focus on the chains.
fn app(builder: Builder) -> App {
    let mut app = begun(builder);
    drive(&mut app, "<tab>");
    app
}

fn arrive(app: &mut App, view: View) -> Update {
    app.update(Message::View(TargetId(0), Arc::new(view)))
}

fn drive(app: &mut App, keys: &str) -> Vec<Effect> {
    let keys = Key::parse_all(keys).unwrap();
    keys.into_iter().flat_map(|key| app.update(Message::Key(key)).effects).collect()
}

/// Reports that a frame with the current question was drawn.
fn seen(app: &mut App) {
    let revision = app.dialog.as_ref().map(|dialog| dialog.revision);
    app.update(Message::Drawn(revision));
}

/// Why the open question has nothing left to confirm.
fn over(app: &App) -> &str {
    app.dialog.as_ref().and_then(|dialog| dialog.over.as_deref()).unwrap_or_default()
}

/// Presses keys, and draws a frame before each.
fn slowly(app: &mut App, keys: &str) -> Vec<Effect> {
    let mut effects = Vec::new();
    for key in Key::parse_all(keys).unwrap() {
        seen(app);
        effects.extend(app.update(Message::Key(key)).effects);
    }
    effects
}

fn command(effects: &[Effect]) -> Option<&ActionCommand> {
    effects.iter().find_map(|effect| match effect {
        Effect::Order(ExecutorOrder::Act(command)) => Some(&**command),
        _ => None,
    })
}

fn notice(app: &App) -> &str {
    app.notice.as_ref().map_or("", |notice| &notice.text)
}

fn selected_pid(app: &App) -> Option<i32> {
    app.pane(app.focus).selected.and_then(pid_of)
}

/// Indices into `pg_locks` of the rows of the focused table.
fn lock_rows(app: &App) -> Vec<u32> {
    let index = |row: &Row| match row {
        Row::At(at) => *at,
        row => panic!("{row:?} is no lock"),
    };
    app.pane(app.focus).rows.iter().map(index).collect()
}

#[test]
fn locks_with_the_longest_queues_are_listed_first() {
    let mut builder = sample::incident(0.0);
    for key in [9, -1, 5, 7] {
        builder.lock(4977, sample::advisory(key), LockMode::Share, None);
        builder.lock(4312, sample::advisory(key), LockMode::Share, None);
    }
    builder.lock(5001, sample::advisory(5), LockMode::Exclusive, Some(3.0));
    let mut app = app(builder);
    drive(&mut app, "<tab>");
    let context = app.context().unwrap();
    let key = |at: u32| {
        let lock = &context.snapshot.locks.last_rows()[at as usize];
        let waiters = context.queue(&lock.tag).map_or(0, |queue| queue.waiters.len());
        (Reverse(waiters), lock.tag, lock.pid)
    };
    let rows = lock_rows(&app);
    assert_eq!((app.focus, rows.len()), (Pane::Advisory, 9));
    assert!(rows.is_sorted_by_key(|at| key(*at)));
}

#[test]
fn locks_that_did_not_change_are_not_sorted_again() {
    let mut app = app(sample::incident(0.0));
    let view = Arc::clone(app.view.as_ref().unwrap());
    drive(&mut app, "3<tab>");
    let advisory = lock_rows(&app);
    let mut snapshot = sample::incident(1.0).snapshot();
    snapshot.locks.set(Arc::clone(view.snapshot.as_ref().unwrap().locks.last_rows()));
    arrive(&mut app, sample::view(snapshot, 2));
    assert_eq!(lock_rows(&app), advisory);
    drive(&mut app, "a");
    assert!(lock_rows(&app).len() > advisory.len());
    drive(&mut app, "/type:transactionid<enter>");
    assert_eq!(lock_rows(&app).len(), 1);
    drive(&mut app, "/<ctrl-u><enter>a");
    assert_eq!(lock_rows(&app), advisory);
    let mut builder = sample::incident(2.0);
    builder.lock(4977, sample::advisory(-1), LockMode::Exclusive, None);
    arrive(&mut app, builder.view());
    assert_eq!(lock_rows(&app).len(), advisory.len() + 1);
}

#[test]
fn keys_lead_to_the_expected_screen_pane_and_row() {
    for (keys, screen, focus, pid) in [
        ("", Screen::Overview, Pane::Findings, Some(4312)),
        ("j", Screen::Overview, Pane::Findings, Some(4977)),
        ("jk", Screen::Overview, Pane::Findings, Some(4312)),
        ("kkk", Screen::Overview, Pane::Findings, Some(4312)),
        ("<tab>", Screen::Overview, Pane::Chains, Some(4312)),
        ("j<tab>", Screen::Overview, Pane::Chains, Some(4977)),
        ("<tab>j", Screen::Overview, Pane::Chains, Some(4410)),
        ("<tab>jk", Screen::Overview, Pane::Chains, Some(4312)),
        ("<tab>G", Screen::Overview, Pane::Chains, Some(5001)),
        ("<tab>Gg", Screen::Overview, Pane::Chains, Some(4312)),
        ("<tab><tab>", Screen::Overview, Pane::Advisory, Some(4977)),
        ("<tab><tab><tab>", Screen::Overview, Pane::Findings, Some(4312)),
        ("<shift-tab>", Screen::Overview, Pane::Advisory, Some(4977)),
        ("2", Screen::Chains, Pane::Chains, Some(4312)),
        ("j2", Screen::Chains, Pane::Chains, Some(4977)),
        ("j2<esc>", Screen::Overview, Pane::Findings, Some(4977)),
        ("3", Screen::Locks, Pane::Locks, None),
        ("3<tab>a", Screen::Locks, Pane::Held, None),
        ("7", Screen::Backends, Pane::Backends, Some(4312)),
        ("7jj", Screen::Backends, Pane::Backends, Some(4977)),
        ("721", Screen::Overview, Pane::Chains, Some(4312)),
        ("7/who:prisma<enter>", Screen::Backends, Pane::Backends, Some(4977)),
        ("7/who:prisma<enter>j", Screen::Backends, Pane::Backends, Some(4980)),
        ("!2", Screen::Chains, Pane::Chains, Some(4312)),
        ("!j2", Screen::Chains, Pane::Chains, Some(4977)),
        ("7!", Screen::Overview, Pane::Findings, Some(4312)),
        ("7!<esc><esc>", Screen::Backends, Pane::Backends, Some(4312)),
        ("?<esc>2", Screen::Chains, Pane::Chains, Some(4312)),
        ("?7", Screen::Backends, Pane::Backends, Some(4312)),
    ] {
        let mut app = begun(sample::incident(0.0));
        drive(&mut app, keys);
        assert_eq!((app.screen, app.focus, selected_pid(&app)), (screen, focus, pid), "{keys:?}");
        assert!(app.pages.is_empty(), "{keys:?}");
    }
}

#[test]
fn keys_have_the_expected_effects() {
    for (keys, effects) in [
        ("q", vec![Effect::Quit]),
        ("<ctrl-c>", vec![Effect::Quit]),
        ("?<ctrl-c>", vec![Effect::Quit]),
        ("?q", vec![]),
        ("/q<esc>", vec![]),
        ("/<ctrl-c>", vec![]),
        ("<ctrl-z>", vec![Effect::Suspend]),
        ("r", vec![Effect::Refresh, Effect::Clear]),
        ("+", vec![Effect::SetInterval(0.5)]),
        ("-", vec![Effect::SetInterval(2.0)]),
        ("----------", [2.0, 5.0, 10.0, 30.0, 60.0].map(Effect::SetInterval).to_vec()),
        ("m", vec![Effect::Mouse(true)]),
        ("mm", vec![Effect::Mouse(true), Effect::Mouse(false)]),
        ("y", vec![Effect::Copy("4312".into())]),
        ("7 jj y", vec![Effect::Copy("4312 4980".into())]),
        ("KCRUETX", vec![]),
        ("5", vec![]),
    ] {
        assert_eq!(drive(&mut app(sample::incident(0.0)), keys), effects, "{keys:?}");
    }
}

#[test]
fn on_a_screen_that_is_too_small_q_always_quits() {
    for keys in ["", "K", "/x", "?", "!", "7s", "<enter>"] {
        let mut app = app(sample::incident(0.0));
        drive(&mut app, keys);
        app.update(Message::Resize(59, 24));
        assert_eq!(drive(&mut app, "q"), [Effect::Quit], "{keys:?}");
    }
}

#[test]
fn the_selection_stays_on_its_row_when_the_order_changes() {
    let mut app = app(sample::incident(0.0));
    drive(&mut app, "7jj");
    assert_eq!(selected_pid(&app), Some(4977));
    let before = app.pane(Pane::Backends).cursor;
    drive(&mut app, "s<home><enter>");
    assert_eq!(selected_pid(&app), Some(4977), "sorted by process id now");
    assert_ne!(app.pane(Pane::Backends).cursor, before);
    arrive(&mut app, sample::incident(5.0).view());
    assert_eq!(selected_pid(&app), Some(4977), "and on the next view");
}

#[test]
fn nothing_is_selected_after_the_row_vanished_until_the_next_move() {
    let mut app = app(sample::incident(0.0));
    drive(&mut app, "7jj");
    let mut without = sample::incident(1.0);
    without.backends.retain(|backend| backend.pid != 4977);
    arrive(&mut app, without.view());
    assert_eq!(selected_pid(&app), None);
    drive(&mut app, "j");
    assert!(selected_pid(&app).is_some());
    let mut app = begun(sample::incident(0.0));
    drive(&mut app, "7jj");
    let mut without = sample::incident(1.0);
    without.backends.retain(|backend| backend.pid != 4977);
    arrive(&mut app, without.view());
    drive(&mut app, "<enter>");
    assert_eq!((app.pages.len(), selected_pid(&app)), (1, Some(4312)), "Enter opens the first row");
}

#[test]
fn a_recycled_process_id_is_another_backend() {
    let mut app = app(sample::incident(0.0));
    drive(&mut app, "7 ");
    assert_eq!(app.pane(Pane::Backends).marks.len(), 1);
    drive(&mut app, "k");
    let mut recycled = sample::incident(1.0);
    for backend in recycled.backends.iter_mut().filter(|backend| backend.pid == 4312) {
        backend.backend_start = Some(sample::at(0.5));
    }
    arrive(&mut app, recycled.view());
    assert_eq!(selected_pid(&app), None);
    assert!(app.pane(Pane::Backends).marks.is_empty());
}

#[test]
fn a_filter_hides_other_rows_and_escape_shows_them_again() {
    let mut app = app(sample::incident(0.0));
    drive(&mut app, "7/who:prisma");
    assert_eq!(app.pane(Pane::Backends).rows.len(), 3, "while typing");
    drive(&mut app, "<esc>");
    assert_eq!(app.pane(Pane::Backends).rows.len(), 23, "undone");
    drive(&mut app, "/state:idle !xact>1<enter>");
    assert_eq!(app.pane(Pane::Backends).rows.len(), 2);
    drive(&mut app, "<esc>");
    assert_eq!(app.pane(Pane::Backends).rows.len(), 23, "cleared");
    drive(&mut app, "/xact>soon");
    assert!(app.prompt.as_ref().is_some_and(|prompt| prompt.error.is_some()));
    drive(&mut app, "<enter>");
    assert_eq!(app.pane(Pane::Backends).rows.len(), 23, "a mistake changes nothing");
}

#[test]
fn mark_all_marks_only_the_rows_that_the_filter_shows() {
    let mut app = app(sample::incident(0.0));
    drive(&mut app, "7/who:prisma<enter>*<esc>");
    let mut pids: Vec<i32> = app.pane(Pane::Backends).marks.iter().copied().filter_map(pid_of).collect();
    pids.sort_unstable();
    assert_eq!(pids, [4977, 4980, 4981]);
    drive(&mut app, "/who:web<enter>g");
    assert_eq!(drive(&mut app, "y"), [Effect::Copy("4312".into())], "hidden marks are left out");
    drive(&mut app, "<esc>");
    assert_eq!(app.pane(Pane::Backends).marks.len(), 3);
    drive(&mut app, "<esc>");
    assert!(app.pane(Pane::Backends).marks.is_empty());
}

#[test]
fn the_same_column_again_reverses() {
    let mut app = app(sample::incident(0.0));
    let first = |app: &App| {
        let context = app.context().unwrap();
        app.pane(Pane::Backends).id_at(&context, 0).and_then(pid_of)
    };
    drive(&mut app, "7s<home><enter>");
    assert_eq!(first(&app), Some(4312));
    drive(&mut app, "ss");
    assert_eq!(first(&app), Some(5100));
    drive(&mut app, "s<home>j<enter>");
    assert_eq!(first(&app), Some(4312), "numbers begin with the largest");
}
