//! The list of statements and their locks, `statements.txt`.
//!
//! A statement begins at the start of a line. Lines below it, indented: `+ SQL` runs before it in the same
//! transaction; `! SQL` is run by another session and blocks it (the statement then runs outside of a
//! transaction, and the locks that it holds and waits for are read); `- SQL` runs afterwards; `~ words`
//! states why `lock-of` differs; all others are locks as `pg_locks` shows them, preceded by the versions if
//! not all show them (`15-17:`), and `fails` if the server refuses it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// A statement of the list.
#[derive(Debug, Default)]
pub(super) struct Entry {
    pub(super) text: String,
    pub(super) before: Vec<String>,
    pub(super) obstacles: Vec<String>,
    pub(super) after: Vec<String>,
    pub(super) reason: Option<String>,
    /// Each lock, and the versions that show it; none: all.
    locks: Vec<(Option<(u32, u32)>, String)>,
}

pub(super) const FAILS: &str = "fails";

impl Entry {
    /// Its locks on a version, according to the list.
    pub(super) fn on(&self, version: u32) -> BTreeSet<String> {
        let holds =
            |range: &Option<(u32, u32)>| range.is_none_or(|(from, to)| (from..=to).contains(&version));
        self.locks.iter().filter(|(range, _)| holds(range)).map(|(_, lock)| lock.clone()).collect()
    }

    pub(super) fn is_ddl(&self) -> bool {
        let first = self.text.split([' ', ';']).next().unwrap_or_default();
        matches!(
            first,
            "CREATE"
                | "ALTER"
                | "DROP"
                | "COMMENT"
                | "GRANT"
                | "REVOKE"
                | "REINDEX"
                | "CLUSTER"
                | "REFRESH"
                | "TRUNCATE"
                | "VACUUM"
                | "ANALYZE"
                | "SECURITY"
                | "IMPORT"
                | "REASSIGN"
        )
    }
}

pub(super) fn read(text: &str) -> Vec<Entry> {
    let mut all: Vec<Entry> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with("--")) {
        let Some(line) = line.strip_prefix("  ") else {
            all.push(Entry { text: line.to_owned(), ..Entry::default() });
            continue;
        };
        let entry = all.last_mut().expect("a line of a statement must follow a statement");
        match line.split_at(2) {
            ("+ ", sql) => entry.before.push(sql.to_owned()),
            ("! ", sql) => entry.obstacles.push(sql.to_owned()),
            ("- ", sql) => entry.after.push(sql.to_owned()),
            ("~ ", words) => entry.reason = Some(words.to_owned()),
            _ => entry.locks.push(lock(line)),
        }
    }
    all
}

fn lock(line: &str) -> (Option<(u32, u32)>, String) {
    let Some((versions, lock)) =
        line.split_once(": ").filter(|(head, _)| head.starts_with(|c: char| c.is_ascii_digit()))
    else {
        return (None, line.to_owned());
    };
    let (from, to) = versions.split_once('-').unwrap_or((versions, versions));
    (Some((from.parse().unwrap(), to.parse().unwrap())), lock.to_owned())
}

/// The list with the locks that the servers showed, by version.
pub(super) fn write(
    head: &str,
    entries: &[Entry],
    observed: &BTreeMap<u32, Vec<BTreeSet<String>>>,
) -> String {
    let mut out = head.to_owned();
    for (number, entry) in entries.iter().enumerate() {
        let _ = writeln!(out, "{}", entry.text);
        for (sign, lines) in [('+', &entry.before), ('!', &entry.obstacles), ('-', &entry.after)] {
            for line in lines {
                let _ = writeln!(out, "  {sign} {line}");
            }
        }
        if let Some(reason) = &entry.reason {
            let _ = writeln!(out, "  ~ {reason}");
        }
        let all: BTreeSet<&String> = observed.values().flat_map(|of| &of[number]).collect();
        for lock in all {
            let have: Vec<u32> = observed
                .iter()
                .filter(|(_, of)| of[number].contains(lock))
                .map(|(version, _)| *version)
                .collect();
            let (first, last) = (have[0], have[have.len() - 1]);
            let versions = match have.len() {
                all if all == observed.len() => String::new(),
                1 => format!("{first}: "),
                _ => format!("{first}-{last}: "),
            };
            let _ = writeln!(out, "  {versions}{lock}");
        }
    }
    out
}
