//! The work queue: each item goes to one worker at a time.

mod board;
mod rows;

#[cfg(test)]
mod tests;

pub use crate::model::job_state::JobState;
pub use board::{Board, Count, Depth, ItemRow};
pub use rows::{Item, ItemId, StateCount, name_of};
