use super::*;
use crate::model::lock::LockType;

fn after_it_ended(keys: &str, pid: i32) -> App {
    let mut app = app(sample::incident(0.0));
    drive(&mut app, keys);
    assert_eq!(selected_pid(&app), Some(pid));
    let mut without = sample::incident(1.0);
    without.backends.retain(|backend| backend.pid != pid);
    without.locks.retain(|lock| lock.pid != Some(pid));
    arrive(&mut app, without.view());
    assert_eq!(selected_pid(&app), None);
    app
}

#[test]
fn an_acting_key_asks_for_a_row_and_acts_on_nothing() {
    for (keys, pid) in [("7jj", 4977), ("7jjj<up>", 4977), ("<tab>", 4977)] {
        for key in ["K", "C", "R", "U", "E"] {
            let mut app = after_it_ended(keys, pid);
            assert_eq!(drive(&mut app, key), [], "{keys}{key}");
            assert_eq!(notice(&app), "select a row first", "{keys}{key}");
            assert_eq!(slowly(&mut app, "y"), [], "{keys}{key}");
            assert!(app.dialog.is_none() && app.pending_actions.is_empty());
        }
    }
}

#[test]
fn a_row_that_a_filter_took_away_is_exchanged_for_no_other() {
    let mut app = app(sample::incident(0.0));
    drive(&mut app, "7jj/who:nobody<enter>");
    assert_eq!(selected_pid(&app), None);
    drive(&mut app, "K");
    assert_eq!((app.dialog.is_none(), notice(&app)), (true, "select a row first"));
}

#[test]
fn hidden_marks_are_not_exchanged_for_a_finding() {
    let mut app = app(sample::incident(0.0));
    drive(&mut app, "7jj /who:nobody<enter>K");
    assert!(app.dialog.is_none());
    assert_eq!(notice(&app), "the filter hides every marked row; Esc clears it");
}

#[test]
fn arrows_start_in_the_first_pane_that_has_rows() {
    for key in ["<down>", "j", "<pgdn>", "g"] {
        let mut calm = sample::jobs(0.0);
        calm.locks.retain(|lock| lock.wait_start.is_none() && lock.tag.locktype() != LockType::Advisory);
        let mut app = app(calm);
        drive(&mut app, "<tab>");
        assert!(app.pane(Pane::Advisory).rows.is_empty() && app.focus == Pane::Advisory);
        drive(&mut app, key);
        assert_eq!((app.focus, app.pane(Pane::Findings).cursor), (Pane::Findings, 0), "{key}");
        drive(&mut app, "j");
        assert_eq!((app.focus, app.pane(Pane::Findings).cursor), (Pane::Findings, 1), "{key}");
    }
}

/// The worst finding has changed since; the shortcut was meant for the previous one.
#[test]
fn no_action_applies_to_a_row_that_just_moved_under_the_cursor() {
    let mut app = begun(sample::incident(0.0));
    let first = app.pane(Pane::Findings).selected;
    let mut without = sample::incident(1.0);
    without.backends.retain(|backend| backend.pid != 4312);
    without.locks.retain(|lock| lock.pid != Some(4312));
    arrive(&mut app, without.view());
    assert_ne!(app.pane(Pane::Findings).selected, first);
    let exchange = app.pane(Pane::Findings).unsettled().unwrap();
    assert_eq!(drive(&mut app, "K"), []);
    assert_eq!(
        (app.dialog.is_none(), notice(&app)),
        (true, "the row under the cursor has just changed; press again")
    );
    // The end of the delay of the previous change does not count either.
    app.update(Message::Settled(exchange - 1));
    drive(&mut app, "K");
    assert!(app.dialog.is_none());
    app.update(Message::Settled(exchange));
    drive(&mut app, "K");
    assert!(app.dialog.is_some(), "{}", notice(&app));
}
