use super::*;

#[test]
fn a_pause_freezes_the_screen_while_polling_continues() {
    let mut app = app(sample::incident(0.0));
    drive(&mut app, "p");
    arrive(&mut app, sample::Builder { now: 5.0, ..Builder::default() }.view());
    assert_eq!(app.pane(Pane::Chains).rows.len(), 8);
    assert!(app.latest.is_some());
    drive(&mut app, "jjp");
    assert_eq!(app.pane(Pane::Chains).rows.len(), 0, "the newest snapshot is shown at once");
}

#[test]
fn a_followed_session_is_selected_on_every_screen() {
    let mut app = app(sample::incident(0.0));
    drive(&mut app, "7/pid:4977<enter>jf<esc>3");
    let lock = crate::app::panes::RowId::Awaited(sample::advisory(72_707_369));
    assert_eq!(app.pane(app.focus).selected, Some(lock), "its lock");
    drive(&mut app, "2");
    assert_eq!(selected_pid(&app), Some(4977), "its chain");
    arrive(&mut app, sample::incident(10.0).view());
    assert_eq!(selected_pid(&app), Some(4977));
    drive(&mut app, "f");
    assert_eq!(app.follow, None);
}

#[test]
fn tasks_have_a_screen_and_a_pane_if_task_tables_exist() {
    let mut with = app(sample::jobs(0.0));
    for (keys, screen, focus) in [
        ("4", Screen::Tasks, Pane::Tasks),
        ("1", Screen::Overview, Pane::Tasks),
        ("<tab>", Screen::Overview, Pane::Findings),
        ("<shift-tab>z", Screen::Overview, Pane::Tasks),
    ] {
        drive(&mut with, keys);
        assert_eq!((with.screen, with.focus), (screen, focus), "{keys}");
    }
    assert_eq!(with.visible_panes(), [Pane::Tasks]);
    arrive(&mut with, sample::incident(1.0).view());
    assert_eq!(with.focus, Pane::Findings, "without tables there is no pane");
    assert_eq!(with.visible_panes(), [Pane::Findings, Pane::Chains, Pane::Advisory]);
    let mut without = app(sample::incident(0.0));
    drive(&mut without, "4");
    assert_eq!(without.screen, Screen::Overview);
    assert!(without.notice.as_ref().is_some_and(|notice| notice.text.contains("no task tables")));
}

fn task_states(app: &App) -> Vec<&'static str> {
    let context = app.context().unwrap();
    let rows = app.pane(Pane::Tasks).rows.iter();
    rows.filter_map(|row| match row {
        crate::app::panes::Row::At(at) => Some(context.view.tasks.rows[*at as usize].state.as_str()),
        _ => None,
    })
    .collect()
}

#[test]
fn urgent_tasks_are_first_and_tasks_can_be_filtered_and_sorted() {
    let mut app = app(sample::jobs(0.0));
    drive(&mut app, "4");
    let urgent = ["orphan", "slow", "overdue", "overdue", "leaked", "running", "due", "idle", "disabled"];
    assert_eq!(task_states(&app), urgent);
    for (filter, states) in [
        ("state:overdue", vec!["overdue", "overdue"]),
        ("worker:worker-7", vec!["orphan"]),
        ("run>10m", vec!["orphan", "slow"]),
        ("task:报表", vec!["orphan"]),
        ("pid:6101", vec!["running"]),
        ("gauge>1", vec!["orphan", "slow"]),
        ("try:2/3", vec!["orphan"]),
        ("type:cleanup", vec!["slow"]),
    ] {
        drive(&mut app, &format!("/{filter}<enter>"));
        assert_eq!(task_states(&app), states, "{filter}");
        drive(&mut app, "<esc>");
    }
    drive(&mut app, "s<home>jjj<enter>");
    assert_eq!(task_states(&app)[..3], ["orphan", "slow", "running"], "the longest run first");
    drive(&mut app, "s<end><enter>");
    assert_eq!(app.pane(Pane::Tasks).sort, None);
    assert_eq!(task_states(&app)[..3], ["orphan", "slow", "overdue"], "the usual order again");
    drive(&mut app, "*");
    assert_eq!(app.pane(Pane::Tasks).marks.len(), 9);
}

