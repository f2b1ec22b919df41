//! Talking to PostgreSQL.

pub mod adapters;
pub mod decode;
pub mod learn;
pub mod lock_of;
pub mod poll;
mod rights;
mod scope;
mod section_error;
pub mod server_log;
pub(crate) mod sql;
pub mod systems;
mod tables;
pub mod tasks;

pub use locktop_tasks::trust;
pub use pg_connect::{connect, conninfo, error};
