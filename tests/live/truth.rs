//! The server's own word on who waits for whom.

use std::collections::{BTreeMap, BTreeSet};

use locktop::demo::scenario::{Blocker, Facts};
use tokio_postgres::Client;

use crate::document::Party;

/// For each waiter, all that block it: `pg_blocking_pids`, with 0 for a prepared transaction.
pub(crate) type Answers = BTreeMap<i32, BTreeSet<i32>>;

/// Asks about everybody who waits for a lock.
pub(crate) async fn answers(client: &Client) -> Answers {
    let question = "SELECT pid, pg_blocking_pids(pid) FROM
        (SELECT DISTINCT pid FROM pg_locks WHERE NOT granted AND pid IS NOT NULL) waiting";
    let rows = client.query(question, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get::<_, Vec<i32>>(1).into_iter().collect())).collect()
}

pub(crate) fn party(blocker: &Blocker) -> Party {
    match blocker {
        Blocker::Backend(pid) => (*pid, None),
        Blocker::Prepared(gid) => (0, Some(gid.clone())),
    }
}

/// Who waits for a holder, by what the scenario says of itself.
pub(crate) fn holder_pairs(facts: &Facts) -> BTreeSet<(i32, Party)> {
    let pairs = |wait: &locktop::demo::scenario::Wait| {
        wait.holders.iter().map(|holder| (wait.waiter, party(holder))).collect::<Vec<_>>()
    };
    facts.waits.iter().flat_map(pairs).collect()
}

/// Who waits for somebody ahead in the queue; where that was left to chance, by the server's answers.
pub(crate) fn queue_pairs(facts: &Facts, answers: &Answers) -> BTreeSet<(i32, Party)> {
    let mut pairs = BTreeSet::new();
    for wait in &facts.waits {
        let ahead = wait.ahead.clone().unwrap_or_else(|| {
            let holders: BTreeSet<i32> = wait.holders.iter().map(Blocker::pid).collect();
            answers[&wait.waiter].difference(&holders).copied().collect()
        });
        pairs.extend(ahead.into_iter().map(|ahead| (wait.waiter, (ahead, None))));
    }
    pairs
}

/// How many wait behind `root`, however far.
pub(crate) fn behind(root: &Party, pairs: &BTreeSet<(i32, Party)>) -> usize {
    let mut found = BTreeSet::new();
    let mut todo = vec![root.clone()];
    while let Some(next) = todo.pop() {
        for (waiter, blocker) in pairs {
            if *blocker == next && found.insert(*waiter) {
                todo.push((*waiter, None));
            }
        }
    }
    found.len()
}
