//! Twenty workers at once, a third of which are terminated in the middle of their work.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use locktop::pg::conninfo::ConnInfo;

use super::crowd::{sessions, size};
use super::db::{Session, ask, installed};
use super::support::{versions, wait_until};
use tokio::task::JoinHandle;

const WORKERS: usize = 20;
/// The workers that are terminated while they work on an item; the others continue to the end.
const KILLED: usize = 7;
/// Items that terminate every session that works on them.
const POISON: usize = 2;

/// Finishes that counted, written in the transaction of the finish.
const WITNESS: &str = "CREATE TABLE public.done (item bigint, attempt int, worker text);
    CREATE FUNCTION public.finish_and_tell(p_item bigint, p_worker text, p_attempt int) RETURNS boolean LANGUAGE plpgsql AS $$
    BEGIN
        IF NOT locktop.finish_queue_item(p_item, p_worker, p_attempt, 'completed') THEN
            RETURN false;
        END IF;
        INSERT INTO public.done VALUES (p_item, p_attempt, p_worker);
        RETURN true;
    END $$";

/// The state that the workers share.
#[derive(Default)]
struct Shared {
    overlaps: AtomicUsize,
    /// Workers below this number are to be terminated.
    doomed: AtomicUsize,
}

impl Shared {
    fn is_doomed(&self, worker: &str) -> bool {
        worker[1..].parse::<usize>().unwrap() < self.doomed.load(Ordering::Relaxed)
    }
}

/// One item, from claim to finish. An error when the session has ended.
///
/// While it runs the session has a lock of the test's own, (7, item), which it must get at once: two runs of an item at one time would
/// not both have it. The server frees it when the session ends.
async fn run_one(session: &Session, worker: &str, shared: &Shared) -> Result<bool, String> {
    let client = &session.connection.client;
    let claimed =
        ask(client, &format!("SELECT task_id, attempt, task_name FROM claim_queue_items('{worker}')"))
            .await?;
    let columns: Vec<&str> = claimed.split('|').collect();
    let [id, attempt, name] = columns[..] else { return Ok(false) };
    if ask(client, &format!("SELECT pg_try_advisory_lock(7, {id}::int)")).await? != "t" {
        shared.overlaps.fetch_add(1, Ordering::Relaxed);
    }
    let work = match name {
        "poison" => "SELECT pg_terminate_backend(pg_backend_pid())",
        _ if shared.is_doomed(worker) => "SELECT pg_sleep(250)",
        _ => "SELECT pg_sleep(0.001)",
    };
    ask(client, work).await?;
    let finished =
        ask(client, &format!("SELECT public.finish_and_tell({id}, '{worker}', {attempt})")).await?;
    assert_eq!(finished, "t", "it had the item {id} all the time");
    ask(client, &format!("SELECT pg_advisory_unlock(7, {id}::int)")).await?;
    Ok(true)
}

/// Works until everything has ended; opens a new session when an item has terminated its session, and stops
/// when the test has.
async fn work(info: ConnInfo, mut session: Session, index: usize, shared: Arc<Shared>) {
    let worker = format!("w{index}");
    loop {
        match run_one(&session, &worker, &shared).await {
            Ok(true) => {}
            Ok(false) => {
                // Nothing to do: requeue the items that others have lost.
                let left = "SELECT count(*) FROM task_queue WHERE status IN ('pending', 'processing')";
                session.run(&format!("SELECT requeue_lost_items('{worker}')")).await;
                if session.ask(left).await == "0" {
                    return;
                }
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
            Err(_) if shared.is_doomed(&worker) => return,
            Err(_) => session = Session::open(&info).await,
        }
    }
}

/// Terminates the session of a worker while it works on an item, unless an item does that, or no work is
/// left.
async fn kill(watcher: &Session, index: usize, worker: &JoinHandle<()>) -> bool {
    let kill = format!(
        "SELECT pg_terminate_backend(backend_pid) FROM task_queue WHERE status = 'processing' AND worker_id = 'w{index}'
            AND task_name <> 'poison' AND started_at < clock_timestamp() - interval '50 milliseconds'"
    );
    let mut killed = false;
    wait_until("a worker to be at work", async || {
        killed = watcher.ask(&kill).await == "t";
        killed || worker.is_finished()
    })
    .await;
    killed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_item_has_one_finish_or_was_given_up_after_its_attempts() {
    for version in versions() {
        let info = installed(version).await;
        let items = size(600, 10_000);
        let watcher = Session::open(&info).await;
        watcher.run(WITNESS).await;
        // A worker that is terminated here does no more work.
        watcher.run(&format!("ALTER DATABASE {} SET locktop.orphan_grace = '0'", info.dbname())).await;
        watcher
            .run(&format!(
                "INSERT INTO task_queue (task_name) SELECT CASE WHEN g % {} = 0 THEN 'poison' ELSE 'x' END FROM generate_series(1, {items}) g",
                items / POISON
            ))
            .await;
        let shared = Arc::new(Shared::default());
        let workers: Vec<_> = sessions(&info, WORKERS)
            .await
            .into_iter()
            .enumerate()
            .map(|(index, session)| tokio::spawn(work(info.clone(), session, index, Arc::clone(&shared))))
            .collect();
        // At once, or the others would be done before the last of them.
        shared.doomed.store(KILLED, Ordering::Relaxed);
        let mut killed = 0;
        for (index, worker) in workers.iter().enumerate().take(KILLED) {
            killed += usize::from(kill(&watcher, index, worker).await);
        }
        for worker in workers {
            worker.await.unwrap();
        }
        assert_eq!(shared.overlaps.load(Ordering::Relaxed), 0, "{version}: two runs of one item at a time");
        let states = "SELECT pending, processing, completed, failed FROM queue_depth";
        assert_eq!(watcher.ask(states).await, format!("0|0|{}|{POISON}", items - POISON), "{version}");
        let finishes = "SELECT count(*), count(DISTINCT item) FROM public.done";
        assert_eq!(watcher.ask(finishes).await, format!("{0}|{0}", items - POISON), "{version}");
        let same = "SELECT count(*) FROM public.done JOIN task_queue ON id = item AND status = 'completed' AND task_queue.attempt = done.attempt
            AND worker_id = worker";
        assert_eq!(watcher.ask(same).await, (items - POISON).to_string(), "{version}");
        assert_eq!(
            watcher.ask("SELECT DISTINCT task_name, attempt FROM task_queue WHERE status = 'failed'").await,
            "poison|3",
            "{version}"
        );
        // Each attempt that did not finish is on record, once.
        let lost = "SELECT (SELECT sum(attempt) FROM task_queue) - (SELECT count(*) FROM public.done),
            (SELECT count(*) FROM locktop_audit WHERE action IN ('requeued', 'gave_up')),
            (SELECT count(*) FROM locktop_audit WHERE action = 'gave_up')";
        let counts = watcher.ask(lost).await;
        let numbers: Vec<usize> = counts.split('|').map(|number| number.parse().unwrap()).collect();
        assert_eq!((numbers[0], numbers[2]), (numbers[1], POISON), "{version}");
        assert!(killed > 0 && numbers[0] == POISON * 3 + killed, "{version}: {killed} killed, {counts}");
        assert_eq!(
            watcher
                .ask("SELECT count(*) FROM advisory_locks WHERE granted AND database = current_database()")
                .await,
            "0",
            "{version}"
        );
    }
}
