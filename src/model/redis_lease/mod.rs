//! Locks in Redis: the reading of each server, and the combined state of N servers.
//!
//! A Redlock lock is a key with the same value on a majority of N independent servers
//! (<https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/>); a lock on one server is the same with
//! N = 1. The user defines which servers form a set; sets are independent of each other.

mod merge;
mod reading;

#[cfg(test)]
mod tests;

pub use merge::{RedisLease, RedisLeases, ServerKey, ServerState, Standing, merge, merge_sets, recorded};
pub use reading::{Bytes, Expiry, KeyReading, LockValue, ServerReading, shown};
