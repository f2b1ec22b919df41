use std::sync::Arc;

use crate::feed::EventSender;
use crate::feed::view_builder::ViewBuilder;
use crate::model::event::{EventBody, EventKind, Events, ExternalEvent};
use crate::model::finding::{Severity, Subject};
use crate::model::lock_name::LockNames;
use crate::model::thresholds::Thresholds;
use crate::model::view::{TargetId, View};
use crate::sample::{self, Builder};

use super::{SIZES, Stage, check};

fn afterwards() -> Builder {
    let mut b = sample::systems::queue(5.0);
    b.backends.retain(|backend| backend.pid != 4312);
    b.locks.retain(|lock| lock.pid != Some(4312));
    for lock in b.locks.iter_mut().filter(|lock| lock.pid == Some(4410)) {
        (lock.granted, lock.wait_start) = (true, None);
    }
    // Three sessions stopped waiting, and one of them disconnected.
    b.locks.retain(|lock| !matches!(lock.pid, Some(4466..4469)));
    b.backends.retain(|backend| backend.pid != 4468);
    let lease = b.leases.iter_mut().find(|lease| &*lease.id == "7").unwrap();
    (lease.owner, lease.token) = (Some("node4".into()), Some(13));
    (lease.renewed_at, lease.acquired_at) = (Some(sample::at(4.0)), Some(sample::at(4.0)));
    lease.expires_at = Some(sample::at(24.0));
    let lease = b.leases.iter_mut().find(|lease| &*lease.id == "3").unwrap();
    lease.expires_at = Some(sample::at(3.0));
    let execution = b.executions.iter_mut().find(|execution| execution.task_id == 1).unwrap();
    (execution.status, execution.completed_at) = (Some("completed".into()), Some(sample::at(2.0)));
    let task = b.tasks.iter_mut().find(|task| task.id == 9).unwrap();
    task.enabled = Some(true);
    let failed = b.item(41_212, "resize images", "failed", 1.0);
    failed.error = Some("no space left on device\n\u{1b}[2J".into());
    b
}

fn story() -> View {
    let mut view_builder = ViewBuilder::new(TargetId::default(), Thresholds::default(), LockNames::default());
    view_builder.snapshot_taken(Builder { now: -200.0, ..Builder::default() }.snapshot());
    let view = view_builder.snapshot_taken(sample::systems::queue(0.0).snapshot());
    let (event_sender, mut reader) = EventSender::new();
    let root = view.snapshot.as_ref().unwrap().backend(4312).unwrap().id();
    for (kind, text) in [
        (EventKind::ActionAsked, "operator asked to terminate 4312 app@web-3"),
        (EventKind::ActionResult, "terminated 4312 app@web-3"),
    ] {
        let subject = Some(Subject::Backend(root));
        event_sender.send(ExternalEvent {
            kind,
            severity: Severity::Warning,
            text: text.to_owned(),
            subject,
        });
    }
    view_builder.events_received(reader.rest());
    View::clone(&view_builder.snapshot_taken(afterwards().snapshot()))
}

#[test]
fn the_events_at_three_sizes() {
    for (width, height) in SIZES {
        for (name, keys) in [
            ("events", "8"),
            ("events_filter", "8/kind:wait 4466"),
            ("events_sort", "8s<end>k<enter>"),
            ("event_folded", "8Gkkk<enter>"),
            ("event_gone", "8/\"terminated 4312\"<enter>j<enter>"),
        ] {
            check(name, &mut Stage::new(width, height).view(story()).keys(keys));
        }
    }
}

/// Keys that lead to the line with this text, using a filter that only this line passes.
fn found(text: &str) -> String {
    format!("8/\"{text}\"<enter>g")
}

#[test]
fn enter_leads_to_the_row_and_escape_back() {
    for (text, there) in [
        ("changed owner", "Leases ·"),
        ("数据同步任务 completed", "Tasks ·"),
        ("no space left", "Queue ·"),
        ("4410 deploy@ci got", "Chains ·"),
        ("4466 app@web-0 stopped", "Backends ·"),
    ] {
        let mut stage = Stage::new(120, 35).view(story()).keys(&found(text));
        let before = stage.text();
        assert!(before.contains(text), "{text}:\n{before}");
        let mut stage = stage.keys("<enter>");
        assert!(stage.text().contains(there), "{text}:\n{}", stage.text());
        let mut stage = stage.keys("<esc>");
        assert_eq!(stage.text(), before, "{text}");
    }
}

#[test]
fn the_ended_object_of_an_event_is_shown_as_no_longer_existing() {
    let text = Stage::new(120, 35).view(story()).keys(&found("terminated 4312")).keys("<enter>").text();
    assert!(text.contains("the object of this event no longer exists"), "{text}");
    assert!(text.contains("Other events about the same") && text.contains("began to block others"), "{text}");
}

fn a_day_of_work(tasks: u32) -> View {
    let mut view = story();
    let mut events = Events::clone(&view.events);
    for number in 0..tasks {
        // The minute of the sample begins at 0.
        let now = sample::at(f64::from(number));
        let task = |kind, what, severity| EventBody {
            who: format!("report {number}").as_str().into(),
            more: "on worker-7".into(),
            ..EventBody::new(now, kind, severity, what)
        };
        events.extend(now, [task(EventKind::TaskStarted, "started", Severity::Info)]);
        let failed = number == 4;
        let (end, severity) =
            if failed { ("failed", Severity::Warning) } else { ("completed", Severity::Info) };
        events.extend(now, [task(EventKind::TaskEnded, end, severity)]);
    }
    view.events = Arc::new(events);
    view
}

#[test]
fn the_routine_of_a_minute_is_one_line_that_grows_under_the_cursor() {
    let mut stage = Stage::new(120, 35).view(a_day_of_work(9)).keys("8<home>");
    let text = stage.text();
    assert!(text.contains("> 14:02:36      routine       tasks: 4 started, 4 ended"), "{text}");
    assert!(
        text.contains("report 4 failed on worker-7"),
        "what is not routine has a line of its own:\n{text}"
    );
    assert!(!text.contains("report 3 started"), "{text}");
    let text = stage.view(a_day_of_work(12)).text();
    assert!(text.contains("> 14:02:36      routine       tasks: 7 started, 7 ended"), "{text}");
}

#[test]
fn each_event_of_a_routine_minute_is_listed_and_found() {
    let mut stage = Stage::new(120, 35).view(a_day_of_work(9)).keys("8<home><enter>");
    let text = stage.text();
    assert!(text.contains("report 8 completed on worker-7") && text.contains("report 5 started"), "{text}");
    assert!(!text.contains("report 4 "), "{text}");
    let text = Stage::new(120, 35).view(a_day_of_work(9)).keys("8/\"report 3\"<enter>").text();
    assert!(text.contains("report 3 started on worker-7") && text.contains("report 3 completed"), "{text}");
}
