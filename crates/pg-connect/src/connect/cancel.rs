//! Asking a server to cancel the statement of a connection, over one of its own.

use tokio_postgres::CancelToken;

use super::super::auth_watch::{AuthWatch, Watched};
use super::super::conninfo::RequireAuth;
use super::super::socket::Address;
use super::super::tls::Connector;

/// Cancels what a connection is doing, over the same way on which that came about: with the same TLS, to the same address.
#[derive(Clone)]
pub struct Canceller {
    token: CancelToken,
    address: Address,
    tls: Connector,
}

impl std::fmt::Debug for Canceller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The token is a secret.
        f.debug_struct("Canceller").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Canceller {
    pub(super) fn new(token: CancelToken, address: Address, tls: Connector) -> Self {
        Self { token, address, tls }
    }

    /// Asks, and waits at most so long. That the server has heard it says nothing of whether it does it; who wants to know looks at the
    /// statement.
    pub async fn cancel(&self, limit: std::time::Duration) {
        let asking = async {
            let Ok(socket) = self.address.dial().await else { return };
            // Nobody is asked who he is here; and what goes out is a secret.
            let watch = if self.tls.is_encrypted() {
                AuthWatch::tls_alone()
            } else {
                AuthWatch::new(&RequireAuth::default(), false)
            };
            let socket = Watched::new(socket, watch);
            let _ = self.token.cancel_query_raw(socket, self.tls.clone()).await;
        };
        let _ = tokio::time::timeout(limit, Box::pin(asking)).await;
    }
}
