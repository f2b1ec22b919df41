//! A section that was not read is never taken for an empty list or for 0.
//!
//! `Section::last_rows` returns the rows of the last successful read, which may be old or empty. Code that
//! prints rows with their age, or finds a row again by its identity, may call it. Code that draws a
//! conclusion from the absence of a row must call `Section::observed`, which has three states.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A row is found again by its identity, or named; its absence has no consequence.
const FOUND: &str = "finds a row by its identity";
/// The state of the section is checked together with its rows, in the same function or in its caller.
const STATED: &str = "asks whether the section is known as well";
/// The rows of a pane, whose title shows their age and the reason.
const SHOWN: &str = "rows that are shown with the age of their section";
/// Rows that are compared with the next ones, counted for the log, or kept.
const KEPT: &str = "keeps or compares rows";

/// Files outside of the printers that call `last_rows`, the number of calls, and the reason why that is
/// correct. A new call is added here with its reason.
const ALLOWED: &[(&str, usize, &str)] = &[
    ("src/feed/diff/tasks.rs", 10, KEPT),
    ("src/feed/diff/waits.rs", 1, KEPT),
    ("src/feed/journal.rs", 2, KEPT),
    ("src/feed/record/redact.rs", 2, KEPT),
    ("src/feed/view_builder.rs", 3, STATED),
    ("src/model/jobs/adapter/board/mod.rs", 6, STATED),
    ("src/model/jobs/adapter/board/rows.rs", 8, STATED),
    ("src/model/jobs/adapter/rows.rs", 4, STATED),
    ("src/model/jobs/id_generator.rs", 3, SHOWN),
    ("src/model/jobs/lease.rs", 3, SHOWN),
    ("src/model/jobs/rate_limit.rs", 2, SHOWN),
    ("src/model/jobs/source_tables.rs", 1, FOUND),
    ("src/model/jobs/task/board.rs", 3, FOUND),
    ("src/model/jobs/task/evaluate.rs", 8, STATED),
    ("src/model/jobs/task/evidence.rs", 1, STATED),
    ("src/model/jobs/task/rows.rs", 4, STATED),
    ("src/model/jobs/work_queue.rs", 4, SHOWN),
    ("src/model/jobs/worker_types.rs", 5, STATED),
    ("src/model/judgement/awaited_locks.rs", 1, FOUND),
    ("src/model/judgement/blame/counter.rs", 2, STATED),
    ("src/model/judgement/consequence.rs", 1, FOUND),
    ("src/model/judgement/held.rs", 2, STATED),
    ("src/model/plan/context.rs", 1, STATED),
    ("src/model/plan/question.rs", 2, STATED),
    ("src/model/plan/rows/adapters.rs", 1, STATED),
    ("src/model/plan/rows/leases.rs", 1, STATED),
    ("src/model/plan/rows/mod.rs", 1, STATED),
    ("src/model/plan/signal/facts.rs", 1, STATED),
    ("src/model/rows/snapshot.rs", 5, FOUND),
    ("src/model/rows/snapshot_index.rs", 5, FOUND),
    ("src/model/wording/lock_of/mod.rs", 2, STATED),
    ("src/model/wording/words.rs", 3, FOUND),
    ("src/pg/jobs/sources/reader.rs", 1, KEPT),
    ("src/pg/jobs/tables/mod.rs", 1, STATED),
    ("src/pg/poll/connection.rs", 3, KEPT),
    ("src/pg/poll/mod.rs", 1, KEPT),
    ("src/pg/poll/sections.rs", 2, KEPT),
];

/// Files that print.
const PRINTERS: [&str; 4] = ["src/app/", "src/ui/", "src/output/", "src/recording/"];

fn sources() -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut found, mut folders) = (BTreeMap::new(), vec![root.join("src")]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = entry.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|end| end == "rs") && !name.contains("/tests") {
                found.insert(name, fs::read_to_string(&entry).unwrap());
            }
        }
    }
    found
}

#[test]
fn last_rows_is_called_only_in_listed_places() {
    let is_printer = |name: &str| PRINTERS.iter().any(|printer| name.starts_with(printer));
    let calls: Vec<(String, usize)> = sources()
        .into_iter()
        .filter(|(name, _)| {
            *name != "src/model/rows/section.rs"
                && (!is_printer(name) || name.starts_with("src/output/check/"))
        })
        .map(|(name, text)| (name, text.matches("last_rows()").count()))
        .filter(|(_, calls)| *calls > 0)
        .collect();
    let allowed: Vec<(String, usize)> =
        ALLOWED.iter().map(|(name, calls, _)| ((*name).to_owned(), *calls)).collect();
    assert_eq!(calls, allowed, "use Section::observed(), or add the call with its reason");
}

#[test]
fn no_finding_and_no_check_uses_rows_that_may_be_old() {
    for (name, text) in sources() {
        if name.starts_with("src/model/judgement/finding/") || name.starts_with("src/output/check/") {
            assert!(!text.contains("last_rows()"), "{name}: use Section::observed()");
        }
    }
}

#[test]
fn an_unknown_section_never_becomes_zero_or_an_empty_list() {
    let bad = [
        "=> 0",
        "=> Vec::new()",
        "=> &[]",
        "=> false",
        "=> String::new()",
        "=> Default::default()",
        "=> vec![]",
    ];
    for (name, text) in sources() {
        for line in text
            .lines()
            .filter(|line| line.contains("Observed::Unknown(") || line.contains("Observed::Absent |"))
        {
            assert!(!bad.iter().any(|bad| line.contains(bad)), "{name}: {line}");
        }
    }
}
