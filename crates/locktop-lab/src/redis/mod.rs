//! Redis servers of our own, one or several: each on a Unix socket in a directory that nobody else can enter, without
//! persistence, started in some milliseconds, and gone without a trace however this process ends (see `process/watchdog.sh`).
//!
//! Such a server forgets everything when it ends, and comes back empty: what Redlock has to live with.

mod error;
mod find;
mod server;

pub use error::RedisServerError;
pub use find::find;
pub use server::RedisServer;
