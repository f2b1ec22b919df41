//! "Frees" is compared with a live server when a session ends: all other sessions are stopped, one is
//! terminated, and the sessions that are then granted their lock are counted. The dialog's plan predicts
//! them, and the executor terminates the roots.

use std::collections::BTreeSet;

use locktop::demo::postgres::EmbeddedServer;
use locktop::demo::scenario::{Blocker, Scenario, ScratchSchema, Timing};
use locktop::feed::once::once;
use locktop::model::lock_name::LockNames;
use locktop::model::plan::{Ask, Outcome, PlanContext, TargetKind, Verb, sessions};
use locktop::model::row_id::RowId;
use locktop::model::thresholds::Thresholds;
use locktop::model::wait_graph::Party;
use locktop::pg::conninfo::ConnInfo;
use locktop::pg::poll::PollLimits;
use tokio_postgres::Client;

use crate::document::{self, snapshot};
use crate::frozen::{Frozen, terminate, waiting};
use crate::hands::Hands;
use crate::support::{database, open, wait_until};
use crate::truth::party;

#[tokio::test]
async fn a_root_frees_as_many_as_proceed_when_it_is_ended() {
    for version in super::versions() {
        let server = super::server(version).await;
        for &scenario in Scenario::ALL {
            end_the_roots(&server, scenario).await;
        }
    }
}

async fn end_the_roots(server: &EmbeddedServer, scenario: Scenario) {
    let name = format!("{} on {}", scenario.as_str(), server.version());
    let info = database(server).await;
    let scratch = ScratchSchema::open(&info).await.unwrap();
    let client = open(&info).await.client;
    let running = scenario.start(&scratch, Timing::TEST).await.unwrap();
    let facts = running.facts.clone();
    let frozen = Frozen::stop(facts.waits.iter().map(|wait| wait.waiter));
    for root in &facts.roots {
        let document = snapshot(server, &info).await;
        let frees = root_of(&document, root, &name).frees;
        let before = waiting(&client).await;
        let mut planned = None;
        match root {
            Blocker::Backend(pid) => planned = Some(end_by_plan(&client, &info, *pid, &name).await),
            Blocker::Prepared(gid) => {
                client.batch_execute(&format!("ROLLBACK PREPARED '{gid}'")).await.unwrap();
            }
        }
        let after = waiting(&client).await;
        let granted: BTreeSet<_> = before.difference(&after).collect();
        assert_eq!(granted.len(), frees, "{name}: {root:?} let {granted:?} continue");
        if let Some(planned) = planned {
            assert_eq!(granted.into_iter().copied().collect::<BTreeSet<i32>>(), planned, "{name}: {root:?}");
        }
        assert!(after.is_subset(&before), "{name}: no new waiter");
    }
    drop(frozen);
    // A prepared transaction is cleaned up twice: the test has already ended it.
    let _ = running.stop().await;
    scratch.remove().await.unwrap();
}

/// Terminates a root as the dashboard does; returns the sessions that the plan frees.
async fn end_by_plan(client: &Client, info: &ConnInfo, pid: i32, name: &str) -> BTreeSet<i32> {
    let limits = PollLimits { ask: 1_000, ..PollLimits::default() };
    let view = once(info, limits, Thresholds::default(), LockNames::default()).await.unwrap();
    let snapshot = view.snapshot.as_ref().unwrap();
    let backend = snapshot.backends.last_rows().iter().find(|backend| backend.pid == pid).unwrap();
    let ask = Ask { from_chains: true, ..Ask::new(Verb::Terminate, vec![RowId::Backend(backend.id())]) };
    let plan = sessions(&PlanContext { view: &view, rights: None, own_pids: &[], terminated: &[] }, &ask);
    let [row] = plan.rows.as_slice() else { panic!("{name}: {plan:?}") };
    assert!(matches!(&row.target.what, TargetKind::Session(target) if target.blocks), "{name}: {row:?}");
    let frees = row.effect.as_ref().unwrap().release.now.iter().map(|party| party.pid()).collect();
    let mut hands = Hands::of(info).await;
    let (outcome, detail) = hands.one(Verb::Terminate, row.target.what.clone()).await;
    assert_eq!(outcome, Outcome::Done, "{name}: {detail}");
    // Its parallel workers end after it.
    let left = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1 OR leader_pid = $1";
    wait_until("its workers to end", async || {
        client.query_one(left, &[&pid]).await.unwrap().get::<_, i64>(0) == 0
    })
    .await;
    frees
}

fn root_of<'a>(document: &'a document::Document, root: &Blocker, name: &str) -> &'a document::Root {
    let (pid, gid) = party(root);
    let found = document.roots.iter().find(|root| root.pid == pid && root.gid == gid);
    found.unwrap_or_else(|| panic!("{name}: no root {root:?} in {:?}", document.roots))
}

