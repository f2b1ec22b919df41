//! Leases: locks that expire. Only the server's clock decides whether one has ended.

mod board;
mod in_redis;
mod rows;

#[cfg(test)]
mod tests;

pub use board::{Board, Counts, LeaseRow, ObservedHold};
pub use in_redis::{SOURCE as REDIS, id as redis_id};
pub use rows::{Lease, LeaseId, LeaseState, RowPosition};
