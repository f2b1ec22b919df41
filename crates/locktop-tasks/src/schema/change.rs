use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Transaction};

use super::Schema;
use super::error::{SchemaError, SchemaNeed, explained, words};
use super::script::{self, LATEST};
use super::state::{Found, Object, State, read};
use locktop_locks::SchemaName;

/// Most names in an error.
const NAMED: usize = 10;

/// The result of an installation or an upgrade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// The previous version; `None` if there was no schema.
    pub from: Option<u32>,
    /// The current version.
    pub to: u32,
    /// Tables, views and functions that did not exist before.
    pub made: usize,
    /// Objects that differ from the installation, or are not locktop's. They were left alone.
    pub odd: Vec<Object>,
}

/// The contents that a drop has removed, or would remove if nothing changes until then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// The version of the schema.
    pub version: u32,
    /// Tables, views and functions in it.
    pub objects: usize,
    /// The name and row count of each table.
    pub rows: Vec<(String, i64)>,
}

/// Installs the latest version, or upgrades to it. Does nothing if it is installed.
///
/// ```no_run
/// # async fn example(client: &mut tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
/// locktop_tasks::schema::install(client, locktop_locks::SchemaName::default()).await?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If the schema is not locktop's or newer, something in it conflicts, a lock is not granted, or the server refuses.
/// Nothing is changed then.
pub async fn install(client: &mut Client, schema: impl Into<Schema>) -> Result<Installed, SchemaError> {
    install_up_to(client, schema, LATEST).await
}

/// The same, up to an older version.
pub async fn install_up_to(
    client: &mut Client,
    schema: impl Into<Schema>,
    to: u32,
) -> Result<Installed, SchemaError> {
    let place = schema.into();
    let done = apply(client, &place, to).await;
    explained(client, &place.name, SchemaNeed::Install, done).await
}

async fn apply(client: &mut Client, place: &Schema, to: u32) -> Result<Installed, SchemaError> {
    let schema = &place.name;
    let transaction = begin(client, schema).await?;
    let (from, before) = match read(&transaction, place).await? {
        State::Foreign => return Err(SchemaError::Foreign(schema.clone())),
        State::Absent => (None, Vec::new()),
        State::Installed { version, .. } if version > LATEST => {
            return Err(SchemaError::Newer { schema: schema.clone(), found: version, known: LATEST });
        }
        State::Installed { version, objects } => (Some(version), objects),
    };
    let after = from.unwrap_or(0);
    if after >= to {
        let odd = before.into_iter().filter(|object| object.found != Found::Made).collect();
        return Ok(Installed { from, to: after, made: 0, odd });
    }
    // An upgrade may replace functions, but not those that were changed.
    refuse(schema, &before, &[Found::Changed, Found::Missing], "changed since the installation")?;
    for version in script::versions(schema, after, to) {
        transaction.batch_execute(&version).await?;
    }
    let State::Installed { version, objects } = read(&transaction, place).await? else {
        return Err(SchemaError::Server("the new schema is not visible".to_owned()));
    };
    transaction.commit().await?;
    let made = objects.iter().filter(|object| object.found == Found::Made).count();
    let old = before.iter().filter(|object| object.found == Found::Made).count();
    let odd = objects.into_iter().filter(|object| object.found != Found::Made).collect();
    Ok(Installed { from, to: version, made: made.saturating_sub(old), odd })
}

/// The contents that [`remove`] would drop, including the number of rows in each table. `None` if there is no such
/// schema.
///
/// # Errors
/// If it would not be dropped, as far as that can be determined without trying, and if it cannot be read.
pub async fn contents(
    client: &mut Client,
    schema: impl Into<Schema>,
) -> Result<Option<Contents>, SchemaError> {
    let place = schema.into();
    let reading = async {
        let transaction = client.build_transaction().read_only(true).start().await?;
        transaction.batch_execute(script::SETTINGS).await?;
        Ok(droppable(&transaction, &place).await?.map(|(contents, _)| contents))
    };
    let found = reading.await;
    explained(client, &place.name, SchemaNeed::Own, found).await
}

/// Drops what was installed, including the schema, and returns what that was, counted in the same transaction. `None` if
/// there is no schema.
///
/// # Errors
/// If the schema is not locktop's, it contains something that locktop did not create or that was changed since, something
/// elsewhere depends on it, its tasks are running or its leases held, a lock is not granted, or the server refuses.
/// Nothing is changed then.
pub async fn remove(client: &mut Client, schema: impl Into<Schema>) -> Result<Option<Contents>, SchemaError> {
    let place = schema.into();
    let done = take_away(client, &place).await;
    explained(client, &place.name, SchemaNeed::Own, done).await
}

