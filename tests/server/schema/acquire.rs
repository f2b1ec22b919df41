//! Taking tasks.

use super::db::{DUE, Session, installed};
use super::support::versions;

const KEY: i64 = 0x4C54 << 48;

#[tokio::test]
async fn one_session_gets_a_task_and_no_other_nor_itself_again() {
    for version in versions() {
        let info = installed(version).await;
        let (worker, other) = (Session::open(&info).await, Session::open(&info).await);
        let id = worker.ask(DUE).await;
        assert_eq!(worker.ask(&format!("SELECT try_acquire_task_lock({id}, 'worker-001')")).await, "t");
        for session in [&worker, &other] {
            assert_eq!(session.ask(&format!("SELECT try_acquire_task_lock({id}, 'worker-002')")).await, "f");
            assert_eq!(session.ask("SELECT * FROM worker_fetch_and_execute_task('w')").await, "-|-|-|f");
        }
        let row = "SELECT task_id, worker_id, status, attempt, backend_pid, lock_id FROM task_execution_log";
        let key = KEY + id.parse::<i64>().unwrap();
        let expected = format!("{id}|worker-001|running|1|{}|{key}", worker.pid);
        assert_eq!(other.ask(row).await, expected, "{version}");
        assert_eq!(other.ask("SELECT get_task_lock_id('report')").await, key.to_string());
        // Once is enough: the refused attempts did not stack.
        assert_eq!(worker.ask(&format!("SELECT pg_advisory_unlock({key})")).await, "t");
        assert_eq!(other.ask(&format!("SELECT pg_try_advisory_lock({key})")).await, "t");
    }
}

#[tokio::test]
async fn a_session_that_has_the_bare_key_does_not_start_with_it() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        let id = session.ask(DUE).await;
        session.run("SELECT pg_advisory_lock(get_task_lock_id('report'))").await;
        assert_eq!(session.ask(&format!("SELECT try_acquire_task_lock({id}, 'w')")).await, "f", "{version}");
        assert_eq!(session.ask("SELECT count(*) FROM task_execution_log").await, "0");
        assert_eq!(
            session
                .ask(&format!("SELECT task_id = {id}, pid = pg_backend_pid() FROM leaked_task_locks"))
                .await,
            ""
        );
        let leaked = format!("SELECT task_id = {id}, pid = {} FROM leaked_task_locks", session.pid);
        assert_eq!(Session::open(&info).await.ask(&leaked).await, "t|t", "idle outside a transaction");
        assert_eq!(session.ask("SELECT pg_advisory_unlock(get_task_lock_id('report')), pg_advisory_unlock(get_task_lock_id('report'))").await, "t|f");
    }
}

/// A statement of a worker that lost the task's key still runs in another session.
#[tokio::test]
async fn a_task_is_not_acquired_while_its_statement_still_runs() {
    for version in versions() {
        let info = installed(version).await;
        let (worker, other) = (Session::open(&info).await, Session::open(&info).await);
        let id = worker.ask(DUE).await;
        let key = (0x4C57 << 48) + id.parse::<i64>().unwrap();
        assert_eq!(worker.ask(&format!("SELECT statement_lock_key({id})")).await, key.to_string());
        assert!(worker.refused("SELECT statement_lock_key(-1)").await.starts_with("22003 "));
        other.run(&format!("SELECT pg_advisory_lock({key})")).await;
        let taken = "SELECT count(*) FROM fetch_tasks('w')";
        assert_eq!(worker.ask(taken).await, "0", "{version}");
        assert_eq!(worker.ask(&format!("SELECT try_acquire_task_lock({id}, 'w')")).await, "f");
        let held = "SELECT count(*) FROM advisory_locks WHERE database = current_database()";
        assert_eq!(worker.ask(held).await, "1", "{version}: that of the other session");
        other.run(&format!("SELECT pg_advisory_unlock({key})")).await;
        assert_eq!(worker.ask(taken).await, "1", "{version}");
        assert_eq!(worker.ask(held).await, "1", "{version}: that of the task, not of a statement");
    }
}

