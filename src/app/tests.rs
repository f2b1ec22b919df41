//! Driving the screens by keys: a key string in, state and effects out.

use std::cmp::Reverse;
use std::sync::Arc;

use super::message::{Effect, Message, Update};
use super::page::{Page, pid_of};
use super::screen::{Pane, Screen};
use super::table::Row;
use super::{App, Settings};
use crate::keys::Key;
use crate::model::lock::LockMode;
use crate::model::view::{Link, TargetId, View};
use crate::sample::{self, Builder};

fn app(builder: Builder) -> App {
    let mut app = App::new(Settings::default(), 1.0);
    arrive(&mut app, builder.view());
    app
}

fn arrive(app: &mut App, view: View) -> Update {
    app.update(Message::View(TargetId(0), Arc::new(view)))
}

/// Presses keys; gives the effects asked for on the way.
fn drive(app: &mut App, keys: &str) -> Vec<Effect> {
    let keys = Key::parse_all(keys).unwrap();
    keys.into_iter().flat_map(|key| app.update(Message::Key(key)).effects).collect()
}

fn selected_pid(app: &App) -> Option<i32> {
    app.pane(app.focus).selected.and_then(pid_of)
}

/// The indices of the rows of the focused table in `pg_locks`.
fn lock_rows(app: &App) -> Vec<u32> {
    let index = |row: &Row| match row {
        Row::Lock(at) => *at,
        row => panic!("{row:?} is no lock"),
    };
    app.pane(app.focus).rows.iter().map(index).collect()
}

#[test]
fn locks_with_the_longest_queues_come_first() {
    let mut builder = sample::incident(0.0);
    for key in [9, -1, 5, 7] {
        builder.lock(4977, sample::advisory(key), LockMode::Share, None);
        builder.lock(4312, sample::advisory(key), LockMode::Share, None);
    }
    builder.lock(5001, sample::advisory(5), LockMode::Exclusive, Some(3.0));
    let mut app = app(builder);
    drive(&mut app, "3a");
    let scene = app.scene().unwrap();
    let key = |at: u32| {
        let lock = &scene.snapshot.locks.rows[at as usize];
        let waiters = scene.queue(&lock.tag).map_or(0, |queue| queue.waiters.len());
        (Reverse(waiters), lock.tag, lock.wait_start.map(|start| start.timestamp_micros()), lock.pid)
    };
    let rows = lock_rows(&app);
    assert_eq!(rows.len(), scene.snapshot.locks.rows.len());
    assert!(rows.is_sorted_by_key(|at| key(*at)));
}

#[test]
fn locks_that_did_not_change_are_not_sorted_again() {
    let mut app = app(sample::incident(0.0));
    let view = Arc::clone(app.view.as_ref().unwrap());
    drive(&mut app, "3");
    let advisory = lock_rows(&app);
    let mut snapshot = sample::incident(1.0).snapshot();
    snapshot.locks.rows = Arc::clone(&view.snapshot.as_ref().unwrap().locks.rows);
    arrive(&mut app, sample::view(snapshot, 2));
    assert_eq!(lock_rows(&app), advisory);
    drive(&mut app, "a");
    assert!(lock_rows(&app).len() > advisory.len());
    drive(&mut app, "a/pid:4980<enter>");
    assert_eq!(lock_rows(&app).len(), 1);
    drive(&mut app, "/<ctrl-u><enter>");
    assert_eq!(lock_rows(&app), advisory);
    let mut builder = sample::incident(2.0);
    builder.lock(4977, sample::advisory(-1), LockMode::Exclusive, None);
    arrive(&mut app, builder.view());
    assert_eq!(lock_rows(&app).len(), advisory.len() + 1);
}

