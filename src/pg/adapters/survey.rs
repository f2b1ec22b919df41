//! Which queries of each installation may run, and which alternative is used.

use std::pin::pin;
use std::sync::Arc;

use futures_util::TryStreamExt;
use tokio_postgres::{Client, SimpleQueryMessage};

use super::find::{Found, find};
use super::frame::{Framed, statement_name};
use super::gate::{Sizes, judge};
use crate::clock;
use crate::model::Text;
use crate::model::adapter::{
    Adapter, Choice, Column, Installation, Part, Query, Reading as Once, Template, Tried,
};
use crate::pg::decode::copy::CopyReader;
use crate::pg::decode::value::text;
use crate::pg::poll::{SectionError, message};
use crate::pg::tables::{Reading, Refusal};
use crate::pg::trust::{TrustedOwners, untrusted};

/// An installation, and the message that reads each part of it that may be read.
#[derive(Debug, Clone)]
pub(in crate::pg) struct Surveyed {
    pub(in crate::pg) installation: Installation,
    pub(in crate::pg) readings: Vec<(Part, String)>,
}

/// Finds all installations, and what may be read of each.
///
/// # Errors
/// When the catalogs cannot be read, or the connection breaks.
pub async fn survey(
    client: &Client,
    owners: &TrustedOwners,
    adapters: &[Arc<Adapter>],
) -> Result<Vec<Installation>, SectionError> {
    let mut all = Vec::new();
    for Surveyed { mut installation, readings } in surveyed(client, owners, adapters).await? {
        for (part, sql) in readings {
            let read = Box::pin(read_once(client, part, sql)).await?;
            let choice = installation.choices.iter_mut().find(|choice| choice.part == part);
            if let Some(used) =
                choice.and_then(|choice| choice.tried.iter_mut().find(|tried| tried.outcome.is_ok()))
            {
                used.read = Some(read);
            }
        }
        all.push(installation);
    }
    Ok(all)
}

/// Reads a part, to see that it can be read.
async fn read_once(client: &Client, part: Part, sql: String) -> Result<Result<Once, Text>, SectionError> {
    let started = clock::monotonic();
    let messages = match Reading::Statement(sql).read(client, false).await {
        Ok(messages) => messages,
        Err(Refusal::Section(error)) if error.is_fatal() => return Err(error),
        Err(Refusal::Section(error)) => return Ok(Err(error.to_string().into())),
        Err(Refusal::Guarded(reason) | Refusal::Unreadable(reason)) => return Ok(Err(reason)),
        Err(Refusal::Locked) => return Ok(Err("it is locked".into())),
    };
    let seconds = clock::monotonic().duration_since(started).as_secs_f64();
    let (mut reader, mut rows) = (CopyReader::default(), 0);
    for message in messages {
        reader.read(&message, part.columns().len(), |_| {
            rows += 1;
            Ok(())
        })?;
    }
    Ok(Ok(Once { rows, seconds }))
}

/// The same, with how they are read.
pub(in crate::pg) async fn surveyed(
    client: &Client,
    owners: &TrustedOwners,
    adapters: &[Arc<Adapter>],
) -> Result<Vec<Surveyed>, SectionError> {
    let mut all = Vec::new();
    for found in find(client, owners, adapters).await? {
        all.push(Box::pin(one(client, owners, &found)).await?);
    }
    Ok(all)
}

async fn one(client: &Client, owners: &TrustedOwners, found: &Found) -> Result<Surveyed, SectionError> {
    let survey = Survey { client, owners, found };
    let (mut version, mut choices, mut readings) = (None, Vec::new(), Vec::new());
    if found.refused.is_none() {
        version = survey.version().await?;
        for part in Part::ALL {
            let (choice, reading) = survey.choice(part).await?;
            readings.extend(reading.map(|reading| (part, reading)));
            choices.extend(Some(choice).filter(|choice| !choice.tried.is_empty()));
        }
    }
    let installation = Installation {
        adapter: Arc::clone(&found.adapter),
        oid: found.oid(),
        schema: found.schema.clone(),
        prefix: found.prefix.clone(),
        tables: found.tables.iter().map(|(key, table)| (key.clone(), table.label().into())).collect(),
        version,
        refused: found.refused.clone(),
        choices,
    };
    Ok(Surveyed { installation, readings })
}

struct Survey<'a> {
    client: &'a Client,
    owners: &'a TrustedOwners,
    found: &'a Found,
}

/// What the server said to a message that asks for something of a query; or why it is not to be had.
type Said<T> = Result<Result<T, Text>, SectionError>;

