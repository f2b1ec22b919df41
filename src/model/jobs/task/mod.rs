//! Scheduled tasks: the rows of their tables, their keys and their states.
//!
//! A database may have several pairs of tables: those of the published recipe, which use raw row ids as keys, and those
//! of `locktop schema install`. A missing column or a NULL means not known.

mod board;
mod evaluate;
mod evidence;
mod rows;

#[cfg(test)]
mod tests;

pub use crate::model::job_state::JobState;
pub use board::{TaskBoard, TaskRow};
pub(crate) use evidence::KeyHolder;
pub use evidence::{TaskWatch, evidence, names_worker};
pub use locktop_base::namespace::{LARGEST_ID, TASKS as NAMESPACE, item_statement_number, statement_number};
pub(crate) use rows::{CLOSED, task_tables_rows};
pub use rows::{
    Execution, KeyRule, Schedule, Streak, TaskId, TaskKey, TaskSet, TaskTables, also_of, name_of,
};
