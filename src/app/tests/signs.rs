use super::*;
use crate::app::keymap::Action;
use crate::app::message::ClickTarget;

#[test]
fn a_shortcut_without_a_visible_effect_shows_a_notice() {
    for (keys, words) in [
        ("m", "mouse on: click a row, a heading, a finding or a key; Shift selects text in most terminals"),
        ("mm", "mouse off: the terminal selects text again"),
        ("+", "refresh every 0.5s"),
        ("+++", "refresh every 0.2s: the shortest there is"),
        ("-", "refresh every 2s"),
        ("a", "Locks, all types; Esc goes back"),
        ("3a", ""),
    ] {
        let mut app = app(sample::incident(0.0));
        drive(&mut app, keys);
        assert_eq!(notice(&app), words, "{keys}");
    }
}

#[test]
fn all_locks_from_elsewhere_leads_back() {
    let mut app = app(sample::incident(0.0));
    drive(&mut app, "7a");
    assert_eq!((app.screen, app.all_locks), (Screen::Locks, true));
    drive(&mut app, "<esc>");
    assert_eq!(app.screen, Screen::Backends);
    drive(&mut app, "a");
    assert!(app.all_locks, "all locks are shown again");
}

#[test]
fn a_followed_session_without_an_advisory_lock_is_reported() {
    for (pid, has_lock, words) in [
        (5100, true, "5100 has no advisory lock; a shows its other lock"),
        (5100, false, "5100 holds no lock and waits for none"),
        (4312, false, ""),
        (4977, false, ""),
    ] {
        let mut builder = sample::incident(0.0);
        if has_lock {
            builder.lock(pid, sample::relation(2003), crate::model::lock::LockMode::AccessShare, None);
        }
        let mut app = app(builder);
        drive(&mut app, &format!("7/pid:{pid}<enter>jf<esc>3"));
        assert_eq!(notice(&app), words);
        if has_lock {
            drive(&mut app, "a");
            assert_eq!(selected_pid(&app), Some(pid), "its lock is selected");
        }
    }
}

/// A prepared transaction has no process id to copy.
#[test]
fn of_a_prepared_transaction_the_statement_that_ends_it_is_copied() {
    let mut app = app(sample::incident(0.0));
    let effects = drive(&mut app, "2/state:order<enter>jy");
    assert_eq!(effects, [Effect::Copy("ROLLBACK PREPARED 'order-17';".into())]);
}

#[test]
fn f10_quits_and_leaves_a_question() {
    let mut app = app(sample::incident(0.0));
    assert_eq!(drive(&mut app, "K<f10>"), []);
    assert!(app.dialog.is_none());
    drive(&mut app, "<esc>");
    assert_eq!(drive(&mut app, "<f10>"), [Effect::Quit]);
}

#[test]
fn headings_findings_and_keys_can_be_clicked() {
    let mut app = app(sample::incident(0.0));
    app.update(Message::Click(ClickTarget::Key(Action::Go(Screen::Backends))));
    assert_eq!(app.screen, Screen::Backends);
    app.update(Message::Click(ClickTarget::Heading(Pane::Backends, "pid")));
    let sort = |app: &App| app.pane(Pane::Backends).sort.map(|sort| (sort.column, sort.descending));
    assert_eq!(sort(&app), Some(("pid", false)));
    app.update(Message::Click(ClickTarget::Heading(Pane::Backends, "pid")));
    assert_eq!(sort(&app), Some(("pid", true)));
    drive(&mut app, "1");
    app.update(Message::Click(ClickTarget::Row(Pane::Findings, 1)));
    assert_eq!((app.focus, selected_pid(&app)), (Pane::Findings, Some(4977)));
    drive(&mut app, "K");
    let before = app.dialog.as_ref().map(|dialog| dialog.revision);
    for spot in [
        ClickTarget::Key(Action::Quit),
        ClickTarget::Row(Pane::Findings, 0),
        ClickTarget::Row(Pane::Chains, 0),
    ] {
        assert_eq!(app.update(Message::Click(spot)), Update::none(), "a question is answered by keys");
    }
    assert_eq!(app.dialog.as_ref().map(|dialog| dialog.revision), before);
}

/// If the session is hidden from the role, other waiting sessions may be hidden, too.
#[test]
fn of_a_hidden_session_no_number_is_promised() {
    for is_hidden in [false, true] {
        let mut snapshot = sample::incident(0.0).snapshot();
        if is_hidden {
            for server in Arc::make_mut(snapshot.server.rows_mut()) {
                server.sees_all = false;
            }
            for backend in
                Arc::make_mut(snapshot.backends.rows_mut()).iter_mut().filter(|row| row.pid == 4312)
            {
                (backend.state, backend.backend_start) = (None, None);
            }
        }
        let mut app = App::new(AppSettings::default(), 1.0);
        app.size = (120, 35);
        app.update(Message::View(TargetId(0), Arc::new(sample::view(snapshot, 1))));
        let lines = crate::app::strip::strip(&app)
            .into_iter()
            .map(|line| line.plain())
            .collect::<Vec<_>>()
            .join("\n");
        assert_eq!(lines.contains("4410 continues now, then 16 behind it"), !is_hidden, "{lines}");
        assert_eq!(lines.contains("blocks at least 17; the rest is not shown"), is_hidden, "{lines}");
    }
}
