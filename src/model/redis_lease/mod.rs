//! Locks that are kept in Redis: what each server says of each key, and what N servers say together.
//!
//! A lock of Redlock is a key with the same value on a majority of N independent servers
//! (<https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/>); a lock on one server is the same with
//! N = 1. All servers of one list are taken for such a set.

mod merge;
mod reading;

#[cfg(test)]
mod tests;

pub use merge::{Place, RedisLease, RedisLeases, ServerState, Standing, merge, quorum};
pub use reading::{Bytes, Expiry, KeyReading, LockValue, ServerReading, shown};
