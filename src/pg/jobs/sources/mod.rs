//! The tables of users that a poll reads: tasks with their executions, leases, the work queue, rate limits, id generators,
//! workers with the types they take, counted waits, and refusals.
//!
//! A source states the name of its table, the columns that it requires, its query, and its row (`reader.rs`). Tasks and
//! their log are pairs (`tasks.rs`); `table_kinds!` of the model lists the other sources. Each table is read by one statement
//! of a known cost (`pg::jobs::tables`). Expensive rows are read every few polls, running ones in each.

mod execution;
mod others;
mod queue;
mod reader;
mod search;
mod tasks;

use std::sync::Arc;
use std::time::{Duration, Instant};

use reader::{PollDecoding, SourceAnswer, SourceData, SourceReader, TableSource};
use tasks::Pair;
use tokio_postgres::{Client, Row};

use super::tables::Refusal;
use crate::clock;
use crate::model::id_generator::IdGenerator;
use crate::model::lease::Lease;
use crate::model::lock::{Lock, LockTag};
use crate::model::rate_limit::RateLimit;
use crate::model::refusals::Refusals;
use crate::model::snapshot::{Section, Snapshot};
use crate::model::source_tables::{CountedWaits, SourceTables, table_kinds};
use crate::model::table_rows::TaskWorker;
use crate::model::task::{Execution, Schedule, TaskSet};
use crate::model::work_queue::{Item, StateCount};
use crate::model::{Text, Timestamp};
use crate::pg::background::{Background, BackgroundResult as Searched, Renewal};
use crate::pg::decode::DecodedRow as _;
use crate::pg::decode::{Texts, copy};
use crate::pg::{Scope, SectionError};

pub use reader::TableLocations;
pub(in crate::pg) use search::Search;

#[derive(Debug)]
pub(in crate::pg) struct Sources {
    search: Search,
    readers: Readers,
    texts: Texts,
    renewal: Renewal,
    search_task: Background<Readers>,
}

impl Answers {
    pub(in crate::pg) fn fatal(&self) -> Option<&SectionError> {
        self.answers().filter_map(|answer| answer.as_ref().err()).find_map(Refusal::fatal)
    }

