//! Leases by name, and a leader with a lease.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use locktop::locks::lease::{Lease, LeaseId, Request};
use locktop::locks::{Error, Held as _};
use locktop::schema::{self, SchemaName};
use tokio::sync::Notify;

use super::place::{LONG, Session, hold, installed};
use super::support::{TIMEOUT, database, open, server, versions, wait_until};

/// A name that SQL and the queue have to quote.
const NAME: &str = "it's \\ \"x\"";

fn request(owner: &str) -> Request {
    Request { retry: LONG, ..Request::new(NAME, owner, LONG) }
}

#[tokio::test]
async fn a_name_is_one_lease_with_tokens_fencing_and_a_queue_of_its_own() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        // A lease with a number is another one, also if the name is that number.
        let number = hold(&info, &Request::new(7, "node1", LONG)).await;
        let seven = hold(&info, &Request::new("7", "node1", LONG)).await;
        let lease = hold(&info, &request("node1")).await;
        assert!(Lease::acquire(&info, &request("node2")).await.unwrap().is_none(), "{version}");
        let waiter = {
            let info = info.clone();
            tokio::spawn(async move { Lease::acquire_within(&info, &request("node2"), TIMEOUT).await })
        };
        let key = r#"SELECT count(*) FROM pg_locks l, pg_database d, hashtextextended('locktop lease "locktop" ''it''''s \ "x"''', 0) k (key)
            WHERE l.locktype = 'advisory' AND l.mode = 'ExclusiveLock' AND d.oid = l.database AND d.datname = current_database()
              AND (l.classid::bigint << 32 | l.objid::bigint) = k.key"#;
        wait_until("a place in the queue", async || session.ask(key).await == "1").await;

        let mut client = open(&info).await.client;
        let transaction = client.transaction().await.unwrap();
        lease.fence(&transaction).await.unwrap();
        transaction.commit().await.unwrap();
        let token = lease.token();
        // A lease that is renamed is another one for its holder too.
        session.ask("UPDATE distlock SET name = 'other' WHERE name = '7'").await;
        let transaction = client.transaction().await.unwrap();
        let Err(Error::Fenced(message)) = seven.fence(&transaction).await else { panic!("{version}") };
        assert!(message.starts_with("lease 7 is not held with token"), "{version}: {message}");
        transaction.rollback().await.unwrap();
        session.ask("UPDATE distlock SET name = '7' WHERE name = 'other'").await;
        let holder = Lease::holder(&info, &request("")).await.unwrap().unwrap();
        assert_eq!((holder.owner.as_str(), holder.token), ("node1", token), "{version}");
        assert!(lease.release().await.unwrap(), "{version}");
        let next = waiter.await.unwrap().unwrap().unwrap();
        assert!(next.token() > token, "{version}");
        let (id, name) = ("SELECT lease_id('7')", "SELECT name FROM leases WHERE id = lease_id('7')");
        assert_eq!(session.ask(name).await, "7", "{version}");
        let error = session.refused(&format!("SELECT assert_lease(lease_id('7'), {token})")).await;
        assert!(error.starts_with("LT001"), "{version}: {error}");
        assert!(session.ask(id).await.starts_with('-'), "{version}");
        assert!(!seven.release().await.unwrap(), "{version}: its token is an old one");
        for lease in [number, next] {
            assert!(lease.release().await.unwrap(), "{version}");
        }
        assert_eq!(Lease::holder(&info, &request("")).await.unwrap(), None, "{version}");
        // A lost one is reported by its name.
        let lease = hold(&info, &Request::new(NAME, "node1", Duration::from_millis(600))).await;
        session.ask("UPDATE distlock SET owner = 'other', ts = clock_timestamp() WHERE name <> '7'").await;
        let loss = lease.lost().await;
        assert!(loss.to_string().contains(NAME), "{version}: {loss}");
    }
}

#[tokio::test]
async fn sessions_that_race_for_a_new_name_get_one_row_and_one_holder() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        for round in 0..20 {
            let name = format!("race {round}");
            let racers = (0..4).map(|number| {
                let request = Request::new(name.as_str(), &format!("node{number}"), LONG);
                let info = info.clone();
                async move { Lease::acquire(&info, &request).await.unwrap() }
            });
            let held = futures_util::future::join_all(racers).await.into_iter().flatten().count();
            assert_eq!(held, 1, "{version} {name}");
        }
        assert_eq!(
            session.ask("SELECT count(*), count(DISTINCT id) FROM distlock").await,
            "20|20",
            "{version}"
        );
    }
}

