//! What can go wrong on the way to a server, each in one line that names the thing, the place and the remedy.

use std::path::PathBuf;

use super::secret::PasswordOrigin;

/// A connection string, flag or variable that cannot be understood or followed. No password is ever in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnInfoError {
    /// The string is neither a URI nor a list of key=value; with what is wrong with it.
    #[error("the connection string cannot be read: {0}")]
    Syntax(String),
    /// A key word that libpq does not have.
    #[error("unknown setting \"{key}\" in the connection string{}", did_you_mean(.hint.as_deref()))]
    Unknown {
        /// The key word as it was written.
        key: String,
        /// The key word that was probably meant; none where no other is like it.
        hint: Option<String>,
    },
    /// A value that the key word does not take.
    #[error("{key} is \"{value}\" (from {origin}): expected {expected}")]
    Invalid {
        /// The key word, as in libpq.
        key: &'static str,
        /// The value as it was given, in one line.
        value: String,
        /// What gave it: the connection string, a flag, an environment variable, or a service file.
        origin: String,
        /// What the key word takes, in words.
        expected: &'static str,
    },
    /// A service that is in no service file, or whose file cannot be read.
    #[error("{0}")]
    Service(String),
    /// A line of a service file. What it says is not repeated: it may be a password.
    #[error("{}, line {line}: {problem}", .file.display())]
    ServiceFile {
        /// The service file that was read.
        file: PathBuf,
        /// The number of the line in its file, from 1.
        line: usize,
        /// What is wrong with the line.
        problem: String,
    },
    /// Something libpq does and this does not: refused, since to ignore it would weaken what was asked.
    #[error("{setting} (from {origin}) is not supported: remove it")]
    Unsupported {
        /// The key word, or `key=value` where other values of it are accepted.
        setting: String,
        /// What gave it: the connection string, a flag, an environment variable, or a service file.
        origin: String,
    },
    /// The system knows no name for the user who runs this, and none was given.
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
    #[error("no server socket {}: is the server running on this machine, with its socket in this directory? (-h names another host or directory)", .path.display())]
    NoSocket {
        /// The path of the socket that was looked for.
        path: PathBuf,
    },
    /// A socket file without its server.
    #[error("no server listens on the socket {}: is the server running?", .path.display())]
    DeadSocket {
        /// The path of the socket that nobody listens on.
        path: PathBuf,
    },
    /// None of the usual sockets, and nothing on localhost.
    #[error(
        "no server found on this machine: no socket .s.PGSQL.{port} in {directories}, and {localhost} (-h and -p name others)"
    )]
    NothingLocal {
        /// The port, which is part of the name of a socket.
        port: u16,
        /// The usual directories of sockets, in which none was found; separated by commas.
        directories: String,
        /// The error of the attempt on localhost that came after that.
        localhost: Box<ConnectError>,
    },
    /// The socket may not be used.
    #[error("no permission to use the server socket {}", .path.display())]
    SocketForbidden {
        /// The path of the socket, whose permissions or directory keep this user out.
        path: PathBuf,
    },
    /// Nobody listens on the port of that host (`ECONNREFUSED`).
    #[error(
        "connection to {place} refused: is the server running on host \"{host}\" and accepting connections on port {port}?"
    )]
    Refused {
        /// Its `host:port`, or the path of its socket.
        place: String,
        /// The host as it was given.
        host: String,
        /// The port that was tried.
        port: u16,
    },
    /// The name of the host has no address, or the resolver did not answer in time.
    #[error("host \"{host}\" not found: {reason}")]
    UnknownHost {
        /// The name that was looked up.
        host: String,
        /// What the resolver said.
        reason: String,
    },
    /// The system or the network reports an error on the way to the host.
    #[error("could not reach {place}: {reason}")]
    Unreachable {
        /// Its `host:port`, or the path of its socket.
        place: String,
        /// The error of the system, in one line.
        reason: String,
    },
    /// The network did not answer in time: no connection of TCP came about.
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
    /// A connection came about, and the server did not answer on it in time.
    #[error(
        "{place} accepted the connection but did not answer within {seconds} s: the server is stuck or overloaded, or it is not a PostgreSQL server"
    )]
    Silent {
        /// Its `host:port`, or the path of its socket.
        place: String,
        /// The time limit of the attempt, in seconds (`connect_timeout`).
        seconds: u64,
    },
    /// The server ended the connection without a word.
    #[error("{place} closed the connection without an answer: {reason}")]
    Closed {
        /// Its `host:port`, or the path of its socket.
        place: String,
        /// What is known of the end, in one line.
        reason: String,
    },
    /// The server sends more than any PostgreSQL server does while a client logs in.
    #[error("the connection to {place} was interrupted: {reason}")]
    BrokenOff {
        /// Its `host:port`, or the path of its socket.
        place: String,
        /// What it sent, in one line.
        reason: String,
    },
    /// sslmode=require or stricter, and the server has no TLS.
    #[error("{place} does not offer TLS, and sslmode={mode} needs it (sslmode=prefer connects without)")]
    TlsNotOffered {
        /// Its `host:port`, or the path of its socket.
        place: String,
        /// The `sslmode` that was asked for.
        mode: &'static str,
    },
    /// The handshake of TLS failed: a certificate, a key, or what both sides speak.
    #[error("TLS with {place} failed: {reason}")]
    TlsFailed {
        /// Its `host:port`, or the path of its socket.
        place: String,
        /// What failed, in one line with what to do about it.
        reason: String,
    },
    /// The key of our certificate is encrypted, and there is no password for it.
    #[error("the key {} is encrypted, and {place} requires TLS: answer the prompt, or use sslpassword", .file.display())]
    KeyPassword {
        /// Its `host:port`, or the path of its socket.
        place: String,
        /// The file of the encrypted key (`sslkey`).
        file: PathBuf,
    },
    /// `sslcertmode=require` is not met: our certificate was not asked for, or not there.
    #[error("{place} does not satisfy sslcertmode=require: {reason}")]
    CertificateNotUsed {
        /// Its `host:port`, or the path of its socket.
        place: String,
        /// Whether the server did not ask for a certificate, or there is none of ours.
        reason: &'static str,
    },
    /// The server wants to know who we are in a way that `require_auth` does not allow. Nothing was answered.
    #[error("{place} asks for \"{method}\" authentication, which require_auth={wanted} does not permit")]
    AuthNotAllowed {
        /// Its `host:port`, or the path of its socket.
        place: String,
        /// Its way, as `require_auth` names it.
        method: &'static str,
        /// The value of `require_auth`.
        wanted: String,
    },
    /// The server wants a password, and there is none.
    #[error("{place} requires the password of \"{user}\", but none was given: use -W, PGPASSWORD or a line in the password file{}", semicolon(.note.as_deref()))]
    NoPassword {
        /// Its `host:port`, or the path of its socket.
        place: String,
        /// The role that was to log in.
        user: String,
        /// Why the password file was not used; none where there was nothing wrong with it, or no such file.
        note: Option<String>,
    },
    /// The password was rejected (SQLSTATE `28P01`).
    #[error("{place} rejects the password of \"{user}\"{}: {message}", from_origin(.origin.as_ref()))]
    WrongPassword {
        /// Its `host:port`, or the path of its socket.
        place: String,
        /// The role that was to log in.
        user: String,
        /// Where the password came from; none where there was none.
        origin: Option<PasswordOrigin>,
        /// The server's message, in one line of at most 300 characters.
        message: String,
    },
    /// There is no database of this name (SQLSTATE `3D000`).
    #[error("{place} has no database \"{database}\": {message} (-d names another)")]
    NoDatabase {
        /// Its `host:port`, or the path of its socket.
        place: String,
        /// The database that was asked for.
        database: String,
        /// The server's message, in one line of at most 300 characters.
        message: String,
    },
    /// There is no role of this name (SQLSTATE `28000`, raised while the session's user is set up).
    #[error("{place} does not know the role \"{user}\": {message} (-U names another)")]
    NoRole {
        /// Its `host:port`, or the path of its socket.
        place: String,
        /// The role that was to log in.
        user: String,
        /// The server's message, in one line of at most 300 characters.
        message: String,
    },
    /// A rule of `pg_hba.conf` does not let this place, role and database in (SQLSTATE `28000` from anywhere
    /// else).
    #[error("{place} does not let \"{user}\" in from here: {message} (see its pg_hba.conf)")]
    NotAllowed {
        /// Its `host:port`, or the path of its socket.
        place: String,
        /// The role that was to log in.
        user: String,
        /// The server's message, in one line of at most 300 characters.
        message: String,
    },
    /// All connections are taken, `max_connections` or a limit of the role or the database (SQLSTATE
    /// `53300`).
    #[error("{place} has no free connection: {message}")]
    TooManyConnections {
        /// Its `host:port`, or the path of its socket.
        place: String,
        /// The server's message, in one line of at most 300 characters.
        message: String,
    },
    /// The server starts up, shuts down or recovers (SQLSTATE `57P03`).
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
    /// The server speaks of a way to log in that is not there.
    #[error("cannot log in to {place} as \"{user}\": {reason}")]
    Authentication {
        /// Its `host:port`, or the path of its socket.
        place: String,
        /// The role that was to log in.
        user: String,
        /// What the client library cannot do, in one line.
        reason: String,
    },
    /// The server is not of the kind that `target_session_attrs` asks for.
    #[error("{place} does not match target_session_attrs: {reason}")]
    WrongSession {
        /// Its `host:port`, or the path of its socket.
        place: String,
        /// What the session is, and what was asked for.
        reason: String,
    },
    /// Several places or ways were tried.
    #[error("{}", join(.0))]
    Several(Vec<ConnectError>),
    /// Anything else, as one line.
    #[error("{0}")]
    Other(String),
}

