//! The blockers of each waiter, as the server reports them.

use std::collections::{BTreeMap, BTreeSet};

use locktop::demo::scenario::{Blocker, Facts};
use tokio_postgres::Client;

use crate::document::Party;

/// All blockers of each waiter: `pg_blocking_pids`, with 0 for a prepared transaction.
pub(crate) type Answers = BTreeMap<i32, BTreeSet<i32>>;

/// Asks the server about all sessions that wait for a lock.
pub(crate) async fn answers(client: &Client) -> Answers {
    let sql = "SELECT pid, pg_blocking_pids(pid) FROM
        (SELECT DISTINCT pid FROM pg_locks WHERE NOT granted AND pid IS NOT NULL) waiting";
    let rows = client.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get::<_, Vec<i32>>(1).into_iter().collect())).collect()
}

pub(crate) fn party(blocker: &Blocker) -> Party {
    match blocker {
        Blocker::Backend(pid) => (*pid, None),
        Blocker::Prepared(gid) => (0, Some(gid.clone())),
    }
}

/// The pairs of a waiter and a holder, as the scenario defines them.
pub(crate) fn holder_pairs(facts: &Facts) -> BTreeSet<(i32, Party)> {
    let pairs = |wait: &locktop::demo::scenario::Wait| {
        wait.holders.iter().map(|holder| (wait.waiter, party(holder))).collect::<Vec<_>>()
    };
    facts.waits.iter().flat_map(pairs).collect()
}

/// The pairs of a waiter and a waiter ahead of it in the queue; if the scenario does not define the order,
/// from the server's answers.
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

/// Number of sessions that wait behind `root`, directly or indirectly.
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
