//! `top` for PostgreSQL locks: who holds what, who waits for whom, and what ending a backend would free.
//!
//! # Floors
//!
//! Crates are the lower floors: [`locktop_base`], [`pg_connect`], [`wait_graph`], [`locktop_locks`], [`locktop_tasks`]; [`text`], [`clock`], [`locks`], [`schema`] and [`worker`]
//! are names for parts of them, and [`demo`] is one for the laboratory, [`locktop_lab`], which does not know this crate. Of the modules of this one a file imports only from its own and those
//! before it in this list, none but `cli` names the laboratory, and `tests/offline/architecture.rs` checks that, and which external crates a module may name: [`keys`], [`model`], [`wire`], [`pg`], [`redis`], [`action`], [`feed`], [`app`], [`ui`], [`runtime`], [`config`], [`cli`].
//!
//! # How data flows
//!
//! ```text
//! PostgreSQL ─poll─▶ Snapshot ─▶ feed: wait graph, findings, series, events ─watch<Arc<View>>─▶ App::update ─▶ ui::render ─▶ terminal
//!                                                                        ▲ keys, ticks, resize   └─ Effect ─▶ runtime
//! ```
//!
//! One connection polls, one round trip a poll; each statement stands alone, so one that fails leaves the others. A second
//! connection is kept open for what the operator asks for. The feed runs on a thread of its own and sees every
//! snapshot; what goes to the screens is a [`model::view::View`], of which the newest wins. [`app::App::update`] is pure: no clock, no
//! input or output. Drawing reads the state and changes nothing.
//!
//! # What must hold
//!
//! 1. The terminal is given back on quit, error, panic (also in a task), SIGTERM, SIGHUP and around Ctrl-Z. A task
//!    that panics ends the program; nothing is ever drawn over its message. See [`runtime::terminal`].
//! 2. Text from the server is data: control characters, escape sequences, newlines, invalid UTF-8 and wide characters
//!    neither break the layout nor reach the terminal as commands. It passes [`text::one_line`] or [`text::lines`].
//! 3. NULL in any column is a value. A role that may see less sees less, and is told which grant would show more.
//! 4. Nothing is selected or marked by position: by identity, such as a process id together with its start.
//! 5. Secrets appear in no error, log, recording or process list: [`pg::conninfo::Secret`].
//! 6. A section that fails says so with its age; nothing stale is shown as live.
//! 7. The monitor never hurts the server: no lock on a user's relation beyond reading the tables of tasks, leases, queue, limits and ids, short
//!    time-outs on everything, no statement dearer than one scan of `pg_locks`.
//! 8. What acts has the server compare the target with what was seen, in the statement that acts, and says what came of each target; what the
//!    server did not confirm is not reported as done. See [`action`].
//!
//! # What surprised us
//!
//! - The poll reads `pg_lock_status()` and `pg_stat_get_activity()` themselves, not the views over them: the views join
//!   catalogs, and with `pg_class` or `pg_database` locked their statements would wait.
//! - Nine tenths of a poll of a busy server are what the poll before had. A session that is idle, also in a transaction, neither takes nor gives
//!   back a lock before its state changes; so its rows need not come again, while its time is older than the last scan (`pg::poll`, the module
//!   `known`). What somebody holds that is idle only in between, to read notifications, is not kept.
//! - Left to itself crossterm answers `NO_COLOR` with bare resets, which erase reverse and bold, and with them the selection. The
//!   theme resolves the palette, and colour output is forced on ([`ui::theme`], [`runtime::terminal`]).
//! - A key that comes at the same time as a change of the terminal's size may stay unread until the next key, and would then answer a question
//!   that was drawn after it was pressed. So no question can be answered while there are unread keys ([`runtime::terminal`]).
//! - The `EventStream` must be gone before a suspension, or it goes on reading the shell's keys.
//! - A transfer that lost its race and tries again in the same transaction deadlocks: a row lock that the first attempt took stays,
//!   also on a row that was passed over since, and the second does not take them in order. Each attempt is a subtransaction.
//! - What a transaction sees of `pg_stat_activity` is frozen at its first look: a session that began since seems to be gone. Who
//!   takes an item of the queue from a dead session clears that view first, and looks after it has read the row.
//! - Statements in one message of the simple protocol are one transaction without `BEGIN`, and an error in the middle leaves no failed
//!   transaction open; `SET LOCAL` works there, and `statement_timeout` counts anew for each. So a step of an action is one message.
//! - No function of the server tells when it was promoted, or started anew after a crash: `pg_postmaster_start_time()` is older. The launchers
//!   in `pg_stat_activity` are as old as that (`up_since()` of the schema).
//! - The planner's numbers are old right after a crowd of rows came or went, and a query with a `LIMIT` then reads all of a table. So a poll
//!   reads users' tables with sequential and bitmap scans switched off, and only through indexes that surely find the rows. What a
//!   partial index has is read from its stored expression: `pg_get_expr()` opens the table, and waits where that is locked.
//! - A function keeps the plan of its first call in a session, and an idle worker makes that while the queue is empty: ten thousand items
//!   later each claim went through all of them. So those functions have no sequential scans, and find what they claimed by an array: a
//!   join over an empty table is planned without the index.
//! - Who waits for a row waits for the end of a transaction, whose number never comes again, and a row's place changes with each update. So
//!   contention of rows is counted by table (`lock_contention` of the schema): the one who waits has the row's place locked, which tells it.
//! - A statement outlives the worker that sent it, by up to the second that the server needs to see that nobody listens. What a dead
//!   session had is pending again after a grace, not at once ([`locks::work_session`]).
//! - A process that was stopped notices nothing, not even that its standard input has ended: whoever stops one sees to it that
//!   something else wakes it when they die ([`demo`], the module `process`).
//! - A setting at the head of a function (`SET search_path`) costs more than a short function does, and a nested call pays again. Without it
//!   everything is named in full, operators too: `OPERATOR(pg_catalog.=)`.
//! - A `BEFORE UPDATE` trigger locks its row, and the new version keeps that lock's number: `xmax` is 0 only where no trigger is, and else
//!   that of the writer itself. Both say that nobody has locked the row since.
//! - A log that a recovery closes shows no two executions of a task at once, whatever ran. Only those who did the work can tell,
//!   and not on the connection that holds the lock.
//! - A Redis server that restarts without its data gives a lock away a second time: until it has been up for a term it has no vote
//!   ([`locks::redis_lock`]).
//! - A group of exclusive waiters has a quadratic number of queue edges: they stay implicit ([`model::wait_graph`]).
//! - In a pool that others keep busy, the process ids of two connections can look like those of two sessions for as long as one
//!   cares to ask: what tells is that somebody else ran something on ours ([`locks::pooler`]).
//! - A notification is a transaction in every backend that listens, and wakes its client: fifty that are told and stay asleep
//!   cost less than fifty that look, and one that looks first costs least ([`worker`], the module `idle`). That nothing has happened is
//!   not worth telling: fifty that do so cost two thousand five hundred.
//! - glibc raises the limit from which on it maps a block by itself each time such a block is freed: after one large look the buffers of all
//!   later ones stay in its heaps, with holes between them. The limit is set at the start ([`glibc_malloc`]): a fifth less memory at 84,000 locks.
//! - To the server `a | b & c` is `(a | b) & c`: operators that are not the standard's all bind alike.
#![allow(
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

pub use locktop_base::{clock, text};
pub use locktop_lab as demo;
pub use locktop_tasks::{schema, worker};

pub mod action;
pub mod app;
pub mod cli;
pub mod config;
pub mod feed;
pub mod keys;

/// Lock systems: those of [`locktop_locks`], and the session of a worker.
pub mod locks {
    pub use locktop_locks::*;
    pub use locktop_tasks::work_session;
}

pub mod model;
pub mod pg;
pub mod redis;
pub mod runtime;
pub mod ui;
pub mod wire;
