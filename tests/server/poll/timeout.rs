//! locktop leaves no waiting session behind on a server where a catalog is locked.

use std::io::Read;
use std::time::Duration;

use locktop::demo::postgres::EmbeddedServer;
use locktop::pg::poll::{PollConnection, PollLimits};
use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use rustix::process::{Pid, Signal, kill_process};
use tokio_postgres::{Client, Statement};

use super::helpers::{assert_fresh, client, info, on_all_versions_at_once};
use super::support::{SESSIONS, wait_until_seen};

/// Reads the function below `pg_stat_activity`: the view opens catalogs.
const OWN_SESSIONS: &str = "SELECT count(*) FROM pg_stat_get_activity(NULL)
    WHERE application_name = 'locktop' AND ($1 = '' OR wait_event_type = $1)";

/// A session that can see locktop's backends while no session can open `pg_class`.
struct Observer {
    client: Client,
    own_sessions: Statement,
    sessions: Statement,
    locker: Client,
    user: Client,
}

impl Observer {
    async fn open(server: &EmbeddedServer) -> Self {
        let info = info(server).with_application_name("observer");
        let (locker, user, client) = (client(&info).await, client(&info).await, client(&info).await);
        locker.batch_execute("CREATE TABLE a (); CREATE TABLE b ()").await.unwrap();
        // Known to its session from now on, so that both can be locked without reading the catalog.
        user.batch_execute("TABLE a; TABLE b").await.unwrap();
        let own_sessions = client.prepare(OWN_SESSIONS).await.unwrap();
        let sessions = client.prepare(SESSIONS).await.unwrap();
        client.query_one(&sessions, &[]).await.unwrap();
        let observer = Self { client, own_sessions, sessions, locker, user };
        assert_eq!(observer.count("").await, 0);
        observer
    }

    /// Locks `pg_class` exclusively, and lets a session lock a table whose name locktop does not know yet.
    async fn lock(&self, table: &str) {
        self.locker.batch_execute("BEGIN; LOCK TABLE pg_class").await.unwrap();
        self.user.batch_execute(&format!("BEGIN; TABLE {table}")).await.unwrap();
    }

    async fn unlock(&self) {
        self.locker.batch_execute("ROLLBACK").await.unwrap();
        self.user.batch_execute("ROLLBACK").await.unwrap();
    }

    async fn count(&self, waiting_for: &str) -> i64 {
        self.client.query_one(&self.own_sessions, &[&waiting_for]).await.unwrap().get(0)
    }

    async fn until(&self, what: &str, waiting_for: &str, count: i64) {
        let is_so = async || self.count(waiting_for).await == count;
        wait_until_seen(what, (&self.client, &self.sessions), is_so).await;
    }
}

/// Each of the two timeouts on its own ends the wait, with the session open and with the session closed.
#[tokio::test]
async fn no_backend_waits_for_long_after_a_poll() {
    let (short, long) = (Duration::from_secs(1), Duration::from_secs(3600));
    on_all_versions_at_once(async |server| {
        let observer = Observer::open(&server).await;
        for (table, lock_timeout, statement_timeout) in [("a", short, long), ("b", long, short)] {
            let name_timeout = Duration::from_millis(1);
            let limits =
                PollLimits { lock_timeout, statement_timeout, name_timeout, ..PollLimits::default() };
            let mut session = PollConnection::open(&info(&server), limits).await.unwrap();
            let mut snapshot = session.poll(None).await.unwrap();
            observer.lock(table).await;
            // A poll that follows waits behind the query: it is watched during the polls, since it ends after
            // a second.
            let polls = async {
                loop {
                    snapshot = session.poll(Some(&snapshot)).await.unwrap();
                    assert_fresh(&snapshot);
                }
            };
            tokio::select! {
                () = polls => {}
                () = observer.until("a question about names", "Lock", 1) => {}
            }
            if table == "a" {
                observer.until("the end of the question", "Lock", 0).await;
                assert_eq!(observer.count("").await, 1);
            }
            drop(session);
            observer.until("the end of the session", "", 0).await;
            observer.unlock().await;
        }
    })
    .await;
}

/// The program itself, at a terminal of its own.
fn program(
    server: &EmbeddedServer,
) -> (Box<dyn portable_pty::Child + Send + Sync>, Box<dyn portable_pty::MasterPty>) {
    let pair = native_pty_system().openpty(PtySize { rows: 30, cols: 100, ..PtySize::default() }).unwrap();
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_locktop"));
    command.args(["--refresh", "0.1s", &server.conninfo()]);
    command.env("TERM", "xterm-256color");
    let child = pair.slave.spawn_command(command).unwrap();
    let mut output = pair.master.try_clone_reader().unwrap();
    // It would block on a terminal whose output is not read.
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while output.read(&mut buffer).is_ok_and(|length| length > 0) {}
    });
    (child, pair.master)
}

/// Two connections while it runs, and none when it has ended, in whatever way, although the catalog is still
/// locked. The catalog is locked once both connections are open: a connection that starts then waits on the
/// server forever, since it cannot be cancelled and no timeout of locktop's is in force yet.
#[tokio::test]
async fn no_backend_is_left_when_the_program_ends() {
    on_all_versions_at_once(async |server| {
        let observer = Observer::open(&server).await;
        for signal in [Signal::TERM, Signal::KILL] {
            let (mut child, _terminal) = program(&server);
            observer.until("two connections that were made ready", "Client", 2).await;
            observer.lock("a").await;
            observer.until("a question about names", "Lock", 1).await;
            observer.until("two connections, and no third", "", 2).await;
            kill_process(Pid::from_raw(i32::try_from(child.process_id().unwrap()).unwrap()).unwrap(), signal)
                .unwrap();
            child.wait().unwrap();
            observer.until("the end of both connections", "", 0).await;
            observer.unlock().await;
        }
    })
    .await;
}
