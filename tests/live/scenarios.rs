//! Every state of contention in the JSON: each edge, root and name, and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use locktop::demo::postgres::EmbeddedServer;
use locktop::demo::scenario::{Blocker, Facts, Scenario, ScratchSchema, Timing};
use tokio_postgres::Client;

use crate::document::{Document, snapshot};
use crate::support::{database, open};
use crate::truth::{self, Answers, answers};

#[tokio::test]
async fn every_scenario_is_in_the_json_as_it_is_on_the_server() {
    for version in super::versions() {
        let server = super::server(version).await;
        for &scenario in Scenario::ALL {
            check(&server, scenario).await;
        }
    }
}

async fn check(server: &EmbeddedServer, scenario: Scenario) {
    let name = format!("{} on {}", scenario.as_str(), server.version());
    let info = database(server).await;
    let scratch = ScratchSchema::open(&info).await.unwrap();
    let client = open(&info).await.client;
    let running = scenario.start(&scratch, Timing::TEST).await.unwrap();
    let before = answers(&client).await;
    let document = snapshot(server, &info).await;
    assert_eq!(answers(&client).await, before, "{name}: nothing changed in the meantime");
    let facts = &running.facts;
    edges(&document, facts, &before, &name);
    roots(&document, facts, &before, &name);
    cycles(&document, scenario, facts, &name);
    queues(&document, facts, &name);
    prepared(&document, facts, &name);
    names(&document, &client, &name).await;
    findings(&document, scenario, facts, &name);
    running.stop().await.unwrap();
    scratch.remove().await.unwrap();
}

fn edges(document: &Document, facts: &Facts, answers: &Answers, name: &str) {
    let waiters: BTreeSet<i32> = document.edges.iter().map(|edge| edge.waiter).collect();
    let expected: BTreeSet<i32> = facts.waits.iter().map(|wait| wait.waiter).collect();
    assert_eq!(waiters, expected, "{name}: the waiters");
    assert_eq!(document.pairs("holder"), truth::holder_pairs(facts), "{name}: holder edges");
    assert_eq!(document.edges_omitted, 0, "{name}");
    let unique: BTreeSet<_> = document
        .edges
        .iter()
        .map(|edge| (edge.waiter, edge.blocker, &edge.gid, &edge.kind, edge.lock))
        .collect();
    assert_eq!(unique.len(), document.edges.len(), "{name}: each edge once");
    for edge in &document.edges {
        let row = &document.locks[edge.lock];
        assert_eq!((row.pid, row.granted), (Some(edge.waiter), false), "{name}: {edge:?}");
        assert!(!facts.innocent.contains(&edge.blocker), "{name}: {edge:?} blames an innocent");
        assert!(matches!(edge.kind.as_str(), "holder" | "queue"), "{name}: {edge:?}");
    }
    queue_edges(document, facts, answers, name);
}

/// The server was asked about a hundred waiters. For the others the order of a queue is inferred from the
/// start times of the waits, which do not always have the order of the queue if sessions arrive together.
fn queue_edges(document: &Document, facts: &Facts, answers: &Answers, name: &str) {
    let inferred: BTreeSet<i32> =
        document.edges.iter().filter(|edge| edge.inferred).map(|edge| edge.waiter).collect();
    assert_eq!(inferred.len(), facts.waits.len().saturating_sub(100), "{name}: waiters without an answer");
    let found = document.pairs("queue");
    let expected = truth::queue_pairs(facts, answers);
    let wrong: Vec<_> = found.symmetric_difference(&expected).collect();
    assert!(wrong.iter().all(|(waiter, _)| inferred.contains(waiter)), "{name}: {wrong:?}");
    assert!(wrong.len() * 200 <= expected.len(), "{name}: {wrong:?}");
    for (waiter, blockers) in answers {
        if !inferred.contains(waiter) {
            assert_eq!(document.blockers(*waiter), *blockers, "{name}: the blockers of {waiter}");
        }
    }
}

fn roots(document: &Document, facts: &Facts, answers: &Answers, name: &str) {
    let found: BTreeSet<_> = document.roots.iter().map(|root| (root.pid, root.gid.clone())).collect();
    let expected: BTreeSet<_> = facts.roots.iter().map(truth::party).collect();
    assert_eq!(found, expected, "{name}: the roots");
    assert_eq!(document.roots.len(), expected.len(), "{name}: each root once");
    let mut pairs = truth::holder_pairs(facts);
    pairs.extend(truth::queue_pairs(facts, answers));
    for root in &document.roots {
        let party = (root.pid, root.gid.clone());
        assert_eq!(root.blocked, truth::behind(&party, &pairs), "{name}: behind {party:?}");
        assert!((1..=root.blocked).contains(&root.frees), "{name}: {root:?}");
        assert!(root.longest_wait.unwrap() >= 0.0, "{name}: {root:?}");
    }
    let ranks: Vec<_> = document.roots.iter().map(|root| std::cmp::Reverse(root.blocked)).collect();
    assert!(ranks.is_sorted(), "{name}: worst first: {ranks:?}");
}

