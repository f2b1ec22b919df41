//! Looks as bytes: one codec for what is kept in memory and for files.
//!
//! What is kept of a look is what the server said and what was remembered when it did; the wait graph, the states of tasks and the
//! findings are worked out anew. Everything is Protocol Buffers with a column for each field (`assets/record.proto` describes it),
//! compressed by zstd with the look before as its prefix.

mod activity;
mod adapter_rows;
mod adapters;
mod blame;
mod cell;
mod columns;
pub mod container;
mod error;
mod frame;
mod group;
mod known;
mod limits;
mod memory;
mod packed;
mod parts;
mod redis_rows;
mod schema_rows;
mod section_states;
mod strings;
mod tables;
#[cfg(test)]
mod tests;
mod told;

pub use error::RecordError;
pub use frame::{Encoder, Frame};
pub use group::Group;
