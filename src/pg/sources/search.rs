//! Which tables there are, and which of them are read.

use std::sync::Arc;

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row};

use super::places::Places;
use super::reader::{Chosen, Reader};
use super::source::Source;
use crate::model::Text;
use crate::pg::scope::Scope;
use crate::pg::section_error::SectionError;
use crate::pg::tables::Table;

/// What is looked for.
#[derive(Debug, Clone)]
pub(in crate::pg) struct Search {
    /// The statement of `assets/sql/tables_find.sql`, with the owners that are trusted filled in.
    pub(in crate::pg) find: Arc<str>,
    /// The usual names of the tables, such as `distlock`.
    pub(in crate::pg) names: Arc<[&'static str]>,
    pub(in crate::pg) places: Places,
    /// Where a name alone is looked for.
    pub(in crate::pg) path: Arc<[String]>,
    pub(in crate::pg) scope: Scope,
}

impl Search {
    /// # Errors
    /// When a name in the config is no name, and as for any statement.
    pub(in crate::pg) async fn rows(&self, client: &Client) -> Result<Vec<Row>, Error> {
        let places: Vec<_> = self.names.iter().map(|name| self.places.of(name)).collect();
        let (kind, names, path) = (Type::TEXT_ARRAY, &*self.names, &*self.path);
        let values: [(&(dyn ToSql + Sync), Type); 3] =
            [(&places, kind.clone()), (&names, kind.clone()), (&path, kind)];
        self.scope.alone(client, client.query_typed(&self.find, &values)).await
    }

    /// Finds the tables. A name in the config that is no name fails the whole search: then each is tried by itself, and the search is made
    /// with the good ones.
    pub(super) async fn found(&self, client: &Client) -> Result<FoundTables, SectionError> {
        match self.rows(client).await.map_err(SectionError::from) {
            Ok(rows) => Ok(self.all(&rows)),
            Err(error) if error.is_refused() && self.places != Places::default() => {
                self.each_alone(client).await
            }
            Err(error) => Err(error),
        }
    }

    /// What these rows tell.
    pub(super) fn all(&self, rows: &[Row]) -> FoundTables {
        let (names, places) = (Arc::clone(&self.names), self.places.clone());
        FoundTables { tables: Table::all(rows), names, places, bad: Vec::new() }
    }

    async fn each_alone(&self, client: &Client) -> Result<FoundTables, SectionError> {
        let (mut good, mut bad) = (Places::default(), Vec::new());
        for (name, place) in self.names.iter().filter_map(|name| Some((*name, self.places.of(name)?))) {
            let alone = Self { places: Places::default().with(name, place), ..self.clone() };
            match alone.rows(client).await.map_err(SectionError::from) {
                Ok(_) => good = good.with(name, place),
                Err(error) if error.is_refused() => {
                    bad.push((name, Text::from(format!("[tables] in the config: {error}"))));
                }
                Err(error) => return Err(error),
            }
        }
        let rows = Self { places: good, ..self.clone() }.rows(client).await?;
        Ok(FoundTables { bad, ..self.all(&rows) })
    }
}

/// The tables that were found.
#[derive(Debug, Default)]
pub(super) struct FoundTables {
    pub(super) tables: Vec<Table>,
    /// The usual names, in the order in which [`Table::given`] counts them.
    pub(super) names: Arc<[&'static str]>,
    pub(super) places: Places,
    /// What is wrong with places in the config, by the usual name.
    pub(super) bad: Vec<(&'static str, Text)>,
}

impl FoundTables {
    /// Makes ready all tables of a kind.
    pub(super) async fn readers<T: Source>(
        &self,
        client: &Client,
        scope: Scope,
    ) -> Result<Vec<Reader<T>>, SectionError> {
        let mut readers = Vec::new();
        for chosen in self.chosen::<T>(self.configured::<T>()) {
            readers.push(self.reader(client, scope, chosen, None).await?);
        }
        Ok(readers)
    }

    /// The same for one; `with` is the table that it belongs to.
    pub(super) async fn reader<T: Source>(
        &self,
        client: &Client,
        scope: Scope,
        chosen: Chosen<'_>,
        with: Option<&Table>,
    ) -> Result<Reader<T>, SectionError> {
        Reader::prepare(client, scope, chosen, with, T::key_rule(&self.places)).await
    }

    /// What the config names, else what is on the search path, and what is in schema `locktop` or beside what the config names.
    pub(super) fn chosen<'a, T: Source>(&'a self, configured: Option<Chosen<'a>>) -> Vec<Chosen<'a>> {
        let usual = || self.tables.iter().filter(|table| table.name == T::TABLE && T::is_one(table));
        let visible = || usual().find(|table| table.is_visible).map(Chosen::Table);
        let mut chosen: Vec<_> = configured.or_else(visible).into_iter().collect();
        let beside = T::BESIDE.iter().filter_map(|name| self.given(name));
        for schema in ["locktop"].into_iter().chain(beside.map(|table| table.schema.as_str())) {
            if let Some(table) = usual().find(|table| table.schema == schema)
                && !chosen.iter().any(|one| matches!(one, Chosen::Table(other) if other.oid == table.oid))
            {
                chosen.push(Chosen::Table(table));
            }
        }
        chosen
    }

    /// The table that the config names for the usual one, or why it is none; None where the config does not say.
    pub(super) fn configured<T: Source>(&self) -> Option<Chosen<'_>> {
        let name = self.places.of(T::TABLE)?;
        let refused = |reason: Text| Chosen::Refused(name.into(), reason);
        if let Some((_, reason)) = self.bad.iter().find(|(bad, _)| *bad == T::TABLE) {
            return Some(refused(reason.clone()));
        }
        Some(match self.given(T::TABLE) {
            None => refused(missing(name)),
            Some(table) if T::is_one(table) => Chosen::Table(table),
            Some(_) => refused(format!("{name} {}", T::LACKS).into()),
        })
    }

    /// The table that stands where the config has the one of this name.
    pub(super) fn given(&self, name: &str) -> Option<&Table> {
        let place = self.names.iter().position(|one| *one == name)? + 1;
        self.tables.iter().find(|table| table.given.contains(&place))
    }
}

/// That the config names what is not there.
pub(super) fn missing(name: &str) -> Text {
    format!("there is no table {name}, where [tables] in the config has it").into()
}
