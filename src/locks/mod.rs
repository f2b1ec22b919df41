//! Locks between processes, each usable by itself: what the dashboard shows, and what a program takes.
//!
//! Nothing here trusts a client's clock to decide who has a lock, and nothing gives back what it is not sure to hold.

pub mod call;
pub mod optimistic;
pub mod rate_limit;
pub mod snowflake;
pub mod work_queue;
