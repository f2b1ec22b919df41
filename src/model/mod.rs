//! The pure floor: what locktop knows of a server at one moment, and what follows from it.
//!
//! Nothing here reads a clock, a file or a socket; a test, a replay and the live program run the same code.

pub mod awaited_rows;
pub mod backend;
pub mod event;
pub mod finding;
pub mod growth;
pub mod held;
pub mod id_generator;
pub mod lease;
pub mod lock;
pub mod lock_key;
pub mod lock_name;
pub mod lock_waits;
pub mod namespace;
pub mod owner;
pub mod plan;
pub mod prepared;
pub mod rate_limit;
pub mod redis_lease;
pub mod snapshot;
pub mod systems;
pub mod task;
pub mod thresholds;
pub mod view;
pub mod wait_graph;
pub mod words;
pub mod work_queue;

/// Text that came from the server: shared, immutable, valid UTF-8 (invalid bytes were replaced when it was
/// decoded), and otherwise hostile: it may hold control characters, escape sequences and newlines, and may be
/// megabytes long. [`crate::text::one_line`] makes it fit for a screen.
pub type Text = std::sync::Arc<str>;

/// A moment on the server's clock.
pub type Timestamp = chrono::DateTime<chrono::Utc>;
