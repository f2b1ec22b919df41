//! A laboratory for locks: private servers, [`postgres`] and, with the feature of that name, `redis`; states of
//! contention in them ([`scenario`]); workers that compete for tasks ([`tasks`]) and for the other lock systems
//! ([`contest`]); faults injected into them; and witnesses of what really ran when. For the demo, for tests and for
//! benches.
#![allow(
    missing_docs,
    clippy::missing_errors_doc,
    reason = "a part of the program and its tests; the types of errors say what can go wrong"
)]

pub mod contest;
pub mod postgres;
mod process;
mod programs;
#[cfg(feature = "redis")]
pub mod redis;
mod run;
pub mod scenario;
pub mod tasks;
mod workers;

pub use process::LaunchError;
pub use run::{Demo, DemoError, DemoOptions, run};
pub use workers::{Language, OpenQuestion};
