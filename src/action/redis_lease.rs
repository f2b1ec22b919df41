//! Releases a lock of another client in Redis: compare-and-delete of the value that was seen, on every server.

use std::time::Duration;

use crate::model::plan::Outcome;
use crate::redis::{Unlock, force_unlock};
use locktop_locks::quorum;

use crate::model::redis_lease::RedisLease;
use crate::redis::RedisUrl;

/// Longest wait for each server.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The value is a secret: any client that knows it can release the lock.
pub(super) fn short(lease: &RedisLease) -> String {
    format!("delete {} if its value is the one that was seen, on {} servers", lease.name(), lease.servers)
}

/// `servers` are all servers of the configuration; only those of the lock's own set are used.
pub(super) async fn unlock(lease: &RedisLease, servers: &[RedisUrl]) -> (Outcome, String) {
    // A server is named by its number in the set that the row was read from.
    let Some(servers) = servers.get(lease.members()) else {
        return (Outcome::Refused, "it was read from servers other than those of the config".to_owned());
    };
    sum_up(&force_unlock(lease, servers, TIMEOUT).await)
}

/// A lock is held on a majority of servers. It has ended when too few servers are left for a majority.
fn sum_up(results: &[Unlock]) -> (Outcome, String) {
    let count = |is: fn(&Unlock) -> bool| results.iter().filter(|result| is(result)).count();
    let (freed, gone) = (count(|one| matches!(one, Unlock::Freed)), count(|one| matches!(one, Unlock::Gone)));
    let changed = count(|one| matches!(one, Unlock::Changed));
    let beyond = count(|one| matches!(one, Unlock::NotComparable));
    let failed = count(|one| matches!(one, Unlock::Failed(_)));
    let servers = u32::try_from(results.len()).unwrap_or(u32::MAX);
    let is_over = results.len() - freed - gone < quorum(servers) as usize;
    let (outcome, meaning) = match () {
        () if freed == 0 && is_over => (Outcome::Changed, "it no longer existed"),
        () if freed > 0 && is_over && servers == 1 => (Outcome::Done, "it can be acquired"),
        () if freed > 0 && is_over => (Outcome::Done, "its holder no longer has a majority"),
        () if failed > 0 => (Outcome::Uncertain, "not known whether its holder still has a majority"),
        () if beyond > 0 => (Outcome::Refused, "its value is too long or not a lock, and cannot be compared"),
        () if freed > 0 => (Outcome::StillThere, "its holder may still have a majority"),
        () => (Outcome::Changed, "it was renewed, or has another owner"),
    };
    // `freed on 3 of 5, one no longer had it, 2 did not answer`
    let mut text = format!("freed on {freed} of {servers}");
    for (count, one, more) in [
        (gone, "no longer had it", "no longer had it"),
        (changed, "has another value", "have another value"),
        (beyond, "cannot be compared", "cannot be compared"),
        (failed, "did not answer", "did not answer"),
    ] {
        match count {
            0 => {}
            1 => text.extend([", one ", one]),
            _ => text.extend([", ", &count.to_string(), " ", more]),
        }
    }
    text.extend([": ", meaning]);
    let faults =
        results.iter().find_map(|one| if let Unlock::Failed(fault) = one { Some(fault) } else { None });
    text.extend(faults.map(|fault| format!(" ({fault})")));
    (outcome, text)
}

#[cfg(test)]
#[cfg(feature = "redis")]
mod tests {
    use super::*;
    use crate::redis::RedisFault;

    fn results(text: &str) -> Vec<Unlock> {
        let one = |c: char| match c {
            'f' => Unlock::Freed,
            'g' => Unlock::Gone,
            'c' => Unlock::Changed,
            'n' => Unlock::NotComparable,
            _ => Unlock::Failed(RedisFault::Silent {
                server: RedisUrl::parse("redis://127.0.0.1:1").unwrap(),
                timeout: TIMEOUT,
            }),
        };
        text.chars().map(one).collect()
    }

    #[test]
    fn what_so_many_answers_mean_for_a_majority() {
        for (given, outcome, words) in [
            ("f", Outcome::Done, "freed on 1 of 1: it can be acquired"),
            ("g", Outcome::Changed, "freed on 0 of 1, one no longer had it: it no longer existed"),
            (
                "c",
                Outcome::Changed,
                "freed on 0 of 1, one has another value: it was renewed, or has another owner",
            ),
            (
                "fff?g",
                Outcome::Done,
                "freed on 3 of 5, one no longer had it, one did not answer: its holder no longer has a majority",
            ),
            (
                "ff???",
                Outcome::Uncertain,
                "freed on 2 of 5, 3 did not answer: not known whether its holder still has a majority",
            ),
            (
                "fcc",
                Outcome::StillThere,
                "freed on 1 of 3, 2 have another value: its holder may still have a majority",
            ),
            ("ccc", Outcome::Changed, "freed on 0 of 3, 3 have another value"),
            ("nnn", Outcome::Refused, "freed on 0 of 3, 3 cannot be compared"),
            ("ggg", Outcome::Changed, "3 no longer had it: it no longer existed"),
            ("gg?", Outcome::Changed, "2 no longer had it, one did not answer: it no longer existed"),
            ("???", Outcome::Uncertain, "freed on 0 of 3, 3 did not answer"),
        ] {
            let (found, told) = sum_up(&results(given));
            assert_eq!(found, outcome, "{given}: {told}");
            assert!(told.contains(words), "{given}: {told}");
        }
    }

    #[tokio::test]
    async fn servers_of_other_sets_are_not_asked() {
        use crate::model::redis_lease::{Expiry, KeyReading, LockValue, ServerReading, merge_sets};

        let reading = |at: usize| ServerReading {
            server: format!("{at}").into(),
            keys: Ok(vec![KeyReading {
                key: (*b"lock:a").into(),
                value: LockValue::text(b"me"),
                expiry: Expiry::Never,
            }]),
        };
        let leases = merge_sets(&[reading(0), reading(1), reading(2)], &[1, 2]);
        let urls: Vec<_> =
            (1..4).map(|port| RedisUrl::parse(&format!("redis://127.0.0.1:{port}")).unwrap()).collect();
        let (outcome, told) = unlock(&leases.rows[1], &urls[..2]).await;
        assert_eq!(outcome, Outcome::Refused, "{told}");
        // No server listens there; the message names it all the same.
        let (_, told) = unlock(&leases.rows[0], &urls).await;
        assert!(told.contains("freed on 0 of 1") && told.contains("127.0.0.1:1:"), "{told}");
        let (_, told) = unlock(&leases.rows[1], &urls).await;
        assert!(told.contains("freed on 0 of 2") && told.contains("127.0.0.1:2:"), "{told}");
    }
}
