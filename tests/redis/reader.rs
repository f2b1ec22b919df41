//! Reading locks: from one server and from five, with everything that can be wrong with them.

use std::time::Duration;

use locktop::clock;
use locktop::model::redis_lease::{Expiry, LockValue, RedisLease, RedisLeases, Standing};
use locktop::redis::{
    Command, Connection, RedisFault, RedisOptions, RedisSets, RedisState, RedisUrl, read_once, watch,
};
use tokio::sync::watch::Receiver;

use crate::support::TIMEOUT;
use crate::{open, run, server, servers, start, url, urls};

/// As by default, and patient enough for a busy machine.
fn options() -> RedisOptions {
    RedisOptions {
        timeout: Duration::from_secs(5),
        interval: Duration::from_millis(20),
        ..RedisOptions::default()
    }
}

/// Waits until a condition holds, and returns that state.
async fn until(
    states: &mut Receiver<RedisState>,
    what: &str,
    holds: impl Fn(&RedisLeases) -> bool,
) -> RedisState {
    let found = tokio::time::timeout(TIMEOUT, states.wait_for(|state| holds(&state.leases))).await;
    found.unwrap_or_else(|_| panic!("timed out waiting for {what}")).unwrap().clone()
}

/// `3/5`: votes of all servers.
fn quorum(row: &RedisLease) -> String {
    format!("{}/{}", row.votes, row.servers)
}

fn row<'a>(leases: &'a RedisLeases, key: &str) -> &'a RedisLease {
    leases.rows.iter().find(|row| &*row.name() == key).unwrap_or_else(|| panic!("no {key} in {leases:?}"))
}

#[tokio::test]
async fn the_locks_of_one_server() {
    let server = server().await;
    let connection = open(&server).await;
    for line in [
        "SET lock:a worker-1 PX 60000",
        "SETNX lock:b worker-2",
        "SET other worker-3",
        "HSET lock:r 5f1c:31 2",
        "PEXPIRE lock:r 30000",
        "HSET lock:rw mode read 5f1c:31 1 9aa0:7 1",
        "RPUSH lock:list x",
        "HSET lock:hash name x",
    ] {
        run(&connection, line).await;
    }
    let leases = read_once(vec![url(&server)], options()).await.leases;
    let names: Vec<_> = leases.rows.iter().map(|row| row.name().to_string()).collect();
    assert_eq!(names, ["lock:a", "lock:b", "lock:hash", "lock:list", "lock:r", "lock:rw"]);
    assert!(!leases.cut);
    assert!(leases.read_at.is_some());
    let a = row(&leases, "lock:a");
    assert_eq!(
        (a.holder.clone(), a.standing, quorum(a)),
        (LockValue::text(b"worker-1"), Standing::Held, "1/1".into())
    );
    let left = a.expiry.left().unwrap();
    assert!(left <= Duration::from_secs(60) && left > Duration::from_secs(20), "{left:?}");
    assert!(!a.leaks());
    assert!(row(&leases, "lock:b").leaks());
    assert_eq!(row(&leases, "lock:b").expiry, Expiry::Never);
    assert_eq!(
        row(&leases, "lock:r").holder,
        LockValue::Redisson { holders: vec![((*b"5f1c:31").into(), 2)], mode: None }
    );
    assert_eq!(&*row(&leases, "lock:rw").holder.shown(), "5f1c:31, 9aa0:7");
    for (key, kind) in [("lock:list", "(list)"), ("lock:hash", "(hash)")] {
        assert_eq!(&*row(&leases, key).holder.shown(), kind);
        assert!(!row(&leases, key).leaks());
    }
}

