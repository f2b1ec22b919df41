//! The tables of the other lock systems: leases, the work queue, rate limits and id generators; workers and what they take, and waits that were counted.
//!
//! They are found and read as `pg::tables` says, each table by one statement of a known cost.

mod contended;
mod generator;
mod lease;
mod limit;
mod look;
mod queue;
mod reader;
mod worker;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::{join3, join5};
use tokio::task::JoinHandle;
use tokio_postgres::{Client, Row};

use super::decode::texts::Texts;
use super::section_error::SectionError;
use super::tables::{RENEW, REST, Search, Table};
use crate::clock;
use crate::model::counted_waits::CountedWaits;
use crate::model::id_generator::IdGenerator;
use crate::model::lease::Lease;
use crate::model::lock::{Lock, LockTag};
use crate::model::rate_limit::RateLimit;
use crate::model::snapshot::{Section, Snapshot};
use crate::model::systems::{self, TableRows};
use crate::model::task::KeyRule;
use crate::model::task_worker::TaskWorker;
use crate::model::work_queue::{Item, StateCount};
use crate::model::{Text, Timestamp};
use reader::{Answer, Reader, Turn};

/// Where the config says that the tables are, as in SQL: `jobs.distlock`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// `distlock`.
    pub leases: Option<String>,
    /// `task_queue`.
    pub queue: Option<String>,
    /// `rate_limit`.
    pub limits: Option<String>,
    /// `id_generator`.
    pub generators: Option<String>,
    /// What is locked for an item of the queue.
    pub key_rule: KeyRule,
}

impl Places {
    /// In the order in which they are looked for.
    pub(super) fn list(&self) -> Vec<Option<String>> {
        [&self.leases, &self.queue, &self.limits, &self.generators].map(Clone::clone).to_vec()
    }
}

/// Their usual names, in the same order, and then those that the config does not name.
pub(super) const NAMES: [&str; 6] =
    ["distlock", "task_queue", "rate_limit", "id_generator", "locktop_workers", "contended_locks"];

/// How to read each table there is.
#[derive(Debug, Default)]
struct Readers {
    leases: Vec<Reader<Lease>>,
    counts: Vec<Reader<StateCount>>,
    items: Vec<Reader<Item>>,
    limits: Vec<Reader<RateLimit>>,
    generators: Vec<Reader<IdGenerator>>,
    workers: Vec<Reader<TaskWorker>>,
    contended: Vec<Reader<CountedWaits>>,
}

/// The tables of a session.
#[derive(Debug)]
pub(super) struct Systems {
    search: look::Look,
    readers: Readers,
    texts: Texts,
    looked: Instant,
    /// Why nobody knows yet which tables there are.
    unknown: Option<Text>,
    failed: bool,
    pending: Option<JoinHandle<Result<Readers, SectionError>>>,
}

/// What the tables brought, in the order of the readers.
#[derive(Debug, Default)]
pub(super) struct Found {
    leases: Vec<Answer>,
    counts: Vec<Answer>,
    items: Vec<Answer>,
    limits: Vec<Answer>,
    generators: Vec<Answer>,
    workers: Vec<Answer>,
    contended: Vec<Answer>,
}

impl Found {
    /// The error of the connection, where it is not only a statement that failed.
    pub(super) fn fatal(&self) -> Option<&SectionError> {
        let Self { leases, counts, items, limits, generators, workers, contended } = self;
        let all = [leases, counts, items, limits, generators, workers, contended].into_iter().flatten();
        all.filter_map(|answer| answer.as_ref().err()).find_map(super::tables::Refusal::fatal)
    }

    /// The locks whose waits were counted, as far as they were read this time.
    pub(super) fn counted(&self) -> impl Iterator<Item = LockTag> {
        let read = self.contended.iter().filter_map(|answer| answer.as_ref().ok()?.as_deref());
        let rows = read.filter_map(|messages| {
            reader::decoded(
                messages,
                <CountedWaits as reader::Rows>::COLUMNS,
                &mut Texts::default(),
                reader::Rows::read,
            )
            .ok()
        });
        rows.flatten().map(|row: CountedWaits| row.tag)
    }
}

impl Systems {
    /// With what the first look found. When that failed, the next one finds it.
    pub(super) async fn open(
        client: &Client,
        places: Places,
        search: Search,
        found: Result<Vec<Row>, tokio_postgres::Error>,
    ) -> Self {
        let key_rule = places.key_rule.clone();
        let search = look::Look { search, key_rule: key_rule.clone() };
        let readers = match found {
            Ok(rows) => search.prepared(client, &Table::all(&rows, &key_rule), &[]).await,
            // A name that is no name fails the look itself.
            Err(error) if error.as_db_error().is_some() => search.run(client).await,
            Err(error) => Err(error.into()),
        };
        let unknown = readers.as_ref().err().map(|error| error.to_string().into());
        Self {
            search,
            readers: readers.unwrap_or_default(),
            texts: Texts::default(),
            looked: clock::monotonic(),
            failed: unknown.is_some(),
            unknown,
            pending: None,
        }
    }

