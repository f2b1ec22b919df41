pub mod adapters;
mod background;
pub mod decode;
pub mod learn;
pub mod lock_of;
pub mod poll;
mod rights;
mod scope;
pub mod server_log;
pub mod sources;
pub(crate) mod sql;
pub mod statements;
mod tables;

pub use locktop_tasks::trust;
pub use pg_connect::{connect, conninfo, error};
