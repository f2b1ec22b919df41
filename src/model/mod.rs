//! The pure layer: the state of a server at one moment, and what follows from it.
//!
//! Nothing here reads a clock, a file or a socket; tests, replay and the live program run the same code.

pub mod adapter;
pub mod alert;
pub mod attempts;
pub mod awaited_locks;
pub mod blame;
pub mod consequence;
pub mod counted_waits;
pub mod event;
pub mod expected;
pub mod finding;
pub mod fingerprint;
pub mod growth;
pub mod held;
pub mod held_up;
pub mod held_watch;
pub mod id_generator;
pub mod kept_key;
pub mod lease;
pub mod lock_name;
pub mod lock_of;
pub mod lock_waits;
pub mod lock_words;
pub mod namer;
pub(crate) mod object_class;
pub mod observed;
pub mod output;
pub mod owner;
pub mod past;
pub mod plan;
pub mod promise;
pub mod rate_limit;
pub mod redis_lease;
pub mod refusals;
pub mod rights;
pub mod row_id;
pub mod section;
pub mod sections;
pub mod snapshot;
pub mod snapshot_index;
pub mod statement;
pub mod systems;
pub mod takers;
pub mod task;
pub mod task_worker;
pub mod text_id;
pub mod thresholds;
pub mod timeline;
pub mod view;
pub mod why;
pub mod words;
pub mod work_queue;
pub mod written;
pub mod zone;

pub use ::wait_graph;
pub use locktop_base::{QueryText, Text, Timestamp, namespace};
pub use wait_graph::{backend, lock};

pub mod lock_key {
    pub use locktop_base::LockKey;
}
