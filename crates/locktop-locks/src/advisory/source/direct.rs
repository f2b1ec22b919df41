//! A connection for each lock.

use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::{CANCEL, Client, Conn, Error, GOODBYE, Refusal, Source, ask, message, spawn};
use pg_connect::connect::{Canceller, Connection, connect};
use pg_connect::conninfo::ConnInfo;

/// A connection of this crate's own. Dropping it closes it.
#[derive(Debug)]
pub struct Direct {
    client: Client,
    canceller: Canceller,
    driver: AbortHandle,
    ended: watch::Receiver<Option<String>>,
    /// A statement is in progress.
    is_busy: bool,
}

impl Source for ConnInfo {
    type Conn = Direct;

    async fn get(&self) -> Result<Direct, Error> {
        let Connection { client, canceller, driver } = connect(self).await?;
        let (sender, ended) = watch::channel(None);
        let handle = driver.abort_handle();
        tokio::spawn(async move {
            let reason = match driver.await {
                Ok(Ok(())) => "the connection was closed".to_owned(),
                Ok(Err(error)) => message(&error),
                Err(_) => "its task was stopped".to_owned(),
            };
            let _ = sender.send(Some(reason));
        });
        Ok(Direct { client, canceller, driver: handle, ended, is_busy: false })
    }
}

impl Conn for Direct {
    /// The session may idle while it holds a lock, and the server detects that the client is gone.
    const SETTINGS: &'static str = "SELECT pg_catalog.set_config('idle_session_timeout', '0', false), \
         pg_catalog.set_config('tcp_keepalives_idle', '30', false), \
         pg_catalog.set_config('tcp_keepalives_interval', '10', false), \
         pg_catalog.set_config('tcp_keepalives_count', '3', false), \
         pg_catalog.set_config('tcp_user_timeout', '60s', false); ";

    async fn ask(&mut self, sql: &str) -> Result<Option<String>, Refusal> {
        self.is_busy = true;
        let answer = ask(&self.client, sql).await;
        self.is_busy = false;
        answer
    }

    async fn ended(&mut self) -> String {
        match self.ended.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone().unwrap_or_default(),
            Err(_) => "its task was stopped".to_owned(),
        }
    }

    fn discard(self) {}
}

impl Drop for Direct {
    fn drop(&mut self) {
        let driver = self.driver.clone();
        if self.is_busy {
            driver.abort();
            // A backend that waits for a lock does not notice that its client has disconnected.
            let canceller = self.canceller.clone();
            return spawn(async move { canceller.cancel(CANCEL).await });
        }
        if tokio::runtime::Handle::try_current().is_err() {
            return driver.abort();
        }
        // The driver sends a Terminate message, since a server with TLS would log an error otherwise. But it first waits for
        // the answers to all other requests on this connection.
        spawn(async move {
            tokio::time::sleep(GOODBYE).await;
            driver.abort();
        });
    }
}
