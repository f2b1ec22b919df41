use tokio_postgres::Transaction;
use tokio_postgres::types::Type;

use super::Schema;
use super::error::{SchemaError, SchemaNeed, explained};
use super::script::{self, LATEST};
use crate::trust::untrusted;

/// Prefix of the comments that are marks of locktop.
const MARK: &str = "locktop: ";

/// What is known of an object in the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum Found {
    /// locktop created it, and it is unchanged.
    Made,
    /// locktop created it, and its body was changed.
    Changed,
    /// locktop created it, and it is missing.
    Missing,
    /// locktop did not create it.
    Foreign,
}

/// An object that is, or should be, in the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// `table`, `view`, `function`, `procedure`, or a kind that locktop does not create.
    pub kind: String,
    /// Its name, and for a function the types of its arguments.
    pub identity: String,
    /// Whether locktop created it, and whether it is unchanged.
    pub found: Found,
}

impl std::fmt::Display for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.kind, self.identity)
    }
}

/// The state of a schema in a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// There is no schema of this name.
    Absent,
    /// A schema that locktop did not create.
    Foreign,
    /// A schema that `locktop schema install` created.
    Installed {
        /// The newest version that was applied.
        version: u32,
        /// Everything that is in it, and what is missing.
        objects: Vec<Object>,
    },
}

impl State {
    /// Whether this is the version that this program would install, complete and with nothing else.
    #[must_use]
    pub fn is_current(&self) -> bool {
        match self {
            Self::Installed { version, objects } => {
                *version == LATEST && objects.iter().all(|object| object.found == Found::Made)
            }
            Self::Absent | Self::Foreign => false,
        }
    }
}

/// Reads the state, in a transaction of its own.
///
/// # Errors
/// If the server cannot be queried, or is too old, or an owner that is not trusted owns something in the schema.
pub async fn state(
    client: &mut tokio_postgres::Client,
    schema: impl Into<Schema>,
) -> Result<State, SchemaError> {
    let place = schema.into();
    let reading = async {
        let transaction = client.build_transaction().read_only(true).start().await?;
        transaction.batch_execute(script::SETTINGS).await?;
        read(&transaction, &place).await
    };
    let found = reading.await;
    explained(client, &place.name, SchemaNeed::Read, found).await
}

/// Reads the state, in a transaction with [`script::SETTINGS`].
pub(super) async fn read(transaction: &Transaction<'_>, place: &Schema) -> Result<State, SchemaError> {
    let schema = &place.name;
    let row = transaction
        .query_typed(
            "SELECT current_setting('server_version_num')::int4, current_setting('server_version')",
            &[],
        )
        .await?;
    if let Some(row) = row.first()
        && row.try_get::<_, i32>(0)? < 140_000
    {
        return Err(SchemaError::TooOld(row.try_get(1)?));
    }
    let marks = transaction
        .query_typed(
            "SELECT obj_description(n.oid, 'pg_namespace'),
                    (SELECT obj_description(c.oid, 'pg_class') FROM pg_class c
                      WHERE c.relnamespace = n.oid AND c.relname = 'locktop_schema' AND c.relkind = 'r')
               FROM pg_namespace n WHERE n.nspname = $1",
            &[(&schema.as_str(), Type::TEXT)],
        )
        .await?;
    let Some(row) = marks.first() else { return Ok(State::Absent) };
    for index in 0..2 {
        let mark: Option<String> = row.try_get(index)?;
        if !mark.is_some_and(|mark| mark.starts_with(MARK)) {
            return Ok(State::Foreign);
        }
    }
    guard(transaction, place).await?;
    let version = format!("SELECT coalesce(max(version), 0) FROM {}.locktop_schema", schema.quoted());
    let version: i32 = match transaction.query_typed(&version, &[]).await?.first() {
        Some(row) => row.try_get(0)?,
        None => 0,
    };
    let rows = transaction.query_typed(&script::objects(schema), &[(&schema.as_str(), Type::TEXT)]).await?;
    let mut objects = Vec::with_capacity(rows.len());
    for row in rows {
        let found = row.try_get::<_, &str>(2)?.parse().unwrap_or(Found::Foreign);
        objects.push(Object { kind: row.try_get(0)?, identity: row.try_get(1)?, found });
    }
    Ok(State::Installed { version: u32::try_from(version).unwrap_or(0), objects })
}

/// Nothing in the schema is read, called or written before this.
async fn guard(transaction: &Transaction<'_>, place: &Schema) -> Result<(), SchemaError> {
    transaction.batch_execute(&place.guard()).await.map_err(|error| {
        match error.as_db_error().and_then(untrusted) {
            Some(reason) => SchemaError::Untrusted { schema: place.name.clone(), reason },
            None => error.into(),
        }
    })
}
