//! locktop's rate limit.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::crowd::{sessions, size};
use super::db::{Session, installed};
use super::printed::{blocked, keys};
use super::support::versions;

async fn pair(version: u32) -> (Session, Session) {
    let info = installed(version).await;
    (Session::open(&info).await, Session::open(&info).await)
}

#[tokio::test]
async fn requests_up_to_the_limit_pass_and_no_more_until_the_window_ends() {
    for version in versions() {
        let (one, other) = pair(version).await;
        let call = "SELECT check_rate_limit('k', 2, 60)";
        let answers =
            [one.ask(call).await, other.ask(call).await, one.ask(call).await, other.ask(call).await];
        assert_eq!(answers, ["t", "t", "f", "f"], "{version}");
        assert_eq!(one.ask("SELECT check_rate_limit('another', 1, 60)").await, "t");
        assert_eq!(one.ask("SELECT count, is_live, is_full FROM rate_limits WHERE key = 'k'").await, "2|t|t");
        let taken = "SELECT allowed, count, window_end - window_start FROM take_rate_limit('k', 2, 60)";
        assert_eq!(one.ask(taken).await, "f|2|00:01:00");
        // A minute later.
        one.run("UPDATE rate_limit SET window_start = window_start - interval '1 minute', expires_at = expires_at - interval '1 minute'").await;
        assert_eq!(other.ask("SELECT is_live, is_full FROM rate_limits WHERE key = 'k'").await, "f|f");
        assert_eq!(other.ask(taken).await, "t|1|00:01:00", "{version}");
        // A limit of none, and of more.
        assert_eq!(one.ask("SELECT check_rate_limit('none', 0, 60)").await, "f");
        assert_eq!(one.ask("SELECT count(*) FROM rate_limit WHERE key = 'none'").await, "0");
        assert_eq!(one.ask("SELECT check_rate_limit('k', 1, 60), check_rate_limit('k', 3, 60)").await, "f|t");
    }
}

#[tokio::test]
async fn a_window_from_the_future_ends() {
    for version in versions() {
        let (one, _) = pair(version).await;
        let call = "SELECT check_rate_limit('k', 1, 60)";
        assert_eq!(one.ask(call).await, "t");
        // The clock was put back: by less than a window no request gets more; by more, that window was on another clock.
        for (ahead, answer) in [("30 seconds", "f"), ("1 hour", "t")] {
            one.run(&format!("UPDATE rate_limit SET window_start = clock_timestamp() + interval '{ahead}'"))
                .await;
            assert_eq!(one.ask(call).await, answer, "{version} {ahead}");
        }
        assert_eq!(one.ask(call).await, "f");
    }
}

#[tokio::test]
async fn an_uncommitted_request_is_waited_for_and_a_rollback_gives_it_back() {
    for version in versions() {
        let (one, other) = pair(version).await;
        let call = "SELECT check_rate_limit('k', 1, 60)";
        for (end, second) in [("ROLLBACK", "t"), ("COMMIT", "f")] {
            one.run("TRUNCATE rate_limit").await;
            one.run("BEGIN").await;
            assert_eq!(one.ask(call).await, "t");
            let (answer, ()) = tokio::join!(other.ask(call), async {
                blocked(&one, other.pid).await;
                one.run(end).await;
            });
            assert_eq!(answer, second, "{version} {end}");
        }
    }
}

/// A refused request only reads: the row may be locked, and nothing has to be flushed at the end.
#[tokio::test]
async fn a_refused_request_neither_locks_nor_writes() {
    for version in versions() {
        let (one, other) = pair(version).await;
        one.run("SELECT check_rate_limit('k', 1, 60)").await;
        one.run("BEGIN; SELECT * FROM rate_limit FOR UPDATE").await;
        other.run("SET lock_timeout = '50ms'; BEGIN").await;
        let calls =
            ["SELECT check_rate_limit('k', 1, 60)", "SELECT allowed FROM take_rate_limit('k', 1, 60)"];
        for call in calls {
            assert_eq!(other.ask(call).await, "f", "{version}");
        }
        // Before 15 every counter of refusals is logged, once in 32 times.
        if version >= 15 {
            assert_eq!(other.ask("SELECT pg_current_xact_id_if_assigned()").await, "-", "{version}");
        }
    }
}

/// Each request brings its own limit, with either function.
#[tokio::test]
async fn both_functions_count_in_one_window() {
    for version in versions() {
        let (one, _) = pair(version).await;
        let (mut answers, mut expected) = (Vec::new(), Vec::new());
        for (call, answer) in [
            ("check_rate_limit('k', 3, 60)", "t"),
            ("take_rate_limit('k', 3, 60)", "2"),
            ("check_rate_limit('k', 3, 60)", "t"),
            ("check_rate_limit('k', 3, 60)", "f"),
            ("take_rate_limit('k', 4, 60)", "4"),
            ("check_rate_limit('k', 4, 60)", "f"),
        ] {
            let column = if call.starts_with('t') { "count" } else { "t" };
            answers.push(one.ask(&format!("SELECT {column} FROM {call} t")).await);
            expected.push(answer);
        }
        assert_eq!(answers, expected, "{version}");
        let row = "SELECT count, max_requests, expires_at - window_start FROM rate_limit";
        assert_eq!(one.ask(row).await, "4|4|00:01:00");
        assert_eq!(one.ask("SELECT check_rate_limit('k', 9, 3600)").await, "t");
        assert_eq!(one.ask(row).await, "5|9|01:00:00", "{version}");
    }
}