#[test]
fn a_task_is_followed_to_its_lock_and_its_session_and_back() {
    let mut app = app(sample::jobs(0.0));
    drive(&mut app, "4jf7");
    assert_eq!(selected_pid(&app), Some(6103), "the session that holds its key");
    drive(&mut app, "3");
    assert_eq!(selected_pid(&app), Some(6103), "its lock");
    drive(&mut app, "4");
    assert_eq!(app.pane(Pane::Tasks).cursor, 1);
    assert_eq!(drive(&mut app, "y"), [Effect::Copy("6103".into())], "the process that holds its key");
    drive(&mut app, "f");
    assert_eq!(app.follow, None);
    drive(&mut app, "7/pid:6101<enter>jf<esc>4");
    assert_eq!(task_states(&app)[app.pane(Pane::Tasks).cursor], "running", "from a session to its task");
}

#[test]
fn a_waiter_for_the_key_of_a_task_leads_to_its_chain() {
    let mut b = sample::jobs(0.0);
    let key = sample::advisory(crate::model::task::TaskKey::Own(3).number());
    b.session(7001, "app@admin", crate::model::backend::State::Active, 9.0, "SELECT pg_advisory_lock($1)");
    b.lock(7001, key, crate::model::lock::LockMode::Exclusive, Some(9.0));
    let mut app = app(b);
    drive(&mut app, "4jf2");
    assert_eq!(selected_pid(&app), Some(6103), "the holder is the root of a chain now");
}

#[test]
fn a_task_stays_selected_when_it_starts_and_a_finding_leads_to_it() {
    let mut app = app(sample::jobs(0.0));
    drive(&mut app, "4/task:digest<enter>j<esc>");
    let selected = app.pane(Pane::Tasks).selected;
    assert!(selected.is_some());
    let mut started = sample::jobs(1.0);
    started.execution(6, "worker-6", "running", 0.5, Some(6106));
    arrive(&mut app, started.view());
    assert_eq!(app.pane(Pane::Tasks).selected, selected);
    assert_eq!(task_states(&app)[app.pane(Pane::Tasks).cursor], "running");
    let at = app.view.as_ref().unwrap().findings.iter().position(|one| one.check == "orphan_task").unwrap();
    drive(&mut app, &format!("1!g{}4", "j".repeat(at)));
    assert_eq!((app.screen, app.pane(Pane::Tasks).cursor), (Screen::Tasks, 0));
    drive(&mut app, "<enter>");
    let Some(Page::Detail { subject, .. }) = app.pages.last().cloned() else { panic!("no detail") };
    let text: Vec<String> =
        app.detail_lines(subject, 100).unwrap().iter().map(crate::app::line::Line::plain).collect();
    let text = text.join("\n");
    assert!(text.contains("could not serialize access due to concurrent update"), "{text}");
    assert!(text.contains("6107, which has ended"), "{text}");
}

#[test]
fn zoom_shows_one_pane_and_gives_the_other_back() {
    let mut app = app(sample::incident(0.0));
    drive(&mut app, "<tab>z");
    assert_eq!(app.visible_panes(), [Pane::Advisory]);
    drive(&mut app, "<esc>");
    assert_eq!(app.visible_panes(), [Pane::Findings, Pane::Chains, Pane::Advisory]);
}

#[test]
fn every_pane_of_the_overview_has_its_rows_at_any_size() {
    let mut app = begun(sample::systems::leases(0.0));
    let all = [Pane::Findings, Pane::Chains, Pane::Advisory, Pane::Tasks, Pane::Leases];
    for (columns, rows) in [(80, 23), (60, 15), (120, 35), (200, 60)] {
        app.update(Message::Resize(columns, rows));
        for pane in all {
            assert_eq!((app.focus, app.visible_panes().as_slice()), (pane, &all[..]), "{columns}x{rows}");
            let expanded = if pane == Pane::Findings { Pane::Chains } else { pane };
            assert_eq!(app.expanded(), Some(expanded));
            let total = app.pane(pane).total;
            assert_eq!(app.pane(pane).rows.len(), total, "it has its rows");
            assert!(total > 0, "{pane:?}");
            drive(&mut app, "<tab>");
        }
    }
}

