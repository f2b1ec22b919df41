//! Private Redis servers, one or several: each on a Unix socket in a directory that no other user can enter, without
//! persistence, started in some milliseconds, and removed without a trace however this process ends (see
//! `process/watchdog.sh`).
//!
//! Such a server loses everything when it ends and comes back empty, a case that Redlock has to handle.

use std::env;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use crate::DemoError;
use crate::process::{self, SHELL, Server, is_owned, is_plain, is_private, owned};

const SOCKET: &str = "redis.sock";

/// A Redis server without persistence on a Unix socket. It ends, and its directory is removed, when this is dropped or
/// this process ends in any way.
#[derive(Debug)]
pub struct RedisServer(Server);

impl RedisServer {
    /// `settings` are more arguments of the server's command line (`["--requirepass", "secret"]`). Returns once the server
    /// answers.
    pub async fn start(settings: &[&str]) -> Result<Self, DemoError> {
        let program = find()?;
        // Nothing is kept on disk, so no orderly shutdown is needed.
        let (directory, mut command) =
            Server::prepare(Command::new(SHELL), (&temporary(), "locktop-redis-"), None, "KILL");
        command.arg(&program);
        command.args(["--port", "0", "--save", "", "--appendonly", "no", "--daemonize", "no"]);
        command.arg("--dir").arg(&directory).arg("--unixsocket").arg(directory.join(SOCKET)).args(settings);
        let mut server = Server::start("the Redis server", directory, &mut command)?;
        server.ready(answers).await?;
        Ok(Self(server))
    }

    /// Starts several servers at the same time.
    ///
    /// # Errors
    /// If one of them does not start; then none is left.
    pub async fn several(count: usize) -> Result<Vec<Self>, DemoError> {
        futures_util::future::try_join_all((0..count).map(|_| Self::start(&[]))).await
    }

    #[must_use]
    pub fn url(&self) -> String {
        format!("redis+unix://{}", self.socket().display())
    }

    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.directory().join(SOCKET)
    }

    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.0.directory
    }

    #[must_use]
    pub fn pid(&self) -> Option<i32> {
        self.0.pid()
    }

    /// Kills it with SIGKILL, and returns once it has ended. [`Self::restart`] brings it back, empty.
    pub async fn kill_hard(&mut self) -> Result<(), DemoError> {
        self.0.end(Signal::KILL).await
    }

    /// Starts it again on the same socket, empty. A running server is killed first.
    pub async fn restart(&mut self) -> Result<(), DemoError> {
        self.kill_hard().await?;
        self.0.start_again(&[SOCKET])?;
        self.0.ready(answers).await
    }

    /// Stops its process: it accepts connections, and answers nothing, until [`Self::thaw`].
    pub fn freeze(&self) {
        self.0.signal(Signal::STOP);
    }

    pub fn thaw(&self) {
        self.0.signal(Signal::CONT);
    }

    pub async fn stop(self) -> Result<(), DemoError> {
        self.0.stop().await
    }
}

/// Whether it replies PONG; a server that first asks for a password counts, too.
fn answers(server: &Server) -> bool {
    let said = || -> std::io::Result<[u8; 5]> {
        let mut stream = UnixStream::connect(server.directory.join(SOCKET))?;
        stream.set_read_timeout(Some(Duration::from_millis(200)))?;
        stream.write_all(b"PING\r\n")?;
        let mut answer = [0; 5];
        stream.read_exact(&mut answer)?;
        Ok(answer)
    };
    said().is_ok_and(|answer| &answer == b"+PONG" || &answer == b"-NOAU")
}

/// `TMPDIR` if it can be used, else `/tmp`.
fn temporary() -> PathBuf {
    let named = std::env::var_os("TMPDIR")
        .map(PathBuf::from)
        .filter(|path| is_plain(path) && path.is_dir() && is_private(path));
    named.unwrap_or_else(|| PathBuf::from("/tmp"))
}

const PROGRAMS: [&str; 2] = ["redis-server", "valkey-server"];

const DIRECTORIES: [&str; 5] =
    ["/usr/bin", "/usr/local/bin", "/opt/homebrew/bin", "/usr/sbin", "/home/linuxbrew/.linuxbrew/bin"];

/// `LOCKTOP_REDIS_SERVER`, or the first program on the search path or in the usual directories.
pub fn find() -> Result<PathBuf, DemoError> {
    if let Some(named) = env::var_os("LOCKTOP_REDIS_SERVER").filter(|path| !path.is_empty()) {
        let named = PathBuf::from(named);
        if !named.is_file() {
            return Err(DemoError::Other(format!(
                "LOCKTOP_REDIS_SERVER names {}, which does not exist",
                named.display()
            )));
        }
        // Only as root: another user could change the program.
        return owned(&named).map_err(|reason| {
            DemoError::Other(format!("LOCKTOP_REDIS_SERVER names {}: {reason}", named.display()))
        });
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let directories = || env::split_paths(&path).chain(DIRECTORIES.iter().map(PathBuf::from));
    search(directories).ok_or_else(no_program)
}

fn no_program() -> DemoError {
    DemoError::Other(format!(
        "no Redis server program (redis-server or valkey-server) found; install it with `{}`, or name it in \
         LOCKTOP_REDIS_SERVER",
        process::install_redis()
    ))
}

fn search<I: Iterator<Item = PathBuf>>(directories: impl Fn() -> I) -> Option<PathBuf> {
    PROGRAMS.iter().find_map(|program| {
        directories().map(|directory| directory.join(program)).find(|file| file.is_file() && is_owned(file))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redis_is_preferred_to_valkey_and_empty_directories_have_neither() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let directories = || [first.path(), second.path()].map(PathBuf::from).into_iter();
        assert_eq!(search(directories), None);
        std::fs::write(first.path().join("valkey-server"), "").unwrap();
        assert_eq!(search(directories), Some(first.path().join("valkey-server")));
        std::fs::write(second.path().join("redis-server"), "").unwrap();
        assert_eq!(search(directories), Some(second.path().join("redis-server")));
    }

    #[test]
    fn the_error_for_a_missing_server_names_the_remedy() {
        let error = no_program().to_string();
        assert!(error.contains("install it with `"), "{error}");
        assert!(error.contains("LOCKTOP_REDIS_SERVER"), "{error}");
    }
}
