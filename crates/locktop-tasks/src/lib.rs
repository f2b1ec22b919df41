//! Scheduled tasks and a work queue in PostgreSQL: the [`schema`] with its tables and functions, the [`work_session`] that takes tasks and
//! holds a lock for each while it works on it, and the [`worker`], the whole loop.
//!
//! Tables and functions of others are used only where their owners are trusted: [`trust`].
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        reason = "a test may"
    )
)]

pub mod schema;
pub mod sql;
pub mod trust;
pub mod work_session;
pub mod worker;