    pub(in crate::pg) fn counted(&self) -> impl Iterator<Item = LockTag> {
        let rows = self.contended.iter().filter_map(|answer| match answer {
            Ok(SourceData::Rows(messages)) => {
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
    pub(in crate::pg) async fn open(
        client: &Client,
        search: Search,
        (found, began): (Result<Vec<Row>, tokio_postgres::Error>, Instant),
        texts: Texts,
    ) -> Self {
        let readers = match found {
            Ok(rows) => Readers::prepare(client, search.scope, &search.all(&rows)).await,
            // An invalid name makes the search itself fail.
            Err(error) if error.as_db_error().is_some() => search_tables(client, &search).await,
            Err(error) => Err(error.into()),
        };
        let mut renewal = Renewal::default();
        renewal.begin();
        let took = clock::monotonic().duration_since(began);
        let result = readers.map_err(|error| error.text());
        let readers = renewal.end(Searched { result, took }).unwrap_or_default();
        Self { search, readers, texts, renewal, search_task: Background::default() }
    }

    pub(in crate::pg) fn is_searching(&self) -> bool {
        self.search_task.is_running()
    }

    pub(in crate::pg) fn reads(&self) -> bool {
        !self.readers.is_empty()
    }

    /// Searches again when due, and waits for the answer for at most `timeout`; a later answer counts from the next poll on.
    pub(in crate::pg) async fn search_again(&mut self, client: &Arc<Client>, timeout: Duration) {
        if !self.search_task.is_begun() && self.renewal.is_due() {
            self.renewal.begin();
            let (client, search) = (Arc::clone(client), self.search.clone());
            self.search_task.begin(async move { search_tables(&client, &search).await });
        }
        let searched = self.search_task.take(timeout).await;
        if let Some(readers) = searched.and_then(|searched| self.renewal.end(searched)) {
            self.readers = readers;
        }
    }

    pub(in crate::pg) fn detection(&mut self, taken_at: Timestamp, before: Option<&Snapshot>) -> Section<()> {
        self.renewal.at(taken_at, before.map(|before| &before.detection.tables))
    }

    /// Sends the statements, and waits for their answers. A table that was locked exclusively in `before` is skipped: the
    /// statement would only wait.
    pub(in crate::pg) async fn read(&self, client: &Client, before: Option<&Snapshot>) -> Answers {
        self.readers.read(client, before).await
    }

    /// The rows of a snapshot from the answers; what was not read is taken from the previous snapshot. `locks` are those of
    /// the same snapshot and show the blocking session.
    pub(in crate::pg) fn sections(
        &mut self,
        found: Answers,
        before: Option<&Snapshot>,
        locks: &Section<Lock>,
        taken_at: Timestamp,
    ) -> (Arc<Vec<TaskSet>>, Arc<SourceTables>) {
        if let (Some(reason), Some(before)) = (self.renewal.unknown(), before) {
            return aged(before, reason);
        }
        let mut decoding = PollDecoding { texts: &mut self.texts, has_changed: false, locks, taken_at };
        let sections = self.readers.sections(found, &mut decoding, before);
        if decoding.has_changed {
            self.renewal.doubt();
        }
        sections
    }
}

async fn search_tables(client: &Client, search: &Search) -> Result<Readers, SectionError> {
    Readers::prepare(client, search.scope, &search.found(client).await?).await
}

/// Sources with their own field in [`SourceTables`], and the code for all of them; the pairs of task tables come first.
macro_rules! sources {
    ($($(#[$_doc:meta])* $_tag:literal $place:ident: $row:ident in $_columns:ident = $_section:literal,)*) => {
        #[derive(Debug, Default)]
        struct Readers {
            tasks: Vec<Pair>,
            $($place: Vec<SourceReader<$row>>,)*
        }

        #[derive(Debug, Default)]
        pub(in crate::pg) struct Answers {
            tasks: Vec<tasks::PairAnswer>,
            $($place: Vec<SourceAnswer>,)*
        }

        /// The usual table names, without duplicates.
        pub(in crate::pg) fn names() -> Vec<&'static str> {
            let mut names = vec![Schedule::TABLE, Execution::TABLE, $(<$row>::TABLE,)*];
            names.dedup();
            names
        }

        impl Readers {
            async fn prepare(
                client: &Client,
                scope: Scope,
                found: &search::FoundTables,
            ) -> Result<Self, SectionError> {
                Ok(Self {
                    tasks: tasks::prepared(client, scope, found).await?,
                    $($place: found.readers(client, scope).await?,)*
                })
            }

            fn is_empty(&self) -> bool {
                self.tasks.is_empty() $(&& self.$place.is_empty())*
            }

            async fn read(&self, client: &Client, before: Option<&Snapshot>) -> Answers {
                let (old, locks) = (before.map(|before| &*before.sources), before.map(|before| &before.locks));
                let (tasks, $($place),*) = tokio::join!(
                    biased;
                    tasks::read(client, &self.tasks, before),
                    $(reader::read(client, &self.$place, old.map(|old| &*old.$place), locks)),*
                );
                Answers { tasks, $($place),* }
            }

            fn sections(
                &mut self,
                found: Answers,
                decoding: &mut PollDecoding<'_>,
                before: Option<&Snapshot>,
            ) -> (Arc<Vec<TaskSet>>, Arc<SourceTables>) {
                let old = before.map(|before| &*before.sources);
                let sets = tasks::sets(&mut self.tasks, decoding, found.tasks, before);
                let systems = SourceTables {
                    $($place: decoding.tables(&mut self.$place, found.$place, old.map(|old| &*old.$place)),)*
                    ..SourceTables::default()
                };
                (Arc::new(sets), Arc::new(systems))
            }
        }

        impl Answers {
            fn answers(&self) -> impl Iterator<Item = &SourceAnswer> {
                let tasks = self.tasks.iter().flat_map(|(schedules, log)| [schedules].into_iter().chain(log));
                tasks$(.chain(&self.$place))*
            }
        }

        /// The content of an earlier snapshot, if it is not known whether the tables still exist.
        fn aged(before: &Snapshot, reason: &Text) -> (Arc<Vec<TaskSet>>, Arc<SourceTables>) {
            let (sets, old) = (&before.task_sets, &before.sources);
            let sets = sets.iter().map(|set| tasks::aged(set, reason)).collect();
            let systems = SourceTables {
                $($place: old.$place.iter().map(|table| table.stale(reason.clone())).collect(),)*
                ..SourceTables::default()
            };
            (Arc::new(sets), Arc::new(systems))
        }
    };
}

table_kinds!(sources);
