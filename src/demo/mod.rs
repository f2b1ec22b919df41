//! A server of our own and states of contention to look at: for the demo, for tests and for benches.

pub mod postgres;
pub mod redis;
mod run;
pub mod scenario;

pub use run::{Demo, DemoError, DemoOptions, run};
