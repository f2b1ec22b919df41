//! Sessions that wait for each other, and their progress.

use std::sync::Arc;
use std::time::Duration;

use locktop::clock;
use locktop::demo::postgres::EmbeddedServer;
use locktop::feed::once::once;
use locktop::model::lock_name::LockNames;
use locktop::model::plan::Verb;
use locktop::model::thresholds::Thresholds;
use locktop::model::view::View;
use locktop::model::wait_graph::Party;
use locktop::pg::connect::Connection;
use locktop::pg::conninfo::ConnInfo;
use locktop::pg::poll::PollLimits;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use super::kinds::{Random, Step};
use crate::support::{database, open, pid, wait_until};

/// Longest time until a session continues that was predicted to continue now.
const NOW: Duration = Duration::from_secs(5);

/// One session.
struct Actor {
    pid: i32,
    connection: Arc<Connection>,
    task: Option<JoinHandle<Result<(), tokio_postgres::Error>>>,
    /// The session was ended, or has finished.
    is_over: bool,
    statements: String,
}

impl Actor {
    /// Whether no statement is running.
    fn is_free(&self) -> bool {
        self.task.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

/// The sessions of a state.
pub(super) struct Stage {
    pub(super) name: String,
    info: ConnInfo,
    watcher: Client,
    actors: Vec<Actor>,
    gids: Vec<String>,
    has_standby: bool,
}

/// A server without its standby completes no commit that waits for it.
const LOCAL: &str = "SET synchronous_commit = local";

impl Stage {
    pub(super) async fn of(server: &EmbeddedServer, name: String) -> Self {
        let info = database(server).await;
        let watcher = open(&info).await.client;
        watcher.batch_execute(LOCAL).await.unwrap();
        Self { name, info, watcher, actors: Vec::new(), gids: Vec::new(), has_standby: false }
    }

    pub(super) async fn set_up(&self, sql: &str) {
        self.watcher.batch_execute(sql).await.unwrap();
    }

    /// Runs the statements of a step on a new session, until they have completed or one waits.
    pub(super) async fn step(&mut self, step: Step) {
        let Step { before, mut then, gid } = step;
        let connection = Arc::new(open(&self.info).await);
        let pid = pid(&connection.client).await;
        let mut actor =
            Actor { pid, connection, task: None, is_over: false, statements: format!("{before:?} {then:?}") };
        let mut statements = before.into_iter();
        // A statement before the last one may have to wait as well; then it is the last.
        for statement in statements.by_ref() {
            self.ask(&mut actor, statement).await;
            if !actor.is_free() {
                then = None;
                break;
            }
        }
        if let Some(statement) = then {
            self.ask(&mut actor, statement).await;
        }
        if let Some(gid) = gid.filter(|_| actor.is_free()) {
            actor.connection.client.batch_execute(&format!("PREPARE TRANSACTION '{gid}'")).await.unwrap();
            self.gids.push(gid);
            actor.is_over = true;
        }
        self.actors.push(actor);
    }

    /// Sends a statement, and waits until it has completed, waits or sleeps.
    async fn ask(&self, actor: &mut Actor, statement: String) {
        let connection = Arc::clone(&actor.connection);
        actor.task = Some(tokio::spawn(async move { connection.client.batch_execute(&statement).await }));
        wait_until(&self.name, async || actor.is_free() || self.waits(actor.pid).await).await;
    }

    async fn waits(&self, pid: i32) -> bool {
        let sql = "SELECT EXISTS (SELECT FROM pg_locks WHERE pid = $1 AND NOT granted AND waitstart IS NOT NULL)
                       OR EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1 AND wait_event IN ('SyncRep', 'PgSleep', 'SafeSnapshot'))";
        self.watcher.query_one(sql, &[&pid]).await.unwrap().get(0)
    }

    /// Several sessions of one role commit with NOTIFY while the standby that must confirm is down.
    pub(super) async fn lose_the_standby(&mut self, random: &mut Random) {
        self.has_standby = true;
        self.standby("'lost'").await;
        for number in 0..2 + random.below(4) {
            let insert = format!("INSERT INTO t2 VALUES ({number}, 0)");
            let before = ["BEGIN".to_owned(), insert, format!("NOTIFY events, '{number}'")].to_vec();
            self.step(Step { before, then: Some("COMMIT".to_owned()), gid: None }).await;
        }
    }

    async fn standby(&self, names: &str) {
        self.set_up(&format!("ALTER SYSTEM SET synchronous_standby_names = {names}")).await;
        self.set_up("SELECT pg_reload_conf()").await;
        let sql = "SELECT setting FROM pg_settings WHERE name = 'synchronous_standby_names'";
        let wanted = names.trim_matches('\'');
        wait_until("the standby to be configured", async || {
            let other = open(&self.info).await.client;
            other.query_one(sql, &[]).await.unwrap().get::<_, String>(0) == wanted
        })
        .await;
    }

    pub(super) async fn view(&self) -> Arc<View> {
        let limits = PollLimits { ask: 1_000, ..PollLimits::default() };
        once(&self.info, limits, Thresholds::default(), LockNames::default()).await.unwrap()
    }

    /// Terminates a session, cancels its query, or rolls back a prepared transaction.
    pub(super) async fn end(&mut self, party: Party, verb: Verb) {
        let Party::Backend(pid) = party else {
            let Party::Prepared(xact) = party else { unreachable!() };
            // A prepared transaction keeps the virtual transaction of its session (`MarkAsPreparingGuts` in
            // twophase.c).
            let gid =
                "SELECT DISTINCT gid FROM pg_prepared_xacts JOIN pg_locks ON transactionid = transaction
                        WHERE pid IS NULL AND virtualtransaction = $1";
            let id = format!("{}/{}", xact.proc_number, xact.local_xid);
            let gid: String = self.watcher.query_one(gid, &[&id]).await.unwrap().get(0);
            return self.set_up(&format!("ROLLBACK PREPARED '{gid}'")).await;
        };
        let is_cancel = verb == Verb::Cancel;
        let function = if is_cancel { "pg_cancel_backend" } else { "pg_terminate_backend" };
        let sent: bool =
            self.watcher.query_one(&format!("SELECT {function}($1)"), &[&pid]).await.unwrap().get(0);
        assert!(sent, "{}: {pid} exists", self.name);
        let name = self.name.clone();
        let at = self.actors.iter().position(|actor| actor.pid == pid).unwrap();
        if is_cancel {
            wait_until(&name, async || self.actors[at].is_free()).await;
        } else {
            let left = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1";
            wait_until(&name, async || {
                self.watcher.query_one(left, &[&pid]).await.unwrap().get::<_, i64>(0) == 0
            })
            .await;
        }
        self.actors[at].is_over = !is_cancel;
    }

    fn actor(&self, party: Party) -> &Actor {
        self.actors.iter().find(|actor| Party::Backend(actor.pid) == party).unwrap()
    }

    fn is_free(&self, party: Party) -> bool {
        self.actor(party).is_free()
    }

    /// Checks that the statements of all these sessions complete soon.
    pub(super) async fn all_continue(&self, parties: &[Party], when: &str) {
        let start = clock::monotonic();
        while let Some(late) = parties.iter().find(|party| !self.is_free(**party)) {
            let statements = &self.actor(*late).statements;
            assert!(start.elapsed() < NOW, "{}: {late:?} does not continue {when}: {statements}", self.name);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// The released sessions end their transactions as soon as their statements have completed, until the
    /// statements of all others have completed, too.
    pub(super) async fn all_follow(&mut self, released: &[Party], others: &[Party], random: &mut Random) {
        let start = clock::monotonic();
        loop {
            let done = |actor: &Actor| {
                !actor.is_over && actor.is_free() && released.contains(&Party::Backend(actor.pid))
            };
            let finished: Vec<usize> = (0..self.actors.len()).filter(|at| done(&self.actors[*at])).collect();
            for at in finished {
                let how = if random.one_in(2) { "COMMIT" } else { "ROLLBACK" };
                let actor = &mut self.actors[at];
                actor.is_over = true;
                let _ = actor.connection.client.batch_execute(LOCAL).await;
                let _ = actor.connection.client.batch_execute(how).await;
                let _ = actor.connection.client.batch_execute("SELECT pg_advisory_unlock_all()").await;
            }
            let Some(late) = others.iter().find(|party| !self.is_free(**party)) else { return };
            let statements = &self.actor(*late).statements;
            assert!(start.elapsed() < NOW * 2, "{}: {late:?} does not follow: {statements}", self.name);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Checks that none of these statements completes: each waits, whatever the others have done so far.
    pub(super) async fn none_continue(&self, parties: &[Party]) {
        for party in parties {
            wait_until(&self.name, async || self.is_free(*party) || self.waits(party.pid()).await).await;
            let statements = &self.actor(*party).statements;
            assert!(!self.is_free(*party), "{}: {party:?} continues: {statements}", self.name);
        }
    }

    /// Ends all remaining sessions and transactions.
    pub(super) async fn clear(self) {
        if self.has_standby {
            self.standby("''").await;
        }
        for gid in &self.gids {
            let _ = self.watcher.batch_execute(&format!("ROLLBACK PREPARED '{gid}'")).await;
        }
        let all = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                   WHERE datname = current_database() AND pid <> pg_backend_pid()";
        self.watcher.batch_execute(all).await.unwrap();
        let left = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
        wait_until("the sessions to end", async || {
            self.watcher.query_one(left, &[]).await.unwrap().get::<_, i64>(0) == 0
        })
        .await;
        // Thousands of databases on one server would fill the memory that holds its files.
        let drop = format!("DROP DATABASE {} WITH (FORCE)", self.info.dbname());
        open(&self.info.clone().with_dbname("postgres")).await.client.batch_execute(&drop).await.unwrap();
    }
}