#[test]
fn keys_lead_where_they_should() {
    for (keys, screen, focus, pid) in [
        ("", Screen::Overview, Pane::Chains, Some(4312)),
        ("j", Screen::Overview, Pane::Chains, Some(4410)),
        ("jk", Screen::Overview, Pane::Chains, Some(4312)),
        ("kkk", Screen::Overview, Pane::Chains, Some(4312)),
        ("G", Screen::Overview, Pane::Chains, Some(5001)),
        ("Gg", Screen::Overview, Pane::Chains, Some(4312)),
        ("<tab>", Screen::Overview, Pane::Advisory, Some(4977)),
        ("<tab><tab>", Screen::Overview, Pane::Chains, Some(4312)),
        ("<shift-tab>", Screen::Overview, Pane::Advisory, Some(4977)),
        ("2", Screen::Chains, Pane::Chains, Some(4312)),
        ("3", Screen::Locks, Pane::Locks, Some(4977)),
        ("7", Screen::Backends, Pane::Backends, Some(4312)),
        ("7jj", Screen::Backends, Pane::Backends, Some(4977)),
        ("721", Screen::Overview, Pane::Chains, Some(4312)),
        ("7/who:prisma<enter>", Screen::Backends, Pane::Backends, None),
        ("7/who:prisma<enter>j", Screen::Backends, Pane::Backends, Some(4977)),
        ("!<enter>", Screen::Chains, Pane::Chains, Some(4312)),
        ("!j<enter>", Screen::Chains, Pane::Chains, Some(4977)),
        ("?<esc>!q2", Screen::Chains, Pane::Chains, Some(4312)),
        ("?7", Screen::Backends, Pane::Backends, Some(4312)),
    ] {
        let mut app = app(sample::incident(0.0));
        drive(&mut app, keys);
        assert_eq!((app.screen, app.focus, selected_pid(&app)), (screen, focus, pid), "{keys:?}");
        assert!(app.pages.is_empty(), "{keys:?}");
    }
}

#[test]
fn keys_ask_for_what_they_should() {
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
        ("7 jj y", vec![Effect::Copy("4312 4466".into())]),
        ("KCRUETX", vec![]),
        ("5", vec![]),
    ] {
        assert_eq!(drive(&mut app(sample::incident(0.0)), keys), effects, "{keys:?}");
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
    drive(&mut app, "<enter>");
    assert!(app.pages.is_empty(), "there is nothing to open");
    assert!(app.notice.is_some());
    drive(&mut app, "j");
    assert!(selected_pid(&app).is_some());
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
fn a_filter_shows_what_passes_and_escape_brings_the_rest_back() {
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
fn mark_all_marks_what_the_filter_shows_and_nothing_else() {
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
        let scene = app.scene().unwrap();
        app.pane(Pane::Backends).id_at(&scene, 0).and_then(pid_of)
    };
    drive(&mut app, "7s<home><enter>");
    assert_eq!(first(&app), Some(4312));
    drive(&mut app, "ss");
    assert_eq!(first(&app), Some(5100));
    drive(&mut app, "s<home>j<enter>");
    assert_eq!(first(&app), Some(4312), "numbers begin with the largest");
}

#[test]
fn a_pause_holds_the_screen_and_the_polling_goes_on() {
    let mut app = app(sample::incident(0.0));
    drive(&mut app, "p");
    arrive(&mut app, sample::Builder { now: 5.0, ..Builder::default() }.view());
    assert_eq!(app.pane(Pane::Chains).rows.len(), 8);
    assert!(app.latest.is_some());
    drive(&mut app, "jjp");
    assert_eq!(app.pane(Pane::Chains).rows.len(), 0, "the newest is shown at once");
}

#[test]
fn who_is_followed_is_selected_on_every_screen() {
    let mut app = app(sample::incident(0.0));
    drive(&mut app, "7/pid:4977<enter>jf<esc>3");
    assert_eq!(selected_pid(&app), Some(4977), "its lock");
    drive(&mut app, "2");
    assert_eq!(selected_pid(&app), Some(4977), "its chain");
    arrive(&mut app, sample::incident(3.0).view());
    assert_eq!(selected_pid(&app), Some(4977));
    drive(&mut app, "f");
    assert_eq!(app.follow, None);
}

#[test]
fn tasks_have_a_screen_and_a_pane_where_there_are_tables() {
    let mut with = app(sample::jobs(0.0));
    for (keys, screen, focus) in [
        ("4", Screen::Tasks, Pane::Tasks),
        ("1", Screen::Overview, Pane::Tasks),
        ("<tab>", Screen::Overview, Pane::Chains),
        ("<shift-tab>z", Screen::Overview, Pane::Tasks),
    ] {
        drive(&mut with, keys);
        assert_eq!((with.screen, with.focus), (screen, focus), "{keys}");
    }
    assert_eq!(with.visible_panes(), [Pane::Tasks]);
    arrive(&mut with, sample::incident(1.0).view());
    assert_eq!(with.focus, Pane::Chains, "the tables are gone, and their pane with them");
    assert_eq!(with.visible_panes(), [Pane::Chains, Pane::Advisory]);
    let mut without = app(sample::incident(0.0));
    drive(&mut without, "4");
    assert_eq!(without.screen, Screen::Overview);
    assert!(without.notice.as_ref().is_some_and(|notice| notice.text.contains("no task tables")));
}

fn task_states(app: &App) -> Vec<&'static str> {
    let scene = app.scene().unwrap();
    let rows = app.pane(Pane::Tasks).rows.iter();
    rows.filter_map(|row| match row {
        super::table::Row::Task(at) => Some(scene.view.tasks.rows[*at as usize].state.as_str()),
        _ => None,
    })
    .collect()
}

