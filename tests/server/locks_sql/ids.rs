//! locktop's id generator.

use std::collections::{BTreeMap, HashSet};

use super::crowd::{sessions, size};
use super::db::{Session, installed};
use super::printed::{blocked, keys};
use super::support::versions;

const ID: &str = "SELECT generate_snowflake_id(1)";

async fn generator(version: u32) -> (Session, Session) {
    let info = installed(version).await;
    let session = Session::open(&info).await;
    session.run("INSERT INTO id_generator (worker_id) VALUES (0), (1), (2), (3), (1023)").await;
    (session, Session::open(&info).await)
}

fn numbers(text: &str) -> Vec<i64> {
    text.lines().map(|line| line.parse().unwrap()).collect()
}

#[tokio::test]
async fn an_id_contains_its_time_and_its_worker() {
    for version in versions() {
        let (session, _) = generator(version).await;
        for worker in [0, 1, 1023] {
            let call = format!("SELECT snowflake_now(), generate_snowflake_id({worker}), snowflake_now()");
            let answer = session.ask(&call).await;
            let values: Vec<i64> = answer.split('|').map(|value| value.parse().unwrap()).collect();
            let [before, id, after] = values[..] else { panic!() };
            assert!((before..=after).contains(&(id >> 22)), "{version}: {values:?}");
            assert_eq!(id >> 12 & 1023, worker, "{version}");
            let stored = format!(
                "SELECT (last_timestamp << 22) | ({worker}::bigint << 12) | sequence FROM id_generator WHERE worker_id = {worker}"
            );
            assert_eq!(session.ask(&stored).await, id.to_string(), "{version}: the state is stored");
        }
        let shown = "SELECT last_id_at BETWEEN now() - interval '1 minute' AND clock_timestamp(), holder_pid FROM id_generators WHERE worker_id = 1";
        assert_eq!(session.ask(shown).await, "t|-");
    }
}

#[tokio::test]
async fn invalid_and_unknown_workers_are_refused() {
    for version in versions() {
        let (session, other) = generator(version).await;
        for (worker, error) in [
            ("-1", "22003 worker -1 is outside 0 to 1023"),
            ("1024", "22003 worker 1024 is outside 0 to 1023"),
            ("NULL", "22003 worker null is outside 0 to 1023"),
            ("9", "P0002 there is no id generator for worker 9"),
        ] {
            assert_eq!(
                session.refused(&format!("SELECT generate_snowflake_id({worker})")).await,
                error,
                "{version}"
            );
            assert_eq!(keys(&other, session.pid).await, "0");
        }
        assert!(
            session.refused("INSERT INTO id_generator (worker_id) VALUES (1024)").await.starts_with("23514")
        );
    }
}

#[tokio::test]
async fn ten_thousand_in_one_transaction_are_different_and_grow() {
    for version in versions() {
        let (session, _) = generator(version).await;
        for call in [
            "SELECT generate_snowflake_id(1) FROM generate_series(1, 10000)",
            "SELECT generate_snowflake_ids(1, 10000)",
        ] {
            let ids = numbers(&session.ask(&format!("BEGIN; {call}; COMMIT")).await);
            assert_eq!(ids.len(), 10_000, "{version}");
            assert!(ids.is_sorted_by(|one, next| one < next), "{version}");
        }
    }
}

#[tokio::test]
async fn a_used_up_sequence_waits_for_the_next_millisecond() {
    for version in versions() {
        let (session, _) = generator(version).await;
        // In a millisecond to come the last of the sequence was given.
        let last = session
            .ask("UPDATE id_generator SET last_timestamp = snowflake_now() + 50, sequence = 4095 WHERE worker_id = 1 RETURNING last_timestamp")
            .await;
        let id: i64 = session.ask(ID).await.parse().unwrap();
        assert!(id >> 22 > last.parse().unwrap(), "{version}");
    }
}

