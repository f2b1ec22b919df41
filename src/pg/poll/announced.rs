//! The server process announced at login (`BackendKeyData` in PostgreSQL's documentation, "Message Flow").
//!
//! The driver does not expose it, but sends it with a cancel request. So such a request is written to a buffer that only
//! locktop reads.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Client;
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};

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
