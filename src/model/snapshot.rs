//! What one poll saw.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::adapter::InstallationRows;
use super::backend::Backend;
use super::lock::{Lock, LockTag, Prepared};
pub use super::section::Section;
use super::systems::Systems;
use super::task::TaskSet;
use super::thresholds::Thresholds;
use super::wait_graph::Answer;
use super::{Text, Timestamp};

/// What `orphan_grace()` of the schema answers where the setting is not there, in seconds.
const ORPHAN_GRACE: f64 = 30.0;

/// How the server notices that the host of a client is gone; 0 is the default of its system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Keepalives {
    /// `tcp_keepalives_idle`: seconds of silence before the first probe.
    pub idle: u32,
    /// `tcp_keepalives_interval`: seconds between two probes.
    pub interval: u32,
    /// `tcp_keepalives_count`: probes without an answer after which the connection is dead.
    pub count: u32,
    /// `client_connection_check_interval`, milliseconds; 0 is never.
    pub check: u32,
}

impl Keepalives {
    /// Seconds after which a silent host is given up; none where the system decides.
    pub fn after(self) -> Option<u32> {
        let given = self.idle > 0 && self.interval > 0 && self.count > 0;
        given.then(|| self.idle.saturating_add(self.interval.saturating_mul(self.count)))
    }
}

/// What is between locktop and the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pooling {
    /// Nothing: the session is ours.
    #[default]
    None,
    /// A pooler that keeps a session for its client.
    Sessions,
    /// A pooler that lends a session for a transaction, or of which nobody can tell what it does.
    Transactions,
}

/// Whether a connection has TLS, and what of the server's certificate was verified, in the words of `sslmode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tls {
    /// The connection is not encrypted, or is a Unix socket.
    #[default]
    None,
    /// No more than that there is one, unless there is a file of authorities.
    Require,
    /// The authority that signed it (`verify-ca`).
    VerifyCa,
    /// The authority, and that its name is the host's (`verify-full`).
    VerifyFull,
}

impl Tls {
    /// Reads an `sslmode`; none is no TLS.
    pub fn of(sslmode: Option<&str>) -> Self {
        match sslmode {
            None => Self::None,
            Some("verify-full") => Self::VerifyFull,
            Some("verify-ca") => Self::VerifyCa,
            Some(_) => Self::Require,
        }
    }

    /// The `sslmode`; none without TLS.
    pub fn sslmode(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Require => Some("require"),
            Self::VerifyCa => Some("verify-ca"),
            Self::VerifyFull => Some("verify-full"),
        }
    }
}

impl Pooling {
    /// In a word or two; none where nothing is in between.
    pub fn words(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Sessions => Some("pooler"),
            Self::Transactions => Some("txn pool"),
        }
    }
}