#[test]
fn what_needs_somebody_comes_first_and_the_rest_can_be_filtered_and_sorted() {
    let mut app = app(sample::jobs(0.0));
    drive(&mut app, "4");
    let urgent = ["orphan", "slow", "overdue", "overdue", "leaked", "running", "due", "idle", "disabled"];
    assert_eq!(task_states(&app), urgent);
    for (filter, states) in [
        ("state:overdue", vec!["overdue", "overdue"]),
        ("worker:worker-7", vec!["orphan"]),
        ("run>10m", vec!["orphan", "slow"]),
        ("task:报表", vec!["orphan"]),
        ("pid:6101", vec!["running"]),
        ("gauge>1", vec!["orphan", "slow"]),
        ("try:2/3", vec!["orphan"]),
        ("type:cleanup", vec!["slow"]),
    ] {
        drive(&mut app, &format!("/{filter}<enter>"));
        assert_eq!(task_states(&app), states, "{filter}");
        drive(&mut app, "<esc>");
    }
    drive(&mut app, "s<home>jjj<enter>");
    assert_eq!(task_states(&app)[..3], ["orphan", "slow", "running"], "the longest run first");
    drive(&mut app, "*");
    assert_eq!(app.pane(Pane::Tasks).marks.len(), 9);
}

#[test]
fn a_task_is_followed_to_its_lock_and_its_session_and_back() {
    let mut app = app(sample::jobs(0.0));
    drive(&mut app, "4jf7");
    assert_eq!(selected_pid(&app), Some(6103), "the session that holds its key");
    drive(&mut app, "3");
    assert_eq!(selected_pid(&app), Some(6103), "its lock");
    drive(&mut app, "4");
    assert_eq!(app.pane(Pane::Tasks).cursor, 1);
    assert_eq!(drive(&mut app, "y"), [Effect::Copy("6103".into())], "the process that holds its key");
    drive(&mut app, "f");
    assert_eq!(app.follow, None);
    drive(&mut app, "7/pid:6101<enter>jf<esc>4");
    assert_eq!(task_states(&app)[app.pane(Pane::Tasks).cursor], "running", "from a session to its task");
}

#[test]
fn a_waiter_for_the_key_of_a_task_leads_to_its_chain() {
    let mut b = sample::jobs(0.0);
    let key = sample::advisory(crate::model::task::TaskKey::Own(3).number());
    b.session(7001, "app@admin", crate::model::backend::State::Active, 9.0, "SELECT pg_advisory_lock($1)");
    b.lock(7001, key, crate::model::lock::LockMode::Exclusive, Some(9.0));
    let mut app = app(b);
    drive(&mut app, "4jf2");
    assert_eq!(selected_pid(&app), Some(6103), "the holder is the root of a chain now");
}

