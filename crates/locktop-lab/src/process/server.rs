use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use locktop_base::clock;
use rustix::process::{Pid, Signal, kill_process};

use super::child::Process;

const WATCHDOG: &str = include_str!("watchdog.sh");
pub(crate) const SHELL: &str = "/bin/sh";
pub(crate) const POLL: Duration = Duration::from_millis(2);
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);
/// The path of a socket is limited to about 100 bytes.
const LONGEST_DIRECTORY: usize = 60;

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct LaunchError(String);

/// A server, run by a watchdog (see `watchdog.sh`), which ends it and removes its directory when this is dropped or this
/// process ends in any way.
#[derive(Debug)]
pub(crate) struct Server {
    name: &'static str,
    pub(crate) directory: PathBuf,
    watchdog: Process,
}

impl Server {
    /// Returns a new directory name, with a prefix, and a command of [`SHELL`] to which the server's command line is to be
    /// added. The directory gets a copy of the data directory `data`; `signal`, such as `QUIT`, ends the server at once.
    pub(crate) fn prepare(
        mut shell: Command,
        (parent, prefix): (&Path, &str),
        data: Option<&Path>,
        signal: &str,
    ) -> (PathBuf, Command) {
        let directory = parent.join(format!("{prefix}{:016x}", fastrand::u64(..)));
        shell.current_dir("/").args(["-c", WATCHDOG, "locktop-watchdog", signal]).arg(&directory);
        shell.arg(data.unwrap_or(Path::new("")));
        (directory, shell)
    }

    pub(crate) fn start(
        name: &'static str,
        directory: PathBuf,
        command: &mut Command,
    ) -> Result<Self, LaunchError> {
        match Process::start(command) {
            Ok(watchdog) => Ok(Self { name, directory, watchdog }),
            Err(error) => Err(no_watchdog(&directory, &error)),
        }
    }

    pub(crate) fn pid(&self) -> Option<i32> {
        if self.has_ended() { None } else { self.number("pid") }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(pid) = self.pid().and_then(Pid::from_raw) {
            // Fails only if the process has already ended.
            let _ = kill_process(pid, signal);
        }
    }

    /// Sends a signal that ends it, and returns once it has ended. The directory remains.
    pub(crate) async fn end(&self, signal: Signal) -> Result<(), LaunchError> {
        self.signal(signal);
        let ended = until(|| self.has_ended()).await;
        self.ended(ended)
    }

    /// Starts it again after it has ended, and removes its old files with these names.
    pub(crate) fn start_again(&mut self, left: &[&str]) -> Result<(), LaunchError> {
        for left in ["exit", "pid", "log"].iter().chain(left) {
            let _ = fs::remove_file(self.directory.join(left));
        }
        let told = self.watchdog.write_line("start");
        told.map_err(|error| no_watchdog(&self.directory, &error))
    }

    pub(crate) async fn ready(&mut self, is_ready: impl Fn(&Self) -> bool) -> Result<(), LaunchError> {
        let mut failure = None;
        let settled = until(|| {
            if self.has_ended() {
                failure = Some(("it ended at once", self.log()));
            } else if self.watchdog.status().is_some() {
                failure = Some(("its directory cannot be made", self.watchdog.stderr()));
            }
            failure.is_some() || is_ready(self)
        })
        .await;
        if settled && failure.is_none() {
            return Ok(());
        }
        let (reason, log) = failure.unwrap_or_else(|| ("it is not ready after 30 s", self.log()));
        Err(LaunchError(format!("{} did not start ({reason}); the end of its log: {log}", self.name)))
    }

    pub(crate) async fn stop(mut self) -> Result<(), LaunchError> {
        self.watchdog.close_stdin();
        let ended = until(|| self.watchdog.status().is_some()).await;
        self.ended(ended)
    }

    fn ended(&self, has_ended: bool) -> Result<(), LaunchError> {
        has_ended.then_some(()).ok_or_else(|| LaunchError(format!("{} has not ended after 30 s", self.name)))
    }

    fn has_ended(&self) -> bool {
        self.number("exit").is_some()
    }

    fn number(&self, file: &str) -> Option<i32> {
        fs::read_to_string(self.directory.join(file)).ok()?.trim().parse().ok()
    }

    fn log(&self) -> String {
        let log = fs::read_to_string(self.directory.join("log")).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        lines.get(lines.len().saturating_sub(5)..).unwrap_or_default().join(" | ")
    }
}

fn no_watchdog(directory: &Path, error: &io::Error) -> LaunchError {
    LaunchError(format!("cannot run the watchdog of {}: {error}", directory.display()))
}

impl Drop for Server {
    fn drop(&mut self) {
        // The watchdog does the rest, even after this process has ended.
        self.watchdog.close_stdin();
        let _ = self.watchdog.status();
    }
}

/// Polls for at most 30 seconds; returns whether the condition was met.
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

/// Whether a socket's path fits below a directory. A server treats commas and quotes in it specially, and a URL needs
/// escapes for them.
pub(crate) fn is_plain(path: &Path) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let fits = |text: &str| text.len() <= LONGEST_DIRECTORY && text.starts_with('/');
    path.to_str().is_some_and(|text| fits(text) && text.chars().all(plain))
}

#[cfg(test)]
mod tests {
    use super::is_plain;
    use std::path::Path;

    #[test]
    fn a_path_that_does_not_fit_a_socket_is_not_used() {
        assert!(is_plain(Path::new("/var/folders/x_1/tmp.d-2")));
        assert!(!is_plain(Path::new("relative")));
        assert!(!is_plain(Path::new("/tmp/with, comma")));
        assert!(!is_plain(Path::new(&format!("/{}", "x".repeat(90)))));
    }
}
