use std::sync::Arc;

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row};

use super::reader::{ChosenTable, SourceReader, TableLocations, TableSource};
use crate::model::Text;
use crate::pg::jobs::tables::{Table, meant};
use crate::pg::{Scope, SectionError};

#[derive(Debug, Clone)]
pub(in crate::pg) struct Search {
    /// The statement of `assets/sql/tables_find.sql`, with the trusted owners filled in.
    pub(in crate::pg) find: Arc<str>,
    pub(in crate::pg) names: Arc<[&'static str]>,
    pub(in crate::pg) places: TableLocations,
    /// Schemas searched for a name without a schema.
    pub(in crate::pg) path: Arc<[String]>,
    pub(in crate::pg) scope: Scope,
}

impl Search {
    /// # Errors
    /// If a name in the config is not valid, and as for any statement.
    pub(in crate::pg) async fn rows(&self, client: &Client) -> Result<Vec<Row>, Error> {
        let places: Vec<_> = self.names.iter().map(|name| self.places.of(name)).collect();
        let (kind, names, path) = (Type::TEXT_ARRAY, &*self.names, &*self.path);
        let values: [(&(dyn ToSql + Sync), Type); 3] =
            [(&places, kind.clone()), (&names, kind.clone()), (&path, kind)];
        self.scope.alone(client, client.query_typed(&self.find, &values)).await
    }

    /// Finds the tables. An invalid name in the config makes the whole search fail: then each name is tried separately, and
    /// the search is repeated with the valid ones.
    pub(super) async fn found(&self, client: &Client) -> Result<FoundTables, SectionError> {
        match self.rows(client).await.map_err(SectionError::from) {
            Ok(rows) => Ok(self.all(&rows)),
            Err(error) if error.is_refused() && self.places != TableLocations::default() => {
                self.each_alone(client).await
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn all(&self, rows: &[Row]) -> FoundTables {
        let (names, places) = (Arc::clone(&self.names), self.places.clone());
        FoundTables { tables: Table::all(rows), names, places, bad: Vec::new() }
    }

    async fn each_alone(&self, client: &Client) -> Result<FoundTables, SectionError> {
        let (mut good, mut bad) = (TableLocations::default(), Vec::new());
        for (name, place) in self.names.iter().filter_map(|name| Some((*name, self.places.of(name)?))) {
            let alone = Self { places: TableLocations::default().with(name, place), ..self.clone() };
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

#[derive(Debug, Default)]
pub(super) struct FoundTables {
    pub(super) tables: Vec<Table>,
    /// The usual names, in the order in which [`Table::given`] counts them.
    pub(super) names: Arc<[&'static str]>,
    pub(super) places: TableLocations,
    /// Errors of locations in the config, by usual name.
    pub(super) bad: Vec<(&'static str, Text)>,
}

impl FoundTables {
    pub(super) async fn readers<T: TableSource>(
        &self,
        client: &Client,
        scope: Scope,
    ) -> Result<Vec<SourceReader<T>>, SectionError> {
        let mut readers = Vec::new();
        let all = self.chosen::<T>(self.configured::<T>());
        let hidden = hidden(all.iter());
        for (chosen, hides) in all.into_iter().zip(hidden) {
            readers.push(self.reader(client, scope, (chosen, hides), None).await?);
        }
        Ok(readers)
    }

    pub(super) async fn reader<T: TableSource>(
        &self,
        client: &Client,
        scope: Scope,
        chosen: (ChosenTable<'_>, Option<Text>),
        with: Option<&Table>,
    ) -> Result<SourceReader<T>, SectionError> {
        SourceReader::prepare(client, scope, chosen, with, self.places.key_rule(T::KEY_RULE)).await
    }

    /// The table that the config names, else the one on the search path; in addition those in schema `locktop` or in the
    /// schema of what the config names.
    pub(super) fn chosen<'a, T: TableSource>(
        &'a self,
        mut chosen: Vec<ChosenTable<'a>>,
    ) -> Vec<ChosenTable<'a>> {
        let usual = || self.tables.iter().filter(|table| table.name == T::TABLE && T::is_one(table));
        if chosen.is_empty() {
            chosen.extend(meant(usual()).into_iter().map(ChosenTable::Table));
        }
        let beside = T::BESIDE.iter().flat_map(|name| self.given(name));
        for schema in ["locktop"].into_iter().chain(beside.map(|table| table.schema.as_str())) {
            if let Some(table) = usual().find(|table| table.schema == schema)
                && !chosen
                    .iter()
                    .any(|one| matches!(one, ChosenTable::Table(other) if other.oid == table.oid))
            {
                chosen.push(ChosenTable::Table(table));
            }
        }
        chosen
    }

    /// The tables that the config may mean for the usual name, of which the last one is used, or why there is none; empty if
    /// the config does not name one.
    pub(super) fn configured<T: TableSource>(&self) -> Vec<ChosenTable<'_>> {
        let Some(name) = self.places.of(T::TABLE) else { return Vec::new() };
        let refused = |reason: Text| vec![ChosenTable::Refused(name.into(), reason)];
        if let Some((_, reason)) = self.bad.iter().find(|(bad, _)| *bad == T::TABLE) {
            return refused(reason.clone());
        }
        let given = self.given(T::TABLE);
        if given.is_empty() {
            return refused(missing(name));
        }
        let fits: Vec<_> =
            given.into_iter().filter(|table| T::is_one(table)).map(ChosenTable::Table).collect();
        if fits.is_empty() { refused(format!("{name} {}", T::LACKS).into()) } else { fits }
    }

    /// The tables that the location in the config for this name may mean: see [`meant`].
    pub(super) fn given(&self, name: &str) -> Vec<&Table> {
        let place = self.names.iter().position(|one| *one == name).map(|place| place + 1);
        let given =
            || self.tables.iter().filter(|table| place.is_some_and(|place| table.given.contains(&place)));
        let on_path = meant(given());
        if on_path.is_empty() { given().collect() } else { on_path }
    }
}

/// For each table, the table of another role behind it on the search path that it hides: only a table of an untrusted
/// owner hides one.
pub(super) fn hidden<'a>(chosen: impl Iterator<Item = &'a ChosenTable<'a>>) -> Vec<Option<Text>> {
    let table = |chosen: &'a ChosenTable<'a>| match chosen {
        ChosenTable::Table(table) => Some(*table),
        ChosenTable::Refused(..) => None,
    };
    let tables: Vec<_> = chosen.map(table).collect();
    let hides = |one: Option<&Table>| {
        let (one, owner) = (one?, one?.stranger.as_ref()?);
        let place = one.path?;
        let behind = |other: &&&Table| other.path > Some(place) && other.stranger.as_ref() != Some(owner);
        tables.iter().flatten().rfind(behind).map(|other| other.label().into())
    };
    tables.iter().copied().map(hides).collect()
}

pub(super) fn missing(name: &str) -> Text {
    format!("the table {name} of [tables] in the config does not exist").into()
}