#[tokio::test]
async fn an_error_in_the_middle_leaks_nothing() {
    for version in versions() {
        let (one, other) = pair(version).await;
        for wrong in [
            format!("SELECT check_rate_limit('{}', 2, 60)", "k".repeat(101)),
            "SELECT check_rate_limit(NULL, 2, 60)".to_owned(),
            "SELECT check_rate_limit('k', -1, 60)".to_owned(),
            "SELECT check_rate_limit('k', 1, 0)".to_owned(),
            "SELECT check_rate_limit('k', 2, 60), 1 / (count - 1) FROM rate_limits".to_owned(),
        ] {
            one.run("TRUNCATE rate_limit; INSERT INTO rate_limit (key, count) VALUES ('k', 1)").await;
            one.refused(&wrong).await;
            assert_eq!(keys(&other, one.pid).await, "0", "{version} {wrong}");
            assert_eq!(other.ask("SELECT key, count FROM rate_limit").await, "k|1", "{version} {wrong}");
            other.run("SET lock_timeout = '5s'").await;
            assert_eq!(other.ask("SELECT check_rate_limit('k', 2, 60)").await, "t");
        }
    }
}

#[tokio::test]
async fn keys_of_one_hash_are_different_keys() {
    for version in versions() {
        let (one, other) = pair(version).await;
        let collision =
            "SELECT min(k), max(k) FROM (SELECT 'user:' || g AS k FROM generate_series(1, 300000) g) s
            GROUP BY hashtext(k) HAVING count(*) > 1 ORDER BY 1 LIMIT 1";
        let found = one.ask(collision).await;
        let (first, second) = found.split_once('|').unwrap();
        one.run(&format!("BEGIN; SELECT check_rate_limit('{first}', 1, 60)")).await;
        assert_eq!(other.ask(&format!("SELECT check_rate_limit('{second}', 1, 60)")).await, "t", "{version}");
    }
}

#[tokio::test]
async fn old_windows_are_removed_by_an_index_and_live_ones_stay() {
    for version in versions() {
        let (one, other) = pair(version).await;
        one.run(
            "INSERT INTO rate_limit (key, count, expires_at)
             SELECT 'old ' || g, 1, clock_timestamp() - interval '1 minute' FROM generate_series(1, 1000) g;
             SELECT check_rate_limit('live', 1, 60); ANALYZE rate_limit",
        )
        .await;
        // Another session has locked one of them: it is left for the next time.
        other.run("BEGIN; SELECT check_rate_limit('old 7', 9, 60)").await;
        assert_eq!(
            one.ask("SELECT purge_rate_limits(100), purge_rate_limits()").await,
            "100|899",
            "{version}"
        );
        other.run("ROLLBACK").await;
        assert_eq!(one.ask("SELECT purge_rate_limits(), (SELECT min(key) FROM rate_limit)").await, "1|live");
        let plan = one
            .ask("EXPLAIN SELECT key FROM rate_limit WHERE expires_at < now() ORDER BY expires_at LIMIT 10");
        assert!(plan.await.contains("idx_rate_limit_expires"), "{version}");
    }
}

/// Fifty sessions at once, for several windows: none of them lets through more than a hundred, as counted by the sessions.
#[tokio::test]
async fn never_101_of_100() {
    for version in versions() {
        let info = installed(version).await;
        let wanted = size(2, 10);
        let stop = Arc::new(AtomicBool::new(false));
        let refused = Arc::new(AtomicUsize::new(0));
        let crowd: Vec<_> = sessions(&info, 50)
            .await
            .into_iter()
            .map(|session| {
                let (stop, refused) = (Arc::clone(&stop), Arc::clone(&refused));
                tokio::spawn(async move {
                    let mut seen = Vec::new();
                    // The session has the row locked until the commit, so its window is the one that was counted in.
                    let call = "BEGIN; SELECT check_rate_limit('k', 100, 1);
                        SELECT window_start FROM rate_limit WHERE key = 'k'; COMMIT";
                    while !stop.load(Ordering::Relaxed) {
                        let answer = session.ask(call).await;
                        let (allowed, window) = answer.split_once('\n').unwrap();
                        if allowed.starts_with('t') {
                            seen.push(window.to_owned());
                        } else {
                            refused.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    seen
                })
            })
            .collect();
        let watcher = Session::open(&info).await;
        let mut windows = std::collections::BTreeSet::new();
        super::support::wait_until("enough full windows", async || {
            windows.insert(
                watcher.ask("SELECT window_start FROM rate_limit WHERE key = 'k' AND count = 100").await,
            );
            windows.remove("");
            windows.len() >= wanted
        })
        .await;
        stop.store(true, Ordering::Relaxed);
        let mut counted: BTreeMap<String, usize> = BTreeMap::new();
        for session in crowd {
            for window in session.await.unwrap() {
                *counted.entry(window).or_default() += 1;
            }
        }
        assert!(counted.values().all(|count| *count <= 100), "{version}: {counted:?}");
        assert!(counted.values().filter(|count| **count == 100).count() >= wanted, "{version}: {counted:?}");
        assert!(refused.load(Ordering::Relaxed) > 0, "{version}");
        // And no two windows overlap.
        let starts: Vec<&String> = counted.keys().collect();
        for pair in starts.windows(2) {
            let apart = format!(
                "SELECT '{}'::timestamptz >= '{}'::timestamptz + interval '1 second'",
                pair[1], pair[0]
            );
            assert_eq!(watcher.ask(&apart).await, "t", "{version}: {pair:?}");
        }
    }
}
