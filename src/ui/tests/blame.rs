//! Who made others wait.

use super::*;
use crate::feed::digest::Digest;
use crate::feed::event_sender::EventSender;
use crate::model::backend::{BackendId, State};
use crate::model::event::{Kind, Told};
use crate::model::finding::{Severity, Subject};
use crate::model::lock::LockMode;
use crate::model::lock_name::LockNames;
use crate::model::thresholds::Thresholds;
use crate::sample::{Builder, at, relation};

/// Sessions that wait for what a root holds: root, first of the waiters, table, from which second to which.
struct Chain {
    root: (i32, &'static str, &'static str),
    table: u32,
    waiters: std::ops::Range<i32>,
    from: i32,
    until: i32,
}

/// Three minutes: a forgotten transaction twice, the second time until now, a change of a table, and two moments of a worker.
fn chains() -> Vec<Chain> {
    const UPDATE: &str =
        "UPDATE accounts SET balance = balance - 100 WHERE id = 42 /*controller='pay',action='book'*/";
    const ALTER: &str = "ALTER TABLE orders ADD COLUMN note text DEFAULT '\u{1b}[31m'";
    let chain = |root, table, waiters, from, until| Chain { root, table, waiters, from, until };
    vec![
        chain((4288, "app@billing", UPDATE), 1, 100..111, 5, 40),
        chain((4312, "app@billing", UPDATE), 1, 200..217, 90, 180),
        chain((4290, "deploy@migrate", ALTER), 2, 300..309, 60, 120),
        chain((4295, "app@web", "SELECT id FROM jobs WHERE id IN (1, 2) FOR UPDATE"), 3, 400..401, 20, 22),
        chain((4296, "app@web", "SELECT id FROM jobs WHERE id IN (3) FOR UPDATE"), 3, 401..403, 130, 131),
    ]
}

fn look(second: i32) -> Builder {
    let now = f64::from(second);
    let mut builder = Builder { now, ..Builder::default() };
    builder.relations = vec![(1, "accounts"), (2, "orders"), (3, "jobs")];
    for Chain { root: (pid, who, query), table, waiters, from, until } in chains() {
        if !(from - 3..until).contains(&second) {
            continue;
        }
        let since = now - f64::from(from - 3);
        let state = if pid == 4290 { State::Active } else { State::IdleInTransaction };
        let root = builder.session(pid, who, state, since, query);
        if second < from {
            root.query = Some("SELECT balance FROM accounts WHERE id = 42".into());
            root.query_start = Some(at(f64::from(from) - 3.0));
        }
        builder.lock(pid, relation(table), LockMode::AccessExclusive, None);
        for (place, waiter) in waiters.enumerate() {
            let waited = now - f64::from(from) - 0.5 * f64::from(u32::try_from(place).unwrap());
            if waited >= 0.0 {
                builder.session(waiter, "app@web", State::Active, waited, "SELECT 1");
                builder.lock(waiter, relation(table), LockMode::RowExclusive, Some(waited));
            }
        }
    }
    builder
}

/// What was seen in three minutes.
pub(super) fn view() -> Arc<View> {
    let mut digest = Digest::new(TargetId(0), Thresholds::default(), LockNames::default());
    let (sender, mut told) = EventSender::new();
    for second in 0..180 {
        if second == 40 {
            sender.tell(Told {
                kind: Kind::ActionResult,
                severity: Severity::Info,
                text: "terminate 4288 app@billing done: it is gone".to_owned(),
                subject: Some(Subject::Backend(BackendId { pid: 4288, backend_start: Some(at(-3600.0)) })),
            });
            digest.told(told.rest());
        }
        digest.snapshot_taken(look(second).snapshot());
    }
    digest.view()
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
    check("blame_empty", &mut incident(80, 24).keys("9"));
}

#[test]
fn a_key_of_the_blame_screen_says_so_elsewhere() {
    let text = stage(80, 24).keys("7b").text();
    assert!(text.contains("that is for the Blame screen; 9 goes there"), "{text}");
}

#[test]
fn the_episodes_are_those_of_the_selected_line() {
    let mut stage = stage(120, 35).keys("9j");
    assert!(stage.text().contains("1 episode · of migrate ALTER TABLE"), "{}", stage.text());
    let mut stage = stage.keys("<tab>z");
    assert!(stage.text().contains("1 episode · of migrate ALTER TABLE"), "{}", stage.text());
}

#[test]
fn what_a_server_says_does_not_reach_the_terminal() {
    let text = stage(200, 60).keys("9j<enter>").text();
    assert!(!text.contains('\u{1b}') && text.contains("ALTER TABLE orders"), "{text}");
}
