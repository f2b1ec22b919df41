//! The task tables: where they are, and reading them within a poll.
//!
//! They are found and read as `pg::tables` says. What runs is read in every poll; where there are thousands of
//! schedules, they and the executions that are over are read in every few.

mod find;
mod read;
mod rows;
mod statements;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use tokio_postgres::{Client, Row};

use crate::clock;
use crate::model::Text;
use crate::model::task::{KeyRule, TaskTables};
use crate::pg::decode::texts::Texts;
use crate::pg::scope::Scope;
use crate::pg::section_error::SectionError;
use crate::pg::tables::{Plan, RENEW, REST, Reading, Search};
use pg_connect::message;

pub(super) use read::{Found, sections};

/// Where the config says that the tables are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// `scheduled_tasks`, as in SQL: `jobs.scheduled_tasks`.
    pub schedules: Option<String>,
    /// `task_execution_log`.
    pub executions: Option<String>,
    /// What is locked for a task.
    pub key_rule: KeyRule,
}

impl Places {
    /// Whether the config names a table.
    pub(super) fn is_named(&self) -> bool {
        self.schedules.is_some() || self.executions.is_some()
    }

    /// The same, in the order in which they are looked for.
    pub(super) fn list(&self) -> Vec<Option<String>> {
        vec![self.schedules.clone(), self.executions.clone()]
    }
}

/// Their usual names.
pub(super) const NAMES: [&str; 2] = ["scheduled_tasks", "task_execution_log"];

/// A pair of tables, and how to read each; or why it cannot be read.
#[derive(Debug, Clone)]
pub(super) struct Reader {
    tables: Arc<TaskTables>,
    schedules: Result<Reading, Text>,
    executions: Option<Result<Reading, Text>>,
    /// The running executions alone. Without it older ones may be missing.
    running: Option<Reading>,
    /// Polls until the schedules are read again.
    schedules_in: u32,
    /// Polls until more than the running executions is read again.
    executions_in: u32,
}

impl Reader {
    /// Whether all rows of the log are read whenever it is.
    fn has_all(&self) -> bool {
        matches!(&self.executions, Some(Ok(reading)) if reading.is_copy())
    }
}

/// The task tables of a session.
#[derive(Debug)]
pub(super) struct Tasks {
    places: Places,
    search: Search,
    readers: Vec<Reader>,
    texts: Texts,
    looked: Instant,
    /// Why nobody knows yet which tables there are.
    unknown: Option<Text>,
    failed: bool,
    pending: Option<JoinHandle<Result<Vec<Reader>, SectionError>>>,
}

impl Tasks {
    /// With what the first look found. When that failed, the next one finds it.
    pub(super) async fn open(
        client: &Client,
        places: Places,
        search: Search,
        found: Result<Vec<Row>, tokio_postgres::Error>,
    ) -> Self {
        let readers = match found {
            Ok(rows) => prepared(client, find::pairs(&rows, &places), search.scope).await,
            // A name that is no name fails the look itself.
            Err(error) if places.is_named() && error.as_db_error().is_some() => {
                prepared(client, vec![find::refused(&places, &message(&error))], search.scope).await
            }
            Err(error) => Err(error.into()),
        };
        let unknown = readers.as_ref().err().map(|error| error.to_string().into());
        Self {
            places,
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
        !self.readers.is_empty()
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
            self.pending = Some(tokio::spawn(look(Arc::clone(client), search, self.places.clone())));
        }
        let Some(pending) = &mut self.pending else { return };
        let Ok(answer) = tokio::time::timeout(patience, pending).await else { return };
        self.pending = None;
        match answer {
            Ok(Ok(readers)) => (self.readers, self.unknown) = (readers, None),
            _ => self.failed = true,
        }
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        if let Some(pending) = &self.pending {
            pending.abort();
        }
    }
}

async fn look(client: Arc<Client>, search: Search, places: Places) -> Result<Vec<Reader>, SectionError> {
    let rows = search.rows(&client).await?;
    prepared(&client, find::pairs(&rows, &places), search.scope).await
}

/// Makes ready how each pair is read.
async fn prepared(
    client: &Client,
    pairs: Vec<statements::Pair>,
    scope: Scope,
) -> Result<Vec<Reader>, SectionError> {
    let prepare = async |plan: Result<Plan, Text>| -> Result<Result<Reading, Text>, SectionError> {
        match plan {
            Ok(plan) => plan.prepare(client, scope).await,
            Err(reason) => Ok(Err(reason)),
        }
    };
    let mut readers = Vec::new();
    for pair in pairs {
        let statements::Pair { tables, schedules, executions, running } = pair;
        let schedules = prepare(schedules).await?;
        let executions = match executions {
            Some(text) => Some(prepare(text).await?),
            None => None,
        };
        let running = match running {
            Some(plan) => plan.prepare(client, scope).await?.ok(),
            None => None,
        };
        let tables = Arc::new(tables);
        readers.push(Reader { tables, schedules, executions, running, schedules_in: 0, executions_in: 0 });
    }
    Ok(readers)
}
