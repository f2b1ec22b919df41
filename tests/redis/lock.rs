//! A lock on one server.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use locktop::clock;
use locktop::locks::redis_lock::{LockOptions, RedisLocks, Released, Restarts};
use locktop::locks::{Error, Held as _, Lost};
use locktop::model::redis_lease::{LockValue, RedisLease};
use locktop::redis::{Command, RedisOptions, RedisSets, Reply, read_once};
use locktop::redis::{Unlock, force_unlock};

use crate::support::{TIMEOUT, wait_until};
use crate::{bytes, open, run, server, servers, start, url, urls};

/// Servers here have only just been started, and none is ever restarted with a lock on it.
fn options(term: Duration) -> LockOptions {
    LockOptions::term(term).restarts(Restarts::Trusted).timeout(Duration::from_secs(5))
}

fn locks(server: &locktop::demo::redis::RedisServer, term: Duration) -> RedisLocks {
    RedisLocks::new(vec![url(server)], options(term)).unwrap()
}

const TERM: Duration = Duration::from_secs(30);

/// As the screen would show it.
async fn shown(server: &locktop::demo::redis::RedisServer, key: &str) -> RedisLease {
    let leases = read_once(vec![url(server)], locktop::redis::RedisOptions::default()).await.leases;
    leases.rows.iter().find(|row| &*row.name() == key).unwrap().clone()
}

#[tokio::test]
async fn a_lock_has_one_holder_and_release_deletes_the_key() {
    let server = server().await;
    let connection = open(&server).await;
    let locks = RedisLocks::new(vec![url(&server)], options(TERM).named("worker-1")).unwrap();
    let guard = locks.try_acquire("lock:a").await.unwrap().unwrap();
    assert!(guard.is_held());
    assert!(guard.value().starts_with("worker-1:"));
    assert_eq!(run(&connection, "GET lock:a").await, bytes(guard.value()));
    let left = run(&connection, "PTTL lock:a").await.as_number().unwrap();
    assert!(left > 0 && left <= 30_000, "{left}");
    assert!(locks.try_acquire("lock:a").await.unwrap().is_none());
    let row = shown(&server, "lock:a").await;
    assert!(!row.leaks());
    assert_eq!(row.holder, LockValue::text(guard.value().as_bytes()));
    let released = guard.release().await;
    assert_eq!(released, Released { freed: 1, missing: 0, unknown: 0 });
    assert!(released.was_held());
    assert_eq!(run(&connection, "EXISTS lock:a").await, Reply::Number(0));
}

#[tokio::test]
async fn a_waiter_gets_the_lock_when_it_is_released() {
    let server = server().await;
    let locks = locks(&server, TERM);
    let first = locks.try_acquire("lock:a").await.unwrap().unwrap();
    assert!(locks.acquire("lock:a", Duration::from_millis(50)).await.unwrap().is_none());
    let waiting = tokio::spawn({
        let locks = locks.clone();
        async move { locks.acquire("lock:a", TIMEOUT).await }
    });
    first.release().await;
    let second = waiting.await.unwrap().unwrap().unwrap();
    assert!(second.is_held());
}

#[tokio::test]
async fn waiters_have_it_in_the_order_of_arrival_and_a_release_wakes_them() {
    for count in [1, 3] {
        let servers = servers(count).await;
        let connection = open(&servers[0]).await;
        // Nothing but a release wakes them in time.
        let patient = options(TERM).longest_delay(Duration::from_secs(3_600));
        let locks = RedisLocks::new(urls(&servers), patient).unwrap();
        let held = locks.try_acquire("lock:a").await.unwrap().unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut waiters = Vec::new();
        for number in 1..=4_u8 {
            let (locks, order) = (locks.clone(), Arc::clone(&order));
            waiters.push(tokio::spawn(async move {
                let guard = locks.acquire("lock:a", TIMEOUT).await.unwrap().unwrap();
                order.lock().unwrap().push(number);
                assert!(guard.release().await.was_held());
            }));
            wait_until("it to listen", async || {
                let heard = run(&connection, "PUBSUB NUMSUB locktop_free:lock:a").await;
                run(&connection, "ZCARD locktop_line:{lock:a}").await == Reply::Number(i64::from(number))
                    && matches!(&heard, Reply::Several(parts) if parts[1] == Reply::Number(i64::from(number)))
            })
            .await;
        }
        assert!(held.release().await.was_held());
        for waiter in waiters {
            waiter.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), [1, 2, 3, 4], "{count}");
        let left = async || run(&connection, "ZCARD locktop_line:{lock:a}").await == Reply::Number(0);
        wait_until("the line to be empty", left).await;
    }
}

