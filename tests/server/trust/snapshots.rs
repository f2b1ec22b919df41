//! The ways of polling, and the rows that are seen.

use std::sync::Arc;
use std::time::Duration;

use locktop::feed::acting::ActingConnection;
use locktop::feed::learn::{self, Learner, Way};
use locktop::feed::live::{FeedSettings, Live, PollControl};
use locktop::feed::once::once_learning;
use locktop::model::lock_name::LockNames;
use locktop::model::snapshot::Snapshot;
use locktop::model::thresholds::Thresholds;
use locktop::model::view::View;
use locktop::pg::conninfo::ConnInfo;
use locktop::pg::poll::PollLimits;
use serde_json::Value;
use tokio::sync::watch;

use super::binary::{Left, locktop, run_beside};
use super::ground::Ground;
use super::support::TIMEOUT;

/// Between two polls of a feed.
const EVERY: Duration = Duration::from_millis(20);

/// Limits for a busy machine, with owners that are trusted.
pub(crate) fn limits(trusted: &[&str]) -> PollLimits {
    PollLimits {
        name_timeout: Duration::from_secs(5),
        trusted_owners: trusted.iter().map(|owner| (*owner).to_owned()).collect(),
        ..PollLimits::default()
    }
}

/// One snapshot, with names learned, as `locktop snapshot` takes it.
pub(crate) async fn poll_once(info: &ConnInfo, limits: &PollLimits) -> Arc<View> {
    // An autovacuum that cuts the end off a table has it locked for a moment.
    for _ in 0..20 {
        let view = try_poll(info, limits).await;
        if !rows(&view).iter().any(|row| row.ends_with("was locked a moment ago")) {
            return view;
        }
    }
    panic!("a table stays locked");
}

async fn try_poll(info: &ConnInfo, limits: &PollLimits) -> Arc<View> {
    let learner = Learner::new(info.clone(), limits.clone(), LockNames::default(), Vec::new());
    let poll = once_learning(info, limits.clone(), Thresholds::default(), learner, None);
    Box::pin(poll).await.unwrap()
}

/// The feed of the dashboard, for a few polls: two connections, or one if no action is permitted.
pub(crate) async fn feed(info: &ConnInfo, limits: &PollLimits, read_only: bool) -> Arc<View> {
    let learner = Learner::new(info.clone(), limits.clone(), LockNames::default(), Vec::new());
    let (names_in, names) = watch::channel(learner.learned());
    let mut changes = names_in.subscribe();
    let settings = FeedSettings { limits: limits.clone(), learned: Some(names), ..FeedSettings::default() };
    let live = Box::pin(Live::connect(info.clone(), settings, |_| {})).await.unwrap();
    let (views_in, mut views) = watch::channel(live.view());
    let acting =
        (!read_only).then(|| Arc::new(ActingConnection::keep(info.clone(), limits.clone(), views.clone())));
    let way = acting.clone().map_or(Way::Own, Way::Acting);
    tokio::spawn(live.run(PollControl::every(EVERY).1, views_in));
    tokio::spawn(learn::keep(learner, way, Duration::from_secs(3600), names_in));
    changes.changed().await.unwrap();
    let first = views.borrow().id;
    let found = tokio::time::timeout(TIMEOUT, views.wait_for(|view| view.id > first + 3)).await;
    Arc::clone(&found.expect("the feed continues").unwrap())
}

/// `locktop` to its end, never asking for a password.
pub(crate) async fn command(ground: &Ground, role: &str, arguments: &[&str]) -> Left {
    let target = ground.target(role);
    let state = tempfile::tempdir().unwrap();
    let mut command = locktop(&[&["-w"], arguments, &[target.as_str()]].concat());
    command.env("XDG_STATE_HOME", state.path());
    run_beside(command).await
}

/// `locktop snapshot`.
pub(crate) async fn snapshot(ground: &Ground, role: &str, more: &[&str]) -> Value {
    let arguments = [&["snapshot", "--format", "json"], more].concat();
    let mut left = command(ground, role, &arguments).await;
    // A busy machine may take longer than the program waits.
    for _ in 0..9 {
        if !left.err.contains("has not answered for") {
            break;
        }
        left = command(ground, role, &arguments).await;
    }
    assert_eq!(left.status, Some(0), "{left:?}");
    serde_json::from_str(&left.out).unwrap()
}

pub(crate) fn taken(view: &View) -> &Snapshot {
    view.snapshot.as_deref().unwrap()
}

/// How many rows of each of the six tables are seen; `-` and the reason for a table that is not read.
pub(crate) fn rows(view: &View) -> Vec<String> {
    let (snapshot, mut seen) = (taken(view), Vec::new());
    let mut add = |name: &str, rows: usize, error: Option<&str>| {
        seen.push(error.map_or(format!("{name} {rows}"), |error| format!("{name} - {error}")));
    };
    for set in snapshot.task_sets.iter() {
        add("tasks", set.tasks.last_rows().len(), set.tasks.error.as_deref());
        add("executions", set.executions.last_rows().len(), set.executions.error.as_deref());
    }
    let systems = &snapshot.sources;
    for table in &systems.leases {
        add("leases", table.section.last_rows().len(), table.section.error.as_deref());
    }
    for table in &systems.items {
        add("items", table.section.last_rows().len(), table.section.error.as_deref());
    }
    for table in &systems.limits {
        add("limits", table.section.last_rows().len(), table.section.error.as_deref());
    }
    for table in &systems.generators {
        add("generators", table.section.last_rows().len(), table.section.error.as_deref());
    }
    seen
}

/// The rows that are seen if all tables are read.
pub(crate) const ALL: [&str; 6] =
    ["tasks 3", "executions 3", "leases 2", "items 3", "limits 2", "generators 3"];
