use std::net::IpAddr;
use std::path::{Path, PathBuf};

use super::super::secret::Secret;

/// The default directories of sockets: Debian's and Red Hat's (often the same), then that of PostgreSQL's own builds.
pub(crate) const SOCKET_DIRECTORIES: [&str; 3] = ["/var/run/postgresql", "/run/postgresql", "/tmp"];

/// A host as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// None was given: the local server.
    Local,
    /// The name of a host, or its address as text.
    Tcp(String),
    /// The directory of a Unix socket.
    Unix(PathBuf),
}

/// One place to connect to, of those that a connection string names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The host as given (`host`); [`Host::Local`] also if only an address was given.
    pub host: Host,
    /// Its address, if given; then it is not looked up.
    pub address: Option<IpAddr>,
    /// The port (`port`), 5432 by default.
    pub port: u16,
    /// The password from the password file, and that file.
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

pub(crate) fn socket(directory: &Path, port: u16) -> PathBuf {
    directory.join(format!(".s.PGSQL.{port}"))
}
