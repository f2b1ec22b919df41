use std::fs;

use rustix::process::Signal;

use super::Options;
use super::error::EmbeddedError;
use super::server::{EmbeddedServer, PORT};

/// Makes a server a standby when it starts. <https://www.postgresql.org/docs/current/warm-standby.html>
const SIGNAL: &str = "standby.signal";

impl EmbeddedServer {
    /// Starts a standby from a copy of this server's data; this server is shut down meanwhile. Returns once both accept
    /// connections; the standby may need a moment more to catch up. `options` are the standby's; its `max_connections` and
    /// similar settings must be at least this server's.
    pub async fn standby(&mut self, options: Options) -> Result<Self, EmbeddedError> {
        self.end(Signal::INT).await?;
        let data = self.socket_dir().join("data");
        let signal = data.join(SIGNAL);
        fs::write(&signal, "").map_err(EmbeddedError::file("write", &signal))?;
        let primary = format!("host={} port={PORT} user=postgres", self.socket_dir().display());
        let options = Options { bin: Some(self.binaries().bin.clone()), version: None, ..options }
            .with("primary_conninfo", primary)
            .with("wal_retrieve_retry_interval", "100ms");
        let standby = Self::start_from(options, Some(data)).await;
        // The standby has its copy by now, or will have none.
        fs::remove_file(&signal).map_err(EmbeddedError::file("remove", &signal))?;
        self.restart().await?;
        standby
    }
}
