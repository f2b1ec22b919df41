use super::*;
use crate::app::panes::RowId;
use crate::model::backend::State;
use crate::model::lock::{LockTag, LockType};
use crate::model::plan::TargetKind;

fn row(place: u16) -> LockTag {
    sample::relation(2001).with_locktype(LockType::Tuple).with_page(0).with_tuple(place)
}

pub(super) fn cells(app: &App, room: u16) -> Vec<String> {
    let (context, table) = (app.context().unwrap(), app.focus.table());
    let line = |row: &Row| {
        let cell = |at| table.cell(&context, *row, at, room).text;
        (0..table.headings().len() - 1).map(cell).collect::<Vec<_>>().join(" | ")
    };
    app.pane(app.focus).rows.iter().map(line).collect()
}

/// 10 has changed rows 1 and 2; 11 and 12 wait for row 1, 13 for row 2. 20, and 21 and 22 in Share mode, hold `orders`.
fn queues(now: f64) -> Builder {
    let mut b = Builder { now, relations: vec![(2001, "accounts"), (2002, "orders")], ..Builder::default() };
    let xid = LockTag::new(LockType::TransactionId).with_transactionid(771);
    b.session(10, "app@web", State::IdleInTransaction, 60.0, "UPDATE accounts");
    b.lock(10, xid, LockMode::Exclusive, None);
    for (pid, place, waits) in [(11, 1, 30.0), (13, 2, 10.0)] {
        b.session(pid, "app@web", State::Active, waits, "UPDATE accounts");
        b.lock(pid, row(place), LockMode::Exclusive, None);
        b.lock(pid, xid, LockMode::Share, Some(waits));
    }
    b.session(12, "app@web", State::Active, 20.0, "UPDATE accounts");
    b.lock(12, row(1), LockMode::Exclusive, Some(20.0));
    for (pid, mode) in [(20, LockMode::AccessShare), (21, LockMode::RowShare), (22, LockMode::RowShare)] {
        b.session(pid, "app@report", State::IdleInTransaction, 90.0, "SELECT 1");
        b.lock(pid, sample::relation(2002), mode, None);
    }
    for (pid, mode) in [(30, LockMode::Exclusive), (31, LockMode::RowShare), (32, LockMode::RowShare)] {
        b.session(pid, "app@ci", State::Active, 5.0, "LOCK orders");
        b.lock(pid, sample::relation(2002), mode, Some(5.0));
    }
    b.session(40, "app@cron", State::Idle, 300.0, "SELECT pg_advisory_lock(7)");
    b.lock(40, sample::advisory(7), LockMode::Exclusive, None);
    b
}

#[test]
fn each_lock_that_is_waited_for_is_one_row() {
    let mut app = app(queues(0.0));
    drive(&mut app, "3");
    assert_eq!(
        cells(&app, 20),
        [
            "orders | relation | 3 | 5s | RowShare 2 +1 | 2 sessions",
            "accounts ctid (0,1) | tuple | 2 | 30s | row lock 2 | 10 web",
            "accounts ctid (0,2) | tuple | 1 | 10s | row lock 1 | 10 web",
        ],
        "20 holds orders in a mode that conflicts with no request"
    );
    assert_eq!(cells(&app, 40)[1], "accounts ctid (0,1) | tuple | 2 | 30s | row lock 2 | 10 app@web");
    assert_eq!(cells(&app, 40)[0], "orders | relation | 3 | 5s | RowShare 2, Exclusive 1 | 2 sessions");
    drive(&mut app, "<tab>");
    assert_eq!(cells(&app, 20).len(), 1, "advisory 7 alone is held and not waited for");
    drive(&mut app, "a/name:orders");
    assert!(app.pane(Pane::Held).rows.is_empty(), "a lock that is waited for is above");
}

#[test]
fn the_queue_of_a_row_is_in_its_order_behind_the_transaction() {
    let mut app = app(queues(0.0));
    drive(&mut app, "3j<enter>");
    let Some(Page::Detail { subject, .. }) = app.pages.last().cloned() else { panic!("no detail") };
    let lines = app.detail_lines(subject, 100).unwrap();
    let text = lines.iter().map(crate::app::line::Line::plain).collect::<Vec<_>>().join("\n");
    let place = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words}: {text}"));
    assert!(place("Held by 1") < place("10 app@web"), "{text}");
    assert!(place("Queue of 2") < place("11 app@web") && place("11 app@web") < place("12 app@web"), "{text}");
    assert!(!text.contains("13 app@web"), "it waits for another row: {text}");
}

#[test]
fn the_only_holder_is_terminated_and_has_to_hold_the_lock_still() {
    let mut app = app(queues(0.0));
    let effects = slowly(&mut app, "3jKy");
    let command = command(&effects).unwrap_or_else(|| panic!("{}", notice(&app)));
    let TargetKind::Session(session) = &command.targets[0].what else { panic!("{command:?}") };
    let (tag, mode) = session.holds.unwrap();
    assert_eq!((session.pid, tag.locktype(), mode), (10, LockType::TransactionId, LockMode::Exclusive));
    assert!(session.blocks, "a session has to wait for it still");
}

#[test]
fn a_lock_of_several_or_of_a_prepared_transaction_is_refused_in_words() {
    for key in ["K", "C"] {
        let mut app = app(queues(0.0));
        drive(&mut app, &format!("3{key}"));
        assert!(app.dialog.is_none());
        assert!(notice(&app).contains("has 2 holders: Enter lists them"), "{}", notice(&app));
    }
    let mut app = app(sample::incident(0.0));
    drive(&mut app, "3jjK");
    assert!(
        app.dialog.is_none() && notice(&app).contains("ROLLBACK PREPARED 'order-17'"),
        "{}",
        notice(&app)
    );
    assert_eq!(drive(&mut app, "y"), [Effect::Copy("ROLLBACK PREPARED 'order-17';".into())]);
    // Among marked rows, a lock with several holders is refused; the question covers the others.
    let mut app = super::app(queues(0.0));
    drive(&mut app, "3 j K");
    let plan = &app.dialog.as_ref().unwrap().plan;
    assert_eq!((plan.rows.len(), plan.refused.len()), (1, 1), "10 holds both rows");
}

