//! The statement of a task, which runs in another session than the one that holds the task's key.

use locktop::pg::conninfo::ConnInfo;
use locktop::worker::{Builtin, Options};
use rustix::process::Signal;

use super::db::{Session, installed};
use super::hand::{Worker, ended, log, no_session_is_left, task};
use super::process::{Process, target};
use super::support::{server, versions, wait_until};

/// A procedure that records every few milliseconds the session that runs it, until `public.enough` has a row.
const TICKS: &str = "CREATE TABLE public.witness (id serial, pid int DEFAULT pg_backend_pid());
     CREATE TABLE public.enough (yes bool);
     CREATE PROCEDURE public.tick() LANGUAGE plpgsql AS
       'BEGIN LOOP INSERT INTO public.witness DEFAULT VALUES; COMMIT; EXIT WHEN EXISTS (SELECT FROM public.enough);
                   PERFORM pg_sleep(0.005); END LOOP; END'";

/// Sessions that ran it while another one did.
const TOGETHER: &str = "SELECT count(*) FROM
     (SELECT pid, min(id) AS first, max(id) AS last FROM public.witness GROUP BY pid) a
     JOIN public.witness w ON w.pid <> a.pid AND w.id BETWEEN a.first AND a.last";

/// A worker is suspended while its statement continues, and the session that holds the task's key is
/// terminated: no other worker gets the task before the statement has ended too.
#[tokio::test]
async fn the_statement_of_a_suspended_worker_keeps_the_task_from_others() {
    for version in versions() {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        let name = info.dbname();
        session.run(&format!("{TICKS}; ALTER DATABASE {name} SET locktop.orphan_grace = '0'")).await;
        // Every session that polls for the task from now on takes it as soon as its key is free.
        session.run("SET locktop.orphan_grace = '0'").await;
        task(&session, "t", "sql", "'{\"statement\": \"CALL public.tick()\"}'").await;
        session.run("UPDATE scheduled_tasks SET retry_delay = '0'").await;
        let process = Process::start("sleeper", &[], &target(version, &info).await);
        wait_until("ticks", async || session.ask("SELECT count(*) > 3 FROM public.witness").await == "t")
            .await;
        process.signal(Signal::STOP);
        session.run("SELECT pg_terminate_backend(holder_pid) FROM running_tasks").await;
        wait_until("the key to be free", async || {
            session.ask("SELECT state FROM running_tasks").await == "orphan"
        })
        .await;

        let pid = session.ask("SELECT pid FROM public.witness ORDER BY id DESC LIMIT 1").await;
        assert_eq!(session.ask("SELECT count(*) FROM fetch_tasks('probe')").await, "0", "{version}");
        let recover = "SELECT f.outcome, f.holder_pid, f.detail FROM task_execution_log e, recover_execution(e.id, 'test') f";
        let detail =
            format!("its key is free, but the statement of the lost worker still runs in session {pid}");
        assert_eq!(session.ask(recover).await, format!("held|{pid}|{detail}"), "{version}");
        let options = Worker::options(&info, "other");
        let work = Builtin::new(options.info.clone(), &options.id);
        let worker = Worker::start(options, work);
        // It has polled when it reads the time of its next poll.
        let has_polled = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
                         AND application_name = 'locktop worker other' AND query LIKE '%next_due%' AND state = 'idle'";
        wait_until("the other to poll", async || session.ask(has_polled).await == "1").await;
        let last = session.ask("SELECT max(id) FROM public.witness").await;
        let more = format!("SELECT count(*) > 3 FROM public.witness WHERE id > {last} AND pid = {pid}");
        wait_until("more ticks", async || session.ask(&more).await == "t").await;
        assert_eq!(session.ask("SELECT DISTINCT pid FROM public.witness").await, pid, "{version}");

        session.run(&format!("SELECT pg_terminate_backend({pid})")).await;
        let others = format!("SELECT count(*) > 3 FROM public.witness WHERE pid <> {pid}");
        wait_until("the other to run it", async || session.ask(&others).await == "t").await;
        process.signal(Signal::CONT);
        process.wait_for("connection lost").await;
        session.run("INSERT INTO public.enough VALUES (true)").await;
        wait_until("the other to finish", async || log(&session).await.ends_with("other|completed|-")).await;
        assert_eq!(session.ask(TOGETHER).await, "0", "{version}");
        worker.quit().await;
        process.signal(Signal::TERM);
        assert_eq!(process.ended().await.status, Some(0));
        no_session_is_left(&session).await;
    }
}

