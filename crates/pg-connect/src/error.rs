//! Connection errors, each in one line that names the problem, the place and the remedy.

use std::path::PathBuf;

pub use crate::conninfo::settings::ConnInfoError;
use crate::conninfo::settings::PasswordOrigin;

/// A failed connection. Places are `host:port` or the path of a socket.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// There is no socket file.
    #[error("no server socket {}: is the server running on this machine, with its socket in this directory? (-h names another host or directory)", .path.display())]
    NoSocket {
        /// The expected path of the socket.
        path: PathBuf,
    },
    /// A socket file without its server.
    #[error("no server listens on the socket {}: is the server running?", .path.display())]
    DeadSocket {
        /// The path of the socket, on which no server listens.
        path: PathBuf,
    },
    /// None of the usual sockets exists, and there is no server on localhost.
    #[error(
        "no server found on this machine: no socket .s.PGSQL.{port} in {directories}, and {localhost} (-h and -p name others)"
    )]
    NothingLocal {
        /// The port, which is part of the socket's name.
        port: u16,
        /// The usual socket directories, in which none was found; separated by commas.
        directories: String,
        /// The error of the attempt on localhost that followed.
        localhost: Box<ConnectError>,
    },
    /// There is no permission to use the socket.
    #[error("no permission to use the server socket {}", .path.display())]
    SocketForbidden {
        /// The path of the socket; its permissions or its directory deny access to this user.
        path: PathBuf,
    },
    /// No server listens on the port of that host (`ECONNREFUSED`).
    #[error(
        "connection to {place} refused: is the server running on host \"{host}\" and accepting connections on port {port}?"
    )]
    Refused {
        /// Its `host:port`, or the path of its socket.
        place: String,
        /// The host as given.
        host: String,
        /// The port that was tried.
        port: u16,
    },
    /// The name of the host has no address, or the resolver did not answer in time.
    #[error("host \"{host}\" not found: {reason}")]
    UnknownHost {
        /// The name that was looked up.
        host: String,
        /// The error of the resolver.
        reason: String,
    },
    /// The system or the network reports an error on the way to the host.
    #[error("could not reach {place}: {reason}")]
    Unreachable {
        /// Its `host:port`, or the path of its socket.
        place: String,
        /// The system's error, in one line.
        reason: String,
    },
    /// The network did not answer in time: no TCP connection was established.
    #[error(
        "could not reach {place} within {seconds} s: is the host up, and does a firewall permit port {port}?"
    )]
    TimedOut {
        /// Its `host:port`, or the path of its socket.
        place: String,
        /// The port that was tried, which a firewall may block.
        port: u16,
        /// The time limit of the attempt, in seconds (`connect_timeout`).
        seconds: u64,
    },
    /// The connection was established, but the server did not answer on it in time.
    #[error(
        "{place} accepted the connection but did not answer within {seconds} s: the server is stuck or overloaded, or it is not a PostgreSQL server"
    )]
    Silent {
        /// Its `host:port`, or the path of its socket.
        place: String,
        /// The time limit of the attempt, in seconds (`connect_timeout`).
        seconds: u64,
    },
    /// The server closed the connection without an answer.
    #[error("{place} closed the connection without an answer: {reason}")]
    Closed {
        /// Its `host:port`, or the path of its socket.
        place: String,
        /// The known cause, in one line.
        reason: String,
    },
    /// The server sends more than any PostgreSQL server does during login.
    #[error("the connection to {place} was interrupted: {reason}")]
    BrokenOff {
        /// Its `host:port`, or the path of its socket.
        place: String,
        /// A description of the excess, in one line.
        reason: String,
    },
    /// sslmode=require or stricter, but the server does not offer TLS.
    #[error("{place} does not offer TLS, and sslmode={mode} needs it (sslmode=prefer connects without)")]
    TlsNotOffered {
        /// Its `host:port`, or the path of its socket.
        place: String,
        /// The requested `sslmode`.
        mode: &'static str,
    },
    /// The TLS handshake failed: a certificate, a key, or no common protocol.
    #[error("TLS with {place} failed: {reason}")]
    TlsFailed {
        /// Its `host:port`, or the path of its socket.
        place: String,
        /// The cause and the remedy, in one line.
        reason: String,
    },
    /// The key of the client certificate is encrypted, and there is no password for it.
    #[error("the key {} is encrypted, and {place} requires TLS: answer the prompt, or use sslpassword", .file.display())]
    KeyPassword {
        /// Its `host:port`, or the path of its socket.
        place: String,
        /// The encrypted key file (`sslkey`).
        file: PathBuf,
    },
    /// `sslcertmode=require` is not met: the client certificate was not requested, or does not exist.
    #[error("{place} does not satisfy sslcertmode=require: {reason}")]
    CertificateNotUsed {
        /// Its `host:port`, or the path of its socket.
        place: String,
        /// Whether the server did not request a certificate, or there is none.
        reason: &'static str,
    },
    /// The server requests an authentication method that `require_auth` does not allow. Nothing was answered.
    #[error("{place} asks for \"{method}\" authentication, which require_auth={wanted} does not permit")]
    AuthNotAllowed {
        /// Its `host:port`, or the path of its socket.
        place: String,
        /// The requested method, as `require_auth` names it.
        method: &'static str,
        /// The value of `require_auth`.
        wanted: String,
    },
    /// The server requires a password, and there is none.
    #[error("{place} requires the password of \"{user}\", but none was given: use -W, PGPASSWORD or a line in the password file{}", semicolon(.note.as_deref()))]
    NoPassword {
        /// Its `host:port`, or the path of its socket.
        place: String,
        /// The role that was to log in.
        user: String,
        /// Why the password file was not used; `None` if it was usable, or does not exist.
        note: Option<String>,
    },
    /// The password was rejected (SQLSTATE `28P01`).
    #[error("{place} rejects the password of \"{user}\"{}: {message}", from_origin(.origin.as_ref()))]
    WrongPassword {
        /// Its `host:port`, or the path of its socket.
        place: String,
        /// The role that was to log in.
        user: String,
        /// The source of the password; `None` if there was none.
        origin: Option<PasswordOrigin>,
        /// The server's message, in one line of at most 300 characters.
        message: String,
    },
    /// The database does not exist (SQLSTATE `3D000`).
    #[error("{place} has no database \"{database}\": {message} (-d names another)")]
    NoDatabase {
        /// Its `host:port`, or the path of its socket.
        place: String,
        /// The requested database.
        database: String,
        /// The server's message, in one line of at most 300 characters.
        message: String,
    },
    /// The role does not exist (SQLSTATE `28000`, raised while the session's user is set up).
    #[error("{place} does not know the role \"{user}\": {message} (-U names another)")]
    NoRole {
        /// Its `host:port`, or the path of its socket.
        place: String,
        /// The role that was to log in.
        user: String,
        /// The server's message, in one line of at most 300 characters.
        message: String,
    },
    /// `pg_hba.conf` does not allow this client, role and database (SQLSTATE `28000` raised anywhere else).
    #[error("{place} does not let \"{user}\" in from here: {message} (see its pg_hba.conf)")]
    NotAllowed {
        /// Its `host:port`, or the path of its socket.
        place: String,
        /// The role that was to log in.
        user: String,
        /// The server's message, in one line of at most 300 characters.
        message: String,
    },
    /// All connections are in use: `max_connections`, or a limit of the role or the database (SQLSTATE `53300`).
    #[error("{place} has no free connection: {message}")]
    TooManyConnections {
        /// Its `host:port`, or the path of its socket.
        place: String,
        /// The server's message, in one line of at most 300 characters.
        message: String,
    },
    /// The server is starting up, shutting down or recovering (SQLSTATE `57P03`).
    #[error("{place} does not accept connections now: {message}")]
    NotNow {
        /// Its `host:port`, or the path of its socket.
        place: String,
        /// The server's message, in one line of at most 300 characters.
        message: String,
    },
    /// The server refuses for another reason.
    #[error("{place} refuses the connection: {message} (SQLSTATE {sqlstate})")]
    Rejected {
        /// Its `host:port`, or the path of its socket.
        place: String,
        /// Its SQLSTATE, five characters (appendix "PostgreSQL Error Codes").
        sqlstate: String,
        /// The server's message, in one line of at most 300 characters.
        message: String,
    },
    /// The server requests an authentication method that is not supported.
    #[error("cannot log in to {place} as \"{user}\": {reason}")]
    Authentication {
        /// Its `host:port`, or the path of its socket.
        place: String,
        /// The role that was to log in.
        user: String,
        /// The feature that the client library does not have, in one line.
        reason: String,
    },
    /// The server does not match `target_session_attrs`.
    #[error("{place} does not match target_session_attrs: {reason}")]
    WrongSession {
        /// Its `host:port`, or the path of its socket.
        place: String,
        /// The actual and the requested kind of session.
        reason: String,
    },
    /// The errors of several attempts.
    #[error("{}", join(.0))]
    Several(Vec<ConnectError>),
    /// Anything else, as one line.
    #[error("{0}")]
    Other(String),
}

