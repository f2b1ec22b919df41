//! The work queue: items that each go to one worker at a time.
//!
//! ```no_run
//! use locktop_tasks::work_queue::{AttemptEnd, WorkQueue};
//!
//! # async fn example(client: &tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
//! let queue = WorkQueue::default();
//! queue.add(client, "mail", &["a@example.org"]).await?;
//! while let Some(item) = queue.claim(client, "worker-1").await? {
//!     let to: Vec<String> = item.payload()?;
//!     println!("{} gets a mail", to.join(", "));
//!     if !queue.finish(client, &item, &AttemptEnd::Completed).await? {
//!         println!("item {} was not ours any more", item.id);
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Each call must be a transaction of its own: claim, commit, work, end. An item belongs to the worker, the session and
//! the attempt that claimed it. After its session has ended (30 s: the setting `locktop.orphan_grace`), any client may requeue it
//! ([`WorkQueue::requeue_lost`]), up to its last attempt, after which it is set aside as failed; a later end does not
//! count. The end of a session is not the end of its process: a worker must stop its work when its connection ends, and a
//! write that must happen only once belongs in the transaction that ends the item.
//!
//! A session is a server session: through a pooler in transaction mode the end of an item may come from another session
//! than its claim, and would not count. [`pooler`](locktop_locks::pooler) detects one.
//!
//! A failed attempt is tried again after a pause ([`AttemptEnd::Again`]), and an item may be added for later, with `not_before`.
//! An item that takes longer than its `timeout` is shown as slow; its worker must end it.
//!
//! An idle worker listens on [`CHANNEL`], sleeps until `next_item_due_at()`, and calls [`WorkQueue::requeue_lost`] now
//! and then. A claim without an answer may have been executed: [`WorkQueue::heartbeat`] returns what the session has.
//!
//! In SQL: `consume_task()`, `claim_queue_items`, `finish_queue_item`, `heartbeat_queue_items`, `requeue_queue_item`,
//! `requeue_lost_items`, `retry_queue_item`, `set_aside_queue_item`, and the views `queue_depth`, `queue_workers` and
//! `running_queue_items`.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_postgres::types::Type;
use tokio_postgres::{GenericClient, Row};

use locktop_base::Timestamp;
use locktop_locks::Error;
use locktop_locks::SchemaName;
use locktop_locks::call::{Parameter, column, row, rows};

/// The notification channel for new items to claim; the payload is the schema's name.
pub const CHANNEL: &str = "locktop_queue";

/// An item that this session has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// `task_queue.id`, the primary key.
    pub id: i64,
    /// `task_queue.task_name`: the kind of work; `None` for NULL.
    pub name: Option<String>,
    /// `task_queue.payload`: JSON, as the server writes it; `None` for NULL.
    pub json: Option<String>,
    /// The name of the worker that claimed it (`worker_id`).
    pub worker: String,
    /// Which attempt this is, from 1.
    pub attempt: i32,
    /// Attempts that it has altogether; if the last one fails, it is set aside.
    pub max_attempts: i32,
    /// When this attempt began; `None` if the server has no time for it.
    pub started_at: Option<Timestamp>,
}

impl Item {
    /// The payload; a missing one is read as null.
    ///
    /// # Errors
    /// If the payload has another type.
    pub fn payload<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.json.as_deref().unwrap_or("null"))
    }
}

/// How an attempt at an item ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptEnd {
    /// The work is done: the item's status becomes `completed`.
    Completed,
    /// The work failed, and is tried again after a pause, unless this was the last attempt. The pause is the item's
    /// `retry_delay`, ten seconds unless it was added with another, and doubles with each further failure.
    Again(String),
    /// The work failed, and always will.
    Failed(String),
}

/// The action for an item that no session has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settle {
    /// An item whose session has ended becomes pending at once, without waiting for the grace: for a caller that knows that
    /// its worker has stopped. After its last attempt it is set aside.
    Requeue,
    /// A failed item becomes pending again, with one more attempt if it had used them all.
    Retry,
    /// An item that is pending, or whose session has ended, becomes failed, so that no worker claims it.
    SetAside,
}

/// The result for an item that was to be taken from an ended session, or that no session had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// `task_queue.id` of the item.
    pub id: i64,
    /// The name of the worker that had it; `None` if no worker had.
    pub worker: Option<String>,
    /// Which attempt was lost; `None` if the item was in none.
    pub attempt: Option<i32>,
    /// The action: `requeued`, `gave_up` or `set_aside`; or why there was none: `not_found`, `wrong_state`, `locked`, `held`,
    /// `unknown`.
    pub outcome: String,
    /// The reason, in a sentence of the server: its state, which session has it, what comes next.
    pub detail: String,
}

/// The number of items in each state (the view `queue_depth`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Depth {
    /// Items that no session has, including those that are not due yet.
    pub pending: i64,
    /// Items that a session has, or had when it ended (`processing`).
    pub processing: i64,
    /// Items that completed and are still in the table.
    pub completed: i64,
    /// Items that failed for good or were set aside.
    pub failed: i64,
    /// Since when the oldest due item without a session waits; `None` if there is no such item.
    pub oldest_pending_at: Option<Timestamp>,
    /// Pending items that are not due yet.
    pub resting: i64,
}

/// The work queue of a schema.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkQueue {
    /// The schema that the table is in.
    pub schema: SchemaName,
}

