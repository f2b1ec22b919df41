//! A question must be shown again if it would now terminate other work.

use super::*;
use crate::model::backend::State;
use crate::model::namespace;

fn worker(item: i64, task: i64, lease: &'static str) -> Builder {
    let mut b = Builder::default();
    b.session(7, "app@web", State::Idle, 60.0, "SELECT 1");
    b.item(item, "mail", "processing", 20.0).backend_pid = Some(7);
    let key = namespace::number_of(namespace::QUEUE, item).unwrap();
    b.lock(7, sample::advisory(key), LockMode::Exclusive, None);
    b.count("processing", 1, false);
    for id in [1, 2] {
        b.task(id, "report", "sql", 600.0, -60.0);
    }
    let lock = b.execution(task, "w", "running", 20.0, Some(7)).lock_id.unwrap();
    b.lock(7, sample::advisory(lock), LockMode::Exclusive, None);
    let lease = b.lease(lease, "node1", 60.0, 20.0);
    (lease.backend_pid, lease.backend_start) = (Some(7), Some(sample::at(-3600.0)));
    b
}

#[test]
fn another_item_task_or_lease_is_another_question() {
    for (what, later, stays) in [
        ("nothing", worker(9, 1, "a"), true),
        ("item", worker(10, 1, "a"), false),
        ("task", worker(9, 2, "a"), false),
        ("lease", worker(9, 1, "b"), false),
    ] {
        let mut app = app(worker(9, 1, "a"));
        slowly(&mut app, "7K");
        seen(&mut app);
        assert_eq!(command(&drive(&mut app, "7")), None);
        arrive(&mut app, later.view());
        assert_eq!(app.dialog.as_ref().unwrap().is_armed(), stays, "{what}");
        assert_eq!(command(&drive(&mut app, "<enter>")).is_some(), stays, "{what}");
        if !stays {
            // The typed text was for the previous question.
            seen(&mut app);
            assert_eq!(app.dialog.as_ref().unwrap().typed, "", "{what}");
            assert!(command(&slowly(&mut app, "7<enter>")).is_some(), "{what}");
        }
    }
}

#[test]
fn the_same_item_in_another_attempt_is_another_question_and_a_renewed_lease_is_not() {
    for (change, stays) in [
        ((|b| b.items[0].attempt = Some(2)) as fn(&mut Builder), false),
        (|b| b.leases[0].renewed_at = Some(sample::at(-1.0)), true),
        (|b| b.leases[0].token = Some(13), false),
    ] {
        let mut app = app(worker(9, 1, "a"));
        slowly(&mut app, "7K");
        seen(&mut app);
        let mut later = worker(9, 1, "a");
        change(&mut later);
        arrive(&mut app, later.view());
        assert_eq!(app.dialog.as_ref().unwrap().is_armed(), stays);
    }
}

#[test]
fn a_question_about_an_item_is_over_when_its_worker_has_the_next() {
    let mut app = app(worker(9, 1, "a"));
    slowly(&mut app, "6K");
    assert!(app.dialog.is_some(), "{:?}", app.notice);
    seen(&mut app);
    drive(&mut app, "7");
    arrive(&mut app, worker(10, 1, "a").view());
    assert!(over(&app).contains("no longer holds that lock"), "{}", over(&app));
    assert_eq!(command(&drive(&mut app, "<enter>")), None);
}
