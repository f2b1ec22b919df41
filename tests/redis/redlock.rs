//! A lock on the majority of five servers, some of which are down, frozen, or have just restarted.

use std::process::{Command as Process, Stdio};
use std::time::Duration;

use locktop::clock;
use locktop::demo::redis::RedisServer;
use locktop::locks::redis_lock::{Guard, LockOptions, RedisLocks, Released, Restarts};
use locktop::locks::{Error, Held as _, Lost};
use locktop::model::redis_lease::Standing;
use locktop::redis::{RedisOptions, Reply, read_once};
use locktop::redis::{Unlock, force_unlock};

use crate::support::{TIMEOUT, wait_until};
use crate::{open, run, servers, urls};

const TERM: Duration = Duration::from_secs(30);

/// The servers have only just been started; a test that restarts one enables the rule for restarts.
fn trusting(servers: &[RedisServer], term: Duration) -> RedisLocks {
    let options = LockOptions::term(term).restarts(Restarts::Trusted).timeout(Duration::from_secs(2));
    RedisLocks::new(urls(servers), options).unwrap()
}

/// The number of running servers that have the key.
async fn places(servers: &[RedisServer]) -> usize {
    let mut count = 0;
    for server in servers.iter().filter(|server| server.pid().is_some()) {
        let is_set = run(&open(server).await, "EXISTS lock:a").await == Reply::Number(1);
        count += usize::from(is_set);
    }
    count
}

#[tokio::test]
async fn two_of_five_may_be_down() {
    let mut servers = servers(5).await;
    servers[1].kill_hard().await.unwrap();
    servers[3].kill_hard().await.unwrap();
    let locks = trusting(&servers, TERM);
    assert_eq!(locks.quorum(), 3);
    let guard = locks.try_acquire("lock:a").await.unwrap().unwrap();
    assert_eq!(places(&servers).await, 3);
    assert!(locks.try_acquire("lock:a").await.unwrap().is_none());
    // The refused attempt has not removed any key of the holder.
    assert_eq!(places(&servers).await, 3);
    assert_eq!(guard.release().await, Released { freed: 3, missing: 0, unknown: 2 });
    assert_eq!(places(&servers).await, 0);
}

#[tokio::test]
async fn with_three_of_five_down_it_refuses_with_a_reason_and_leaves_no_keys() {
    let mut servers = servers(5).await;
    for server in servers.iter_mut().take(3) {
        server.kill_hard().await.unwrap();
    }
    let refusal = trusting(&servers, TERM).try_acquire("lock:a").await.unwrap_err();
    let Error::NoQuorum { granted: 2, quorum: 3, servers: 5, faults, .. } = &refusal else {
        panic!("{refusal}")
    };
    assert_eq!(faults.len(), 3);
    assert!(faults[0].starts_with(&*servers[0].socket().to_string_lossy()), "{}", faults[0]);
    assert!(
        refusal.to_string().starts_with("lock:a: 2 of 5 servers agreed, and 3 are needed: "),
        "{refusal}"
    );
    assert_eq!(places(&servers).await, 0);
}

#[tokio::test]
async fn frozen_servers_cost_one_timeout_and_late_locks_are_deleted() {
    let servers = servers(5).await;
    let options = LockOptions::term(TERM).restarts(Restarts::Trusted).timeout(Duration::from_millis(400));
    let locks = RedisLocks::new(urls(&servers), options).unwrap();
    // Connections first: so the messages are sent while no server reads them.
    locks.acquire("lock:warm", TIMEOUT).await.unwrap().unwrap().release().await;
    servers[0].freeze();
    servers[1].freeze();
    let guard = locks.acquire("lock:a", TIMEOUT).await.unwrap().unwrap();
    let released = guard.release().await;
    assert!(released.was_held());
    assert_eq!(released.unknown, 2);
    servers[2].freeze();
    assert!(matches!(locks.try_acquire("lock:a").await, Err(Error::NoQuorum { .. })));
    for server in &servers {
        server.thaw();
    }
    // Each of the thawed servers sets what was sent to it and deletes it again; at the latest it ends with its term.
    wait_until("nothing to be left", async || places(&servers).await == 0).await;
}

#[tokio::test]
async fn a_minority_of_keys_that_are_another_s_does_no_harm_and_is_not_deleted() {
    let servers = servers(5).await;
    for server in &servers[..2] {
        run(&open(server).await, "SET lock:a somebody-else PX 60000").await;
    }
    let guard = trusting(&servers, TERM).try_acquire("lock:a").await.unwrap().unwrap();
    let row = read_once(urls(&servers), RedisOptions::default()).await.leases.rows[0].clone();
    assert_eq!(
        ((row.votes, row.servers), row.standing, !row.others.is_empty()),
        ((3, 5), Standing::Held, true)
    );
    assert_eq!(guard.release().await, Released { freed: 3, missing: 2, unknown: 0 });
    assert_eq!(places(&servers).await, 2);
}