#[test]
fn the_holders_of_a_lock_are_copied() {
    let mut app = app(queues(0.0));
    assert_eq!(drive(&mut app, "3y"), [Effect::Copy("21 22".into())]);
    assert_eq!(drive(&mut app, "jy"), [Effect::Copy("10".into())]);
}

#[test]
fn the_cursor_stays_on_the_lock_and_another_holder_is_no_target_at_once() {
    let mut app = app(queues(0.0));
    drive(&mut app, "3j");
    let lock = Some(RowId::Awaited(row(1)));
    assert_eq!(app.pane(Pane::Locks).selected, lock);
    // The transaction ends: 11 gets the row, 12 waits for it, and more sessions arrive.
    let mut next = queues(1.0);
    next.locks.retain(|lock| !matches!(lock.pid, Some(10..=13)));
    let xid = LockTag::new(LockType::TransactionId).with_transactionid(772);
    next.lock(11, xid, LockMode::Exclusive, None);
    next.lock(12, row(1), LockMode::Exclusive, None);
    next.lock(12, xid, LockMode::Share, Some(21.0));
    for pid in 50..55 {
        next.session(pid, "app@web", State::Active, 1.0, "UPDATE accounts");
        next.lock(pid, row(1), LockMode::Exclusive, Some(1.0));
    }
    arrive(&mut app, next.view());
    assert_eq!((app.pane(Pane::Locks).selected, app.pane(Pane::Locks).cursor), (lock, 0));
    drive(&mut app, "K");
    assert_eq!(
        (app.dialog.is_none(), notice(&app)),
        (true, "the row under the cursor has just changed; press again")
    );
    let exchange = app.pane(Pane::Locks).unsettled().unwrap();
    app.update(Message::Settled(exchange));
    drive(&mut app, "K");
    seen(&mut app);
    assert!(app.dialog.as_ref().unwrap().title().starts_with("Terminate 11 "));
}

#[test]
fn without_waits_the_lower_pane_has_the_cursor() {
    let mut calm = queues(0.0);
    calm.locks.retain(|lock| lock.wait_start.is_none());
    let mut begun = App::new(AppSettings::default(), 1.0);
    begun.screen = Screen::Locks;
    begun.keep_focus();
    arrive(&mut begun, calm.view());
    assert_eq!((begun.focus, selected_pid(&begun)), (Pane::Held, Some(40)));
    // The cursor does not move when the first wait begins.
    arrive(&mut begun, queues(1.0).view());
    assert_eq!((begun.focus, selected_pid(&begun)), (Pane::Held, Some(40)));
    drive(&mut begun, "<shift-tab>");
    assert_eq!((begun.focus, begun.pane(Pane::Locks).cursor), (Pane::Locks, 0));
}

#[test]
fn a_session_is_followed_to_the_lock_it_waits_for_and_a_lock_to_its_holder() {
    let mut app = app(queues(0.0));
    drive(&mut app, "7/pid:13<enter>jf<esc>3");
    assert_eq!((app.focus, app.pane(Pane::Locks).selected), (Pane::Locks, Some(RowId::Awaited(row(2)))));
    drive(&mut app, "ff7");
    assert_eq!(selected_pid(&app), Some(10), "the holder");
    drive(&mut app, "f/pid:40<enter>jf<esc>3");
    assert_eq!((app.focus, selected_pid(&app)), (Pane::Held, Some(40)));
}

#[test]
fn the_waits_are_a_third_pane_on_a_high_screen_and_behind_tab_on_a_low_one() {
    for (size, panes) in [
        ((80, 24), &[Pane::Locks, Pane::Held][..]),
        ((200, 34), &[Pane::Locks, Pane::Held]),
        ((120, 35), &[Pane::Locks, Pane::Held, Pane::Waits]),
    ] {
        let mut app = app(queues(0.0));
        app.update(Message::Resize(size.0, size.1));
        drive(&mut app, "3");
        assert_eq!(app.visible_panes(), panes, "{size:?}");
        drive(&mut app, "<tab><tab>");
        assert_eq!(app.focus, Pane::Waits);
        assert!(app.visible_panes().contains(&Pane::Waits), "{size:?}");
    }
}

#[test]
fn the_strip_names_the_holder_and_the_first_in_the_queue() {
    let mut app = app(queues(0.0));
    let strip = |app: &App| {
        let (title, lines) = crate::app::strip::strip_below(app).unwrap();
        std::iter::once(title).chain(lines.iter().map(crate::app::line::Line::plain)).collect::<Vec<_>>()
    };
    drive(&mut app, "3");
    assert_eq!(
        strip(&app),
        [
            "orders · RowShare 2, Exclusive 1",
            "2 holders: 21 app@report, 22 app@report",
            "first in the queue: 30 app@ci Exclusive, 2 behind it",
        ]
    );
    drive(&mut app, "j");
    assert_eq!(
        strip(&app),
        [
            "accounts ctid (0,1) · row lock 2",
            "10 app@web holds the row, idle in transaction 1m00s: UPDATE accounts",
            "first in the queue: 11 app@web, 1 behind it",
        ]
    );
    drive(&mut app, "<tab>");
    assert_eq!(strip(&app)[0], "Lock on advisory 7");
    assert!(strip(&app)[1].starts_with("app@cron on 10.0.3.17"), "{:?}", strip(&app));
}
