//! A running server.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::account::Account;
use super::error::EmbeddedError;
use super::find::Binaries;
use super::{Options, place, template};
use locktop_base::clock;

const WATCHDOG: &str = include_str!("watchdog.sh");
pub(super) const PORT: u16 = 5432;
const POLL: Duration = Duration::from_millis(2);
/// Longest wait for the server to be ready, or to end.
const TIMEOUT: Duration = Duration::from_secs(30);

/// What the launcher sets unless the caller does. Nothing here has to survive a crash, so nothing waits for the disk;
/// shared memory is kept in files of the data directory, which go with it; autovacuum takes no locks of its own.
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

/// An embedded server. It ends, and its directory is removed, when this is dropped or this process ends, in whatever
/// way.
#[derive(Debug)]
pub struct EmbeddedServer {
    directory: PathBuf,
    binaries: Binaries,
    watchdog: Child,
}

impl EmbeddedServer {
    /// Starts a server and returns once it accepts connections: about 100 ms when its programs and its template are
    /// there.
    ///
    /// # Errors
    /// When there are no programs to run, nobody to run them as, or the server refuses to start.
    pub async fn start(options: Options) -> Result<Self, EmbeddedError> {
        Self::start_from(options, None).await
    }

    /// The same with a copy of this data directory, of a server that does not run.
    pub(super) async fn start_from(options: Options, data: Option<PathBuf>) -> Result<Self, EmbeddedError> {
        // A thread of its own: a download that hangs must not keep a runtime from shutting down.
        let (sender, receiver) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || sender.send(Self::spawn(&options, data)));
        let mut server = receiver.await.unwrap_or(Err(EmbeddedError::NotStarted {
            reason: "the thread that prepares it ended",
            log: String::new(),
        }))?;
        server.ready().await?;
        Ok(server)
    }

    fn spawn(options: &Options, data: Option<PathBuf>) -> Result<Self, EmbeddedError> {
        let account = Account::detect()?;
        let binaries = Binaries::for_account(options, account)?;
        let template = match data {
            Some(data) => data,
            None => template::ensure(&binaries, account, options.notice)?,
        };
        let directory =
            place::temporary(account).join(format!("locktop-{:016x}", RandomState::new().hash_one(0)));
        let mut command = account.command(Path::new("/bin/sh"));
        command.args(["-c", WATCHDOG, "locktop-watchdog"]).arg(&directory).arg(&template);
        command.arg(binaries.bin.join("postgres")).arg("-D").arg(directory.join("data"));
        command.arg("-c").arg(format!("unix_socket_directories={}", directory.display()));
        command.arg("-c").arg(format!("port={PORT}"));
        let own = SETTINGS.iter().map(|(name, value)| (*name, *value));
        let asked = options.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in own.chain(asked) {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        // A process group of its own: Ctrl-C at the terminal is not for the server.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let watchdog = command.spawn().map_err(EmbeddedError::file("run", Path::new("/bin/sh")))?;
        Ok(Self { directory, binaries, watchdog })
    }

    /// A connection string (`key=value`) for the superuser `postgres` and the database `postgres`.
    #[must_use]
    pub fn conninfo(&self) -> String {
        format!("host={} port={PORT} user=postgres dbname=postgres sslmode=disable", self.directory.display())
    }

    /// The directory of the server's socket, and of everything else that it has.
    #[must_use]
    pub fn socket_dir(&self) -> &Path {
        &self.directory
    }

    /// The major version.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.binaries.major
    }

    /// The programs it was started from.
    #[must_use]
    pub fn binaries(&self) -> &Binaries {
        &self.binaries
    }

    /// Process id of the server (the postmaster); `None` when it has ended.
    #[must_use]
    pub fn pid(&self) -> Option<i32> {
        if self.has_ended() { None } else { self.number("pid") }
    }

    /// Ends the server and returns once it and its directory are gone.
    ///
    /// # Errors
    /// When it has not ended after 30 seconds.
    pub async fn stop(mut self) -> Result<(), EmbeddedError> {
        drop(self.watchdog.stdin.take());
        let watchdog = &mut self.watchdog;
        until(|| watchdog.try_wait().is_ok_and(|status| status.is_some()))
            .await
            .then_some(())
            .ok_or(EmbeddedError::NotEnded)
    }

    /// Kills the server with SIGKILL, as a crash would, and returns once it is gone. The directory stays, for
    /// [`Self::restart`].
    ///
    /// # Errors
    /// When it has not ended after 30 seconds.
    pub async fn kill_hard(&mut self) -> Result<(), EmbeddedError> {
        self.end(Signal::KILL).await
    }

    /// Starts the server again on the same socket, with the same data; one that runs is shut down first, which ends its
    /// sessions.
    ///
    /// # Errors
    /// When the server refuses to start.
    pub async fn restart(&mut self) -> Result<(), EmbeddedError> {
        self.end(Signal::INT).await?;
        let start = clock::monotonic();
        loop {
            for left in ["exit", "pid", "log"] {
                let _ = fs::remove_file(self.directory.join(left));
            }
            let pipe = self.watchdog.stdin.as_mut();
            pipe.map_or(Ok(()), |pipe| pipe.write_all(b"start\n"))
                .map_err(EmbeddedError::file("write to the watchdog of", &self.directory))?;
            match self.ready().await {
                // After a crash the sessions need a moment to notice, and the shared memory is theirs until then.
                Err(EmbeddedError::NotStarted { log, .. })
                    if log.contains("still in use") && start.elapsed() < TIMEOUT =>
                {
                    tokio::time::sleep(POLL * 10).await;
                }
                outcome => return outcome,
            }
        }
    }

    pub(super) async fn end(&mut self, signal: Signal) -> Result<(), EmbeddedError> {
        if let Some(pid) = self.pid().and_then(Pid::from_raw) {
            // Only fails when it is gone already.
            let _ = kill_process(pid, signal);
        }
        let ended = until(|| self.has_ended()).await;
        ended.then_some(()).ok_or(EmbeddedError::NotEnded)
    }

    /// Waits until the server accepts connections, as its lock file says.
    async fn ready(&mut self) -> Result<(), EmbeddedError> {
        let mut failure = None;
        let settled = until(|| {
            if self.has_ended() {
                failure = Some(self.failure("it ended at once"));
            } else if self.watchdog.try_wait().is_ok_and(|status| status.is_some()) {
                failure = Some(self.no_watchdog());
            }
            failure.is_some() || self.is_ready()
        })
        .await;
        match failure {
            Some(failure) => Err(failure),
            None if settled => Ok(()),
            None => Err(self.failure("it is not ready after 30 s")),
        }
    }

    /// The server writes its state in line 8 of `postmaster.pid` (src/include/utils/pidfile.h), and its process id in
    /// line 1; a file of an earlier server may still be there.
    fn is_ready(&self) -> bool {
        let Ok(text) = fs::read_to_string(self.directory.join("data/postmaster.pid")) else { return false };
        let mut lines = text.lines().map(str::trim);
        let pid = lines.next().and_then(|line| line.parse().ok());
        pid.is_some() && pid == self.number("pid") && lines.nth(6) == Some("ready")
    }

    fn has_ended(&self) -> bool {
        self.number("exit").is_some()
    }

    /// The number that the watchdog left in a file.
    fn number(&self, file: &str) -> Option<i32> {
        fs::read_to_string(self.directory.join(file)).ok()?.trim().parse().ok()
    }

    fn failure(&self, reason: &'static str) -> EmbeddedError {
        let log = fs::read_to_string(self.directory.join("log")).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        let last = lines.get(lines.len().saturating_sub(5)..).unwrap_or_default();
        EmbeddedError::NotStarted { reason, log: last.join(" | ") }
    }

    /// The watchdog ended by itself: it could not make or fill the directory.
    fn no_watchdog(&mut self) -> EmbeddedError {
        let mut output = String::new();
        if let Some(pipe) = &mut self.watchdog.stderr {
            let _ = pipe.read_to_string(&mut output);
        }
        EmbeddedError::Program { program: "/bin/sh".to_owned(), output: output.trim().to_owned() }
    }
}

impl Drop for EmbeddedServer {
    fn drop(&mut self) {
        // The watchdog does the rest, also after this process has ended.
        drop(self.watchdog.stdin.take());
        let _ = self.watchdog.try_wait();
    }
}

/// Asks again and again, for 30 seconds at most; says whether the answer was yes.
async fn until(mut condition: impl FnMut() -> bool) -> bool {
    let start = clock::monotonic();
    while start.elapsed() < TIMEOUT {
        if condition() {
            return true;
        }
        tokio::time::sleep(POLL).await;
    }
    condition()
}
