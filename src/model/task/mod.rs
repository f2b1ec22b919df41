//! Scheduled tasks: the rows of their tables, what each key stands for, and how each task is.
//!
//! A database may have several pairs of tables at once, those of the published recipe with raw row ids for keys and
//! those of `locktop schema install`. Every column that a table lacks, and every NULL, is simply not known.

mod board;
mod evidence;
mod key;
mod look;
mod name;
mod rows;
mod state;
mod streak;
mod watch;
mod words;

#[cfg(test)]
mod tests;

pub use board::{Board, Counts, TaskRow};
pub use evidence::names_worker;
pub use key::TaskKey;
pub use locktop_base::namespace::{LARGEST_ID, TASKS as NAMESPACE, item_statement_number, statement_number};
pub use name::{also_of, name_of};
pub(crate) use rows::CLOSED;
pub use rows::{Execution, KeyRule, Schedule, TaskId, TaskSet, TaskTables};
pub use state::{Evidence, KeyState, Proof, TaskState, of_execution, of_schedule};
pub use streak::Streak;
pub use watch::Watch;
pub(crate) use watch::{Epoch, KeyHolder};
pub use words::evidence;