/// What the server says of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Server {
    /// The host that locktop is connected to, as it was given, or the directory of the socket.
    pub host: Text,
    /// The TCP port, or the number in the name of the socket.
    pub port: u16,
    /// Whether a pooler is between locktop and the server, and how long it lends a session for.
    pub pooling: Pooling,
    /// Whether there is TLS, and what of the server's certificate was verified.
    pub tls: Tls,
    /// `server_version_num`, as 170002 for 17.2; 0 where it could not be read.
    pub version_num: u32,
    /// `server_version` without the packager's words, `17.2`.
    pub version: Text,
    /// `pg_is_in_recovery()`: whether it is a standby.
    pub in_recovery: bool,
    /// The database locktop is connected to.
    pub database: Text,
    /// `pg_database.oid` of that database, as `pg_locks.database` has it.
    pub datid: u32,
    /// The role locktop is connected as.
    pub user: Text,
    /// locktop's own backend, left out of nothing but marked. Behind a pooler in transaction mode another one at each look.
    pub own_pid: i32,
    /// Rows of `pg_stat_activity` that are client backends, locktop's among them.
    pub connections: u32,
    /// The setting `max_connections`, which takes a restart to change.
    pub max_connections: u32,
    /// The setting `max_locks_per_transaction`; 0 where it was not read.
    pub max_locks_per_transaction: u32,
    /// Locks that the shared lock table has room for in any case: `max_locks_per_transaction` for each process and prepared transaction
    /// there may be (`NLOCKENTS` in lock.c, `MaxBackends` in postinit.c); 0 where the settings were not read.
    pub lock_slots: u32,
    /// `pg_stat_database.deadlocks`, summed over all databases.
    pub deadlocks: u64,
    /// OIDs of those databases, in order; none while they are not known.
    pub deadlocks_of: Arc<[u32]>,
    /// `pg_postmaster_start_time()`: when the server was started; a promotion or a crash is later.
    pub started_at: Option<Timestamp>,
    /// `pg_last_xact_replay_timestamp()`: of a server that has never recovered anything, none.
    pub replayed_at: Option<Timestamp>,
    /// What a standby does with the WAL of its primary.
    pub replay: Replay,
    /// How it notices that a client's host is gone.
    pub keepalives: Keepalives,
    /// `track_activity_query_size`, bytes: a query of at least this length minus one was cut by the server.
    pub query_size: u32,
    /// `deadlock_timeout` in seconds, as a session of ours has it; none where it was not read.
    pub deadlock_timeout: Option<f64>,
    /// `log_lock_waits`: the server's log has the waits that are longer than that.
    pub log_lock_waits: Option<bool>,
    /// `locktop.orphan_grace` of the database or role, in seconds; none where it is not set, or is no interval.
    pub orphan_grace: Option<f64>,
    /// Whether the role sees other roles' activity (`pg_read_all_stats`).
    pub sees_all: bool,
}

/// What a standby does with the WAL of its primary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Replay {
    /// None comes: there is no process that receives it (`pg_stat_wal_receiver`).
    #[default]
    Nothing,
    /// Some that came is not replayed yet.
    Some,
    /// All that came is replayed: it is not behind, however old the last change is.
    All,
}

/// How a standby follows its primary.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Following {
    /// It replays what comes, and is so many seconds behind.
    Lag(f64),
    /// No WAL comes, and nobody here knows whether there is any. So many seconds ago was the last commit that was replayed.
    Alone(Option<f64>),
}

impl Server {
    /// How far behind a standby was at a moment of the server's clock; none for a primary.
    pub fn following(&self, at: Timestamp) -> Option<Following> {
        let since = self.replayed_at.map(|replayed| (at - replayed).as_seconds_f64().max(0.0));
        self.in_recovery.then_some(match self.replay {
            Replay::Nothing => Following::Alone(since),
            Replay::Some => Following::Lag(since.unwrap_or_default()),
            Replay::All => Following::Lag(0.0),
        })
    }

    /// The process of the connection, which tells one connection from the next; 0 where it says nothing of that, since a pooler lends
    /// another one each time.
    pub fn lasting_pid(&self) -> i32 {
        if self.pooling == Pooling::Transactions { 0 } else { self.own_pid }
    }

    /// `app@db.example.com:5432`: which database of which server.
    pub fn place(&self) -> String {
        crate::text::place(&self.database, &self.host, self.port)
    }
}

/// Names of relations and databases by OID, as far as they could be looked up.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// `(database OID, relation OID)`; database 0 for shared relations.
    pub relations: FxHashMap<(u32, u32), Text>,
    /// `pg_database.datname` by its OID.
    pub databases: FxHashMap<u32, Text>,
    /// `schema staging`, `extension hstore`: other objects by `(database OID, catalog OID, OID)`; database 0 for shared ones.
    pub objects: FxHashMap<(u32, u32, u32), Text>,
}

impl Names {
    /// What a lock of type `object` is of, with its kind.
    pub fn object(&self, tag: &LockTag) -> Option<&Text> {
        self.objects.get(&(tag.database()?, tag.classid()?, tag.objid()?))
    }

    /// The relation of a lock by name, `accounts` or `schema.accounts` when it is not on the search path.
    pub fn relation(&self, tag: &LockTag) -> Option<&Text> {
        self.relations.get(&(tag.database()?, tag.relation()?))
    }
}