fn cycles(document: &Document, scenario: Scenario, facts: &Facts, name: &str) {
    let found: Vec<BTreeSet<i32>> =
        document.cycles.iter().map(|cycle| cycle.iter().copied().collect()).collect();
    let expected = match scenario {
        Scenario::Deadlock => vec![facts.waits.iter().map(|wait| wait.waiter).collect()],
        _ => Vec::new(),
    };
    assert_eq!(found, expected, "{name}: cycles");
}

/// A waiter is listed after all that are ahead of it, and all holders of its lock are listed.
fn queues(document: &Document, facts: &Facts, name: &str) {
    for wait in &facts.waits {
        let queue = document.queues.iter().find(|queue| queue.waiters.contains(&wait.waiter)).unwrap();
        let place = |pid: &i32| queue.waiters.iter().position(|waiter| waiter == pid);
        for ahead in wait.ahead.iter().flatten() {
            assert!(place(ahead) < place(&wait.waiter), "{name}: {ahead} before {}", wait.waiter);
        }
        for holder in &wait.holders {
            assert!(queue.holders.contains(&holder.pid()), "{name}: {holder:?} in {queue:?}");
        }
    }
    for queue in &document.queues {
        let row = &document.locks[queue.lock];
        assert!(!row.granted && row.pid.is_some_and(|pid| queue.waiters.contains(&pid)), "{name}: {row:?}");
    }
}

fn prepared(document: &Document, facts: &Facts, name: &str) {
    let gids: BTreeSet<&str> = facts
        .roots
        .iter()
        .filter_map(|root| match root {
            Blocker::Prepared(gid) => Some(gid.as_str()),
            Blocker::Backend(_) => None,
        })
        .collect();
    let found: BTreeMap<&str, _> = document.prepared.iter().map(|row| (row.gid.as_str(), row)).collect();
    assert_eq!(found.keys().copied().collect::<BTreeSet<_>>(), gids, "{name}: prepared transactions");
    for (gid, row) in &found {
        assert_eq!(row.owner.as_deref(), Some("postgres"), "{name}");
        assert!(row.database.as_deref().is_some_and(|database| database.starts_with("test_")), "{name}");
        let own = document.locks.iter().filter(|lock| lock.gid.as_deref() == Some(*gid));
        let virtuals: BTreeSet<_> = own.map(|lock| Some(lock.virtualtransaction.as_str())).collect();
        assert_eq!(virtuals, BTreeSet::from([row.virtualtransaction.as_deref()]), "{name}: {gid}");
    }
    for lock in &document.locks {
        assert_eq!(lock.pid.is_none(), lock.gid.is_some(), "{name}: {lock:?}");
    }
}

/// Relations of the connected database have names, those of another database only numbers.
async fn names(document: &Document, client: &Client, name: &str) {
    let sql = "SELECT c.oid::int8, CASE WHEN pg_table_is_visible(c.oid) THEN relname::text
        ELSE nspname || '.' || relname END FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace";
    let rows = client.query(sql, &[]).await.unwrap();
    let known: BTreeMap<i64, String> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let own = "SELECT oid::int8 FROM pg_database WHERE datname = current_database()";
    let own: i64 = client.query_one(own, &[]).await.unwrap().get(0);
    for lock in &document.locks {
        let Some(relation) = lock.relation else {
            assert_eq!(lock.relation_name, None, "{name}: {lock:?}");
            continue;
        };
        let here = lock.database.is_some_and(|database| i64::from(database) == own);
        let expected = known.get(&i64::from(relation)).filter(|_| here);
        assert_eq!(lock.relation_name.as_ref(), expected, "{name}: {lock:?}");
    }
}

/// The expected finding exists, and is about the expected session.
fn findings(document: &Document, scenario: Scenario, facts: &Facts, name: &str) {
    let check = match scenario {
        Scenario::Deadlock => "cycle",
        Scenario::Prepared => "prepared_transaction",
        _ => "root_blocker",
    };
    let summaries: Vec<&str> = document
        .findings
        .iter()
        .filter(|finding| finding.check == check)
        .map(|finding| finding.summary.as_str())
        .collect();
    let behind_ddl = document.findings.iter().any(|finding| finding.check == "convoy");
    assert_eq!(behind_ddl, scenario == Scenario::Convoy, "{name}: {:?}", document.findings);
    // A convoy and the root that it waits for are one finding.
    if behind_ddl {
        assert!(summaries.is_empty(), "{name}: {:?}", document.findings);
        return;
    }
    assert_eq!(summaries.len(), facts.roots.len().max(1), "{name}: {:?}", document.findings);
    for root in &facts.roots {
        let party = match root {
            Blocker::Backend(pid) => format!("{pid} "),
            Blocker::Prepared(gid) => format!("prepared transaction '{gid}' "),
        };
        assert!(
            summaries.iter().any(|summary| summary.starts_with(&party)),
            "{name}: {party}: {summaries:?}"
        );
    }
}
