//! Locks on connections of a pool: none ever leaks into it.

use bb8_postgres::{PostgresConnectionManager, bb8};
use deadpool_postgres::{Manager, Pool};
use locktop::demo::postgres::EmbeddedServer;
use locktop::pg::conninfo::ConnInfo;
use tokio_postgres::{Config, NoTls};

use super::observer::Observer;
use super::pooler::Pooler;
use super::pools_rules;
use super::support::{database, server, server_of, versions};

fn target(server: &EmbeddedServer, info: &ConnInfo) -> String {
    format!("{} dbname={}", server.conninfo(), info.dbname())
}

fn config(target: &str) -> Config {
    target.parse().unwrap()
}

fn deadpool(target: &str, size: usize) -> Pool {
    Pool::builder(Manager::new(config(target), NoTls)).max_size(size).build().unwrap()
}

async fn bb8(target: &str, size: u32) -> bb8::Pool<PostgresConnectionManager<NoTls>> {
    let manager = PostgresConnectionManager::new(config(target), NoTls);
    bb8::Pool::builder().max_size(size).build(manager).await.unwrap()
}

#[tokio::test]
async fn no_lock_leaks_into_a_pool() {
    for version in versions() {
        let server = server_of(version).await;
        let info = database(server).await;
        pools_rules::never_leaks(deadpool(&target(server, &info), 2), &info).await;
        pools_rules::never_leaks(bb8(&target(server, &info), 2).await, &info).await;
    }
}

#[tokio::test]
async fn after_a_fault_the_next_session_has_the_lock() {
    let server = server().await;
    let infos = [database(server).await, database(server).await];
    tokio::join!(
        pools_rules::survives_faults(deadpool(&target(server, &infos[0]), 2), &infos[0]),
        pools_rules::survives_faults(bb8(&target(server, &infos[1]), 2).await, &infos[1]),
    );
}

/// Such a role may not terminate its own session, which the login role began.
#[tokio::test]
async fn a_pool_that_sets_a_role_gets_no_lock_either() {
    let server = server().await;
    let info = database(server).await;
    Observer::open(&info).await.ask("CREATE ROLE tenant").await;
    let target = format!("{} options='-c role=tenant'", target(server, &info));
    pools_rules::drops_its_lock(bb8(&target, 2).await, &info).await;
}

#[tokio::test]
async fn a_pool_of_one_connection_is_too_small_for_the_pooler_test() {
    let server = server().await;
    let info = database(server).await;
    pools_rules::alone(deadpool(&target(server, &info), 1), &info).await;
}

#[tokio::test]
async fn a_pool_behind_a_pooler_in_transaction_mode_is_refused() {
    let server = server().await;
    let info = database(server).await;
    let pooler = Pooler::start(server, "transaction");
    pools_rules::is_refused(deadpool(&pooler.target(&info), 4)).await;
}

#[tokio::test]
async fn a_lock_and_its_release_are_two_messages_on_one_connection() {
    let server = server().await;
    let info = database(server).await;
    let pool = deadpool(&target(server, &info), 2);
    let messages = pools_rules::messages(pool.clone(), server, &info).await;
    assert_eq!((messages.len(), pool.status().size), (2, 1), "{messages:#?}");
}