#[tokio::test]
async fn ending_any_session_frees_exactly_those_that_the_graph_names() {
    for version in super::versions() {
        let server = super::server(version).await;
        let mut continued = 0;
        for &scenario in Scenario::ALL {
            continued += end_one_after_the_other(&server, scenario).await;
        }
        assert!(continued > 10, "only {continued} sessions continued");
    }
}

/// Several sessions end one after the other, roots and waiters: in the end exactly those sessions continue
/// that the graph named for all victims together.
#[tokio::test]
async fn ending_several_frees_those_that_the_graph_names() {
    for version in super::versions() {
        let server = super::server(version).await;
        let mut continued = 0;
        for &scenario in Scenario::ALL {
            continued += end_several(&server, scenario).await;
        }
        assert!(continued > 5, "only {continued} sessions continued");
    }
}

/// Number of freed sessions.
async fn end_several(server: &EmbeddedServer, scenario: Scenario) -> usize {
    let name = format!("{} on {}", scenario.as_str(), server.version());
    let info = database(server).await;
    let scratch = ScratchSchema::open(&info).await.unwrap();
    let client = open(&info).await.client;
    let running = scenario.start(&scratch, Timing::TEST).await.unwrap();
    let facts = running.facts.clone();
    let waiters: Vec<i32> = facts.waits.iter().map(|wait| wait.waiter).collect();
    let mut frozen = Frozen::stop(waiters.iter().copied());
    // Every third waiter, and then the roots.
    let mut victims: Vec<i32> = waiters.iter().copied().step_by(3).take(VICTIMS).collect();
    victims.extend(facts.roots.iter().map(Blocker::pid).filter(|pid| *pid != 0));
    let mut seen = BTreeSet::new();
    victims.retain(|pid| seen.insert(*pid));
    let freed = freed_by(&client, &info, &victims).await;
    let before = waiting(&client).await;
    for victim in &victims {
        terminate(&client, *victim, &mut frozen).await;
    }
    let after = waiting(&client).await;
    let granted: BTreeSet<i32> =
        before.difference(&after).copied().filter(|pid| !victims.contains(pid)).collect();
    assert_eq!(granted, freed, "{name}: the end of {victims:?}");
    drop(frozen);
    // If its own sessions were terminated, it may have none left to stop.
    let _ = running.stop().await;
    scratch.remove().await.unwrap();
    granted.len()
}

/// Largest number of waiters to terminate.
const VICTIMS: usize = 12;

/// Total number of freed sessions.
async fn end_one_after_the_other(server: &EmbeddedServer, scenario: Scenario) -> usize {
    let name = format!("{} on {}", scenario.as_str(), server.version());
    let info = database(server).await;
    let scratch = ScratchSchema::open(&info).await.unwrap();
    let client = open(&info).await.client;
    let running = scenario.start(&scratch, Timing::TEST).await.unwrap();
    let facts = running.facts.clone();
    let waiters: Vec<i32> = facts.waits.iter().map(|wait| wait.waiter).collect();
    let roots = facts.roots.iter().map(Blocker::pid).filter(|pid| *pid != 0);
    let mut frozen = Frozen::stop(waiters.iter().copied());
    // From the middle outwards, so that there are waiters on both sides; the roots last.
    let mut victims: Vec<i32> = waiters.clone();
    let middle = waiters.len() / 2;
    victims.rotate_left(middle);
    victims.truncate(VICTIMS);
    victims.extend(roots);
    let mut continued = 0;
    for victim in victims {
        let freed = freed_by(&client, &info, &[victim]).await;
        let before = waiting(&client).await;
        terminate(&client, victim, &mut frozen).await;
        let after = waiting(&client).await;
        let granted: BTreeSet<i32> =
            before.difference(&after).copied().filter(|pid| *pid != victim).collect();
        assert_eq!(granted, freed, "{name}: the end of {victim}");
        continued += granted.len();
    }
    drop(frozen);
    running.stop().await.unwrap();
    scratch.remove().await.unwrap();
    continued
}

/// The sessions that would continue without `victims`, by the graph.
async fn freed_by(client: &Client, info: &ConnInfo, victims: &[i32]) -> BTreeSet<i32> {
    let limits = PollLimits { ask: 1_000, ..PollLimits::default() };
    let view = once(info, limits, Thresholds::default(), LockNames::default()).await.unwrap();
    let waiting = waiting(client).await;
    let victims: Vec<Party> = victims.iter().copied().map(Party::Backend).collect();
    let freed = view.graph.granted_by(&victims);
    let freed: BTreeSet<i32> = freed.into_iter().map(Party::pid).collect();
    assert!(freed.is_subset(&waiting), "{freed:?} are among {waiting:?}");
    freed
}
