use tokio_postgres::error::{DbError, SqlState};

use locktop_locks::SchemaName;

/// Why a schema was not changed. With any of these errors, nothing was.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// A schema of this name exists, and locktop did not create it.
    #[error("the schema {} was not created by locktop and is skipped: name another with --schema", .0.quoted())]
    Foreign(SchemaName),
    /// The schema has a version that only a newer locktop knows.
    #[error("the schema {} has version {found}, and this locktop knows versions up to {known}: use a newer one", .schema.quoted())]
    Newer {
        /// The schema that was to be changed.
        schema: SchemaName,
        /// The version that it has (`locktop_schema.version`).
        found: u32,
        /// The newest version that this program knows, [`LATEST`](super::LATEST).
        known: u32,
    },
    /// The schema, or something in it, belongs to an owner that is not trusted: which one, and the remedy.
    #[error("the schema {} is not used: {reason}", .schema.quoted())]
    Untrusted {
        /// The schema that was to be used.
        schema: SchemaName,
        /// The owner of the schema or of its contents, and the remedy.
        reason: String,
    },
    /// It contains something that locktop did not create, or that was changed.
    #[error("the schema {} has objects that were {what}: {}", .schema.quoted(), .objects.join(", "))]
    NotOurs {
        /// The schema that was to be changed.
        schema: SchemaName,
        /// The problem with all of them, in words that fit "objects that were …".
        what: &'static str,
        /// The kind and the name of each, such as `table jobs`.
        objects: Vec<String>,
    },
    /// Sessions run tasks or queue items of it, or hold its leases.
    #[error("tasks of the schema {} are running, or its leases held ({count} now): stop the workers first", .schema.quoted())]
    InUse {
        /// The schema that was to be changed.
        schema: SchemaName,
        /// The total of running tasks, items in progress, and leases held.
        count: i64,
    },
    /// Objects elsewhere depend on it.
    #[error("the schema {} cannot be dropped while other objects depend on it: {detail}", .schema.quoted())]
    Dependents {
        /// The schema that was to be dropped.
        schema: SchemaName,
        /// The server's list of them, in one line.
        detail: String,
    },
    /// Another session has locked something that the change needs.
    #[error("could not get a lock within 3 s: {0}")]
    Locked(String),
    /// The role lacks a privilege: the server's message, and the statements that are needed.
    #[error("{message}{}{needs}", if .needs.is_empty() { "" } else { "; try: " })]
    Forbidden {
        /// The server's message, detail and hint, in one line.
        message: String,
        /// `GRANT …`; empty if not known.
        needs: String,
    },
    /// There is no schema of this name in the database.
    #[error("there is no schema {}: run \"locktop schema install\"", .0.quoted())]
    Missing(SchemaName),
    /// An older version of locktop's schema, which lacks the functions for this.
    #[error("the schema {} has version {found}, which is too old for this: run \"locktop schema install\" to upgrade it", .schema.quoted())]
    Old {
        /// The schema that was to be used.
        schema: SchemaName,
        /// The version that it has (`locktop_schema.version`).
        found: u32,
    },
    /// A server older than PostgreSQL 14; with its version.
    #[error("this server is PostgreSQL {0}: locktop's schema needs 14 or later")]
    TooOld(String),
    /// The server refuses, with its own message.
    #[error("the server refuses: {0}")]
    Server(String),
    /// The connection is no longer usable; with the client library's message.
    #[error("the connection failed: {0}")]
    Connection(String),
}

impl From<tokio_postgres::Error> for SchemaError {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            Some(db) if *db.code() == SqlState::LOCK_NOT_AVAILABLE => Self::Locked(words(db)),
            Some(db) if *db.code() == SqlState::INSUFFICIENT_PRIVILEGE => {
                Self::Forbidden { message: words(db), needs: String::new() }
            }
            Some(db) => Self::Server(words(db)),
            None => Self::Connection(error.to_string()),
        }
    }
}

/// Message, detail and hint of the server in one line.
#[must_use]
pub fn words(error: &DbError) -> String {
    let mut text = error.message().to_owned();
    for (name, more) in [("detail", error.detail()), ("hint", error.hint())] {
        if let Some(more) = more {
            text.extend(["; ", name, ": ", &more.replace('\n', "; ")]);
        }
    }
    text
}
