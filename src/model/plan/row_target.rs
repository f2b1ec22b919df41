//! Targets that are a row of a table: the row as it was seen, and which of its values must be unchanged.

use std::ops::Deref;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::SessionTarget;
use crate::model::table_rows::{Execution, Item, Lease, Schedule};
use crate::model::{Text, Timestamp};

/// A row of a table, as it was seen.
#[derive(Debug, Clone)]
pub struct RowTarget<R> {
    pub table: u32,
    pub source: Text,
    /// Whether the table is in locktop's own schema, whose functions change it.
    pub is_own: bool,
    pub row: R,
}

impl<R: Clone> RowTarget<R> {
    pub(super) fn new(table: u32, source: &Text, is_own: bool, row: &R) -> Self {
        Self { table, source: Arc::clone(source), is_own, row: row.clone() }
    }
}

impl<R> RowTarget<R> {
    /// Whether the table is the same, under the same name.
    fn is_in_table_of(&self, other: &Self) -> bool {
        (self.table, &self.source, self.is_own) == (other.table, &other.source, other.is_own)
    }
}

impl<R> Deref for RowTarget<R> {
    type Target = R;

    fn deref(&self) -> &R {
        &self.row
    }
}

/// The id of a row, and the values of it that must be unchanged. The record stores them under these names.
pub trait Identity {
    fn identity(&self) -> Vec<(&'static str, Value)>;
}

macro_rules! identities {
    ($($row:ident: $($field:ident),+;)+) => {$(
        impl Identity for $row {
            fn identity(&self) -> Vec<(&'static str, Value)> {
                vec![$((stringify!($field), json!(self.$field))),+]
            }
        }
    )+};
}

identities! {
    Schedule: id, name, enabled, next_run_at;
    Execution: id, task_id, worker, started_at;
    Item: id, status, attempt, worker;
    Lease: id, owner, renewed_at, term, token;
}

impl<R: Identity> PartialEq for RowTarget<R> {
    fn eq(&self, other: &Self) -> bool {
        self.is_in_table_of(other) && self.identity() == other.identity()
    }
}

impl<R: Identity> Serialize for RowTarget<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let table = [("table", json!(self.table)), ("source", json!(self.source))];
        serializer.collect_map(table.into_iter().chain(self.identity()))
    }
}

impl RowTarget<Lease> {
    /// Whether the same owner has it, who may have renewed it.
    pub fn has_same_owner(&self, other: &Self) -> bool {
        self.is_in_table_of(other)
            && (&self.id, &self.owner, self.token) == (&other.id, &other.owner, other.token)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PublishedTarget {
    #[serde(flatten)]
    pub execution: RowTarget<Execution>,
    /// `task_name` of its schedule; `None` if it has no schedule.
    #[serde(skip)]
    pub name: Option<Text>,
    /// The advisory lock key that its worker locks.
    #[serde(rename = "lock_key")]
    pub key: i64,
    #[serde(skip_serializing_if = "PublishedHolder::is_none")]
    pub holder: PublishedHolder,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PublishedHolder {
    /// No holder: the key must be free.
    None,
    /// The session of the execution itself, which is terminated first.
    Worker(SessionTarget),
    /// The session of another execution, which is not touched: the key must be free, or held by that session for the other
    /// execution.
    Other { pid: i32, backend_start: Timestamp, execution: i64, worker: Text },
}

impl PublishedHolder {
    fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}
