//! Locks between processes, each usable by itself: what the dashboard shows, and what a program takes.
//!
//! Nothing here trusts a client's clock to decide who has a lock, and nothing gives back what it is not sure to hold.

pub mod advisory;
pub mod lease;
pub mod pooler;
