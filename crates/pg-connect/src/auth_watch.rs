//! Watches the messages of the server: limits their size ([`crate::socket`]), and closes the connection before any
//! answer if the server requests an authentication method that `require_auth` does not allow.
//!
//! The driver answers every request, even one for a plain-text password, so the stream under it is watched. Source:
//! "Message Formats" in the chapter "Frontend/Backend Protocol" (`Authentication…`, `B`), and `check_expected_areq` in
//! `src/interfaces/libpq/fe-auth.c`.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, TlsStream};

use super::socket;
use crate::conninfo::{AuthMethod, RequireAuth};
use crate::socket::{Bounds, TooLarge};

/// Why the connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    /// The server requests an authentication method that is not allowed.
    #[error("not permitted by require_auth: {}", .0.word())]
    Auth(AuthMethod),
    #[error(transparent)]
    Size(#[from] TooLarge),
}

#[derive(Debug, Clone)]
pub(crate) struct AuthWatch {
    allowed: RequireAuth,
    first: First,
    /// The start of the current message.
    head: Vec<u8>,
    /// Remaining bytes of a message that need no check.
    skip: usize,
    /// Whether the server has requested authentication.
    asked: bool,
    /// Whether the messages are inside TLS, and watched there.
    over: bool,
    bounds: Bounds,
}

/// The meaning of the first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum First {
    /// The start of a message.
    Message,
    /// The answer to `SSLRequest`.
    Answer,
    /// The answer to `SSLRequest`, which must be yes.
    Yes,
}

const TYPE_AND_LENGTH: usize = 5;

/// Bytes of the head, with the kind of authentication.
const HEAD: usize = 9;

impl AuthWatch {
    /// A watch on a stream that begins with messages, or with the answer to `SSLRequest`.
    pub(crate) fn new(allowed: &RequireAuth, answer_first: bool) -> Self {
        Self {
            over: false,
            allowed: allowed.clone(),
            first: if answer_first { First::Answer } else { First::Message },
            head: Vec::with_capacity(HEAD),
            skip: 0,
            asked: false,
            bounds: Bounds::default(),
        }
    }

    /// A watch that accepts no answer but TLS.
    pub(crate) fn tls_alone() -> Self {
        Self { first: First::Yes, ..Self::new(&RequireAuth::default(), true) }
    }

    /// A watch on a stream that is TLS from its first byte.
    pub(crate) fn none() -> Self {
        Self { over: true, ..Self::new(&RequireAuth::default(), false) }
    }