#[test]
fn a_task_stays_selected_when_it_starts_and_a_finding_leads_to_it() {
    let mut app = app(sample::jobs(0.0));
    drive(&mut app, "4/task:digest<enter>j<esc>");
    let selected = app.pane(Pane::Tasks).selected;
    assert!(selected.is_some());
    let mut started = sample::jobs(1.0);
    started.execution(6, "worker-6", "running", 0.5, Some(6106));
    arrive(&mut app, started.view());
    assert_eq!(app.pane(Pane::Tasks).selected, selected);
    assert_eq!(task_states(&app)[app.pane(Pane::Tasks).cursor], "running");
    let at = app.view.as_ref().unwrap().findings.iter().position(|one| one.check == "orphan_task").unwrap();
    drive(&mut app, &format!("1!{}<enter>", "j".repeat(at)));
    assert_eq!((app.screen, app.pane(Pane::Tasks).cursor), (Screen::Tasks, 0));
    drive(&mut app, "<enter>");
    let Some(Page::Detail { subject, .. }) = app.pages.last().cloned() else { panic!("no detail") };
    let text: Vec<String> =
        app.detail_lines(subject, 100).unwrap().iter().map(super::line::Line::plain).collect();
    let text = text.join("\n");
    assert!(text.contains("could not serialize access due to concurrent update"), "{text}");
    assert!(text.contains("6107, which is gone"), "{text}");
}

#[test]
fn zoom_shows_one_pane_and_gives_the_other_back() {
    let mut app = app(sample::incident(0.0));
    drive(&mut app, "<tab>z");
    assert_eq!(app.visible_panes(), [Pane::Advisory]);
    drive(&mut app, "<esc>");
    assert_eq!(app.visible_panes(), [Pane::Chains, Pane::Advisory]);
}

#[test]
fn a_paste_types_into_a_prompt_and_does_nothing_elsewhere() {
    let mut app = app(sample::incident(0.0));
    assert_eq!(app.update(Message::Paste("q7\n".into())), Update::none());
    assert_eq!(app.screen, Screen::Overview);
    drive(&mut app, "7/");
    app.update(Message::Paste("who:prisma\r\n\u{1b}q".repeat(1000)));
    let prompt = app.prompt.as_ref().unwrap();
    assert!(prompt.input.value().starts_with("who:prisma"));
    assert!(prompt.input.value().chars().count() <= 500);
}

#[test]
fn a_detail_page_follows_its_subject_and_survives_its_end() {
    let mut app = app(sample::incident(0.0));
    drive(&mut app, "<enter>");
    let Some(Page::Detail { subject, .. }) = app.pages.last().cloned() else { panic!("no detail") };
    assert!(app.detail_lines(subject, 80).is_some());
    arrive(&mut app, sample::Builder { now: 9.0, ..Builder::default() }.view());
    assert!(app.detail_lines(subject, 80).is_none());
    drive(&mut app, "<esc>");
    assert!(app.pages.is_empty());
}

#[test]
fn old_data_is_called_old() {
    let mut app = app(sample::incident(0.0));
    assert!(!app.is_stale());
    assert!(!app.update(Message::Tick(1.0)).redraw, "nothing changed on the screen");
    assert!(app.update(Message::Tick(4.0)).redraw);
    assert!(app.is_stale());
    let mut down = sample::incident(0.0).view();
    down.link = Link::Down { reason: "gone".into(), attempt: 1 };
    let mut app = App::new(Settings::default(), 1.0);
    arrive(&mut app, down);
    assert!(app.is_stale());
}

#[test]
fn only_visible_panes_cost_anything() {
    let mut app = app(sample::crowd(10, 1000, 0.0));
    assert!(app.pane(Pane::Locks).rows.is_empty(), "not looked at yet");
    drive(&mut app, "3");
    assert_eq!(app.pane(Pane::Locks).rows.len(), 1011);
}

