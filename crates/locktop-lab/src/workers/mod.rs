//! The worker processes of a demo: how they are kept, what they are told, and what their work is.

mod error;
mod names;
mod orders;
mod plan;
mod pool;

pub use error::TasksError;
pub(crate) use orders::{Orders, Part, Payload, Plan};
pub(crate) use plan::Ends;
pub(crate) use pool::WorkerPool;