#[tokio::test]
async fn a_waiter_that_is_dropped_or_dead_is_not_waited_for() {
    let server = server().await;
    let connection = open(&server).await;
    let locks = locks(&server, TERM);
    let held = locks.try_acquire("lock:a").await.unwrap().unwrap();
    // It was before all others, and its process has died.
    run(&connection, "ZADD locktop_line:{lock:a} 1 dead").await;
    run(&connection, "ZADD locktop_line:{lock:a}:ends 2 dead").await;
    let waiters = async || run(&connection, "ZCARD locktop_line:{lock:a}").await.as_number().unwrap();
    let waiter = tokio::spawn({
        let locks = locks.clone();
        async move { locks.acquire("lock:a", TIMEOUT).await.map(drop) }
    });
    wait_until("the dead waiter to be forgotten", async || {
        run(&connection, "ZRANK locktop_line:{lock:a} dead").await == Reply::Nil && waiters().await == 1
    })
    .await;
    waiter.abort();
    wait_until("the dropped waiter to be forgotten", async || waiters().await == 0).await;
    assert!(held.release().await.was_held());
    assert!(locks.acquire("lock:a", TIMEOUT).await.unwrap().unwrap().release().await.was_held());
}

#[tokio::test]
async fn a_user_without_rights_to_queue_and_publish_still_waits() {
    let permitted = ["--user", "default", "on", "nopass", "~lock:*", "resetchannels", "+@all"];
    let server = start(&permitted).await;
    let locks = locks(&server, TERM);
    let held = locks.acquire("lock:a", TIMEOUT).await.unwrap().unwrap();
    let (waited, released) = tokio::join!(locks.acquire("lock:a", TIMEOUT), held.release());
    assert!(released.was_held());
    assert!(waited.unwrap().unwrap().release().await.was_held());
}

#[tokio::test]
async fn the_watchdog_renews_for_longer_than_the_term() {
    let server = server().await;
    let locks = locks(&server, Duration::from_secs(3));
    let guard = locks.try_acquire("lock:a").await.unwrap().unwrap();
    let first = guard.valid_until();
    let end = first + Duration::from_millis(500);
    wait_until("the first term to end", async || clock::since_boot() > end).await;
    assert!(guard.is_held());
    assert!(guard.valid_until() > first);
    assert!(locks.try_acquire("lock:a").await.unwrap().is_none());
    assert!(guard.release().await.was_held());
}

#[tokio::test]
async fn a_lock_that_another_has_is_lost_and_neither_renewed_nor_deleted() {
    let server = server().await;
    let connection = open(&server).await;
    let guard = locks(&server, Duration::from_secs(3)).try_acquire("lock:a").await.unwrap().unwrap();
    run(&connection, "SET lock:a somebody-else PX 60000").await;
    assert_eq!(guard.lost().await, Lost::Gone { gone: 1, servers: 1 });
    assert!(!guard.is_held());
    let left = run(&connection, "PTTL lock:a").await.as_number().unwrap();
    assert!(left > 20_000, "{left}");
    let released = guard.release().await;
    assert_eq!(released, Released { freed: 0, missing: 1, unknown: 0 });
    assert!(!released.was_held());
    assert_eq!(run(&connection, "GET lock:a").await, bytes("somebody-else"));
}

#[tokio::test]
async fn a_silent_server_ends_the_lock_with_its_term() {
    let server = server().await;
    let guard = locks(&server, Duration::from_secs(3)).try_acquire("lock:a").await.unwrap().unwrap();
    assert!(guard.is_held());
    server.freeze();
    assert_eq!(guard.lost().await, Lost::Silent);
    // Reported when the last confirmed term ended, not before.
    assert!(clock::since_boot() >= guard.valid_until());
    assert!(!guard.is_held());
    server.thaw();
}

