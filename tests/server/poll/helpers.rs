//! Helpers that the tests of the poll share.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::feed::view_builder::ViewBuilder;
use locktop::model::lock_name::LockNames;
use locktop::model::snapshot::Snapshot;
use locktop::model::thresholds::Thresholds;
use locktop::model::view::{TargetId, View};
use locktop::pg::conninfo::ConnInfo;
use locktop::pg::poll::{PollConnection, PollLimits};
use tokio_postgres::Client;

pub(crate) use super::support::pid;
use super::support::{self, TIMEOUT};

/// Runs a test on every version, one after the other, each on a server of its own.
pub(crate) async fn on_every_version(test: impl AsyncFn(EmbeddedServer)) {
    on_every_version_with(Options::default(), test).await;
}

/// The same with server settings. A failure belongs to the version that was printed last.
pub(crate) async fn on_every_version_with(options: Options, test: impl AsyncFn(EmbeddedServer)) {
    for version in support::versions() {
        println!("PostgreSQL {version}");
        let options = Options { version: Some(version), ..options.clone() };
        Box::pin(test(EmbeddedServer::start(options).await.unwrap())).await;
    }
}

/// The same on all of them at once, for tests that mostly wait.
pub(crate) async fn on_all_versions_at_once(test: impl AsyncFn(EmbeddedServer)) {
    let on = async |version: u32| {
        let server =
            EmbeddedServer::start(Options { version: Some(version), ..Options::default() }).await.unwrap();
        let outcome = AssertUnwindSafe(Box::pin(test(server))).catch_unwind().await;
        outcome.unwrap_or_else(|panic| {
            println!("PostgreSQL {version}");
            resume_unwind(panic)
        });
    };
    join_all(support::versions().into_iter().map(on)).await;
}

pub(crate) fn info(server: &EmbeddedServer) -> ConnInfo {
    support::conninfo(server)
}

/// The same server for another role.
pub(crate) fn info_of(server: &EmbeddedServer, role: &str) -> ConnInfo {
    ConnInfo::parse(&server.conninfo().replace("user=postgres", &format!("user={role}")))
        .unwrap()
        .with_application_name("locktop")
}

pub(crate) async fn client(info: &ConnInfo) -> Client {
    support::open(info).await.client
}

pub(crate) async fn session(server: &EmbeddedServer) -> PollConnection {
    PollConnection::open(&info(server), patient()).await.unwrap()
}

/// Limits for a busy machine: names are waited for.
pub(crate) fn patient() -> PollLimits {
    PollLimits { name_timeout: Duration::from_secs(5), ..PollLimits::default() }
}

/// Polls until `done` returns true.
pub(crate) async fn poll_until(session: &mut PollConnection, done: impl Fn(&Snapshot) -> bool) -> Snapshot {
    tokio::time::timeout(TIMEOUT, async {
        let mut snapshot = session.poll(None).await.unwrap();
        while !done(&snapshot) {
            tokio::time::sleep(Duration::from_millis(10)).await;
            snapshot = session.poll(Some(&snapshot)).await.unwrap();
        }
        snapshot
    })
    .await
    .expect("the awaited state was not reached")
}

pub(crate) fn assert_fresh(snapshot: &Snapshot) {
    for (name, error) in [
        ("server", &snapshot.server.error),
        ("backends", &snapshot.backends.error),
        ("locks", &snapshot.locks.error),
        ("prepared", &snapshot.prepared.error),
    ] {
        assert_eq!(error, &None, "section {name}");
    }
}

/// Whether `pid` waits for a lock, with the start of its wait known.
pub(crate) fn waits(snapshot: &Snapshot, pid: i32) -> bool {
    snapshot
        .locks
        .last_rows()
        .iter()
        .any(|lock| lock.pid == Some(pid) && !lock.granted && lock.wait_start.is_some())
}

/// A server of the default version.
pub(crate) async fn server() -> EmbeddedServer {
    EmbeddedServer::start(Options::default()).await.unwrap()
}

/// A view before the first snapshot.
pub(crate) fn beginning() -> Arc<View> {
    ViewBuilder::new(TargetId::default(), Thresholds::default(), LockNames::default()).view()
}
