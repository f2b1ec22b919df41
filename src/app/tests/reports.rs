use super::*;
use crate::model::finding::Subject;
use crate::model::plan::{ActionReport, ExecutorReply, Outcome, TargetResult, Verb};

fn result(name: &str, outcome: Outcome, detail: &str) -> TargetResult {
    TargetResult { name: name.into(), subject: Subject::Server, outcome, detail: detail.into() }
}

#[test]
fn a_failed_action_is_reported_until_the_notice_has_been_seen() {
    let mut app = app(sample::incident(0.0));
    slowly(&mut app, "Ky");
    let number = app.pending_actions[0].number;
    app.update(Message::Answer(ExecutorReply::Progress(number, 0)));
    let results = vec![result("4312 app@web-3", Outcome::Changed, "its transaction has ended")];
    let report = ActionReport { number, verb: Verb::Terminate, results, notes: Vec::new() };
    let update = app.update(Message::Answer(ExecutorReply::Reported(Arc::new(report))));
    assert_eq!(update.effects, [Effect::Refresh]);
    assert!(app.pending_actions.is_empty());
    for _ in 0..20 {
        app.update(Message::Tick(0.5));
    }
    // A key pressed before the notice was drawn does not close it.
    drive(&mut app, "j");
    assert_eq!(notice(&app), "4312 app@web-3 no longer matched: its transaction has ended");
    seen(&mut app);
    drive(&mut app, "j");
    assert_eq!(notice(&app), "");
}

/// A recovered task moves down to the idle ones; the cursor stays near the next orphan instead of following it.
#[test]
fn the_cursor_does_not_follow_a_handled_row_out_of_sight() {
    for (outcome, page, selected) in
        [(Outcome::Done, 1, false), (Outcome::Done, 20, true), (Outcome::Changed, 1, true)]
    {
        let mut app = app(sample::jobs(0.0));
        app.table_rows = page;
        drive(&mut app, "4g");
        let orphan = app.pane(Pane::Tasks).selected;
        slowly(&mut app, "Ey");
        let results = vec![result("nightly", outcome, "")];
        let report = ActionReport {
            number: app.pending_actions[0].number,
            verb: Verb::Disable,
            results,
            notes: Vec::new(),
        };
        app.update(Message::Answer(ExecutorReply::Reported(Arc::new(report))));
        let mut later = sample::jobs(1.0);
        later.executions.retain(|row| row.worker.as_deref() != Some("worker-7"));
        arrive(&mut app, later.view());
        let tasks = app.pane(Pane::Tasks);
        assert_eq!((tasks.selected == orphan, tasks.cursor > 0), (selected, selected), "{outcome:?}");
    }
}

#[test]
fn a_second_action_on_a_handled_row_asks_to_select_a_row() {
    let mut app = app(sample::jobs(0.0));
    drive(&mut app, "4g");
    let orphan = app.pane(Pane::Tasks).selected;
    slowly(&mut app, "Ey");
    let results = vec![result("nightly", Outcome::Done, "")];
    let report = ActionReport {
        number: app.pending_actions[0].number,
        verb: Verb::Disable,
        results,
        notes: Vec::new(),
    };
    app.update(Message::Answer(ExecutorReply::Reported(Arc::new(report))));
    let mut later = sample::jobs(1.0);
    later.executions.retain(|row| row.worker.as_deref() != Some("worker-7"));
    arrive(&mut app, later.view());
    assert_eq!(app.pane(Pane::Tasks).selected, orphan);
    drive(&mut app, "R");
    assert_eq!(app.pane(Pane::Tasks).selected, orphan);
    assert_eq!((app.dialog.is_none(), notice(&app)), (true, "select a row first"));
    // A key that applies to the row ends that state.
    drive(&mut app, "<esc>g");
    assert!(!app.pane(Pane::Tasks).is_done());
}

/// If the cursor moved away and back before the result arrived, the row counts as selected again.
#[test]
fn a_row_selected_again_before_the_result_does_not_count_as_handled() {
    for (keys, is_done) in [("", true), ("jk", false)] {
        let mut app = app(sample::jobs(0.0));
        drive(&mut app, "4g");
        slowly(&mut app, "Ey");
        drive(&mut app, keys);
        let results = vec![result("nightly", Outcome::Done, "")];
        let report = ActionReport {
            number: app.pending_actions[0].number,
            verb: Verb::Disable,
            results,
            notes: Vec::new(),
        };
        app.update(Message::Answer(ExecutorReply::Reported(Arc::new(report))));
        assert_eq!(app.pane(Pane::Tasks).is_done(), is_done, "{keys:?}");
        // The state ends after some time.
        for second in 1..40 {
            arrive(&mut app, sample::jobs(f64::from(second)).view());
        }
        assert!(!app.pane(Pane::Tasks).is_done());
    }
}

#[test]
fn marks_are_cleared_when_the_action_is_confirmed() {
    let mut app = app(sample::jobs(0.0));
    let effects = slowly(&mut app, "4/state:idle<enter>*E");
    assert_eq!(effects, []);
    let effects = slowly(&mut app, "y");
    assert_eq!(command(&effects).map(|command| command.verb), Some(Verb::Disable));
    assert!(app.pane(Pane::Tasks).marks.is_empty());
}
