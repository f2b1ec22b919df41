//! The socket of a connection; a cancel request opens another one.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use crate::conninfo::Keepalives;

#[derive(Debug, Clone)]
pub(crate) enum Address {
    Unix(PathBuf),
    /// An address with its port, and the TCP keepalives of its socket.
    Tcp(SocketAddr, Keepalives),
}

impl Address {
    /// Connects; the caller limits the time.
    pub(crate) async fn dial(&self) -> io::Result<Socket> {
        match self {
            Self::Unix(path) => Ok(Socket::Unix(UnixStream::connect(path).await?)),
            Self::Tcp(address, keepalives) => {
                let stream = TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                keep_alive(&stream, keepalives)?;
                Ok(Socket::Tcp(stream))
            }
        }
    }
}

fn keep_alive(stream: &TcpStream, keepalives: &Keepalives) -> io::Result<()> {
    let socket = SockRef::from(stream);
    #[cfg(target_os = "linux")]
    if let Some(timeout) = keepalives.user_timeout {
        socket.set_tcp_user_timeout(Some(timeout))?;
    }
    if keepalives.on {
        let settings = TcpKeepalive::new()
            .with_time(keepalives.idle)
            .with_interval(keepalives.interval)
            .with_retries(keepalives.count);
        socket.set_tcp_keepalive(&settings)?;
    }
    Ok(())
}

#[derive(Debug)]
pub(crate) enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Unix(stream) => Pin::new(stream).poll_flush(context),
            Self::Tcp(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
