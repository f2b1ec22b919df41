//! Which tables there are, and how each is read.

use tokio_postgres::Client;

use super::reader::{Chosen, Reader, Rows};
use super::{NAMES, Readers};
use crate::model::Text;
use crate::model::task::KeyRule;
use crate::pg::scope::Scope;
use crate::pg::section_error::SectionError;
use crate::pg::tables::{Search, Table, given};

/// What is looked for.
#[derive(Debug, Clone)]
pub(super) struct Look {
    /// With what the config says, in the order of [`NAMES`].
    pub(super) search: Search,
    pub(super) key_rule: KeyRule,
}

impl Look {
    fn search(&self, places: Vec<Option<String>>) -> Search {
        Search { places, ..self.search.clone() }
    }

    /// Finds the tables, and prepares their statements. A name in the config that is no name fails the whole search: then
    /// each is tried by itself, and the search is made with the good ones.
    pub(super) async fn run(&self, client: &Client) -> Result<Readers, SectionError> {
        match self.search.rows(client).await.map_err(SectionError::from) {
            Ok(rows) => self.prepared(client, &Table::all(&rows, &self.key_rule), &[]).await,
            Err(error) if error.is_refused() && self.search.places.iter().any(Option::is_some) => {
                self.each_alone(client).await
            }
            Err(error) => Err(error),
        }
    }

    async fn each_alone(&self, client: &Client) -> Result<Readers, SectionError> {
        let places = &self.search.places;
        let (mut good, mut bad) = (places.clone(), Vec::new());
        for (place, name) in places.iter().enumerate().filter(|(_, name)| name.is_some()) {
            let mut alone = vec![None; places.len()];
            if let Some(slot) = alone.get_mut(place) {
                slot.clone_from(name);
            }
            match self.search(alone).rows(client).await.map_err(SectionError::from) {
                Ok(_) => {}
                Err(error) if error.is_refused() => {
                    if let Some(slot) = good.get_mut(place) {
                        *slot = None;
                    }
                    bad.push((place, Text::from(format!("[tables] in the config: {error}"))));
                }
                Err(error) => return Err(error),
            }
        }
        let rows = self.search(good).rows(client).await?;
        self.prepared(client, &Table::all(&rows, &self.key_rule), &bad).await
    }

    /// The readers of all tables. `bad` says what is wrong with places in the config.
    pub(super) async fn prepared(
        &self,
        client: &Client,
        tables: &[Table],
        bad: &[(usize, Text)],
    ) -> Result<Readers, SectionError> {
        let found = Candidates { tables, places: &self.search.places, bad, scope: self.search.scope };
        Ok(Readers {
            leases: found.readers(client).await?,
            counts: found.readers(client).await?,
            items: found.readers(client).await?,
            limits: found.readers(client).await?,
            generators: found.readers(client).await?,
            workers: found.readers(client).await?,
            contended: found.readers(client).await?,
        })
    }
}

struct Candidates<'a> {
    tables: &'a [Table],
    places: &'a [Option<String>],
    bad: &'a [(usize, Text)],
    scope: Scope,
}

impl Candidates<'_> {
    async fn readers<T: Rows>(&self, client: &Client) -> Result<Vec<Reader<T>>, SectionError> {
        let mut readers = Vec::new();
        for chosen in self.chosen::<T>() {
            readers.push(Reader::prepare(client, chosen, self.scope).await?);
        }
        Ok(readers)
    }

    /// What the config names, else what is on the search path, and what is in schema `locktop`.
    fn chosen<T: Rows>(&self) -> Vec<Chosen<'_>> {
        let usual = |table: &&Table| table.name == T::TABLE && T::lacks(table).is_none();
        let place = NAMES.iter().position(|name| *name == T::TABLE).unwrap_or_default();
        let named = self.places.get(place).and_then(Option::as_deref);
        let mut chosen = Vec::new();
        if let Some(name) = named {
            chosen.push(self.configured::<T>(place, name));
        } else if let Some(table) = self.tables.iter().filter(usual).find(|table| table.is_visible) {
            chosen.push(Chosen::Table(table));
        }
        let mut schemas = vec!["locktop"];
        // What has no name in the config is meant with what stands beside it.
        if place >= self.places.len() {
            let given = self.tables.iter().filter(|table| !table.given.is_empty());
            schemas.extend(given.map(|table| table.schema.as_str()));
        }
        for schema in schemas {
            if let Some(table) = self.tables.iter().filter(usual).find(|table| table.schema == schema)
                && !chosen.iter().any(|one| matches!(one, Chosen::Table(other) if other.oid == table.oid))
            {
                chosen.push(Chosen::Table(table));
            }
        }
        chosen
    }

    fn configured<T: Rows>(&self, place: usize, name: &str) -> Chosen<'_> {
        let refused = |reason: Text| Chosen::Refused(name.into(), reason);
        if let Some((_, reason)) = self.bad.iter().find(|(at, _)| *at == place) {
            return refused(reason.clone());
        }
        match given(self.tables, place) {
            None => refused(format!("there is no table {name}, where [tables] in the config has it").into()),
            Some(table) => match T::lacks(table) {
                Some(what) => refused(format!("{name} {what}").into()),
                None => Chosen::Table(table),
            },
        }
    }
}
