//! Looking for tables.

use std::sync::Arc;

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row};

use super::Table;
use crate::pg::scope::Scope;

/// What is looked for: the statement, what the config says, and the usual names.
#[derive(Debug, Clone)]
pub(in crate::pg) struct Search {
    pub(in crate::pg) find: Arc<str>,
    pub(in crate::pg) places: Vec<Option<String>>,
    pub(in crate::pg) names: Vec<&'static str>,
    /// Where a name alone is looked for.
    pub(in crate::pg) path: Arc<[String]>,
    pub(in crate::pg) scope: Scope,
}

impl Search {
    /// # Errors
    /// When a name in the config is no name, and as for any statement.
    pub(in crate::pg) async fn rows(&self, client: &Client) -> Result<Vec<Row>, Error> {
        let (kind, path) = (Type::TEXT_ARRAY, &*self.path);
        let values: [(&(dyn ToSql + Sync), Type); 3] =
            [(&self.places, kind.clone()), (&self.names, kind.clone()), (&path, kind)];
        self.scope.alone(client, client.query_typed(&self.find, &values)).await
    }
}

/// The table that stands at a place of the config, counted from 0.
pub(in crate::pg) fn given(tables: &[Table], place: usize) -> Option<&Table> {
    tables.iter().find(|table| table.given.contains(&(place + 1)))
}