#[tokio::test]
async fn renewals_that_fail_for_a_while_do_no_harm() {
    let server = server().await;
    let connection = open(&server).await;
    let patient = options(Duration::from_secs(6)).timeout(Duration::from_millis(300));
    let locks = RedisLocks::new(vec![url(&server)], patient).unwrap();
    let guard = locks.acquire("lock:a", TIMEOUT).await.unwrap().unwrap();
    // A third of the term and a little: at least one renewal had no answer.
    let first = guard.valid_until();
    server.freeze();
    let during = clock::monotonic() + Duration::from_millis(2800);
    wait_until("a renewal to fail", async || clock::monotonic() > during).await;
    assert_eq!(guard.valid_until(), first);
    server.thaw();
    wait_until("a renewal to succeed", async || guard.valid_until() > first || !guard.is_held()).await;
    assert!(guard.is_held());
    assert_eq!(run(&connection, "EXISTS lock:a").await, Reply::Number(1));
}

#[tokio::test]
async fn dropping_a_guard_gives_the_lock_back() {
    let server = server().await;
    let connection = open(&server).await;
    let guard = locks(&server, TERM).try_acquire("lock:a").await.unwrap().unwrap();
    drop(guard);
    let is_deleted = async || run(&connection, "EXISTS lock:a").await == Reply::Number(0);
    wait_until("the key to be deleted", is_deleted).await;
}

#[tokio::test]
async fn a_guard_that_is_dropped_without_a_runtime_leaves_the_key_to_its_term() {
    let server = server().await;
    let connection = open(&server).await;
    let url = url(&server);
    let term = Duration::from_secs(3);
    let guard = std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let locks = RedisLocks::new(vec![url], options(term)).unwrap();
        runtime.block_on(async { locks.try_acquire("lock:a").await.unwrap().unwrap() })
    });
    let guard = tokio::task::spawn_blocking(|| guard.join().unwrap()).await.unwrap();
    let value = bytes(guard.value());
    std::thread::spawn(move || drop(guard)).join().unwrap();
    assert_eq!(run(&connection, "GET lock:a").await, value);
    let is_deleted = async || run(&connection, "EXISTS lock:a").await == Reply::Number(0);
    wait_until("the term to end", is_deleted).await;
}

#[tokio::test]
async fn an_attempt_that_is_given_up_leaves_nothing() {
    let server = server().await;
    let connection = open(&server).await;
    let locks = locks(&server, TERM);
    // A connection first, so that the message is on its way at the first poll.
    locks.try_acquire("lock:warm").await.unwrap().unwrap().release().await;
    server.freeze();
    // It is given up even if this machine was too busy to poll before the end of the attempt.
    tokio::select! {
        biased;
        () = tokio::time::sleep(Duration::from_millis(100)) => {}
        outcome = locks.try_acquire("lock:a") => panic!("{outcome:?}"),
    }
    server.thaw();
    // The server sets the key now, and deletes it again.
    let done = async || {
        let info = run(&connection, "INFO commandstats").await;
        let info = String::from_utf8_lossy(info.as_bytes().unwrap()).into_owned();
        info.contains("cmdstat_set:calls=2") && info.contains("cmdstat_eval:calls=2")
    };
    wait_until("both messages to be done", done).await;
    assert_eq!(run(&connection, "EXISTS lock:a").await, Reply::Number(0));
}

/// The server answers none of the commands, and runs them all when it continues.
#[tokio::test]
async fn a_wait_without_an_answer_leaves_nothing_either() {
    let server = server().await;
    let connection = open(&server).await;
    let locks = locks(&server, 10 * TERM);
    locks.try_acquire("lock:warm").await.unwrap().unwrap().release().await;
    server.freeze();
    let refusal = locks.acquire("lock:a", Duration::from_millis(1)).await.unwrap_err();
    assert!(matches!(refusal, Error::NoQuorum { .. }), "{refusal}");
    server.thaw();
    let done = async || {
        let info = run(&connection, "INFO commandstats").await;
        let info = String::from_utf8_lossy(info.as_bytes().unwrap()).into_owned();
        info.contains("cmdstat_set:calls=2") && run(&connection, "EXISTS lock:a").await == Reply::Number(0)
    };
    wait_until("its value to be set and deleted", done).await;
}

