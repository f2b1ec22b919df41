//! Talking to PostgreSQL.

pub mod connect;
pub mod conninfo;
pub mod decode;
pub mod error;
pub mod learn;
pub mod poll;
mod refusal;
mod rights;
pub(crate) mod sql;
pub mod systems;
mod tables;
pub mod tasks;
pub mod tls;
pub mod trust;

pub(crate) use refusal::refusal;
pub(crate) use sql::{fill, without_comments};
