//! The sessions that continue now, in turn, or not: random states of every kind of wait. In each state a
//! session is ended, and the others are compared with the prediction.
//!
//! `LOCKTOP_TEST_SEED` repeats a state; a failure prints the seed. `LOCKTOP_LONG` has 200 states of a kind on
//! every version.

mod kinds;
mod play;

use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::model::plan::Verb;
use locktop::model::wait_graph::{Party, Release};

use self::kinds::{Kind, Random};
use self::play::Stage;
use crate::support::is_long;

/// Number of states of a kind.
const SHORT: u64 = 10;
const LONG: u64 = 200;

/// Required share of states with exact numbers, in percent: in the others some sessions `may stay blocked`.
const EXACT: usize = 90;

/// The number of exact states of a kind.
#[derive(Debug, Default, Clone, Copy)]
struct Score {
    states: usize,
    exact: usize,
    now: usize,
    in_turn: usize,
    still: usize,
}

#[tokio::test]
async fn every_promise_is_kept() {
    let given = std::env::var("LOCKTOP_TEST_SEED").ok().map(|seed| seed.parse::<u64>().unwrap());
    let seeds: Vec<u64> = match given {
        Some(seed) => vec![seed],
        None => (1..=if is_long() { LONG } else { SHORT }).collect(),
    };
    for version in super::versions() {
        let server = server(version).await;
        let mut all = Score::default();
        for &kind in Kind::ALL {
            let mut score = Score::default();
            for seed in &seeds {
                Box::pin(state(&server, kind, *seed, &mut score)).await;
            }
            println!("{kind:?} on {}: {score:?}", server.version());
            assert!(
                given.is_some() || score.states * 2 > seeds.len(),
                "{kind:?}: too few states have a root"
            );
            all.states += score.states;
            all.exact += score.exact;
        }
        let is_enough = all.exact * 100 >= all.states * EXACT;
        assert!(given.is_some() || is_enough, "{} of {} states are exact", all.exact, all.states);
    }
}

/// A server with the settings that the kinds need, whose deadlock check never runs.
async fn server(version: Option<u32>) -> EmbeddedServer {
    let options = Options { version, ..Options::default() }
        .with("max_connections", 100)
        .with("wal_level", "logical")
        .with("deadlock_timeout", "1h")
        .with("autovacuum", "off");
    EmbeddedServer::start(options).await.unwrap()
}

/// Builds a state, ends one session, and then the others in their turn.
async fn state(server: &EmbeddedServer, kind: Kind, seed: u64, score: &mut Score) {
    let mut random = Random::of(kind, seed);
    let mut stage =
        Stage::of(server, format!("{kind:?}, LOCKTOP_TEST_SEED={seed}, {}", server.version())).await;
    stage.set_up(kind.tables()).await;
    for step in kind.steps(&mut random) {
        stage.step(step).await;
    }
    if kind == Kind::Notify {
        stage.lose_the_standby(&mut random).await;
    }
    let view = stage.view().await;
    let current = view.with_snapshot().unwrap();
    // This server never breaks a deadlock.
    let roots: Vec<Party> = view.graph.roots.iter().map(|root| root.party).collect();
    if roots.is_empty() || !view.graph.cycles.is_empty() {
        return stage.clear().await;
    }
    let in_middle = || {
        let waiters = view
            .graph
            .tree
            .nodes
            .iter()
            .filter(|node| node.waits.is_some() && view.graph.blocks(node.party) > 0);
        waiters.map(|node| node.party).collect::<Vec<_>>()
    };
    let party = match in_middle() {
        waiters if !waiters.is_empty() && random.one_in(3) => *random.pick(&waiters),
        _ => *random.pick(&roots),
    };
    let can_cancel = current.backend(party.pid()).is_some_and(|row| {
        locktop::model::consequence::has_query(row).is_ok() && row.wait_event.as_deref() != Some("SyncRep")
    });
    let verb = if can_cancel && random.one_in(2) { Verb::Cancel } else { Verb::Terminate };
    let release = current.release(verb, &[party]);
    let counted = view.graph.blocked_by(party).len();
    let lists = [&release.now, &release.in_turn, &release.still, &release.unsure];
    assert_eq!(lists.iter().map(|list| list.len()).sum::<usize>(), counted, "{}: each once", stage.name);
    if verb == Verb::Terminate
        && let Some(root) = view.graph.roots.iter().find(|root| root.party == party)
    {
        let numbers = (root.frees, root.in_turn, root.still_blocked, root.may_stay_blocked);
        let lens = lists.map(|list| u32::try_from(list.len()).unwrap());
        assert_eq!(
            numbers,
            (lens[0], lens[1], lens[2], lens[3]),
            "{}: the root has the same numbers",
            stage.name
        );
    }
    stage.name = format!("{}: {verb:?} of {party:?} ({release:?})", stage.name);
    score.states += 1;
    score.exact += usize::from(release.unsure.is_empty());
    score.now += release.now.len();
    score.in_turn += release.in_turn.len();
    score.still += release.still.len();
    let nodes = view.graph.tree.nodes.iter().filter(|node| node.waits.is_some());
    let waiting: Vec<Party> = nodes.map(|node| node.party).collect();
    stage.end(party, verb).await;
    prove(&mut stage, &release, &waiting, &mut random).await;
    stage.clear().await;
}

/// Checks that the prediction comes true.
async fn prove(stage: &mut Stage, release: &Release, waiting: &[Party], random: &mut Random) {
    stage.all_continue(&release.now, "now").await;
    let released: Vec<Party> = release.now.iter().chain(&release.in_turn).copied().collect();
    stage.all_follow(&released, &release.in_turn, random).await;
    stage.none_continue(&release.still).await;
    if release.still.is_empty() || release.others_must_end().is_none() {
        return;
    }
    for other in &release.others {
        stage.end(*other, Verb::Terminate).await;
    }
    // The sessions between them finish in their turn, too.
    stage.all_follow(waiting, &release.still, random).await;
}