#[tokio::test]
async fn a_name_whose_row_is_deleted_gets_a_new_one() {
    for version in versions() {
        let info = installed(version).await;
        let (session, other) = (Session::open(&info).await, Session::open(&info).await);
        let first = session.token("SELECT lease_acquire_named('x', 'node1', '1 hour')").await;
        session
            .ask(&format!("SELECT lease_release(lease_id('x'), {first}); BEGIN; DELETE FROM distlock"))
            .await;
        let acquire = "SELECT lease_acquire_named('x', 'node2', '1 hour')";
        assert_eq!(other.ask(acquire).await, "-", "{version}: the row is locked");
        session.ask("COMMIT").await;
        let second = other.token(acquire).await;
        assert!(second > first, "{version}");
        let rows = "SELECT owner, token, name FROM distlock";
        assert_eq!(session.ask(rows).await, format!("node2|{second}|x"), "{version}");
    }
}

#[tokio::test]
async fn an_upgrade_keeps_the_options_of_the_view_and_stops_at_a_column_of_this_name() {
    let info = database(server().await).await;
    let mut connection = open(&info).await;
    schema::install_up_to(&mut connection.client, &SchemaName::default(), 8).await.unwrap();
    let session = Session::open(&info).await;
    session
        .ask("ALTER TABLE distlock ADD COLUMN name text; ALTER VIEW leases SET (security_barrier = true)")
        .await;
    let error =
        schema::install(&mut connection.client, &SchemaName::default()).await.unwrap_err().to_string();
    assert!(error.contains("column \"name\" that locktop did not create"), "{error}");
    session.ask("ALTER TABLE distlock RENAME COLUMN name TO title").await;
    schema::install(&mut connection.client, &SchemaName::default()).await.unwrap();
    let options = "SELECT reloptions FROM pg_class WHERE oid = 'leases'::regclass";
    assert_eq!(session.ask(options).await, "{security_barrier=true}");
}

#[tokio::test]
async fn a_leader_fences_its_writes_and_is_followed_when_its_lease_is_lost() {
    let info = installed(server().await.version()).await;
    let session = Session::open(&info).await;
    let (stop, led) = (Arc::new(Notify::new()), Arc::new(Mutex::new(Vec::new())));
    let mut leader = Lease::leader(&info, &request(""));
    let mut running = Vec::new();
    for owner in ["node1", "node2"] {
        let (info, stop, led) = (info.clone(), Arc::clone(&stop), Arc::clone(&led));
        running.push(tokio::spawn(async move {
            let work = |lease: Arc<Lease>| {
                led.lock().unwrap().push((owner, lease.token()));
                async move {
                    let _kept = lease;
                    std::future::pending::<()>().await;
                }
            };
            let request = Request::new(NAME, owner, Duration::from_secs(1));
            Lease::lead(&info, &request, stop.notified(), work).await
        }));
    }
    let leads = async |leader: &mut tokio::sync::watch::Receiver<_>, times: usize| {
        wait_until("a leader", async || led.lock().unwrap().len() == times).await;
        let (owner, token) = *led.lock().unwrap().last().unwrap();
        let is_it = |known: &Option<locktop::locks::lease::Holder>| {
            known.as_ref().is_some_and(|known| known.owner == owner && known.token == token)
        };
        leader.wait_for(is_it).await.unwrap();
    };
    leads(&mut leader, 1).await;
    session.ask("UPDATE distlock SET expired_time = '0', released_at = clock_timestamp()").await;
    leads(&mut leader, 2).await;
    stop.notify_waiters();
    for running in running {
        running.await.unwrap().unwrap();
    }
    leader.wait_for(Option::is_none).await.unwrap();
    let missing = Request { schema: "nowhere".parse().unwrap(), ..request("node1") };
    let error = Lease::lead(&info, &missing, std::future::pending(), async |_| {}).await.unwrap_err();
    assert!(matches!(error, Error::NotInstalled { .. }), "{error}");
    assert_eq!(LeaseId::from("a\nb").to_string(), "a b");
}
