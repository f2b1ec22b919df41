//! Actions that locktop executes on a server when requested; all other parts only read.
//!
//! The statement that acts compares the target with what was seen, so that no similar target is affected. The request
//! and its result are recorded in a file of the user ([`audit`]) and in the schema's `locktop_audit`.

mod adapter;
pub mod audit;
pub mod executor;
mod lines;
mod published;
mod record;
pub mod recover;
mod redis_lease;
mod session;
mod table;

use locktop_tasks::{actor, literal, message};

pub use lines::Lines;
pub use locktop_tasks::actor::Actor;
pub use record::{Asked, Record};
