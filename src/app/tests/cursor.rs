use super::*;

#[test]
fn a_row_the_user_did_not_choose_does_not_scroll_the_view() {
    // The later orphan is not one yet, so another task is first.
    let earlier = || {
        let mut builder = sample::jobs(0.0);
        builder.executions.retain(|row| row.worker.as_deref() != Some("worker-7"));
        builder
    };
    for keys in ["4", "4k"] {
        let mut app = app(earlier());
        drive(&mut app, keys);
        let first = app.pane(Pane::Tasks).selected;
        assert!(first.is_some(), "the first row is selected automatically");
        app.table_rows = if keys == "4" { 1 } else { 20 };
        arrive(&mut app, sample::jobs(1.0).view());
        let pane = app.pane(Pane::Tasks);
        if keys == "4" {
            assert_eq!((pane.selected, pane.cursor), (None, 0), "another row is more urgent now");
            drive(&mut app, "14");
            let pane = app.pane(Pane::Tasks);
            assert!(
                pane.selected.is_some() && pane.cursor == 0,
                "opening the screen again selects the first row"
            );
        } else {
            assert_eq!(pane.selected, first, "the user chose that row");
            assert!(pane.cursor > 0);
        }
    }
}

#[test]
fn a_row_the_user_did_not_choose_keeps_the_cursor_while_visible() {
    let mut earlier = sample::jobs(0.0);
    earlier.executions.retain(|row| row.worker.as_deref() != Some("worker-7"));
    let mut app = app(earlier);
    drive(&mut app, "4");
    let first = app.pane(Pane::Tasks).selected;
    app.table_rows = 20;
    arrive(&mut app, sample::jobs(1.0).view());
    assert_eq!(app.pane(Pane::Tasks).selected, first);
    assert!(app.pane(Pane::Tasks).cursor > 0);
    drive(&mut app, "14");
    let pane = app.pane(Pane::Tasks);
    assert_eq!((pane.selected == first, pane.cursor), (false, 0));
    assert!(pane.selected.is_some());
}

/// A hidden pane keeps the rows of the snapshot in which it was last shown, so its first row can be out of date.
#[test]
fn a_screen_begins_with_the_first_of_now() {
    let mut earlier = sample::jobs(0.0);
    earlier.executions.retain(|row| row.worker.as_deref() != Some("worker-7"));
    let mut app = app(earlier);
    drive(&mut app, "47");
    let first = app.pane(Pane::Tasks).selected;
    arrive(&mut app, sample::jobs(1.0).view());
    drive(&mut app, "4");
    let pane = app.pane(Pane::Tasks);
    assert_eq!((pane.selected == first, pane.selected.is_some(), pane.cursor), (false, true, 0));
}

#[test]
fn a_screen_begins_with_its_worst_row_if_the_selection_is_far_below() {
    let selected = |keys: &str| {
        let mut app = app(sample::incident(0.0));
        app.table_rows = 10;
        drive(&mut app, keys);
        (app.pane(Pane::Backends).cursor, app.pane(Pane::Backends).selected.is_some())
    };
    assert_eq!(selected("7jj17"), (2, true), "a visible row stays selected");
    assert_eq!(selected("7G17"), (0, true));
    assert_eq!(selected("7G7"), (0, true));
    let last = selected("7G");
    assert!(last.0 > 10);
    assert_eq!(selected("7G 17"), last, "a marked row stays selected");
    assert_eq!(selected("7Gf17"), last, "so does a followed row");
}

#[test]
fn the_key_of_the_screen_leads_back_to_its_first_pane() {
    let mut app = begun(sample::incident(0.0));
    drive(&mut app, "<tab>");
    assert_eq!(app.focus, Pane::Chains);
    app.pane_mut(Pane::Findings).selected = None;
    drive(&mut app, "1");
    assert_eq!(app.focus, Pane::Findings);
    assert!(
        matches!(app.pane(Pane::Findings).selected, Some(crate::app::panes::RowId::Finding(..))),
        "the worst one"
    );
}