/// A fetch does not read all locks to find those of its own session: no other session can run the task, which is what counts.
#[tokio::test]
async fn a_fetch_skips_tasks_locked_by_others_but_not_by_its_own_session() {
    for version in versions() {
        let info = installed(version).await;
        let (worker, stranger) = (Session::open(&info).await, Session::open(&info).await);
        worker.ask(DUE).await;
        worker
            .run(
                "INSERT INTO scheduled_tasks (task_name, task_type, next_run_at) VALUES ('next', 'x', now())",
            )
            .await;
        let lock = "SELECT pg_advisory_lock(get_task_lock_id('report'))";
        let fetch = "SELECT task_name FROM fetch_tasks('w', 9)";
        stranger.run(lock).await;
        assert_eq!(worker.ask(fetch).await, "next", "{version}");
        assert_eq!(worker.ask(fetch).await, "");
        let held = "SELECT task_id, pid FROM advisory_locks WHERE database = current_database() ORDER BY 1";
        let expected = format!("1|{}\n2|{}", stranger.pid, worker.pid);
        assert_eq!(worker.ask(held).await, expected, "the failed attempt leaves nothing");
        assert_eq!(stranger.ask(fetch).await, "report");
        assert_eq!(worker.ask(fetch).await, "");
        assert_eq!(stranger.ask("SELECT try_release_task_lock(1, 'w', 'completed')").await, "t");
        assert_eq!(worker.ask(held).await, expected, "the bare lock is as it was");
        stranger.run("SELECT pg_advisory_unlock(get_task_lock_id('report'))").await;
        assert_eq!(worker.ask(held).await, format!("2|{}", worker.pid));
    }
}

/// Without a heartbeat, the key decides.
#[tokio::test]
async fn a_running_task_without_heartbeats_is_skipped_if_its_key_is_held() {
    for version in versions() {
        let info = installed(version).await;
        let (silent, other) = (Session::open(&info).await, Session::open(&info).await);
        // The server is young, and with a grace nothing would be lost yet.
        for session in [&silent, &other] {
            session.run("SET locktop.orphan_grace = '0'").await;
        }
        silent
            .run(
                "INSERT INTO scheduled_tasks (task_name, task_type, next_run_at)
                 SELECT 'task ' || n, 'x', now() - n * interval '1 minute' FROM generate_series(1, 5) n",
            )
            .await;
        assert_eq!(
            silent.ask("SELECT task_name FROM fetch_tasks('s', 3)").await,
            "task 5\ntask 4\ntask 3",
            "{version}"
        );
        silent
            .run("UPDATE task_execution_log SET started_at = now() - interval '1 hour', heartbeat_at = NULL")
            .await;
        silent.run("SELECT pg_advisory_unlock(lock_id) FROM task_execution_log WHERE task_id = 4").await;
        // Only the task with the free key.
        assert_eq!(other.ask("SELECT task_name, attempt FROM fetch_tasks('o')").await, "task 4|2");
        assert_eq!(silent.ask("SELECT task_name FROM fetch_tasks('s')").await, "task 2", "nor its own again");
        assert_eq!(other.ask("SELECT task_name FROM fetch_tasks('o', 9)").await, "task 1");
        assert_eq!(
            other
                .ask("SELECT task_id, count(*) FROM task_execution_log WHERE status = 'running' GROUP BY 1 HAVING count(*) > 1")
                .await,
            ""
        );
    }
}

#[tokio::test]
async fn only_a_task_that_is_due_and_enabled_is_taken() {
    for version in versions() {
        let session = Session::open(&installed(version).await).await;
        let id = session.ask(DUE).await;
        let acquire = format!("SELECT try_acquire_task_lock({id}, 'w')");
        for change in [
            "next_run_at = clock_timestamp() + interval '1 minute'",
            "next_run_at = NULL",
            "is_enabled = false, next_run_at = now()",
            "is_enabled = NULL",
        ] {
            session.run(&format!("UPDATE scheduled_tasks SET {change}")).await;
            assert_eq!(session.ask(&acquire).await, "f", "{version}: {change}");
            assert_eq!(
                session.ask("SELECT count(*) FROM advisory_locks WHERE database = current_database()").await,
                "0",
                "{change}"
            );
        }
        session.run("UPDATE scheduled_tasks SET is_enabled = true").await;
        assert_eq!(session.ask(&acquire).await, "t");
        assert!(
            session.refused("SELECT try_acquire_task_lock(999, 'w')").await.contains("there is no task 999")
        );
        assert!(
            session.refused("SELECT try_acquire_task_lock(-1, 'w')").await.contains("id -1 has no lock key")
        );
        assert!(session.refused("SELECT get_task_lock_id('x')").await.contains("no task named \"x\""));
        assert_eq!(
            session.ask("SELECT task_lock_key(281474976710655)").await,
            (KEY + 0xFFFF_FFFF_FFFF).to_string()
        );
        assert!(session.refused("SELECT task_lock_key(281474976710656)").await.starts_with("22003 "));
    }
}

