//! One of the places to connect to.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use super::super::secret::Secret;

/// Where servers put their socket when nobody says otherwise: Debian's and Red Hat's directory (often the same),
/// then that of PostgreSQL's own builds.
pub(crate) const SOCKET_DIRECTORIES: [&str; 3] = ["/var/run/postgresql", "/run/postgresql", "/tmp"];

/// A host as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// None was: the server of this machine.
    Local,
    /// The name of a host, or its address as text.
    Tcp(String),
    /// The directory of a Unix socket.
    Unix(PathBuf),
}

/// One place to connect to, of those that a connection string names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The host as it was given (`host`); [`Host::Local`] also where only an address was.
    pub host: Host,
    /// Its address, when that was given and must not be looked up.
    pub address: Option<IpAddr>,
    /// The port (`port`), 5432 unless another was given.
    pub port: u16,
    /// What the password file has for it, and which file that is.
    pub(crate) password: Option<(Secret, PathBuf)>,
}

impl Endpoint {
    /// `host:port`, or the path of the socket.
    #[must_use]
    pub fn place(&self) -> String {
        match &self.host {
            Host::Local => format!("[local]:{}", self.port),
            Host::Tcp(host) if host.contains(':') => format!("[{host}]:{}", self.port),
            Host::Tcp(host) => format!("{host}:{}", self.port),
            Host::Unix(directory) => socket(directory, self.port).display().to_string(),
        }
    }

    /// The host as a password file names it.
    pub(super) fn password_host(&self) -> String {
        match &self.host {
            Host::Unix(path) if !SOCKET_DIRECTORIES.iter().any(|d| Path::new(d) == path) => {
                path.display().to_string()
            }
            Host::Tcp(host) => host.clone(),
            Host::Local | Host::Unix(_) => "localhost".to_owned(),
        }
    }
}

/// The socket of the server on `port` in `directory`.
pub(crate) fn socket(directory: &Path, port: u16) -> PathBuf {
    directory.join(format!(".s.PGSQL.{port}"))
}
