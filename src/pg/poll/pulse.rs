//! Checks that a quiet connection is still alive.
//!
//! A failed network or a stopped server sends nothing: a client that only waits would notice with its next statement, and
//! TCP itself after a minute, or never if only the process is stopped.

use std::time::Duration;

use tokio_postgres::Client;

use super::PollError;

/// From one answer to the next question.
const QUIET: Duration = Duration::from_secs(2);

/// Longest wait for an answer that a working server sends at once.
const TIMEOUT: Duration = Duration::from_secs(5);

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
