//! The poll against real servers: what it sees, what it survives, and what it says when it fails.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test may"
)]

use std::sync::Arc;
use std::time::Duration;

use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::feed::digest::Digest;
use locktop::feed::live::{Live, Settings, Wishes};
use locktop::feed::once::once;
use locktop::feed::spare::Spare;
use locktop::model::backend::State;
use locktop::model::lock::Lock;
use locktop::model::lock_key::LockKey;
use locktop::model::lock_name::LockNames;
use locktop::model::snapshot::Snapshot;
use locktop::model::thresholds::Thresholds;
use locktop::model::view::{Link, TargetId, View};
use locktop::pg::connect::{Connection, connect};
use locktop::pg::conninfo::ConnInfo;
use locktop::pg::poll::{Limits, OpenError, PollError, Session, open_plain};
use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::watch;
use tokio_postgres::Client;

const PATIENCE: Duration = Duration::from_secs(30);

async fn server() -> EmbeddedServer {
    EmbeddedServer::start(Options::default()).await.unwrap()
}

fn info(server: &EmbeddedServer) -> ConnInfo {
    ConnInfo::parse(&server.conninfo()).unwrap()
}

async fn client(info: &ConnInfo) -> Client {
    let Connection { client, .. } = connect(info).await.unwrap();
    client
}

async fn session(server: &EmbeddedServer) -> Session {
    Session::open(&info(server), patient()).await.unwrap()
}

/// Limits for a busy machine: names are waited for.
fn patient() -> Limits {
    Limits { name_patience: Duration::from_secs(5), ..Limits::default() }
}

async fn pid(client: &Client) -> i32 {
    client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0)
}

/// Polls until `done` says so.
async fn poll_until(session: &mut Session, done: impl Fn(&Snapshot) -> bool) -> Snapshot {
    tokio::time::timeout(PATIENCE, async {
        let mut snapshot = session.poll(None).await.unwrap();
        while !done(&snapshot) {
            tokio::time::sleep(Duration::from_millis(10)).await;
            snapshot = session.poll(Some(&snapshot)).await.unwrap();
        }
        snapshot
    })
    .await
    .expect("the awaited state never came")
}

fn assert_fresh(snapshot: &Snapshot) {
    for (name, error) in [
        ("server", &snapshot.server.error),
        ("backends", &snapshot.backends.error),
        ("locks", &snapshot.locks.error),
        ("prepared", &snapshot.prepared.error),
    ] {
        assert_eq!(error, &None, "section {name}");
    }
}

/// Somebody waits for a lock that `pid` has asked for.
fn waits(snapshot: &Snapshot, pid: i32) -> bool {
    snapshot.locks.rows.iter().any(|lock| lock.pid == Some(pid) && !lock.granted && lock.wait_start.is_some())
}

#[tokio::test]
async fn a_snapshot_shows_who_holds_and_who_waits() {
    let server = server().await;
    let info = info(&server);
    let (holder, waiter) = (client(&info.clone().with_application_name("web-1")).await, client(&info).await);
    holder.batch_execute("SELECT pg_advisory_lock(7, -8)").await.unwrap();
    let (holder_pid, waiter_pid) = (pid(&holder).await, pid(&waiter).await);
    let waiting = tokio::spawn(async move { waiter.batch_execute("SELECT pg_advisory_lock(7, -8)").await });
    let mut session = session(&server).await;
    let first = poll_until(&mut session, |snapshot| waits(snapshot, waiter_pid)).await;
    let snapshot = session.poll(Some(&first)).await.unwrap();
    assert_fresh(&snapshot);
    let lock = snapshot.locks.rows.iter().find(|lock| !lock.granted).unwrap();
    assert_eq!(LockKey::of(&lock.tag), Some(LockKey::Pair(7, -8)));
    let [answer] = &snapshot.answers[..] else { panic!("{:?}", snapshot.answers) };
    assert_eq!((answer.waiter, &answer.blockers[..]), (waiter_pid, &[holder_pid][..]));
    assert_eq!(answer.wait_start, lock.wait_start);
    let seen = snapshot.server().unwrap();
    assert_eq!(seen.version_num / 10_000, server.version());
    assert!(seen.version.starts_with(&server.version().to_string()), "{}", seen.version);
    assert_eq!((&*seen.database, &*seen.user, seen.sees_all), ("postgres", "postgres", true));
    assert_eq!((seen.connections, seen.max_connections, seen.query_size), (3, 100, 1024));
    assert!(seen.started_at.is_some() && !seen.in_recovery);
    let backend = snapshot.backend(holder_pid).unwrap();
    assert_eq!(backend.application.as_deref(), Some("web-1"));
    assert_eq!(backend.user.as_deref(), Some("postgres"));
    assert_eq!(backend.database.as_deref(), Some("postgres"));
    assert_eq!(backend.client.as_deref(), Some("[local]"));
    assert_eq!(backend.backend_type.as_deref(), Some("client backend"));
    assert_eq!(backend.state, Some(State::Idle));
    assert!(backend.backend_start.unwrap() < snapshot.taken_at);
    assert!(snapshot.backend(seen.own_pid).is_some());
    waiting.abort();
}

