//! The SQL functions alone.

use super::place::{Session, installed};
use super::support::{versions, wait_until};

#[tokio::test]
async fn each_holder_gets_a_greater_token_and_older_tokens_are_refused() {
    for version in versions() {
        let info = installed(version).await;
        let (one, other) = (Session::open(&info).await, Session::open(&info).await);
        let mut last = 0;
        for round in 0..3 {
            let token = one.token("SELECT lease_acquire(7, 'node1', '1 hour')").await;
            assert!(token > last, "{version}: {round}");
            // With any name.
            for name in ["node1", "node2"] {
                assert_eq!(other.ask(&format!("SELECT lease_acquire(7, '{name}', '1 hour')")).await, "-");
            }
            assert_eq!(
                one.ask("SELECT lease_acquire(7, 'node1', '1 hour')").await,
                "-",
                "{version}: not even its own"
            );
            assert_eq!(one.ask(&format!("SELECT lease_renew(7, {token})")).await, "t");
            assert_eq!(one.ask(&format!("SELECT lease_renew(7, {})", token + 1)).await, "f");
            assert_eq!(
                other.ask(&format!("SELECT lease_check(7, {token}), lease_check(7, {last})")).await,
                "t|f"
            );
            one.let_pass(7, "61 min").await;
            assert_eq!(other.ask(&format!("SELECT lease_check(7, {token})")).await, "f");
            assert_eq!(
                one.ask(&format!("SELECT lease_renew(7, {token}), lease_release(7, {token})")).await,
                "f|f"
            );
            let next = other.token("SELECT lease_acquire(7, 'node1', '1 hour')").await;
            assert!(next > token, "{version}: {round}: one name, two tokens");
            assert_eq!(
                one.ask(&format!("SELECT lease_renew(7, {token}), lease_release(7, {token})")).await,
                "f|f"
            );
            assert_eq!(other.ask(&format!("SELECT lease_release(7, {next})")).await, "t");
            assert_eq!(
                other.ask(&format!("SELECT lease_release(7, {next}), lease_renew(7, {next})")).await,
                "f|f"
            );
            last = next;
        }
    }
}

#[tokio::test]
async fn a_release_keeps_the_owner_and_the_token_is_never_reset() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        let first = session.token("SELECT lease_acquire(7, 'node1', '1 hour')").await;
        assert_eq!(session.ask("SELECT owner, state FROM leases").await, "node1|held");
        session.ask(&format!("SELECT lease_release(7, {first})")).await;
        let row = "SELECT owner, state, token, expires_at <= clock_timestamp(), released_at >= acquired_at FROM leases";
        assert_eq!(session.ask(row).await, format!("node1|released|{first}|t|t"), "{version}");
        let second = session.token("SELECT lease_acquire(7, 'node2', '1 hour')").await;
        session.let_pass(7, "2 hours").await;
        assert_eq!(
            session.ask("SELECT owner, state, released_at FROM leases").await,
            "node2|expired|-",
            "{version}"
        );
        session.ask("DELETE FROM distlock").await;
        assert_eq!(session.ask("INSERT INTO distlock (id) VALUES (7)").await, "1");
        assert_eq!(session.ask("SELECT owner, state FROM leases").await, "-|free");
        let third = session.token("SELECT lease_acquire(7, 'node1', '1 hour')").await;
        assert!(first < second && second < third, "{version}");
        // A token cannot be chosen.
        let error = session.refused("UPDATE distlock SET token = 1000").await;
        assert!(error.starts_with("428C9"), "{version}: {error}");
        let error = session.refused("INSERT INTO distlock (id, token) VALUES (8, 1000)").await;
        assert!(error.starts_with("428C9"), "{version}: {error}");
    }
}