/// When the tables of the database were last looked for, and why the last attempt failed. While one of these is not known, a table that is
/// not in the snapshot may exist all the same.
#[derive(Debug, Clone, Default)]
pub struct Detection {
    /// The tables of tasks, leases and the other lock systems (`assets/sql/tables_find.sql`).
    pub tables: Section<()>,
    /// The job systems of others (`assets/sql/adapters_find.sql`).
    pub adapters: Section<()>,
}

impl Detection {
    /// Both were looked for at this time.
    pub fn done(at: Timestamp) -> Self {
        Self { tables: Section::fresh(Vec::new(), at), adapters: Section::fresh(Vec::new(), at) }
    }
}

/// What one poll saw. Ages are measured from `taken_at`.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The server's clock when it answered.
    pub taken_at: Timestamp,
    /// One row: what the server says of itself, and of the connection; none before the first answer.
    pub server: Section<Server>,
    /// Processes of the server, of `pg_stat_get_activity()`.
    pub backends: Section<Backend>,
    /// Locks held and awaited, of `pg_lock_status()`.
    pub locks: Section<Lock>,
    /// Rows of `pg_locks` that were left out because there were too many.
    pub locks_omitted: u64,
    /// Prepared transactions, of `pg_prepared_xacts`.
    pub prepared: Section<Prepared>,
    /// Whether the tables below are all there are.
    pub detection: Detection,
    /// The task tables there are, and what was read of them.
    pub task_sets: Arc<Vec<TaskSet>>,
    /// The tables of the other lock systems.
    pub systems: Arc<Systems>,
    /// The job systems of others, and what was read of them.
    pub adapters: Arc<Vec<InstallationRows>>,
    /// The server's own word on who blocks some of the waiters (rule 5 of the wait graph).
    pub answers: Vec<Answer>,
    /// Names of the relations and databases that locks and sessions have, as far as they were looked up.
    pub names: Arc<Names>,
    /// How long the poll took, in seconds, for the client.
    pub poll_seconds: f64,
}

impl Snapshot {
    /// What the server said of itself, if it could be read.
    pub fn server(&self) -> Option<&Server> {
        self.server.last_rows().first()
    }

    /// Finds a backend by its process id.
    pub fn backend(&self, pid: i32) -> Option<&Backend> {
        self.backends.last_rows().iter().find(|backend| backend.pid == pid)
    }

    /// Whether the session with this process id and start is there, by this snapshot; none where that cannot be told: on a
    /// standby, which does not see the sessions of the primary, and where this role may not see when a session began.
    pub fn has_session(&self, pid: i32, start: Timestamp) -> Option<bool> {
        if !self.backends.is_known() || self.server()?.in_recovery {
            return None;
        }
        match self.backend(pid) {
            None => Some(false),
            Some(backend) => backend.backend_start.map(|began| began == start),
        }
    }

    /// How long the key of a task must have been free, in seconds. For tables of locktop's own the database rules, by the setting
    /// `locktop.orphan_grace` or its default: there `recover`, workers and the views have only that. For all others the config does.
    pub fn grace(&self, own: bool, thresholds: &Thresholds) -> f64 {
        let of_database = || self.server().and_then(|server| server.orphan_grace).unwrap_or(ORPHAN_GRACE);
        if own { of_database() } else { thresholds.orphan_grace }
    }

    /// When the server last came up, was promoted or started anew after a crash: those who held something before lost it then, and may
    /// not know it yet. As `up_since()` of the schema: the launchers start with the first that may write, or they may not be seen, and
    /// then a promotion was after the last transaction replayed.
    pub fn up_since(&self) -> Option<Timestamp> {
        let server = self.server()?;
        let launchers = self.backends.last_rows().iter().filter(|backend| {
            let kind = backend.backend_type.as_deref();
            matches!(kind, Some("autovacuum launcher" | "logical replication launcher"))
        });
        let first = launchers.filter_map(|launcher| launcher.backend_start).min();
        server.started_at.max(first.or(server.replayed_at))
    }
}
