use postgres_protocol::escape::escape_identifier;
use tokio_postgres::Client;
use tokio_postgres::error::{DbError, SqlState};
use tokio_postgres::types::Type;

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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SchemaNeed {
    /// Install the schema in a database, or upgrade it.
    Install,
    /// Read the version, and whether it is complete.
    Read,
    /// Actions that only the owner may take, such as dropping it or removing old rows.
    Own,
}

#[derive(Debug)]
struct Situation {
    role: String,
    database: String,
    /// `None` if there is no such schema.
    owner: Option<String>,
}

/// The same result; if the server did not permit it, with the statements that are needed.
pub(super) async fn explained<T>(
    client: &Client,
    schema: &SchemaName,
    need: SchemaNeed,
    done: Result<T, SchemaError>,
) -> Result<T, SchemaError> {
    match done {
        Err(SchemaError::Forbidden { message, needs }) if needs.is_empty() => {
            // The refusal matters more than the reason why it cannot be explained.
            let needs = read(client, schema).await.map(|it| it.needs(schema, need));
            Err(SchemaError::Forbidden { message, needs: needs.unwrap_or_default() })
        }
        done => done,
    }
}

async fn read(client: &Client, schema: &SchemaName) -> Option<Situation> {
    let sql = "SELECT current_user::pg_catalog.text, pg_catalog.current_database()::pg_catalog.text,
                      (SELECT pg_catalog.pg_get_userbyid(n.nspowner)::pg_catalog.text FROM pg_catalog.pg_namespace AS n
                        WHERE n.nspname OPERATOR(pg_catalog.=) $1)";
    let rows = client.query_typed(sql, &[(&schema.as_str(), Type::TEXT)]).await.ok()?;
    let row = rows.first()?;
    Some(Situation {
        role: row.try_get(0).ok()?,
        database: row.try_get(1).ok()?,
        owner: row.try_get(2).ok()?,
    })
}

impl Situation {
    fn needs(&self, schema: &SchemaName, need: SchemaNeed) -> String {
        let (name, role) = (schema.quoted(), escape_identifier(&self.role));
        match (need, &self.owner) {
            (SchemaNeed::Install, None) => {
                format!("GRANT CREATE ON DATABASE {} TO {role}", escape_identifier(&self.database))
            }
            (SchemaNeed::Install | SchemaNeed::Own, Some(owner)) => {
                let owner = escape_identifier(owner);
                format!("it belongs to {owner}: connect as that role, or GRANT {owner} TO {role}")
            }
            (SchemaNeed::Read | SchemaNeed::Own, _) => format!(
                "GRANT USAGE ON SCHEMA {name} TO {role}; \
                 GRANT SELECT ON {name}.locktop_schema, {name}.locktop_objects TO {role}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_missing_privilege_is_named() {
        let schema = SchemaName::new("a b").unwrap();
        let of = |owner: Option<&str>, need| {
            let situation = Situation {
                role: "on \"call\"".to_owned(),
                database: "shop".to_owned(),
                owner: owner.map(ToOwned::to_owned),
            };
            situation.needs(&schema, need)
        };
        let role = "\"on \"\"call\"\"\"";
        assert_eq!(of(None, SchemaNeed::Install), format!("GRANT CREATE ON DATABASE \"shop\" TO {role}"));
        let owner = format!("it belongs to \"app\": connect as that role, or GRANT \"app\" TO {role}");
        assert_eq!(of(Some("app"), SchemaNeed::Install), owner);
        assert_eq!(of(Some("app"), SchemaNeed::Own), owner);
        let read = format!(
            "GRANT USAGE ON SCHEMA \"a b\" TO {role}; GRANT SELECT ON \"a b\".locktop_schema, \"a b\".locktop_objects TO {role}"
        );
        assert_eq!(of(Some("app"), SchemaNeed::Read), read);
    }
}
