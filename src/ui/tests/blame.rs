use super::*;
use crate::feed::EventSender;
use crate::feed::view_builder::ViewBuilder;
use crate::model::backend::BackendId;
use crate::model::event::{EventKind, ExternalEvent};
use crate::model::finding::{Severity, Subject};
use crate::model::lock_name::LockNames;
use crate::model::thresholds::Thresholds;
use crate::sample::at;

fn view() -> Arc<View> {
    let mut view_builder = ViewBuilder::new(TargetId(0), Thresholds::default(), LockNames::default());
    let (sender, mut events) = EventSender::new();
    for second in 0..180 {
        if second == 40 {
            sender.send(ExternalEvent {
                kind: EventKind::ActionResult,
                severity: Severity::Info,
                text: "terminated 4288 app@billing: its session ended".to_owned(),
                subject: Some(Subject::Backend(BackendId { pid: 4288, backend_start: Some(at(-3600.0)) })),
            });
            view_builder.events_received(events.rest());
        }
        view_builder.snapshot_taken(sample::blame(second).snapshot());
    }
    view_builder.view()
}

fn stage(width: u16, height: u16) -> Stage {
    Stage::new(width, height).view(View::clone(&view()))
}

#[test]
fn blame_at_three_sizes() {
    for (width, height) in SIZES {
        for (name, keys) in [
            ("blame", "9"),
            ("blame_by_application", "9b"),
            ("blame_by_tag_of_all", "9bbbbbbvv"),
            ("blame_second", "9j"),
            ("blame_detail", "9<enter>"),
            ("blame_episode", "9<tab>j<enter>"),
            ("blame_filter", "9/root:web"),
        ] {
            check(name, &mut stage(width, height).keys(keys));
        }
    }
    check_whole("blame_empty", &mut incident(80, 24).keys("9"));
}

#[test]
fn a_shortcut_of_the_blame_screen_is_refused_on_other_screens() {
    let text = stage(80, 24).keys("7b").text();
    assert!(text.contains("only for the Blame screen (9)"), "{text}");
}

#[test]
fn the_episodes_are_those_of_the_selected_line() {
    let mut stage = stage(120, 35).keys("9j");
    assert!(stage.text().contains("1 episode · of migrate ALTER TABLE"), "{}", stage.text());
    let mut stage = stage.keys("<tab>z");
    assert!(stage.text().contains("1 episode · of migrate ALTER TABLE"), "{}", stage.text());
}

#[test]
fn escape_sequences_of_the_server_do_not_reach_the_terminal() {
    let text = stage(200, 60).keys("9j<enter>").text();
    assert!(!text.contains('\u{1b}') && text.contains("ALTER TABLE orders"), "{text}");
}