#[test]
fn any_keys_in_any_order_keep_the_state_sound() {
    use proptest::prelude::*;
    let keys = prop::collection::vec(
        prop::sample::select("jkhlgGzfpa!?s/ *1234457yw+-q<\t".chars().collect::<Vec<_>>()),
        0..60,
    );
    let special = prop::collection::vec(0..6u8, 0..60);
    proptest!(ProptestConfig::with_cases(200), |(keys in keys, special in special)| {
        let mut app = app(sample::incident(0.0));
        for (at, character) in keys.into_iter().enumerate() {
            app.update(Message::Key(Key::char(character)));
            match special.get(at) {
                Some(0) => { drive(&mut app, "<enter>"); }
                Some(1) => { drive(&mut app, "<esc>"); }
                Some(2) => { arrive(&mut app, sample::incident(1.0).view()); }
                Some(3) => { arrive(&mut app, sample::crowd(7, 3, 2.0).view()); }
                Some(4) => { arrive(&mut app, sample::jobs(3.0).view()); }
                _ => {}
            }
            prop_assert!(app.panes().contains(&app.focus));
            let state = app.pane(app.focus);
            prop_assert!(state.rows.is_empty() || state.cursor < state.rows.len() || state.selected.is_none());
        }
    });
}

#[test]
fn a_filter_finds_each_waiter_of_a_folded_queue() {
    let mut app = app(sample::incident(0.0));
    drive(&mut app, "2/4470<enter>");
    assert_eq!(app.pane(Pane::Chains).rows.len(), 1);
    drive(&mut app, "j");
    assert_eq!(selected_pid(&app), Some(4470));
}

#[test]
fn the_selection_stays_on_a_session_lock_whatever_its_session_does() {
    let mut app = app(sample::incident(0.0));
    drive(&mut app, "3");
    assert_eq!(selected_pid(&app), Some(4977));
    let mut later = sample::incident(1.0);
    for lock in later.locks.iter_mut().filter(|lock| lock.pid == Some(4977)) {
        lock.virtualtransaction.local_xid += 1;
    }
    arrive(&mut app, later.view());
    assert_eq!(selected_pid(&app), Some(4977));
}

#[test]
fn a_finding_stays_selected_when_others_come_before_it() {
    let mut app = app(sample::incident(0.0));
    drive(&mut app, "!j");
    let mut worse = sample::incident(1.0).view();
    let mut findings = worse.findings.as_ref().clone();
    findings.rotate_right(2);
    worse.findings = Arc::new(findings);
    arrive(&mut app, worse);
    drive(&mut app, "<enter>");
    assert_eq!(selected_pid(&app), Some(4977));
}

#[test]
fn a_finding_that_went_away_opens_nothing() {
    let mut app = app(sample::incident(0.0));
    drive(&mut app, "!");
    arrive(&mut app, sample::crowd(3, 0, 1.0).view());
    drive(&mut app, "<enter>");
    assert!(matches!(app.pages.last(), Some(Page::Findings { .. })));
    drive(&mut app, "j<enter>");
    assert_eq!(selected_pid(&app), Some(100), "the first move selects what is in its place");
}

#[test]
fn a_jump_clears_the_filter_that_hides_its_row() {
    let mut app = app(sample::incident(0.0));
    drive(&mut app, "2/nothing<enter>!<enter>");
    assert_eq!((app.screen, selected_pid(&app)), (Screen::Chains, Some(4312)));
    assert!(app.notice.as_ref().is_some_and(|notice| notice.text.contains("nothing")));
}

#[test]
fn a_click_below_the_rows_selects_nothing() {
    let mut app = app(sample::incident(0.0));
    app.update(Message::Click(Pane::Chains, 500));
    assert_eq!(selected_pid(&app), Some(4312));
    app.update(Message::Click(Pane::Chains, 1));
    assert_eq!(selected_pid(&app), Some(4410));
}

#[test]
fn a_gid_is_quoted_so_that_it_means_itself() {
    for (gid, literal) in [
        ("order-17", "'order-17'"),
        ("o'hare", "'o''hare'"),
        ("a  b", "E'a  b'"),
        ("back\\slash", "E'back\\\\slash'"),
        ("line\nfeed", "E'line\\U0000000Afeed'"),
        ("文字", "'文字'"),
    ] {
        assert_eq!(super::table::quote(gid), literal);
    }
}