impl WorkQueue {
    /// Adds an item and returns its id. Idle workers are notified when the transaction commits.
    ///
    /// # Errors
    /// If the payload cannot be written as JSON, the server refuses, or the connection fails.
    pub async fn add<C: GenericClient + Sync, P: Serialize + Sync>(
        &self,
        client: &C,
        name: &str,
        payload: &P,
    ) -> Result<i64, Error> {
        const WHAT: &str = "task_queue";
        let payload = serde_json::to_string(payload)
            .map_err(|error| Error::Request(format!("no payload: {error}").into()))?;
        let sql =
            "INSERT INTO @schema@.task_queue (task_name, payload) VALUES ($1, $2::text::jsonb) RETURNING id";
        let row =
            row(client, &self.schema, WHAT, sql, &[(&name, Type::VARCHAR), (&payload, Type::TEXT)]).await?;
        column(WHAT, &row, 0)
    }

    /// Takes for this session the pending item that has been due the longest, in the name of a worker of at most 100
    /// characters.
    ///
    /// # Errors
    /// If the server refuses, or the connection fails.
    pub async fn claim<C: GenericClient + Sync>(
        &self,
        client: &C,
        worker: &str,
    ) -> Result<Option<Item>, Error> {
        Ok(self.claim_many(client, worker, 1).await?.into_iter().next())
    }

    /// Takes several items, at most the given number. They are all lost together with the session.
    ///
    /// # Errors
    /// As for [`WorkQueue::claim`].
    pub async fn claim_many<C: GenericClient + Sync>(
        &self,
        client: &C,
        worker: &str,
        at_most: i32,
    ) -> Result<Vec<Item>, Error> {
        let sql = "SELECT task_id, task_name, payload::text, attempt, max_attempts, started_at
             FROM @schema@.claim_queue_items($1, $2)";
        let parameters: &[Parameter<'_>] = &[(&worker, Type::TEXT), (&at_most, Type::INT4)];
        let rows = rows(client, &self.schema, CLAIM, sql, parameters).await?;
        rows.iter().map(|row| item(row, worker)).collect()
    }

    /// Ends an item. False if it is no longer this session's, or no longer in this attempt: nothing was changed then.
    ///
    /// # Errors
    /// If the server refuses, or the connection fails; then it is not known whether the end counted.
    pub async fn finish<C: GenericClient + Sync>(
        &self,
        client: &C,
        item: &Item,
        end: &AttemptEnd,
    ) -> Result<bool, Error> {
        const WHAT: &str = "finish_queue_item";
        let (status, error) = match end {
            AttemptEnd::Completed => ("completed", None),
            AttemptEnd::Again(error) => ("pending", Some(error)),
            AttemptEnd::Failed(error) => ("failed", Some(error)),
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

    /// A sign of life: returns the id and attempt of each item that this worker still has in this session. The worker must
    /// stop the others.
    ///
    /// # Errors
    /// If the server refuses, or the connection fails.
    pub async fn heartbeat<C: GenericClient + Sync>(
        &self,
        client: &C,
        worker: &str,
    ) -> Result<Vec<(i64, i32)>, Error> {
        const WHAT: &str = "heartbeat_queue_items";
        let sql = "SELECT task_id, attempt FROM @schema@.heartbeat_queue_items($1)";
        let rows = rows(client, &self.schema, WHAT, sql, &[(&worker, Type::TEXT)]).await?;
        rows.iter().map(|row| Ok((column(WHAT, row, 0)?, column(WHAT, row, 1)?))).collect()
    }

    /// Makes lost items pending again, at most the given number, or sets them aside after their last attempt. An item is lost
    /// if its session ended so long ago that its worker has stopped. Each action is recorded in `locktop_audit`, in the name
    /// of `actor`.
    ///
    /// # Errors
    /// If the server refuses, or the connection fails.
    pub async fn requeue_lost<C: GenericClient + Sync>(
        &self,
        client: &C,
        actor: &str,
        at_most: i32,
    ) -> Result<Vec<Settled>, Error> {
        const WHAT: &str = "requeue_lost_items";
        let sql = format!("SELECT {SETTLED} FROM @schema@.requeue_lost_items($1, $2)");
        let parameters: &[Parameter<'_>] = &[(&actor, Type::TEXT), (&at_most, Type::INT4)];
        let rows = rows(client, &self.schema, WHAT, &sql, parameters).await?;
        rows.iter().map(|row| settled(WHAT, row)).collect()
    }

    /// Does this to one item; returns what was done, or why not. An item that a session has is left alone.
    ///
    /// # Errors
    /// If the server refuses, or the connection fails.
    pub async fn settle<C: GenericClient + Sync>(
        &self,
        client: &C,
        settle: Settle,
        id: i64,
        actor: &str,
        reason: Option<&str>,
    ) -> Result<Settled, Error> {
        let what = match settle {
            Settle::Requeue => "requeue_queue_item",
            Settle::Retry => "retry_queue_item",
            Settle::SetAside => "set_aside_queue_item",
        };
        let sql = format!("SELECT {SETTLED} FROM @schema@.{what}($1, $2, $3)");
        let parameters: &[Parameter<'_>] = &[(&id, Type::INT8), (&actor, Type::TEXT), (&reason, Type::TEXT)];
        settled(what, &row(client, &self.schema, what, &sql, parameters).await?)
    }

    /// The number of items in each state, including locked ones.
    ///
    /// # Errors
    /// If the server refuses, or the connection fails.
    pub async fn depth<C: GenericClient + Sync>(&self, client: &C) -> Result<Depth, Error> {
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

fn item(row: &Row, worker: &str) -> Result<Item, Error> {
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

fn settled(what: &'static str, row: &Row) -> Result<Settled, Error> {
    Ok(Settled {
        id: column(what, row, 0)?,
        worker: column(what, row, 1)?,
        attempt: column(what, row, 2)?,
        outcome: column(what, row, 3)?,
        detail: column(what, row, 4)?,
    })
}
