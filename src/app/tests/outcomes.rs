//! What each acting shortcut does on each row of each screen: the question that it opens, or why it is refused. Kept in `outcomes.txt`;
//! `LOCKTOP_ACCEPT=1` writes it again.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use super::*;
use crate::app::dialog::Dialog;
use crate::model::rights::Rights;

/// Shortcuts that act.
const ACTING: [&str; 9] = ["C", "K", "R", "U", "E", "T", "D", "X", "I"];

/// Rows of a screen that are tried.
const ROWS: usize = 12;

fn states() -> [(&'static str, Builder); 5] {
    [
        ("incident", sample::incident(0.0)),
        ("shared", sample::shared(0.0)),
        ("jobs", sample::jobs(0.0)),
        ("leases", sample::systems::leases(0.0)),
        ("queue", sample::systems::queue(0.0)),
    ]
}

/// Not known, and those of a role that may do nothing with sessions of others.
fn rights() -> [(&'static str, Option<Rights>); 2] {
    let reader = Rights {
        role: "reader".into(),
        version_num: 170_002,
        read_all_stats: true,
        member_of: vec!["reader".into()],
        superusers: vec!["postgres".into()],
        ..Rights::default()
    };
    [("", None), (" as reader", Some(reader))]
}

fn question(dialog: &Dialog) -> String {
    let confirm = dialog.plan.confirm.word().map_or("y".to_owned(), |word| format!("type {word}"));
    let refused = dialog.plan.refused.iter().map(|row| format!("; not {}: {}", row.name, row.reason));
    format!("{}? {confirm}{}", dialog.title(), refused.collect::<String>())
}

/// The outcome of a shortcut on the row this many steps down, if there is one.
fn outcome(view: &View, screen: &str, row: usize, key: &str) -> Option<String> {
    let mut app = App::new(Settings::default(), 1.0);
    arrive(&mut app, view.clone());
    drive(&mut app, screen);
    if row >= app.pane(app.focus).rows.len() {
        return None;
    }
    drive(&mut app, &"j".repeat(row));
    drive(&mut app, key);
    Some(app.dialog.as_ref().map_or_else(|| notice(&app).to_owned(), question))
}

/// First each outcome with its number, then the numbers of each row: `incident, screen 2, row 1: C 12, K 13, DETX 4`.
fn table() -> String {
    let (mut outcomes, mut rows) = (Vec::<String>::new(), String::new());
    let mut number = |said: String| {
        let at = outcomes.iter().position(|one| *one == said);
        at.unwrap_or_else(|| {
            outcomes.push(said);
            outcomes.len() - 1
        })
    };
    for (state, builder) in states() {
        let view = builder.view();
        for (role, rights) in rights() {
            let mut view = view.clone();
            view.rights = rights.map(Arc::new);
            for (screen, row) in ["1", "2", "3", "4", "5", "6", "7"]
                .iter()
                .flat_map(|one| (0..ROWS).map(move |row| (one, row)))
            {
                let mut keys: BTreeMap<usize, String> = BTreeMap::new();
                for key in ACTING {
                    let Some(said) = outcome(&view, screen, row, key) else { break };
                    keys.entry(number(said)).or_default().push_str(key);
                }
                if !keys.is_empty() {
                    let parts: Vec<_> = keys.iter().map(|(said, keys)| format!("{keys} {said}")).collect();
                    let _ = writeln!(rows, "{state}{role}, screen {screen}, row {row}: {}", parts.join(", "));
                }
            }
        }
    }
    let numbered = outcomes.iter().enumerate().map(|(number, said)| format!("{number} {said}\n"));
    numbered.collect::<String>() + &rows
}

#[test]
fn each_shortcut_has_the_outcome_that_is_kept() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/app/tests/outcomes.txt");
    let table = table();
    if std::env::var_os("LOCKTOP_ACCEPT").is_some() {
        std::fs::write(&path, &table).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    for (number, (kept, now)) in kept.lines().zip(table.lines()).enumerate() {
        assert_eq!(kept, now, "line {} of outcomes.txt", number + 1);
    }
    assert_eq!(kept.lines().count(), table.lines().count());
}