#[tokio::test]
async fn it_is_lost_when_a_majority_is_and_not_before() {
    let mut servers = servers(5).await;
    let guard = trusting(&servers, Duration::from_secs(6)).try_acquire("lock:a").await.unwrap().unwrap();
    for server in &mut servers[..2] {
        server.restart().await.unwrap();
    }
    let first = guard.valid_until();
    wait_until("a renewal", async || guard.valid_until() > first || !guard.is_held()).await;
    assert!(guard.is_held());
    assert_eq!(places(&servers).await, 3);
    servers[2].restart().await.unwrap();
    assert_eq!(guard.lost().await, Lost::Gone { gone: 3, servers: 5 });
    assert!(!guard.release().await.was_held());
    assert_eq!(places(&servers).await, 0);
}

#[tokio::test]
async fn force_takes_it_from_every_server_and_the_holder_learns_of_it() {
    let servers = servers(5).await;
    let guard = trusting(&servers, Duration::from_secs(6)).try_acquire("lock:a").await.unwrap().unwrap();
    run(&open(&servers[4]).await, "SET lock:a somebody-else").await;
    let row = read_once(urls(&servers), RedisOptions::default()).await.leases.rows[0].clone();
    assert_eq!((row.votes, row.leaks()), (4, true));
    run(&open(&servers[0]).await, "SET lock:a a-third").await;
    let results = force_unlock(&row, &urls(&servers), Duration::from_secs(5)).await;
    assert!(matches!(
        results[..],
        [Unlock::Changed, Unlock::Freed, Unlock::Freed, Unlock::Freed, Unlock::Freed]
    ));
    assert!(matches!(guard.lost().await, Lost::Gone { .. }));
}

/// The reason for the rule about restarts: three servers forget a lock that is held.
#[tokio::test]
async fn servers_that_forgot_a_lock_would_give_it_away_again_and_do_not() {
    let mut servers = servers(5).await;
    let holder = trusting(&servers, TERM).try_acquire("lock:a").await.unwrap().unwrap();
    let careful = LockOptions::term(TERM).timeout(Duration::from_secs(2));
    let careful = RedisLocks::new(urls(&servers), careful).unwrap();
    let careless = trusting(&servers, TERM);
    for server in &mut servers[..3] {
        server.restart().await.unwrap();
    }
    let refusal = careful.try_acquire("lock:a").await.unwrap_err();
    assert!(refusal.to_string().contains("it may have lost a lock"), "{refusal}");
    // A client that trusts servers that forget gets a lock that is held: both consider themselves the holder.
    let second = careless.try_acquire("lock:a").await.unwrap().unwrap();
    assert!(second.is_held() && holder.is_held());
}

#[tokio::test]
async fn the_lock_of_a_killed_process_is_free_after_its_term_and_not_before() {
    let servers = servers(5).await;
    let mut child = Process::new(std::env::current_exe().unwrap())
        .args(["--exact", "--ignored", "--nocapture", "redlock::hold_one"])
        .env("LOCKTOP_TEST_REDIS", servers.iter().map(RedisServer::url).collect::<Vec<_>>().join(" "))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let out = std::io::BufReader::new(child.stdout.take().unwrap());
    let held = std::io::BufRead::lines(out).map(Result::unwrap).any(|line| line.contains("held"));
    assert!(held);
    let locks = trusting(&servers, CHILD_TERM);
    let taken = clock::monotonic();
    // It renews: the lock stays for longer than its term.
    while taken.elapsed() < CHILD_TERM + CHILD_TERM / 3 {
        assert!(locks.try_acquire("lock:a").await.unwrap().is_none());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let killed = clock::monotonic();
    let guard = locks.acquire("lock:a", TIMEOUT).await.unwrap().unwrap();
    // The last renewal was at most a third of the term before the end.
    assert!(killed.elapsed() >= CHILD_TERM / 3, "{:?}", killed.elapsed());
    assert!(guard.is_held());
}

const CHILD_TERM: Duration = Duration::from_secs(3);

#[tokio::test]
#[ignore = "the other process of the test above"]
async fn hold_one() {
    let urls = std::env::var("LOCKTOP_TEST_REDIS").unwrap();
    let urls: Vec<_> = urls.split(' ').collect();
    let options = LockOptions::term(CHILD_TERM).restarts(Restarts::Trusted);
    let locks = RedisLocks::connect(&urls, options).unwrap();
    let guard: Guard = locks.acquire("lock:a", TIMEOUT).await.unwrap().unwrap();
    println!("held {}", guard.value());
    tokio::time::sleep(TIMEOUT).await;
}
