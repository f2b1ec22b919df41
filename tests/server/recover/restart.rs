//! The time right after the server has started: every worker has lost its session, and may not know it yet.

use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::feed::view_builder::ViewBuilder;
use locktop::model::lock_name::LockNames;
use locktop::model::task::JobState;
use locktop::model::thresholds::Thresholds;
use locktop::model::view::TargetId;
use locktop::pg::conninfo::ConnInfo;
use locktop::pg::poll::{PollConnection as Poll, PollLimits};
use locktop::schema::{self, SchemaName};

use super::binary::{locktop, run_beside};
use super::db::Session;
use super::support::{TIMEOUT, conninfo, oldest, open, versions, wait_until};

/// An execution whose last sign of life is an hour old and whose session was just lost is an orphan once the server has been up for the
/// grace, and not before, by the server's own clock. The same holds for an item of the queue, which is lost then.
pub(crate) async fn orphan_exactly_after_the_grace(session: &Session) {
    // One second from now; again if that was over before the first query.
    assert_eq!(session.ask(REQUEUE).await, "", "the usual grace has not passed");
    while !is_seen_before_and_after(session).await {}
    assert_eq!(session.ask(REQUEUE).await, "1|requeued");
    session.run("RESET locktop.orphan_grace").await;
}

const REQUEUE: &str = "SELECT task_id, outcome FROM requeue_lost_items('me')";

/// Has the session work on an item that it took long ago.
pub(crate) async fn work_on_an_item(worker: &Session) {
    worker.run("INSERT INTO task_queue (task_name) VALUES ('mail')").await;
    assert_eq!(worker.ask("SELECT task_name FROM claim_queue_items('w')").await, "mail");
    worker
        .run("UPDATE task_queue SET started_at = now() - interval '2 hours', heartbeat_at = now() - interval '1 hour'")
        .await;
}

async fn is_seen_before_and_after(session: &Session) -> bool {
    session
        .ask("SELECT set_config('locktop.orphan_grace', (clock_timestamp() - up_since() + interval '1 s')::text, false)")
        .await;
    let states = "SELECT clock_timestamp() < up_since() + orphan_grace(), state,
                       (SELECT count(*) FROM recovery_candidates()), cardinality(orphans(10)),
                       (SELECT q.state FROM running_queue_items q),
                       next_item_due_at() = up_since() + orphan_grace(),
                       clock_timestamp() < up_since() + orphan_grace()
                  FROM running_tasks";
    let mut early = false;
    wait_until("the grace to end", async || {
        let answer = session.ask(states).await;
        match answer.split('|').collect::<Vec<_>>()[..] {
            // Both at the start and at the end of the query it was too early.
            ["t", state, candidates, orphans, item, due, "t"] => {
                assert_eq!((state, candidates, orphans), ("settling", "0", "0"));
                assert_eq!((item, due), ("settling", "t"));
                early = true;
                false
            }
            ["f", state, candidates, orphans, item, _, "f"] => {
                assert_eq!((state, candidates, orphans, item), ("orphan", "1", "1", "lost"));
                true
            }
            // In between.
            _ => false,
        }
    })
    .await;
    early
}

/// A server on which a worker runs a task that began long ago.
async fn server(version: u32) -> (EmbeddedServer, Session) {
    let options = Options { version: Some(version), ..Options::default() };
    let server = EmbeddedServer::start(options).await.unwrap();
    let info = conninfo(&server);
    schema::install(&mut open(&info).await.client, &SchemaName::default()).await.unwrap();
    let worker = Session::open(&info).await;
    worker
        .run("INSERT INTO scheduled_tasks (task_name, task_type, next_run_at) VALUES ('report', 'x', now())")
        .await;
    assert_eq!(worker.ask("SELECT task_name FROM fetch_tasks('w')").await, "report");
    worker
        .run("UPDATE task_execution_log SET started_at = now() - interval '2 hours', heartbeat_at = now() - interval '1 hour'")
        .await;
    work_on_an_item(&worker).await;
    (server, worker)
}

#[tokio::test]
async fn after_a_start_nothing_is_an_orphan_before_the_grace() {
    for version in versions() {
        for crash in [false, true] {
            let (mut server, _worker) = server(version).await;
            if crash {
                server.kill_hard().await.unwrap();
            }
            server.restart().await.unwrap();
            let session = Session::open(&conninfo(&server)).await;
            assert_eq!(session.ask("SELECT state FROM running_tasks").await, "settling", "{version}");
            assert_eq!(session.ask("SELECT state FROM running_queue_items").await, "settling", "{version}");
            assert_eq!(
                session.ask("SELECT * FROM fetch_tasks('v')").await,
                "",
                "{version}: it is not taken either"
            );
            let due = "SELECT next_due_at() = up_since() + interval '30 s'";
            assert_eq!(session.ask(due).await, "t", "{version}");
            session.run("CALL recover_orphans()").await;
            let target = server.conninfo();
            let left = run_beside(locktop(&["recover", "--yes", &target])).await;
            assert_eq!(left.status, Some(0), "{}", left.err);
            let expected = "Nothing to recover. Not included: 1 with a free key, less than 30s after the last heartbeat or the server's start.\n";
            assert_eq!(left.out, expected, "{version} crash: {crash}");
            let left = run_beside(locktop(&["recover", "--yes", "--timeout=1h", &target])).await;
            assert_eq!(left.status, Some(1));
            assert!(
                left.out.contains("settling") && left.out.ends_with("0 of 1 recovered; 1 could not be.\n"),
                "{}",
                left.out
            );
            assert_eq!(session.ask("SELECT count(*) FROM locktop_audit").await, "0");
            orphan_exactly_after_the_grace(&session).await;
        }
    }
}

