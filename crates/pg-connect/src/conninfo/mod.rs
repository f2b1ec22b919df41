//! Where the server is and who we are there, by libpq's rules.
//!
//! Sources, strongest first: the connection string, the flags, the service file, the environment, the password file, the
//! defaults. What libpq does and this does not is refused by name, never left out in silence.

mod endpoint;
mod gather;
mod key_value;
mod nearest;
mod parameter;
mod password_file;
mod require_auth;
mod resolve;
mod service;
mod settings;
mod sources;
#[cfg(test)]
mod tests;
mod tls_options;
mod uri;
mod write;

use std::time::Duration;

pub use endpoint::{Endpoint, Host};
pub(super) use endpoint::{SOCKET_DIRECTORIES, socket};
pub use gather::{has_password, is_connection_string};
pub use nearest::{is_nearly, nearest};
pub(super) use require_auth::{AuthMethod, RequireAuth};
pub use sources::{Flags, Sources};
pub use tls_options::SslMode;
pub(super) use tls_options::{CertMode, Negotiation, Roots, TlsOptions, TlsVersion};

use super::error::ConnInfoError;
pub use super::secret::{PasswordOrigin, Secret};

/// How long a connection may take where nobody says otherwise.
pub const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Which server of several is wanted, by what a session there may do (`target_session_attrs`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionAttrs {
    /// Any server that lets us in.
    Any,
    /// One where sessions may write by default.
    ReadWrite,
    /// One where sessions may not write by default.
    ReadOnly,
    /// One that is no standby (not in recovery).
    Primary,
    /// One that is a standby (in recovery).
    Standby,
    /// A standby, and any other where there is none.
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

    /// The word for it in `target_session_attrs`.
    #[must_use]
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, attrs)| *attrs == self).map_or("", |(word, _)| word)
    }
}

/// TCP keepalives; `None` where the system decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Keepalives {
    pub(super) on: bool,
    pub(super) idle: Duration,
    pub(super) interval: Duration,
    pub(super) count: u32,
    pub(super) user_timeout: Option<Duration>,
}

/// Everything needed to connect, and to connect again.
#[derive(Debug, Clone)]
pub struct ConnInfo {
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) user: String,
    pub(super) dbname: String,
    /// From anywhere but the password file, whose passwords are those of an [`Endpoint`].
    pub(super) password: Option<(Secret, PasswordOrigin)>,
    /// Why the password file was not used, if it was there.
    pub(super) password_note: Option<String>,
    pub(super) options: Option<String>,
    pub(super) application_name: String,
    pub(super) tls: TlsOptions,
    pub(super) channel_binding: tokio_postgres::config::ChannelBinding,
    pub(super) require_auth: RequireAuth,
    pub(super) session: SessionAttrs,
    /// Whether the places are tried in any order.
    pub(super) shuffle: bool,
    pub(super) keepalives: Keepalives,
    pub(super) connect_timeout: Option<Duration>,
}

impl ConnInfo {
    /// Reads a URI, a key=value string or a database name; what it does not say comes from the environment, the
    /// password file and the defaults.
    ///
    /// # Errors
    /// When a setting cannot be understood or followed.
    pub fn parse(text: &str) -> Result<Self, ConnInfoError> {
        Self::resolve(&Sources::of_process(Some(text), Flags::default()))
    }

    /// Puts together what all sources say.
    ///
    /// # Errors
    /// When a setting cannot be understood or followed.
    pub fn resolve(sources: &Sources<'_>) -> Result<Self, ConnInfoError> {
        resolve::resolve(sources)
    }

    /// The same for a place that nobody named and where anybody may sit: without `require_auth` no method is taken part in that shows the password.
    pub(super) fn unnamed(&self) -> Self {
        let mut info = self.clone();
        if info.require_auth.text().is_none() {
            info.require_auth = RequireAuth::unnamed();
        }
        info
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

    /// The same with a password that was typed.
    #[must_use]
    pub fn with_password(mut self, password: Secret) -> Self {
        self.password = Some((password, PasswordOrigin::Prompt));
        self
    }

    /// The same with the password of the key of our certificate.
    #[must_use]
    pub fn with_key_password(mut self, password: Secret) -> Self {
        self.tls.key_password = Some(password);
        self
    }

    /// Whether there is a password that counts for every place: one from the password file does not.
    #[must_use]
    pub fn has_password(&self) -> bool {
        self.password.as_ref().is_some_and(|(secret, _)| !secret.expose().is_empty())
    }

    /// The name of the role that logs in (`user`).
    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The name of the database (`dbname`); the role's name where none was given.
    #[must_use]
    pub fn dbname(&self) -> &str {
        &self.dbname
    }

    /// `host:port/dbname as user`, for people, without secrets. Text in it is as it was given.
    #[must_use]
    pub fn describe(&self) -> String {
        format!("{}/{} as {}", self.places(), self.dbname, self.user)
    }

    /// `app@db.example.com:5432`, for the header; of several places the first, and how many more.
    #[must_use]
    pub fn target(&self) -> String {
        let place = |endpoint: &Endpoint| match &endpoint.host {
            Host::Local => locktop_base::text::place(&self.dbname, "[local]", endpoint.port),
            Host::Tcp(host) => locktop_base::text::place(&self.dbname, host, endpoint.port),
            Host::Unix(directory) => {
                locktop_base::text::place(&self.dbname, &directory.display().to_string(), endpoint.port)
            }
        };
        let first = self.endpoints.first().map(place).unwrap_or_default();
        match self.endpoints.len() {
            0 | 1 => first,
            several => format!("{first} +{}", several - 1),
        }
    }

    /// `host:port` or the path of a socket; several separated by commas. Text in it is as it was given.
    #[must_use]
    pub fn places(&self) -> String {
        let places: Vec<_> = self.endpoints.iter().map(Endpoint::place).collect();
        places.join(",")
    }

    /// How long one address may take to accept the connection and let us in; none is no limit.
    #[must_use]
    pub fn connect_timeout(&self) -> Option<Duration> {
        self.connect_timeout
    }
}
