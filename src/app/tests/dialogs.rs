use super::*;
use crate::model::plan::tests::{orphan, slow};
use crate::model::plan::{
    ActionCommand, ExecutorOrder, ExecutorReply, RecoveryPlan, Request, Selection, Target, TargetKind, Verb,
};

fn pids(command: &ActionCommand) -> Vec<i32> {
    let pid = |target: &Target| match &target.what {
        TargetKind::Session(session) => session.pid,
        other => panic!("{other:?} is no session"),
    };
    command.targets.iter().map(pid).collect()
}

#[test]
fn only_waiting_tasks_and_items_can_be_postponed() {
    for (builder, keys, is_done) in [
        (sample::jobs(0.0), "4/send<enter>gDy", true),
        (sample::jobs(0.0), "4/send<enter>gDn", false),
        (sample::systems::queue(0.0), "6/pending<enter>gDy", true),
    ] {
        let mut app = app(builder);
        let effects = slowly(&mut app, keys);
        let verbs = command(&effects).map(|command| (command.verb, command.targets.len()));
        assert_eq!(verbs, is_done.then_some((Verb::PutOff, 1)), "{keys}: {}", notice(&app));
    }
    for (builder, keys, why) in [
        (sample::jobs(0.0), "4jD", "is running: its next due time is set when it ends"),
        (sample::systems::queue(0.0), "6D", "its worker's session has ended: R returns it first"),
        (sample::incident(0.0), "2D", "D postpones a task or a queue item; this is a session"),
    ] {
        let mut app = app(builder);
        assert_eq!(command(&slowly(&mut app, keys)), None, "{keys}");
        assert!(notice(&app).contains(why), "{keys}: {}", notice(&app));
    }
}

#[test]
fn a_confirmation_orders_exactly_the_chosen_action() {
    for (keys, verb, targets) in [
        ("Ky", Verb::Terminate, vec![4312]),
        ("Kjky", Verb::Terminate, vec![4312]),
        ("jCy", Verb::Cancel, vec![4410]),
        ("jKry", Verb::Terminate, vec![4312]),
        ("jK<tab>y", Verb::Terminate, vec![4312]),
        ("jK<tab><tab>y", Verb::Terminate, vec![4410]),
        ("jK<shift-tab>y", Verb::Terminate, vec![4312]),
        ("jKrty", Verb::Terminate, vec![4410]),
        ("jjjKy", Verb::Terminate, vec![4977]),
        ("7 jj K2<enter>", Verb::Terminate, vec![4312, 4980]),
        ("7/who:prisma<enter>*K3<enter>", Verb::Terminate, vec![4977, 4980, 4981]),
        ("7*K<esc>/who:prisma<enter>K3<enter>", Verb::Terminate, vec![4977, 4980, 4981]),
        ("<enter>Ky", Verb::Terminate, vec![4312]),
        ("!jKy", Verb::Terminate, vec![4977]),
        ("3Ky", Verb::Terminate, vec![4312]),
        ("7 jj <esc>g!Ky", Verb::Terminate, vec![4312]),
    ] {
        let mut app = app(sample::incident(0.0));
        let effects = slowly(&mut app, keys);
        let command = command(&effects).unwrap_or_else(|| panic!("{keys}: {effects:?} {:?}", app.notice));
        assert_eq!((command.verb, pids(command)), (verb, targets), "{keys}");
        assert!(app.dialog.is_none(), "{keys}");
        assert_eq!(app.pending_actions.len(), 1, "{keys}");
    }
}

#[test]
fn a_finding_or_an_open_page_is_the_target_despite_marks() {
    for (keys, target) in [("2 jj !Ky", 4312), ("2 <enter>Ky", 4410), ("2 jj !jKy", 4977)] {
        let mut app = app(sample::incident(0.0));
        let effects = slowly(&mut app, keys);
        assert_eq!(command(&effects).map(pids), Some(vec![target]), "{keys}");
    }
}

