//! Table lock modes in words: the statements that take each, and what it allows to others (documentation, "Explicit
//! Locking", table 13.2).

use crate::model::lock::{LockMode, LockModes};

/// Table lock modes, weakest first.
pub const MODES: [LockMode; 8] = [
    LockMode::AccessShare,
    LockMode::RowShare,
    LockMode::RowExclusive,
    LockMode::ShareUpdateExclusive,
    LockMode::Share,
    LockMode::ShareRowExclusive,
    LockMode::Exclusive,
    LockMode::AccessExclusive,
];

pub const fn taken_by(mode: LockMode) -> &'static str {
    match mode {
        LockMode::AccessShare => "SELECT",
        LockMode::RowShare => "SELECT … FOR UPDATE, checks of foreign keys",
        LockMode::RowExclusive => "INSERT, UPDATE, DELETE, MERGE",
        LockMode::ShareUpdateExclusive => "VACUUM, ANALYZE, CREATE INDEX CONCURRENTLY, VALIDATE CONSTRAINT",
        LockMode::Share => "CREATE INDEX",
        LockMode::ShareRowExclusive => "CREATE TRIGGER, ADD FOREIGN KEY",
        LockMode::Exclusive => "REFRESH MATERIALIZED VIEW CONCURRENTLY",
        LockMode::AccessExclusive => "DROP TABLE, TRUNCATE, VACUUM FULL, most of ALTER TABLE",
        LockMode::SIRead => "serializable transactions",
    }
}

const fn activity(mode: LockMode) -> &'static str {
    match mode {
        LockMode::AccessShare | LockMode::SIRead => "read it",
        LockMode::RowShare => "lock its rows (FOR UPDATE)",
        LockMode::RowExclusive => "change its rows",
        LockMode::ShareUpdateExclusive => "vacuum or analyze it",
        LockMode::Share => "build an index on it",
        LockMode::ShareRowExclusive => "add triggers to it",
        LockMode::Exclusive => "refresh it concurrently",
        LockMode::AccessExclusive => "drop, truncate or alter it",
    }
}

/// What other sessions can do while a mode is held on a table, and what waits:
/// `others can read it and lock its rows (FOR UPDATE), but not change its rows, vacuum or analyze it, …`.
pub fn also_permitted(mode: LockMode) -> String {
    // Only materialized views are refreshed: `Exclusive` says nothing about a table.
    let all =
        || MODES.into_iter().filter(|other| *other != LockMode::Exclusive || mode == LockMode::Exclusive);
    let waits = |other: &LockMode| other.conflicts_with(LockModes::of(mode));
    let can: Vec<&str> = all().filter(|other| !waits(other)).map(activity).collect();
    let cannot: Vec<&str> = all().filter(waits).map(activity).collect();
    match (can.len(), cannot.len()) {
        (0, _) => "others cannot even read it".to_owned(),
        (_, 0) => "others can do anything with it".to_owned(),
        (_, 1) => format!("others can do anything with it but {}", listed(&cannot, "or")),
        _ => format!("others can {}, but not {}", listed(&can, "and"), listed(&cannot, "or")),
    }
}

/// The same for a query, which also locks single rows.
pub fn rows_also_permitted(mode: LockMode) -> String {
    match mode {
        LockMode::RowShare => {
            "others can read it, and change or lock other rows of it, not the same rows; refresh, drop, truncate and alter wait".to_owned()
        }
        LockMode::RowExclusive => "others can read it, and change or lock other rows of it, not the same rows; CREATE INDEX, CREATE TRIGGER, drop, truncate and alter wait".to_owned(),
        other => also_permitted(other),
    }
}

