//! What can go wrong on the way to a server, each in one line that names the thing, the place and the remedy.

use std::path::PathBuf;

use super::secret::PasswordOrigin;

/// A connection string, flag or variable that cannot be understood or followed. No password is ever in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnInfoError {
    /// The string is malformed.
    #[error("the connection string cannot be read: {0}")]
    Syntax(String),
    /// A key word that libpq does not have.
    #[error("unknown setting \"{key}\" in the connection string{}", did_you_mean(.hint.as_deref()))]
    Unknown {
        /// The key word.
        key: String,
        /// The one that was probably meant.
        hint: Option<String>,
    },
    /// A value that the key word does not take.
    #[error("{key} is \"{value}\" (from {origin}): expected {expected}")]
    Invalid {
        /// The key word.
        key: &'static str,
        /// Its value.
        value: String,
        /// Who gave it.
        origin: String,
        /// What it takes.
        expected: &'static str,
    },
    /// A service that is in no service file, or whose file cannot be read.
    #[error("{0}")]
    Service(String),
    /// A line of a service file. What it says is not repeated: it may be a password.
    #[error("{}, line {line}: {problem}", .file.display())]
    ServiceFile {
        /// The file.
        file: PathBuf,
        /// The line, the first is 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// Something libpq does and this does not: refused, since to ignore it would weaken what was asked.
    #[error("{setting} (from {origin}) is not supported, and is not ignored silently: leave it out")]
    Unsupported {
        /// The setting.
        setting: String,
        /// Who gave it.
        origin: String,
    },
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

fn did_you_mean(hint: Option<&str>) -> String {
    hint.map(|hint| format!(": did you mean \"{hint}\"?")).unwrap_or_default()
}

/// A connection that could not be made. Places are `host:port` or the path of a socket.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// No socket file where it was looked for.
    #[error("no server socket {}: is the server running on this machine, with its socket there? (-h names another host or directory)", .path.display())]
    NoSocket {
        /// The socket.
        path: PathBuf,
    },
    /// A socket file without its server.
    #[error("nobody listens on the server socket {}: is the server running?", .path.display())]
    DeadSocket {
        /// The socket.
        path: PathBuf,
    },
    /// None of the usual sockets, and nothing on localhost.
    #[error(
        "no server found on this machine: no socket .s.PGSQL.{port} in {directories}, and {localhost} (-h and -p name another place)"
    )]
    NothingLocal {
        /// The port.
        port: u16,
        /// Where sockets were looked for.
        directories: String,
        /// What came of localhost.
        localhost: Box<ConnectError>,
    },
    /// The socket may not be used.
    #[error("no permission to use the server socket {}", .path.display())]
    SocketForbidden {
        /// The socket.
        path: PathBuf,
    },
    /// Nobody listens there.
    #[error(
        "connection to {place} refused: is the server running on host \"{host}\" and accepting connections on port {port}?"
    )]
    Refused {
        /// The place.
        place: String,
        /// Its host.
        host: String,
        /// Its port.
        port: u16,
    },
    /// The name has no address.
    #[error("host \"{host}\" not found: {reason}")]
    UnknownHost {
        /// The name.
        host: String,
        /// The resolver's word.
        reason: String,
    },
    /// The network says no.
    #[error("could not reach {place}: {reason}")]
    Unreachable {
        /// The place.
        place: String,
        /// Why.
        reason: String,
    },
    /// No connection in time.
    #[error(
        "could not reach {place} within {seconds} s: is the host up, and does a firewall let port {port} through?"
    )]
    TimedOut {
        /// The place.
        place: String,
        /// Its port.
        port: u16,
        /// The limit.
        seconds: u64,
    },
    /// Connected, and then nothing.
    #[error(
        "{place} accepted the connection and did not answer within {seconds} s: the server is stuck or overloaded, or it is no PostgreSQL server"
    )]
    Silent {
        /// The place.
        place: String,
        /// The limit.
        seconds: u64,
    },
    /// The server ended the connection without a word.
    #[error("{place} closed the connection without an answer: {reason}")]
    Closed {
        /// The place.
        place: String,
        /// What is known.
        reason: String,
    },
    /// sslmode=require or stricter, and the server has no TLS.
    #[error("{place} does not offer TLS, and sslmode={mode} asks for it (sslmode=prefer connects without)")]
    TlsNotOffered {
        /// The place.
        place: String,
        /// The mode.
        mode: &'static str,
    },
    /// The handshake failed.
    #[error("TLS with {place} failed: {reason}")]
    TlsFailed {
        /// The place.
        place: String,
        /// Why.
        reason: String,
    },
    /// The key of our certificate is encrypted, and there is no password for it.
    #[error("the key {} is encrypted, and {place} wants TLS: answer the prompt, or use sslpassword", .file.display())]
    KeyPassword {
        /// The place.
        place: String,
        /// The key.
        file: PathBuf,
    },
    /// `sslcertmode=require` is not met.
    #[error("{place} is not what sslcertmode=require asks for: {reason}")]
    CertificateNotUsed {
        /// The place.
        place: String,
        /// What is not met.
        reason: &'static str,
    },
    /// The server wants to know who we are in a way that `require_auth` does not allow. Nothing was answered.
    #[error("{place} asks for \"{method}\" authentication, and require_auth={wanted} does not allow that")]
    AuthNotAllowed {
        /// The place.
        place: String,
        /// Its way, as `require_auth` names it.
        method: &'static str,
        /// What is allowed.
        wanted: String,
    },
    /// The server wants a password, and there is none.
    #[error("{place} asks for the password of \"{user}\", and none was given: use -W, PGPASSWORD or a line in the password file{}", semicolon(.note.as_deref()))]
    NoPassword {
        /// The place.
        place: String,
        /// The role.
        user: String,
        /// Why the password file was not used.
        note: Option<String>,
    },
    /// SQLSTATE 28P01.
    #[error("{place} rejects the password of \"{user}\"{}: {message}", from_origin(.origin.as_ref()))]
    WrongPassword {
        /// The place.
        place: String,
        /// The role.
        user: String,
        /// Where the password came from.
        origin: Option<PasswordOrigin>,
        /// The server's words.
        message: String,
    },
    /// SQLSTATE 3D000.
    #[error("{place} has no database \"{database}\": {message} (-d names another)")]
    NoDatabase {
        /// The place.
        place: String,
        /// The database.
        database: String,
        /// The server's words.
        message: String,
    },
    /// SQLSTATE 28000 for a role that is not there.
    #[error("{place} does not know the role \"{user}\": {message} (-U names another)")]
    NoRole {
        /// The place.
        place: String,
        /// The role.
        user: String,
        /// The server's words.
        message: String,
    },
    /// SQLSTATE 28000 for a place, role and database that `pg_hba.conf` does not let in.
    #[error("{place} does not let \"{user}\" in from here: {message} (its pg_hba.conf decides)")]
    NotAllowed {
        /// The place.
        place: String,
        /// The role.
        user: String,
        /// The server's words.
        message: String,
    },
    /// SQLSTATE 53300.
    #[error("{place} has no connection left: {message}")]
    TooManyConnections {
        /// The place.
        place: String,
        /// The server's words.
        message: String,
    },
    /// SQLSTATE 57P03.
    #[error("{place} does not take connections now: {message}")]
    NotNow {
        /// The place.
        place: String,
        /// The server's words.
        message: String,
    },
    /// The server refuses for another reason.
    #[error("{place} refuses the connection: {message} (SQLSTATE {sqlstate})")]
    Rejected {
        /// The place.
        place: String,
        /// Its code.
        sqlstate: String,
        /// The server's words.
        message: String,
    },
    /// The server speaks of a way to log in that is not there.
    #[error("cannot log in to {place} as \"{user}\": {reason}")]
    Authentication {
        /// The place.
        place: String,
        /// The role.
        user: String,
        /// Why.
        reason: String,
    },
    /// `target_session_attrs` is not met.
    #[error("{place} is not what target_session_attrs asks for: {reason}")]
    WrongSession {
        /// The place.
        place: String,
        /// Why.
        reason: String,
    },
    /// Several places or ways were tried.
    #[error("{}", join(.0))]
    Several(Vec<ConnectError>),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl ConnectError {
    /// The code the server gave, if it was the server that refused.
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

    /// Whether it may well pass by itself: no connection left, or starting up, shutting down or recovering.
    #[must_use]
    pub fn is_waitable(&self) -> bool {
        match self {
            Self::TooManyConnections { .. } | Self::NotNow { .. } => true,
            Self::Several(all) => all.iter().any(Self::is_waitable),
            _ => false,
        }
    }

    /// Whether something accepted the connection and then said nothing.
    #[must_use]
    pub fn is_silence(&self) -> bool {
        match self {
            Self::Silent { .. } => true,
            Self::Several(all) => all.iter().any(Self::is_silence),
            _ => false,
        }
    }

    /// Whether a password would help: the server asked for one and there was none.
    #[must_use]
    pub fn needs_password(&self) -> bool {
        match self {
            Self::NoPassword { .. } => true,
            Self::Several(all) => all.iter().any(Self::needs_password),
            _ => false,
        }
    }

    /// Why the password file was not used, where a password is missing.
    #[must_use]
    pub fn password_note(&self) -> Option<&str> {
        match self {
            Self::NoPassword { note, .. } => note.as_deref(),
            Self::Several(all) => all.iter().find_map(Self::password_note),
            _ => None,
        }
    }

    /// The file of the key that wants a password, if that is what is missing.
    #[must_use]
    pub fn needs_key_password(&self) -> Option<&std::path::Path> {
        match self {
            Self::KeyPassword { file, .. } => Some(file),
            Self::Several(all) => all.iter().find_map(Self::needs_key_password),
            _ => None,
        }
    }

    /// Whether the next host of several is worth a try. As in libpq it is not once a server has refused who we are.
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

    /// Whether nobody answered at all.
    pub(super) fn is_absence(&self) -> bool {
        matches!(
            self,
            Self::Refused { .. }
                | Self::UnknownHost { .. }
                | Self::Unreachable { .. }
                | Self::TimedOut { .. }
        )
    }

    /// One error of many; the first where there is but one.
    pub(super) fn of(mut all: Vec<Self>) -> Self {
        match all.pop() {
            None => Self::Other("no host to connect to".to_owned()),
            Some(only) if all.is_empty() => only,
            Some(last) => {
                all.push(last);
                Self::Several(all)
            }
        }
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
