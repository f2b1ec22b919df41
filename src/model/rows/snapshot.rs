use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::model::adapter::InstallationRows;
use crate::model::backend::Backend;
use crate::model::lock::{Lock, LockMode, LockTag, LockType, Prepared};
use crate::model::lock_key::LockKey;
pub use crate::model::section::Section;
use crate::model::source_tables::SourceTables;
use crate::model::table_rows::Item;
use crate::model::task::TaskSet;
use crate::model::thresholds::Thresholds;
use crate::model::wait_graph::Answer;
use crate::model::{Text, Timestamp};

/// The default of `orphan_grace()` in the schema if the setting is missing, in seconds.
const ORPHAN_GRACE: f64 = 30.0;

impl Keepalives {
    /// Seconds after which a silent host is given up; `None` if the operating system decides.
    pub fn after(self) -> Option<u32> {
        let given = self.idle > 0 && self.interval > 0 && self.count > 0;
        given.then(|| self.idle.saturating_add(self.interval.saturating_mul(self.count)))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pooling {
    /// None: the session is locktop's own.
    #[default]
    None,
    /// A pooler in session mode.
    Sessions,
    /// A pooler in transaction mode, or one whose mode is unknown.
    Transactions,
}

/// Whether a connection has TLS, and how the server certificate was verified, as in `sslmode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Tls {
    /// Not encrypted, or a Unix socket.
    #[default]
    None,
    /// It was only checked that there is a certificate, unless there is a root certificate file.
    Require,
    /// The signing authority was verified (`verify-ca`).
    VerifyCa,
    /// The authority and the host name were verified (`verify-full`).
    VerifyFull,
}

impl Tls {
    /// `None` means no TLS.
    pub fn of(sslmode: Option<&str>) -> Self {
        sslmode.map_or(Self::None, |mode| mode.parse().unwrap_or(Self::Require))
    }

    /// `None` without TLS.
    pub fn sslmode(self) -> Option<&'static str> {
        (self != Self::None).then(|| self.into())
    }
}

impl Pooling {
    /// `None` without a pooler.
    pub fn words(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Sessions => Some("pooler"),
            Self::Transactions => Some("txn pool"),
        }
    }
}

