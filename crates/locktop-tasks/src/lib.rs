//! Scheduled tasks and a work queue in PostgreSQL: the [`schema`] with its tables and functions, the [`work_session`]
//! that takes tasks and holds a lock for each while it works on it, the [`worker`] with the whole loop, and the
//! [`recovery`] of what a lost worker left behind. For a program with a loop of its own:
//!
//! - [`scheduled_task`]: tasks that one of many workers runs when they are due.
//! - [`work_queue`]: items that each go to one worker at a time.
//! - [`rate_limit`]: a maximum number of requests in a window.
//! - [`snowflake`]: ids that grow with time.
//!
//! Tables and functions of other owners are used only if the owners are trusted: [`trust`]. An action on behalf of an
//! [`actor`] is one transaction in one [`message`], with each text as a [`literal`] that is safe in every encoding.
#![warn(missing_docs)]
#![allow(
    clippy::missing_errors_doc,
    reason = "the types of errors say what can go wrong; a section says what follows where that is not plain"
)]

pub mod actor;
pub mod literal;
pub mod message;
pub mod rate_limit;
pub mod recovery;
pub mod scheduled_task;
pub mod schema;
pub mod snowflake;
pub mod sql;
pub mod trust;
pub mod work_queue;
pub mod work_session;
pub mod worker;

pub use locktop_locks::pg_connect;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