/// A server process that is killed makes the server terminate all the others, and continue: `pg_postmaster_start_time` stays.
#[tokio::test]
async fn a_crash_of_one_session_restarts_the_grace_for_all() {
    for version in versions() {
        let (server, worker) = server(version).await;
        let before = worker.ask("SELECT pg_postmaster_start_time()").await;
        wait_until("the server to be up for a while", async || {
            worker.ask("SELECT clock_timestamp() > up_since() + interval '1 s'").await == "t"
        })
        .await;
        let victim = Session::open(&conninfo(&server)).await;
        let victim = rustix::process::Pid::from_raw(victim.pid).unwrap();
        rustix::process::kill_process(victim, rustix::process::Signal::KILL).unwrap();
        let info = conninfo(&server);
        wait_until("the server to take connections again", async || {
            worker.connection.client.simple_query("SELECT 1").await.is_err()
                && locktop::pg::connect::connect(&info).await.is_ok()
        })
        .await;
        let session = Session::open(&info).await;
        assert_eq!(session.ask("SELECT pg_postmaster_start_time()").await, before, "{version}");
        assert_eq!(session.ask("SELECT up_since() > pg_postmaster_start_time() + interval '1 s'").await, "t");
        orphan_exactly_after_the_grace(&session).await;
    }
}

/// The same if an ordinary role owns the schema, from which the start of the launchers is hidden.
#[tokio::test]
async fn an_ordinary_owner_sees_the_crash_too() {
    for version in versions() {
        let options = Options { version: Some(version), ..Options::default() };
        let server = EmbeddedServer::start(options).await.unwrap();
        let admin = Session::open_plain(&conninfo(&server)).await;
        admin.run("CREATE ROLE app LOGIN").await;
        admin.run("CREATE DATABASE app OWNER app").await;
        let app = ConnInfo::parse(&server.conninfo().replace("user=postgres", "user=app")).unwrap();
        let app = app.with_dbname("app");
        schema::install(&mut open(&app).await.client, &SchemaName::default()).await.unwrap();
        let worker = Session::open(&app).await;
        let hidden = "SELECT count(*) FROM pg_stat_get_activity(NULL) WHERE backend_type LIKE '% launcher'";
        assert_eq!(worker.ask(hidden).await, "0", "{version}");
        worker
            .run("INSERT INTO scheduled_tasks (task_name, task_type, next_run_at) VALUES ('report', 'x', now())")
            .await;
        assert_eq!(worker.ask("SELECT task_name FROM fetch_tasks('w')").await, "report");
        worker
            .run("UPDATE task_execution_log SET started_at = now() - interval '2 hours', heartbeat_at = now() - interval '1 hour'")
            .await;
        work_on_an_item(&worker).await;
        wait_until("the server to be up for a while", async || {
            worker.ask("SELECT clock_timestamp() > up_since() + interval '1 s'").await == "t"
        })
        .await;
        let before = worker.ask("SELECT clock_timestamp()").await;
        let victim = rustix::process::Pid::from_raw(admin.pid).unwrap();
        rustix::process::kill_process(victim, rustix::process::Signal::KILL).unwrap();
        wait_until("the server to take connections again", async || {
            worker.connection.client.simple_query("SELECT 1").await.is_err()
                && locktop::pg::connect::connect(&app).await.is_ok()
        })
        .await;
        let session = Session::open(&app).await;
        let since = format!("SELECT up_since() > '{before}' AND up_since() < clock_timestamp()");
        assert_eq!(session.ask(&since).await, "t", "{version}");
        // The first session can connect while the server still starts its own processes; one that connects now is younger than all of these.
        let own =
            "SELECT up_since() <= (SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid())";
        assert_eq!(
            Session::open(&app).await.ask(own).await,
            "t",
            "{version}: no session that connects now is older"
        );
        orphan_exactly_after_the_grace(&session).await;
    }
}

/// The screens count from their own snapshots: the same in a program that continues across the restart.
#[tokio::test]
async fn a_monitor_that_runs_across_a_restart_restarts_the_grace_too() {
    let (mut server, _worker) = server(oldest()).await;
    // In locktop's own tables the grace is that of the database.
    let info = conninfo(&server).with_setting("locktop.orphan_grace", "1s");
    let mut view_builder = ViewBuilder::new(TargetId::default(), Thresholds::default(), LockNames::default());
    let mut poll = Poll::open(&info, PollLimits::default()).await.unwrap();
    let view = view_builder.snapshot_taken(poll.poll(view_builder.snapshot()).await.unwrap());
    assert_eq!((view.tasks.rows[0].state, view.queue.rows[0].state), (JobState::Slow, JobState::Slow));
    server.restart().await.unwrap();
    let mut poll = Poll::open(&info, PollLimits::default()).await.unwrap();
    let start = locktop::clock::monotonic();
    loop {
        assert!(start.elapsed() < TIMEOUT, "it never was an orphan");
        let view = view_builder.snapshot_taken(poll.poll(view_builder.snapshot()).await.unwrap());
        let snapshot = view.snapshot.as_ref().unwrap();
        let now = snapshot.taken_at;
        // The server's own start is known, and the worker's last sign of life.
        let up = (now - snapshot.up_since().unwrap()).as_seconds_f64();
        let expected = if up < 1.0 { JobState::Stopping } else { JobState::Lost };
        assert_eq!(view.queue.rows[0].state, expected, "{up} s after the start");
        let state = view.tasks.rows[0].state;
        let expected = if up < 1.0 { JobState::Settling } else { JobState::Orphan };
        assert_eq!(state, expected, "{up} s after the start");
        if state == JobState::Orphan {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}
