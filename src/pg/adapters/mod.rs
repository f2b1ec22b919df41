//! Job systems of other software: which exist, and whether and how each may be read.
//!
//! One catalog query finds the tables of all adapters. An installation is a schema with all required tables of an
//! adapter. It is planned or read only if its tables and schema belong to trusted owners ([`crate::pg::trust`]). Each
//! query is first parsed, to see what it names, then planned, to see what it would cost ([`gate`]), and only then run.
//! Each step is one message: a read-only transaction in which the tables are locked and checked again.

mod act;
mod find;
mod frame;
pub mod gate;
mod reader;
mod survey;

pub use act::{ActError, ActOn, act_message, find_statement};
pub(super) use reader::Adapters;
pub use survey::survey;