#[test]
fn the_cursor_begins_on_the_worst_finding_and_then_stays_on_one() {
    let finding = |app: &App| app.pane(Pane::Findings).selected;
    for moved in [false, true] {
        let mut app = begun(sample::crowd(3, 0, 0.0));
        if moved {
            drive(&mut app, "jk");
        }
        let first = finding(&app);
        assert!(first.is_some());
        arrive(&mut app, sample::incident(1.0).view());
        let shown =
            |app: &App| app.view.as_ref().unwrap().findings.first().map(crate::app::panes::findings::id_of);
        if moved {
            assert_eq!(finding(&app), first, "it has just ended, and is still shown");
        }
        arrive(&mut app, sample::incident(8.0).view());
        let worst = shown(&app);
        if moved {
            assert_eq!(finding(&app), None, "that finding has ended");
        } else {
            assert_eq!(finding(&app), worst);
        }
        let mut both = sample::incident(9.0);
        both.session(9, "app@last", crate::model::backend::State::Idle, 1.0, "SELECT 1");
        arrive(&mut app, both.view());
        if !moved {
            drive(&mut app, "j");
            let chosen = finding(&app);
            arrive(&mut app, sample::incident(3.0).view());
            assert_eq!(finding(&app), chosen);
        }
    }
}

#[test]
fn a_shortcut_acts_on_the_subject_of_the_finding() {
    for (keys, pid) in [("K", 4312), ("jK", 4977), ("!jK", 4977)] {
        let mut app = begun(sample::incident(0.0));
        drive(&mut app, keys);
        let dialog = app.dialog.as_ref().unwrap_or_else(|| panic!("{keys}: {}", notice(&app)));
        let crate::model::plan::TargetKind::Session(session) = &dialog.plan.rows[0].target.what else {
            panic!("no session")
        };
        assert_eq!(session.pid, pid, "{keys}");
    }
}

#[test]
fn a_paste_types_into_a_prompt_and_does_nothing_elsewhere() {
    let mut app = app(sample::incident(0.0));
    assert_eq!(app.update(Message::Paste("q7\n".into())), Update::none());
    assert_eq!(app.screen, Screen::Overview);
    drive(&mut app, "7/");
    app.update(Message::Paste("who:prisma\r\n\u{1b}q".repeat(1000)));
    let prompt = app.prompt.as_ref().unwrap();
    assert!(prompt.input.value().starts_with("who:prisma"));
    assert!(prompt.input.value().chars().count() <= 500);
}

#[test]
fn a_detail_page_follows_its_subject_and_survives_its_end() {
    let mut app = app(sample::incident(0.0));
    drive(&mut app, "<enter>");
    let Some(Page::Detail { subject, .. }) = app.pages.last().cloned() else { panic!("no detail") };
    assert!(app.detail_lines(subject, 80).is_some());
    arrive(&mut app, sample::Builder { now: 9.0, ..Builder::default() }.view());
    assert!(app.detail_lines(subject, 80).is_none());
    drive(&mut app, "<esc>");
    assert!(app.pages.is_empty());
}

#[test]
fn old_data_is_called_old() {
    let mut app = app(sample::incident(0.0));
    assert!(!app.is_stale());
    assert!(!app.update(Message::Tick(1.0)).redraw, "nothing changed on the screen");
    assert!(app.update(Message::Tick(4.0)).redraw);
    assert!(app.is_stale());
    // A view with a new event but the same snapshot does not make the data newer.
    let view = app.view.as_deref().cloned().unwrap();
    arrive(&mut app, view);
    assert!(app.is_stale());
    let mut down = sample::incident(0.0).view();
    down.link =
        ConnectionState::Down { reason: "gone".into(), attempt: 1, wait: std::time::Duration::from_secs(4) };
    let mut app = App::new(AppSettings::default(), 1.0);
    arrive(&mut app, down);
    assert!(app.is_stale());
}

