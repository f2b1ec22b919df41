//! What each acting shortcut does on each row of each screen: the question that it opens, or why it is refused. Kept in `outcomes.txt`;
//! `LOCKTOP_ACCEPT=1` writes it again.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use proptest::prelude::*;

use super::*;
use crate::app::dialog::Dialog;
use crate::model::plan::Rights;
use crate::model::plan::Target;

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
    let mut app = App::new(AppSettings::default(), 1.0);
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

fn any_keys() -> impl Strategy<Value = Vec<&'static str>> {
    let keys = prop::sample::select(vec![
        "K",
        "C",
        "K",
        "y",
        "y",
        "<esc>",
        "<enter>",
        "<tab>",
        "b",
        "r",
        "t",
        "1",
        "7",
        "2",
        "j",
        "k",
        "g",
        "G",
        " ",
        "*",
        "/",
        "!",
        "p",
        "q",
        "<backspace>",
        "<ctrl-c>",
        "U",
        "R",
        "E",
        "T",
        "D",
        "X",
        "e",
        "o",
        "4",
        "5",
        "6",
        "7",
        "DRAWN",
        "VIEW",
        "RESIZE",
        "PASTE",
        "DOWN",
    ]);
    prop::collection::vec(keys, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// For any keys: an action is done only if its question was drawn and the required text was typed, and never on rows that
    /// the filter hides.
    #[test]
    fn nothing_is_done_without_the_right_word_in_a_question_that_was_seen(keys in any_keys()) {
        let mut app = app(sample::jobs(0.0));
        let mut later = 0.0;
        for key in keys {
            let before = app.dialog.clone();
            let message = match key {
                "DRAWN" => Message::Drawn(app.dialog.as_ref().map(|dialog| dialog.revision)),
                "VIEW" | "DOWN" => {
                    later += 1.0;
                    let mut view = sample::jobs(later).view();
                    if key == "DOWN" {
                        view.link = ConnectionState::Down { reason: "refused".into(), attempt: 1, wait: std::time::Duration::from_secs(4) };
                    }
                    Message::View(TargetId(0), Arc::new(view))
                }
                "RESIZE" => Message::Resize(100, 30),
                "PASTE" => Message::Paste("y17\n".into()),
                key => Message::Key(Key::parse_all(key).unwrap()[0]),
            };
            let effects = app.update(message).effects;
            let Some(command) = command(&effects) else { continue };
            let before = before.expect("only a question leads to a command");
            prop_assert!(before.is_armed());
            let word = before.plan.confirm.word().unwrap();
            match key {
                "y" => prop_assert_eq!(&word, "y"),
                "<enter>" => prop_assert_eq!(word, before.typed.clone()),
                other => prop_assert!(false, "{} confirms nothing", other),
            }
            let targets: Vec<Target> = before.plan.rows.iter().map(|row| row.target.clone()).collect();
            prop_assert_eq!(&command.targets, &targets);
            prop_assert!(app.cannot_ask().is_none());
            if !app.pane(app.focus).filter.is_empty() {
                let context = app.context().unwrap();
                let state = app.pane(app.focus);
                let ids = (0..state.rows.len()).filter_map(|at| state.id_at(&context, at));
                // The question of a finding is about its subject.
                let subject = |id| crate::app::subject::subject_of(&context, id);
                let shown: Vec<_> = ids.flat_map(|id| [Some(id), subject(id)]).flatten().collect();
                prop_assert!(before.rows.iter().all(|row| shown.contains(row)));
            }
        }
    }
}
