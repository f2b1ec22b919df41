//! What can go wrong with a schema.

use tokio_postgres::error::{DbError, SqlState};

use locktop_locks::SchemaName;

/// Why a schema was not changed. Whatever it is, nothing was.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// A schema of this name is there, and locktop did not make it.
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
    /// It, or something in it, belongs to somebody who is not trusted: whose it is, and what helps.
    #[error("the schema {} is not used: {reason}", .schema.quoted())]
    Untrusted {
        /// The schema that was to be used.
        schema: SchemaName,
        /// Who owns it or what is in it, and what helps.
        reason: String,
    },
    /// There is something in it that locktop did not make, or not as it is.
    #[error("the schema {} has objects that were {what}: {}", .schema.quoted(), .objects.join(", "))]
    NotOurs {
        /// The schema that was to be changed.
        schema: SchemaName,
        /// What is wrong with all of them, in words that fit "objects that were …".
        what: &'static str,
        /// The kind and the name of each, such as `table jobs`.
        objects: Vec<String>,
    },
    /// Sessions run tasks of it or items of its queue, or hold its leases.
    #[error("tasks of the schema {} are running, or its leases held ({count} now): stop the workers first", .schema.quoted())]
    InUse {
        /// The schema that was to be changed.
        schema: SchemaName,
        /// Running tasks, items that are worked on, and leases that are held, together.
        count: i64,
    },
    /// Objects elsewhere are built on it.
    #[error("the schema {} cannot be dropped while other objects depend on it: {detail}", .schema.quoted())]
    Dependents {
        /// The schema that was to be dropped.
        schema: SchemaName,
        /// The server's list of them, in one line.
        detail: String,
    },
    /// Somebody has something locked that the change needs.
    #[error("could not get a lock within 3 s: {0}")]
    Locked(String),
    /// The role may not: the server's words, and the statements that is needed.
    #[error("{message}{}{needs}", if .needs.is_empty() { "" } else { "; try: " })]
    Forbidden {
        /// The server's message, detail and hint, in one line.
        message: String,
        /// `GRANT …`; empty where nobody knows.
        needs: String,
    },
    /// There is no schema of this name in the database.
    #[error("there is no schema {}: run \"locktop schema install\"", .0.quoted())]
    Missing(SchemaName),
    /// A schema of ours of an older version, which lacks the functions for this.
    #[error("the schema {} has version {found}, which is too old for this: run \"locktop schema install\" to upgrade it", .schema.quoted())]
    Old {
        /// The schema that was to be used.
        schema: SchemaName,
        /// The version that it has (`locktop_schema.version`).
        found: u32,
    },
    /// The schema to adopt from has not what could be adopted.
    #[error("the tables of the schema {} are not adopted: {reason}", .source_schema.quoted())]
    Unadoptable {
        /// The schema that the tables are in.
        source_schema: SchemaName,
        /// What is wrong with them, or that there are none.
        reason: String,
    },
    /// Somebody works on what would be adopted.
    #[error("the tables of the schema {} are in use: {}. Wait until that ends, or stop the workers; then run this again", .source_schema.quoted(), .what.join("; "))]
    Busy {
        /// The schema that the tables are in.
        source_schema: SchemaName,
        /// What runs, and who holds which key.
        what: Vec<String>,
    },
    /// A server older than PostgreSQL 14; with its version.
    #[error("this server is PostgreSQL {0}: locktop's schema needs 14 or later")]
    TooOld(String),
    /// The server refuses, in its own words.
    #[error("the server refuses: {0}")]
    Server(String),
    /// The connection could not be used any more; in the client library's words.
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
