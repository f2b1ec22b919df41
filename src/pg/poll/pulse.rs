//! Whether somebody is at the other end of a connection on which nothing is said for a while.
//!
//! A network that has fallen silent, or a server that was stopped, tells nobody: whoever only waits would notice with his next
//! statement, and TCP itself after a minute, or never where only the process stands still.

use std::time::Duration;

use tokio_postgres::Client;

use super::PollError;

/// From one answer to the next question.
const QUIET: Duration = Duration::from_secs(2);

/// Longest wait for the answer, which any server has at once.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Asks again and again, while the connection is not `busy`, and returns when there is no answer. The question is the end of a message of
/// no statement (`Sync`): it is seen nowhere on the server, and changes nothing there.
pub(crate) async fn silence(client: &Client, busy: impl Fn() -> bool) -> PollError {
    loop {
        tokio::time::sleep(QUIET).await;
        // Whoever uses it has limits of his own.
        if busy() {
            continue;
        }
        match tokio::time::timeout(TIMEOUT, client.check_connection()).await {
            Ok(Ok(())) => {}
            // The connection itself knows why it has ended, and says so elsewhere.
            Ok(Err(_)) => std::future::pending().await,
            Err(_) => return PollError::Timeout(TIMEOUT),
        }
    }
}