    fn see(&mut self, mut bytes: &[u8]) -> Result<(), Refused> {
        while let Some((&byte, rest)) = bytes.split_first() {
            if self.over {
                return Ok(());
            }
            let first = std::mem::replace(&mut self.first, First::Message);
            if first != First::Message {
                // With TLS the messages are inside of it.
                self.over = byte == b'S';
                if first == First::Yes && !self.over {
                    return Err(Refused::Auth(AuthMethod::None));
                }
                bytes = rest;
            } else if self.skip > 0 {
                let skipped = self.skip.min(bytes.len());
                self.skip -= skipped;
                self.bounds.body(bytes.get(..skipped).unwrap_or_default());
                bytes = bytes.get(skipped..).unwrap_or_default();
            } else {
                self.head.push(byte);
                bytes = rest;
                if self.head.len() == TYPE_AND_LENGTH {
                    self.bounds.message(self.head.first().copied().unwrap_or_default(), self.length())?;
                }
                match self.head.len() {
                    TYPE_AND_LENGTH if !self.is_request() => {
                        self.skip = self.length().saturating_sub(4);
                        self.head.clear();
                    }
                    HEAD => self.request()?,
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn is_request(&self) -> bool {
        self.head.first() == Some(&b'R') && self.length() >= HEAD - 1
    }

    fn number(&self, at: usize) -> u32 {
        let bytes = self.head.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u32::from_be_bytes)
    }

    /// The length of the message, including the length field.
    fn length(&self) -> usize {
        usize::try_from(self.number(1)).unwrap_or(usize::MAX)
    }

    /// Checks the head of an `Authentication…` message.
    fn request(&mut self) -> Result<(), Refused> {
        let kind = self.number(TYPE_AND_LENGTH);
        self.skip = self.length().saturating_sub(8);
        self.head.clear();
        let method = match kind {
            0 => {
                self.bounds.is_known = true;
                if self.asked {
                    return Ok(());
                }
                AuthMethod::None
            }
            3 => AuthMethod::Password,
            5 => AuthMethod::Md5,
            2 | 7 | 8 => AuthMethod::Gss,
            9 => AuthMethod::Sspi,
            // The driver supports only SCRAM from that list.
            10 => AuthMethod::Scram,
            _ => return Ok(()),
        };
        self.asked = true;
        if self.allowed.allows(method) { Ok(()) } else { Err(Refused::Auth(method)) }
    }
}

#[derive(Debug)]
pub(crate) struct Watched<S> {
    inner: S,
    watch: AuthWatch,
}

impl<S> Watched<S> {
    pub(crate) fn new(inner: S, watch: AuthWatch) -> Self {
        Self { inner, watch }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let polled = Pin::new(&mut this.inner).poll_read(context, buffer);
        if matches!(polled, Poll::Ready(Ok(()))) && !this.watch.over {
            let new = buffer.filled().get(before..).unwrap_or_default();
            if let Err(refused) = this.watch.see(new) {
                if let Refused::Size(size) = refused {
                    socket::remember(size);
                }
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, refused)));
            }
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

impl<S: TlsStream + Unpin> TlsStream for Watched<S> {
    fn channel_binding(&self) -> ChannelBinding {
        self.inner.channel_binding()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(kind: u32, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(8 + body.len()).unwrap();
        [b"R".as_slice(), &length.to_be_bytes(), &kind.to_be_bytes(), body].concat()
    }

    fn verdict(list: &str, answer_first: bool, bytes: &[u8], step: usize) -> Result<(), Refused> {
        // From the settings, like any caller.
        let sources = crate::conninfo::Sources {
            target: Some(&format!("require_auth={list}")),
            env: &|_| None,
            home: None,
            os_user: Some("me".to_owned()),
            ..crate::conninfo::Sources::of_process(None, crate::conninfo::Flags::default())
        };
        let allowed = crate::conninfo::ConnInfo::resolve(&sources).unwrap().require_auth;
        let mut watch = AuthWatch::new(&allowed, answer_first);
        bytes.chunks(step).try_for_each(|bytes| watch.see(bytes))
    }

    #[test]
    fn no_other_answer_than_tls_is_taken() {
        assert_eq!(AuthWatch::tls_alone().see(b"S"), Ok(()));
        assert!(AuthWatch::tls_alone().see(b"N").is_err());
        assert!(AuthWatch::tls_alone().see(b"E\0\0").is_err());
    }

    #[test]
    fn a_disallowed_method_is_detected_in_chunks_of_any_size() {
        let ok = request(0, b"");
        let scram = [request(10, b"SCRAM-SHA-256\0\0"), request(11, b"r=x"), request(12, b"v=y"), ok.clone()]
            .concat();
        for (list, bytes, refused) in [
            ("scram-sha-256", scram.clone(), None),
            ("scram-sha-256", request(3, b""), Some(AuthMethod::Password)),
            ("scram-sha-256", request(5, b"salt"), Some(AuthMethod::Md5)),
            ("scram-sha-256", ok.clone(), Some(AuthMethod::None)),
            ("!password", request(3, b""), Some(AuthMethod::Password)),
            ("!password", scram.clone(), None),
            ("none", ok.clone(), None),
            ("none", scram, Some(AuthMethod::Scram)),
            ("md5", [request(5, b"salt"), ok].concat(), None),
            ("md5", b"E\0\0\0\x0aerror\0".to_vec(), None),
            // Earlier messages do not hide it.
            ("md5", [b"N\0\0\0\x04".to_vec(), request(3, b"")].concat(), Some(AuthMethod::Password)),
            ("md5", [b"N\0\0\0\x09R\0\0\0\0".to_vec(), request(3, b"")].concat(), Some(AuthMethod::Password)),
        ] {
            for step in [1, 2, 7, 1000] {
                let expected = refused.map_or(Ok(()), |method| Err(Refused::Auth(method)));
                assert_eq!(verdict(list, false, &bytes, step), expected, "{list} {bytes:?}");
                let after_no = [b"N".as_slice(), &bytes].concat();
                assert_eq!(verdict(list, true, &after_no, step), expected, "{list} {bytes:?}");
                let after_yes = [b"S".as_slice(), &bytes].concat();
                assert_eq!(verdict(list, true, &after_yes, step), Ok(()));
            }
        }
    }
}
