use tokio_postgres::Client;
use tokio_postgres::types::{ToSql, Type};

use crate::Error;
use crate::SchemaName;

/// A row as it was displayed. Times are as the server printed them with `DateStyle` ISO.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// `id` of the lease.
    pub id: i32,
    /// `owner`: the name of its holder.
    pub owner: String,
    /// `ts`: when it was acquired, or last renewed.
    pub ts: String,
    /// `expired_time`: the interval from `ts` to its end.
    pub expired_time: String,
    /// `token`, which grows with each new owner; `None` if the table has no such column.
    pub token: Option<i64>,
}

/// The table that a lease is in, which determines the statement that ends one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The table `distlock` that `locktop schema install` created in this schema.
    Installed(SchemaName),
    /// A table that was created as published, without tokens: its schema and name as in the catalog.
    Published {
        /// The schema's name, unquoted.
        schema: String,
        /// The table's name, unquoted.
        table: String,
    },
}

impl Place {
    /// The statement; its parameters are id, owner, ts, `expired_time` and, in a table of locktop's own, token.
    #[must_use]
    pub fn sql(&self) -> String {
        let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        match self {
            Self::Installed(schema) => format!(
                "SELECT {}.lease_force_release($1, $2, $3::text::timestamptz, $4::text::interval, $5)",
                schema.quoted()
            ),
            // The owner is kept, to show which one had it. A holder that renews by name, as published, gets the lease back: nothing
            // in such a table can prevent that.
            Self::Published { schema, table } => format!(
                "WITH ended AS (UPDATE {}.{} SET ts = clock_timestamp(), expired_time = interval '0' \
                 WHERE id = $1 AND owner = $2 AND ts = $3::text::timestamptz AND expired_time = $4::text::interval \
                 AND clock_timestamp() < ts + expired_time RETURNING 1) SELECT EXISTS (SELECT FROM ended)",
                quoted(schema),
                quoted(table)
            ),
        }
    }
}

/// Ends the lease if its row is exactly as it was displayed; false if anything about it has changed, including a renewal,
/// or it has already ended. Its holder is not notified: it finds out when it renews, or when a fenced write is refused.
///
/// # Errors
/// If the server refuses or the connection fails.
pub async fn force_release(client: &Client, place: &Place, shown: &Shown) -> Result<bool, Error> {
    let token = shown.token.unwrap_or_default();
    let mut values: Vec<(&(dyn ToSql + Sync), Type)> = vec![
        (&shown.id, Type::INT4),
        (&shown.owner, Type::TEXT),
        (&shown.ts, Type::TEXT),
        (&shown.expired_time, Type::TEXT),
    ];
    let (what, schema) = match place {
        Place::Installed(schema) => {
            values.push((&token, Type::INT8));
            ("lease_force_release", schema.quoted())
        }
        Place::Published { schema, .. } => ("table of leases", schema.clone()),
    };
    let failed = |error: tokio_postgres::Error| Error::of(what, &schema, &error);
    let rows = client.query_typed(&place.sql(), &values).await.map_err(failed)?;
    rows.first().map_or(Ok(false), |row| row.try_get(0).map_err(failed))
}