/// An error in between leaves the key free: a session lock would survive the rollback.
#[tokio::test]
async fn an_error_leaves_nothing_held() {
    for version in versions() {
        let session = Session::open(&installed(version).await).await;
        let id = session.ask(DUE).await;
        assert!(
            session.refused(&format!("SELECT try_acquire_task_lock({id}, NULL)")).await.starts_with("23502 ")
        );
        assert_eq!(
            session.ask("SELECT count(*) FROM advisory_locks WHERE database = current_database()").await,
            "0",
            "{version}"
        );
    }
}

/// Makes every start of the task "bad" fail.
const BAD: &str = "
CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM locktop.scheduled_tasks t WHERE t.id = NEW.task_id AND t.task_name = 'bad') THEN
        RAISE EXCEPTION 'it is bad';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER refuse BEFORE INSERT ON locktop.task_execution_log FOR EACH ROW EXECUTE FUNCTION public.refuse();
INSERT INTO locktop.scheduled_tasks (task_name, task_type, next_run_at)
SELECT name, 'x', clock_timestamp() - make_interval(mins => age)
  FROM (VALUES ('mine', 5), ('good', 3), ('bare', 2), ('bad', 1)) t (name, age)";

/// After an error at a later one of several tasks, the keys of those before it stay, and stack up.
#[tokio::test]
async fn only_the_keys_left_by_a_failed_fetch_are_released() {
    for version in versions() {
        let info = installed(version).await;
        let (worker, other) = (Session::open(&info).await, Session::open(&info).await);
        worker.run(BAD).await;
        assert_eq!(worker.ask("SELECT task_name FROM fetch_tasks('w')").await, "mine", "{version}");
        for _ in 0..3 {
            let error = worker.refused("SELECT * FROM fetch_tasks('w', 9)").await;
            assert!(error.ends_with("it is bad"), "{error}");
        }
        let held = "SELECT t.task_name FROM advisory_locks l JOIN scheduled_tasks t ON t.id = l.task_id ORDER BY t.id";
        assert_eq!(other.ask(held).await, "mine\ngood\nbare", "{version}");
        assert_eq!(other.ask("SELECT try_acquire_task_lock(2, 'o')").await, "f", "and no session runs them");
        let bad = "SELECT pg_advisory_lock(get_task_lock_id('bad'))";
        other.run(bad).await;
        worker.run("SELECT pg_advisory_lock(42)").await;
        let bare =
            "SELECT release_idle_task_keys(ARRAY(SELECT id FROM scheduled_tasks WHERE task_name = 'bare'))";
        assert_eq!(worker.ask(bare).await, "3", "{version}");
        assert_eq!(
            other.ask(held).await,
            "mine\nbare\nbad",
            "tasks in use stay, and those of other sessions"
        );
        // Held for the transaction, it cannot be released, and is not tried forever.
        worker.run("BEGIN; SELECT pg_advisory_xact_lock(get_task_lock_id('good'))").await;
        assert_eq!(worker.ask("SELECT release_idle_task_keys()").await, "3");
        worker.run("COMMIT").await;
        assert_eq!(other.ask(held).await, "mine\nbad");
        assert_eq!(worker.ask("SELECT release_idle_task_keys(NULL)").await, "0");
        assert_eq!(worker.ask("SELECT pg_advisory_unlock(42)").await, "t", "a number of another use");
        assert_eq!(other.ask("SELECT task_name FROM fetch_tasks('o', 2)").await, "good\nbare");
        assert_eq!(worker.ask("SELECT try_release_task_lock(task_id, 'w', 'completed') FROM task_execution_log WHERE worker_id = 'w'").await, "t");
    }
}

