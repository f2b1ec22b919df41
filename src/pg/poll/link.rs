//! A connection: when it ended, and whether a quiet one is still alive.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle};
use tokio_postgres::Client;
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};

use super::PollError;
use pg_connect::message;

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

// The server process announced at login (`BackendKeyData` in PostgreSQL's documentation, "Message Flow").
// The driver does not expose it, but sends it with a cancel request. So such a request is written to a buffer that
// only locktop reads.

/// The length and code of the request precede the process, and its secret follows: four bytes each.
const REQUEST: usize = 16;
const PROCESS: std::ops::Range<usize> = 8..12;

/// The process; 0 if none was announced, which the driver does not distinguish.
pub(super) async fn announced(client: &Client) -> i32 {
    let written = Ear::default();
    // Nothing can fail here: writes are kept, and the data to read is available.
    let _ = client.cancel_token().cancel_query_raw(written.clone(), Bare).await;
    let bytes = written.0.lock().unwrap_or_else(PoisonError::into_inner);
    // The question whether TLS is available may precede it.
    let request = bytes.len().checked_sub(REQUEST).and_then(|start| bytes.get(start..));
    let process = request.and_then(|request| request.get(PROCESS)?.try_into().ok());
    process.map_or(0, i32::from_be_bytes)
}

#[derive(Debug, Clone, Default)]
struct Ear(Arc<Mutex<Vec<u8>>>);

/// TLS without a peer: the data that would be encrypted stays here.
#[derive(Debug)]
struct Bare;

impl TlsConnect<Ear> for Bare {
    type Stream = Ear;
    type Error = Infallible;
    type Future = Ready<Result<Ear, Infallible>>;

    fn connect(self, stream: Ear) -> Self::Future {
        ready(Ok(stream))
    }
}

impl TlsStream for Ear {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Ear {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        // "Yes", to the question whether TLS is available.
        into.put_slice(b"S");
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Ear {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