impl ConnectError {
    /// The server's SQLSTATE; `None` if the error is not the server's.
    #[must_use]
    pub fn sqlstate(&self) -> Option<&str> {
        match self {
            Self::WrongPassword { .. } => Some("28P01"),
            Self::NoDatabase { .. } => Some("3D000"),
            Self::NoRole { .. } | Self::NotAllowed { .. } => Some("28000"),
            Self::TooManyConnections { .. } => Some("53300"),
            Self::NotNow { .. } => Some("57P03"),
            Self::Rejected { sqlstate, .. } => Some(sqlstate),
            Self::Several(all) => {
                all.iter().find(|e| e.is_waitable()).or(all.last()).and_then(Self::sqlstate)
            }
            _ => None,
        }
    }

    /// Whether the cause may pass: no free connection, or a server that is starting up, shutting down or recovering.
    #[must_use]
    pub fn is_waitable(&self) -> bool {
        self.each().iter().any(|error| matches!(error, Self::TooManyConnections { .. } | Self::NotNow { .. }))
    }

    /// Whether the connection was accepted, but nothing was answered.
    #[must_use]
    pub fn is_silence(&self) -> bool {
        self.each().iter().any(|error| matches!(error, Self::Silent { .. }))
    }

    /// Whether the server requested a password and there was none.
    #[must_use]
    pub fn needs_password(&self) -> bool {
        self.each().iter().any(|error| matches!(error, Self::NoPassword { .. }))
    }