pub const fn sequence_also_permitted(mode: LockMode) -> &'static str {
    match mode {
        LockMode::AccessShare | LockMode::RowShare | LockMode::RowExclusive => {
            "others can call nextval() and setval(); ALTER SEQUENCE and DROP SEQUENCE wait"
        }
        LockMode::ShareUpdateExclusive => {
            "others can call nextval() and setval(); COMMENT, ALTER SEQUENCE and DROP SEQUENCE wait"
        }
        LockMode::AccessExclusive => "others cannot use it, not even with nextval()",
        _ => "others can read it; nextval(), setval(), ALTER SEQUENCE and DROP SEQUENCE wait",
    }
}

pub const fn object_also_permitted(mode: LockMode) -> &'static str {
    match mode {
        LockMode::AccessShare | LockMode::RowShare | LockMode::RowExclusive => {
            "others can use and change it; DROP of it waits"
        }
        LockMode::AccessExclusive => {
            "commands that create in it, comment on it, alter, grant or drop it wait"
        }
        _ => "others can use it; COMMENT, ALTER and DROP of it wait",
    }
}

/// `a, b, and c`
fn listed(items: &[&str], last: &str) -> String {
    match items {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first, end] => format!("{first} {last} {end}"),
        [first @ .., end] => format!("{}, {last} {end}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table 13.2 of the documentation: a row for the requested mode, a column for the held mode.
    const DOCUMENTED: [&str; 8] =
        [".......X", "......XX", "....XXXX", "...XXXXX", "..XX.XXX", "..XXXXXX", ".XXXXXXX", "XXXXXXXX"];

    #[test]
    fn each_pair_of_modes_conflicts_as_documented() {
        let mut conflicts = 0;
        for (need, row) in MODES.into_iter().zip(DOCUMENTED) {
            for (has, cell) in MODES.into_iter().zip(row.chars()) {
                assert_eq!(need.conflicts_with(LockModes::of(has)), cell == 'X', "{need:?} {has:?}");
                conflicts += usize::from(cell == 'X');
                let words = also_permitted(has);
                let (can, cannot) = words.split_once("but").unwrap_or(("", &words));
                let is_mentioned = need != LockMode::Exclusive || has == LockMode::Exclusive;
                let is_all = words.contains("anything with it but") || words.starts_with("others cannot");
                if is_mentioned && !is_all {
                    let (there, elsewhere) = if cell == 'X' { (cannot, can) } else { (can, cannot) };
                    assert!(there.contains(activity(need)), "{has:?}: {words}");
                    assert!(!elsewhere.contains(activity(need)), "{has:?}: {words}");
                }
            }
        }
        assert_eq!(conflicts, 38, "ordered pairs");
    }

    #[test]
    fn each_mode_lists_the_operations_that_it_permits() {
        let found: Vec<String> =
            MODES.into_iter().map(|mode| format!("{}: {}", mode.short(), also_permitted(mode))).collect();
        assert_eq!(
            found,
            [
                "AccessShare: others can do anything with it but drop, truncate or alter it",
                "RowShare: others can do anything with it but drop, truncate or alter it",
                "RowExclusive: others can read it, lock its rows (FOR UPDATE), change its rows, and vacuum or analyze it, but not build an index on it, add triggers to it, or drop, truncate or alter it",
                "ShareUpdateExclusive: others can read it, lock its rows (FOR UPDATE), and change its rows, but not vacuum or analyze it, build an index on it, add triggers to it, or drop, truncate or alter it",
                "Share: others can read it, lock its rows (FOR UPDATE), and build an index on it, but not change its rows, vacuum or analyze it, add triggers to it, or drop, truncate or alter it",
                "ShareRowExclusive: others can read it and lock its rows (FOR UPDATE), but not change its rows, vacuum or analyze it, build an index on it, add triggers to it, or drop, truncate or alter it",
                "Exclusive: others can read it, but not lock its rows (FOR UPDATE), change its rows, vacuum or analyze it, build an index on it, add triggers to it, refresh it concurrently, or drop, truncate or alter it",
                "AccessExclusive: others cannot even read it",
            ]
        );
    }
}