#[tokio::test]
async fn one_snapshot_asks_about_what_it_saw() {
    let server = server().await;
    let info = info(&server);
    let holder = client(&info).await;
    holder.batch_execute("CREATE TABLE accounts ()").await.unwrap();
    holder.batch_execute("BEGIN; LOCK TABLE accounts").await.unwrap();
    let mut waiting = Vec::new();
    let mut pids = Vec::new();
    for _ in 0..5 {
        let waiter = client(&info).await;
        pids.push(pid(&waiter).await);
        waiting.push(tokio::spawn(async move { waiter.batch_execute("TABLE accounts").await }));
    }
    let mut session = session(&server).await;
    poll_until(&mut session, |snapshot| pids.iter().all(|pid| waits(snapshot, *pid))).await;
    let view = once(&info, Limits { ask: 3, ..patient() }, Thresholds::default(), LockNames::default())
        .await
        .unwrap();
    let snapshot = view.snapshot.as_deref().unwrap();
    assert_eq!(snapshot.answers.len(), 3, "the oldest three are asked about");
    assert_eq!(view.graph.roots.len(), 1);
    assert_eq!((view.graph.roots[0].blocked, view.graph.roots[0].frees), (5, 5));
    let lock = snapshot.locks.rows.iter().find(|lock| !lock.granted).unwrap();
    assert_eq!(snapshot.names.relation(&lock.tag).map(|name| &**name), Some("accounts"));
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
}

/// Every catalog that a poll could need, one after the other, held by somebody.
#[tokio::test]
async fn a_lock_on_a_catalog_stops_no_poll() {
    let server = server().await;
    let info = info(&server);
    let other = client(&info).await;
    other.batch_execute("CREATE TABLE accounts (); CREATE TABLE ledger ()").await.unwrap();
    let table = client(&info).await;
    let mut session = session(&server).await;
    table.batch_execute("BEGIN; LOCK TABLE accounts; PREPARE TRANSACTION 'held'").await.unwrap();
    let mut snapshot = session.poll(None).await.unwrap();
    assert!(snapshot.names.relations.values().any(|name| &**name == "accounts"));
    table.batch_execute("BEGIN; LOCK TABLE ledger IN SHARE MODE").await.unwrap();
    for catalog in [
        "pg_class",
        "pg_proc",
        "pg_type",
        "pg_attribute",
        "pg_namespace",
        "pg_database",
        "pg_authid",
        "accounts",
    ] {
        if catalog == "accounts" {
            other.batch_execute("ROLLBACK PREPARED 'held'").await.unwrap();
        }
        other.batch_execute(&format!("BEGIN; LOCK TABLE {catalog} IN ACCESS EXCLUSIVE MODE")).await.unwrap();
        for _ in 0..5 {
            snapshot = session.poll(Some(&snapshot)).await.unwrap();
            assert_fresh(&snapshot);
            assert_eq!(snapshot.locks.taken_at, Some(snapshot.taken_at));
        }
        other.batch_execute("ROLLBACK").await.unwrap();
    }
}