#[tokio::test]
async fn the_clock_is_the_servers_as_it_is_now() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        session.ask("BEGIN").await;
        let begun = session.ask("SELECT clock_timestamp()").await;
        let token = session.token("SELECT lease_acquire(7, 'node1', '1 hour')").await;
        assert_eq!(session.ask(&format!("SELECT ts > '{begun}' FROM distlock")).await, "t", "{version}");
        let renewed = session.ask("SELECT clock_timestamp()").await;
        session.ask(&format!("SELECT lease_renew(7, {token})")).await;
        assert_eq!(session.ask(&format!("SELECT ts > '{renewed}' FROM distlock")).await, "t", "{version}");
        session.ask("COMMIT").await;
    }
}

#[tokio::test]
async fn a_term_is_as_long_in_every_time_zone() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        // The clocks were set forward in the following night.
        session.ask("SET timezone = 'Europe/Berlin'").await;
        session.ask("SELECT lease_acquire(7, 'node1', '1 day')").await;
        session.ask("UPDATE distlock SET ts = '2026-03-28 12:00+01'").await;
        let ends = session.ask("SELECT expires_at = '2026-03-29 12:00+01', expired_time FROM leases").await;
        assert_eq!(ends, "t|24:00:00", "{version}");
        session.ask("SET timezone = 'UTC'").await;
        assert_eq!(
            session.ask("SELECT expires_at = '2026-03-29 12:00+01' FROM leases").await,
            "t",
            "{version}"
        );
    }
}

#[tokio::test]
async fn a_request_does_not_wait_for_a_locked_row_and_a_renewal_waits_briefly() {
    for version in versions() {
        let info = installed(version).await;
        let (holder, other) = (Session::open(&info).await, Session::open(&info).await);
        let token = holder.token("SELECT lease_acquire(7, 'node1', '1 hour')").await;
        let pid = holder.ask("SELECT pg_backend_pid()").await;
        let blocked = format!("SELECT cardinality(pg_blocking_pids({pid})) > 0");
        for call in [format!("lease_renew(7, {token}, '2 hours')"), format!("lease_release(7, {token})")] {
            let call = format!("SELECT {call}");
            loop {
                other.ask("BEGIN; SELECT * FROM distlock FOR UPDATE").await;
                let (answer, ()) = tokio::join!(holder.ask(&call), async {
                    wait_until("the holder to wait", async || other.ask(&blocked).await == "t").await;
                    other.ask("ROLLBACK").await;
                });
                // "-" on a machine that stalled for the second that it waits.
                if answer != "-" {
                    assert_eq!(answer, "t", "{version}: {call}");
                    break;
                }
            }
        }
        let token = holder.token("SELECT lease_acquire(7, 'node1', '300 ms')").await;
        let seen = other.ask("SELECT expired_time FROM leases").await;
        assert_eq!(seen, "00:00:00.3");
        other.ask("BEGIN; SELECT * FROM distlock FOR UPDATE").await;
        // Neither call waits once the lease has ended.
        holder.ask("SET lock_timeout = '20s'").await;
        let renew = format!("SELECT lease_renew(7, {token}), lease_release(7, {token})");
        let answer = holder.ask(&renew).await;
        assert!(["-|f", "f|f", "-|-"].contains(&answer.as_str()), "{version}: {answer}");
        assert_eq!(holder.ask("SHOW lock_timeout").await, "20s");
        assert_eq!(holder.ask("SELECT lease_acquire(7, 'x', '1 s')").await, "-", "{version}");
        // An older token is refused as well.
        assert_eq!(holder.ask(&format!("SELECT lease_renew(7, {})", token - 1)).await, "f");
    }
}

