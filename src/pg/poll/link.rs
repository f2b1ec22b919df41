//! A connection: when it ended, and whether a quiet one is still alive.

use std::time::Duration;

use pg_connect::message;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle};
use tokio_postgres::Client;

use super::PollError;

/// Resolves when the connection ends.
#[derive(Debug)]
pub(super) struct Link {
    driver: AbortHandle,
    pub(super) ended: watch::Receiver<Option<String>>,
}

impl Link {
    pub(super) fn watch(driver: JoinHandle<Result<(), tokio_postgres::Error>>) -> Self {
        let (sender, ended) = watch::channel(None);
        let abort = driver.abort_handle();
        tokio::spawn(async move {
            let reason = match driver.await {
                Ok(Err(error)) => message(&error),
                Ok(Ok(())) | Err(_) => "the server closed it".to_owned(),
            };
            sender.send(Some(reason))
        });
        Self { driver: abort, ended }
    }

    /// Otherwise a server that does not answer would keep the driver alive forever.
    pub(super) fn close(&self) {
        self.driver.abort();
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.close();
    }
}

/// From one answer to the next question.
const QUIET: Duration = Duration::from_secs(2);

/// Longest wait for an answer that a working server sends at once.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Checks that a quiet connection is still alive.
///
/// A failed network or a stopped server sends nothing: a client that only waits would notice with its next statement, and
/// TCP itself after a minute, or never if only the process is stopped.
///
/// Repeats the question while the connection is not `busy`, and returns when there is no answer. The question is the end
/// of an empty message (`Sync`): it is not visible on the server and changes nothing there.
pub(crate) async fn silence(client: &Client, busy: impl Fn() -> bool) -> PollError {
    loop {
        tokio::time::sleep(QUIET).await;
        // The user of the connection has its own limits.
        if busy() {
            continue;
        }
        match tokio::time::timeout(TIMEOUT, client.check_connection()).await {
            Ok(Ok(())) => {}
            // The connection itself reports elsewhere why it ended.
            Ok(Err(_)) => std::future::pending().await,
            Err(_) => return PollError::Timeout(TIMEOUT),
        }
    }
}