#[tokio::test]
async fn names_that_cannot_be_looked_up_are_numbers_until_they_can() {
    let server = server().await;
    let info = info(&server);
    let (other, user) = (client(&info).await, client(&info).await);
    other
        .batch_execute("CREATE TABLE accounts (); CREATE SCHEMA s; CREATE TABLE s.\"Ledger\" ()")
        .await
        .unwrap();
    // Known to this session before the catalog is taken, so that it can be locked afterwards.
    user.batch_execute("TABLE accounts; TABLE s.\"Ledger\"").await.unwrap();
    let mut session = session(&server).await;
    let snapshot = session.poll(None).await.unwrap();
    other.batch_execute("BEGIN; LOCK TABLE pg_class").await.unwrap();
    let prepared = server.version() >= 14;
    assert!(prepared);
    other.batch_execute("PREPARE TRANSACTION 'class'").await.unwrap();
    user.batch_execute("BEGIN; TABLE accounts; TABLE s.\"Ledger\"").await.unwrap();
    let snapshot = session.poll(Some(&snapshot)).await.unwrap();
    assert_fresh(&snapshot);
    let datid = snapshot.server().unwrap().datid;
    let user_pid =
        snapshot.backends.rows.iter().find(|backend| backend.state == Some(State::IdleInTransaction));
    let relations = |snapshot: &Snapshot| {
        let pid = user_pid.map(|backend| backend.pid);
        let mut names: Vec<Option<String>> = snapshot
            .locks
            .rows
            .iter()
            .filter(|lock| lock.pid == pid && lock.tag.database == Some(datid))
            .map(|lock| snapshot.names.relation(&lock.tag).map(ToString::to_string))
            .collect();
        names.sort();
        names
    };
    assert_eq!(relations(&snapshot), [None, None]);
    assert!(snapshot.names.relations.is_empty());
    other.batch_execute("ROLLBACK PREPARED 'class'").await.unwrap();
    let expected = [Some("accounts".to_owned()), Some("s.Ledger".to_owned())];
    poll_until(&mut session, |snapshot| relations(snapshot) == expected).await;
}

#[tokio::test]
async fn text_in_any_encoding_is_data() {
    let server = server().await;
    let admin = client(&info(&server)).await;
    for (database, encoding) in [("latin", "LATIN1"), ("japan", "EUC_JP"), ("ascii", "SQL_ASCII")] {
        let sql = format!("CREATE DATABASE {database} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0");
        admin.batch_execute(&sql).await.unwrap();
    }
    let mut clients = Vec::new();
    for (database, query) in
        [("latin", "SELECT 'café'"), ("japan", "SELECT '日本'"), ("ascii", "SELECT '日本'")]
    {
        let client = client(&info(&server).with_dbname(database)).await;
        client.batch_execute("SET application_name = E'\\x1b[31m\\nred'").await.unwrap();
        client.batch_execute(query).await.unwrap();
        clients.push(client);
    }
    let long = "x".repeat(900);
    clients[2].batch_execute(&format!("SELECT '\u{1b}]0;title\u{7}\n{long}'")).await.unwrap();
    let mut session = session(&server).await;
    let snapshot = session.poll(None).await.unwrap();
    assert_fresh(&snapshot);
    let query = |database: &str| {
        let row =
            snapshot.backends.rows.iter().find(|row| row.database.as_deref() == Some(database)).unwrap();
        row.query.as_deref().unwrap().to_owned()
    };
    assert_eq!(query("latin"), "SELECT 'caf\u{fffd}'");
    assert!(query("japan").starts_with("SELECT '\u{fffd}"), "{}", query("japan"));
    assert!(query("ascii").contains("\u{1b}]0;title\u{7}\n"));
    assert!(query("ascii").ends_with(&format!("{long}'")));
}

#[tokio::test]
async fn a_query_of_a_hundred_kilobytes_arrives_whole_and_is_kept_once() {
    let options = Options::default().with("track_activity_query_size", "1MB");
    let server = EmbeddedServer::start(options).await.unwrap();
    let other = client(&info(&server)).await;
    let long = format!("SELECT length('{}')", "数".repeat(35_000));
    other.batch_execute(&long).await.unwrap();
    let other_pid = pid_of_query(&other, &long).await;
    let mut session = session(&server).await;
    let first = session.poll(None).await.unwrap();
    let second = session.poll(Some(&first)).await.unwrap();
    let query =
        |snapshot: &Snapshot| Arc::clone(snapshot.backend(other_pid).unwrap().query.as_ref().unwrap());
    assert_eq!(&*query(&first), long);
    assert!(Arc::ptr_eq(&query(&first), &query(&second)));
    assert_eq!(first.server().unwrap().query_size, 1 << 20);
}

