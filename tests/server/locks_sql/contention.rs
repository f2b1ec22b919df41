//! Contention of locks, as observers see it. Other tests wait for locks on the same servers: only those in the test's own
//! database are counted here.

use super::crowd::sessions;
use super::db::{Session, ask, installed};
use super::printed::{blocked, end};
use super::support::{versions, wait_until};

const OBSERVE: &str = "SELECT observe_lock_waits()";
const SEEN: &str =
    "SELECT lock, waits_seen FROM lock_contention WHERE database = current_database() ORDER BY lock";

/// The waits in this database, as the server shows them.
const WAITING: &str = "FROM pg_locks l
    WHERE NOT l.granted AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())";

/// A session that waits for a lock until the holder releases it.
struct Waiter {
    pid: i32,
    over: tokio::task::JoinHandle<Session>,
}

impl Waiter {
    /// When this returns, it waits and the server shows since when.
    async fn start(watcher: &Session, session: Session, sql: &str) -> Self {
        let (pid, sql) = (session.pid, sql.to_owned());
        let over = tokio::spawn(async move {
            session.run(&sql).await;
            session
        });
        let since = format!(
            "SELECT count(*) FROM pg_locks WHERE NOT granted AND waitstart IS NOT NULL AND pid = {pid}"
        );
        wait_until("it to wait", async || watcher.ask(&since).await == "1").await;
        Self { pid, over }
    }

    /// Its session, once it no longer waits.
    async fn over(self) -> Session {
        self.over.await.unwrap()
    }
}

/// Observes, once no other session does.
async fn observe(session: &Session) {
    wait_until("the other observer to end", async || session.ask(OBSERVE).await != "-").await;
}

#[tokio::test]
async fn each_wait_is_counted_once_and_for_as_long_as_it_was_seen() {
    for version in versions() {
        let info = installed(version).await;
        let (holder, watcher) = (Session::open(&info).await, Session::open(&info).await);
        holder.run("SELECT pg_advisory_lock(42)").await;
        let mut waiters = Vec::new();
        for session in sessions(&info, 3).await {
            waiters.push(Waiter::start(&watcher, session, "SELECT pg_advisory_lock_shared(42)").await);
        }
        for _ in 0..3 {
            observe(&watcher).await;
        }
        assert_eq!(watcher.ask(SEEN).await, "advisory 42|3", "{version}");
        let before = watcher.ask("SELECT clock_timestamp()").await;
        observe(&watcher).await;
        // Between the waits before that observation and those after it, to the microsecond.
        let within = format!(
            "WITH own AS MATERIALIZED (SELECT clock_timestamp() AS after),
                  real AS (SELECT sum('{before}' - l.waitstart) AS low, sum(after - l.waitstart) AS high,
                                  max('{before}' - l.waitstart) AS long, max(after - l.waitstart) AS longest,
                                  min(l.waitstart) AS first, max(after) AS after {source})
             SELECT c.total_wait BETWEEN low AND high, c.longest_wait BETWEEN long AND longest, c.first_seen = first,
                    c.last_seen BETWEEN '{before}' AND after, c.longest_mode
               FROM lock_contention c CROSS JOIN real WHERE c.lock_id = 42",
            source = WAITING.replace("FROM pg_locks l", "FROM pg_locks l CROSS JOIN own"),
        );
        assert_eq!(watcher.ask(&within).await, "t|t|t|t|ShareLock", "{version}");
        let pids: Vec<String> = waiters.iter().map(|waiter| waiter.pid.to_string()).collect();
        let open = format!("SELECT count(*) FROM observed_waits WHERE pid IN ({})", pids.join(","));
        assert_eq!(watcher.ask(&open).await, "3");
        let numbers = "SELECT c.* FROM contended_locks c JOIN pg_database d ON d.oid = c.database WHERE d.datname = current_database()";
        let last = watcher.ask(numbers).await;
        holder.run("SELECT pg_advisory_unlock(42)").await;
        let mut over = Vec::new();
        for waiter in waiters {
            over.push(waiter.over().await);
        }
        observe(&watcher).await;
        assert_eq!(watcher.ask(numbers).await, last, "{version}: a wait that has ended does not grow");
        assert_eq!(watcher.ask(&open).await, "0");
        // The same session again is another wait.
        for session in &over {
            session.run("SELECT pg_advisory_unlock_all()").await;
        }
        holder.run("SELECT pg_advisory_lock(42)").await;
        let again = Waiter::start(&watcher, over.remove(0), "SELECT pg_advisory_lock(42)").await;
        observe(&watcher).await;
        assert_eq!(watcher.ask(SEEN).await, "advisory 42|4", "{version}");
        end(&watcher, holder.pid).await;
        again.over().await;
    }
}

