use tokio_postgres::CancelToken;

use super::super::auth_watch::{AuthWatch, Watched};
use super::super::conninfo::RequireAuth;
use super::super::socket::Address;
use super::super::tls::Connector;

/// Cancels the running statement of a connection, over a new connection to the same address with the same TLS.
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

    /// Sends a cancel request, and waits for at most `limit`. A request that was received may have no effect: check the
    /// statement itself.
    pub async fn cancel(&self, limit: std::time::Duration) {
        let asking = async {
            let Ok(socket) = self.address.dial().await else { return };
            // A cancel request needs no authentication, but contains a secret.
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
