//! Workers that are processes, a third of which are killed in the middle of their work.
//!
//! The work itself records what ran when, on a connection of its own: a procedure that commits a row in `witness` before, during and
//! after it, and holds a lock of the test meanwhile, which no second run of the item can acquire. Ends are counted by a trigger, in the
//! transaction of each end. `LOCKTOP_LONG=1`: 20 workers and 10,000 items.

use std::time::{Duration, Instant};

use locktop::clock;
use rustix::process::Signal;

use super::db::{Session, installed};
use super::process::{Process, target};
use super::support::{is_long, server, versions};

/// Items that terminate the session of their worker, and items that always fail.
const POISON: usize = 2;
const BROKEN: usize = 2;

/// Longer than a statement outlives its worker, and than a worker needs to stop.
const GRACE: &str = "4s";

const STAGE: &str = "
    CREATE SEQUENCE public.runs;
    CREATE TABLE public.witness (item bigint, run bigint, phase int, at timestamptz DEFAULT clock_timestamp());
    CREATE TABLE public.overlaps (item bigint, run bigint);
    CREATE TABLE public.ends (item bigint, attempt int, worker text, status text);
    CREATE FUNCTION public.tell_end() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO public.ends VALUES (OLD.id, OLD.attempt, OLD.worker_id, NEW.status);
        RETURN NULL;
    END $$;
    CREATE TRIGGER tell_end AFTER UPDATE ON locktop.task_queue FOR EACH ROW WHEN (OLD.status = 'processing' AND NEW.status <> 'processing')
        EXECUTE FUNCTION public.tell_end();
    CREATE PROCEDURE public.work(p_item bigint, p_seconds float8, p_what text) LANGUAGE plpgsql AS $$
    DECLARE
        v_run bigint := nextval('public.runs');
    BEGIN
        IF NOT pg_try_advisory_lock(7, p_item::int) THEN
            INSERT INTO public.overlaps VALUES (p_item, v_run);
        END IF;
        INSERT INTO public.witness VALUES (p_item, v_run, 1);
        COMMIT;
        PERFORM pg_sleep(p_seconds / 2);
        INSERT INTO public.witness VALUES (p_item, v_run, 2);
        COMMIT;
        IF p_what = 'poison' THEN
            PERFORM pg_terminate_backend(backend_pid) FROM locktop.task_queue WHERE id = p_item AND status = 'processing';
            -- Its end, when the worker hears of it.
            PERFORM pg_sleep(600);
        ELSIF p_what = 'broken' THEN
            RAISE EXCEPTION 'it never works';
        END IF;
        PERFORM pg_sleep(p_seconds / 2);
        INSERT INTO public.witness VALUES (p_item, v_run, 3);
        COMMIT;
    END $$";

/// Kills a worker that has an item: frozen first, so that it still has it when it is killed.
async fn kill(session: &Session, name: &str, worker: Process) {
    let has = format!(
        "SELECT count(*) FROM task_queue q WHERE q.status = 'processing' AND q.worker_id = '{name}' AND q.id > {POISON} + {BROKEN} AND
         EXISTS (SELECT FROM pg_stat_activity a WHERE a.pid = q.backend_pid AND a.backend_start = q.backend_start)"
    );
    let begun = clock::monotonic();
    loop {
        worker.signal(Signal::STOP);
        // A statement that it sent before may complete a moment later.
        let seen = session.ask(&has).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        if seen != "0" && session.ask(&has).await == seen {
            break;
        }
        worker.signal(Signal::CONT);
        assert!(begun.elapsed() < Duration::from_secs(60), "{name} has nothing to do");
        tokio::time::sleep(Duration::from_millis(7)).await;
    }
    worker.signal(Signal::KILL);
    worker.ended().await;
}

