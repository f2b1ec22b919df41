//! What each column says, for the help.

use crate::app::screen::Pane;

/// What a column of a pane says, by its name in a filter; empty for one that nobody described.
#[must_use]
pub fn meaning(pane: Pane, column: &str) -> &'static str {
    let own = match pane {
        Pane::Chains => chains(column),
        Pane::Advisory | Pane::Locks => locks(pane, column),
        Pane::Tasks => tasks(column),
        Pane::Leases => leases(column),
        Pane::Queue => queue(column),
        Pane::Limits => limits(column),
        Pane::Generators => generators(column),
        Pane::Backends => backends(column),
        Pane::Events => events(column),
    };
    own.or_else(|| common(column)).unwrap_or_default()
}

/// Columns that say the same everywhere.
fn common(column: &str) -> Option<&'static str> {
    Some(match column {
        "pid" => "process id of the session",
        "db" => "database",
        "who" => "role@application; @application where it is too long and all are of one role",
        "query" => "the query it runs, or ran last",
        "xact" => "age of its transaction; w: it has written",
        "blocks" => "sessions that wait behind it, directly or through others",
        "table" => "where the row is",
        "worker" => "the worker, as the table names it",
        "try" => "the attempt, and how many there may be",
        "beat" => "since the worker's last heartbeat",
        _ => return None,
    })
}

fn chains(column: &str) -> Option<&'static str> {
    Some(match column {
        "frees" => "sessions that get their lock at once if this one ends",
        "wait" => "how long it has waited",
        "state" => "of a root what it does; of a waiter the lock mode and what it waits for",
        _ => return None,
    })
}

fn locks(pane: Pane, column: &str) -> Option<&'static str> {
    Some(match (pane, column) {
        (_, "lock") => "what is locked; of an advisory lock the name behind its key",
        (_, "type") => "the lock type, as in pg_locks",
        (_, "mode") => "the lock mode; advisory: X exclusive, S shared",
        (Pane::Locks, "state") => "held or waiting",
        (Pane::Locks, "age") => "how long it is held or has been waited for",
        (_, "age") => "how long it is held",
        (_, "waiters") => "sessions that wait for this lock",
        (_, "key") => "the advisory key: one number, or two",
        (_, "holder") => "what the session that holds it does",
        _ => return None,
    })
}

fn tasks(column: &str) -> Option<&'static str> {
    Some(match column {
        "state" => "of the task; the words below say what each means",
        "task" => "name of the task",
        "run" => "how long it has run",
        "limit" => "its timeout",
        "gauge" => "how much of its timeout is used up",
        "next" => "when it is due, or since when",
        "last" => "since its last run began",
        "pid" => "the session that holds its key",
        "type" => "its type",
        "cron" => "its schedule",
        _ => return None,
    })
}

fn leases(column: &str) -> Option<&'static str> {
    Some(match column {
        "state" => "held, expired, released or free; split: several owners in Redis",
        "lease" => "name of the lease",
        "owner" => "who has it",
        "left" => "time until it ends, or since",
        "gauge" => "how much of its term is left",
        "token" => "fencing token: grows with every new owner",
        "renewed" => "since it was last renewed",
        "term" => "how long it lasts without a renewal",
        "waiters" => "sessions that wait for its row",
        "alive" => "whether the owner's session is connected, where that can be told",
        "held" => "how long this owner has had it",
        "source" => "its table or Redis; 3/5: on 3 of 5 servers",
        _ => return None,
    })
}

fn queue(column: &str) -> Option<&'static str> {
    Some(match column {
        "state" => "of the item; the words below say what each means",
        "item" => "its id",
        "name" => "what is to be done",
        "run" => "how long it has been worked on",
        "pid" => "the session that works on it",
        "due" => "when it may be taken again",
        "age" => "since it was put in",
        "ended" => "since it ended",
        "error" => "why it failed last",
        _ => return None,
    })
}

fn limits(column: &str) -> Option<&'static str> {
    Some(match column {
        "state" => "full, near its limit (80 %), open, over: the window has passed",
        "key" => "what is limited",
        "count" => "requests in this window",
        "limit" => "how many there may be",
        "gauge" => "how much of the limit is used up",
        "ends" => "time until the window ends",
        "began" => "since the window began",
        _ => return None,
    })
}

fn generators(column: &str) -> Option<&'static str> {
    Some(match column {
        "worker" => "number of the worker the ids are of",
        "last" => "the last id it gave",
        "at" => "the time in that id, against the server's clock",
        "sequence" => "its number within that millisecond",
        _ => return None,
    })
}

fn backends(column: &str) -> Option<&'static str> {
    Some(match column {
        "state" => "as in pg_stat_activity",
        "time" => "how long the query has run",
        "event" => "what it waits for: type and event",
        "client" => "address of the client",
        "type" => "kind of process",
        _ => return None,
    })
}

fn events(column: &str) -> Option<&'static str> {
    Some(match column {
        "time" => "when it was seen",
        "severity" => "how bad: CRIT, warn, or nothing",
        "kind" => "what kind of event",
        "what" => "what happened; alike ones seen at once are one line",
        "length" => "how long it lasted: ≥ at least, ≤ at most",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::table;

    #[test]
    fn every_column_of_every_pane_is_described() {
        for pane in Pane::ALL {
            for column in table::columns(pane) {
                assert!(!meaning(pane, column.name).is_empty(), "{pane:?} {}", column.title);
            }
        }
    }
}
