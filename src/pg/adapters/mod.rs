//! The job systems of others: which there are, and whether and how each may be read.
//!
//! One query over the catalogs finds the tables of all adapters. An installation is a schema in which all tables of an adapter are that it
//! cannot do without. Nothing of one is planned or read unless its tables and their schema belong to trusted owners ([`crate::pg::trust`]);
//! then each query is first understood, so that it is seen what it names, then planned, so that it is seen what it would cost ([`gate`]), and
//! only then may it run: in one message each, which is one transaction, read-only, with the tables locked and looked at again.

mod act;
mod ask;
mod decode;
mod each;
mod find;
mod found;
mod frame;
pub mod gate;
mod reader;
mod rehearse;
mod survey;

pub use act::{ActError, ActOn, act_message, find_statement};
pub(super) use reader::Adapters;
pub use survey::survey;
