mod config;
mod error;
mod names;
mod plan;
mod pool;

pub(crate) use config::{Payload, Plan, WorkerConfig, WorkerRole};
pub use error::TasksError;
pub(crate) use plan::TaskEnd;
pub(crate) use pool::WorkerPool;
