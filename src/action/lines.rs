//! Where the connection comes from that a command is done on.

use std::future::Future;
use std::sync::Arc;

use tokio_postgres::Client;

/// Connections of ours that are there already: when all are taken it is too late to ask for one.
pub trait Lines: Send + Sync + 'static {
    /// One that can be used now.
    ///
    /// # Errors
    /// Why there is none, in one line.
    fn client(&self) -> impl Future<Output = Result<Arc<Client>, String>> + Send;

    /// The processes that serve them, as far as that is known: nothing is ever done to them.
    fn pids(&self) -> Vec<i32>;
}
