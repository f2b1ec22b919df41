//! Locks on connections of a pool of sqlx, as `tests/server/advisory/pools.rs` has for the other pools: `packaging/checks.sh sqlx`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    unreachable_pub,
    dead_code,
    missing_docs,
    reason = "a test may"
)]

#[path = "../examples/sqlx.rs"]
mod example;
#[path = "../../../tests/server/advisory/observer.rs"]
mod observer;
#[path = "../../../tests/support/pooler.rs"]
mod pooler;
#[path = "../../../tests/server/advisory/pools_rules.rs"]
mod pools_rules;
#[path = "../../../tests/support/mod.rs"]
mod support;

// The files shared with the tests of the program use the paths of the program.
extern crate self as locktop;
pub use locktop_base::clock;
pub use locktop_lab as demo;
pub use locktop_locks as locks;
pub use pg_connect as pg;

use std::path::Path;
use std::time::Duration;

use locktop_lab::postgres::EmbeddedServer;
use locktop_locks::advisory::{Locks, Mode, Wait};
use locktop_locks::{Held as _, Lost};
use pg_connect::conninfo::ConnInfo;
use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use observer::{Observer, is_free};
use pooler::Pooler;
use support::{database, server, server_of, versions};

fn options(directory: &Path, port: u16, info: &ConnInfo) -> PgConnectOptions {
    let options = PgConnectOptions::new_without_pgpass().socket(directory).port(port);
    options.username("postgres").database(info.dbname())
}

fn direct(server: &EmbeddedServer, info: &ConnInfo) -> PgConnectOptions {
    options(server.socket_dir(), 5432, info)
}

fn pool(options: PgConnectOptions, size: u32) -> PgPool {
    PgPoolOptions::new().max_connections(size).connect_lazy_with(options)
}

#[tokio::test]
async fn no_lock_leaks_into_a_pool() {
    for version in versions() {
        let server = server_of(version).await;
        let info = database(server).await;
        pools_rules::never_leaks(pool(direct(server, &info), 2), &info).await;
    }
}

#[tokio::test]
async fn after_a_fault_the_next_session_has_the_lock() {
    let server = server().await;
    let info = database(server).await;
    pools_rules::survives_faults(pool(direct(server, &info), 2), &info).await;
}

#[tokio::test]
async fn a_pool_that_sets_a_role_gets_no_lock_either() {
    let server = server().await;
    let info = database(server).await;
    Observer::open(&info).await.ask("CREATE ROLE tenant").await;
    let pool = pool(direct(server, &info).options([("role", "tenant")]), 2);
    pools_rules::drops_its_lock(pool.clone(), &info).await;
    pools_rules::given_up(&Locks::new(pool).without_pooler_test(), &info).await;
}

#[tokio::test]
async fn a_pool_of_one_connection_cancels_its_waiter() {
    let server = server().await;
    let info = database(server).await;
    pools_rules::alone(pool(direct(server, &info), 1), &info).await;
}

#[tokio::test]
async fn a_pool_behind_a_pooler_in_transaction_mode_is_refused() {
    let server = server().await;
    let info = database(server).await;
    let pooler = Pooler::start_with(server, "transaction", "ignore_startup_parameters = extra_float_digits");
    pools_rules::is_refused(pool(options(pooler.directory(), 6432, &info), 4)).await;
}

/// The first one asks which session it is. The pool gets a connection back by a task: with another one it would use that.
#[tokio::test]
async fn a_lock_and_its_release_are_three_messages_on_one_connection() {
    let server = server().await;
    let info = database(server).await;
    let ours = pools_rules::messages(pool(direct(server, &info), 1), server, &info).await;
    assert_eq!(ours.len(), 3, "{ours:#?}");
}

#[tokio::test]
async fn a_killed_session_is_noticed_within_250_ms() {
    let server = server().await;
    let info = database(server).await;
    let (observer, pool) = (Observer::open(&info).await, pool(direct(server, &info), 1));
    for _ in 0..4 {
        let guard = Locks::new(pool.clone()).without_pooler_test().lock("a").await.unwrap();
        observer.ask(&format!("SELECT pg_terminate_backend({})", guard.pid())).await;
        let start = clock::monotonic();
        assert!(matches!(guard.lost().await, Lost::Ended(_)));
        // Four times as long, for a busy machine.
        assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    }
}

/// The answer to a ping that is abandoned for a release is not taken for the release's.
#[tokio::test]
async fn a_release_during_a_ping_is_answered() {
    let server = server().await;
    let info = database(server).await;
    let locks = Locks::new(pool(direct(server, &info), 1)).without_pooler_test();
    for held in (249_500..252_500).step_by(200) {
        let mut guard = locks.lock("a").await.unwrap();
        tokio::time::sleep(Duration::from_micros(held)).await;
        assert!(guard.also("b", Mode::Exclusive, Wait::Never).await.unwrap());
        guard.release().await.unwrap();
        assert!(is_free(&info, "b").await);
    }
}

/// sqlx panics when it returns a connection without a runtime.
#[test]
fn a_runtime_that_ends_closes_the_connection() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (outer, inner) = (runtime(), runtime());
    let (info, options) = outer.block_on(async {
        let server = server().await;
        let info = database(server).await;
        let options = direct(server, &info);
        (info, options)
    });
    let (guard, pool) = inner.block_on(async {
        let pool =
            PgPoolOptions::new().min_connections(1).max_connections(2).connect_with(options).await.unwrap();
        (Locks::new(pool.clone()).lock("a").await.unwrap(), pool)
    });
    drop(inner);
    assert!(guard.check().is_err());
    drop((guard, pool));
    outer.block_on(async {
        support::wait_until("the lock to be free", async || is_free(&info, "a").await).await;
    });
}

#[tokio::test]
async fn the_example_runs_and_releases_its_lock() {
    let server = server().await;
    let info = database(server).await;
    let host = server.socket_dir().display();
    example::run(&format!("postgres://postgres@localhost:5432/{}?host={host}", info.dbname())).await.unwrap();
    assert!(is_free(&info, "invoice:7").await);
}
