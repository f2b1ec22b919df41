//! The work queue: items that each go to one worker at a time.
//!
//! ```no_run
//! use locktop_locks::work_queue::{End, WorkQueue};
//!
//! # async fn example(client: &tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
//! let queue = WorkQueue::default();
//! queue.add(client, "mail", &["a@example.org"]).await?;
//! while let Some(item) = queue.claim(client, "worker-1").await? {
//!     let to: Vec<String> = item.payload()?;
//!     println!("{} gets a mail", to.join(", "));
//!     if !queue.finish(client, &item, &End::Completed).await? {
//!         println!("item {} was not ours any more", item.id);
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Each call is to be a transaction of its own: claim, commit, work, end. An item belongs to the worker, the session and the attempt that
//! claimed it. When its session has been gone for a while, anybody may requeue it ([`WorkQueue::requeue_lost`]), up to its last attempt, after which
//! it is set aside as failed; an end that comes later does not count. A session that is gone is not a process that no longer exists: a worker
//! whose connection ends stops its work, and what only one may do is written in the transaction that ends the item.
//!
//! A session is one of the server: through a pooler in transaction mode the end of an item may come from another one than its claim, and
//! would not count. [`pooler`](super::pooler) tells whether there is one.
//!
//! An attempt that fails is tried again after a pause ([`End::Again`]), and an item may be added for later, with `not_before`. One that
//! takes longer than its `timeout` is shown as slow; its worker is the one to end it.
//!
//! An idle worker listens on [`CHANNEL`], sleeps until `next_item_due_at()`, and calls [`WorkQueue::requeue_lost`] now and then. A claim whose answer did not arrive may have
//! been done: [`WorkQueue::heartbeat`] says what the session has.
//!
//! In SQL: `consume_task()`, `claim_queue_items`, `finish_queue_item`, `heartbeat_queue_items`, `requeue_queue_item`,
//! `requeue_lost_items`, `retry_queue_item`, `set_aside_queue_item`, and the views `queue_depth`, `queue_workers` and `running_queue_items`.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_postgres::types::Type;
use tokio_postgres::{GenericClient, Row};

use super::call::{CallError, Parameter, column, row, rows};
use crate::SchemaName;
use locktop_base::Timestamp;

/// Where there is a notification, with the schema's name, when there is something to claim.
pub const CHANNEL: &str = "locktop_queue";

/// An item that this session has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// `task_queue.id`, the primary key.
    pub id: i64,
    /// `task_queue.task_name`: the kind of work; none where it is NULL.
    pub name: Option<String>,
    /// `task_queue.payload`: JSON, as the server writes it; none where it is NULL.
    pub json: Option<String>,
    /// The name of the worker that claimed it (`worker_id`).
    pub worker: String,
    /// Which attempt this is, from 1.
    pub attempt: i32,
    /// Attempts that it has altogether; after the last one that fails it is set aside.
    pub max_attempts: i32,
    /// When this attempt began; none where the server has no time for it.
    pub started_at: Option<Timestamp>,
}

impl Item {
    /// What is to be done with it; a payload that is absent is read as null.
    ///
    /// # Errors
    /// When the payload is something else.
    pub fn payload<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.json.as_deref().unwrap_or("null"))
    }
}

/// How an attempt at an item ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The work is done: the item's status becomes `completed`.
    Completed,
    /// It did not work, and is to be tried again after a pause, unless this was the last attempt. The pause is the item's `retry_delay`,
    /// ten seconds unless it was added with another, and doubles with each further failure.
    Again(String),
    /// It did not work and never will.
    Failed(String),
}

/// What to do to an item that no session has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settle {
    /// One whose session is gone is pending again, at once and without waiting for the grace: for whoever knows that its worker has
    /// stopped. After its last attempt it is set aside.
    Requeue,
    /// One that has failed is pending again, for one attempt more if it had all of them.
    Retry,
    /// One that is pending, or whose session is gone, is failed, so that nobody claims it.
    SetAside,
}

