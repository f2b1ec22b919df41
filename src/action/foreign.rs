//! Jobs and leases of other systems, by the statements of their adapters; and locks of other clients in Redis, by
//! compare-and-delete of the value that was seen, on every server.

use std::time::Duration;

use locktop_locks::quorum;

use super::message::{Access, number, send, shown};
use super::table::refused;
use super::{ActionContext, ReportedOutcome};
use crate::model::adapter::ActionKind;
use crate::model::plan::{AdapterTarget, Outcome};
use crate::model::redis_lease::RedisLease;
use crate::pg::jobs::adapters::{act_message, find_statement};
use crate::redis::{RedisUrl, Unlock, force_unlock};

pub(super) fn short(target: &AdapterTarget) -> String {
    let values = &target.values;
    let (id, who) = (shown(Some(&values.id)), shown(values.who.as_deref()));
    let since = values.since.map(|at| at.to_rfc3339_opts(chrono::SecondsFormat::Micros, true));
    let since = since.unwrap_or_else(|| "NULL".to_owned());
    match target.kind {
        ActionKind::Recover => format!(
            "recover job {id} of {} if worker = {who} and attempt = {} and started_at = {since}",
            target.source,
            number(values.attempt)
        ),
        ActionKind::Unlock => {
            format!("end lease {id} of {} if owner = {who} and acquired_at = {since}", target.source)
        }
    }
}

impl ActionContext<'_> {
    /// Returns a job of another system to that system, or ends a lease of another system. The statement comes from the adapter:
    /// it compares the target with what was seen, and makes the checks that the other system itself would make.
    pub(super) async fn settle(self, target: &AdapterTarget) -> ReportedOutcome {
        let Self { client, owners, .. } = self;
        let find = find_statement(owners, &target.installation.adapter);
        let found = match send(client, Access::ReadOnly, &find).await {
            Ok(rows) => rows,
            Err(error) => return (Outcome::Refused, format!("nothing was sent: {error}")),
        };
        let sql = match act_message(owners, target, &found) {
            Ok(sql) => sql,
            Err(why) => return (Outcome::Refused, why.to_string()),
        };
        match send(client, Access::ReadWrite, &sql).await {
            Ok(rows) => match (rows.len(), target.kind) {
                (0, ActionKind::Recover) => {
                    let words = "it is another execution now, its worker works again, or its row is locked";
                    (Outcome::Changed, words.to_owned())
                }
                (0, ActionKind::Unlock) => {
                    (Outcome::Changed, "it has another owner now, or has ended".to_owned())
                }
                (1, _) => (Outcome::Done, target.then().to_owned()),
                (many, _) => {
                    let all = format!("{many} rows had this id, and all of them were changed");
                    (Outcome::Done, format!("{all}: {}", target.then()))
                }
            },
            Err(error) => {
                let needs = || {
                    format!(
                        "the role needs: GRANT SELECT, INSERT, UPDATE, DELETE ON {}, \
                     and USAGE on the sequences of tables to which rows are added",
                        target.tables()
                    )
                };
                refused(&error, "its table or its row", needs)
            }
        }
    }
}

/// Longest wait for each server.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The value is a secret: any client that knows it can release the lock.
pub(super) fn redis_short(lease: &RedisLease) -> String {
    format!("delete {} if its value is the one that was seen, on {} servers", lease.name(), lease.servers)
}

/// `servers` are all servers of the configuration; only those of the lock's own set are used.
pub(super) async fn unlock(lease: &RedisLease, servers: &[RedisUrl]) -> ReportedOutcome {
    // A server is named by its number in the set that the row was read from.
    let Some(servers) = servers.get(lease.members()) else {
        return (Outcome::Refused, "it was read from servers other than those of the config".to_owned());
    };
    sum_up(&force_unlock(lease, servers, TIMEOUT).await)
}

/// A lock is held on a majority of servers. It has ended when too few servers are left for a majority.
fn sum_up(results: &[Unlock]) -> ReportedOutcome {
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
    fn the_outcome_follows_from_the_majority_of_answers() {
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
            let (found, result) = sum_up(&results(given));
            assert_eq!(found, outcome, "{given}: {result}");
            assert!(result.contains(words), "{given}: {result}");
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
        let (outcome, result) = unlock(&leases.rows[1], &urls[..2]).await;
        assert_eq!(outcome, Outcome::Refused, "{result}");
        // No server listens there; the message names it all the same.
        let (_, result) = unlock(&leases.rows[0], &urls).await;
        assert!(result.contains("freed on 0 of 1") && result.contains("127.0.0.1:1:"), "{result}");
        let (_, result) = unlock(&leases.rows[1], &urls).await;
        assert!(result.contains("freed on 0 of 2") && result.contains("127.0.0.1:2:"), "{result}");
    }
}