#[tokio::test]
async fn two_observers_at_once_count_nothing_twice() {
    for version in versions() {
        let info = installed(version).await;
        let (holder, one, two) =
            (Session::open(&info).await, Session::open(&info).await, Session::open(&info).await);
        holder.run("SELECT pg_advisory_lock(1, -2)").await;
        let mut waiters = Vec::new();
        for session in sessions(&info, 2).await {
            waiters.push(Waiter::start(&one, session, "SELECT pg_advisory_lock(1, -2)").await);
        }
        one.run("BEGIN").await;
        assert_ne!(one.ask(OBSERVE).await, "-");
        assert_eq!(two.ask(OBSERVE).await, "-", "{version}: another session observes");
        one.run("ROLLBACK").await;
        assert_eq!(two.ask(SEEN).await, "", "{version}: the rollback leaves nothing");
        assert_ne!(two.ask(OBSERVE).await, "-", "it is free");
        let crowd: Vec<_> = sessions(&info, 5)
            .await
            .into_iter()
            .map(|session| {
                tokio::spawn(async move {
                    for _ in 0..20 {
                        ask(&session.connection.client, OBSERVE).await.unwrap();
                    }
                })
            })
            .collect();
        for observer in crowd {
            observer.await.unwrap();
        }
        assert_eq!(two.ask(SEEN).await, "advisory (1, -2)|2", "{version}");
        // Counted for no longer than the two have waited, although there were a hundred observations.
        let real = format!(
            "SELECT (SELECT total_wait FROM lock_contention WHERE key1 = 1 AND key2 = -2) <= (SELECT sum(clock_timestamp() - l.waitstart) {WAITING})"
        );
        assert_eq!(two.ask(&real).await, "t", "{version}");
        end(&two, holder.pid).await;
        // The first acquires it, and releases it at the end of its session; the other is next.
        let mut waiters = waiters.into_iter();
        drop(waiters.next().unwrap().over().await);
        waiters.next().unwrap().over().await;
    }
}

#[tokio::test]
async fn an_observer_that_missed_the_middle_counts_the_whole_wait_and_one_that_missed_its_end_not_more() {
    for version in versions() {
        let info = installed(version).await;
        let (holder, watcher) = (Session::open(&info).await, Session::open(&info).await);
        holder.run("CREATE TABLE public.t ()").await;
        holder.run("BEGIN; LOCK TABLE public.t").await;
        let waiter = Session::open(&info).await;
        let waiter = Waiter::start(&watcher, waiter, "SELECT FROM public.t").await;
        observe(&watcher).await;
        let first =
            watcher.ask("SELECT total_wait FROM lock_contention WHERE relation = 'public.t'::regclass").await;
        // No session observes for a while; then another one does.
        let later = format!(
            "SELECT clock_timestamp() > min(l.waitstart) + interval '{first}' * 2 + interval '0.2 s' {WAITING}"
        );
        wait_until("time to pass", async || watcher.ask(&later).await == "t").await;
        let other = Session::open(&info).await;
        observe(&other).await;
        let grown = format!(
            "SELECT lock, waits_seen, total_wait > interval '{first}' * 2, total_wait = longest_wait, longest_mode FROM lock_contention WHERE relation = 'public.t'::regclass"
        );
        assert_eq!(other.ask(&grown).await, "public.t|1|t|t|AccessShareLock", "{version}");
        let last =
            other.ask("SELECT total_wait FROM lock_contention WHERE relation = 'public.t'::regclass").await;
        // This wait ends, and the next begins, without an observation in between.
        holder.run("COMMIT").await;
        let session = waiter.over().await;
        holder.run("BEGIN; LOCK TABLE public.t").await;
        let waiter = Waiter::start(&watcher, session, "SELECT FROM public.t").await;
        observe(&watcher).await;
        let two = format!(
            "SELECT waits_seen, total_wait - interval '{last}' <= (SELECT max(clock_timestamp() - l.waitstart) {WAITING}) FROM lock_contention WHERE relation = 'public.t'::regclass"
        );
        assert_eq!(watcher.ask(&two).await, "2|t", "{version}: what it missed of the first is not guessed");
        holder.run("COMMIT").await;
        waiter.over().await;
    }
}