#[tokio::test]
async fn a_log_row_that_is_locked_keeps_no_other_task_from_being_taken() {
    for version in versions() {
        let info = installed(version).await;
        let (worker, other) = (Session::open(&info).await, Session::open(&info).await);
        worker
            .run(
                "INSERT INTO scheduled_tasks (task_name, task_type, next_run_at)
                 SELECT name, 'x', clock_timestamp() - make_interval(mins => age)
                   FROM (VALUES ('lost', 3), ('before', 4), ('after', 1)) t (name, age)",
            )
            .await;
        worker.run("SET locktop.orphan_grace = '0'; SET lock_timeout = '100ms'").await;
        let orphan = "SELECT try_acquire_task_lock(1, 'l'); SELECT pg_advisory_unlock_all()";
        other.run(orphan).await;
        for lock in
            ["SELECT FROM task_execution_log FOR UPDATE", "UPDATE task_execution_log SET heartbeat_at = NULL"]
        {
            other.run(&format!("BEGIN; {lock}")).await;
            let fetch = "SELECT task_name FROM fetch_tasks('w', 9)";
            assert_eq!(worker.ask(fetch).await, "before\nafter", "{version} {lock}");
            other.run("ROLLBACK").await;
            assert_eq!(worker.ask(fetch).await, "lost", "{version} {lock}");
            worker.run("DELETE FROM task_execution_log; SELECT pg_advisory_unlock_all()").await;
            other.run(orphan).await;
        }
        other.run("BEGIN; SELECT FROM task_execution_log FOR UPDATE").await;
        assert_eq!(worker.ask("SELECT try_acquire_task_lock(1, 'w')").await, "f", "{version}: at once");
    }
}

#[tokio::test]
async fn tasks_are_taken_by_priority_and_held_ones_are_skipped() {
    for version in versions() {
        let info = installed(version).await;
        let (first, second) = (Session::open(&info).await, Session::open(&info).await);
        first
            .run(
                "INSERT INTO scheduled_tasks (task_name, task_type, priority, next_run_at, is_enabled, payload)
                 SELECT name, 'sleep', priority, clock_timestamp() - make_interval(secs => age), enabled, '{\"seconds\": 2}'
                   FROM (VALUES ('low old', 1, 90, true), ('high new', 5, 10, true), ('high old', 5, 20, true),
                                ('off', 9, 99, false), ('later', 9, -99, true)) AS t (name, priority, age, enabled)",
            )
            .await;
        let fetch = "SELECT task_name, attempt, max_attempts, timeout_seconds, payload->>'seconds' FROM fetch_tasks('w')";
        assert_eq!(first.ask(fetch).await, "high old|1|3|1800|2", "{version}");
        assert_eq!(second.ask(fetch).await, "high new|1|3|1800|2");
        assert_eq!(
            first.ask("SELECT task_name, acquired FROM worker_fetch_and_execute_task('w')").await,
            "low old|t"
        );
        assert_eq!(second.ask(fetch).await, "");
        for session in [&first, &second] {
            session.run("SELECT pg_advisory_unlock_all()").await;
        }
        first.run("DELETE FROM task_execution_log").await;
        // A key that is held without an execution counts too; so does a row that another session has locked.
        second.run("SELECT pg_advisory_lock(get_task_lock_id('high old'))").await;
        second.run("BEGIN; SELECT FROM scheduled_tasks WHERE task_name = 'high new' FOR UPDATE").await;
        assert_eq!(
            first.ask("SELECT task_name, acquired FROM try_acquire_multiple_tasks('w')").await,
            "low old|t"
        );
        second.run("ROLLBACK; SELECT pg_advisory_unlock_all()").await;
        assert_eq!(
            first.ask("SELECT task_name, acquired FROM try_acquire_multiple_tasks('w')").await,
            "high old|t\nhigh new|t"
        );
    }
}

