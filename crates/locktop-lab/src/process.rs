//! Programs and child processes. These are started, given input, and ended, even if this process is killed.
//!
//! As root, locktop uses no program or file that a user other than root could replace: a user's directory may be root's
//! `HOME`, or on root's search path.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::DemoError;
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
    ) -> Result<Self, DemoError> {
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
    pub(crate) async fn end(&self, signal: Signal) -> Result<(), DemoError> {
        self.signal(signal);
        let ended = until(|| self.has_ended()).await;
        self.ended(ended)
    }

    /// Starts it again after it has ended, and removes its old files with these names.
    pub(crate) fn start_again(&mut self, left: &[&str]) -> Result<(), DemoError> {
        for left in ["exit", "pid", "log"].iter().chain(left) {
            let _ = fs::remove_file(self.directory.join(left));
        }
        let told = self.watchdog.write_line("start");
        told.map_err(|error| no_watchdog(&self.directory, &error))
    }

    pub(crate) async fn ready(&mut self, is_ready: impl Fn(&Self) -> bool) -> Result<(), DemoError> {
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
        Err(DemoError::Other(format!("{} did not start ({reason}); the end of its log: {log}", self.name)))
    }

    pub(crate) async fn stop(mut self) -> Result<(), DemoError> {
        self.watchdog.close_stdin();
        let ended = until(|| self.watchdog.status().is_some()).await;
        self.ended(ended)
    }

    fn ended(&self, has_ended: bool) -> Result<(), DemoError> {
        has_ended
            .then_some(())
            .ok_or_else(|| DemoError::Other(format!("{} has not ended after 30 s", self.name)))
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

fn no_watchdog(directory: &Path, error: &io::Error) -> DemoError {
    DemoError::Other(format!("cannot run the watchdog of {}: {error}", directory.display()))
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

/// The path without links, if only root can change what is there, or this process does not run as root. The error is a
/// reason that names the place, worded to follow the requested path.
pub(crate) fn owned(path: &Path) -> Result<PathBuf, String> {
    owned_by(path, rustix::process::geteuid().is_root())
}

/// The same for a program under its own name, which may be a link.
pub(crate) fn is_owned(path: &Path) -> bool {
    owned(path).is_ok() && path.parent().is_none_or(|parent| owned(parent).is_ok())
}

/// Whether a directory created there cannot be replaced: as [`owned`], or a sticky directory such as `/tmp`.
pub(crate) fn is_private(directory: &Path) -> bool {
    // For a file, only the directories above it count.
    let is_root = rustix::process::geteuid().is_root();
    fs::metadata(directory).is_ok_and(|found| {
        !is_root || found.mode() & 0o1000 != 0 && found.uid() == 0 && directory.parent().is_none_or(is_owned)
    }) || owned(directory).is_ok()
}

fn owned_by(path: &Path, is_root: bool) -> Result<PathBuf, String> {
    let unseen = |at: &Path, error: io::Error| format!("{}: {error}", at.display());
    let path = path.canonicalize().map_err(|error| unseen(path, error))?;
    if !is_root {
        return Ok(path);
    }
    for at in path.ancestors() {
        let found = fs::metadata(at).map_err(|error| unseen(at, error))?;
        // In a sticky directory others cannot replace root's files.
        let is_shared =
            found.mode() & 0o022 != 0 && !(found.is_dir() && found.mode() & 0o1000 != 0 && at != path);
        if found.uid() != 0 {
            let uid = found.uid();
            return Err(format!(
                "{} belongs to user {uid}, and root runs no file that others can change",
                at.display()
            ));
        } else if is_shared {
            return Err(format!(
                "others can write to {}, and root runs no file that others can change",
                at.display()
            ));
        }
    }
    Ok(path)
}

/// A program on the search path; as root, only one that no other user can change.
pub(crate) fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut files = std::env::split_paths(&path).map(|directory| directory.join(program));
    files.find(|file| file.is_file() && is_owned(file))
}

const MANAGERS: [(&str, &str); 7] = [
    ("/usr/bin/apt-get", "apt-get install"),
    ("/usr/bin/dnf", "dnf install"),
    ("/usr/bin/yum", "yum install"),
    ("/usr/bin/zypper", "zypper install"),
    ("/usr/bin/pacman", "pacman -S"),
    ("/sbin/apk", "apk add"),
    ("/usr/sbin/pkg", "pkg install"),
];

pub(crate) fn install_postgresql() -> String {
    let server = "postgresql-server";
    let packages = ["postgresql", server, server, server, "postgresql", "postgresql", "postgresql18-server"];
    command("postgresql@18", packages)
}

#[cfg(feature = "redis")]
pub(crate) fn install_redis() -> String {
    command("redis", ["redis-server", "valkey", "redis", "redis", "valkey", "redis", "redis"])
}

/// `packages` are the names by which the [`MANAGERS`] know it, in their order.
fn command(homebrew: &str, packages: [&str; 7]) -> String {
    if cfg!(target_os = "macos") {
        return format!("brew install {homebrew}");
    }
    let known = MANAGERS.into_iter().zip(packages);
    let mut found = known.clone().filter(|((path, _), _)| Path::new(path).exists());
    let command = found.next().or_else(|| known.clone().next());
    let command = command.map(|((_, command), package)| format!("{command} {package}")).unwrap_or_default();
    if rustix::process::geteuid().is_root() { command } else { format!("sudo {command}") }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    #[test]
    fn a_path_that_does_not_fit_a_socket_is_not_used() {
        assert!(is_plain(Path::new("/var/folders/x_1/tmp.d-2")));
        assert!(!is_plain(Path::new("relative")));
        assert!(!is_plain(Path::new("/tmp/with, comma")));
        assert!(!is_plain(Path::new(&format!("/{}", "x".repeat(90)))));
    }

    #[test]
    fn as_root_nothing_is_used_that_others_can_change() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let room = tempfile::tempdir().unwrap();
        let (home, bin) = (room.path().join("home"), room.path().join("home/bin"));
        let program = bin.join("postgres");
        fs::create_dir_all(&bin).unwrap();
        fs::write(&program, "").unwrap();
        let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        mode(room.path(), 0o755);
        assert_eq!(owned_by(&program, true), Ok(program.canonicalize().unwrap()), "/tmp is sticky");
        for changed in [&home, &bin, &program] {
            chown(changed, Some(65_534), None).unwrap();
            let why = owned_by(&program, true).unwrap_err();
            assert!(why.contains(&format!("{} belongs to user 65534", changed.display())), "{why}");
            assert!(owned_by(&program, false).is_ok());
            chown(changed, Some(0), None).unwrap();
            for (bits, is_usable) in [(0o777, false), (0o775, false), (0o755, true)] {
                mode(changed, bits);
                assert_eq!(owned_by(&program, true).is_ok(), is_usable, "{changed:?} {bits:o}");
            }
        }
        // Others may add files to the last directory, so a name there may be another user's.
        mode(&bin, 0o1777);
        assert!(owned_by(&bin, true).is_err() && owned_by(&program, true).is_ok());
        let link = room.path().join("link");
        symlink(&program, &link).unwrap();
        assert_eq!(owned_by(&link, true), Ok(program.canonicalize().unwrap()), "without the link");
        assert!(is_owned(&link));
        mode(room.path(), 0o777);
        assert!(!is_owned(&link), "the link could be another one later");
        assert!(owned_by(&room.path().join("none"), true).is_err());
    }
}