/// Every worker holds a lock on its name, which is of little interest.
#[test]
fn locks_on_worker_names_are_listed_after_all_other_locks() {
    let mut b = Builder::default();
    b.session(7, "app@worker", crate::model::backend::State::Idle, 1.0, "SELECT 1");
    let name = i64::from(crate::model::namespace::WORKERS) << 48 | 5;
    for key in [name, i64::MAX, 1] {
        b.lock(7, sample::advisory(key), LockMode::Exclusive, None);
    }
    let mut app = app(b);
    drive(&mut app, "3");
    // The first lock in the snapshot is the last on the screen.
    assert_eq!(app.pane(Pane::Held).rows, [Row::At(2), Row::At(1), Row::At(0)]);
}

#[test]
fn only_visible_panes_cost_anything() {
    let mut app = app(sample::crowd(10, 1000, 0.0));
    assert!(app.pane(Pane::Held).rows.is_empty(), "not built yet");
    drive(&mut app, "3");
    assert_eq!((app.pane(Pane::Locks).rows.len(), app.pane(Pane::Held).rows.len()), (1, 1000));
}

#[test]
fn any_keys_in_any_order_keep_the_state_sound() {
    use proptest::prelude::*;
    let keys = prop::collection::vec(
        prop::sample::select("jkhlgGzfpa!?s/ *12344556677yw+-q<\t".chars().collect::<Vec<_>>()),
        0..60,
    );
    let special = prop::collection::vec(0..6u8, 0..60);
    proptest!(ProptestConfig::with_cases(200), |(keys in keys, special in special)| {
        let mut app = app(sample::incident(0.0));
        for (at, character) in keys.into_iter().enumerate() {
            app.update(Message::Key(Key::char(character)));
            match special.get(at) {
                Some(0) => { drive(&mut app, "<enter>"); }
                Some(1) => { drive(&mut app, "<esc>"); }
                Some(2) => { arrive(&mut app, sample::incident(1.0).view()); }
                Some(3) => { arrive(&mut app, sample::crowd(7, 3, 2.0).view()); }
                Some(4) => { arrive(&mut app, sample::jobs(3.0).view()); }
                _ => {}
            }
            prop_assert!(app.panes().contains(&app.focus));
            let state = app.pane(app.focus);
            prop_assert!(state.rows.is_empty() || state.cursor < state.rows.len() || state.selected.is_none());
        }
    });
}

#[test]
fn shortcuts_of_leases_and_queue_work_if_their_tables_exist() {
    let mut app = app(sample::incident(0.0));
    for (key, words) in [("5", "no leases here"), ("6", "no table task_queue")] {
        drive(&mut app, key);
        assert_eq!(app.screen, Screen::Overview);
        assert!(app.notice.as_ref().is_some_and(|notice| notice.text.contains(words)), "{key}");
    }
    arrive(&mut app, sample::systems::queue(0.0).view());
    drive(&mut app, "5");
    assert_eq!((app.screen, app.focus), (Screen::Leases, Pane::Leases));
    drive(&mut app, "6<tab><tab>");
    assert_eq!((app.screen, app.focus), (Screen::Queue, Pane::Generators));
    let states = |app: &App, pane: Pane, column: &str| -> Vec<String> {
        let context = app.context().unwrap();
        let rows = app.pane(pane).rows.iter();
        rows.map(|row| pane.table().cell(&context, *row, pane.table().position(column).unwrap(), 40).text)
            .collect()
    };
    assert_eq!(states(&app, Pane::Generators, "worker"), ["3", "1", "2"], "generators that are ahead first");
    assert_eq!(states(&app, Pane::Limits, "state"), ["full", "near", "open", "unknown"]);
    drive(&mut app, "16/state:running run>10<enter>");
    assert_eq!(states(&app, Pane::Queue, "item"), ["41211"]);
    drive(&mut app, "<esc>5/left>10<enter>");
    assert_eq!(states(&app, Pane::Leases, "lease"), ["1", "4"]);
    arrive(&mut app, sample::incident(1.0).view());
    assert_eq!(app.screen, Screen::Leases, "the screen reports that its tables no longer exist");
}

