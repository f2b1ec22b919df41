//! A lock in Redis is deleted on every server, if it is the one that was seen.

use std::sync::Arc;
use std::time::Duration;

use locktop::action::Connections;
use locktop::action::{Executor, ExecutorSettings};
use locktop::demo::redis::RedisServer;
use locktop::model::plan::{Outcome, TargetKind, Verb};
use locktop::model::redis_lease::{Expiry, KeyReading, LockValue, RedisLease, ServerReading, merge_sets};
use locktop::redis::{Command, Connection, RedisOptions, RedisUrl, read_once};
use tokio_postgres::Client;

use super::stage::{Hands, Notes, settings};

/// No server of PostgreSQL's is needed for it.
struct Nowhere;

impl Connections for Nowhere {
    async fn client(&self) -> Result<Arc<Client>, String> {
        Err("there is no connection".to_owned())
    }

    fn pids(&self) -> Vec<i32> {
        Vec::new()
    }
}

async fn set(servers: &[RedisUrl], value: &str) {
    for server in servers {
        let connection = Connection::open(server, Duration::from_secs(10)).await.unwrap();
        let command = Command::new("SET").arg("lock:a").arg(value).arg("PX").arg("3600000");
        connection.run(&command).await.unwrap();
    }
}

async fn read(servers: &[RedisUrl]) -> Arc<RedisLease> {
    let options = RedisOptions { timeout: Duration::from_secs(10), ..RedisOptions::default() };
    let state = read_once(servers.to_vec(), options).await;
    Arc::new(state.leases.rows.first().unwrap().clone())
}

#[tokio::test]
async fn a_lock_is_ended_on_all_servers_as_it_was_seen() {
    let mut servers = RedisServer::several(3).await.unwrap_or_else(|error| panic!("{error}"));
    let urls: Vec<RedisUrl> = servers.iter().map(|server| RedisUrl::parse(&server.url()).unwrap()).collect();
    let notes = Notes::default();
    let settings = ExecutorSettings { redis: urls.clone(), ..settings() };
    let mut hands = Hands { executor: Executor::start(Nowhere, notes.clone(), settings), notes, progress: 0 };
    set(&urls, "one").await;
    let seen = read(&urls).await;
    let lease = || TargetKind::RedisLease(Arc::clone(&seen));
    set(&urls, "two").await;
    let (outcome, detail) = hands.one(Verb::Unlock, lease()).await;
    assert_eq!((outcome, detail.contains("3 have another value")), (Outcome::Changed, true), "{detail}");
    set(&urls[..1], "one").await;
    let (outcome, detail) = hands.one(Verb::Unlock, lease()).await;
    assert_eq!(outcome, Outcome::StillThere, "{detail}");
    set(&urls, "one").await;
    let (outcome, detail) = hands.one(Verb::Unlock, lease()).await;
    assert_eq!(
        (outcome, detail.as_str()),
        (Outcome::Done, "freed on 3 of 3: its holder no longer has a majority")
    );
    let (outcome, detail) = hands.one(Verb::Unlock, lease()).await;
    assert_eq!((outcome, detail.contains("it no longer existed")), (Outcome::Changed, true), "{detail}");
    set(&urls, "one").await;
    servers[2].kill_hard().await.unwrap();
    let (outcome, detail) = hands.one(Verb::Unlock, lease()).await;
    assert_eq!(outcome, Outcome::Done, "{detail}");
    assert!(
        detail.starts_with("freed on 2 of 3, one did not answer: its holder no longer has a majority"),
        "{detail}"
    );
    set(&urls[..1], "one").await;
    servers[1].kill_hard().await.unwrap();
    let (outcome, detail) = hands.one(Verb::Unlock, lease()).await;
    assert_eq!(outcome, Outcome::Uncertain, "{detail}");
    assert!(hands.notes.all().iter().all(|line| !line.contains("one\"") && !line.contains("'one'")));
}

#[tokio::test]
async fn servers_of_other_sets_are_not_asked() {
    let servers = RedisServer::several(3).await.unwrap_or_else(|error| panic!("{error}"));
    let urls: Vec<RedisUrl> = servers.iter().map(|server| RedisUrl::parse(&server.url()).unwrap()).collect();
    set(&urls, "me").await;
    let reading = |url: &RedisUrl| ServerReading {
        server: url.to_string().into(),
        keys: Ok(vec![KeyReading {
            key: (*b"lock:a").into(),
            value: LockValue::text(b"me"),
            expiry: Expiry::Never,
        }]),
    };
    let leases = merge_sets(&urls.iter().map(reading).collect::<Vec<_>>(), &[1, 2]);
    let row = Arc::new(leases.rows[1].clone());
    let hands = |redis: &[RedisUrl]| {
        let settings = ExecutorSettings { redis: redis.to_vec(), ..settings() };
        let notes = Notes::default();
        Hands { executor: Executor::start(Nowhere, notes.clone(), settings), notes, progress: 0 }
    };
    let (outcome, detail) =
        hands(&urls[..2]).one(Verb::Unlock, TargetKind::RedisLease(Arc::clone(&row))).await;
    assert_eq!(outcome, Outcome::Refused, "{detail}");
    let (outcome, detail) = hands(&urls).one(Verb::Unlock, TargetKind::RedisLease(row)).await;
    assert_eq!(
        (outcome, detail.as_str()),
        (Outcome::Done, "freed on 2 of 2: its holder no longer has a majority")
    );
    for (url, left) in urls.iter().zip([1, 0, 0]) {
        let connection = Connection::open(url, Duration::from_secs(10)).await.unwrap();
        let exists = connection.run(&Command::new("EXISTS").arg("lock:a")).await.unwrap();
        assert_eq!(exists.as_number(), Some(left));
    }
}