/// The process id of `client`, whose last query is `query` again afterwards.
async fn pid_of_query(client: &Client, query: &str) -> i32 {
    let pid = pid(client).await;
    client.batch_execute(query).await.unwrap();
    pid
}

#[tokio::test]
async fn a_role_without_rights_sees_less_and_nothing_fails() {
    let server = server().await;
    let admin = client(&info(&server)).await;
    admin.batch_execute("CREATE ROLE nobody LOGIN; SELECT pg_advisory_lock(5)").await.unwrap();
    let conninfo = server.conninfo().replace("user=postgres", "user=nobody");
    let mut session = Session::open(&ConnInfo::parse(&conninfo).unwrap(), patient()).await.unwrap();
    let snapshot = session.poll(None).await.unwrap();
    assert_fresh(&snapshot);
    let server = snapshot.server().unwrap();
    assert_eq!((&*server.user, server.sees_all, server.connections), ("nobody", false, 2));
    let hidden = snapshot.backends.rows.iter().find(|row| row.user.as_deref() == Some("postgres")).unwrap();
    assert_eq!((hidden.state, hidden.backend_start, &hidden.backend_type), (None, None, &None));
    assert!(snapshot.locks.rows.iter().any(|lock| LockKey::of(&lock.tag) == Some(LockKey::Bigint(5))));
}

#[tokio::test]
async fn a_section_that_fails_keeps_its_rows_and_no_other_suffers() {
    let server = server().await;
    let admin = client(&info(&server)).await;
    admin.batch_execute("CREATE ROLE nobody LOGIN").await.unwrap();
    let conninfo = server.conninfo().replace("user=postgres", "user=nobody");
    let mut session = Session::open(&ConnInfo::parse(&conninfo).unwrap(), patient()).await.unwrap();
    let first = session.poll(None).await.unwrap();
    let function = "FUNCTION pg_catalog.pg_stat_get_activity(int4) FROM PUBLIC";
    admin.batch_execute(&format!("REVOKE EXECUTE ON {function}")).await.unwrap();
    let second = session.poll(Some(&first)).await.unwrap();
    let error = second.backends.error.as_deref().unwrap();
    assert!(error.contains("pg_stat_get_activity") && error.contains("SQLSTATE 42501"), "{error}");
    assert_eq!(second.backends.taken_at, Some(first.taken_at));
    assert!(Arc::ptr_eq(&second.backends.rows, &first.backends.rows));
    assert_eq!(second.locks.error, None);
    assert_eq!(second.locks.taken_at, Some(second.taken_at));
    let grant = function.replace("FROM", "TO");
    admin.batch_execute(&format!("GRANT EXECUTE ON {grant}")).await.unwrap();
    assert_fresh(&session.poll(Some(&second)).await.unwrap());
}

#[tokio::test]
async fn above_the_limit_only_advisory_and_awaited_locks_are_fetched() {
    let server = server().await;
    let info = info(&server);
    let (holder, waiter, other) = (client(&info).await, client(&info).await, client(&info).await);
    holder
        .batch_execute("CREATE TABLE a (i int PRIMARY KEY); CREATE TABLE b (); INSERT INTO a VALUES (1)")
        .await
        .unwrap();
    holder.batch_execute("BEGIN; UPDATE a SET i = 2; SELECT pg_advisory_lock(9)").await.unwrap();
    other
        .batch_execute("BEGIN; TABLE b; INSERT INTO b DEFAULT VALUES; PREPARE TRANSACTION 'p'")
        .await
        .unwrap();
    let waiter_pid = pid(&waiter).await;
    let waiting = tokio::spawn(async move { waiter.batch_execute("UPDATE a SET i = 3").await });
    let limits = Limits { whole_scan: 0, ..patient() };
    let mut session = Session::open(&info, limits).await.unwrap();
    let whole =
        poll_until(&mut session, |snapshot| waits(snapshot, waiter_pid) && snapshot.locks_omitted == 0).await;
    let narrow = session.poll(Some(&whole)).await.unwrap();
    assert_fresh(&narrow);
    assert_eq!(narrow.locks.rows.len() as u64 + narrow.locks_omitted, whole.locks.rows.len() as u64);
    assert!(narrow.locks_omitted > 0);
    let holds = |snapshot: &Snapshot| {
        let waiting = snapshot.locks.rows.iter().find(|lock| !lock.granted).unwrap().tag;
        snapshot.locks.rows.iter().filter(|lock| lock.tag == waiting).count()
    };
    assert_eq!((holds(&narrow), holds(&whole)), (2, 2));
    assert!(narrow.locks.rows.iter().any(|lock| LockKey::of(&lock.tag) == Some(LockKey::Bigint(9))));
    assert!(narrow.locks.rows.iter().any(|lock| lock.pid.is_none()), "what names a prepared transaction");
    waiting.abort();
}

