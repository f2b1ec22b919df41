//! Modes of table locks in words: what takes each, and what others may do meanwhile (documentation, "Explicit Locking", table 13.2).

use super::lock::{LockMode, LockModes};

/// Modes of table locks, weakest first.
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

/// The commonest statements that take a mode.
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

/// What somebody does with a table who takes a mode, as a DBA would say it.
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

/// `others may read it and lock its rows (FOR UPDATE), but not change its rows, vacuum or analyze it, …`: what goes on beside a
/// mode, and what waits.
pub fn beside(mode: LockMode) -> String {
    // Only materialized views are refreshed: it says nothing of a table.
    let all =
        || MODES.into_iter().filter(|other| *other != LockMode::Exclusive || mode == LockMode::Exclusive);
    let waits = |other: &LockMode| other.conflicts_with(LockModes::of(mode));
    let may: Vec<&str> = all().filter(|other| !waits(other)).map(activity).collect();
    let may_not: Vec<&str> = all().filter(waits).map(activity).collect();
    match (may.len(), may_not.len()) {
        (0, _) => "nobody else may even read it".to_owned(),
        (_, 0) => "others may do with it what they want".to_owned(),
        (_, 1) => format!("others may do anything with it but {}", listed(&may_not, "or")),
        _ => format!("others may {}, but not {}", listed(&may, "and"), listed(&may_not, "or")),
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

    /// Table 13.2 of the documentation: a row for what is asked for, a column for what another has.
    const DOCUMENTED: [&str; 8] =
        [".......X", "......XX", "....XXXX", "...XXXXX", "..XX.XXX", "..XXXXXX", ".XXXXXXX", "XXXXXXXX"];

    #[test]
    fn each_pair_is_said_as_documented() {
        let mut conflicts = 0;
        for (need, row) in MODES.into_iter().zip(DOCUMENTED) {
            for (has, cell) in MODES.into_iter().zip(row.chars()) {
                assert_eq!(need.conflicts_with(LockModes::of(has)), cell == 'X', "{need:?} {has:?}");
                conflicts += usize::from(cell == 'X');
                let words = beside(has);
                let (may, may_not) = words.split_once("but").unwrap_or(("", &words));
                let is_said = need != LockMode::Exclusive || has == LockMode::Exclusive;
                let is_all = words.contains("anything with it but") || words.starts_with("nobody");
                if is_said && !is_all {
                    let (there, elsewhere) = if cell == 'X' { (may_not, may) } else { (may, may_not) };
                    assert!(there.contains(activity(need)), "{has:?}: {words}");
                    assert!(!elsewhere.contains(activity(need)), "{has:?}: {words}");
                }
            }
        }
        assert_eq!(conflicts, 38, "ordered pairs");
    }

    #[test]
    fn what_goes_on_beside_each_mode() {
        let said: Vec<String> =
            MODES.into_iter().map(|mode| format!("{}: {}", mode.short(), beside(mode))).collect();
        assert_eq!(
            said,
            [
                "AccessShare: others may do anything with it but drop, truncate or alter it",
                "RowShare: others may do anything with it but drop, truncate or alter it",
                "RowExclusive: others may read it, lock its rows (FOR UPDATE), change its rows, and vacuum or analyze it, but not build an index on it, add triggers to it, or drop, truncate or alter it",
                "ShareUpdateExclusive: others may read it, lock its rows (FOR UPDATE), and change its rows, but not vacuum or analyze it, build an index on it, add triggers to it, or drop, truncate or alter it",
                "Share: others may read it, lock its rows (FOR UPDATE), and build an index on it, but not change its rows, vacuum or analyze it, add triggers to it, or drop, truncate or alter it",
                "ShareRowExclusive: others may read it and lock its rows (FOR UPDATE), but not change its rows, vacuum or analyze it, build an index on it, add triggers to it, or drop, truncate or alter it",
                "Exclusive: others may read it, but not lock its rows (FOR UPDATE), change its rows, vacuum or analyze it, build an index on it, add triggers to it, refresh it concurrently, or drop, truncate or alter it",
                "AccessExclusive: nobody else may even read it",
            ]
        );
    }
}