impl ConnectError {
    /// The SQLSTATE that the server gave; none where it was not the server that refused.
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
        self.each().iter().any(|error| matches!(error, Self::TooManyConnections { .. } | Self::NotNow { .. }))
    }

    /// Whether something accepted the connection and then said nothing.
    #[must_use]
    pub fn is_silence(&self) -> bool {
        self.each().iter().any(|error| matches!(error, Self::Silent { .. }))
    }

    /// Whether a password is needed: the server asked for one and there was none.
    #[must_use]
    pub fn needs_password(&self) -> bool {
        self.each().iter().any(|error| matches!(error, Self::NoPassword { .. }))
    }

    /// Why the password file was not used, where a password is missing.
    #[must_use]
    pub fn password_note(&self) -> Option<&str> {
        self.each().into_iter().find_map(|error| match error {
            Self::NoPassword { note, .. } => note.as_deref(),
            _ => None,
        })
    }

    /// The file of the key that wants a password, if that is what is missing.
    #[must_use]
    pub fn needs_key_password(&self) -> Option<&std::path::Path> {
        self.each().into_iter().find_map(|error| match error {
            Self::KeyPassword { file, .. } => Some(file.as_path()),
            _ => None,
        })
    }

    /// The error of each attempt, where there were several; else this one.
    fn each(&self) -> Vec<&Self> {
        match self {
            Self::Several(all) => all.iter().flat_map(Self::each).collect(),
            one => vec![one],
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