/// What became of an item that was to be taken from a session that is gone, or from nobody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// `task_queue.id` of the item.
    pub id: i64,
    /// The name of the worker that had it; none where nobody did.
    pub worker: Option<String>,
    /// Which attempt was lost; none where the item was in none.
    pub attempt: Option<i32>,
    /// What was done: `requeued`, `gave_up` or `set_aside`; or why not: `not_found`, `wrong_state`, `locked`, `held`, `unknown`.
    pub outcome: String,
    /// Why, in a sentence of the server: the state it is in, whose session has it, what comes next.
    pub detail: String,
}

/// How many items there are in each state (the view `queue_depth`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Depth {
    /// Items that nobody has, those included that are not due yet.
    pub pending: i64,
    /// Items that a session has, or had when it ended (`processing`).
    pub processing: i64,
    /// Items that were done and are still in the table.
    pub completed: i64,
    /// Items that failed for good or were set aside.
    pub failed: i64,
    /// Since when the oldest item waits that is due and that nobody has; none when there is no such item.
    pub oldest_pending_at: Option<Timestamp>,
    /// Of the pending ones, those that are not due yet.
    pub resting: i64,
}

/// The work queue of a schema.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkQueue {
    /// The schema that the table is in.
    pub schema: SchemaName,
}

impl WorkQueue {
    /// Adds an item: its id. Idle workers hear of it when the transaction commits.
    ///
    /// # Errors
    /// When the payload cannot be written as JSON, the server refuses, or the connection fails.
    pub async fn add<C: GenericClient + Sync, P: Serialize + Sync>(
        &self,
        client: &C,
        name: &str,
        payload: &P,
    ) -> Result<i64, CallError> {
        const WHAT: &str = "task_queue";
        let payload = serde_json::to_string(payload)
            .map_err(|error| CallError::Lost { what: WHAT, reason: format!("no payload: {error}") })?;
        let sql =
            "INSERT INTO @schema@.task_queue (task_name, payload) VALUES ($1, $2::text::jsonb) RETURNING id";
        let row =
            row(client, &self.schema, WHAT, sql, &[(&name, Type::VARCHAR), (&payload, Type::TEXT)]).await?;
        column(WHAT, &row, 0)
    }

    /// Takes the item for this session that is pending and has been due for the longest, in the name of a worker of at most 100 characters.
    ///
    /// # Errors
    /// When the server refuses, or the connection fails.
    pub async fn claim<C: GenericClient + Sync>(
        &self,
        client: &C,
        worker: &str,
    ) -> Result<Option<Item>, CallError> {
        Ok(self.claim_many(client, worker, 1).await?.into_iter().next())
    }

