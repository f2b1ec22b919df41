//! Looking for tables.

use std::sync::Arc;

use tokio_postgres::{Client, Row, Statement};

use super::Table;
use crate::pg::poll::SectionError;

/// What is looked for: the statement, what the config says, and the usual names.
#[derive(Debug, Clone)]
pub(in crate::pg) struct Search {
    pub(in crate::pg) find: Statement,
    pub(in crate::pg) places: Vec<Option<String>>,
    pub(in crate::pg) names: Vec<&'static str>,
    /// Where a name alone is looked for.
    pub(in crate::pg) path: Arc<[String]>,
}

impl Search {
    /// # Errors
    /// When a name in the config is no name, and as for any statement.
    pub(in crate::pg) async fn rows(&self, client: &Client) -> Result<Vec<Row>, SectionError> {
        Ok(client.query(&self.find, &[&self.places, &self.names, &&*self.path]).await?)
    }
}

/// The table that stands at a place of the config, counted from 0.
pub(in crate::pg) fn given(tables: &[Table], place: usize) -> Option<&Table> {
    tables.iter().find(|table| table.given.contains(&(place + 1)))
}
