//! Rows of `pg_stat_activity`.

use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::demo::scenario::{Scenario, ScratchSchema, Timing};
use locktop::model::backend::State;

use super::helpers::{client, info, on_every_version, on_every_version_with, poll_until, session};
use super::raw::{ASKED, Raw};
use super::support::TIMEOUT;
use super::views::Views;

/// Every column of every row, of sessions in all states and of the server's own processes, is as in the view.
#[tokio::test]
async fn backends_are_those_of_the_view() {
    let options = Options::default().with("compute_query_id", "on");
    on_every_version_with(options, async |server| {
        let info = info(&server);
        let scratch = ScratchSchema::open(&info).await.unwrap();
        let running = Scenario::ParallelHolder.start(&scratch, Timing::TEST).await.unwrap();
        let (idle, open, failed, silent) =
            (client(&info).await, client(&info).await, client(&info).await, client(&info).await);
        idle.batch_execute("SELECT 1").await.unwrap();
        open.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ").await.unwrap();
        open.batch_execute("SELECT pg_current_xact_id()").await.unwrap();
        failed.batch_execute("BEGIN; SELECT 1/0").await.unwrap_err();
        silent.batch_execute("SET track_activities = off").await.unwrap();
        let mut session = session(&server).await;
        let (snapshot, _) = Views::open(&info).await.agree(&mut session).await;
        let rows = snapshot.backends.last_rows();
        for state in [
            State::Active,
            State::Idle,
            State::IdleInTransaction,
            State::IdleInTransactionAborted,
            State::Disabled,
        ] {
            assert!(rows.iter().any(|row| row.state == Some(state)), "{state:?}");
        }
        assert!(rows.iter().all(|row| row.state != Some(State::Other)));
        for kind in ["client backend", "parallel worker", "checkpointer", "walwriter"] {
            assert!(rows.iter().any(|row| row.backend_type.as_deref() == Some(kind)), "{kind}");
        }
        assert!(rows.iter().any(|row| row.leader_pid.is_some()));
        assert!(
            rows.iter().any(|row| row.backend_xid.is_some()) && rows.iter().any(|row| row.query_id.is_some())
        );
        assert!(rows.iter().any(|row| row.wait_event_type.as_deref() == Some("Lock")));
        running.stop().await.unwrap();
    })
    .await;
}

/// Makes the server ask `slow` for a password, and does not answer.
async fn half_open(server: &EmbeddedServer) -> Raw {
    let admin = client(&info(server)).await;
    admin.batch_execute("CREATE ROLE slow LOGIN PASSWORD 'secret'").await.unwrap();
    let file = server.socket_dir().join("data/pg_hba.conf");
    let rules = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("local all slow scram-sha-256\n{rules}")).unwrap();
    admin.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    let asked = async {
        loop {
            let (raw, code) = Raw::start(server, "slow", "postgres").await;
            if code == ASKED {
                return raw;
            }
        }
    };
    tokio::time::timeout(TIMEOUT, asked).await.expect("the server never read its rules")
}

/// From version 18, a session is shown before it is authenticated.
#[tokio::test]
async fn a_session_that_is_not_authenticated_yet_matches_the_view() {
    on_every_version(async |server| {
        let _half_open = half_open(&server).await;
        let mut session = session(&server).await;
        let views = Views::open(&info(&server)).await;
        let starting = |row: &&locktop::model::backend::Backend| row.state == Some(State::Starting);
        if server.version() >= 18 {
            poll_until(&mut session, |snapshot| {
                snapshot.backends.last_rows().iter().any(|row| starting(&row))
            })
            .await;
        }
        let (snapshot, _) = views.agree(&mut session).await;
        let row = snapshot.backends.last_rows().iter().find(starting);
        assert_eq!(row.is_some(), server.version() >= 18);
        let Some(row) = row else { return };
        assert_eq!((row.datid, &row.user, row.query_id), (None, &None, None));
        assert!(row.backend_start.is_some());
    })
    .await;
}
