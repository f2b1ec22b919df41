//! The work queue: each item goes to one worker at a time.

mod board;

#[cfg(test)]
mod tests;

pub use crate::model::job_state::JobState;
pub use board::{Board, Count, Depth, ItemRow};

use super::lock_name::LockName;
use super::namespace;
use super::systems::TableRows;
pub use super::table_rows::{Item, StateCount};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemId {
    pub table: u32,
    pub id: i64,
}

impl Item {
    pub fn is_processing(&self) -> bool {
        self.status.as_deref() == Some("processing")
    }

    pub fn is_over(&self) -> bool {
        matches!(self.status.as_deref(), Some("completed" | "failed"))
    }
}

/// The name of the item behind a bigint key of the database that the tables were read from: `queue item 7`. A key of the
/// namespace is certain if exactly one item has its id; a raw number may belong to any program, so its name is always a
/// guess.
pub fn name_of(tables: &[TableRows<Item>], number: i64) -> Option<LockName> {
    let own = namespace::id_in(namespace::QUEUE, number);
    let id = own.unwrap_or(number);
    let mut owners = tables.iter().filter(|table| {
        let fits = table.source.own_keys == own.is_some();
        fits && table
            .section
            .last_rows()
            .iter()
            .any(|item| item.id == id && (own.is_some() || !item.is_over()))
    });
    let table = owners.next()?;
    let origin = match own {
        Some(id) => format!("the key of item {id} in {}", table.source.name),
        None => format!("the same number as an item that is not done in {}", table.source.name),
    };
    let uncertain = own.is_none() || owners.next().is_some();
    Some(LockName { name: format!("queue item {id}").into(), uncertain, origin: origin.into() })
}
