use super::*;

fn forest(app: &App) -> Vec<(String, bool)> {
    let context = app.context().unwrap();
    let state = app.pane(Pane::Chains);
    let row = |at: usize| {
        let cell = Pane::Chains.table().cell(&context, state.rows[at], 0, 18);
        (cell.text, state.is_hit(at))
    };
    (0..state.rows.len()).map(row).collect()
}

#[test]
fn a_matching_waiter_is_listed_under_its_blockers() {
    for (filter, expected) in [
        ("pid:4470", vec![("4312", false), ("└4410", false), (" └4470", true)]),
        ("pid:4410", vec![("4312", false), ("└4410", true)]),
        ("pid:4312", vec![("4312", true)]),
        ("pid:44", vec![("4312", false), ("└4410", true)]),
        ("who:prisma !idle", vec![("4977", false), ("├4980", true), ("└4981", true)]),
        ("pid:4467 state:share", vec![("4312", false), ("└4410", false), (" └4467", true)]),
        ("nobody", vec![]),
    ] {
        let mut app = app(sample::incident(0.0));
        drive(&mut app, &format!("2/{filter}<enter>"));
        let mut shown = forest(&app);
        if filter == "pid:44" {
            shown.truncate(2);
        }
        let expected: Vec<_> = expected.into_iter().map(|(text, is_hit)| (text.to_owned(), is_hit)).collect();
        assert_eq!(shown, expected, "{filter}");
    }
}

/// The filter in the README.
#[test]
fn not_idle_keeps_sessions_idle_in_a_transaction() {
    let mut app = app(sample::incident(0.0));
    drive(&mut app, "2/!idle<enter>");
    let shown = forest(&app);
    assert_eq!(shown.first(), Some(&("4312".to_owned(), true)), "{shown:?}");
    assert!(
        shown.contains(&("4977".to_owned(), false)),
        "idle, but shown for the sessions it blocks: {shown:?}"
    );
    drive(&mut app, "7");
    drive(&mut app, "/!idle<enter>");
    let context = app.context().unwrap();
    let state = app.pane(Pane::Backends);
    let pids: Vec<i32> = state.shown(&context).filter_map(pid_of).collect();
    assert!(pids.contains(&4312) && !pids.contains(&5100) && !pids.contains(&4977), "{pids:?}");
}

#[test]
fn rows_shown_only_for_their_waiters_are_not_marked_or_counted() {
    let mut app = app(sample::incident(0.0));
    drive(&mut app, "2/pid:4470<enter>*");
    let pids: Vec<i32> = app.pane(Pane::Chains).marks.iter().copied().filter_map(pid_of).collect();
    assert_eq!((pids, app.pane(Pane::Chains).hits()), (vec![4470], 1));
    let mut app = super::app(sample::incident(0.0));
    drive(&mut app, "2 /pid:4470<enter>j");
    assert_eq!(app.pane(Pane::Chains).marks.len(), 1, "its blocker is marked");
    assert_eq!(drive(&mut app, "y"), [Effect::Copy("4470".into())], "but left out");
}

#[test]
fn a_filtered_forest_is_sorted_by_its_roots() {
    let mut app = app(sample::incident(0.0));
    drive(&mut app, "2/@<enter>s<home>jjj<enter>");
    let shown = forest(&app);
    assert!(shown.iter().position(|row| row.0 == "4312") < shown.iter().position(|row| row.0 == "4977"));
    assert!(shown.iter().any(|row| row.0.ends_with("└4981")), "{shown:?}");
}

#[test]
fn a_new_filter_selects_its_first_row() {
    for (keys, pid) in [
        ("7/who:prisma !idle<enter>", Some(4980)),
        ("2/pid:4470<enter>", Some(4470)),
        ("2jj/pid:4312<enter>", Some(4312)),
        // A selected row that passes the filter stays selected.
        ("2/who:prisma !idle<enter>n/who:prisma<enter>", Some(4981)),
        ("7/who:nobody<enter>", None),
    ] {
        let mut app = app(sample::incident(0.0));
        drive(&mut app, keys);
        assert_eq!(selected_pid(&app), pid, "{keys}");
    }
    let mut app = app(sample::incident(0.0));
    drive(&mut app, "7jj");
    let mut without = sample::incident(1.0);
    without.backends.retain(|backend| backend.pid != 4977);
    without.locks.retain(|lock| lock.pid != Some(4977));
    arrive(&mut app, without.view());
    assert_eq!(selected_pid(&app), None);
    drive(&mut app, "/<enter>");
    assert_eq!(selected_pid(&app), None, "an empty filter selects no row");
    drive(&mut app, "/who:prisma<enter>");
    assert_eq!(selected_pid(&app), Some(4980));
    assert!(drive(&mut app, "<enter>").is_empty() && !app.pages.is_empty(), "and Enter opens it");
}

#[test]
fn n_moves_from_match_to_match_and_wraps_around() {
    let mut app = app(sample::incident(0.0));
    for (keys, pid) in [
        ("2/who:prisma !idle<enter>", 4980),
        ("n", 4981),
        ("n", 4980),
        ("N", 4981),
        ("N", 4980),
        ("kN", 4981),
    ] {
        drive(&mut app, keys);
        assert_eq!(selected_pid(&app), Some(pid), "{keys}");
    }
    drive(&mut app, "<esc>N");
    assert_eq!(app.notice.as_ref().unwrap().text, "no filter is set; / sets one");
    assert_eq!(drive(&mut app, "nrestarted the pool<enter>"), [Effect::Note("restarted the pool".into())]);
    assert_eq!(drive(&mut app, "n  <enter>nx<esc>"), [], "nothing is noted");
}

#[test]
fn waits_can_be_filtered_on_every_screen_of_sessions_and_locks() {
    for (keys, count) in [
        ("2/wait>170", 2),
        ("7/wait>170", 1),
        ("3/wait>170", 1),
        ("3<tab>/held>40", 1),
        ("3<tab>/held>42", 0),
    ] {
        let mut b = sample::incident(0.0);
        b.lock(4977, sample::advisory(5), LockMode::Exclusive, None);
        let mut app = app(b);
        drive(&mut app, &format!("{keys}<enter>"));
        assert!(app.notice.is_none(), "{keys}: {:?}", app.notice);
        assert_eq!(app.pane(app.focus).hits(), count, "{keys}");
    }
}