#[tokio::test]
async fn locks_of_several_patterns_have_observed_times_per_holder() {
    let server = server().await;
    let connection = open(&server).await;
    for line in ["SET lock:a worker-1 PX 60000", "SET redlock:b worker-2 PX 60000", "SET other worker-3"] {
        run(&connection, line).await;
    }
    run(&connection, "HSET lock:r 5f1c:31 1").await;
    let patterns = ["lock:*", "redlock:*"].map(str::to_owned).into();
    let (mut states, _task) = watch(vec![url(&server)], RedisOptions { patterns, ..options() });
    let first =
        until(&mut states, "three locks", |leases| leases.rows.len() == 3 && !leases.cut).await.leases;
    let names: Vec<_> = first.rows.iter().map(|row| row.name().to_string()).collect();
    assert_eq!(names, ["lock:a", "lock:r", "redlock:b"]);
    let (observed, longest) = (row(&first, "lock:a").observed, row(&first, "lock:a").longest.unwrap());
    assert!(observed.is_some() && (50_000..=60_000).contains(&longest), "{longest}");
    assert_eq!(row(&first, "lock:r").longest, None, "it never expires");

    run(&connection, "PEXPIRE lock:a 20000").await;
    run(&connection, "HSET lock:r 5f1c:31 3").await;
    let is_seen = |leases: &RedisLeases| {
        row(leases, "lock:a").expiry.left() < Some(Duration::from_secs(21))
            && row(leases, "lock:r").holder.holds() == Some(3)
    };
    let later = until(&mut states, "less time", is_seen).await.leases;
    assert_eq!(row(&later, "lock:a").longest, Some(longest));
    for key in ["lock:a", "lock:r"] {
        assert!(row(&later, key).observed > row(&first, key).observed, "{key} has the same holder");
    }

    run(&connection, "SET lock:a worker-9 PX 20000").await;
    let is_new = |leases: &RedisLeases| row(leases, "lock:a").holder == LockValue::text(b"worker-9");
    let newest = until(&mut states, "another holder", is_new).await.leases;
    assert!(row(&newest, "lock:a").observed < row(&newest, "lock:r").observed, "another holder");
    assert!(row(&newest, "lock:a").longest < Some(21_000));
}

#[tokio::test]
async fn hostile_keys_and_values_are_bytes() {
    let server = server().await;
    let connection = open(&server).await;
    let set = |key: Vec<u8>, value: Vec<u8>| {
        let (connection, command) = (connection.clone(), Command::new("SET").arg(key).arg(value));
        async move { connection.run(&command).await.unwrap() }
    };
    set(b"lock:\xff\xfe\x1b]0;x\x07\r\n".to_vec(), b"\x1b[2J\0\xc3\x28".to_vec()).await;
    set(b"lock:empty".to_vec(), Vec::new()).await;
    set(b"lock:huge".to_vec(), vec![b'x'; 5_000_000]).await;
    set([b"lock:".as_slice(), &vec![b'k'; 100_000]].concat(), b"long name".to_vec()).await;
    let mut many = Command::new("HSET").arg("lock:fields");
    for field in 0..5_000 {
        many = many.arg(format!("u:{field}")).arg("1");
    }
    connection.run(&many).await.unwrap();
    let wide = Command::new("HSET").arg("lock:wide").arg(vec![b':'; 1_000_000]).arg("1");
    connection.run(&wide).await.unwrap();
    let leases = read_once(vec![url(&server)], options()).await.leases;
    assert_eq!(leases.rows.len(), 5, "{:?}", leases.servers);
    let hostile = leases.rows.iter().find(|row| row.key.starts_with(b"lock:\xff")).unwrap();
    assert_eq!(&*hostile.key, b"lock:\xff\xfe\x1b]0;x\x07\r\n");
    assert_eq!(hostile.holder, LockValue::text(b"\x1b[2J\0\xc3\x28"));
    assert_eq!(row(&leases, "lock:empty").holder, LockValue::text(b""));
    let LockValue::Text { bytes, whole: false } = &row(&leases, "lock:huge").holder else { panic!("cut") };
    assert_eq!(bytes.len(), 1024);
    for key in ["lock:fields", "lock:wide"] {
        assert_eq!(row(&leases, key).holder, LockValue::Other("hash".into()));
    }
}