/// The contents of a schema that may be dropped, and the objects that are locktop's.
async fn droppable(
    transaction: &Transaction<'_>,
    place: &Schema,
) -> Result<Option<(Contents, Vec<Object>)>, SchemaError> {
    let schema = &place.name;
    let (version, objects) = match read(transaction, place).await? {
        State::Absent => return Ok(None),
        State::Foreign => return Err(SchemaError::Foreign(schema.clone())),
        State::Installed { version, objects } => (version, objects),
    };
    refuse(schema, &objects, &[Found::Foreign], "not created by locktop")?;
    refuse(schema, &objects, &[Found::Changed], "changed since the installation")?;
    let there: Vec<Object> = objects.into_iter().filter(|object| object.found == Found::Made).collect();
    refuse_running(transaction, schema, &there).await?;
    let mut rows = Vec::new();
    for table in there.iter().filter(|object| object.kind == "table" && !is_mark(&object.identity)) {
        let sql = format!("SELECT count(*) FROM {}.{}", schema.quoted(), table.identity);
        if let Some(row) = transaction.query_typed(&sql, &[]).await?.first() {
            rows.push((table.identity.clone(), row.try_get(0)?));
        }
    }
    Ok(Some((Contents { version, objects: there.len(), rows }, there)))
}

async fn take_away(client: &mut Client, place: &Schema) -> Result<Option<Contents>, SchemaError> {
    let schema = &place.name;
    let transaction = begin(client, schema).await?;
    let Some((contents, there)) = droppable(&transaction, place).await? else { return Ok(None) };
    for kind in ["view", "table", "function", "procedure"] {
        let names: Vec<String> = there
            .iter()
            .filter(|object| object.kind == kind)
            .map(|object| format!("{}.{}", schema.quoted(), object.identity))
            .collect();
        if !names.is_empty() {
            let sql = format!("DROP {kind} {} RESTRICT", names.join(", "));
            execute(&transaction, schema, &sql).await?;
        }
    }
    execute(&transaction, schema, &format!("DROP SCHEMA {} RESTRICT", schema.quoted())).await?;
    transaction.commit().await?;
    Ok(Some(contents))
}

/// Views of what is in use, and the condition for its rows.
const IN_USE: [(&str, &str); 3] = [
    ("running_tasks", "state IN ('running', 'slow')"),
    ("running_queue_items", "state IN ('running', 'slow')"),
    ("leases", "state = 'held'"),
];

/// An error while a session holds the key of a running task or of a queue item, or a lease.
async fn refuse_running(
    transaction: &Transaction<'_>,
    schema: &SchemaName,
    there: &[Object],
) -> Result<(), SchemaError> {
    let mut count = 0_i64;
    for (view, condition) in IN_USE {
        if there.iter().any(|object| object.kind == "view" && object.identity == view) {
            let sql = format!("SELECT count(*) FROM {}.{view} WHERE {condition}", schema.quoted());
            if let Some(row) = transaction.query_typed(&sql, &[]).await?.first() {
                count += row.try_get::<_, i64>(0)?;
            }
        }
    }
    if count > 0 { Err(SchemaError::InUse { schema: schema.clone(), count }) } else { Ok(()) }
}

/// Whether a table is for locktop's own use.
fn is_mark(table: &str) -> bool {
    matches!(table, "locktop_schema" | "locktop_objects")
}

/// A transaction that changes this schema, and is the only one that does.
async fn begin<'a>(client: &'a mut Client, schema: &SchemaName) -> Result<Transaction<'a>, SchemaError> {
    let transaction =
        client.build_transaction().isolation_level(tokio_postgres::IsolationLevel::ReadCommitted);
    let transaction = transaction.start().await?;
    transaction.batch_execute(script::SETTINGS).await?;
    // 0x4C53: locktop's schemas.
    transaction
        .query_typed(
            "SELECT pg_advisory_xact_lock(19539::int8 << 48 | hashtext($1)::int8 & 4294967295)",
            &[(&schema.as_str(), Type::TEXT)],
        )
        .await?;
    Ok(transaction)
}

async fn execute(transaction: &Transaction<'_>, schema: &SchemaName, sql: &str) -> Result<(), SchemaError> {
    transaction.batch_execute(sql).await.map_err(|error| match error.as_db_error() {
        Some(db) if *db.code() == SqlState::DEPENDENT_OBJECTS_STILL_EXIST => {
            let detail = db.detail().map_or_else(|| words(db), |detail| detail.replace('\n', "; "));
            SchemaError::Dependents { schema: schema.clone(), detail }
        }
        _ => error.into(),
    })
}

/// An error that names the objects in one of these states.
fn refuse(
    schema: &SchemaName,
    objects: &[Object],
    found: &[Found],
    what: &'static str,
) -> Result<(), SchemaError> {
    let mut names: Vec<String> =
        objects.iter().filter(|object| found.contains(&object.found)).map(Object::to_string).collect();
    if names.is_empty() {
        return Ok(());
    }
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    if more > 0 {
        names.push(format!("and {more} more"));
    }
    Err(SchemaError::NotOurs { schema: schema.clone(), what, objects: names })
}
