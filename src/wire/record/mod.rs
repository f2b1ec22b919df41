//! Snapshots as bytes: one codec for memory and for files.
//!
//! The data from the server and the remembered state are kept; the wait graph, the states of tasks and the findings are
//! computed again. The format is Protocol Buffers with a column for each field (described in `assets/record.proto`),
//! compressed by zstd with the previous snapshot as the prefix.

mod activity;
mod adapters;
mod blame;
mod cell;
mod columns;
pub mod container;
mod frame;
mod group;
mod known;
mod memory;
mod parts;
mod strings;
mod tables;
#[cfg(test)]
mod tests;
mod told;

pub use frame::{Encoder, Frame};
pub use group::Group;
pub use strings::RecordError;
