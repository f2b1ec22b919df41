//! A row of `pg_stat_activity`: one server process.
//!
//! Every column may be NULL: a role without `pg_read_all_stats` sees only `pid`, the database, the user and
//! the application of other roles' sessions (`src/backend/utils/adt/pgstatfuncs.c`, `HAS_PGSTAT_PERMISSIONS`).

use crate::tag::words;
use locktop_base::{QueryText, Text, Timestamp};

/// Identifies one backend for its lifetime: a process ID alone is reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BackendId {
    /// `pg_stat_activity.pid`: the process id in the operating system.
    pub pid: i32,
    /// When the process started; `None` for a role that may not see it.
    pub backend_start: Option<Timestamp>,
}

words! {
    /// What a backend is doing: `pg_stat_activity.state`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum State {
        /// `active`: executing a query.
        Active => "active",
        /// In a transaction, not executing: holds its locks for as long as its client likes.
        IdleInTransaction => "idle in transaction",
        /// `idle in transaction (aborted)`: the same after an error; only a rollback is accepted.
        IdleInTransactionAborted => "idle in transaction (aborted)",
        /// `fastpath function call`: executing a function in the fast-path protocol.
        FastpathFunctionCall => "fastpath function call",
        /// Waiting for a command, outside a transaction.
        Idle => "idle",
        /// `track_activities` is off for this backend.
        Disabled => "disabled",
        /// Initial startup (from PostgreSQL 18), authentication included.
        Starting => "starting",
        /// A state this version of locktop does not know.
        Other => "other",
    }
}

impl State {
    /// The state for the server's `text`.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        Self::of_word(text.as_bytes()).unwrap_or(Self::Other)
    }

    /// Whether it is in a transaction but idle.
    #[must_use]
    pub fn is_idle_in_transaction(self) -> bool {
        matches!(self, Self::IdleInTransaction | Self::IdleInTransactionAborted)
    }
}

/// One row of `pg_stat_activity`: a client backend or another server process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Backend {
    /// The process id in the operating system.
    pub pid: i32,
    /// When the process started; NULL for a role that may not see it.
    pub backend_start: Option<Timestamp>,
    /// The leader of its parallel group or apply worker, unless this process is the leader.
    pub leader_pid: Option<i32>,
    /// OID of the database that it is connected to; NULL for most auxiliary processes.
    pub datid: Option<u32>,
    /// Name of that database, if it could be looked up.
    pub database: Option<Text>,
    /// Name of the role that is logged in.
    pub user: Option<Text>,
    /// OID of that role; NULL for processes without one.
    pub usesysid: Option<u32>,
    /// `application_name`, as set by the client; may be empty.
    pub application: Option<Text>,
    /// Client address, `[local]` for a Unix socket.
    pub client: Option<Text>,
    /// The client's port; -1 for a Unix socket.
    pub client_port: Option<i32>,
    /// `client backend`, `autovacuum worker`, `walsender`, …
    pub backend_type: Option<Text>,
    /// Its state; NULL for a process without a client, such as the checkpointer.
    pub state: Option<State>,
    /// `Lock`, `LWLock`, `IO`, `IPC`, `Client`, …
    pub wait_event_type: Option<Text>,
    /// The event within that type; NULL when it does not wait.
    pub wait_event: Option<Text>,
    /// Start of its current transaction; NULL outside a transaction.
    pub xact_start: Option<Timestamp>,
    /// Start of the current query, or of the last one when not active.
    pub query_start: Option<Timestamp>,
    /// When `state` last changed; NULL for a role that may not see it.
    pub state_change: Option<Timestamp>,
    /// Its top-level transaction ID; NULL until it has written.
    pub backend_xid: Option<u32>,
    /// Its xmin horizon: VACUUM keeps every row version deleted by this transaction or a later one. NULL
    /// without a snapshot.
    pub backend_xmin: Option<u32>,
    /// `queryid` of `pg_stat_statements`; NULL when `compute_query_id` is off.
    pub query_id: Option<i64>,
    /// The query, or the last one; truncated by the server at `track_activity_query_size` bytes.
    pub query: Option<QueryText>,
}

impl Backend {
    /// The pair of `pid` and `backend_start`.
    #[must_use]
    pub fn id(&self) -> BackendId {
        BackendId { pid: self.pid, backend_start: self.backend_start }
    }

    /// Whether it is an autovacuum worker that does not yield to other sessions.
    #[must_use]
    pub fn prevents_wraparound(&self) -> bool {
        self.query.as_ref().is_some_and(|query| query.contains("(to prevent wraparound)"))
    }

    /// The leader of its lock group: members of a group never block each other (`src/backend/storage/lmgr/README`, "Group
    /// Locking"). A parallel apply worker of logical replication has a leader too, but is in no lock group: the two can block
    /// each other (`pg_stat_get_activity` in `src/backend/utils/adt/pgstatfuncs.c`).
    #[must_use]
    pub fn group(&self) -> i32 {
        if self.backend_type.as_deref() == Some("logical replication parallel worker") {
            return self.pid;
        }
        self.leader_pid.unwrap_or(self.pid)
    }
}