#[tokio::test]
async fn a_silent_server_ends_the_poll_in_time() {
    let server = server().await;
    let limits = Limits { poll_timeout: Duration::from_millis(300), ..Limits::default() };
    let mut session = Session::open(&info(&server), limits).await.unwrap();
    let snapshot = session.poll(None).await.unwrap();
    let backend = Pid::from_raw(session.server().own_pid).unwrap();
    kill_process(backend, Signal::STOP).unwrap();
    let error = session.poll(Some(&snapshot)).await.unwrap_err();
    kill_process(backend, Signal::CONT).unwrap();
    assert_eq!(error, PollError::Timeout(Duration::from_millis(300)));
}

async fn until(views: &mut watch::Receiver<Arc<View>>, done: impl Fn(&View) -> bool) -> Arc<View> {
    let found = tokio::time::timeout(PATIENCE, views.wait_for(|view| done(view))).await;
    Arc::clone(&found.expect("the awaited view never came").unwrap())
}

#[tokio::test]
async fn the_feed_publishes_reconnects_and_obeys() {
    let server = server().await;
    let info = info(&server);
    let live = Live::connect(info.clone(), Settings::default(), |_| {}).await.unwrap();
    let (sender, mut views) = watch::channel(live.view());
    let (interval, wishes) = Wishes::every(Duration::from_secs(3600));
    let refresh = Arc::clone(&wishes.refresh);
    let running = tokio::spawn(live.run(wishes, sender));
    let first = until(&mut views, |view| view.snapshot.is_some()).await;
    assert_eq!(first.link, Link::Live);
    let admin = client(&info).await;
    admin.batch_execute("SELECT pg_advisory_lock(3)").await.unwrap();
    let admin_pid = pid(&admin).await;
    refresh.notify_one();
    let second = until(&mut views, |view| view.id > first.id).await;
    let snapshot = second.snapshot.as_deref().unwrap();
    let lock = snapshot
        .locks
        .rows
        .iter()
        .find(|lock| lock.pid == Some(admin_pid) && lock.tag.objid == Some(3))
        .unwrap();
    assert_eq!(second.held_since.get(&(admin_pid, lock.tag)), Some(&snapshot.taken_at));
    assert_eq!(second.series.samples.len(), 2);
    interval.send_replace(Duration::from_millis(20));
    // A lock that was taken while the poll went on counts from the next one.
    let third = until(&mut views, |view| view.id > second.id + 3).await;
    let since = third.held_since.get(&(admin_pid, lock.tag)).unwrap();
    assert!((snapshot.taken_at..third.snapshot.as_deref().unwrap().taken_at).contains(since), "{since}");
    let third = until(&mut views, |view| view.id > third.id + 3).await;
    assert_eq!(third.held_since.get(&(admin_pid, lock.tag)), Some(since));
    let own = third.snapshot.as_deref().unwrap().server().unwrap().own_pid;
    admin.execute("SELECT pg_terminate_backend($1)", &[&own]).await.unwrap();
    let down = until(&mut views, |view| matches!(view.link, Link::Down { .. })).await;
    let Link::Down { reason, .. } = &down.link else { panic!() };
    assert!(reason.contains("terminating connection due to administrator command"), "{reason}");
    let Link::Down { attempt, .. } = down.link else { panic!() };
    assert_eq!(attempt, 1, "the one to come");
    assert!(down.snapshot.is_some(), "the old data stays");
    let back = until(&mut views, |view| view.link == Link::Live && view.id > down.id).await;
    assert_ne!(back.snapshot.as_deref().unwrap().server().unwrap().own_pid, own);
    drop(views);
    tokio::time::timeout(PATIENCE, running).await.expect("nobody listens, and it still polls").unwrap();
}

