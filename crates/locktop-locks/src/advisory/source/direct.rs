//! A connection for each lock.

use super::{CANCEL, Conn, Error, GOODBYE, Refusal, Source, ask, spawn};
use pg_connect::connect::{Listening, listen};
use pg_connect::conninfo::ConnInfo;

/// A connection of this crate's own. Dropping it closes it.
#[derive(Debug)]
pub struct Direct {
    /// `None` only while this is being dropped.
    connection: Option<Listening>,
    /// A statement is in progress.
    is_busy: bool,
}

impl Source for ConnInfo {
    type Conn = Direct;

    async fn get(&self) -> Result<Direct, Error> {
        Ok(Direct { connection: Some(listen(self).await?), is_busy: false })
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
        let Some(connection) = &self.connection else {
            return Err(Refusal::Lost("it was closed".to_owned()));
        };
        self.is_busy = true;
        let answer = ask(&connection.client, sql).await;
        self.is_busy = false;
        answer
    }

    async fn ended(&mut self) -> String {
        let stopped = || "its task was stopped".to_owned();
        let Some(connection) = &mut self.connection else { return stopped() };
        let reason = connection.ended.wait_for(Option::is_some).await.ok().and_then(|reason| reason.clone());
        reason.unwrap_or_else(stopped)
    }

    fn discard(self) {}
}

impl Drop for Direct {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        if self.is_busy {
            // A backend that waits for a lock does not notice that its client has disconnected.
            let canceller = connection.canceller.clone();
            drop(connection);
            spawn(async move { canceller.cancel(CANCEL).await });
        } else {
            // The driver sends a Terminate message, since a server with TLS would log an error otherwise. But it first waits
            // for the answers to all other requests on this connection.
            spawn(connection.close(GOODBYE));
        }
    }
}
