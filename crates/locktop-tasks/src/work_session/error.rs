//! What can go wrong with the session of a worker.

use crate::schema::{LATEST, SchemaError, SchemaName};
use locktop_locks::pooler::PoolerError;
use pg_connect::error::ConnectError;
use pg_connect::message;
use pg_connect::refusal;

/// Why a worker has no session: nothing was taken.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// No connection to the server could be made.
    #[error(transparent)]
    Connect(ConnectError),
    /// A pooler that no lock can be held behind, or not known.
    #[error(transparent)]
    Pooler(PoolerError),
    /// There is no schema of this name in the database.
    #[error("no schema {} in the database \"{database}\": run `locktop schema install`, or name another with --schema", .schema.quoted())]
    NoSchema {
        /// The name that was asked for.
        schema: SchemaName,
        /// The database in which it was looked for.
        database: String,
    },
    /// One that was made by an older locktop.
    #[error("the schema {} has version {found}, and a worker needs version {LATEST}: run `locktop schema install` to upgrade it", .schema.quoted())]
    OldSchema {
        /// The schema that was to be used.
        schema: SchemaName,
        /// The version that it has (`locktop_schema.version`).
        found: u32,
    },
    /// Somebody else's, a newer locktop's, or one that cannot be looked at.
    #[error(transparent)]
    Schema(SchemaError),
    /// The role may not do what a worker does.
    #[error("{message}; what a worker needs: {needs}")]
    Forbidden {
        /// What it may not, in the server's words or ours.
        message: String,
        /// The GRANT statements that give it all of that, in one line.
        needs: String,
    },
    /// Another session has the worker's name.
    #[error("{0}")]
    NameTaken(Namesake),
    /// The server is a standby: nothing can be locked or written there.
    #[error("this server is a standby, which cannot run tasks: connect to the primary")]
    Standby,
    /// The server refuses something that is needed.
    #[error("the server refuses a worker: {0}")]
    Refused(String),
    /// It stopped to answer, or the connection did not last.
    #[error("the connection was lost: {0}")]
    Lost(String),
}

/// The session that has a worker's name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Namesake {
    /// The worker's name, which two sessions cannot have.
    pub name: String,
    /// The schema in which it is taken.
    pub schema: SchemaName,
    /// The process id of the server's side, where it still was there when it was looked for.
    pub pid: Option<i32>,
    /// Where its client is, as far as the role may see that: an address, or nothing on a socket.
    pub client: Option<String>,
    /// Since when it is connected, as far as the role may see that; by the server's clock, with its zone.
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
    /// Whether it may well pass by itself, so that whoever has only just begun should wait: no connection left, or a server that
    /// is starting up.
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

/// Why a session did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The connection is gone, and with it all locks; or it is of no more use, and has to be given up.
    #[error("{0}")]
    Lost(String),
    /// The server refused this one thing, and wrote nothing. Keys that it had locked until then may still be held: see
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
