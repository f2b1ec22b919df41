//! A running Redis server.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::error::RedisServerError;
use super::find::find;
use locktop_base::clock;

const WATCHDOG: &str = include_str!("watchdog.sh");
const POLL: Duration = Duration::from_millis(2);
/// Longest wait for the server to be ready, or to end.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The path of a socket has at most about 100 bytes.
const LONGEST_PLACE: usize = 60;

/// A Redis server without persistence on a Unix socket. It ends, and its directory is removed, when this is dropped or
/// this process ends, in whatever way.
#[derive(Debug)]
pub struct RedisServer {
    directory: PathBuf,
    watchdog: Child,
}

impl RedisServer {
    /// Starts a server, with more settings as on its command line (`["--requirepass", "secret"]`), and returns once it
    /// answers.
    ///
    /// # Errors
    /// When there is no program to run, or the server refuses to start.
    pub async fn start(settings: &[&str]) -> Result<Self, RedisServerError> {
        let program = find()?;
        let directory = temporary().join(format!("locktop-redis-{:016x}", RandomState::new().hash_one(0)));
        let mut command = Command::new("/bin/sh");
        command.args(["-c", WATCHDOG, "locktop-watchdog"]).arg(&directory).arg(&program);
        command.args(["--port", "0", "--save", "", "--appendonly", "no", "--daemonize", "no"]);
        command.arg("--dir").arg(&directory).arg("--unixsocket").arg(directory.join("redis.sock"));
        command.args(settings);
        // A process group of its own: Ctrl-C at the terminal is not for the server.
        command.process_group(0).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let watchdog = command
            .spawn()
            .map_err(|source| RedisServerError::Watchdog { directory: directory.clone(), source })?;
        let mut server = Self { directory, watchdog };
        server.ready().await?;
        Ok(server)
    }

    /// Starts several, at the same time.
    ///
    /// # Errors
    /// When one of them does not start; then none is left.
    pub async fn several(count: usize) -> Result<Vec<Self>, RedisServerError> {
        futures_util::future::try_join_all((0..count).map(|_| Self::start(&[]))).await
    }

    /// Where to find it, as a URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis+unix://{}", self.socket().display())
    }

    /// Its socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.directory.join("redis.sock")
    }

    /// The directory of everything that it has.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Its process id; none when it has ended.
    #[must_use]
    pub fn pid(&self) -> Option<i32> {
        if self.has_ended() { None } else { self.number("pid") }
    }

    /// Kills it with SIGKILL, and returns once it is gone. [`Self::restart`] brings it back, empty.
    ///
    /// # Errors
    /// When it has not ended after 30 seconds.
    pub async fn kill_hard(&mut self) -> Result<(), RedisServerError> {
        self.signal(Signal::KILL);
        let ended = until(|| self.has_ended()).await;
        ended.then_some(()).ok_or(RedisServerError::NotEnded)
    }

    /// Starts it again on the same socket, with nothing in it. One that runs is killed first.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn restart(&mut self) -> Result<(), RedisServerError> {
        self.kill_hard().await?;
        for left in ["exit", "pid", "log", "redis.sock"] {
            let _ = fs::remove_file(self.directory.join(left));
        }
        let pipe = self.watchdog.stdin.as_mut();
        pipe.map_or(Ok(()), |pipe| pipe.write_all(b"start\n"))
            .map_err(|source| RedisServerError::Watchdog { directory: self.directory.clone(), source })?;
        self.ready().await
    }

    /// Stops it where it is: it accepts connections, and answers nothing, until [`Self::thaw`].
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    /// Ends it, and returns once it and its directory are gone.
    ///
    /// # Errors
    /// When it has not ended after 30 seconds.
    pub async fn stop(mut self) -> Result<(), RedisServerError> {
        drop(self.watchdog.stdin.take());
        let watchdog = &mut self.watchdog;
        let ended = until(|| watchdog.try_wait().is_ok_and(|status| status.is_some())).await;
        ended.then_some(()).ok_or(RedisServerError::NotEnded)
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.pid().and_then(Pid::from_raw) {
            // Only fails when it is gone already.
            let _ = kill_process(pid, signal);
        }
    }

    /// Waits until the server answers.
    async fn ready(&mut self) -> Result<(), RedisServerError> {
        let mut failure = None;
        let ready = until(|| {
            if self.has_ended() {
                failure = Some("it ended at once");
            } else if self.watchdog.try_wait().is_ok_and(|status| status.is_some()) {
                failure = Some("its directory cannot be made");
            }
            failure.is_some() || self.answers()
        })
        .await;
        match failure {
            None if ready => Ok(()),
            failure => Err(self.not_started(failure.unwrap_or("it does not answer after 30 s"))),
        }
    }

    /// Whether it says PONG; one that asks for a password first answers too.
    fn answers(&self) -> bool {
        let said = || -> std::io::Result<[u8; 5]> {
            let mut stream = UnixStream::connect(self.socket())?;
            stream.set_read_timeout(Some(Duration::from_millis(200)))?;
            stream.write_all(b"PING\r\n")?;
            let mut answer = [0; 5];
            stream.read_exact(&mut answer)?;
            Ok(answer)
        };
        said().is_ok_and(|answer| &answer == b"+PONG" || &answer == b"-NOAU")
    }

    fn has_ended(&self) -> bool {
        self.number("exit").is_some()
    }

    /// The number that the watchdog left in a file.
    fn number(&self, file: &str) -> Option<i32> {
        fs::read_to_string(self.directory.join(file)).ok()?.trim().parse().ok()
    }

    fn not_started(&self, reason: &'static str) -> RedisServerError {
        let log = fs::read_to_string(self.directory.join("log")).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        let last = lines.get(lines.len().saturating_sub(5)..).unwrap_or_default();
        RedisServerError::NotStarted { reason, log: last.join(" | ") }
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        // The watchdog does the rest, also after this process has ended.
        drop(self.watchdog.stdin.take());
        let _ = self.watchdog.try_wait();
    }
}

/// `TMPDIR` if a socket's path fits below it and needs no escapes in a URL, else `/tmp`.
fn temporary() -> PathBuf {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let fits =
        |path: &String| path.len() <= LONGEST_PLACE && path.starts_with('/') && path.chars().all(plain);
    let named = std::env::var("TMPDIR").ok().filter(fits).map(PathBuf::from);
    named.filter(|path| path.is_dir()).unwrap_or_else(|| PathBuf::from("/tmp"))
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