#[test]
fn nothing_is_done_by_any_other_key() {
    for keys in [
        "K",
        "KK",
        "KC",
        "K<esc>",
        "K<ctrl-c>",
        "K<enter>",
        "Kq",
        "KY",
        "K<ctrl-y>",
        "K<alt-y>",
        "K<esc>y",
        "K<enter>y",
        "2jjKy",
        "2jjK1<enter>",
        "2jjK18<enter>",
        "2jjK16<esc>",
        "2jjK<enter>",
        "2jjK16<backspace><enter>",
        "7 jj Ky",
        "7 jj K3<enter>",
        "7 jj K<enter>2<enter>",
        "Kp",
        "K!",
        "K?",
        "K/y<enter>",
        "K1",
        "Kz",
        "K<ctrl-z>",
        "C",
        "Cy",
        "Gk",
        "GkKy",
        "Uy",
        "Ry",
        "Ey",
        "Ty",
        "Xy",
    ] {
        let mut app = app(sample::incident(0.0));
        assert_eq!(command(&slowly(&mut app, keys)), None, "{keys}");
        assert!(app.pending_actions.is_empty(), "{keys}");
    }
}

#[test]
fn keys_before_the_first_frame_and_pastes_are_dropped() {
    let mut app = app(sample::incident(0.0));
    assert_eq!(drive(&mut app, "Kyyy"), []);
    assert!(app.dialog.is_some());
    app.update(Message::Paste("y".into()));
    seen(&mut app);
    app.update(Message::Paste("y\ny".into()));
    assert!(app.dialog.is_some() && app.pending_actions.is_empty());
    assert!(command(&drive(&mut app, "y")).is_some());
    // A frame drawn before the question does not count, nor does one that had no room for it.
    let mut app = super::app(sample::incident(0.0));
    let before = app.dialog.as_ref().map(|dialog| dialog.revision);
    drive(&mut app, "K");
    app.update(Message::Drawn(before));
    app.update(Message::Drawn(None));
    app.update(Message::Drawn(Some(0)));
    assert_eq!(drive(&mut app, "y"), []);
    assert!(app.dialog.is_some());
}

#[test]
fn another_choice_and_another_size_have_to_be_seen_first() {
    let mut app = app(sample::incident(0.0));
    slowly(&mut app, "jK");
    seen(&mut app);
    assert_eq!(drive(&mut app, "ry"), []);
    assert!(app.dialog.is_some());
    seen(&mut app);
    app.update(Message::Resize(80, 24));
    assert_eq!(drive(&mut app, "y"), []);
    seen(&mut app);
    app.update(Message::Resize(10, 5));
    app.update(Message::Drawn(None));
    assert_eq!(drive(&mut app, "y"), []);
    assert!(app.dialog.is_some());
}

#[test]
fn a_question_stays_open_when_its_target_has_ended_and_takes_no_key_but_back() {
    for (change, word) in [
        (0, "4312 app@web-3: has ended: nothing was done"),
        (1, "4312 app@web-3: its transaction has ended: nothing was done"),
        (2, "4312 app@web-3: no longer blocks any session: nothing was done"),
    ] {
        for paused in [false, true] {
            let mut app = app(sample::incident(0.0));
            slowly(&mut app, if paused { "2pK" } else { "2K" });
            seen(&mut app);
            let mut later = sample::incident(1.0);
            match change {
                0 => later.backends.retain(|backend| backend.pid != 4312),
                1 => {
                    let root = later.backends.iter_mut().find(|backend| backend.pid == 4312).unwrap();
                    root.xact_start = Some(sample::at(0.5));
                }
                _ => later.locks.retain(|lock| lock.pid != Some(4312)),
            }
            arrive(&mut app, later.view());
            assert_eq!(over(&app), word);
            assert_eq!(drive(&mut app, "<enter>"), [], "it was not drawn yet");
            assert_eq!(slowly(&mut app, "y1jKtq"), []);
            assert_eq!((over(&app), notice(&app)), (word, ""));
            assert_eq!(slowly(&mut app, "<enter>"), []);
            assert!(app.dialog.is_none());
            assert_eq!(notice(&app), word);
            assert_eq!(drive(&mut app, "q"), [Effect::Quit]);
        }
    }
}

