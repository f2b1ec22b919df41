//! What can go wrong on the way to a Redis server of our own.

use std::io;
use std::path::PathBuf;

/// Why there is no Redis server. Each text names the thing and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum RedisServerError {
    /// No program on this machine.
    #[error(
        "no Redis server program (redis-server or valkey-server) found; install it with `{install}`, or name it in \
         LOCKTOP_REDIS_SERVER"
    )]
    NoProgram {
        /// The command that installs it on this platform.
        install: String,
    },
    /// The program that was named is none.
    #[error("LOCKTOP_REDIS_SERVER names {0}, and there is no such file")]
    NoFile(PathBuf),
    /// The watchdog could not be run or written to.
    #[error("cannot run the watchdog of {directory}: {source}")]
    Watchdog {
        /// The server's directory.
        directory: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The server ended while it started, or never answered.
    #[error("the Redis server did not start ({reason}); the end of its log: {log}")]
    NotStarted {
        /// What happened.
        reason: &'static str,
        /// Its last words.
        log: String,
    },
    /// The server was told to end and did not.
    #[error("the Redis server has not ended after 30 s")]
    NotEnded,
}
