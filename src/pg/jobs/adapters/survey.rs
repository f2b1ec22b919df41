use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_postgres::Client;

use super::act::{QueryAnswer, Rejection, asked, rehearsed};
use super::find::{FoundInstallation, find};
use super::gate::{Sizes, judge};
use super::{Framed, mistyped, statement_name};
use crate::clock;
use crate::model::adapter::{
    Adapter, AdapterLease, AdapterQuery, AdapterSchedule, Depth, Installation, Job, Part, Parts, Paused,
    QueryChoice, STATES, Template, TrialReading as Once, Tried, Worker, part_rows,
};
use crate::model::lock_key::LockKey;
use crate::model::{Text, Timestamp};
use crate::pg::decode::{DecodedRow, Texts, copy, decoded};
use crate::pg::jobs::tables::{Columns, Refusal, TableReading};
use crate::pg::sql;
use crate::pg::trust::TrustedOwners;
use crate::pg::{Scope, SectionError};

#[derive(Debug, Clone)]
pub(super) struct Surveyed {
    pub(super) installation: Installation,
    pub(super) readings: Vec<PartReading>,
    /// Its queries were planned in this survey.
    pub(super) is_new: bool,
    found: FoundInstallation,
    planned_at: Instant,
}

#[derive(Debug, Clone)]
pub(super) struct PartReading {
    pub(super) part: Part,
    /// A whole message, with settings and guards.
    pub(super) sql: String,
    /// OIDs of the tables that it locks.
    pub(super) oids: Vec<u32>,
}

part_rows!(decoded);

fn columns(part: Part) -> Columns {
    match part {
        Part::Workers => Worker::COLUMNS,
        Part::Depth => Depth::COLUMNS,
        Part::Paused => Paused::COLUMNS,
        Part::Leases => AdapterLease::COLUMNS,
        Part::Schedules => AdapterSchedule::COLUMNS,
        Part::Running | Part::Due | Part::Scheduled | Part::Blocked | Part::Failed => Job::COLUMNS,
    }
}

const REPLAN: Duration = Duration::from_secs(300);

