use super::*;
use crate::app::panes::RowId;
use crate::feed::view_builder::ViewBuilder;
use crate::model::lock_name::LockNames;
use crate::model::thresholds::Thresholds;

fn fed(snapshots: impl IntoIterator<Item = Builder>) -> App {
    let mut app = App::new(AppSettings::default(), 1.0);
    let mut view_builder = ViewBuilder::new(TargetId(0), Thresholds::default(), LockNames::default());
    for builder in snapshots {
        arrive(&mut app, View::clone(&view_builder.snapshot_taken(builder.snapshot())));
    }
    app
}

fn offered(app: &App) -> Vec<String> {
    let Some(Page::Related { links, .. }) = app.pages.last() else { panic!("{:?}", app.pages) };
    let line = |link: &crate::app::related::RelatedLink| {
        format!("{} {} [{}]", link.what, link.label, link.screen.definition().title)
    };
    links.iter().map(line).collect()
}

fn choose(app: &mut App, begins: &str) {
    let at = offered(app).iter().position(|line| line.starts_with(begins));
    let at = at.unwrap_or_else(|| panic!("no {begins} in {:?}", offered(app)));
    drive(app, &format!("{}<enter>", "j".repeat(at)));
}

#[test]
fn a_session_leads_to_its_root_and_to_its_locks() {
    let mut app = app(sample::incident(0.0));
    drive(&mut app, "7/pid:4410<enter>gx");
    assert_eq!(
        offered(&app),
        ["root 4312 app@web-3, blocks 17 [Chains]", "waits for AccessExclusive on accounts [Locks]",],
    );
    drive(&mut app, "<enter>");
    assert_eq!((app.screen, selected_pid(&app)), (Screen::Chains, Some(4312)));
    drive(&mut app, "x");
    choose(&mut app, "holds accounts");
    assert_eq!(app.pane(app.focus).selected, Some(RowId::Awaited(sample::relation(2001))), "what it holds");
    assert_eq!((app.screen, app.focus, app.all_locks), (Screen::Locks, Pane::Locks, false));
}

#[test]
fn escape_returns_to_the_previous_page() {
    let mut app = app(sample::incident(0.0));
    drive(&mut app, "7/pid:4410<enter>g<enter>x<enter>");
    assert_eq!(app.screen, Screen::Chains);
    drive(&mut app, "<esc>");
    assert_eq!((app.screen, selected_pid(&app)), (Screen::Backends, Some(4410)));
    assert!(matches!(app.pages.last(), Some(Page::Detail { .. })), "to the page on which x was pressed");
    drive(&mut app, "x<esc>");
    assert!(matches!(app.pages.last(), Some(Page::Detail { .. })));
}

#[test]
fn a_task_leads_to_its_session_and_to_its_lock_and_they_to_the_task() {
    let mut app = app(sample::jobs(0.0));
    drive(&mut app, "4/pid:6101<enter>g");
    let task = app.pane(Pane::Tasks).selected;
    drive(&mut app, "x");
    let offers = offered(&app);
    assert!(
        offers.iter().any(|line| line.starts_with("session 6101") && line.ends_with("[Backends]")),
        "{offers:?}"
    );
    assert!(offers.iter().any(|line| line.starts_with("lock ") && line.ends_with("[Locks]")), "{offers:?}");
    choose(&mut app, "lock ");
    assert_eq!((app.screen, selected_pid(&app)), (Screen::Locks, Some(6101)));
    drive(&mut app, "x");
    choose(&mut app, "task ");
    assert_eq!((app.screen, app.pane(Pane::Tasks).selected), (Screen::Tasks, task));
}

#[test]
fn a_row_without_related_rows_is_reported() {
    let mut app = app(sample::jobs(0.0));
    drive(&mut app, "4/state:disabled<enter>gx");
    assert!(app.pages.is_empty());
    assert!(app.notice.as_ref().is_some_and(|notice| notice.text.contains("belongs to this row")));
}

#[test]
fn a_link_to_an_ended_session_is_not_followed() {
    let mut app = app(sample::incident(0.0));
    drive(&mut app, "7/pid:4410<enter>gx");
    arrive(&mut app, sample::Builder { now: 5.0, ..Builder::default() }.view());
    drive(&mut app, "<enter>");
    assert_eq!(app.screen, Screen::Backends);
    assert!(app.notice.as_ref().is_some_and(|notice| notice.text.ends_with("no longer exists")));
    assert!(!matches!(app.pane(Pane::Backends).selected, Some(RowId::Backend(id)) if id.pid == 4312));
}

#[test]
fn escape_leaves_the_types_of_locks_as_they_were() {
    let mut app = app(sample::incident(0.0));
    drive(&mut app, "2x");
    choose(&mut app, "holds accounts");
    drive(&mut app, "a");
    assert!(app.all_locks);
    drive(&mut app, "<esc>");
    assert_eq!((app.screen, app.all_locks), (Screen::Chains, false));
}

#[test]
fn a_line_of_blame_leads_to_the_session_that_is_in_the_way_now() {
    let mut app = fed((90..101).map(sample::blame));
    drive(&mut app, "9gx");
    let root = offered(&app).into_iter().find(|line| line.starts_with("root ")).unwrap();
    drive(&mut app, "<enter>");
    let pid = selected_pid(&app).unwrap();
    assert!(app.screen == Screen::Chains && root.starts_with(&format!("root {pid} ")), "{root}");
}

#[test]
fn waits_for_rows_of_a_table_lead_to_the_holder() {
    let mut app = fed([0.0, 1.0].map(sample::incident));
    drive(&mut app, "3<tab><tab>/accounts<enter>x");
    assert!(offered(&app).iter().any(|line| line.starts_with("root 4312 ")), "{:?}", offered(&app));
}

#[test]
fn findings_lead_to_leases_items_limits_and_generators() {
    let mut app = app(sample::systems::queue(0.0));
    for (check, screen, pane) in [
        ("expired_lease", Screen::Leases, Pane::Leases),
        ("lost_item", Screen::Queue, Pane::Queue),
        ("queue_pending", Screen::Queue, Pane::Queue),
        ("id_ahead", Screen::Queue, Pane::Generators),
        ("rate_limit", Screen::Queue, Pane::Limits),
    ] {
        let findings = &app.view.as_ref().unwrap().findings;
        let at = findings.iter().position(|finding| finding.check == check).unwrap();
        let key = screen.definition().key;
        drive(&mut app, &format!("1!g{}{key}", "j".repeat(at)));
        assert_eq!((app.screen, app.focus), (screen, pane), "{check}");
        assert!(app.pane(pane).selected.is_some(), "{check}");
        drive(&mut app, "<enter>");
        assert!(matches!(app.pages.last(), Some(Page::Detail { .. })), "{check}");
        drive(&mut app, "<esc>");
    }
}

#[test]
fn an_item_is_followed_to_its_session_and_its_process_id_is_copied() {
    let mut app = app(sample::systems::queue(0.0));
    drive(&mut app, "6jjf7");
    assert_eq!(selected_pid(&app), Some(6101), "the session that works on it");
    drive(&mut app, "6");
    assert_eq!(drive(&mut app, "y"), [Effect::Copy("6101".into())]);
}
