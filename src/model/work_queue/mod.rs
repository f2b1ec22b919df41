//! The work queue: items that each go to one worker at a time, and how each is.

mod board;
mod name;
mod rows;

#[cfg(test)]
mod tests;

pub use board::{Board, Count, Depth, ItemRow};
pub use name::name_of;
pub use rows::{Item, ItemId, ItemState, StateCount};
