//! A server of our own and states of contention to look at: for the demo, for tests and for benches.

mod audience;
pub mod contest;
pub mod postgres;
mod random;
pub mod redis;
mod run;
pub mod scenario;
pub mod tasks;
mod workers;

pub use audience::Audience;
pub use run::{Demo, DemoError, DemoOptions, run};
