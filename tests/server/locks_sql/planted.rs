//! Functions without a search path of their own run with the caller's. Objects that another role has put
//! there are not called.

use super::db::{Session, installed};
use super::support::{is_long, oldest, versions};

const TRAP: &str = include_str!("planted.sql");

/// A session that finds another role's operators, functions, types and tables before the server's and
/// locktop's.
async fn trapped(version: u32) -> (Session, Session) {
    let info = installed(version).await;
    let owner = Session::open(&info).await;
    owner.run(TRAP).await;
    let session = Session::open_plain(&info).await;
    session.run("SET search_path = trap, pg_catalog, locktop").await;
    (session, owner)
}

#[tokio::test]
async fn planted_operators_functions_types_and_tables_are_not_used() {
    // Names are resolved in the same way in all versions.
    let wanted = if is_long() { versions() } else { vec![oldest()] };
    for version in wanted {
        let (session, owner) = trapped(version).await;
        for sprung in
            ["SELECT 1 + 1", "SELECT clock_timestamp()", "SELECT ''::text", "SELECT lease_check(1, 2)"]
        {
            let error = session.refused(sprung).await;
            assert!(error.contains("sprung") || error.contains("domain"), "{version} {sprung}: {error}");
        }
        leases(&session, &owner).await;
        limits(&session, &owner).await;
        ids(&session, &owner).await;
        session.run("CALL locktop.purge('1 day')").await;
        // Pinned ones are not concerned either.
        session.run("SELECT locktop.purge_candidates('1 day')").await;
    }
}

async fn leases(session: &Session, owner: &Session) {
    let acquire = "SELECT locktop.lease_acquire(1, 'a', '1 hour')";
    let token = session.ask(acquire).await;
    assert_eq!(session.ask(acquire).await, "-");
    let with = |function: &str| format!("SELECT locktop.{function}(1, {token})");
    assert_eq!(session.ask(&with("lease_renew")).await, "t");
    assert_eq!(session.ask(&with("lease_check")).await, "t");
    assert_eq!(session.ask(&with("assert_lease")).await, "");
    // A lock held earlier leaves its mark on the row.
    owner.run("BEGIN; SELECT FROM distlock FOR UPDATE; COMMIT").await;
    assert_eq!(session.ask(&format!("SELECT locktop.lease_renew(1, {token}, '2 hours')")).await, "t");
    assert_eq!(session.ask(&with("lease_release")).await, "t");
    assert_eq!(session.ask(&with("lease_release")).await, "f");
    assert!(session.refused(&with("assert_lease")).await.starts_with("LT001"));
    owner.run("BEGIN; SELECT FROM distlock FOR UPDATE; COMMIT").await;
    assert_ne!(session.ask(acquire).await, "-");
    assert!(session.refused(&with("assert_lease")).await.starts_with("LT001"));
    assert!(session.refused("SELECT locktop.lease_acquire(1, '', '1 hour')").await.starts_with("22023"));
    assert!(session.refused("SELECT locktop.lease_renew(1, 1, '0')").await.starts_with("22023"));
    // Direct writes of a user, and those of a dump, which only the trigger sees.
    for write in [
        "INSERT INTO locktop.distlock (id, owner, expired_time) VALUES (2, 'b', '1 hour')",
        "INSERT INTO locktop.distlock (id, acquired_at) VALUES (3, '2026-01-01')",
        "UPDATE locktop.distlock SET ts = CURRENT_TIMESTAMP",
        "UPDATE locktop.distlock SET owner = 'c', expired_time = '1 day'",
        "UPDATE locktop.distlock SET owner = NULL",
    ] {
        session.run(write).await;
    }
}

async fn limits(session: &Session, owner: &Session) {
    let call = "SELECT locktop.check_rate_limit('k', 2, 60)";
    let answers = [session.ask(call).await, session.ask(call).await, session.ask(call).await];
    assert_eq!(answers, ["t", "t", "f"]);
    let taken = "SELECT allowed, count FROM locktop.take_rate_limit('k', 2, 60)";
    assert_eq!(session.ask(taken).await, "f|2");
    owner.run("UPDATE rate_limit SET window_start = window_start - interval '2 minutes'").await;
    assert_eq!(session.ask(taken).await, "t|1");
    assert!(session.refused("SELECT locktop.check_rate_limit('k', -1, 60)").await.starts_with("22023"));
}

async fn ids(session: &Session, owner: &Session) {
    owner.run("INSERT INTO id_generator (worker_id) VALUES (1)").await;
    let id = "SELECT locktop.generate_snowflake_id(1)";
    let (first, second) = (session.ask(id).await, session.ask(id).await);
    assert!(first.parse::<i64>().unwrap() < second.parse().unwrap());
    // The slow way.
    owner.run("UPDATE id_generator SET last_timestamp = snowflake_now() + 20").await;
    assert!(second.parse::<i64>().unwrap() < session.ask(id).await.parse().unwrap());
    assert!(session.refused("SELECT locktop.generate_snowflake_id(9)").await.starts_with("P0002"));
}