rows! {
    as server_rows;

    pub struct Server in Servers {
        /// The host as given, or the directory of the socket.
        1 host: Text,
        /// The TCP port, or the number in the socket name.
        2 port: u16,
        3 pooling: Pooling,
        /// `server_version_num`, such as 170002 for 17.2; 0 if it could not be read.
        4 version_num: u32,
        /// `server_version` without the suffix of the packager: `17.2`.
        5 version: Text,
        /// `pg_is_in_recovery()`.
        6 in_recovery: bool,
        7 database: Text,
        /// `pg_database.oid` of the connected database, as in `pg_locks.database`.
        8 datid: u32,
        9 user: Text,
        /// locktop's own backend, which is marked but never left out. Behind a pooler in transaction mode it differs at each poll.
        10 own_pid: i32,
        /// Client backends in `pg_stat_activity`, including locktop's own.
        11 connections: u32,
        /// `max_connections`, which can only be changed by a restart.
        12 max_connections: u32,
        /// `pg_stat_database.deadlocks`, summed over all databases.
        13 deadlocks: u64,
        /// Sorted OIDs of those databases; empty while unknown.
        14 deadlocks_of: Arc<[u32]>,
        /// `pg_postmaster_start_time()`: start of the server; a promotion or a crash restart is later.
        15 started_at: Option<Timestamp>,
        /// `pg_last_xact_replay_timestamp()`; `None` if the server has never replayed anything.
        16 replayed_at: Option<Timestamp>,
        17 replay: WalReplay,
        18 keepalives: Keepalives,
        /// `track_activity_query_size`, in bytes: the server truncated a query of at least this length minus one.
        19 query_size: u32,
        /// `locktop.orphan_grace` of the database or role, in seconds; `None` if it is not set or not an interval.
        20 orphan_grace: Option<f64>,
        /// Whether the role sees other roles' activity (`pg_read_all_stats`).
        21 sees_all: bool,
        22 tls: Tls,
        /// `deadlock_timeout` in locktop's own session, in seconds; `None` if it was not read.
        23 deadlock_timeout: Option<f64>,
        /// `log_lock_waits`: waits longer than that are in the server log.
        24 log_lock_waits: Option<bool>,
        /// `max_locks_per_transaction`; 0 if it was not read.
        25 max_locks_per_transaction: u32,
        /// Guaranteed capacity of the shared lock table: `max_locks_per_transaction` for each possible process and prepared
        /// transaction (`NLOCKENTS` in lock.c, `MaxBackends` in postinit.c); 0 if the settings were not read.
        26 lock_slots: u32,
    }

    /// Settings by which the server detects that a client host is unreachable; 0 is the system default.
    #[derive(Copy, Eq, Default)]
    pub struct Keepalives in KeepaliveRows {
        /// `tcp_keepalives_idle`: seconds of silence before the first probe.
        1 idle: u32,
        /// `tcp_keepalives_interval`: seconds between two probes.
        2 interval: u32,
        /// `tcp_keepalives_count`: probes without an answer after which the connection is dead.
        3 count: u32,
        /// `client_connection_check_interval`, milliseconds; 0 is never.
        4 check: u32,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WalReplay {
    /// No WAL arrives: there is no WAL receiver (`pg_stat_wal_receiver`).
    #[default]
    Nothing,
    Some,
    /// All received WAL is replayed: the standby is not behind, however old the last change is.
    All,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Following {
    /// It replays received WAL and is this many seconds behind.
    Lag(f64),
    /// No WAL arrives, and it is unknown whether the primary has any. Seconds since the last replayed commit.
    Alone(Option<f64>),
}

impl Server {
    /// `None` for a primary.
    pub fn following(&self, at: Timestamp) -> Option<Following> {
        let since = self.replayed_at.map(|replayed| (at - replayed).as_seconds_f64().max(0.0));
        self.in_recovery.then_some(match self.replay {
            WalReplay::Nothing => Following::Alone(since),
            WalReplay::Some => Following::Lag(since.unwrap_or_default()),
            WalReplay::All => Following::Lag(0.0),
        })
    }

    /// The process id that identifies the connection; 0 behind a pooler in transaction mode, where it differs each time.
    pub fn lasting_pid(&self) -> i32 {
        if self.pooling == Pooling::Transactions { 0 } else { self.own_pid }
    }

    pub(crate) fn epoch(&self) -> Epoch {
        Epoch { own_pid: self.lasting_pid(), started_at: self.started_at, in_recovery: self.in_recovery }
    }

    /// `app@db.example.com:5432`: database and server.
    pub fn place(&self) -> String {
        crate::text::place(&self.database, &self.host, self.port)
    }
}

#[derive(Debug, Clone, Default)]
pub struct Names {
    /// `(database OID, relation OID)`; database 0 for shared relations.
    pub relations: FxHashMap<(u32, u32), Text>,
    pub databases: FxHashMap<u32, Text>,
    /// `schema staging`, `extension hstore`: by `(database OID, catalog OID, OID)`; database 0 for shared objects.
    pub objects: FxHashMap<(u32, u32, u32), Text>,
}

impl Names {
    pub fn object(&self, tag: &LockTag) -> Option<&Text> {
        self.objects.get(&(tag.database()?, tag.classid()?, tag.objid()?))
    }

    /// `accounts`, or `schema.accounts` if it is not on the search path.
    pub fn relation(&self, tag: &LockTag) -> Option<&Text> {
        self.relations.get(&(tag.database()?, tag.relation()?))
    }
}

/// When the tables of the database were last searched for, and why the last attempt failed. While one of these is unknown,
/// a table that is not in the snapshot may still exist.
#[derive(Debug, Clone, Default)]
pub struct Detection {
    /// Tables of tasks, leases and the other lock systems (`assets/sql/tables_find.sql`).
    pub tables: Section<()>,
    /// Other job systems (`assets/sql/adapters_find.sql`).
    pub adapters: Section<()>,
}

impl Detection {
    pub fn done(at: Timestamp) -> Self {
        Self { tables: Section::fresh(Vec::new(), at), adapters: Section::fresh(Vec::new(), at) }
    }
}

/// The result of one poll. Ages are measured from `taken_at`.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The server's clock at the time of its answer.
    pub taken_at: Timestamp,
    /// One row about the server and the connection; none before the first answer.
    pub server: Section<Server>,
    /// From `pg_stat_get_activity()`.
    pub backends: Section<Backend>,
    /// Held and awaited locks, from `pg_lock_status()`.
    pub locks: Section<Lock>,
    pub locks_omitted: u64,
    /// From `pg_prepared_xacts`.
    pub prepared: Section<Prepared>,
    pub detection: Detection,
    pub task_sets: Arc<Vec<TaskSet>>,
    pub sources: Arc<SourceTables>,
    pub adapters: Arc<Vec<InstallationRows>>,
    /// The server's own answers to which sessions block some of the waiters (rule 5 of the wait graph).
    pub answers: Vec<Answer>,
    pub names: Arc<Names>,
    /// Duration of the poll as measured by the client, in seconds.
    pub poll_seconds: f64,
}

impl Snapshot {
    pub fn server(&self) -> Option<&Server> {
        self.server.last_rows().first()
    }

    pub fn backend(&self, pid: i32) -> Option<&Backend> {
        self.backends.last_rows().iter().find(|backend| backend.pid == pid)
    }

    /// Whether the session with this process id and start is connected, by this snapshot; `None` if unknown: on a standby,
    /// which does not see sessions of the primary, and if this role may not see the start of a session.
    pub fn has_session(&self, pid: i32, start: Timestamp) -> Option<bool> {
        if !self.backends.is_known() || self.server()?.in_recovery {
            return None;
        }
        match self.backend(pid) {
            None => Some(false),
            Some(backend) => backend.backend_start.map(|began| began == start),
        }
    }

    /// The held advisory locks of the connected database. The holder is None for a prepared transaction.
    pub fn key_holders(&self) -> FxHashMap<LockKey, Option<i32>> {
        let datid = self.server().map(|server| server.datid);
        let held = self.locks.last_rows().iter().filter(|lock| lock.granted && lock.tag.database() == datid);
        held.filter_map(|lock| Some((lock.tag.advisory_key()?, lock.pid))).collect()
    }

    /// How long the key of a task must have been free, in seconds. For locktop's own tables the database decides, by
    /// `locktop.orphan_grace` or its default, since `recover`, workers and views only have that. For all others the config
    /// decides.
    pub fn grace(&self, own: bool, thresholds: &Thresholds) -> f64 {
        let of_database = || self.server().and_then(|server| server.orphan_grace).unwrap_or(ORPHAN_GRACE);
        if own { of_database() } else { thresholds.orphan_grace }
    }

    /// When the server was last started, promoted or restarted after a crash: earlier holders lost everything then, and may not
    /// know it yet. Same as `up_since()` of the schema: the launchers start when writes become possible; if they are not
    /// visible, a promotion was after the last replayed transaction.
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

/// Must stay the same for earlier observations to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Epoch {
    pub(crate) own_pid: i32,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) in_recovery: bool,
}

#[derive(Debug, Default)]
pub struct WorkLocks {
    pub is_known: bool,
    /// The locks and the sessions were read, on a primary.
    pub shows_sessions: bool,
    pub datid: u32,
    /// [`Snapshot::key_holders`].
    pub holders: FxHashMap<LockKey, Option<i32>>,
    /// Processes by the transaction ID of their open transaction.
    transactions: FxHashMap<u32, i32>,
    /// By process and table (execution logs and work queues): whether its transaction locked rows, and whether it changed
    /// rows.
    tables: FxHashMap<(i32, u32), (bool, bool)>,
}

impl WorkLocks {
    pub fn of(snapshot: &Snapshot) -> Self {
        let server = snapshot.server();
        let is_known = snapshot.locks.is_known();
        let mut locks = Self {
            is_known,
            shows_sessions: is_known
                && snapshot.backends.is_known()
                && server.is_some_and(|server| !server.in_recovery),
            datid: server.map_or(0, |server| server.datid),
            holders: snapshot.key_holders(),
            ..Self::default()
        };
        let logs = snapshot.task_sets.iter().filter_map(|set| set.tables.log);
        let queues = snapshot.sources.items.iter().map(|table| table.source.table);
        let tables: FxHashSet<u32> = logs.chain(queues).collect();
        for lock in snapshot.locks.last_rows().iter().filter(|lock| lock.granted) {
            let Some(pid) = lock.pid else { continue };
            match (lock.tag.locktype(), lock.tag.transactionid(), lock.tag.relation()) {
                (LockType::TransactionId, Some(xid), _) if lock.mode == LockMode::Exclusive => {
                    locks.transactions.insert(xid, pid);
                }
                (LockType::Relation, _, Some(table))
                    if tables.contains(&table) && lock.tag.database() == Some(locks.datid) =>
                {
                    let (locked, changed) = locks.tables.entry((pid, table)).or_default();
                    *locked |= lock.mode == LockMode::RowShare;
                    *changed |= lock.mode == LockMode::RowExclusive;
                }
                _ => {}
            }
        }
        locks
    }

    /// Whether the open transaction of a process has changed rows of a log or a work queue.
    pub fn writes(&self, pid: i32, table: u32) -> bool {
        self.tables.get(&(pid, table)).is_some_and(|(_, changed)| *changed)
    }

    /// The process whose open transaction has locked the row of an item, and whether it locked and then changed rows of that
    /// table, as a worker does.
    pub fn locker(&self, table: u32, item: &Item) -> Option<(i32, bool)> {
        let pid = *self.transactions.get(&item.locker?).filter(|_| self.shows_sessions)?;
        Some((pid, self.tables.get(&(pid, table)) == Some(&(true, true))))
    }

    /// False if that is not known.
    pub fn is_in_transaction(&self, snapshot: &Snapshot, pid: i32) -> bool {
        self.shows_sessions && snapshot.backend(pid).is_some_and(|backend| backend.xact_start.is_some())
    }
}
