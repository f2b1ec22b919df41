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
use crate::pg::scope::Scope;
use crate::pg::sql;
use crate::pg::tables::{Reading, Refusal};
use crate::pg::trust::{TrustedOwners, untrusted};
use std::time::{Duration, Instant};

/// An installation, and the message that reads each part of it that may be read.
#[derive(Debug, Clone)]
pub(super) struct Surveyed {
    pub(super) installation: Installation,
    pub(super) readings: Vec<PartReading>,
    /// Its queries were planned just now.
    pub(super) is_new: bool,
    /// What was found when they were.
    found: Found,
    planned_at: Instant,
}

/// How a part is read.
#[derive(Debug, Clone)]
pub(super) struct PartReading {
    pub(super) part: Part,
    /// The whole message.
    pub(super) sql: String,
    /// The tables that it locks.
    pub(super) oids: Vec<u32>,
}

/// Plans are looked at again after this long.
const REPLAN: Duration = Duration::from_secs(300);

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
    client.batch_execute(&sql::prepare_guard(owners)).await?;
    for Surveyed { mut installation, readings, .. } in
        surveyed(client, owners, Scope::Own, adapters, &[]).await?
    {
        for PartReading { part, sql, .. } in readings {
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
    client.batch_execute(&format!("DEALLOCATE {}", sql::guard())).await?;
    Ok(all)
}

/// Reads a part, to see that it can be read.
async fn read_once(client: &Client, part: Part, sql: String) -> Result<Result<Once, Text>, SectionError> {
    let started = clock::monotonic();
    let messages = match Reading::Statement(sql, Scope::Own).read(client, false).await {
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

/// The same, with how they are read. What is as it was before is not planned again for five minutes.
pub(super) async fn surveyed(
    client: &Client,
    owners: &TrustedOwners,
    scope: Scope,
    adapters: &[Arc<Adapter>],
    before: &[Surveyed],
) -> Result<Vec<Surveyed>, SectionError> {
    let mut all = Vec::new();
    let now = clock::monotonic();
    for found in find(client, owners, scope, adapters).await? {
        let is_same = |old: &&Surveyed| old.found == found && now.duration_since(old.planned_at) < REPLAN;
        match before.iter().find(is_same) {
            Some(old) => all.push(Surveyed { is_new: false, ..old.clone() }),
            None => all.push(Box::pin(one(client, scope, found)).await?),
        }
    }
    Ok(all)
}

async fn one(client: &Client, scope: Scope, found: Found) -> Result<Surveyed, SectionError> {
    let survey = Survey { client, scope, found: &found };
    let (mut version, mut choices, mut readings) = (None, Vec::new(), Vec::new());
    if found.refused.is_none() {
        version = survey.version().await?;
        for part in Part::ALL {
            let (choice, reading) = survey.choice(part).await?;
            readings.extend(reading);
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
    Ok(Surveyed { installation, readings, is_new: true, found, planned_at: clock::monotonic() })
}

struct Survey<'a> {
    client: &'a Client,
    scope: Scope,
    found: &'a Found,
}

/// What the server said to a message that asks for something of a query; or why it is not to be had.
type Said<T> = Result<Result<T, Text>, SectionError>;

impl Survey<'_> {
    /// The alternatives of a part up to the one that is used, and the message that reads that one.
    async fn choice(&self, part: Part) -> Result<(Choice, Option<PartReading>), SectionError> {
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
    ) -> Result<(Tried, Option<PartReading>), SectionError> {
        let refused =
            |reason: Text, rows| (Tried { number, outcome: Err(reason), size: rows, read: None }, None);
        let Some(framed) = Framed::new(self.found, &query.sql) else {
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
            Ok(cost) => (
                Tried { number, outcome: Ok(cost), size: rows, read: None },
                Some(PartReading { part: query.part, sql: framed.reading(&read), oids: framed.tables() }),
            ),
            Err(reason) => refused(reason.into(), rows),
        })
    }

    /// The names of a query's columns, after it was understood and is known to name nothing else than it may.
    async fn names(&self, framed: &Framed) -> Said<Vec<String>> {
        let name = statement_name();
        let said = self.rows(&framed.understood(&name)).await?;
        if said.is_err() {
            // What was prepared outlives a transaction that fails.
            let deallocate = format!("DEALLOCATE {name}");
            let _ = self.scope.alone(self.client, self.client.batch_execute(&deallocate)).await;
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
        let Some(framed) = Framed::new(self.found, sql) else { return Ok(None) };
        if self.names(&framed).await?.is_err() {
            return Ok(None);
        }
        let read = framed.value();
        let Ok((plan, sizes)) = self.plan(&framed.planned(&read)).await? else { return Ok(None) };
        if judge(&plan, &sizes).is_err() {
            return Ok(None);
        }
        match Reading::Statement(framed.reading(&read), self.scope).read(self.client, false).await {
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
        match self.scope.alone(self.client, rows(self.client, sql)).await {
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