#[tokio::test]
async fn no_more_keys_than_asked_for_and_all_of_a_large_key_space_in_time() {
    let server = server().await;
    let connection = open(&server).await;
    let fill: Vec<_> = (0..20_000)
        .map(|number| Command::new("SET").arg(format!("filler:{number}")).arg("x"))
        .chain((0..30).map(|number| Command::new("SET").arg(format!("lock:{number}")).arg("x")))
        .collect();
    connection.run_all(&fill).await.unwrap();
    let few = read_once(vec![url(&server)], RedisOptions { most_keys: 7, ..options() }).await.leases;
    assert_eq!(few.rows.len(), 7);
    assert!(few.cut);
    // A round that sees a twentieth of the key space.
    let small = RedisOptions { step: 100, steps: 10, ..options() };
    let (mut states, reader) = watch(vec![url(&server)], small);
    let state = until(&mut states, "all keys", |leases| leases.rows.len() == 30 && !leases.cut).await;
    assert!(state.round > 10, "{}", state.round);
    drop(states);
    reader.await.unwrap();
}

#[tokio::test]
async fn five_servers_with_two_down_and_one_of_another_opinion() {
    let mut servers = servers(5).await;
    for (at, server) in servers.iter().enumerate() {
        let connection = open(server).await;
        run(&connection, if at == 4 { "SET lock:a other PX 60000" } else { "SET lock:a me PX 60000" }).await;
        run(&connection, if at % 2 == 0 { "SET lock:s one PX 60000" } else { "SET lock:s two PX 60000" })
            .await;
    }
    let (mut states, _reader) = watch(urls(&servers), options());
    let state = until(&mut states, "all five", |leases| leases.rows.len() == 2).await;
    let a = row(&state.leases, "lock:a");
    assert_eq!((quorum(a), a.standing), ("4/5".to_owned(), Standing::Held));
    assert_eq!(a.others, [(LockValue::text(b"other"), 1)]);
    assert_eq!(quorum(row(&state.leases, "lock:s")), "3/5");
    // Two end, one of those that have "one": neither value has a majority that is known.
    servers[0].kill_hard().await.unwrap();
    servers[4].kill_hard().await.unwrap();
    let state = until(&mut states, "two to be down", |leases| leases.down() == 2).await;
    assert_eq!(state.leases.down_text().unwrap(), "2 of 5 down");
    assert_eq!(quorum(row(&state.leases, "lock:a")), "3/5");
    assert_eq!(row(&state.leases, "lock:a").standing, Standing::Held);
    let split = row(&state.leases, "lock:s");
    assert_eq!((split.standing, split.votes, split.others.len()), (Standing::Unknown, 2, 1));
    let error = state.leases.servers[0].error.as_deref().unwrap();
    assert!(error.starts_with(&*servers[0].socket().to_string_lossy()), "{error}");
    // They restart, empty, and are read again.
    servers[0].restart().await.unwrap();
    servers[4].restart().await.unwrap();
    let state = until(&mut states, "all to be back", |leases| leases.down() == 0).await;
    let split = row(&state.leases, "lock:s");
    assert_eq!((split.standing, split.places.len()), (Standing::Split, 3));
}

#[tokio::test]
async fn a_lock_on_a_standalone_server_is_separate_from_that_of_a_set() {
    let servers = servers(4).await;
    for (server, value) in servers.iter().zip(["one", "three", "three", "other"]) {
        let connection = open(server).await;
        let set = Command::new("SET").arg("lock:printer").arg(value).arg("PX").arg("60000");
        connection.run(&set).await.unwrap();
    }
    run(&open(&servers[0]).await, "SET lock:alone me PX 60000").await;
    let mut sets = RedisSets::default();
    sets.add(urls(&servers[..1])).unwrap();
    sets.add(urls(&servers[1..])).unwrap();
    let leases = read_once(sets, options()).await.leases;
    let rows: Vec<_> = leases
        .rows
        .iter()
        .map(|row| (row.name(), row.holder.shown(), quorum(row), row.standing, row.members()))
        .collect();
    let row = |name: &str, holder: &str, quorum: &str, members| {
        (name.into(), holder.into(), quorum.to_owned(), Standing::Held, members)
    };
    assert_eq!(
        rows,
        [
            row("lock:alone", "me", "1/1", 0..1),
            row("lock:printer", "one", "1/1", 0..1),
            row("lock:printer", "three", "2/3", 1..4)
        ]
    );
}