    /// Takes at most so many. They are all lost together with the session.
    ///
    /// # Errors
    /// As for [`WorkQueue::claim`].
    pub async fn claim_many<C: GenericClient + Sync>(
        &self,
        client: &C,
        worker: &str,
        at_most: i32,
    ) -> Result<Vec<Item>, CallError> {
        let sql = "SELECT task_id, task_name, payload::text, attempt, max_attempts, started_at
             FROM @schema@.claim_queue_items($1, $2)";
        let parameters: &[Parameter<'_>] = &[(&worker, Type::TEXT), (&at_most, Type::INT4)];
        let rows = rows(client, &self.schema, CLAIM, sql, parameters).await?;
        rows.iter().map(|row| item(row, worker)).collect()
    }

    /// Ends an item. False when it is not this session's any more, or not in this attempt: nothing was changed then.
    ///
    /// # Errors
    /// When the server refuses, or the connection fails; whether the end counted is not known then.
    pub async fn finish<C: GenericClient + Sync>(
        &self,
        client: &C,
        item: &Item,
        end: &End,
    ) -> Result<bool, CallError> {
        const WHAT: &str = "finish_queue_item";
        let (status, error) = match end {
            End::Completed => ("completed", None),
            End::Again(error) => ("pending", Some(error)),
            End::Failed(error) => ("failed", Some(error)),
        };
        let sql = "SELECT @schema@.finish_queue_item($1, $2, $3, $4, $5)";
        let parameters: &[Parameter<'_>] = &[
            (&item.id, Type::INT8),
            (&item.worker, Type::TEXT),
            (&item.attempt, Type::INT4),
            (&status, Type::TEXT),
            (&error, Type::TEXT),
        ];
        let row = row(client, &self.schema, WHAT, sql, parameters).await?;
        column(WHAT, &row, 0)
    }

    /// A sign of life: the id and attempt of each item that this worker still has in this session. It stops the others.
    ///
    /// # Errors
    /// When the server refuses, or the connection fails.
    pub async fn heartbeat<C: GenericClient + Sync>(
        &self,
        client: &C,
        worker: &str,
    ) -> Result<Vec<(i64, i32)>, CallError> {
        const WHAT: &str = "heartbeat_queue_items";
        let sql = "SELECT task_id, attempt FROM @schema@.heartbeat_queue_items($1)";
        let rows = rows(client, &self.schema, WHAT, sql, &[(&worker, Type::TEXT)]).await?;
        rows.iter().map(|row| Ok((column(WHAT, row, 0)?, column(WHAT, row, 1)?))).collect()
    }

    /// Makes at most so many items pending again that are lost, or sets them aside after their last attempt: their session is gone, for
    /// so long that its worker has stopped. What was done to each is recorded in `locktop_audit`, in the name of `actor`.
    ///
    /// # Errors
    /// When the server refuses, or the connection fails.
    pub async fn requeue_lost<C: GenericClient + Sync>(
        &self,
        client: &C,
        actor: &str,
        at_most: i32,
    ) -> Result<Vec<Settled>, CallError> {
        const WHAT: &str = "requeue_lost_items";
        let sql = format!("SELECT {SETTLED} FROM @schema@.requeue_lost_items($1, $2)");
        let parameters: &[Parameter<'_>] = &[(&actor, Type::TEXT), (&at_most, Type::INT4)];
        let rows = rows(client, &self.schema, WHAT, &sql, parameters).await?;
        rows.iter().map(|row| settled(WHAT, row)).collect()
    }

    /// Does that to one item: what was done, or why not. One that a session has is left alone.
    ///
    /// # Errors
    /// When the server refuses, or the connection fails.
    pub async fn settle<C: GenericClient + Sync>(
        &self,
        client: &C,
        settle: Settle,
        id: i64,
        actor: &str,
        reason: Option<&str>,
    ) -> Result<Settled, CallError> {
        let what = match settle {
            Settle::Requeue => "requeue_queue_item",
            Settle::Retry => "retry_queue_item",
            Settle::SetAside => "set_aside_queue_item",
        };
        let sql = format!("SELECT {SETTLED} FROM @schema@.{what}($1, $2, $3)");
        let parameters: &[Parameter<'_>] = &[(&id, Type::INT8), (&actor, Type::TEXT), (&reason, Type::TEXT)];
        settled(what, &row(client, &self.schema, what, &sql, parameters).await?)
    }

    /// How many items there are in each state, those included that somebody has locked.
    ///
    /// # Errors
    /// When the server refuses, or the connection fails.
    pub async fn depth<C: GenericClient + Sync>(&self, client: &C) -> Result<Depth, CallError> {
        const WHAT: &str = "queue_depth";
        let sql = "SELECT pending, processing, completed, failed, oldest_pending_at, resting FROM @schema@.queue_depth";
        let row = row(client, &self.schema, WHAT, sql, &[]).await?;
        Ok(Depth {
            pending: column(WHAT, &row, 0)?,
            processing: column(WHAT, &row, 1)?,
            completed: column(WHAT, &row, 2)?,
            failed: column(WHAT, &row, 3)?,
            oldest_pending_at: column(WHAT, &row, 4)?,
            resting: column(WHAT, &row, 5)?,
        })
    }
}

const CLAIM: &str = "claim_queue_items";
const SETTLED: &str = "task_id, worker_id, attempt, outcome, detail";

fn item(row: &Row, worker: &str) -> Result<Item, CallError> {
    Ok(Item {
        id: column(CLAIM, row, 0)?,
        name: column(CLAIM, row, 1)?,
        json: column(CLAIM, row, 2)?,
        worker: worker.to_owned(),
        attempt: column(CLAIM, row, 3)?,
        max_attempts: column(CLAIM, row, 4)?,
        started_at: column(CLAIM, row, 5)?,
    })
}

fn settled(what: &'static str, row: &Row) -> Result<Settled, CallError> {
    Ok(Settled {
        id: column(what, row, 0)?,
        worker: column(what, row, 1)?,
        attempt: column(what, row, 2)?,
        outcome: column(what, row, 3)?,
        detail: column(what, row, 4)?,
    })
}
