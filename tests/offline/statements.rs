//! The part of a statement that each channel prints, for every shape in `tests/statements.toml`; and a test
//! that no code prints a statement without `model::disclosure`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use locktop::model::QueryText;
use locktop::model::disclosure::{Channel, Left, shown};
use locktop::model::statement::redacted::speaks_of_secret;

use super::architecture::rust_files;
use crate::shapes::{CHANNELS, SECRET, shapes};

/// The part of the secret that may remain: its beginning, if the statement is cut within it.
const PART: &str = "s3c";

/// Whether a part of the secret remains that a channel must not print.
fn is_leaked(channel: Channel, statement: &str) -> bool {
    let statement = QueryText::from(statement);
    let left = shown(channel, &statement);
    left.contains(PART) || format!("{statement:?}").contains(PART)
}

#[test]
fn no_channel_prints_a_password() {
    let shapes = shapes();
    assert!(shapes.passwords.len() >= 40, "{}", shapes.passwords.len());
    let mut leaked = Vec::new();
    for statement in &shapes.passwords {
        for channel in CHANNELS {
            if is_leaked(channel, statement) {
                leaked.push(format!("{channel:?}: {}", shown(channel, &statement.as_str().into())));
            }
        }
        // Cut by the server at any place: the words that identify it as a password may follow it, and may be
        // missing.
        let Some(secret) = statement.find(SECRET) else { panic!("{statement}") };
        for (end, _) in statement.char_indices().skip_while(|(end, _)| *end <= secret + PART.len()) {
            let cut = &statement[..end];
            if speaks_of_secret(&statement[..secret]) && is_leaked(Channel::Screen, cut) {
                leaked.push(format!("{cut:?} is cut: {}", shown(Channel::Screen, &cut.into())));
            }
        }
    }
    assert!(leaked.is_empty(), "\n{}\n", leaked.join("\n"));
}

#[test]
fn no_channel_that_leaves_literals_out_prints_one() {
    let shapes = shapes();
    let all = shapes.all();
    assert!(all.len() >= 200, "{}", all.len());
    let mut leaked = Vec::new();
    for statement in all {
        for channel in CHANNELS.into_iter().filter(|channel| channel.left() != Left::NoSecrets) {
            if is_leaked(channel, statement) {
                leaked.push(format!("{channel:?}: {}", shown(channel, &statement.into())));
            }
        }
    }
    assert!(leaked.is_empty(), "\n{}\n", leaked.join("\n"));
}

#[test]
fn a_statement_without_a_secret_is_shown_as_it_is() {
    // A name written with escapes could be that of a password.
    for statement in shapes().literals.iter().filter(|statement| !statement.contains("&\"")) {
        assert_eq!(shown(Channel::Screen, &statement.as_str().into()), *statement);
    }
}

/// Files that may read the text of a statement, and how often: they recognize, compare or store it, and print
/// nothing of it. Other code prints what `model::disclosure` returns for its channel.
const READERS: [(&str, usize); 21] = [
    // The first word of a statement: the consequence of its cancellation.
    ("app/strip.rs", 1),
    ("feed/record/names.rs", 1),
    ("feed/record/redact.rs", 5),
    // Whether two runs have the same statement, and which locks it acquires.
    ("feed/report/ddl.rs", 1),
    ("model/jobs/adapter/presence.rs", 1),
    // The name of the function that it calls.
    ("model/judgement/blame/cause.rs", 2),
    ("model/judgement/blame/counter.rs", 1),
    ("model/judgement/consequence.rs", 1),
    ("model/judgement/finding/blockers.rs", 1),
    ("model/wording/lock_name/mod.rs", 1),
    ("model/judgement/normal_wait.rs", 3),
    ("model/wording/lock_of/mod.rs", 1),
    ("model/wording/disclosure.rs", 1),
    ("model/jobs/refusals.rs", 1),
    ("model/judgement/session_facts.rs", 1),
    ("model/jobs/task/evidence.rs", 1),
    ("model/rows/thresholds.rs", 1),
    ("model/wording/why/mod.rs", 1),
    ("model/wording/words.rs", 1),
    ("pg/decode/backends.rs", 1),
    ("recording/cell.rs", 1),
];

#[test]
fn statement_text_is_read_only_in_listed_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&root, &mut files);
    let mut found = BTreeMap::new();
    for file in files {
        let path = file.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
        let source = fs::read_to_string(&file).unwrap();
        let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let count = code.matches("unredacted").count();
        if count > 0 && !path.contains("/tests") {
            found.insert(path, count);
        }
    }
    let listed: BTreeMap<String, usize> = READERS.map(|(path, count)| (path.to_owned(), count)).into();
    assert_eq!(found, listed, "a statement is printed by model::disclosure::shown, for a channel");
}

/// A field with the statement of a session as plain text would be printed without `model::disclosure`: such a
/// field must be a `QueryText`. The listed fields have passed `model::disclosure` before, or belong to no
/// session.
const PLAIN: [(&str, &str); 8] = [
    ("cli/args.rs", "statement: String"),
    ("model/judgement/blame/mod.rs", "statement: Text"),
    ("model/rows/thresholds.rs", "statement: Option<&'a str>"),
    ("model/rows/thresholds.rs", "statement: Option<Text>"),
    ("pg/learn/mod.rs", "query: &'a str"),
    ("pg/server_log/mod.rs", "statement: Cow<'a, str>"),
    ("output/report/log.rs", "statement: String"),
    ("output/report/mod.rs", "statement: String"),
];

#[test]
fn no_other_field_has_a_statement_as_plain_text() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    for folder in ["app", "cli", "feed", "model", "pg", "output", "recording", "runtime", "ui"] {
        rust_files(&root.join(folder), &mut files);
    }
    let texts = ["Text", "String", "&'a str", "Cow<'a, str>"];
    let mut found = Vec::new();
    for file in files {
        let path = file.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
        for line in fs::read_to_string(&file).unwrap().lines() {
            let field = line.trim().trim_end_matches(',');
            let field =
                field.rsplit_once("pub ").or(field.rsplit_once(") ")).map_or(field, |(_, field)| field);
            // A field of `rows!` is preceded by its number in a recording.
            let is_row = path.starts_with("model/");
            let field =
                if is_row { field.trim_start_matches(|c: char| c.is_ascii_digit()).trim() } else { field };
            let Some((name, kind)) = field.split_once(": ") else { continue };
            let inner = kind.strip_prefix("Option<").and_then(|kind| kind.strip_suffix('>')).unwrap_or(kind);
            if matches!(name, "query" | "statement") && texts.contains(&inner) && line.ends_with(',') {
                found.push((path.clone(), field.to_owned()));
            }
        }
    }
    found.sort();
    found.dedup();
    let unknown: Vec<_> =
        found.iter().filter(|(path, field)| !PLAIN.contains(&(path.as_str(), field.as_str()))).collect();
    assert!(unknown.is_empty(), "a statement of a session is a QueryText: {unknown:#?}");
    let missing: Vec<_> = PLAIN
        .iter()
        .filter(|(path, field)| !found.contains(&((*path).to_owned(), (*field).to_owned())))
        .collect();
    assert!(missing.is_empty(), "no longer found: {missing:#?}");
}
