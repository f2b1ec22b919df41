//! Keys where no row is selected.

use super::dialogs::{command, slowly};
use super::*;
use crate::model::lock::LockType;
use crate::model::plan::tests::orphan as orphan_seen;
use crate::model::plan::{Confirm, RecoveryPlan, Running, Selection, TargetKind, Verb};

/// The backend that was selected is gone.
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
fn an_acting_key_is_about_the_first_finding_that_names_it() {
    for (keys, gone, screen) in [("7jj", 4977, Screen::Backends), ("3", 4977, Screen::Chains)] {
        let mut app = after_it_ended(keys, gone);
        assert!(app.view.as_ref().unwrap().findings[0].summary.contains("4312"));
        drive(&mut app, "K");
        let dialog = app.dialog.as_ref().unwrap_or_else(|| panic!("{keys}: {}", notice(&app)));
        assert_eq!((dialog.order.verb, app.screen), (Verb::Terminate, screen), "{keys}");
        let TargetKind::Session(session) = &dialog.plan.rows[0].target.what else { panic!("no session") };
        assert_eq!(session.pid, 4312);
    }
}

#[test]
fn who_goes_on_typing_for_the_row_that_went_ends_nobody_else() {
    let mut app = after_it_ended("7jjj<up>", 4977);
    assert_eq!(command(&slowly(&mut app, "Kyy")), None);
    let dialog = app.dialog.as_ref().unwrap();
    assert_eq!(dialog.plan.confirm, Confirm::Name("4312".into()));
    assert_eq!(dialog.word.as_deref(), Some("y is not enough here: type 4312, then Enter"));
    let effects = slowly(&mut app, "4312<enter>");
    assert_eq!(command(&effects).map(|command| command.targets.len()), Some(1));
}

/// What is to be done to an execution only the server can tell: it is asked also where the row that was selected had gone.
#[test]
fn a_recovery_without_a_selection_asks_the_server() {
    for done_with in [false, true] {
        let mut app = app(sample::jobs(0.0));
        drive(&mut app, "4g");
        let selected = app.pane(Pane::Tasks).selected.unwrap();
        let mut without = sample::jobs(1.0);
        without.tasks.retain(|task| task.id != 7);
        without.executions.retain(|row| row.task_id != 7);
        arrive(&mut app, without.view());
        if done_with {
            let pane = app.pane_mut(Pane::Tasks);
            pane.done_with(&[selected], pane.selections);
        }
        arrive(&mut app, sample::jobs(2.0).view());
        assert_eq!(app.pane(Pane::Tasks).selected, None);
        let effects = drive(&mut app, "R");
        let asked = effects.iter().find_map(|effect| match effect {
            Effect::PlanRecovery { number, request, .. } => Some((*number, request)),
            _ => None,
        });
        let (number, request) = asked.unwrap_or_else(|| panic!("nobody asks: {effects:?}"));
        let Selection::Executions(ids) = &request.select else { panic!("{request:?}") };
        let running = Running { execution_id: ids[0], ..orphan_seen() };
        let plan = RecoveryPlan::of("locktop", sample::at(1.0), 30.0, &[running], request);
        app.update(Message::RecoveryPlanned(number, Ok(Arc::new(plan))));
        let confirm = &app.dialog.as_ref().unwrap().plan.confirm;
        assert_eq!(matches!(confirm, Confirm::Yes), done_with, "{confirm:?}");
    }
}

/// A filter that does not let the selected row through takes it away as well.
#[test]
fn a_row_that_a_filter_took_away_is_exchanged_for_another_only_by_its_name() {
    let mut app = app(sample::incident(0.0));
    drive(&mut app, "7jj/who:nobody<enter>");
    assert_eq!(selected_pid(&app), None);
    drive(&mut app, "K");
    assert_eq!(app.dialog.as_ref().unwrap().plan.confirm, Confirm::Name("4312".into()));
}

#[test]
fn without_such_a_finding_it_says_so() {
    let mut app = after_it_ended("7jj", 4977);
    assert_eq!(drive(&mut app, "U"), []);
    assert_eq!(notice(&app), "nothing is selected, and no finding asks for U; select a row first");
    assert_eq!(slowly(&mut app, "y"), []);
    assert!(app.dialog.is_none() && app.flights.is_empty());
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
        assert!(app.pane(Pane::Chains).rows.is_empty() && app.focus == Pane::Chains);
        drive(&mut app, key);
        assert_eq!((app.focus, app.pane(Pane::Tasks).cursor), (Pane::Tasks, 0), "{key}");
        drive(&mut app, "j");
        assert_eq!((app.focus, app.pane(Pane::Tasks).cursor), (Pane::Tasks, 1), "{key}");
    }
}