#[test]
fn the_detail_of_a_lock_shows_the_statements_of_its_waiters() {
    let mut b = sample::incident(0.0);
    let key = sample::advisory(-1_888_902_025);
    b.session(7001, "app@billing", crate::model::backend::State::Idle, 9.0, "SELECT 1");
    b.lock(7001, key, LockMode::Exclusive, None);
    let query = "SELECT pg_advisory_lock(hashtext('invoice:7'))";
    b.session(7002, "app@billing", crate::model::backend::State::Active, 5.0, query);
    b.lock(7002, key, LockMode::Exclusive, Some(5.0));
    let mut app = app(b);
    drive(&mut app, "3/pid:7001<enter>j<enter>");
    let Some(Page::Detail { subject, .. }) = app.pages.last().cloned() else { panic!("no detail") };
    let lines = app.detail_lines(subject, 200).unwrap();
    let text = lines.iter().map(crate::app::line::Line::plain).collect::<Vec<_>>().join("\n");
    assert!(text.contains("lock           invoice:7"), "the holder runs another statement now: {text}");
    assert!(text.contains(query), "{text}");
    drive(&mut app, "<esc><esc>/pid:4312<enter>j<enter>");
    let Some(Page::Detail { subject, .. }) = app.pages.last().cloned() else { panic!("no detail") };
    let lines = app.detail_lines(subject, 200).unwrap();
    let text = lines.iter().map(crate::app::line::Line::plain).collect::<Vec<_>>().join("\n");
    assert!(text.contains("accounts (oid 2001)") && text.contains("ALTER TABLE accounts ADD note"), "{text}");
}

/// The lock of a client whose host has failed stays until the server detects the failure.
#[test]
fn the_detail_of_a_holder_shows_when_a_lost_host_is_detected() {
    let text = |keepalives: crate::model::snapshot::Keepalives, pid: i32| {
        let mut snapshot = sample::incident(0.0).snapshot();
        let mut server = snapshot.server().unwrap().clone();
        server.keepalives = keepalives;
        snapshot.server = crate::model::snapshot::Section::fresh(vec![server], snapshot.taken_at);
        let mut app = App::new(AppSettings::default(), 1.0);
        arrive(&mut app, sample::view(snapshot, 1));
        drive(&mut app, &format!("7/pid:{pid}<enter>j<enter>"));
        let Some(Page::Detail { subject, .. }) = app.pages.last().cloned() else { panic!("no detail") };
        let lines = app.detail_lines(subject, 200).unwrap();
        lines.iter().map(crate::app::line::Line::plain).collect::<Vec<_>>().join("\n")
    };
    let short = crate::model::snapshot::Keepalives { idle: 60, interval: 10, count: 6, check: 0 };
    assert!(
        text(short, 4312).contains("host lost      the server terminates it after 2m00s"),
        "{}",
        text(short, 4312)
    );
    assert!(text(crate::model::snapshot::Keepalives::default(), 4312).contains("on Linux after 2h11m"));
    assert!(!text(short, 5100).contains("host lost"), "it holds nothing");
}

#[test]
fn waits_are_listed_below_the_locks_most_expensive_first() {
    let mut app = app(sample::incident(0.0));
    drive(&mut app, "3<tab><tab>");
    assert_eq!((app.screen, app.focus), (Screen::Locks, Pane::Waits));
    let names = |app: &App| -> Vec<String> {
        let context = app.context().unwrap();
        let rows = app.pane(Pane::Waits).rows.iter();
        rows.map(|row| Pane::Waits.table().cell(&context, *row, 0, 40).text).collect()
    };
    assert_eq!(names(&app), ["accounts", "Prisma Migrate", "报表生成"]);
    drive(&mut app, "/total>30 type:advisory<enter>");
    assert_eq!(names(&app), ["Prisma Migrate"]);
    drive(&mut app, "<esc>gK");
    assert!(app.dialog.is_none(), "a lock cannot be terminated");
    assert!(app.notice.as_ref().is_some_and(|notice| notice.text.contains("a lock with waits")));
}
