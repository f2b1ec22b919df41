//! Connection errors, each in one line that names the problem, the place and the remedy.

use std::fmt;
use std::path::PathBuf;

use ConnectErrorKind as Kind;

pub use crate::conninfo::settings::ConnInfoError;
use crate::conninfo::settings::{PasswordOrigin, SOCKET_DIRECTORIES};

/// A failed connection. It prints one line that names the problem, the place and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectError {
    /// `host:port`, or the path of the socket; the name of a host that was not found. Empty for [`ConnectErrorKind::Several`]
    /// and [`ConnectErrorKind::Other`].
    pub place: String,
    /// The problem.
    pub kind: ConnectErrorKind,
    /// The server's message, or the reason that the system or a library reports, in one line, cut after 300 characters.
    /// Empty if the kind says all.
    pub reason: String,
}

/// Why a connection failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectErrorKind {
    /// There is no socket file.
    NoSocket,
    /// A socket file without its server.
    DeadSocket,
    /// None of the usual sockets exists, and there is no server on localhost.
    NothingLocal {
        /// The port, which is part of the socket's name.
        port: u16,
        /// The error of the attempt on localhost that followed.
        localhost: Box<ConnectError>,
    },
    /// The permissions of the socket or of its directory deny access to this user.
    SocketForbidden,
    /// No server listens on the port of that host (`ECONNREFUSED`).
    Refused {
        /// The host as given.
        host: String,
        /// The port that was tried.
        port: u16,
    },
    /// The name of the host has no address, or the resolver did not answer in time.
    UnknownHost,
    /// The system or the network reports an error on the way to the host.
    Unreachable,
    /// The network did not answer in time: no TCP connection was established.
    TimedOut {
        /// The port that was tried, which a firewall may block.
        port: u16,
        /// The time limit of the attempt, in seconds (`connect_timeout`).
        seconds: u64,
    },
    /// The connection was established, but the server did not answer on it within this number of seconds
    /// (`connect_timeout`).
    Silent(u64),
    /// The server closed the connection without an answer.
    Closed,
    /// The server sends more than any PostgreSQL server does during login.
    BrokenOff,
    /// This `sslmode` requires TLS, but the server does not offer it.
    TlsNotOffered(&'static str),
    /// The TLS handshake failed: a certificate, a key, or no common protocol.
    TlsFailed,
    /// This key of the client certificate (`sslkey`) is encrypted, and there is no password for it.
    KeyPassword(PathBuf),
    /// `sslcertmode=require` is not met: the client certificate was not requested, or does not exist.
    CertificateNotUsed,
    /// The server requests an authentication method that `require_auth` does not allow. Nothing was answered.
    AuthNotAllowed {
        /// The requested method, as `require_auth` names it.
        method: &'static str,
        /// The value of `require_auth`.
        wanted: String,
    },
    /// The server requires the password of this role, and there is none. The reason is why the password file was not used;
    /// it is empty if that was usable, or does not exist.
    NoPassword(String),
    /// The password was rejected (SQLSTATE `28P01`).
    WrongPassword {
        /// The role that was to log in.
        user: String,
        /// The source of the password; `None` if there was none.
        origin: Option<PasswordOrigin>,
    },
    /// This database does not exist (SQLSTATE `3D000`).
    NoDatabase(String),
    /// This role does not exist (SQLSTATE `28000`, raised while the session's user is set up).
    NoRole(String),
    /// `pg_hba.conf` does not allow this role, with this client and database (SQLSTATE `28000` raised anywhere else).
    NotAllowed(String),
    /// All connections are in use: `max_connections`, or a limit of the role or the database (SQLSTATE `53300`).
    TooManyConnections,
    /// The server is starting up, shutting down or recovering (SQLSTATE `57P03`).
    NotNow,
    /// The server refuses for another reason, with this SQLSTATE (appendix "PostgreSQL Error Codes").
    Rejected(String),
    /// The server requests an authentication method for this role that is not supported.
    Authentication(String),
    /// The server does not match `target_session_attrs`.
    WrongSession,
    /// The errors of several attempts.
    Several(Vec<ConnectError>),
    /// Anything else, as one line.
    Other,
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, kind, reason } = self;
        let text = match kind {
            Kind::NoSocket => format!(
                "no server socket {place}: is the server running on this machine, with its socket in this \
                 directory? (-h names another host or directory)"
            ),
            Kind::DeadSocket => {
                format!("no server listens on the socket {place}: is the server running?")
            }
            Kind::NothingLocal { port, localhost } => format!(
                "no server found on this machine: no socket .s.PGSQL.{port} in {}, and {localhost} (-h and -p \
                 name others)",
                SOCKET_DIRECTORIES.join(", ")
            ),
            Kind::SocketForbidden => format!("no permission to use the server socket {place}"),
            Kind::Refused { host, port } => format!(
                "connection to {place} refused: is the server running on host \"{host}\" and accepting \
                 connections on port {port}?"
            ),
            Kind::UnknownHost => format!("host \"{place}\" not found: {reason}"),
            Kind::Unreachable => format!("could not reach {place}: {reason}"),
            Kind::TimedOut { port, seconds } => format!(
                "could not reach {place} within {seconds} s: is the host up, and does a firewall permit port \
                 {port}?"
            ),
            Kind::Silent(seconds) => format!(
                "{place} accepted the connection but did not answer within {seconds} s: the server is stuck \
                 or overloaded, or it is not a PostgreSQL server"
            ),
            Kind::Closed => format!("{place} closed the connection without an answer: {reason}"),
            Kind::BrokenOff => format!("the connection to {place} was interrupted: {reason}"),
            Kind::TlsNotOffered(mode) => format!(
                "{place} does not offer TLS, and sslmode={mode} needs it (sslmode=prefer connects without)"
            ),
            Kind::TlsFailed => format!("TLS with {place} failed: {reason}"),
            Kind::KeyPassword(file) => format!(
                "the key {} is encrypted, and {place} requires TLS: answer the prompt, or use sslpassword",
                file.display()
            ),
            Kind::CertificateNotUsed => {
                format!("{place} does not satisfy sslcertmode=require: {reason}")
            }
            Kind::AuthNotAllowed { method, wanted } => format!(
                "{place} asks for \"{method}\" authentication, which require_auth={wanted} does not permit"
            ),
            Kind::NoPassword(user) => {
                let note = if reason.is_empty() { "" } else { "; " };
                format!(
                    "{place} requires the password of \"{user}\", but none was given: use -W, PGPASSWORD or a \
                     line in the password file{note}{reason}"
                )
            }
            Kind::WrongPassword { user, origin } => {
                let from = origin.as_ref().map(|origin| format!(" (from {origin})")).unwrap_or_default();
                format!("{place} rejects the password of \"{user}\"{from}: {reason}")
            }
            Kind::NoDatabase(name) => {
                format!("{place} has no database \"{name}\": {reason} (-d names another)")
            }
            Kind::NoRole(user) => {
                format!("{place} does not know the role \"{user}\": {reason} (-U names another)")
            }
            Kind::NotAllowed(user) => {
                format!("{place} does not let \"{user}\" in from here: {reason} (see its pg_hba.conf)")
            }
            Kind::TooManyConnections => format!("{place} has no free connection: {reason}"),
            Kind::NotNow => format!("{place} does not accept connections now: {reason}"),
            Kind::Rejected(sqlstate) => {
                format!("{place} refuses the connection: {reason} (SQLSTATE {sqlstate})")
            }
            Kind::Authentication(user) => format!("cannot log in to {place} as \"{user}\": {reason}"),
            Kind::WrongSession => format!("{place} does not match target_session_attrs: {reason}"),
            Kind::Several(all) => all.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
            Kind::Other => reason.clone(),
        };
        f.write_str(&text)
    }
}

