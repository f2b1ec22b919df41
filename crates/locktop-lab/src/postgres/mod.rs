//! An embedded PostgreSQL server: found or downloaded, started in about 100 ms, and removed without a trace.
//!
//! The server listens only on a Unix socket, in a directory that no other user can enter, and lives exactly as long as
//! the process that started it: however that process ends, a separate watchdog stops the server and removes the directory
//! (see `process/watchdog.sh`).
//!
//! A PostgreSQL installation is not changed: only its programs are used.

mod cache;
mod find;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use locktop_base::clock;
use rustix::process::Signal;

use crate::DemoError;
use crate::process::{POLL, SHELL, Server, TIMEOUT};
use cache::{Account, Cache};
pub use find::{Binaries, SUPPORTED};

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

impl DemoError {
    /// For `map_err`: names the file and what was tried, such as `read`.
    fn file(action: &str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        Self::cannot(format!("{action} {}", path.display()))
    }
}

fn bad_directory(path: &Path, reason: &str) -> DemoError {
    DemoError::Other(format!("{} cannot be used as a PostgreSQL bin directory: {reason}", path.display()))
}

/// The output of a program that succeeds; an error has its standard error, or why it did not start.
fn output(command: &mut Command, program: &str) -> Result<String, DemoError> {
    let failed = |output: &str| DemoError::Other(format!("`{program}` failed: {output}"));
    match command.stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(output) => Err(failed(String::from_utf8_lossy(&output.stderr).trim())),
        Err(error) => Err(failed(&error.to_string())),
    }
}

const PORT: u16 = 5432;
const NAME: &str = "the embedded PostgreSQL server";

/// Settings that apply unless the caller sets them. Nothing has to survive a crash, so nothing waits for the disk; shared
/// memory is kept in files of the data directory, which are removed with it; autovacuum takes no locks.
const SETTINGS: [(&str, &str); 13] = [
    ("listen_addresses", ""),
    ("unix_socket_permissions", "0700"),
    ("fsync", "off"),
    ("full_page_writes", "off"),
    ("autovacuum", "off"),
    ("dynamic_shared_memory_type", "mmap"),
    ("shared_buffers", "16MB"),
    ("max_wal_size", "64MB"),
    ("max_connections", "100"),
    ("max_prepared_transactions", "20"),
    ("log_min_messages", "fatal"),
    ("log_checkpoints", "off"),
    ("timezone", "UTC"),
];

/// An embedded server. It ends, and its directory is removed, when this is dropped or this process ends in any way.
#[derive(Debug)]
pub struct EmbeddedServer {
    server: Server,
    binaries: Binaries,
}

impl EmbeddedServer {
    pub async fn start(options: Options) -> Result<Self, DemoError> {
        Self::start_from(options, None).await
    }

    /// The same with a copy of the data directory `data` of a stopped server.
    async fn start_from(options: Options, data: Option<PathBuf>) -> Result<Self, DemoError> {
        // A thread of its own: a download that hangs must not keep a runtime from shutting down.
        let (sender, receiver) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || drop(sender.send(Self::spawn(&options, data))));
        let mut server = receiver.await.map_err(|_| {
            DemoError::Other("the embedded PostgreSQL server did not start (its thread ended)".to_owned())
        })??;
        server.server.ready(is_ready).await?;
        Ok(server)
    }

    fn spawn(options: &Options, data: Option<PathBuf>) -> Result<Self, DemoError> {
        let account = Account::detect()?;
        let binaries = Binaries::for_account(options, account)?;
        let template = match data {
            Some(data) => data,
            None => template(&binaries, account, options.notice)?,
        };
        let (shell, parent) = (account.command(Path::new(SHELL)), cache::temporary(account));
        let (directory, mut command) = Server::prepare(shell, (&parent, "locktop-"), Some(&template), "QUIT");
        command.arg(binaries.bin.join("postgres")).arg("-D").arg(directory.join("data"));
        command.arg("-c").arg(format!("unix_socket_directories={}", directory.display()));
        command.arg("-c").arg(format!("port={PORT}"));
        let own = SETTINGS.iter().map(|(name, value)| (*name, *value));
        let asked = options.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in own.chain(asked) {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        Ok(Self { server: Server::start(NAME, directory, &mut command)?, binaries })
    }

    #[must_use]
    pub fn conninfo(&self) -> String {
        format!(
            "host={} port={PORT} user=postgres dbname=postgres sslmode=disable",
            self.socket_dir().display()
        )
    }

    #[must_use]
    pub fn socket_dir(&self) -> &Path {
        &self.server.directory
    }

    #[must_use]
    pub fn version(&self) -> u32 {
        self.binaries.major
    }

    #[must_use]
    pub fn binaries(&self) -> &Binaries {
        &self.binaries
    }

    #[must_use]
    pub fn pid(&self) -> Option<i32> {
        self.server.pid()
    }

    pub async fn stop(self) -> Result<(), DemoError> {
        self.server.stop().await
    }

    /// Kills the server with SIGKILL, as a crash would, and returns once it has ended. The directory remains, for
    /// [`Self::restart`].
    pub async fn kill_hard(&mut self) -> Result<(), DemoError> {
        self.end(Signal::KILL).await
    }

    /// Starts the server again on the same socket, with the same data; a running one is shut down first, which terminates its
    /// sessions.
    pub async fn restart(&mut self) -> Result<(), DemoError> {
        self.end(Signal::INT).await?;
        let start = clock::monotonic();
        loop {
            self.server.start_again(&[])?;
            match self.server.ready(is_ready).await {
                // After a crash the sessions need a moment to notice, and until then they use the shared memory.
                Err(error) if error.to_string().contains("still in use") && start.elapsed() < TIMEOUT => {
                    tokio::time::sleep(POLL * 10).await;
                }
                outcome => return outcome,
            }
        }
    }

    async fn end(&mut self, signal: Signal) -> Result<(), DemoError> {
        self.server.end(signal).await
    }
}

