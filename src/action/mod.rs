//! What locktop does to a server when it is asked to: everything else only looks.
//!
//! Nothing is done to what merely looks like the target: the server compares it with what was seen, in the statement that acts. Who
//! wanted what, and what came of it, is on record: in a file of the user's ([`audit`]), and in the schema's `locktop_audit`.

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