#[tokio::test]
async fn locks_have_names_and_rows_are_counted_by_their_table() {
    for version in versions() {
        let info = installed(version).await;
        let (holder, watcher) = (Session::open(&info).await, Session::open(&info).await);
        holder
            .run(
                "CREATE TABLE public.\"my rows\" (id int PRIMARY KEY); INSERT INTO public.\"my rows\" VALUES (1);
                 INSERT INTO scheduled_tasks (task_name, task_type) VALUES ('report', 'x');
                 INSERT INTO task_queue DEFAULT VALUES; INSERT INTO id_generator (worker_id) VALUES (3)",
            )
            .await;
        let keys = ["task_lock_key(1)", "queue_lock_key(1)", "lock_key(19529, 3)", "task_lock_key(99)"];
        holder.run("BEGIN; UPDATE public.\"my rows\" SET id = 1").await;
        holder.run("INSERT INTO public.\"my rows\" VALUES (2)").await;
        let mut waiters = Vec::new();
        let mut crowd = sessions(&info, keys.len() + 3).await;
        for key in keys {
            holder.run(&format!("SELECT pg_advisory_xact_lock({key})")).await;
            let sql = format!("SELECT pg_advisory_xact_lock({key})");
            waiters.push(Waiter::start(&watcher, crowd.remove(0), &sql).await);
        }
        // The first waits for the transaction that has the row, the second for the first.
        for _ in 0..2 {
            let update = "UPDATE public.\"my rows\" SET id = 1 WHERE id = 1";
            waiters.push(Waiter::start(&watcher, crowd.remove(0), update).await);
        }
        // A duplicate is no row that could be locked: that is for the end of the transaction alone.
        let insert = "INSERT INTO public.\"my rows\" VALUES (2) ON CONFLICT DO NOTHING";
        waiters.push(Waiter::start(&watcher, crowd.remove(0), insert).await);
        observe(&watcher).await;
        let expected = format!(
            "advisory {}|1\nid generator 3|1\nqueue item 1|1\nrows of public.\"my rows\"|2\ntask report|1",
            (0x4C54_i64 << 48) + 99
        );
        assert_eq!(watcher.ask(SEEN).await, expected, "{version}");
        let transactions = "SELECT waits_seen > 0, database FROM lock_contention WHERE lock = 'transactions'";
        assert_eq!(watcher.ask(transactions).await, "t|-", "{version}");
        let order = "SELECT total_wait >= lead(total_wait, 1, '0') OVER () FROM lock_contention";
        assert!(!watcher.ask(order).await.contains('f'), "{version}: the most first");
        blocked(&watcher, waiters[0].pid).await;
        holder.run("COMMIT").await;
        for waiter in waiters {
            waiter.over().await;
        }
    }
}

#[tokio::test]
async fn a_role_that_can_write_the_tables_observes_sessions_it_cannot_see() {
    for version in versions() {
        let info = installed(version).await;
        let (holder, watcher) = (Session::open(&info).await, Session::open(&info).await);
        let role = format!("observer_{}", watcher.pid);
        holder.run("SELECT pg_advisory_lock(7)").await;
        let waiter = Session::open(&info).await;
        let waiter = Waiter::start(&holder, waiter, "SELECT pg_advisory_lock(7)").await;
        watcher
            .run(&format!(
                "CREATE ROLE {role}; GRANT USAGE ON SCHEMA locktop TO {role};
                 GRANT SELECT ON lock_contention TO {role}; SET ROLE {role}"
            ))
            .await;
        let refused = watcher.refused(OBSERVE).await;
        assert!(refused.starts_with("42501"), "{version}: {refused}");
        watcher
            .run(&format!(
                "RESET ROLE; GRANT SELECT, INSERT, UPDATE, DELETE ON contended_locks, observed_waits TO {role}; SET ROLE {role}"
            ))
            .await;
        observe(&watcher).await;
        assert_eq!(watcher.ask(SEEN).await, "advisory 7|1", "{version}");
        watcher.run("RESET ROLE").await;
        watcher.run(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
        end(&watcher, holder.pid).await;
        waiter.over().await;
    }
}

#[tokio::test]
async fn the_oldest_locks_without_waiters_are_removed_beyond_a_limit() {
    for version in versions() {
        let info = installed(version).await;
        let (holder, watcher) = (Session::open(&info).await, Session::open(&info).await);
        watcher
            .run(
                "INSERT INTO contended_locks
                 SELECT 'advisory', 1, 0, 0, g, 1, 1, '1 s', '1 s', 'ExclusiveLock', now() - g * interval '1 day', now() - g * interval '1 day'
                   FROM generate_series(1, 50) g",
            )
            .await;
        let old = "SELECT count(*), max(objid::bigint) FROM contended_locks WHERE database = 1";
        observe(&watcher).await;
        assert_eq!(watcher.ask(old).await, "50|50", "{version}: nothing new, nothing to do");
        let before = watcher.ask("SELECT count(*) FROM contended_locks").await.parse::<i32>().unwrap();
        holder.run("SELECT pg_advisory_lock(5)").await;
        let waiter = Session::open(&info).await;
        let waiter = Waiter::start(&watcher, waiter, "SELECT pg_advisory_lock(5)").await;
        wait_until("the other observer to end", async || {
            watcher.ask(&format!("SELECT observe_lock_waits({})", before - 10)).await != "-"
        })
        .await;
        // Locks of other tests may have been added: as many fewer of these are left.
        let all = "SELECT count(*) FROM contended_locks";
        assert_eq!(watcher.ask(all).await, (before - 10).to_string(), "{version}");
        let left = watcher.ask(old).await;
        let (count, oldest) = left.split_once('|').unwrap();
        assert_eq!(count, oldest, "{version}: the newest are left");
        assert!(count.parse::<i32>().unwrap() < 40, "{version}: {left}");
        // A lock that a session waits for is not removed, and so not counted again.
        let none = Session::open(&info).await;
        let other = Waiter::start(&watcher, none, "SELECT pg_advisory_lock(6 - 1)").await;
        wait_until("the other observer to end", async || {
            watcher.ask("SELECT observe_lock_waits(0)").await != "-"
        })
        .await;
        assert_eq!(watcher.ask(SEEN).await, "advisory 5|2", "{version}");
        end(&watcher, holder.pid).await;
        drop(waiter.over().await);
        other.over().await;
    }
}