    /// Why the password file was not used, if a password is missing.
    #[must_use]
    pub fn password_note(&self) -> Option<&str> {
        self.each().into_iter().find_map(|error| match error {
            Self::NoPassword { note, .. } => note.as_deref(),
            _ => None,
        })
    }

    /// The key file that needs a password, if that is the error.
    #[must_use]
    pub fn needs_key_password(&self) -> Option<&std::path::Path> {
        self.each().into_iter().find_map(|error| match error {
            Self::KeyPassword { file, .. } => Some(file.as_path()),
            _ => None,
        })
    }

    /// The error of each attempt if there were several; else this one.
    fn each(&self) -> Vec<&Self> {
        match self {
            Self::Several(all) => all.iter().flat_map(Self::each).collect(),
            one => vec![one],
        }
    }

    /// Whether to try the next host of several. As in libpq, not after a server has refused the login.
    #[must_use]
    pub(super) fn tries_next_host(&self) -> bool {
        matches!(
            self,
            Self::NoSocket { .. }
                | Self::DeadSocket { .. }
                | Self::NothingLocal { .. }
                | Self::SocketForbidden { .. }
                | Self::Refused { .. }
                | Self::UnknownHost { .. }
                | Self::Unreachable { .. }
                | Self::TimedOut { .. }
                | Self::Silent { .. }
                | Self::Closed { .. }
                | Self::WrongSession { .. }
                | Self::NotNow { .. }
        )
    }

    /// Whether no server answered at all.
    pub(super) fn is_absence(&self) -> bool {
        matches!(
            self,
            Self::Refused { .. }
                | Self::UnknownHost { .. }
                | Self::Unreachable { .. }
                | Self::TimedOut { .. }
        )
    }

    /// One error for all; a single one is kept as it is.
    pub(super) fn of(mut all: Vec<Self>) -> Self {
        if all.len() > 1 {
            return Self::Several(all);
        }
        all.pop().unwrap_or_else(|| Self::Other("no host to connect to".to_owned()))
    }
}

fn semicolon(note: Option<&str>) -> String {
    note.map(|note| format!("; {note}")).unwrap_or_default()
}

fn from_origin(origin: Option<&PasswordOrigin>) -> String {
    origin.map(|origin| format!(" (from {origin})")).unwrap_or_default()
}

fn join(all: &[ConnectError]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
