use crate::schema::{LATEST, SchemaError, SchemaName};
use locktop_locks::PoolerError;
use pg_connect::error::ConnectError;
use pg_connect::message;
use pg_connect::refusal;

/// Why a worker has no session. No work was taken.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// No connection to the server could be made.
    #[error(transparent)]
    Connect(ConnectError),
    /// A pooler prevents session locks, or it is not known whether there is one.
    #[error(transparent)]
    Pooler(PoolerError),
    /// The database has no schema of this name.
    #[error("no schema {} in the database \"{database}\": run `locktop schema install`, or name another with --schema", .schema.quoted())]
    NoSchema {
        /// The requested name.
        schema: SchemaName,
        /// The database that was searched.
        database: String,
    },
    /// The schema was created by an older locktop.
    #[error("the schema {} has version {found}, and a worker needs version {LATEST}: run `locktop schema install` to upgrade it", .schema.quoted())]
    OldSchema {
        /// The requested schema.
        schema: SchemaName,
        /// Its version (`locktop_schema.version`).
        found: u32,
    },
    /// The schema belongs to another system or owner, was created by a newer locktop, or cannot be read.
    #[error(transparent)]
    Schema(SchemaError),
    /// The role lacks privileges that a worker needs.
    #[error("{message}; what a worker needs: {needs}")]
    Forbidden {
        /// The missing privilege, in the server's or locktop's own words.
        message: String,
        /// The GRANT statements for all privileges of a worker, in one line.
        needs: String,
    },
    /// Another session has the worker's name.
    #[error("{0}")]
    NameTaken(Namesake),
    /// The server is a standby: nothing can be locked or written there.
    #[error("this server is a standby, which cannot run tasks: connect to the primary")]
    Standby,
    /// The server refused something that a worker needs.
    #[error("the server refuses a worker: {0}")]
    Refused(String),
    /// The server stopped answering, or the connection was lost.
    #[error("the connection was lost: {0}")]
    Lost(String),
}

/// The session that has a worker's name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Namesake {
    /// The worker's name, which only one session can have.
    pub name: String,
    /// The schema in which the name is taken.
    pub schema: SchemaName,
    /// The process ID of the server process; `None` if it had ended before it was looked up.
    pub pid: Option<i32>,
    /// The address of its client; `None` on a socket, or if the role may not see it.
    pub client: Option<String>,
    /// When it connected, by the server's clock, with its zone; `None` if the role may not see it.
    pub since: Option<String>,
}

impl std::fmt::Display for Namesake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let schema = self.schema.quoted();
        write!(f, "a worker \"{}\" is already connected to the schema {schema} of this database", self.name)?;
        if let Some(pid) = self.pid {
            write!(f, ": server process {pid}")?;
        }
        match (&self.client, &self.since) {
            (Some(client), Some(since)) => write!(f, ", client {client}, connected since {since}")?,
            (None, Some(since)) => write!(f, ", on a local socket, connected since {since}")?,
            _ => {}
        }
        f.write_str("; use another --id for this worker, or end that one first")
    }
}

impl OpenError {
    /// Whether the cause may pass, so that a starting worker should wait: no free connection, or a server that is starting
    /// up.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Connect(error) | Self::Pooler(PoolerError::Second(error)) => error.is_waitable(),
            _ => false,
        }
    }
}

impl From<tokio_postgres::Error> for OpenError {
    fn from(error: tokio_postgres::Error) -> Self {
        match SessionError::from(error) {
            SessionError::Lost(reason) => Self::Lost(reason),
            SessionError::Refused { message, .. } => Self::Refused(message),
        }
    }
}

/// Why a session did not do what it was asked to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The connection and all its locks are lost, or the connection is unusable and must be closed.
    #[error("{0}")]
    Lost(String),
    /// The server refused this request and wrote nothing. Advisory locks taken before the error may still be held: see
    /// [`WorkSession::release_idle_keys`](super::WorkSession::release_idle_keys).
    #[error("{message}")]
    Refused {
        /// Its SQLSTATE, five characters (appendix "PostgreSQL Error Codes").
        sqlstate: String,
        /// The server's message with its SQLSTATE, in one line.
        message: String,
    },
}

impl From<tokio_postgres::Error> for SessionError {
    fn from(error: tokio_postgres::Error) -> Self {
        let said = message(&error);
        match refusal(&error) {
            Some(db) => Self::Refused { sqlstate: db.code().code().to_owned(), message: said },
            None => Self::Lost(said),
        }
    }
}
