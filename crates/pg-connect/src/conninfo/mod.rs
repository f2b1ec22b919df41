//! Where the server is and how to log in, by libpq's rules.
//!
//! Sources, strongest first: the connection string, the flags, the service file, the environment, the password file,
//! the defaults. A libpq setting that is not supported here is refused by name, never ignored.

mod files;
mod parameter;
mod parse;
mod resolve;
pub(crate) mod settings;
#[cfg(test)]
mod tests;
mod tls_options;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::ConnInfoError;

pub(super) use parameter::{AuthMethod, RequireAuth};
pub use parameter::{is_nearly, nearest};
pub use resolve::{has_password, is_connection_string};
pub(crate) use settings::SOCKET_DIRECTORIES;
use settings::Settings;
pub use settings::{Flags, PasswordOrigin, Secret, Sources};
pub use tls_options::SslMode;
pub(super) use tls_options::{CertMode, Negotiation, TlsOptions, TlsVersion};

/// The time limit for a connection if none is set.
pub const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The required kind of server, by what a session there may do (`target_session_attrs`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionAttrs {
    /// Any server that accepts the login.
    Any,
    /// A server where sessions may write by default.
    ReadWrite,
    /// A server where sessions may not write by default.
    ReadOnly,
    /// A server that is not a standby (not in recovery).
    Primary,
    /// A standby (in recovery).
    Standby,
    /// A standby, or any other server if there is none.
    PreferStandby,
}

impl SessionAttrs {
    const WORDS: [(&str, Self); 6] = [
        ("any", Self::Any),
        ("read-write", Self::ReadWrite),
        ("read-only", Self::ReadOnly),
        ("primary", Self::Primary),
        ("standby", Self::Standby),
        ("prefer-standby", Self::PreferStandby),
    ];

    /// Its name in `target_session_attrs`.
    #[must_use]
    pub fn word(self) -> &'static str {
        settings::word_of(&Self::WORDS, &self)
    }
}

/// What TCP does to notice that the server is out of reach.
#[derive(Debug, Clone)]
pub(super) struct Keepalives {
    /// `None` if they are off.
    pub(super) probes: Option<socket2::TcpKeepalive>,
    /// `None` uses the system's default.
    pub(super) user_timeout: Option<Duration>,
}

/// Everything needed to connect, and to connect again.
#[derive(Debug, Clone)]
pub struct ConnInfo {
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) user: String,
    pub(super) dbname: String,
    /// From any source but the password file, whose passwords belong to an [`Endpoint`].
    pub(super) password: Option<(Secret, PasswordOrigin)>,
    /// Why the password file was not used, if it exists.
    pub(super) password_note: Option<String>,
    pub(super) options: Option<String>,
    pub(super) application_name: String,
    pub(super) tls: TlsOptions,
    pub(super) channel_binding: tokio_postgres::config::ChannelBinding,
    pub(super) require_auth: RequireAuth,
    pub(super) session: SessionAttrs,
    /// Whether the places are tried in random order.
    pub(super) shuffle: bool,
    pub(super) keepalives: Keepalives,
    pub(super) connect_timeout: Option<Duration>,
    /// The settings from which the others were made, for [`Self::to_key_value`].
    given: Settings,
}

impl ConnInfo {
    /// Reads a URI, a key=value string or a database name; missing settings come from the environment, the password file
    /// and the defaults.
    ///
    /// # Errors
    /// If a setting is invalid or not supported.
    pub fn parse(text: &str) -> Result<Self, ConnInfoError> {
        Self::resolve(&Sources::of_process(Some(text), Flags::default()))
    }

    /// Merges all sources.
    ///
    /// # Errors
    /// If a setting is invalid or not supported.
    pub fn resolve(sources: &Sources<'_>) -> Result<Self, ConnInfoError> {
        resolve::resolve(sources)
    }

    /// The same for a default place where any local user may listen: without `require_auth`, authentication methods that
    /// reveal the password are refused.
    pub(super) fn unnamed(&self) -> Self {
        let mut info = self.clone();
        if info.require_auth.text().is_none() {
            info.require_auth = RequireAuth::unnamed();
        }
        info
    }

    /// `application_name`; by default the name of the program.
    #[must_use]
    pub fn application_name(&self) -> &str {
        &self.application_name
    }

    /// The same settings with another `application_name`.
    #[must_use]
    pub fn with_application_name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.application_name);
        self
    }

    /// The same settings for another database of the same server.
    #[must_use]
    pub fn with_dbname(mut self, name: &str) -> Self {
        name.clone_into(&mut self.dbname);
        self
    }

    /// The same settings with a password that was entered.
    #[must_use]
    pub fn with_password(mut self, password: Secret) -> Self {
        self.password = Some((password, PasswordOrigin::Prompt));
        self
    }

    /// The same settings with the password for the key of the client certificate.
    #[must_use]
    pub fn with_key_password(mut self, password: Secret) -> Self {
        self.tls.key_password = Some(password);
        self
    }

    /// Whether there is a password for every place; one from the password file does not count.
    #[must_use]
    pub fn has_password(&self) -> bool {
        self.password.as_ref().is_some_and(|(secret, _)| !secret.expose().is_empty())
    }

    /// The name of the role that logs in (`user`).
    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The name of the database (`dbname`); by default the role's name.
    #[must_use]
    pub fn dbname(&self) -> &str {
        &self.dbname
    }

    /// `host:port/dbname as user`, for people, without secrets. Its text is not sanitized.
    #[must_use]
    pub fn describe(&self) -> String {
        format!("{}/{} as {}", self.places(), self.dbname, self.user)
    }

    /// `app@db.example.com:5432`, for the header; of several places the first, and the number of others.
    #[must_use]
    pub fn target(&self) -> String {
        let place = |Endpoint { host, port, .. }: &Endpoint| {
            let host = if *host == Host::Local { "[local]".to_owned() } else { host.text() };
            locktop_base::text::place(&self.dbname, &host, *port)
        };
        let first = self.endpoints.first().map(place).unwrap_or_default();
        match self.endpoints.len() {
            0 | 1 => first,
            several => format!("{first} +{}", several - 1),
        }
    }

    /// `host:port` or the path of a socket; several separated by commas. Its text is not sanitized.
    #[must_use]
    pub fn places(&self) -> String {
        let places: Vec<_> = self.endpoints.iter().map(Endpoint::place).collect();
        places.join(",")
    }

    /// The time limit for one address to accept the connection and the login; `None` is no limit.
    #[must_use]
    pub fn connect_timeout(&self) -> Option<Duration> {
        self.connect_timeout
    }
}

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

impl Host {
    /// As in a connection string.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Local => String::new(),
            Self::Tcp(name) => name.clone(),
            Self::Unix(directory) => directory.display().to_string(),
        }
    }
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
    /// The password from the password file.
    pub(crate) password: Option<(Secret, PasswordOrigin)>,
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
    fn password_host(&self) -> String {
        match &self.host {
            Host::Local => "localhost".to_owned(),
            Host::Unix(path) if SOCKET_DIRECTORIES.iter().any(|d| Path::new(d) == path) => {
                "localhost".to_owned()
            }
            host => host.text(),
        }
    }
}

pub(crate) fn socket(directory: &Path, port: u16) -> PathBuf {
    directory.join(format!(".s.PGSQL.{port}"))
}
