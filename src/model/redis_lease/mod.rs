//! Locks that are kept in Redis: what each server says of each key, and what N servers say together.
//!
//! A lock of Redlock is a key with the same value on a majority of N independent servers
//! (<https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/>); a lock on one server is the same with
//! N = 1. Which servers are such a set is for people to say; what one set says of a key is nothing to another.

mod merge;
mod reading;

#[cfg(test)]
mod tests;

pub use merge::{RedisLease, RedisLeases, ServerKey, ServerState, Standing, merge, merge_sets};
pub use reading::{Bytes, Expiry, KeyReading, LockValue, ServerReading, shown};
