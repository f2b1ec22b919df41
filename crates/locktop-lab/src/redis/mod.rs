//! Private Redis servers, one or several: each on a Unix socket in a directory that no other user can enter, without
//! persistence, started in some milliseconds, and removed without a trace however this process ends (see
//! `process/watchdog.sh`).
//!
//! Such a server loses everything when it ends and comes back empty, a case that Redlock has to handle.

mod error;
mod find;
mod server;

pub use error::RedisServerError;
pub use find::find;
pub use server::RedisServer;