/// A view before the first snapshot.
fn beginning() -> Arc<View> {
    Digest::new(TargetId::default(), Thresholds::default(), LockNames::default()).view()
}

#[tokio::test]
async fn the_second_connection_is_there_again_after_it_was_lost() {
    let server = server().await;
    let (_views_in, views) = watch::channel(beginning());
    let spare = Spare::keep(info(&server), Limits::default(), views);
    let first = spare.client(PATIENCE).await.unwrap();
    let first_pid = pid(&first).await;
    let admin = client(&info(&server)).await;
    admin.execute("SELECT pg_terminate_backend($1)", &[&first_pid]).await.unwrap();
    let lost = tokio::time::timeout(PATIENCE, async {
        while !first.is_closed() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    lost.await.unwrap();
    let second = spare.client(PATIENCE).await.unwrap();
    assert_ne!(pid(&second).await, first_pid);
}

fn shown<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// Every column of every row is what the view says, in the whole scan and in the narrow one.
#[tokio::test]
async fn locks_are_those_of_the_view() {
    let server = server().await;
    let info = info(&server);
    let (holder, first, second) = (client(&info).await, client(&info).await, client(&info).await);
    holder
        .batch_execute("CREATE TABLE a (i int PRIMARY KEY, t text); CREATE TYPE e AS ENUM ()")
        .await
        .unwrap();
    holder.batch_execute("INSERT INTO a VALUES (1)").await.unwrap();
    holder
        .batch_execute(
            "BEGIN; UPDATE a SET i = 2; SELECT pg_advisory_lock(1), pg_advisory_lock(-1), pg_advisory_lock(1 << 30),
             pg_advisory_lock(9223372036854775807), pg_advisory_lock(0, 0), pg_advisory_lock_shared(-5, 7);
             COMMENT ON COLUMN a.t IS 'x'; COMMENT ON TYPE e IS 'x'; COMMENT ON ROLE postgres IS 'x'",
        )
        .await
        .unwrap();
    let prepared = client(&info).await;
    prepared.batch_execute("BEGIN; LOCK TABLE pg_enum; SELECT pg_current_xact_id()").await.unwrap();
    prepared.batch_execute("PREPARE TRANSACTION 'p'").await.unwrap();
    let pids = [pid(&holder).await, pid(&first).await, pid(&second).await];
    let mut waiting = Vec::new();
    for waiter in [first, second] {
        waiting.push(tokio::spawn(async move { waiter.batch_execute("UPDATE a SET i = 3").await }));
    }
    let mut session = session(&server).await;
    let whole = poll_until(&mut session, |snapshot| pids[1..].iter().all(|pid| waits(snapshot, *pid))).await;
    let narrow = Limits { whole_scan: 0, ..patient() };
    let mut narrow = Session::open(&info, narrow).await.unwrap();
    let first = narrow.poll(None).await.unwrap();
    let narrow = narrow.poll(Some(&first)).await.unwrap();
    let sql = "SELECT concat_ws(' ', locktype, coalesce(database::text, '-'), coalesce(relation::text, '-'),
            coalesce(page::text, '-'), coalesce(tuple::text, '-'), coalesce(virtualxid, '-'),
            coalesce(transactionid::text, '-'), coalesce(classid::text, '-'), coalesce(objid::text, '-'),
            coalesce(objsubid::text, '-'), virtualtransaction, coalesce(pid::text, '-'), mode, granted,
            coalesce((extract(epoch FROM waitstart) * 1000000)::int8::text, '-'))
        FROM pg_locks WHERE pid = ANY ($1) OR pid IS NULL";
    let view = client(&info).await.query(sql, &[&&pids[..]]).await.unwrap();
    let mut view: Vec<String> = view.iter().map(|row| row.get(0)).collect();
    view.sort();
    let rows = |snapshot: &Snapshot| -> Vec<String> {
        let ours = snapshot.locks.rows.iter().filter(|lock| lock.pid.is_none_or(|pid| pids.contains(&pid)));
        let line = |lock: &Lock| {
            let tag = lock.tag;
            [
                tag.locktype.as_str().to_owned(),
                shown(tag.database),
                shown(tag.relation),
                shown(tag.page),
                shown(tag.tuple),
                shown(tag.virtualxid),
                shown(tag.transactionid),
                shown(tag.classid),
                shown(tag.objid),
                shown(tag.objsubid),
                lock.virtualtransaction.to_string(),
                shown(lock.pid),
                lock.mode.as_str().to_owned(),
                if lock.granted { "t" } else { "f" }.to_owned(),
                shown(lock.wait_start.map(|at| at.timestamp_micros())),
            ]
            .join(" ")
        };
        let mut lines: Vec<String> = ours.map(line).collect();
        lines.sort();
        lines
    };
    assert_eq!(rows(&whole), view);
    let narrow = rows(&narrow);
    assert!(narrow.len() < view.len() && narrow.iter().all(|row| view.contains(row)), "{narrow:#?}");
    for kind in ["advisory", "object", "relation", "transactionid", "tuple", "virtualxid"] {
        assert!(view.iter().any(|row| row.starts_with(kind)), "{kind}");
    }
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
}

/// Backends of locktop that are there, seen by somebody who needs no operator to look.
async fn own_backends(admin: &Client) -> usize {
    let rows = admin.query("SELECT application_name FROM pg_stat_get_activity(NULL)", &[]).await.unwrap();
    rows.iter().filter(|row| row.get::<_, Option<&str>>(0) == Some("locktop")).count()
}

#[tokio::test]
async fn a_setup_that_cannot_go_on_leaves_nothing_behind() {
    let server = server().await;
    let info = info(&server).with_application_name("locktop");
    let other = info.clone().with_application_name("admin");
    // Not the same: in a transaction the server shows one picture all the time.
    let (admin, looks) = (client(&other).await, client(&other).await);
    // Looked at once before, so that it needs nothing later.
    assert_eq!(own_backends(&looks).await, 0);
    admin.batch_execute("BEGIN; LOCK pg_operator IN ACCESS EXCLUSIVE MODE").await.unwrap();
    // The first limit holds on the server, the second only here.
    let refused = Session::open(&info, Limits::default()).await.unwrap_err();
    assert!(refused.to_string().contains("lock timeout"), "{refused}");
    let endless = Limits {
        statement_timeout: Duration::ZERO,
        lock_timeout: Duration::ZERO,
        poll_timeout: Duration::from_millis(300),
        ..Limits::default()
    };
    assert!(matches!(open_plain(&info, &endless).await.unwrap_err(), OpenError::Silent));
    let gone = tokio::time::timeout(PATIENCE, async {
        while own_backends(&looks).await > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    gone.await.expect("a backend stays and waits for the lock");
    admin.batch_execute("ROLLBACK").await.unwrap();
    Session::open(&info, Limits::default()).await.unwrap();
}

#[tokio::test]
async fn the_second_connection_rests_while_the_poll_has_none() {
    let server = server().await;
    let (views_in, views) = watch::channel(beginning());
    let down = Link::Down { reason: "gone".into(), attempt: 1 };
    views_in.send_replace(Arc::new(View { link: down, ..View::clone(&beginning()) }));
    let spare = Spare::keep(info(&server), Limits::default(), views);
    let refused = spare.client(Duration::from_millis(300)).await;
    assert!(refused.is_err(), "it is not even asked for");
    views_in.send_replace(beginning());
    spare.client(PATIENCE).await.unwrap();
}

#[tokio::test]
async fn wishes_hold_while_the_server_is_away() {
    let server = server().await;
    let info = info(&server);
    let live = Live::connect(info.clone(), Settings::default(), |_| {}).await.unwrap();
    let (sender, mut views) = watch::channel(live.view());
    let (interval, wishes) = Wishes::every(Duration::from_secs(3600));
    let refresh = Arc::clone(&wishes.refresh);
    let running = tokio::spawn(live.run(wishes, sender));
    let first = until(&mut views, |view| view.snapshot.is_some()).await;
    let own = first.snapshot.as_deref().unwrap().server().unwrap().own_pid;
    let admin = client(&info).await;
    admin.execute("SELECT pg_terminate_backend($1)", &[&own]).await.unwrap();
    let down = until(&mut views, |view| matches!(view.link, Link::Down { .. })).await;
    for _ in 0..100 {
        interval.send_replace(Duration::from_millis(30));
        refresh.notify_one();
    }
    let back = until(&mut views, |view| view.link == Link::Live && view.id > down.id).await;
    until(&mut views, |view| view.id > back.id + 3).await;
    running.abort();
}
