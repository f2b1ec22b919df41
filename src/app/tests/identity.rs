use super::*;
use crate::app::message::ClickTarget;

#[test]
fn a_filter_finds_each_waiter_of_a_folded_queue() {
    let mut app = app(sample::incident(0.0));
    drive(&mut app, "2/4470<enter>");
    assert_eq!((app.pane(Pane::Chains).hits(), app.pane(Pane::Chains).rows.len()), (1, 3));
    drive(&mut app, "j");
    assert_eq!(selected_pid(&app), Some(4470));
}

#[test]
fn the_selection_stays_on_a_session_lock_in_a_new_transaction() {
    let mut app = app(sample::incident(0.0));
    drive(&mut app, "<tab>/pid:4977<enter>");
    assert_eq!((app.focus, selected_pid(&app)), (Pane::Advisory, Some(4977)));
    let mut later = sample::incident(1.0);
    for lock in later.locks.iter_mut().filter(|lock| lock.pid == Some(4977)) {
        lock.virtualtransaction.local_xid += 1;
    }
    arrive(&mut app, later.view());
    assert_eq!(selected_pid(&app), Some(4977));
}

#[test]
fn a_finding_stays_selected_when_others_appear_before_it() {
    let mut app = begun(sample::incident(0.0));
    drive(&mut app, "j");
    let mut worse = sample::incident(1.0).view();
    let mut findings = worse.findings.as_ref().clone();
    findings.rotate_right(2);
    worse.findings = Arc::new(findings);
    arrive(&mut app, worse);
    assert_eq!((app.focus, selected_pid(&app)), (Pane::Findings, Some(4977)));
    drive(&mut app, "2");
    assert_eq!((app.screen, selected_pid(&app)), (Screen::Chains, Some(4977)));
}

#[test]
fn an_ended_finding_is_not_acted_on() {
    let mut app = begun(sample::incident(0.0));
    drive(&mut app, "jk");
    arrive(&mut app, sample::crowd(3, 0, 1.0).view());
    drive(&mut app, "K");
    let ended = "this finding ended <1s ago; select another row";
    assert_eq!((app.dialog.is_none(), notice(&app)), (true, ended), "it stays for a moment");
    arrive(&mut app, sample::crowd(3, 0, 7.0).view());
    assert_eq!(selected_pid(&app), None);
    drive(&mut app, "K");
    assert_eq!((app.dialog.is_none(), notice(&app)), (true, "select a row first"));
    drive(&mut app, "j");
    assert_eq!(selected_pid(&app), Some(100), "the first move selects what is in its place");
}

#[test]
fn a_jump_clears_the_filter_that_hides_its_row() {
    let mut app = begun(sample::incident(0.0));
    drive(&mut app, "2<esc>");
    drive(&mut app, "<tab>/nothing<enter><shift-tab>2");
    assert_eq!((app.screen, selected_pid(&app)), (Screen::Chains, Some(4312)));
    assert!(app.notice.as_ref().is_some_and(|notice| notice.text.contains("nothing")));
}

#[test]
fn escape_leads_back_to_the_finding_that_a_jump_left() {
    let mut app = begun(sample::incident(0.0));
    drive(&mut app, "j2");
    assert_eq!((app.screen, app.pages.len()), (Screen::Chains, 0));
    // Pages and filters opened later are closed first.
    drive(&mut app, "<enter><esc>/a<enter><esc>");
    assert_eq!((app.screen, app.pages.len()), (Screen::Chains, 0));
    drive(&mut app, "<esc>");
    assert_eq!((app.screen, app.focus, selected_pid(&app)), (Screen::Overview, Pane::Findings, Some(4977)));
    // After a change to another screen there is no way back.
    drive(&mut app, "27<esc><esc>");
    assert_eq!((app.screen, app.pages.len()), (Screen::Backends, 0));
}

#[test]
fn a_click_below_the_rows_selects_nothing() {
    let mut app = app(sample::incident(0.0));
    app.update(Message::Click(ClickTarget::Row(Pane::Chains, 500)));
    assert_eq!(selected_pid(&app), Some(4312));
    app.update(Message::Click(ClickTarget::Row(Pane::Chains, 1)));
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
        assert_eq!(crate::text::literal(gid), literal);
    }
}