#[tokio::test]
async fn invalid_arguments_are_refused_and_infinite_times_are_accepted() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        for call in [
            "lease_acquire(NULL, 'a', '1 s')",
            "lease_acquire(1, '', '1 s')",
            "lease_acquire(1, NULL, '1 s')",
            "lease_acquire(1, 'a', NULL)",
            "lease_acquire(1, 'a', '0')",
            "lease_acquire(1, 'a', '-1 s')",
            "lease_renew(1, 1, '0')",
        ] {
            let error = session.refused(&format!("SELECT {call}")).await;
            assert!(error.starts_with("22023 a lease needs"), "{version}: {call}: {error}");
        }
        assert_eq!(session.ask("SELECT count(*) FROM leases").await, "0");
        let error = session.refused("SELECT lease_acquire(1, 'a', '300000 years')").await;
        assert!(error.starts_with("22008"), "{version}: {error}");
        session.ask("INSERT INTO distlock VALUES (1, '1 hour', 'a', 'infinity'), (2, NULL, 'b', NULL), (3, '1 h', 'c', '-infinity')").await;
        let all = "SELECT id, state, time_left FROM leases ORDER BY 1";
        assert_eq!(session.ask(all).await, "1|held|-\n2|expired|-\n3|expired|-", "{version}");
        for id in [2, 3] {
            session.token(&format!("SELECT lease_acquire({id}, 'd', '1 hour')")).await;
        }
        // The extremes of an id are ids.
        for id in [i32::MIN, -1, 0, i32::MAX] {
            let token = session.token(&format!("SELECT lease_acquire({id}, 'a', '1 hour')")).await;
            assert_eq!(session.ask(&format!("SELECT lease_release({id}, {token})")).await, "t");
        }
    }
}

#[tokio::test]
async fn one_of_many_concurrent_requests_acquires_the_lease() {
    for version in versions() {
        let info = installed(version).await;
        let mut sessions = Vec::new();
        for _ in 0..8 {
            sessions.push(Session::open(&info).await);
        }
        for round in 0..10 {
            // The row does not exist yet in the first round of each id.
            let sql = format!("SELECT lease_acquire({}, 'node1', '1 hour')", round / 2);
            let answers =
                futures_util::future::join_all(sessions.iter().map(|session| session.ask(&sql))).await;
            let tokens: Vec<&String> = answers.iter().filter(|answer| *answer != "-").collect();
            assert_eq!(tokens.len(), 1, "{version}: {answers:?}");
            sessions[0].ask(&format!("SELECT lease_release({}, {})", round / 2, tokens[0])).await;
        }
    }
}

#[tokio::test]
async fn a_role_needs_three_grants() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        let role = format!("holder_{version}");
        session.ask(&format!("CREATE ROLE {role}; GRANT USAGE ON SCHEMA locktop TO {role}")).await;
        for grant in ["SELECT ON leases", "SELECT, INSERT, UPDATE ON distlock"] {
            session.ask(&format!("SET ROLE {role}")).await;
            let error =
                session.refused("SELECT lease_acquire(7, 'node1', '1 hour') + count(*) FROM leases").await;
            assert!(error.starts_with("42501"), "{version}: {error}");
            session.ask(&format!("RESET ROLE; GRANT {grant} TO {role}")).await;
        }
        session.ask(&format!("SET ROLE {role}")).await;
        let token = session.token("SELECT lease_acquire(7, 'node1', '1 hour')").await;
        session.ask(&format!("SELECT assert_lease(7, {token})")).await;
        let done = session.ask(&format!("SELECT lease_renew(7, {token}), lease_release(7, {token})")).await;
        assert_eq!(done, "t|t", "{version}");
        assert_eq!(session.ask("SELECT state FROM leases").await, "released", "{version}");
        // One more for statements as published: their new owner gets a token from the trigger.
        let published = "UPDATE distlock SET owner = 'node2', ts = now(), expired_time = '20 s' WHERE id = 7";
        assert!(session.refused(published).await.starts_with("42501"), "{version}");
        session
            .ask(&format!(
                "RESET ROLE; GRANT USAGE ON SEQUENCE distlock_token_seq TO {role}; SET ROLE {role}"
            ))
            .await;
        assert_eq!(session.ask(published).await, "1", "{version}");
    }
}
