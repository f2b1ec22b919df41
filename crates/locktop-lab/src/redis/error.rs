use std::path::PathBuf;

use crate::process::LaunchError;

#[derive(Debug, thiserror::Error)]
pub enum RedisServerError {
    #[error(
        "no Redis server program (redis-server or valkey-server) found; install it with `{install}`, or name it in \
         LOCKTOP_REDIS_SERVER"
    )]
    NoProgram { install: String },
    #[error("LOCKTOP_REDIS_SERVER names {0}, which does not exist")]
    NoFile(PathBuf),
    /// Only as root: another user could change the program.
    #[error("LOCKTOP_REDIS_SERVER names {path}: {reason}")]
    NotOwned { path: PathBuf, reason: String },
    #[error(transparent)]
    Launch(#[from] LaunchError),
}