#[test]
fn a_paused_screen_is_compared_with_the_newest_view() {
    let mut app = app(sample::incident(0.0));
    drive(&mut app, "2p");
    let mut later = sample::incident(5.0);
    later.backends.iter_mut().find(|backend| backend.pid == 4312).unwrap().xact_start = Some(sample::at(4.0));
    arrive(&mut app, later.view());
    assert_eq!(drive(&mut app, "Ky"), [Effect::Copy("4312".into())], "no question opens");
    assert!(notice(&app).contains("its transaction has ended"), "{}", notice(&app));
}

#[test]
fn a_view_with_an_unchanged_target_keeps_the_typed_text() {
    let mut app = app(sample::incident(0.0));
    slowly(&mut app, "2jjK1");
    arrive(&mut app, sample::incident(0.0).view());
    assert_eq!(command(&slowly(&mut app, "6<enter>")).map(|command| command.targets.len()), Some(16));
}

/// A live count next to a frozen one would contradict it.
#[test]
fn the_counts_of_a_question_are_of_one_moment() {
    let said = |app: &App| {
        let dialog = app.dialog.as_ref().unwrap();
        let lines: Vec<String> = dialog.lines(120).iter().map(crate::app::line::Line::plain).collect();
        let all = dialog.choices().into_iter().find(|choice| choice.letter == 'b').unwrap().title;
        (lines.join("\n"), all)
    };
    let one_more = || {
        let mut later = sample::shared(1.0);
        later.session(43, "app@web-9", crate::model::backend::State::Active, 0.5, "SELECT 1");
        later.lock(43, sample::relation(2001), LockMode::AccessShare, Some(0.5));
        later.view()
    };
    let mut app = app(sample::shared(0.0));
    slowly(&mut app, "2K");
    let (lines, all) = said(&app);
    assert!(lines.contains("blocks    3: "), "{lines}");
    assert_eq!(all, "all 3 blockers: 1 continues now, 2 in turn");
    arrive(&mut app, one_more());
    let (lines, all) = said(&app);
    assert!(lines.contains("blocks    4: "), "{lines}");
    assert_eq!(all, "all 3 blockers: 1 continues now, 3 in turn");
    // The chosen sessions stay those that were shown.
    let mut app = super::app(sample::shared(0.0));
    slowly(&mut app, "2Kb");
    let mut later = sample::shared(1.0);
    later.session(33, "app@web-9", crate::model::backend::State::Idle, 0.5, "SELECT 1");
    later.lock(33, sample::relation(2001), LockMode::AccessShare, None);
    arrive(&mut app, later.view());
    assert_eq!(app.dialog.as_ref().unwrap().plan.rows.len(), 3);
}

#[test]
fn a_renewal_leaves_the_question_as_it_is_and_another_owner_ends_it() {
    let later = |owner: Option<&'static str>| {
        let mut builder = sample::systems::leases(0.0);
        let lease = builder.leases.iter_mut().find(|lease| &*lease.id == "11").unwrap();
        lease.renewed_at = Some(sample::at(0.0));
        lease.owner = owner.map(Into::into).or(lease.owner.clone());
        builder.view()
    };
    let mut app = app(sample::systems::leases(0.0));
    assert_eq!(slowly(&mut app, "5/lease:11<enter>gU1"), []);
    seen(&mut app);
    arrive(&mut app, later(None));
    let effects = drive(&mut app, "1<enter>");
    let command = command(&effects).expect("owner and token are the same");
    match &command.targets[0].what {
        TargetKind::Lease(lease) => assert_eq!((&*lease.id, lease.renewed_at), ("11", Some(sample::at(0.0)))),
        other => panic!("{other:?}"),
    }
    let mut app = super::app(sample::systems::leases(0.0));
    slowly(&mut app, "5/lease:11<enter>gU1");
    arrive(&mut app, later(Some("somebody else")));
    assert!(over(&app).ends_with("its row has changed: nothing was done"), "{}", over(&app));
    // The rest of its id falls on nothing.
    assert_eq!(slowly(&mut app, "1"), []);
    assert!(over(&app).ends_with("its row has changed: nothing was done"));
    slowly(&mut app, "<enter>");
    assert!(app.dialog.is_none());
}