/// Whether it accepts connections. It writes its state in line 8 of `postmaster.pid` (src/include/utils/pidfile.h), and
/// its process id in line 1; a file of an earlier server may still exist.
fn is_ready(server: &Server) -> bool {
    let Ok(text) = fs::read_to_string(server.directory.join("data/postmaster.pid")) else { return false };
    let mut lines = text.lines().map(str::trim);
    let pid = lines.next().and_then(|line| line.parse().ok());
    pid.is_some() && pid == server.pid() && lines.nth(6) == Some("ready")
}

/// Makes a server a standby when it starts. <https://www.postgresql.org/docs/current/warm-standby.html>
const SIGNAL: &str = "standby.signal";

impl EmbeddedServer {
    /// Starts a standby from a copy of this server's data; this server is shut down meanwhile. Returns once both accept
    /// connections; the standby may need a moment more to catch up. `options` are the standby's; its `max_connections` and
    /// similar settings must be at least this server's.
    pub async fn standby(&mut self, options: Options) -> Result<Self, DemoError> {
        self.end(Signal::INT).await?;
        let data = self.socket_dir().join("data");
        let signal = data.join(SIGNAL);
        fs::write(&signal, "").map_err(DemoError::file("write", &signal))?;
        let primary = format!("host={} port={PORT} user=postgres", self.socket_dir().display());
        let options = Options { bin: Some(self.binaries().bin.clone()), version: None, ..options }
            .with("primary_conninfo", primary)
            .with("wal_retrieve_retry_interval", "100ms");
        let standby = Self::start_from(options, Some(data)).await;
        // The standby has its copy by now, or will have none.
        fs::remove_file(&signal).map_err(DemoError::file("remove", &signal))?;
        self.restart().await?;
        standby
    }
}

/// Increased whenever `ARGUMENTS` change, so that older templates are not reused.
const REVISION: u32 = 1;

/// `initdb`: no waiting for the disk, a superuser `postgres` without a password (no other user can reach the socket), and
/// small WAL segments, which make the copy faster.
const ARGUMENTS: [&str; 8] =
    ["-N", "-U", "postgres", "-A", "trust", "--encoding=UTF8", "--locale=C", "--wal-segsize=1"];

/// The directory to copy. Blocks while it is created, the first time.
fn template(binaries: &Binaries, account: Account, notice: fn(&str)) -> Result<PathBuf, DemoError> {
    let Binaries { bin, version, .. } = binaries;
    let name = format!("{}-{}-{REVISION}", slug(version), account.uid());
    let begins = |template: &Path| {
        notice(&format!("making a server template for {version} in {}", template.display()));
    };
    Cache::for_account(account)?.once("template", &name, begins, |work| {
        account.own(work)?;
        let (program, data) = (bin.join("initdb"), work.join("data"));
        let mut initdb = account.command(&program);
        output(initdb.args(ARGUMENTS).arg("-D").arg(&data), &program.display().to_string())?;
        // Only the owner may read it; the server requires that, too.
        fs::set_permissions(&data, fs::Permissions::from_mode(0o700))
            .map_err(DemoError::file("close", &data))?;
        Ok(data)
    })
}

/// A version as a file name: `15.13-debian-15.13-0-deb12u1`.
fn slug(version: &str) -> String {
    let version = version.strip_prefix("postgres (PostgreSQL) ").unwrap_or(version);
    let parts =
        version.split(|c: char| !(c.is_ascii_alphanumeric() || c == '.')).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::slug;

    #[test]
    fn a_version_becomes_a_file_name() {
        assert_eq!(slug("postgres (PostgreSQL) 18.4"), "18.4");
        assert_eq!(
            slug("postgres (PostgreSQL) 15.13 (Debian 15.13-0+deb12u1)"),
            "15.13-debian-15.13-0-deb12u1"
        );
    }
}
