//! What can go wrong on the way to a Redis server of our own.

use std::path::PathBuf;

use crate::process::LaunchError;

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
    #[error("LOCKTOP_REDIS_SERVER names {0}, which does not exist")]
    NoFile(PathBuf),
    /// As root: the program that was named could be changed by another user.
    #[error("LOCKTOP_REDIS_SERVER names {path}: {reason}")]
    NotOwned {
        /// The program that was named.
        path: PathBuf,
        /// Who could change it.
        reason: String,
    },
    /// It does not run, or does not end.
    #[error(transparent)]
    Launch(#[from] LaunchError),
}
