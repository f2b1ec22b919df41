//! The stream to a server: a socket, TLS on it if the URL requests it, and a limit on what is read.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use redis::aio::{PubSub, PubSubStream};
use redis::{ConnectionAddr, ConnectionInfo};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use super::TlsProblem;
use super::tls::TlsFiles;
use super::url::RedisUrl;

/// Limit in bytes for the answer to the last request. The driver collects a whole answer before it can be read.
const MOST: usize = 8 << 20;

/// Bytes that a line counts for in addition to its length: each array element has one, and takes as much memory here.
const LINE: usize = 64;

trait Both: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Both for T {}

/// A stream with a read limit.
pub(super) struct Stream {
    inner: Box<dyn Both>,
    left: usize,
}

pub(super) enum DialError {
    Tls(TlsProblem),
    Io(io::Error),
}

impl From<io::Error> for DialError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Stream {
    pub(super) async fn dial(info: &ConnectionInfo, files: &TlsFiles) -> Result<Self, DialError> {
        let inner: Box<dyn Both> = match info.addr() {
            ConnectionAddr::Unix(path) => Box::new(UnixStream::connect(path).await?),
            ConnectionAddr::Tcp(host, port) => Box::new(tcp(host, *port).await?),
            ConnectionAddr::TcpTls { host, port, insecure, .. } => {
                let connector = files.connector(*insecure).await.map_err(DialError::Tls)?;
                let name = rustls::pki_types::ServerName::try_from(host.clone()).map_err(io::Error::other)?;
                Box::new(connector.connect(name, tcp(host, *port).await?).await?)
            }
            _ => return Err(io::Error::from(io::ErrorKind::Unsupported).into()),
        };
        Ok(Self::of(inner))
    }

    fn of(inner: Box<dyn Both>) -> Self {
        Self { inner, left: MOST }
    }

    fn count(&mut self, bytes: &[u8]) -> io::Result<()> {
        let lines = bytes.split(|byte| *byte == b'\n').count() - 1;
        let left = self.left.checked_sub(bytes.len() + lines * LINE);
        self.left = left.ok_or_else(|| {
            let most = MOST >> 20;
            let why = format!("it sent more than the {most} MB that are read in answer to a command: this is no Redis server, or not the right one");
            io::Error::new(io::ErrorKind::InvalidData, why)
        })?;
        Ok(())
    }
}

async fn tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let polled = Pin::new(&mut this.inner).poll_read(context, buffer);
        if matches!(polled, Poll::Ready(Ok(()))) {
            this.count(buffer.filled().get(before..).unwrap_or_default())?;
        }
        polled
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.left = MOST;
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

/// Subscribes to a channel, over a connection of its own, which closes with the messages. `None` if that fails or takes
/// longer than `timeout`.
pub(crate) async fn listen(server: &RedisUrl, timeout: Duration, channel: &str) -> Option<PubSubStream> {
    let subscribing = async {
        let stream = Stream::dial(&server.info, &server.tls).await.ok()?;
        let mut listener = PubSub::new(server.info.redis_settings(), stream).await.ok()?;
        listener.subscribe(channel).await.ok()?;
        Some(listener.into_on_message())
    };
    tokio::time::timeout(timeout, subscribing).await.ok().flatten()
}
