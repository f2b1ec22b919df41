//! With a pooler, the same backend can serve another client a moment later: then the question closes.

use super::*;
use crate::model::backend::{Backend, State};
use crate::model::namespace;
use crate::model::plan::{ExpectedTime, TargetKind};

/// Asks, then delivers a newer snapshot in which `change` was applied to the session.
fn asked_and_changed(keys: &str, pid: i32, change: impl FnOnce(&mut Backend)) -> App {
    let mut app = app(sample::incident(0.0));
    slowly(&mut app, keys);
    assert!(app.dialog.is_some(), "{keys}: {:?}", app.notice);
    seen(&mut app);
    let mut later = sample::incident(0.0);
    change(later.backends.iter_mut().find(|backend| backend.pid == pid).unwrap());
    arrive(&mut app, later.view());
    app
}

type Change = Box<dyn Fn(&mut Backend)>;

#[test]
fn a_question_is_over_when_another_client_has_the_backend() {
    let now = Some(sample::at(-0.5));
    let ran = "has run another statement since then: it may serve another client: nothing was done";
    let other = "now serves another client: nothing was done";
    let changes: [(&str, Change); 7] = [
        (ran, Box::new(move |backend| backend.query_start = now)),
        (ran, Box::new(move |backend| backend.state_change = now)),
        (ran, Box::new(move |backend| (backend.xact_start, backend.state) = (now, Some(State::Active)))),
        (other, Box::new(|backend| backend.application = Some("batch".into()))),
        (other, Box::new(|backend| (backend.usesysid, backend.user) = (Some(11), Some("ops".into())))),
        (other, Box::new(|backend| backend.client = Some("10.0.3.18".into()))),
        (other, Box::new(|backend| backend.client_port = Some(1))),
    ];
    // An idle session, and the holder of a key selected on three screens.
    for (keys, pid) in [
        ("7/pid:5100<enter>gK", 5100),
        ("3/pid:4977<enter>gK", 4977),
        ("2jjjK", 4977),
        ("7/pid:4977<enter>gK", 4977),
    ] {
        for (words, change) in &changes {
            let mut app = asked_and_changed(keys, pid, change);
            let over = over(&app).to_owned();
            assert!(over.starts_with(&pid.to_string()) && over.ends_with(words), "{keys}: {over}");
            assert_eq!(drive(&mut app, "y<enter>"), [], "{keys}: {words}");
            assert!(app.pending_actions.is_empty());
        }
    }
}

#[test]
fn a_session_that_continues_its_transaction_is_the_same() {
    let continues = |backend: &mut Backend| {
        let now = Some(sample::at(-0.5));
        (backend.query_start, backend.state_change, backend.state) = (now, now, Some(State::Active));
    };
    let mut app = asked_and_changed("2K", 4312, continues);
    assert!(app.dialog.as_ref().unwrap().is_armed());
    assert!(command(&drive(&mut app, "y")).is_some());
}

#[test]
fn the_title_is_that_of_the_newest_row() {
    let renamed = |backend: &mut Backend| backend.user = Some("api".into());
    let mut app = asked_and_changed("2K", 4312, renamed);
    assert_eq!(app.dialog.as_ref().unwrap().title(), "Terminate 4312 api@web-3");
    assert_eq!(command(&drive(&mut app, "y")), None, "it has to be seen first");
    let effects = slowly(&mut app, "y");
    assert_eq!(command(&effects).unwrap().targets[0].name, "4312 api@web-3");
}

/// Session 7 works on a queue item; its last sign of life was `heard` seconds ago.
fn worker(attempt: i64, heard: f64) -> Builder {
    let mut b = Builder::default();
    b.session(7, "app@worker", State::Idle, heard, "SELECT 1");
    let item = b.item(9, "mail", "processing", 20.0);
    (item.backend_pid, item.attempt) = (Some(7), Some(attempt));
    let key = namespace::number_of(namespace::QUEUE, 9).unwrap();
    b.lock(7, sample::advisory(key), LockMode::Exclusive, None);
    b.count("processing", 1, false);
    b
}

#[test]
fn a_heartbeat_leaves_a_question_about_a_worker_open() {
    for keys in ["6K", "7K", "3K"] {
        let mut app = app(worker(1, 60.0));
        slowly(&mut app, keys);
        seen(&mut app);
        assert_eq!(drive(&mut app, "7"), []);
        arrive(&mut app, worker(1, 0.5).view());
        assert_eq!(drive(&mut app, "<enter>"), [], "{keys}: it has to be seen again");
        assert!(app.dialog.is_some(), "{keys}: {:?}", app.notice);
        let effects = slowly(&mut app, "<enter>");
        let command = command(&effects).unwrap_or_else(|| panic!("{keys}: what was typed before counts"));
        let TargetKind::Session(session) = &command.targets[0].what else { panic!("{command:?}") };
        assert_eq!(session.query_start, ExpectedTime::Same(Some(sample::at(-0.5))), "{keys}: as it is now");
        // Another attempt can belong to another worker.
        let mut app = super::app(worker(1, 60.0));
        slowly(&mut app, keys);
        seen(&mut app);
        arrive(&mut app, worker(2, 0.5).view());
        assert_ne!(over(&app), "", "{keys}");
    }
}