/// A worker whose statements run as a role that has no free connection.
async fn refused(info: &ConnInfo, session: &Session, payloads: &[&str]) -> (Worker, String) {
    let role = format!("waits_{}", info.dbname());
    session.run(&format!("CREATE ROLE {role} LOGIN CONNECTION LIMIT 0")).await;
    for (number, payload) in payloads.iter().enumerate() {
        task(session, &format!("t{number}"), "sql", payload).await;
    }
    session.run("UPDATE scheduled_tasks SET max_attempts = 1").await;
    let options = Options { concurrency: payloads.len(), ..Worker::options(info, "w") };
    let place =
        target(server().await.version(), info).await.replace("user=postgres", &format!("user={role}"));
    let work = Builtin::new(ConnInfo::parse(&place).unwrap(), &options.id);
    (Worker::start(options, work), role)
}

/// A task that gets no connection for its statement has not failed yet; nor has one whose earlier statement still runs.
#[tokio::test]
async fn a_statement_waits_for_a_connection_and_for_an_earlier_one() {
    let info = installed(server().await.version()).await;
    let (session, earlier) = (Session::open(&info).await, Session::open(&info).await);
    let (worker, role) = refused(&info, &session, &["'{\"statement\": \"SELECT 1\"}'"]).await;
    let beats = "SELECT heartbeat_at > started_at + interval '0.5 second' FROM task_execution_log";
    wait_until("heartbeats", async || session.ask(beats).await == "t").await;
    assert_eq!(session.ask("SELECT state FROM running_tasks").await, "running");
    let key = "statement_lock_key((SELECT id FROM scheduled_tasks))";
    assert_eq!(earlier.ask(&format!("SELECT pg_try_advisory_lock({key})")).await, "t");
    session.run(&format!("ALTER ROLE {role} CONNECTION LIMIT -1")).await;
    let asks = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
                   AND application_name = 'locktop task of w' AND query LIKE '%pg_try_advisory_lock%' AND state = 'idle'";
    wait_until("it to ask for the key", async || session.ask(asks).await == "1").await;
    assert_eq!(session.ask("SELECT state FROM running_tasks").await, "running");
    assert_eq!(earlier.ask(&format!("SELECT pg_advisory_unlock({key})")).await, "t");
    ended(&session, 1).await;
    assert_eq!(log(&session).await, "w|completed|-");
    worker.quit().await;
    no_session_is_left(&session).await;
    session.run(&format!("DROP ROLE {role}")).await;
}

/// But its timeout is the limit, and it stops when asked to.
#[tokio::test]
async fn waiting_for_a_connection_ends_with_the_time_out_and_with_the_worker() {
    let info = installed(server().await.version()).await;
    let session = Session::open(&info).await;
    let payloads = ["'{\"statement\": \"SELECT 1\", \"timeout\": 0.5}'", "'{\"statement\": \"SELECT 2\"}'"];
    let (worker, role) = refused(&info, &session, &payloads).await;
    ended(&session, 1).await;
    let errors = "SELECT error_message FROM task_execution_log ORDER BY id";
    let error = session.ask(errors).await;
    assert!(error.starts_with("timed out after 0.5 s before it started: no connection: "), "{error}");
    assert!(error.contains("too many connections for role"), "{error}");
    worker.ask_to_quit();
    assert_eq!(worker.ended().await.unwrap().failed, 1);
    session.run(&format!("DROP ROLE {role}")).await;
}
