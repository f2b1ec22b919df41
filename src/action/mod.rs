//! Actions that locktop executes on a server when requested; all other parts only read.
//!
//! The statement that acts compares the target with what was seen, so that no similar target is affected. The request
//! and its result are recorded in a file of the user ([`audit`]) and in the schema's `locktop_audit`.

mod adapter;
pub mod audit;
pub mod executor;
mod published;
mod record;
pub mod recover;
mod redis_lease;
mod session;
mod table;

use std::future::Future;
use std::sync::Arc;

pub use locktop_tasks::actor::Actor;
use locktop_tasks::{actor, literal, message};
pub use record::{Asked, Record};
use tokio_postgres::Client;

/// Connections that are opened in advance: when all connection slots are in use, it is too late to open one.
pub trait Lines: Send + Sync + 'static {
    /// A connection that can be used now.
    ///
    /// # Errors
    /// Why there is none, in one line.
    fn client(&self) -> impl Future<Output = Result<Arc<Client>, String>> + Send;

    /// Process ids of these connections, as far as known. locktop never acts on them.
    fn pids(&self) -> Vec<i32>;
}