impl std::error::Error for ConnectError {}

impl ConnectError {
    /// An error of any other kind, with this text.
    #[must_use]
    pub fn other(text: impl Into<String>) -> Self {
        Self::new(Kind::Other, "", text)
    }

    pub(crate) fn new(kind: Kind, place: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { place: place.into(), kind, reason: reason.into() }
    }

    /// The server's SQLSTATE; `None` if the error is not the server's.
    #[must_use]
    pub fn sqlstate(&self) -> Option<&str> {
        match &self.kind {
            Kind::WrongPassword { .. } => Some("28P01"),
            Kind::NoDatabase(_) => Some("3D000"),
            Kind::NoRole(_) | Kind::NotAllowed(_) => Some("28000"),
            Kind::TooManyConnections => Some("53300"),
            Kind::NotNow => Some("57P03"),
            Kind::Rejected(sqlstate) => Some(sqlstate),
            Kind::Several(all) => {
                all.iter().find(|e| e.is_waitable()).or(all.last()).and_then(Self::sqlstate)
            }
            _ => None,
        }
    }

    /// Whether the cause may pass: no free connection, or a server that is starting up, shutting down or recovering.
    #[must_use]
    pub fn is_waitable(&self) -> bool {
        self.each().iter().any(|error| matches!(error.kind, Kind::TooManyConnections | Kind::NotNow))
    }

    /// Whether the connection was accepted, but nothing was answered.
    #[must_use]
    pub fn is_silence(&self) -> bool {
        self.each().iter().any(|error| matches!(error.kind, Kind::Silent(_)))
    }

    /// Whether the server requested a password and there was none.
    #[must_use]
    pub fn needs_password(&self) -> bool {
        self.each().iter().any(|error| matches!(error.kind, Kind::NoPassword(_)))
    }

    /// Why the password file was not used, if a password is missing.
    #[must_use]
    pub fn password_note(&self) -> Option<&str> {
        let reason = |error: &Self| matches!(error.kind, Kind::NoPassword(_)) && !error.reason.is_empty();
        self.each().into_iter().find(|error| reason(error)).map(|error| error.reason.as_str())
    }

    /// The key file that needs a password, if that is the error.
    #[must_use]
    pub fn needs_key_password(&self) -> Option<&std::path::Path> {
        self.each().into_iter().find_map(|error| match &error.kind {
            Kind::KeyPassword(file) => Some(file.as_path()),
            _ => None,
        })
    }

    /// The error of each attempt if there were several; else this one.
    fn each(&self) -> Vec<&Self> {
        match &self.kind {
            Kind::Several(all) => all.iter().flat_map(Self::each).collect(),
            _ => vec![self],
        }
    }

    /// Whether to try the next host of several. As in libpq, not after a server has refused the login.
    pub(super) fn tries_next_host(&self) -> bool {
        self.is_absence()
            || matches!(
                self.kind,
                Kind::NoSocket
                    | Kind::DeadSocket
                    | Kind::NothingLocal { .. }
                    | Kind::SocketForbidden
                    | Kind::Silent(_)
                    | Kind::Closed
                    | Kind::WrongSession
                    | Kind::NotNow
            )
    }

    /// Whether no server answered at all.
    pub(super) fn is_absence(&self) -> bool {
        matches!(
            self.kind,
            Kind::Refused { .. } | Kind::UnknownHost | Kind::Unreachable | Kind::TimedOut { .. }
        )
    }

    /// One error for all; a single one is kept as it is.
    pub(super) fn of(mut all: Vec<Self>) -> Self {
        if all.len() > 1 {
            return Self::new(Kind::Several(all), "", "");
        }
        all.pop().unwrap_or_else(|| Self::other("no host to connect to"))
    }
}
