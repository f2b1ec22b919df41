use super::locks::cells;
use super::*;
use crate::model::backend::State;
use crate::model::lock::{LockTag, LockType};

/// `length` sessions, each with a changed row of accounts; each waits for the row of the one before. The first is idle.
fn chain(length: i32) -> Builder {
    let mut b = Builder { relations: vec![(2001, "accounts")], ..Builder::default() };
    let transaction = |pid: i32| {
        LockTag::new(LockType::TransactionId).with_transactionid(u32::try_from(700 + pid).unwrap())
    };
    for pid in 1..=length {
        let state = if pid == 1 { State::IdleInTransaction } else { State::Active };
        b.session(pid, "app@web", state, f64::from(60 - pid), "UPDATE accounts");
        b.lock(pid, transaction(pid), LockMode::Exclusive, None);
        if pid > 1 {
            let row = sample::relation(2001).with_locktype(LockType::Tuple).with_page(0);
            b.lock(pid, row.with_tuple(u16::try_from(pid).unwrap()), LockMode::Exclusive, None);
            b.lock(pid, transaction(pid - 1), LockMode::Share, Some(f64::from(60 - pid)));
        }
    }
    b
}

fn pids(app: &App) -> Vec<String> {
    cells(app, 12).iter().map(|line| line.split(" | ").next().unwrap().trim().to_owned()).collect()
}

#[test]
fn a_long_run_is_one_line_until_it_is_unfolded() {
    let mut app = app(chain(11));
    drive(&mut app, "2");
    assert_eq!(pids(&app), ["1", "└2", "└…8 deep", "└11"]);
    let run = cells(&app, 21)[2].clone();
    for part in ["×8", "57s", "8 rows of accounts", "8 sessions"] {
        assert!(run.contains(part), "{part}: {run}");
    }
    drive(&mut app, "jj");
    assert!(drive(&mut app, "K").is_empty() && app.dialog.is_none(), "a run is no session");
    drive(&mut app, "<enter>");
    assert_eq!((pids(&app).len(), selected_pid(&app)), (11, Some(3)));
    drive(&mut app, "jj<esc>");
    assert_eq!(pids(&app), ["1", "└2", "└…8 deep", "└11"]);
    assert_eq!(app.pane(app.focus).cursor, 2);
    drive(&mut app, "/pid:5<enter>");
    assert_eq!(pids(&app)[1..].last().map(String::as_str), Some("└5"), "a filter needs each session");
}

#[test]
fn a_short_run_is_not_folded() {
    for (length, lines) in [(6, 6), (7, 7), (8, 4)] {
        let mut app = app(chain(length));
        drive(&mut app, "2");
        assert_eq!(pids(&app).len(), lines, "{length}");
    }
}

#[test]
fn a_selected_session_is_not_hidden_by_a_run_that_grows() {
    let mut app = app(chain(8));
    drive(&mut app, "2jjj");
    assert_eq!(selected_pid(&app), Some(8));
    arrive(&mut app, chain(10).view());
    assert_eq!((selected_pid(&app), pids(&app).len()), (Some(8), 10));
}

#[test]
fn several_behind_one_end_a_run() {
    let mut b = chain(9);
    for pid in [20, 21] {
        b.session(pid, "app@web", State::Active, 5.0, "UPDATE accounts");
        let transaction = LockTag::new(LockType::TransactionId).with_transactionid(709);
        b.lock(pid, transaction, LockMode::Share, Some(5.0));
    }
    let mut app = app(b);
    drive(&mut app, "2");
    assert_eq!(pids(&app), ["1", "└2", "└…6 deep", "└9", "├20", "└21"]);
}

#[test]
fn a_report_has_each_session_of_a_run() {
    let tree = crate::app::print::tree(&chain(11).view());
    assert_eq!(tree.branches.len(), 11);
    assert!(tree.branches.iter().all(|branch| branch.statement.contains("UPDATE accounts")));
}

#[test]
fn esc_does_not_fold_a_run_that_became_short() {
    let mut app = app(chain(11));
    drive(&mut app, "2jj<enter>");
    assert_eq!(pids(&app).len(), 11);
    arrive(&mut app, chain(4).view());
    drive(&mut app, "f<esc>");
    assert!(app.follow.is_none(), "no run can be folded, so Esc stops following");
}