impl Survey<'_> {
    /// The alternatives of a part up to the one that is used, and the message that reads that one.
    async fn choice(&self, part: Part) -> Result<(Choice, Option<String>), SectionError> {
        let all = self.found.adapter.queries.iter().filter(|query| query.part == part).zip(1..);
        let mut choice = Choice { part, tried: Vec::new() };
        for (query, number) in all.filter(|(query, _)| self.found.has(&query.needs)) {
            let (tried, reading) = Box::pin(self.alternative(query, number)).await?;
            choice.tried.push(tried);
            if reading.is_some() {
                return Ok((choice, reading));
            }
        }
        Ok((choice, None))
    }

    /// Whether an alternative may run, and how it is read then.
    async fn alternative(
        &self,
        query: &Query,
        number: usize,
    ) -> Result<(Tried, Option<String>), SectionError> {
        let refused =
            |reason: Text, rows| (Tried { number, outcome: Err(reason), size: rows, read: None }, None);
        let Some(framed) = Framed::new(self.owners, self.found, &query.sql) else {
            return Ok(refused("a table that it names is not there".into(), None));
        };
        let names = match self.names(&framed).await? {
            Ok(names) => names,
            Err(reason) => return Ok(refused(reason, None)),
        };
        let columns = query.part.columns();
        if let Err(reason) = are_known(&names, columns) {
            return Ok(refused(reason, None));
        }
        let read = framed.rows(columns, &names);
        let (plan, sizes) = match self.plan(&framed.planned(&read)).await? {
            Ok(planned) => planned,
            Err(reason) => return Ok(refused(reason, None)),
        };
        let rows = Some(sizes.largest());
        Ok(match judge(&plan, &sizes) {
            Ok(cost) => {
                (Tried { number, outcome: Ok(cost), size: rows, read: None }, Some(framed.reading(&read)))
            }
            Err(reason) => refused(reason.into(), rows),
        })
    }

    /// The names of a query's columns, after it was understood and is known to name nothing else than it may.
    async fn names(&self, framed: &Framed) -> Said<Vec<String>> {
        let name = statement_name();
        let said = self.rows(&framed.understood(&name)).await?;
        if said.is_err() {
            // What was prepared outlives a transaction that fails.
            let _ = self.client.batch_execute(&format!("DEALLOCATE {name}")).await;
        }
        Ok(said.map(|said| said.columns))
    }

    async fn plan(&self, text: &str) -> Said<(String, Sizes)> {
        Ok(self.rows(text).await?.and_then(|said| {
            let sizes = said.values.first().and_then(|text| Sizes::parse(text));
            let plan = said.values.last().filter(|_| said.values.len() == 2);
            plan.cloned().zip(sizes).ok_or_else(|| "its plan cannot be read".into())
        }))
    }

    /// The version that the adapter tells: the first whose needs hold.
    async fn version(&self) -> Result<Option<Text>, SectionError> {
        let versions = &self.found.adapter.versions;
        let Some(version) = versions.iter().find(|version| self.found.has(&version.needs)) else {
            return Ok(None);
        };
        let Some(sql) = &version.sql else { return Ok(Some(version.text.clone())) };
        let value = self.value(sql).await?;
        Ok(value.map(|value| version.text.replace("{0}", &value).into()))
    }

    /// The one value that a query brings.
    async fn value(&self, sql: &Template) -> Result<Option<String>, SectionError> {
        let Some(framed) = Framed::new(self.owners, self.found, sql) else { return Ok(None) };
        if self.names(&framed).await?.is_err() {
            return Ok(None);
        }
        let read = framed.value();
        let Ok((plan, sizes)) = self.plan(&framed.planned(&read)).await? else { return Ok(None) };
        if judge(&plan, &sizes).is_err() {
            return Ok(None);
        }
        match Reading::Statement(framed.reading(&read)).read(self.client, false).await {
            Ok(messages) => {
                let (mut reader, mut value) = (CopyReader::default(), None);
                for message in messages {
                    reader.read(&message, 1, |fields| {
                        value = text(fields.value()?).map(|text| text.chars().take(100).collect());
                        Ok(())
                    })?;
                }
                Ok(value)
            }
            Err(Refusal::Section(error)) if error.is_fatal() => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// The columns of the last statement of a message, and the values of all columns that are called `sizes` or `QUERY PLAN`.
    async fn rows(&self, sql: &str) -> Said<Rows> {
        match rows(self.client, sql).await {
            Ok(rows) => Ok(Ok(rows)),
            Err(error) => match error.as_db_error() {
                Some(told) => Ok(Err(untrusted(told).unwrap_or_else(|| message(&error)).into())),
                None => Err(error.into()),
            },
        }
    }
}

/// What a message brought.
#[derive(Debug, Default)]
struct Rows {
    columns: Vec<String>,
    values: Vec<String>,
}

async fn rows(client: &Client, sql: &str) -> Result<Rows, tokio_postgres::Error> {
    let mut messages = pin!(client.simple_query_raw(sql).await?);
    let mut rows = Rows::default();
    let mut is_wanted = false;
    while let Some(message) = messages.try_next().await? {
        match message {
            SimpleQueryMessage::RowDescription(columns) => {
                rows.columns = columns.iter().map(|column| column.name().to_owned()).collect();
                is_wanted = matches!(rows.columns.first().map(String::as_str), Some("sizes" | "QUERY PLAN"));
            }
            SimpleQueryMessage::Row(row) if is_wanted => {
                rows.values.extend(row.try_get(0)?.map(str::to_owned));
            }
            _ => {}
        }
    }
    Ok(rows)
}

/// Whether these are columns of the part, and all are there that have to be.
fn are_known(names: &[String], columns: &[Column]) -> Result<(), Text> {
    let allowed = || columns.iter().map(|(name, _, _)| *name).collect::<Vec<_>>().join(", ");
    for (place, name) in names.iter().enumerate() {
        let shown = crate::text::one_line(name);
        if !columns.iter().any(|(known, _, _)| known == name) {
            return Err(format!("it has a column \"{shown}\": expected some of {}", allowed()).into());
        }
        if names.iter().take(place).any(|other| other == name) {
            return Err(format!("it has two columns \"{shown}\"").into());
        }
    }
    match columns.iter().find(|(name, _, is_needed)| *is_needed && !names.iter().any(|one| one == name)) {
        Some((name, _, _)) => Err(format!("it has no column {name}").into()),
        None => Ok(()),
    }
}