/// Waits until every item has ended; fails when none ends for long.
async fn all_ended(session: &Session, items: usize) -> Duration {
    let sql = "SELECT count(*) FROM task_queue WHERE status IN ('completed', 'failed')";
    let begun = clock::monotonic();
    let (mut most, mut at): (usize, Instant) = (0, begun);
    while most < items {
        let count = session.ask(sql).await.parse().unwrap();
        if count > most {
            (most, at) = (count, clock::monotonic());
        }
        assert!(at.elapsed() < Duration::from_secs(120), "only {most} of {items} have ended");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    begun.elapsed()
}

async fn numbers(session: &Session, sql: &str) -> Vec<usize> {
    session.ask(sql).await.split('|').map(|number| number.parse().unwrap()).collect()
}

async fn stage(version: u32, items: usize, seconds: f64) -> Session {
    let info = installed(version).await;
    let session = Session::open(&info).await;
    session.run(&format!("ALTER DATABASE {} SET locktop.orphan_grace = '{GRACE}'", info.dbname())).await;
    session.run(STAGE).await;
    // The special ones early, so that their attempts do not come last.
    session
        .run(&format!(
            "INSERT INTO task_queue (id, retry_delay, task_name, payload)
             SELECT n, '0', 'sql', jsonb_build_object('statement', format('CALL public.work(%s, {seconds}, %L)', n,
                 CASE WHEN n <= {POISON} THEN 'poison' WHEN n <= {POISON} + {BROKEN} THEN 'broken' ELSE 'x' END))
               FROM generate_series(1, {items}) n"
        ))
        .await;
    session
}

async fn check(session: &Session, items: usize, killed: &[String]) {
    let good = items - POISON - BROKEN;
    // None is lost: each has ended, once.
    let states = "SELECT pending, processing, completed, failed FROM queue_depth";
    assert_eq!(numbers(session, states).await, [0, 0, good, POISON + BROKEN]);
    let once = "SELECT count(*), count(DISTINCT item), count(DISTINCT q.id) FROM public.ends e
        LEFT JOIN task_queue q ON q.id = e.item AND q.attempt = e.attempt AND q.worker_id = e.worker WHERE e.status IN ('completed', 'failed')";
    assert_eq!(numbers(session, once).await, [items; 3]);
    let completed = "SELECT count(*), count(DISTINCT item) FROM public.ends WHERE status = 'completed'";
    assert_eq!(numbers(session, completed).await, [good; 2]);
    let aside = "SELECT string_agg(attempt || CASE WHEN error_message LIKE 'attempt 3 was lost%' THEN ' lost' ELSE error_message END, ',' ORDER BY id)
        FROM task_queue WHERE status = 'failed'";
    let expected = "3 lost,3 lost,3it never works (SQLSTATE P0001),3it never works (SQLSTATE P0001)";
    assert_eq!(session.ask(aside).await, expected);
    // Each completed item has a run that reached the end.
    let done = "SELECT count(DISTINCT item) FROM public.witness w JOIN task_queue q ON q.id = w.item AND q.status = 'completed' WHERE phase = 3";
    assert_eq!(numbers(session, done).await, [good]);
    // The runs of one item, as they recorded it: one after the other.
    assert_eq!(session.ask("SELECT count(*) FROM public.overlaps").await, "0", "an item was run by two");
    let crossed = "SELECT count(*) FROM (
        SELECT min(at) OVER w AS since, max(until) OVER before AS last FROM (
            SELECT item, run, min(at) AS at, max(at) AS until FROM public.witness GROUP BY item, run) r
        WINDOW w AS (PARTITION BY item, run), before AS (PARTITION BY item ORDER BY at ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) x
        WHERE last > since";
    assert_eq!(session.ask(crossed).await, "0", "the runs of an item overlap");
    // Each attempt without an end is on record, once: those of the poison, and the items of the killed workers.
    let lost = "SELECT (SELECT sum(attempt) FROM task_queue) - (SELECT count(*) FROM public.ends e JOIN task_queue q ON q.id = e.item
            WHERE e.status = 'completed' OR q.error_message LIKE 'it never%'),
        (SELECT count(*) FROM locktop_audit WHERE action IN ('requeued', 'gave_up')),
        (SELECT count(DISTINCT (item, run)) FROM public.witness WHERE item <= 2)";
    let of_killed = format!(
        "SELECT count(*), count(DISTINCT worker_id), count(*) FILTER (WHERE worker_id <> ALL ('{{{}}}'))
           FROM locktop_audit WHERE action IN ('requeued', 'gave_up') AND (lock_id & 4294967295) > {POISON}",
        killed.join(",")
    );
    let [count, names, others] = numbers(session, &of_killed).await[..] else { panic!() };
    assert!(count == names && 0 < count && count <= killed.len() && others == 0, "{count} {names} {others}");
    assert_eq!(numbers(session, lost).await, [count + 3 * POISON, count + 3 * POISON, 3 * POISON]);
    let keys = "SELECT count(*) FROM advisory_locks WHERE granted AND database = current_database()";
    assert_eq!(session.ask(keys).await, "0");
}

/// Items a second, with the wait for lost items.
async fn crowd(version: u32, workers: usize, items: usize, seconds: f64) -> f64 {
    let session = stage(version, items, seconds).await;
    let place = target(version, &session.info).await;
    let name = |index: usize| format!("w{index}");
    let begun = clock::monotonic();
    let mut running: Vec<_> =
        (0..workers).map(|index| Process::start(&name(index), &["--exit-with-stdin"], &place)).collect();
    // The last third, one after the other, while the others continue.
    let mut killed = Vec::new();
    for index in (workers - workers / 3..workers).rev() {
        kill(&session, &name(index), running.pop().unwrap()).await;
        killed.push(name(index));
    }
    all_ended(&session, items).await;
    let rate = f64::from(u32::try_from(items).unwrap()) / begun.elapsed().as_secs_f64();
    for worker in &mut running {
        worker.end_input();
    }
    for worker in running {
        let left = worker.ended().await;
        assert_eq!(left.status, Some(0), "{}", left.err);
        // Only the item that it lost with its session did not count.
        assert!(left.err.contains(" 0 released, 0 not recorded"), "{}", left.err);
    }
    check(&session, items, &killed).await;
    rate
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::print_stderr, reason = "a figure for the long run")]
async fn every_item_is_done_once_or_set_aside_when_workers_are_killed() {
    if is_long() {
        for version in versions() {
            let rate = crowd(version, 20, 10_000, 0.02).await;
            eprintln!("PostgreSQL {version}: {rate:.0} items of 20 ms a second");
        }
    } else {
        crowd(server().await.version(), 6, 300, 0.02).await;
    }
}
