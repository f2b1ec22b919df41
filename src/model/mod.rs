//! The pure layer: the state of a server at one moment, and what follows from it.
//!
//! Nothing here reads a clock, a file or a socket; tests, replay and the live program run the same code.

#[macro_use]
mod declare;

pub mod adapter;
pub mod awaited_locks;
pub mod blame;
pub mod consequence;
pub mod event;
pub mod finding;
pub mod fingerprint;
pub mod held;
pub mod id_generator;
pub mod job_state;
pub mod judge;
pub mod lease;
pub mod lock_name;
pub mod lock_of;
pub mod lock_waits;
pub mod lock_words;
pub mod normal_wait;
pub mod output;
pub mod past;
pub mod plan;
pub mod promise;
pub mod rate_limit;
pub mod redis_lease;
pub mod refusals;
pub mod row_id;
pub mod section;
pub mod sections;
pub mod session_facts;
pub mod snapshot;
pub mod snapshot_index;
pub mod statement;
pub mod systems;
pub mod table;
pub mod table_rows;
pub mod takers;
pub mod task;
pub mod thresholds;
pub mod view;
pub mod why;
pub mod words;
pub mod work_locks;
pub mod work_queue;
pub mod zone;

pub use ::wait_graph;
pub use locktop_base::{QueryText, Text, Timestamp, namespace};
pub use wait_graph::{backend, lock};

pub mod lock_key {
    pub use locktop_base::LockKey;
}
