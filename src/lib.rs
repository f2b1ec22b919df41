//! `top` for PostgreSQL locks: which sessions hold and wait for locks, and what terminating a backend would free.
//!
//! # Floors
//!
//! The first floors are crates: [`locktop_base`], [`pg_connect`], [`wait_graph`], [`locktop_locks`], [`locktop_tasks`].
//! [`text`], [`clock`], [`locks`], [`schema`] and [`worker`] are names for parts of them, and [`demo`] is a name for
//! [`locktop_lab`], which does not depend on this crate. A module imports only from itself and the modules before it in
//! this list, and only `cli` names the laboratory: [`keys`], [`model`], [`recording`], [`output`], [`pg`], [`redis`], [`action`], [`feed`],
//! [`app`], [`ui`], [`runtime`], [`config`], [`cli`]. `tests/offline/architecture.rs` checks this, and which external
//! crates a module may name.
//!
//! # How data flows
//!
//! ```text
//! PostgreSQL ─poll─▶ Snapshot ─▶ feed: wait graph, findings, series, events ─watch<Arc<View>>─▶ App::update ─▶ ui::render ─▶ terminal
//!                                                                        ▲ keys, ticks, resize   └─ Effect ─▶ runtime
//! ```
//!
//! One connection polls, with one round trip for each poll; each statement is independent, so that a failed one does not
//! affect the others. A second connection is kept open for the operator's actions. The feed runs on its own thread and
//! receives every snapshot; the screens receive a [`model::view::View`], and only the newest one is drawn.
//! [`app::App::update`] is pure: no clock, no input or output. Drawing reads the state and changes nothing.
//!
//! # What must hold
//!
//! 1. The terminal is restored on quit, error, panic (also in a task), SIGTERM, SIGHUP and around Ctrl-Z. A task
//!    that panics ends the program; nothing is drawn over its message. See [`runtime::terminal`].
//! 2. Text from the server is data: control characters, escape sequences, newlines, invalid UTF-8 and wide characters
//!    neither break the layout nor reach the terminal as commands. It passes [`text::one_line`] or [`text::lines`].
//! 3. NULL in any column is a value. A role with fewer privileges sees less, and is shown which grant would help.
//! 4. Rows are selected and marked by identity, such as a process id together with its start, never by position.
//! 5. Secrets appear in no error, log, recording or process list: [`pg::conninfo::Secret`].
//! 6. A section that fails is shown as failed, with its age; nothing stale is shown as live.
//! 7. The monitor never harms the server: no lock on a user's relation except to read the tables of tasks, leases, queue,
//!    limits and ids, short timeouts on everything, no statement more expensive than one scan of `pg_locks`.
//! 8. An action has the server compare the target with what was shown, in the statement that acts, and reports the result
//!    for each target; what the server did not confirm is not reported as done. See [`action`].
//!
//! # What surprised us
//!
//! - The poll calls `pg_lock_status()` and `pg_stat_get_activity()` instead of the views: the views join catalogs, so they
//!   wait while `pg_class` or `pg_database` is locked.
//! - Nine tenths of a poll of a busy server repeat the poll before. An idle session, also one that is idle in a
//!   transaction, neither takes nor releases a lock before its state changes; so its rows need not be sent again if its
//!   state is older than the last scan (`pg::poll`, the module `known`). Rows of a session that is idle only in between, to
//!   read notifications, are not kept.
//! - By default crossterm answers `NO_COLOR` with bare resets, which erase reverse and bold, and so the selection. The
//!   theme resolves the palette, and colour output is forced on ([`ui::theme`], [`runtime::terminal`]).
//! - A key that arrives together with a resize of the terminal may stay unread until the next key, and would then answer a
//!   question that was drawn after it was pressed. So no question can be answered while keys are unread
//!   ([`runtime::terminal`]).
//! - The `EventStream` must be dropped before a suspension, or it continues to read the shell's keys.
//! - A transfer that lost its race and retries in the same transaction deadlocks: row locks of the first attempt stay, also
//!   on rows that are passed over since, so the second attempt does not lock in order. Each attempt is a subtransaction.
//! - A transaction sees `pg_stat_activity` as of its first access: a session that started since seems to be disconnected. A
//!   worker that takes a queue item from a dead session clears this snapshot first, and reads the view after the row.
//! - Statements in one message of the simple protocol are one transaction without `BEGIN`, and an error in the middle
//!   leaves no failed transaction open; `SET LOCAL` works there, and `statement_timeout` applies to each statement
//!   separately. So each step of an action is one message.
//! - No server function reports a promotion or a restart after a crash: `pg_postmaster_start_time()` is older. The
//!   launchers in `pg_stat_activity` are as old as that (`up_since()` of the schema).
//! - Planner statistics are outdated right after many rows were added or removed, and a query with `LIMIT` may then read
//!   the whole table. So a poll reads users' tables with sequential and bitmap scans disabled, and only through indexes
//!   that surely find the rows. What a partial index contains is read from its stored expression: `pg_get_expr()` opens the
//!   table, and waits if it is locked.
//! - A function keeps the plan of its first call in a session, and an idle worker makes that call while the queue is empty:
//!   ten thousand items later each claim read all of them. So these functions disable sequential scans, and find claimed
//!   items by an array: a join over an empty table is planned without the index.
//! - A session that waits for a row waits for the end of a transaction, whose id does not recur, and the row's position
//!   changes with each update. So contention of rows is counted by table (`lock_contention` of the schema), which the tuple
//!   lock of the waiter shows.
//! - A statement outlives its worker by up to the second that the server needs to detect the lost client. Work of a dead
//!   session is pending again after a grace period, not at once ([`locks::work_session`]).
//! - A stopped process notices nothing, not even the end of its standard input: a process that stops another ensures that
//!   something else resumes it if the first one dies ([`demo`], the module `process`).
//! - A setting attached to a function (`SET search_path`) costs more than a short function does, once for each nested call.
//!   Without it every name is qualified, operators too: `OPERATOR(pg_catalog.=)`.
//! - A `BEFORE UPDATE` trigger locks its row, and the new version keeps the id of that lock: `xmax` is 0 only without a
//!   trigger, and is the writer's own id otherwise. Both mean that the row was not locked since.
//! - A log that a recovery closes shows no two executions of a task at once, whatever ran. Only the workers themselves can
//!   report an overlap, and not on the connection that holds the lock.
//! - A Redis server that restarts without its data grants a lock a second time: until it has been up for a term it has no
//!   vote ([`locks::redis_lock`]).
//! - A group of exclusive waiters has a quadratic number of queue edges: they stay implicit ([`model::wait_graph`]).
//! - In a pool with other clients, the process ids of two connections can look like those of two sessions, however often
//!   they are queried: the proof is that another client ran something on locktop's own session ([`locks::pooler`]).
//! - A notification is a transaction in every listening backend, and wakes its client: fifty workers that are notified and
//!   stay idle cost less than fifty that poll, and one that polls first costs least ([`worker`], the module `idle`). A
//!   worker that found nothing does not notify: fifty that do so cause two thousand five hundred wake-ups.
//! - glibc raises its mmap threshold each time a mapped block is freed: after one large poll the buffers of all later ones
//!   stay in its fragmented heaps. The threshold is set at the start ([`glibc_malloc`]): a fifth less memory at 84,000
//!   locks.
//! - The server parses `a | b & c` as `(a | b) & c`: all operators outside the SQL standard have the same precedence.
#![allow(
    missing_docs,
    clippy::must_use_candidate,
    clippy::return_self_not_must_use,
    clippy::missing_errors_doc,
    reason = "beside the program its tests and benches are the only callers; the crates below have it"
)]

#[cfg(test)]
extern crate self as locktop;

#[cfg(test)]
#[allow(
    unreachable_pub,
    missing_docs,
    dead_code,
    clippy::pedantic,
    reason = "shared with the benches, where it is a crate's"
)]
#[path = "../benches/support/sample.rs"]
mod sample;

pub use locktop_base::{clock, order, text};
#[cfg(feature = "demo")]
pub use locktop_lab as demo;
pub use locktop_tasks::{self as tasks, schema, worker};

pub mod action;
pub mod app;
pub mod cli;
pub mod config;
pub mod feed;
pub mod keys;

/// The lock systems of [`locktop_locks`], and the session of a worker.
pub mod locks {
    pub use locktop_locks::*;
    pub use locktop_tasks::work_session;
}

pub mod model;

/// Output formats.
pub mod output {
    pub mod check;
    pub mod csv;
    pub mod json;
    pub mod lock_of;
    pub mod report;
    #[cfg(test)]
    pub(crate) mod sample;
    pub mod table;
}

pub mod pg;
pub mod recording;
pub mod redis;
pub mod runtime;
pub mod ui;