#[tokio::test]
async fn an_id_waits_or_is_refused_while_the_clock_is_behind() {
    for version in versions() {
        let (session, other) = generator(version).await;
        let ahead = |by: i64| {
            format!(
                "UPDATE id_generator SET last_timestamp = snowflake_now() + {by}, sequence = 4000 WHERE worker_id = 1 RETURNING (last_timestamp << 22) | (1 << 12) | 4000"
            )
        };
        let last: i64 = session.ask(&ahead(300)).await.parse().unwrap();
        let id: i64 = session.ask(ID).await.parse().unwrap();
        assert!(id > last, "{version}: {id} after {last}");
        session.ask(&ahead(3_600_000)).await;
        let error = session.refused(ID).await;
        assert!(
            error.starts_with("55000 the clock is 3") && error.ends_with("ms behind the last id of worker 1"),
            "{error}"
        );
        assert_eq!(keys(&other, session.pid).await, "0");
        // The longest wait is a setting.
        session.run("SET locktop.max_clock_wait = '10ms'").await;
        session.ask(&ahead(900)).await;
        assert!(session.refused(ID).await.starts_with("55000"), "{version}");
        // Other workers are not affected.
        assert!(!session.ask("SELECT generate_snowflake_id(2)").await.is_empty());
    }
}

#[tokio::test]
async fn the_next_one_waits_for_the_commit_and_a_rolled_back_id_is_not_given_again() {
    for version in versions() {
        let (one, other) = generator(version).await;
        for end in ["COMMIT", "ROLLBACK"] {
            one.run("BEGIN").await;
            let first: i64 = one.ask(ID).await.parse().unwrap();
            let (second, ()) = tokio::join!(other.ask(ID), async {
                blocked(&one, other.pid).await;
                let holder =
                    format!("SELECT holder_pid = {} FROM id_generators WHERE worker_id = 1", one.pid);
                assert_eq!(one.ask(&holder).await, "t");
                one.run(end).await;
            });
            assert!(second.parse::<i64>().unwrap() > first, "{version} {end}");
        }
        // Many within a millisecond, all of them rolled back.
        let mut seen = HashSet::new();
        for _ in 0..200 {
            let id = one.ask(&format!("BEGIN; {ID}; ROLLBACK")).await;
            assert!(seen.insert(id), "{version}");
        }
        // A snapshot from before another's commit is an error, and not an id twice.
        one.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM id_generator").await;
        other.ask(ID).await;
        assert!(one.refused(ID).await.starts_with("40001"), "{version}");
    }
}

/// Eight sessions on four workers, each committing a thousand ids at a time.
#[tokio::test]
async fn ids_of_a_crowd_are_different_and_grow_with_each_worker() {
    for version in versions() {
        let info = installed(version).await;
        let rounds = size(2, 125);
        let crowd = sessions(&info, 8).await;
        crowd[0].run("INSERT INTO id_generator (worker_id) SELECT generate_series(1, 4)").await;
        let tasks: Vec<_> = crowd
            .into_iter()
            .enumerate()
            .map(|(index, session)| {
                tokio::spawn(async move {
                    let worker = index % 4 + 1;
                    let mut batches = Vec::new();
                    for _ in 0..rounds {
                        let call = format!(
                            "BEGIN; SELECT generate_snowflake_id({worker}) FROM generate_series(1, 1000); COMMIT"
                        );
                        batches.push(numbers(&session.ask(&call).await));
                    }
                    (worker, batches)
                })
            })
            .collect();
        let mut batches: BTreeMap<usize, Vec<Vec<i64>>> = BTreeMap::new();
        for task in tasks {
            let (worker, more) = task.await.unwrap();
            batches.entry(worker).or_default().extend(more);
        }
        let mut seen = HashSet::new();
        for (worker, mut batches) in batches {
            // Transactions of one worker come one after the other.
            batches.sort();
            let ids: Vec<i64> = batches.concat();
            assert_eq!(ids.len(), rounds * 2000, "{version}");
            assert!(ids.is_sorted_by(|one, next| one < next), "{version}: worker {worker}");
            seen.extend(ids);
        }
        assert_eq!(seen.len(), rounds * 8000, "{version}");
    }
}
