//! A connection with notifications, and with the reason for its end.

use std::pin::pin;

use futures_util::{StreamExt, stream};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio_postgres::{AsyncMessage, CancelToken, Client};

use super::super::auth_watch::{AuthWatch, Watched};
use super::super::conninfo::RequireAuth;
use super::super::socket::Address;
use super::super::tls::Connector;
use super::notifications::{self, Notification, Notifications};
use super::{Raw, reach};
use crate::conninfo::ConnInfo;
use crate::error::ConnectError;
use crate::message;

/// An open connection. Dropping it closes it at once, even with unanswered statements.
#[derive(Debug)]
pub struct Listening {
    /// For sending statements, `LISTEN` included.
    pub client: Client,
    /// For cancelling the running statement, over a connection of its own.
    pub canceller: Canceller,
    /// The notifications. One that arrives during a statement comes before its answer. Ends with the connection.
    pub notifications: Notifications,
    /// Why the connection has ended, in one line, as soon as it has.
    pub ended: watch::Receiver<Option<String>>,
    driver: Driver,
}

#[derive(Debug)]
struct Driver(AbortHandle);

impl Drop for Driver {
    /// A server that does not answer would keep the task alive forever.
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Listening {
    /// Closes the connection, and returns when the server has received that, or after `limit`. The server then ends the
    /// session, which releases its locks.
    pub async fn close(self, limit: std::time::Duration) {
        let Self { client, mut ended, driver, .. } = self;
        drop(client);
        let _ = tokio::time::timeout(limit, ended.wait_for(Option::is_some)).await;
        drop(driver);
    }
}

/// Connects, with notifications.
///
/// # Errors
/// As for [`super::connect`].
pub async fn listen(info: &ConnInfo) -> Result<Listening, ConnectError> {
    let (Raw { client, connection, canceller, .. }, _) = Box::pin(reach(info)).await?;
    let (ears, notifications) = notifications::pair();
    let (over, ended) = watch::channel(None);
    let driver = tokio::spawn(async move {
        let mut connection = connection;
        let mut messages = pin!(stream::poll_fn(move |context| connection.poll_message(context)));
        let mut reason = None;
        while let Some(next) = messages.next().await {
            match next {
                Ok(AsyncMessage::Notification(said)) => {
                    let (channel, payload) = (said.channel().to_owned(), said.payload().to_owned());
                    ears.hear(Notification { channel, payload, pid: said.process_id() });
                }
                Ok(_) => {}
                Err(error) => {
                    reason = Some(message(&error));
                    break;
                }
            }
        }
        over.send_replace(Some(reason.unwrap_or_else(|| "it was closed".to_owned())));
    });
    Ok(Listening { client, canceller, notifications, ended, driver: Driver(driver.abort_handle()) })
}

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