    /// Whether somebody looks for tables just now.
    pub(super) fn is_looking(&self) -> bool {
        self.pending.as_ref().is_some_and(|pending| !pending.is_finished())
    }

    /// Whether there is anything to be read.
    pub(super) fn reads(&self) -> bool {
        let Readers { leases, counts, items, limits, generators, workers, contended } = &self.readers;
        !(leases.is_empty()
            && counts.is_empty()
            && items.is_empty()
            && limits.is_empty()
            && generators.is_empty()
            && workers.is_empty()
            && contended.is_empty())
    }

    /// With the texts of the own database.
    pub(super) fn with(mut self, texts: Texts) -> Self {
        self.texts = texts;
        self
    }

    /// Looks again when it is time, and waits for the answer for at most `patience`; later ones count from the next
    /// poll on.
    pub(super) async fn look_again(&mut self, client: &Arc<Client>, patience: Duration) {
        let age = clock::monotonic().duration_since(self.looked);
        if self.pending.is_none() && (age > RENEW || (self.failed && age > REST)) {
            let search = self.search.clone();
            self.looked = clock::monotonic();
            self.failed = false;
            let client = Arc::clone(client);
            self.pending = Some(tokio::spawn(async move { search.run(&client).await }));
        }
        let Some(pending) = &mut self.pending else { return };
        let Ok(answer) = tokio::time::timeout(patience, pending).await else { return };
        self.pending = None;
        match answer {
            Ok(Ok(readers)) => (self.readers, self.unknown) = (readers, None),
            _ => self.failed = true,
        }
    }

    /// Sends the statements, and waits for their answers. A table that was locked exclusively in `before` is not
    /// asked for: the statement would only wait.
    pub(super) async fn read(&self, client: &Client, before: Option<&Snapshot>) -> Found {
        let systems = before.map(|before| &*before.systems);
        let locks = before.map(|before| &before.locks);
        let readers = &self.readers;
        let of_locks = join5(
            reader::read(client, &readers.leases, systems.map(|it| &*it.leases), locks),
            reader::read(client, &readers.counts, systems.map(|it| &*it.counts), locks),
            reader::read(client, &readers.items, systems.map(|it| &*it.items), locks),
            reader::read(client, &readers.limits, systems.map(|it| &*it.limits), locks),
            reader::read(client, &readers.generators, systems.map(|it| &*it.generators), locks),
        );
        let ((leases, counts, items, limits, generators), workers, contended) = join3(
            of_locks,
            reader::read(client, &readers.workers, systems.map(|it| &*it.workers), locks),
            reader::read(client, &readers.contended, systems.map(|it| &*it.contended), locks),
        )
        .await;
        Found { leases, counts, items, limits, generators, workers, contended }
    }

    /// The rows of a snapshot, from what was found; what was not read comes from the snapshot before. `locks` are those of
    /// the same snapshot and say who is in the way.
    pub(super) fn sections(
        &mut self,
        found: Found,
        before: Option<&Snapshot>,
        locks: &Section<Lock>,
        taken_at: Timestamp,
    ) -> Arc<systems::Systems> {
        let old = before.map(|before| &*before.systems);
        if let (Some(reason), Some(old)) = (&self.unknown, old) {
            return Arc::new(aged(old, reason));
        }
        let Self { readers, texts, failed, .. } = self;
        let mut turn = Turn { texts, failed, locks, taken_at };
        Arc::new(systems::Systems {
            leases: turn.tables(&mut readers.leases, found.leases, old.map(|old| &*old.leases)),
            counts: turn.tables(&mut readers.counts, found.counts, old.map(|old| &*old.counts)),
            items: turn.tables(&mut readers.items, found.items, old.map(|old| &*old.items)),
            limits: turn.tables(&mut readers.limits, found.limits, old.map(|old| &*old.limits)),
            generators: turn.tables(
                &mut readers.generators,
                found.generators,
                old.map(|old| &*old.generators),
            ),
            workers: turn.tables(&mut readers.workers, found.workers, old.map(|old| &*old.workers)),
            contended: turn.tables(&mut readers.contended, found.contended, old.map(|old| &*old.contended)),
            ..systems::Systems::default()
        })
    }
}

impl Drop for Systems {
    fn drop(&mut self) {
        if let Some(pending) = &self.pending {
            pending.abort();
        }
    }
}

/// What an earlier snapshot had, when nobody knows whether the tables are still there.
fn aged(old: &systems::Systems, reason: &Text) -> systems::Systems {
    systems::Systems {
        leases: all_aged(&old.leases, reason),
        counts: all_aged(&old.counts, reason),
        items: all_aged(&old.items, reason),
        limits: all_aged(&old.limits, reason),
        generators: all_aged(&old.generators, reason),
        workers: all_aged(&old.workers, reason),
        contended: all_aged(&old.contended, reason),
        ..systems::Systems::default()
    }
}

fn all_aged<T>(tables: &[TableRows<T>], reason: &Text) -> Vec<TableRows<T>> {
    tables.iter().map(|table| table.stale(reason.clone())).collect()
}
