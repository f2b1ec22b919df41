//! Child processes: started, given input, and ended, even if this process is killed.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use locktop_base::clock;

/// A process that ends when its standard input does: a pipe whose other end only this process has, and which closes
/// however this process ends. It is in its own process group, so that only this process receives Ctrl-C from the
/// terminal.
#[derive(Debug)]
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().map(Self)
    }

    pub(crate) fn write_line(&mut self, line: &str) -> io::Result<()> {
        self.0.stdin.as_mut().map_or(Ok(()), |pipe| pipe.write_all(format!("{line}\n").as_bytes()))
    }

    /// Closes its standard input, which requests it to end.
    pub(crate) fn close_stdin(&mut self) {
        drop(self.0.stdin.take());
    }

    pub(crate) fn status(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().ok().flatten()
    }

    /// Its standard error. Returns once that is closed, which happens when the process ends.
    pub(crate) fn stderr(&mut self) -> String {
        let mut said = String::new();
        if let Some(pipe) = &mut self.0.stderr {
            let _ = pipe.read_to_string(&mut said);
        }
        said.trim().to_owned()
    }

    pub(crate) fn pid(&self) -> Option<Pid> {
        i32::try_from(self.0.id()).ok().and_then(Pid::from_raw)
    }

    pub(crate) fn kill(&mut self) -> bool {
        self.0.kill().is_ok()
    }

    /// Returns once it has ended; it must have been requested to end before.
    pub(crate) fn wait(&mut self) {
        let _ = self.0.wait();
    }
}

/// Waits for the end of its input, then resumes the given process. Ignores signals from the terminal.
const SCRIPT: &str = "trap '' INT TERM HUP; read -r _; kill -CONT \"$1\"";

/// Keeps a process stopped while this lives. It is resumed even if this process is killed.
#[derive(Debug)]
pub(crate) struct Paused {
    waker: Process,
}

impl Paused {
    /// Stops a process; it stops a moment later.
    pub(crate) fn new(pid: Pid) -> io::Result<Self> {
        let mut command = Command::new(SHELL);
        command.args(["-c", SCRIPT, "locktop-waker"]).arg(pid.as_raw_nonzero().to_string());
        let waker = Process::start(&mut command)?;
        kill_process(pid, Signal::STOP)?;
        Ok(Self { waker })
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        self.waker.close_stdin();
        // Its only task is to send one signal.
        self.waker.wait();
    }
}

/// Whether a process is stopped, if the system shows that.
pub(crate) fn is_stopped(pid: Pid) -> Option<bool> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // The name before it, in parentheses, can contain anything.
    let state = stat.rsplit_once(')')?.1.trim_start().chars().next()?;
    Some(matches!(state, 'T' | 'Z' | 'X'))
}

const WATCHDOG: &str = include_str!("process/watchdog.sh");
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