/// A due task is found below a thousand priorities that have none, without reading each of them.
#[tokio::test]
async fn priorities_with_nothing_due_are_passed_over() {
    for version in versions() {
        let session = Session::open(&installed(version).await).await;
        session
            .run(
                "INSERT INTO scheduled_tasks (task_name, task_type, priority, next_run_at)
                 SELECT 'later ' || n, 'x', n, 'infinity' FROM generate_series(1, 1000) n;
                 INSERT INTO scheduled_tasks (task_name, task_type, priority, next_run_at)
                 SELECT 'due at ' || n, 'x', n, now() FROM unnest('{-3, 10, 400, 999, 2000}'::int[]) n",
            )
            .await;
        // The counts that are not reported to the statistics yet.
        let scans = "SELECT idx_scan FROM pg_stat_xact_user_tables WHERE relid = 'scheduled_tasks'::regclass";
        session.run("BEGIN").await;
        let before = session.ask(scans).await.parse::<i64>().unwrap();
        assert_eq!(
            session.ask("SELECT task_name FROM fetch_tasks('w', 9)").await,
            "due at 2000\ndue at 999\ndue at 400\ndue at 10\ndue at -3",
            "{version}"
        );
        let count = session.ask(scans).await.parse::<i64>().unwrap() - before;
        assert!((1..500).contains(&count), "{version}: {count}");
        session.run("COMMIT").await;
    }
}

#[tokio::test]
async fn many_at_once_get_each_task_once() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        session
            .run(
                "INSERT INTO scheduled_tasks (task_name, task_type, priority, next_run_at)
                  SELECT 'task ' || n, 'x', n % 3, clock_timestamp() FROM generate_series(1, 60) n",
            )
            .await;
        let workers = (0..8).map(|number| {
            let info = info.clone();
            tokio::spawn(async move {
                let worker = Session::open(&info).await;
                let mut count = 0;
                while worker
                    .ask(&format!("SELECT acquired FROM worker_fetch_and_execute_task('w{number}')"))
                    .await
                    == "t"
                {
                    count += 1;
                }
                (count, worker)
            })
        });
        let mut counts = Vec::new();
        let mut open = Vec::new();
        for worker in workers.collect::<Vec<_>>() {
            let (count, worker) = worker.await.unwrap();
            counts.push(count);
            open.push(worker);
        }
        // One that found only rows being taken has stopped early: other sessions took those.
        assert_eq!(counts.iter().sum::<i32>(), 60, "{version}: {counts:?}");
        let each =
            "SELECT count(*), count(DISTINCT task_id), count(DISTINCT lock_id) FROM task_execution_log";
        assert_eq!(session.ask(each).await, "60|60|60");
        assert_eq!(session.ask("SELECT count(*) FROM task_locks WHERE granted").await, "60");
        drop(open);
    }
}

#[tokio::test]
async fn an_acquire_closes_the_execution_of_a_lost_session() {
    for version in versions() {
        let info = installed(version).await;
        let (lost, worker) = (Session::open(&info).await, Session::open(&info).await);
        let id = lost.ask(DUE).await;
        let acquire = format!("SELECT try_acquire_task_lock({id}, 'w')");
        assert_eq!(lost.ask(&acquire).await, "t");
        lost.run("SELECT pg_advisory_unlock_all()").await;
        // Its worker may still be stopping: a fetch leaves it alone for a while, an acquire by id gets it.
        assert_eq!(worker.ask("SELECT * FROM fetch_tasks('v')").await, "", "{version}");
        worker.run("SET locktop.orphan_grace = '0'").await;
        assert_eq!(worker.ask(&format!("SELECT task_id = {id}, attempt FROM fetch_tasks('v')")).await, "t|2");
        assert_eq!(
            worker.ask("SELECT status, recovered_by, worker_id FROM task_execution_log ORDER BY id").await,
            "failed|v|w\nrunning|-|v"
        );
        assert_eq!(worker.ask("SELECT action, actor, worker_id FROM locktop_audit").await, "superseded|v|w");
        // A task that ends every worker is given up after the last attempt.
        worker.run("UPDATE scheduled_tasks SET max_attempts = 2; SELECT pg_advisory_unlock_all()").await;
        assert_eq!(worker.ask(&acquire).await, "f");
        assert_eq!(
            worker.ask("SELECT attempts, next_run_at > now(), (SELECT count(*) FROM task_execution_log WHERE status = 'running') FROM scheduled_tasks").await,
            "0|t|0"
        );
    }
}