#[test]
fn without_a_connection_nothing_is_asked_for() {
    let mut app = app(sample::incident(0.0));
    slowly(&mut app, "2K");
    let mut down = sample::incident(0.0).view();
    down.link = ConnectionState::Down {
        reason: "refused".into(),
        attempt: 1,
        wait: std::time::Duration::from_secs(4),
    };
    arrive(&mut app, down);
    assert_eq!(slowly(&mut app, "y"), []);
    assert!(app.pending_actions.is_empty());
    assert_eq!(slowly(&mut app, "<esc>Ky"), []);
    assert!(app.pending_actions.is_empty());
}

#[test]
fn read_only_has_no_such_keys() {
    let settings = AppSettings { read_only: true, ..AppSettings::default() };
    let mut app = App::new(settings, 1.0);
    arrive(&mut app, sample::incident(0.0).view());
    assert_eq!(slowly(&mut app, "CKRUETX!KC<enter>K<enter>K"), []);
    assert!(app.dialog.is_none());
    assert_eq!(notice(&app), "read-only: K (terminate) does nothing here");
}

#[test]
fn all_orphans_are_those_that_the_filter_shows() {
    let asked = |keys: &str| {
        let mut app = app(sample::jobs(0.0));
        let effects = slowly(&mut app, keys);
        let request = effects.iter().rev().find_map(|effect| match effect {
            Effect::Order(ExecutorOrder::PlanRecovery { request, .. }) => Some(request.select.clone()),
            _ => None,
        });
        let dialog = app.dialog.as_ref();
        (request, dialog.unwrap_or_else(|| panic!("{keys}: {}", notice(&app))).plan.hidden)
    };
    assert_eq!(asked("4Ro"), (Some(Selection::Orphans), 0));
    let (request, hidden) = asked("4/state:orphan<enter>gRo");
    assert!(matches!(&request, Some(Selection::Executions(ids)) if ids.len() == 1));
    assert_eq!(hidden, 0);
    assert_eq!(asked("4/state:slow<enter>gRo").1, 1, "the orphan is hidden");
}

/// A process id is unique only within one server.
#[test]
fn a_question_is_about_the_server_that_was_shown() {
    let mut app = app(sample::incident(0.0));
    let other = |id| View { target: TargetId(id), ..sample::incident(1.0).view() };
    slowly(&mut app, "K");
    arrive(&mut app, other(0));
    assert!(app.dialog.is_some());
    arrive(&mut app, other(1));
    assert!(app.dialog.is_none());
    assert_eq!(notice(&app), "another server is shown now: nothing was done");
    seen(&mut app);
    let effects = slowly(&mut app, "jkKy");
    assert_eq!(command(&effects).map(|command| command.server), Some(TargetId(1)));
}

#[test]
fn termination_is_offered_only_if_a_session_exists() {
    for (running, letters) in [(vec![], "top"), (vec![orphan()], "top"), (vec![orphan(), slow()], "tope")] {
        let mut app = app(sample::jobs(0.0));
        let effects = slowly(&mut app, "4Rp");
        let shown = |app: &App| -> String {
            app.dialog.as_ref().unwrap().choices().iter().map(|choice| choice.letter).collect()
        };
        assert_eq!(shown(&app), "top", "before the server has answered");
        let asked = effects.iter().rev().find_map(|effect| match effect {
            Effect::Order(ExecutorOrder::PlanRecovery { number, request, .. }) => Some((*number, request)),
            _ => None,
        });
        let (number, request) = asked.unwrap();
        let ids = running.iter().map(|row| row.execution_id).collect();
        let request = Request { select: Selection::Executions(ids), ..(**request).clone() };
        let plan = RecoveryPlan::of("locktop", sample::at(0.0), 30.0, &running, &request);
        app.update(Message::Answer(ExecutorReply::RecoveryPlanned(number, Ok(Arc::new(plan)))));
        assert_eq!(shown(&app), letters, "{running:?}");
    }
}
