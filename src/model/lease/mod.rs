//! Leases: locks that end by themselves. Whether one has ended is decided by the server's clock alone.

mod board;
mod in_redis;
mod rows;

#[cfg(test)]
mod tests;

pub use board::{Board, Counts, LeaseRow, ObservedHold};
pub use in_redis::{SOURCE as REDIS, id as redis_id};
pub use rows::{Lease, LeaseId, LeaseState, RowPosition};
