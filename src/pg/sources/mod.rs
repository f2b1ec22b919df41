//! The tables of users that a poll reads: tasks with their executions, leases, the work queue, rate limits and id generators; workers and what
//! they take, waits that were counted, and refusals.
//!
//! A source states what its table is called, what it has to have, the query, and a row of it (`reader.rs`); `list.rs` has them all.
//! Each table is read by one statement of a known cost, as `pg::tables` says. What is dear is read in every few polls, what runs in each.

mod execution;
mod list;
mod others;
mod queue;
mod reader;
mod search;
mod tasks;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_postgres::{Client, Row};

use super::background::{Background, Brought as Searched, Renewal};
use super::decode::copy;
use super::decode::rows::DecodedRow as _;
use super::decode::texts::Texts;
use super::scope::SectionError;
use super::tables::Refusal;
use crate::clock;
use crate::model::Timestamp;
use crate::model::lock::{Lock, LockTag};
use crate::model::snapshot::{Section, Snapshot};
use crate::model::systems::{CountedWaits, Systems};
use crate::model::task::TaskSet;
use list::Readers;
use reader::{Brought, Source as _, Turn};

pub(super) use list::{Answers, names};
pub use reader::Places;
pub(super) use search::Search;

#[derive(Debug)]
pub(super) struct Sources {
    search: Search,
    readers: Readers,
    texts: Texts,
    renewal: Renewal,
    looking: Background<Readers>,
}

impl Answers {
    pub(super) fn fatal(&self) -> Option<&SectionError> {
        self.answers().filter_map(|answer| answer.as_ref().err()).find_map(Refusal::fatal)
    }

    pub(super) fn counted(&self) -> impl Iterator<Item = LockTag> {
        let rows = self.contended.iter().filter_map(|answer| match answer {
            Ok(Brought::Rows(messages)) => {
                let (columns, mut texts) = (CountedWaits::WIDTH, Texts::default());
                copy::rows(messages, columns, &mut texts, CountedWaits::read).ok()
            }
            _ => None,
        });
        rows.flatten().map(|row| row.tag)
    }
}

impl Sources {
    /// Starts with the result of the first search, and with texts of the connected database. If that search failed, the next
    /// one finds the tables.
    pub(super) async fn open(
        client: &Client,
        search: Search,
        (found, began): (Result<Vec<Row>, tokio_postgres::Error>, Instant),
        texts: Texts,
    ) -> Self {
        let readers = match found {
            Ok(rows) => Readers::prepare(client, search.scope, &search.all(&rows)).await,
            // An invalid name makes the search itself fail.
            Err(error) if error.as_db_error().is_some() => look(client, &search).await,
            Err(error) => Err(error.into()),
        };
        let mut renewal = Renewal::default();
        renewal.begin();
        let took = clock::monotonic().duration_since(began);
        let result = readers.map_err(|error| error.text());
        let readers = renewal.end(Searched { result, took }).unwrap_or_default();
        Self { search, readers, texts, renewal, looking: Background::default() }
    }

    pub(super) fn is_looking(&self) -> bool {
        self.looking.is_running()
    }

    pub(super) fn reads(&self) -> bool {
        !self.readers.is_empty()
    }

    /// Searches again when due, and waits for the answer for at most `timeout`; a later answer counts from the next poll on.
    pub(super) async fn look_again(&mut self, client: &Arc<Client>, timeout: Duration) {
        if !self.looking.is_begun() && self.renewal.is_due() {
            self.renewal.begin();
            let (client, search) = (Arc::clone(client), self.search.clone());
            self.looking.begin(async move { look(&client, &search).await });
        }
        let searched = self.looking.take(timeout).await;
        if let Some(readers) = searched.and_then(|searched| self.renewal.end(searched)) {
            self.readers = readers;
        }
    }

    pub(super) fn detection(&mut self, taken_at: Timestamp, before: Option<&Snapshot>) -> Section<()> {
        self.renewal.at(taken_at, before.map(|before| &before.detection.tables))
    }

    /// Sends the statements, and waits for their answers. A table that was locked exclusively in `before` is skipped: the
    /// statement would only wait.
    pub(super) async fn read(&self, client: &Client, before: Option<&Snapshot>) -> Answers {
        self.readers.read(client, before).await
    }

    /// The rows of a snapshot from the answers; what was not read is taken from the previous snapshot. `locks` are those of
    /// the same snapshot and show the blocking session.
    pub(super) fn sections(
        &mut self,
        found: Answers,
        before: Option<&Snapshot>,
        locks: &Section<Lock>,
        taken_at: Timestamp,
    ) -> (Arc<Vec<TaskSet>>, Arc<Systems>) {
        if let (Some(reason), Some(before)) = (self.renewal.unknown(), before) {
            return list::aged(before, reason);
        }
        let mut turn = Turn { texts: &mut self.texts, has_changed: false, locks, taken_at };
        let sections = self.readers.sections(found, &mut turn, before);
        if turn.has_changed {
            self.renewal.doubt();
        }
        sections
    }
}

async fn look(client: &Client, search: &Search) -> Result<Readers, SectionError> {
    Readers::prepare(client, search.scope, &search.found(client).await?).await
}
