use std::future::Future;
use std::sync::Arc;

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
