//! Scheduled tasks and a work queue in PostgreSQL: the [`schema`] with its tables and functions, the [`work_session`]
//! that takes tasks and holds a lock for each while it works on it, the [`worker`] with the whole loop, and the
//! [`recovery`] of what a lost worker left behind.
//!
//! Tables and functions of other owners are used only if the owners are trusted: [`trust`]. An action on behalf of an
//! [`actor`] is one transaction in one [`message`], with each text as a [`literal`] that is safe in every encoding.
#![allow(
    clippy::missing_errors_doc,
    reason = "the types of errors say what can go wrong; a section says what follows where that is not plain"
)]

pub mod actor;
pub mod literal;
pub mod message;
pub mod recovery;
pub mod schema;
pub mod sql;
pub mod trust;
pub mod work_session;
pub mod worker;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