#[tokio::test]
async fn when_no_server_answers_the_last_rows_stay_with_their_time() {
    let mut server = server().await;
    run(&open(&server).await, "SET lock:a me").await;
    let (mut states, _reader) = watch(vec![url(&server)], options());
    let before = until(&mut states, "the lock", |leases| leases.rows.len() == 1).await;
    server.kill_hard().await.unwrap();
    let after = until(&mut states, "the end", |leases| leases.down() == 1).await;
    assert_eq!(after.leases.rows, before.leases.rows);
    let round = after.round;
    let later = tokio::time::timeout(TIMEOUT, states.wait_for(|state| state.round > round + 3)).await;
    let later = later.unwrap().unwrap().clone();
    assert_eq!((later.leases.down(), &later.leases.rows), (1, &before.leases.rows));
    assert_eq!(later.leases.read_at, after.leases.read_at);
    server.restart().await.unwrap();
    until(&mut states, "an empty server", |leases| leases.down() == 0 && leases.rows.is_empty()).await;
}

#[tokio::test]
async fn a_server_that_hangs_is_reported_and_the_others_are_still_read() {
    let servers = servers(2).await;
    run(&open(&servers[1]).await, "SET lock:a me PX 60000").await;
    let hasty = RedisOptions { timeout: Duration::from_millis(300), ..options() };
    let (mut states, _reader) = watch(urls(&servers), hasty);
    until(&mut states, "both", |leases| leases.down() == 0 && leases.rows.len() == 1).await;
    servers[0].freeze();
    let state = until(&mut states, "one to hang", |leases| leases.down() == 1).await;
    let error = state.leases.servers[0].error.as_deref().unwrap();
    assert!(error.contains("no answer within"), "{error}");
    // The other one's lock changes, and that is seen while the first one still hangs.
    run(&open(&servers[1]).await, "SET lock:a you PX 60000").await;
    let changed = |leases: &RedisLeases| leases.rows.iter().any(|row| row.holder == LockValue::text(b"you"));
    until(&mut states, "the change", changed).await;
    servers[0].thaw();
    until(&mut states, "both again", |leases| leases.down() == 0).await;
}

#[tokio::test]
async fn missing_or_wrong_passwords_are_reported_and_never_shown() {
    let server = start(&["--requirepass", "s3cret"]).await;
    let with = |password: &str| RedisUrl::parse(&format!("{}?pass={password}", server.url())).unwrap();
    for (url, expected) in [(url(&server), "NOAUTH"), (with("wr0ng"), "authentication failed")] {
        let leases = read_once(vec![url], options()).await.leases;
        let error = leases.servers[0].error.as_deref().unwrap();
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains("s3cret") && !error.contains("wr0ng"), "{error}");
    }
    let leases = read_once(vec![with("s3cret")], options()).await.leases;
    assert_eq!(leases.down(), 0, "{:?}", leases.servers);
}

#[tokio::test]
async fn a_listener_other_than_redis_is_reported_in_one_line() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, b"HTTP/1.1 400\r\n\x1b[2J\r\n").await;
        }
    });
    let server = RedisUrl::parse(&format!("redis://:s3cret@{address}")).unwrap();
    let error = Connection::open(&server, Duration::from_secs(5)).await.unwrap_err().to_string();
    assert!(error.starts_with(&address.to_string()), "{error}");
    assert!(!error.contains('\u{1b}') && !error.contains('\n') && !error.contains("s3cret"), "{error}");
}

#[tokio::test]
async fn a_listener_that_never_answers_costs_only_its_timeout() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = RedisUrl::parse(&format!("redis://{}", listener.local_addr().unwrap())).unwrap();
    let timeout = Duration::from_millis(200);
    let started = clock::monotonic();
    let error = Connection::open(&server, timeout).await.unwrap_err();
    assert!(matches!(error, RedisFault::Silent { .. }), "{error}");
    assert!(started.elapsed() < TIMEOUT / 3, "{:?}", started.elapsed());
    assert!(error.to_string().ends_with("no answer within 200 ms"), "{error}");
}