pub async fn survey(
    client: &Client,
    owners: &TrustedOwners,
    adapters: &[Arc<Adapter>],
) -> Result<Vec<Installation>, SectionError> {
    let mut all = Vec::new();
    client.batch_execute(&sql::prepare_guard(owners)).await?;
    let found = find(client, owners, Scope::Own, adapters).await?;
    for Surveyed { mut installation, readings, found, .. } in
        surveyed(client, (Scope::Own, Parts::ALL), found, &[]).await?
    {
        installation.actions = Box::pin(rehearsed(client, owners, &found)).await?;
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

async fn read_once(client: &Client, part: Part, sql: String) -> Result<Result<Once, Text>, SectionError> {
    let started = clock::monotonic();
    let messages = match TableReading::Statement(sql, Scope::Own).read(client, false).await {
        Ok(messages) => messages,
        Err(Refusal::Section(error)) if error.is_fatal() => return Err(error),
        Err(Refusal::Section(error)) => return Ok(Err(error.to_string().into())),
        Err(Refusal::Guarded(reason) | Refusal::TooLarge(reason) | Refusal::Unreadable(reason)) => {
            return Ok(Err(reason));
        }
        Err(Refusal::Locked) => return Ok(Err("it is locked".into())),
    };
    let seconds = clock::monotonic().duration_since(started).as_secs_f64();
    let states = copy::rows(&messages, columns(part).len(), &mut Texts::default(), |row| {
        // The state follows the id, or the queue.
        let state = if part.has_states() { row.bytes().and_then(|_| row.whole_text())? } else { None };
        Ok(Some(state))
    })?;
    if let Some(state) = states.iter().flatten().find(|state| !STATES.contains(&&***state)) {
        let (state, known) = (crate::text::one_line(state), STATES.join(", "));
        return Ok(Err(format!("it returned the state \"{state}\": expected one of {known}").into()));
    }
    Ok(Ok(Once { rows: states.len(), seconds }))
}

/// The readable parts of each installation, and how to read them. Unchanged installations are not planned again for five
/// minutes.
pub(super) async fn surveyed(
    client: &Client,
    (scope, wanted): (Scope, Parts),
    found: Vec<FoundInstallation>,
    before: &[Surveyed],
) -> Result<Vec<Surveyed>, SectionError> {
    let mut all = Vec::new();
    let now = clock::monotonic();
    for found in found {
        let is_same = |old: &&Surveyed| old.found == found && now.duration_since(old.planned_at) < REPLAN;
        match before.iter().find(is_same) {
            Some(old) => all.push(Surveyed { is_new: false, ..old.clone() }),
            None => all.push(Box::pin(one(client, (scope, wanted), found)).await?),
        }
    }
    distinguish(&mut all);
    Ok(all)
}

/// The title is enough if the system exists once, but never for a system with one table per queue.
fn distinguish(all: &mut [Surveyed]) {
    let mut counts: BTreeMap<Text, usize> = BTreeMap::new();
    for one in all.iter().filter(|one| one.installation.is_somewhere()) {
        *counts.entry(one.installation.adapter.name.clone()).or_default() += 1;
    }
    for one in all {
        let adapter = &one.installation.adapter;
        one.installation.is_alone = !adapter.has_each() && counts.get(&adapter.name) == Some(&1);
    }
}

async fn one(
    client: &Client,
    (scope, wanted): (Scope, Parts),
    found: FoundInstallation,
) -> Result<Surveyed, SectionError> {
    let survey = Survey { client, scope, found: &found };
    let (mut version, mut choices, mut readings) = (None, Vec::new(), Vec::new());
    if found.refused.is_none() {
        // A caller that wants only some parts does not need the version.
        if wanted == Parts::ALL {
            version = survey.version().await?;
        }
        for &part in Part::ALL.iter().filter(|part| wanted.has(**part)) {
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
        actions: Vec::new(),
        is_alone: false,
    };
    Ok(Surveyed { installation, readings, is_new: true, found, planned_at: clock::monotonic() })
}

struct Survey<'a> {
    client: &'a Client,
    scope: Scope,
    found: &'a FoundInstallation,
}

impl Survey<'_> {
    /// The alternatives of a part up to the one that is used, and the message that reads that one.
    async fn choice(&self, part: Part) -> Result<(QueryChoice, Option<PartReading>), SectionError> {
        let all = self.found.adapter.queries.iter().filter(|query| query.part == part).zip(1..);
        let mut choice = QueryChoice { part, tried: Vec::new() };
        for (query, number) in all.filter(|(query, _)| self.found.has(&query.needs)) {
            let (tried, reading) = Box::pin(self.alternative(query, number)).await?;
            choice.tried.push(tried);
            if reading.is_some() {
                return Ok((choice, reading));
            }
        }
        Ok((choice, None))
    }

    async fn alternative(
        &self,
        query: &AdapterQuery,
        number: usize,
    ) -> Result<(Tried, Option<PartReading>), SectionError> {
        let refused_at =
            |reason: Text, size, at| (Tried { number, outcome: Err(reason), size, read: None, at }, None);
        let refused = |reason: Text, size| refused_at(reason, size, None);
        let Some(framed) = Framed::new(self.found, &query.sql) else {
            return Ok(refused("a table that it names does not exist".into(), None));
        };
        let names = match self.names(&framed).await? {
            Ok(names) => names,
            Err(unread) => return Ok(refused_at(unread.reason, None, unread.position)),
        };
        let columns = columns(query.part);
        if let Err(reason) = are_known(&names, columns) {
            return Ok(refused(reason, None));
        }
        let read = framed.rows(columns, &names);
        let message = framed.planned(&read);
        let (plan, sizes) = match self.plan(&message).await? {
            Ok(planned) => planned,
            Err(unread) => return Ok(refused(explained(unread, &message, columns), None)),
        };
        let rows = Some(sizes.largest());
        Ok(match judge(&plan, &sizes) {
            Ok(cost) => (
                Tried { number, outcome: Ok(cost), size: rows, read: None, at: None },
                Some(PartReading {
                    part: query.part,
                    sql: framed.reading(&read),
                    oids: framed.tables.clone(),
                }),
            ),
            Err(reason) => refused(reason.into(), rows),
        })
    }

    /// The column names of a query, after it was parsed and found to name only what it may.
    async fn names(&self, framed: &Framed) -> QueryAnswer<Vec<String>> {
        let name = statement_name();
        let message = framed.understood(&name);
        let said = asked(self.client, self.scope, &message).await?;
        if said.is_err() {
            // A prepared statement survives a failed transaction.
            let deallocate = format!("DEALLOCATE {name}");
            let _ = self.scope.alone(self.client, self.client.batch_execute(&deallocate)).await;
        }
        let place = |unread: Rejection| {
            let position = unread.position.and_then(|at| framed.origin(&message, at));
            Rejection { position, ..unread }
        };
        Ok(said.map(|said| said.columns).map_err(place))
    }

    async fn plan(&self, text: &str) -> QueryAnswer<(String, Sizes)> {
        Ok(asked(self.client, self.scope, text).await?.and_then(|said| {
            let sizes = said.values.first().and_then(|text| Sizes::parse(text));
            let plan = said.values.last().filter(|_| said.values.len() == 2);
            let unread = || Rejection { reason: "its plan cannot be read".into(), position: None };
            plan.cloned().zip(sizes).ok_or_else(unread)
        }))
    }

    /// The version of the system, from the first version in the adapter that fits.
    async fn version(&self) -> Result<Option<Text>, SectionError> {
        let versions = &self.found.adapter.versions;
        let Some(version) = versions.iter().find(|version| self.found.has(&version.needs)) else {
            return Ok(None);
        };
        let Some(sql) = &version.sql else { return Ok(Some(version.text.clone())) };
        let value = self.value(sql).await?;
        Ok(value.map(|value| version.text.replace("{0}", &value).into()))
    }

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
        match TableReading::Statement(framed.reading(&read), self.scope).read(self.client, false).await {
            Ok(messages) => {
                let mut values =
                    copy::rows(&messages, 1, &mut Texts::default(), |row| Ok(Some(row.whole_text()?)))?;
                Ok(values.pop().flatten().map(|text| text.chars().take(100).collect()))
            }
            Err(Refusal::Section(error)) if error.is_fatal() => Err(error),
            Err(_) => Ok(None),
        }
    }
}

/// Why a query cannot be planned. The server does not report which column has the wrong type, so that is added.
fn explained(unread: Rejection, message: &str, columns: Columns) -> Text {
    let column = unread.position.and_then(|at| mistyped(message, at, columns));
    match column {
        Some((name, kind)) => {
            let kind = kind.sql().trim_start_matches("pg_catalog.");
            format!("its column {name} is not of type {kind}, as …::{kind} is: {}", unread.reason).into()
        }
        None => unread.reason,
    }
}

/// Whether all columns belong to the part, and no required one is missing.
fn are_known(names: &[String], columns: Columns) -> Result<(), Text> {
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