#[tokio::test]
async fn a_kept_lock_stays_for_its_term_and_no_longer() {
    let server = server().await;
    let locks = locks(&server, Duration::from_secs(3));
    let guard = locks.try_acquire("lock:submit:7").await.unwrap().unwrap();
    let until = guard.valid_until();
    guard.keep();
    assert!(locks.try_acquire("lock:submit:7").await.unwrap().is_none());
    let again = locks.acquire("lock:submit:7", TIMEOUT).await.unwrap().unwrap();
    assert!(clock::since_boot() >= until);
    again.release().await;
}

#[tokio::test]
async fn work_under_a_lock_is_alone_and_ends_with_it() {
    let server = server().await;
    let connection = open(&server).await;
    let locks = locks(&server, Duration::from_secs(3));
    let done = locks.with("lock:a", Duration::ZERO, async { run(&connection, "EXISTS lock:a").await }).await;
    assert_eq!(done, Ok(Some(Reply::Number(1))));
    assert_eq!(run(&connection, "EXISTS lock:a").await, Reply::Number(0));
    let cut = locks.with("lock:a", Duration::ZERO, async {
        run(&connection, "DEL lock:a").await;
        std::future::pending::<()>().await;
    });
    assert_eq!(cut.await, Err(Error::NotHeld(Lost::Gone { gone: 1, servers: 1 })));
    let held = locks.try_acquire("lock:a").await.unwrap().unwrap();
    let none = locks.with("lock:a", Duration::ZERO, async { panic!("must not run") }).await;
    let none: Option<()> = none.unwrap();
    assert!(none.is_none());
    held.release().await;
}

/// As a process that is suspended: nothing of it runs, and then all of it at once.
#[tokio::test]
async fn work_takes_no_step_after_a_pause_longer_than_the_term() {
    let server = server().await;
    let term = Duration::from_millis(500);
    let mut steps = 0;
    let locks = locks(&server, term);
    let cut = locks.with("lock:a", TIMEOUT, async {
        // The renewing task begins to wait for its time: only the clock shows afterwards that the term has
        // ended.
        tokio::task::yield_now().await;
        steps += 1;
        std::thread::sleep(2 * term);
        tokio::task::yield_now().await;
        steps += 1;
    });
    assert!(matches!(cut.await, Err(Error::NotHeld(_))));
    assert_eq!(steps, 1);
}

#[tokio::test]
async fn a_server_that_has_just_started_has_no_vote() {
    let server = server().await;
    let term = Duration::from_secs(3);
    let locks = RedisLocks::new(vec![url(&server)], LockOptions::term(term).timeout(TIMEOUT / 3)).unwrap();
    let began = clock::monotonic();
    let refusal = locks.try_acquire("lock:a").await.unwrap_err();
    assert!(refusal.to_string().contains("has just started, and has no vote for another"), "{refusal}");
    assert!(matches!(refusal, Error::NoQuorum { granted: 0, quorum: 1, .. }));
    let guard = locks.acquire("lock:a", TIMEOUT).await.unwrap().unwrap();
    // The uptime is whole seconds of the wall clock: one is taken off to be safe.
    assert!(began.elapsed() + Duration::from_secs(1) >= term, "{:?}", began.elapsed());
    guard.release().await;
}

#[tokio::test]
async fn a_server_that_does_not_report_its_uptime_has_no_vote() {
    let server = start(&["--user", "default", "on", "nopass", "~*", "+@all", "-info"]).await;
    let locks = RedisLocks::new(vec![url(&server)], LockOptions::term(TERM)).unwrap();
    let refusal = locks.try_acquire("lock:a").await.unwrap_err().to_string();
    assert!(refusal.contains("INFO was refused") && refusal.contains("no vote"), "{refusal}");
    let trusting = RedisLocks::new(vec![url(&server)], options(TERM)).unwrap();
    trusting.try_acquire("lock:a").await.unwrap().unwrap().release().await;
}

