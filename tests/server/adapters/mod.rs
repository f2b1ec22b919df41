//! Other job systems on real servers: which are found, which tables may be read, and which code never runs.

mod acted;
mod checked;
mod each;
mod found;
mod hostile;
mod large;
mod node;
mod others;
mod presence;
mod python;
mod python_queues;
mod real;
mod served;
#[path = "../tasks/stage.rs"]
mod stage;
mod states;
mod stuck;
#[path = "../../support/suite.rs"]
mod support;
mod web;
mod zones;

use std::path::Path;
use std::sync::Arc;

use locktop::config::adapter::{built_in, parse_adapter};
use locktop::demo::postgres::EmbeddedServer;
use locktop::model::adapter::{Adapter, Installation, Part};
use locktop::pg::conninfo::ConnInfo;
use locktop::pg::jobs::adapters::survey;
use locktop::pg::trust::TrustedOwners;
use tokio_postgres::Client;

const GOOD_JOB: &str = include_str!("tables/good_job.sql");
const SOLID_QUEUE: &str = include_str!("tables/solid_queue.sql");
const RIVER: &str = include_str!("tables/river.sql");

/// All built-in adapters.
fn all() -> Vec<Arc<Adapter>> {
    built_in().unwrap().into_iter().map(Arc::new).collect()
}

/// A file of a user.
fn adapter(text: &str) -> Vec<Arc<Adapter>> {
    vec![Arc::new(parse_adapter(text, Path::new("test.toml")).unwrap())]
}

/// A server of the newest version that is tested.
async fn server() -> &'static EmbeddedServer {
    support::server_of(*support::versions().last().unwrap()).await
}

/// A database of its own, with these tables.
async fn database(ddl: &str) -> ConnInfo {
    database_on(server().await, ddl).await
}

async fn database_on(server: &EmbeddedServer, ddl: &str) -> ConnInfo {
    let info = support::database(server).await;
    run(&info, ddl).await;
    info
}

async fn run(info: &ConnInfo, sql: &str) {
    client(info).await.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
}

async fn client(info: &ConnInfo) -> Client {
    support::open(info).await.client
}

/// The same server for another role.
async fn info_of(info: &ConnInfo, role: &str) -> ConnInfo {
    let text = server().await.conninfo().replace("user=postgres", &format!("user={role}"));
    ConnInfo::parse(&text).unwrap().with_dbname(info.dbname())
}

/// The installations that are found, by a session without any settings.
async fn found(info: &ConnInfo, adapters: &[Arc<Adapter>]) -> Vec<Installation> {
    survey(&client(info).await, &TrustedOwners::default(), adapters).await.unwrap()
}

/// The only installation that is found.
async fn one(info: &ConnInfo, adapters: &[Arc<Adapter>]) -> Installation {
    let mut found = found(info, adapters).await;
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

/// Which alternative of each part is used, by its number in the file, and how many rows it returned.
fn used(installation: &Installation) -> Vec<(Part, usize, usize)> {
    let each = installation.choices.iter().map(|choice| {
        let used = choice
            .used()
            .unwrap_or_else(|| panic!("{:?} of {}: {choice:?}", choice.part, installation.label()));
        let read = used.read.as_ref().unwrap().as_ref();
        let read =
            read.unwrap_or_else(|error| panic!("{:?} of {}: {error}", choice.part, installation.label()));
        (choice.part, used.number, read.rows)
    });
    each.collect()
}

/// Why the last alternative of a part that was tried is not used.
fn refusal(installation: &Installation, part: Part) -> &str {
    let tried = installation.choice(part).unwrap().tried.last().unwrap();
    tried.outcome.as_ref().unwrap_err()
}

/// Which alternative of each part is used over tables that are large, by its number in the file; none where none of them may run.
async fn are_read(ddl: &str, expected: &[(Part, Option<usize>)]) {
    let info = database(ddl).await;
    run(&info, "VACUUM ANALYZE").await;
    let found = one(&info, &all()).await;
    for (part, number) in expected {
        let choice = found.choice(*part).unwrap_or_else(|| panic!("{part:?} of {}", found.label()));
        assert_eq!(choice.used().map(|used| used.number), *number, "{choice:?}");
        let read = choice.used().and_then(|used| used.read.as_ref());
        assert!(read.is_none_or(Result::is_ok), "{choice:?}");
    }
}