#[tokio::test]
async fn a_connection_that_broke_long_ago_costs_nothing() {
    let server = server().await;
    let locks = locks(&server, TERM);
    locks.try_acquire("lock:a").await.unwrap().unwrap().release().await;
    run(&open(&server).await, "CLIENT KILL TYPE normal SKIPME yes").await;
    locks.try_acquire("lock:a").await.unwrap().unwrap().release().await;
}

#[tokio::test]
async fn force_unlock_deletes_only_the_exact_lock_that_was_shown() {
    let server = server().await;
    let connection = open(&server).await;
    let servers = [url(&server)];
    let timeout = Duration::from_secs(5);
    let force = async |row: &RedisLease| force_unlock(row, &servers, timeout).await.remove(0);
    run(&connection, "SETNX lock:leak worker-9").await;
    let row = shown(&server, "lock:leak").await;
    run(&connection, "SET lock:leak worker-10").await;
    assert!(matches!(force(&row).await, Unlock::Changed));
    assert_eq!(run(&connection, "GET lock:leak").await, bytes("worker-10"));
    let row = shown(&server, "lock:leak").await;
    assert!(matches!(force(&row).await, Unlock::Freed));
    assert!(matches!(force(&row).await, Unlock::Gone));
    // A hash: the same holder with another count is another situation.
    run(&connection, "HSET lock:r 5f1c:31 1").await;
    let row = shown(&server, "lock:r").await;
    run(&connection, "HINCRBY lock:r 5f1c:31 1").await;
    assert!(matches!(force(&row).await, Unlock::Changed));
    run(&connection, "HSET lock:r 9aa0:7 1").await;
    assert!(matches!(force(&row).await, Unlock::Changed));
    assert!(matches!(force(&shown(&server, "lock:r").await).await, Unlock::Freed));
    run(&connection, "HSET lock:rw mode read 5f1c:31 1").await;
    assert!(matches!(force(&shown(&server, "lock:rw").await).await, Unlock::Freed));
    // A value that was not read to its end cannot be compared.
    let long = Command::new("SET").arg("lock:long").arg(vec![b'x'; 5000]);
    connection.run(&long).await.unwrap();
    assert!(matches!(force(&shown(&server, "lock:long").await).await, Unlock::NotComparable));
    let row = RedisLease { holder: LockValue::text(b"\xff\0"), ..shown(&server, "lock:long").await };
    let row = RedisLease { places: Vec::new(), ..row };
    assert!(matches!(force(&row).await, Unlock::Changed));
    server.freeze();
    let hasty = force_unlock(&row, &servers, Duration::from_millis(200)).await.remove(0);
    assert!(matches!(hasty, Unlock::Failed(_)));
    server.thaw();
}

#[tokio::test]
async fn a_lock_is_freed_on_the_servers_of_its_set_alone() {
    let servers = servers(3).await;
    let mut connections = Vec::new();
    for server in &servers {
        connections.push(open(server).await);
        run(connections.last().unwrap(), "SET lock:a me PX 60000").await;
    }
    let all = urls(&servers);
    let mut sets = RedisSets::from(all[..1].to_vec());
    sets.add(all[1..].to_vec()).unwrap();
    let options = RedisOptions { timeout: Duration::from_secs(5), ..RedisOptions::default() };
    let leases = read_once(sets, options).await.leases;
    let row = leases.rows.iter().find(|row| row.set == 1).unwrap();
    let freed = force_unlock(row, &all[row.members()], Duration::from_secs(5)).await;
    assert!(matches!(freed[..], [Unlock::Freed, Unlock::Freed]), "{freed:?}");
    for (connection, left) in connections.iter().zip([1, 0, 0]) {
        assert_eq!(run(connection, "EXISTS lock:a").await, Reply::Number(left));
    }
}

#[tokio::test]
async fn the_loss_is_not_reported_after_a_release_or_a_drop() {
    let server = server().await;
    let term = Duration::from_millis(500);
    let locks = locks(&server, term);
    for is_released in [true, false] {
        let guard = locks.acquire("lock:a", TIMEOUT).await.unwrap().unwrap();
        let lost = guard.lost();
        if is_released {
            assert!(guard.release().await.was_held());
        } else {
            drop(guard);
        }
        assert!(tokio::time::timeout(2 * term, lost).await.is_err(), "released: {is_released}");
    }
}
