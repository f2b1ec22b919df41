//! The socket of a connection; a cancel request opens another one.

use std::collections::HashSet;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use socket2::SockRef;
use tokio::net::{TcpStream, UnixStream};
use tokio_util::either::Either;

use crate::conninfo::Keepalives;

pub(crate) type Socket = Either<UnixStream, TcpStream>;

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
            Self::Unix(path) => Ok(Either::Left(UnixStream::connect(path).await?)),
            Self::Tcp(address, keepalives) => {
                let stream = TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                let socket = SockRef::from(&stream);
                #[cfg(target_os = "linux")]
                if let Some(timeout) = keepalives.user_timeout {
                    socket.set_tcp_user_timeout(Some(timeout))?;
                }
                if let Some(probes) = &keepalives.probes {
                    socket.set_tcp_keepalive(probes)?;
                }
                Ok(Either::Right(stream))
            }
        }
    }
}

// Limits on what a server may send. The driver collects a message before it reads it, and rows until the last one:
// without a limit, a server, or a host on the way to it, could fill memory with 2 GB before login.
// Sources: `PQconnectPoll` in `src/interfaces/libpq/fe-connect.c` (2,000 and 30,000 bytes before login) and
// `VALID_LONG_MESSAGE_TYPE` in `fe-protocol3.c` (30,000 bytes of most messages after it).

/// Bytes of an authentication request.
const REQUEST: usize = 2_000;

/// Bytes of a message of a kind without data, and of each message before login.
const SHORT: usize = 30_000;

/// Bytes of all messages until the session is ready: its settings, and the messages of a login trigger.
const LOGIN: usize = 1 << 20;

/// Bytes of a column description. A table has at most 1,600 columns, and a name 63 bytes.
const COLUMNS: usize = 512 << 10;

/// Bytes of any other message.
const MESSAGE: usize = 16 << 20;

/// Bytes of the rows of one answer, as held in memory: the driver may collect them.
const ROWS: usize = 32 << 20;

/// Memory of a row, or of another message that is kept, in addition to its bytes.
const ROW: usize = 128;

/// Bytes of a COPY. Its reader has its own limit, keeps less, and skips the rest.
const COPIED: usize = 4 << 30;

/// Bytes of notices, notifications and settings until an answer ends.
const ASIDES: usize = 16 << 20;

/// Bytes of everything else until an answer ends: a description of columns, read, takes several times its bytes.
const ANSWER: usize = 8 << 20;

/// Names of settings that a server may report: the driver keeps them all.
const SETTINGS: usize = 256;

/// A server sends more than the limit. Nothing that it sent can be trusted then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TooLarge {
    /// The head of a message has an impossible length.
    #[error(
        "it sent a message of {length} bytes, of which at most {limit} are read {when}: this is not a PostgreSQL server, or not the right one"
    )]
    Message { length: usize, limit: usize, when: &'static str },
    #[error("it sent more than {} MB {when}, more than the limit", .limit >> 20)]
    Answer { limit: usize, when: &'static str },
    #[error("it reported more than {SETTINGS} settings, which no PostgreSQL server does")]
    Settings,
}

/// The reason for the last closed connection. The driver reports only the end to callers that wait for an answer.
static LAST: Mutex<Option<TooLarge>> = Mutex::new(None);

pub(crate) fn remember(refused: TooLarge) {
    *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some(refused);
}

/// Why the last such connection of this process was closed.
pub(crate) fn last() -> Option<TooLarge> {
    *LAST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The amount of data since the last answer ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bounds {
    /// The server has authenticated the client.
    pub(crate) is_known: bool,
    /// The first `ReadyForQuery` has arrived.
    is_ready: bool,
    rows: usize,
    copied: usize,
    asides: usize,
    rest: usize,
    settings: HashSet<Vec<u8>>,
    /// The start of a `ParameterStatus`; `None` in other messages.
    setting: Option<Vec<u8>>,
}

impl Bounds {
    /// A message begins; `length` includes the length field, but not the type.
    pub(crate) fn message(&mut self, kind: u8, length: usize) -> Result<(), TooLarge> {
        let (limit, when) = if self.is_ready {
            let limit = match kind {
                b'T' => COLUMNS,
                b'D' | b'd' | b'V' | b'E' | b'N' | b'A' => MESSAGE,
                _ => SHORT,
            };
            (limit, "of that kind")
        } else {
            (if !self.is_known && kind == b'R' { REQUEST } else { SHORT }, "before login")
        };
        if !(4..=limit).contains(&length) {
            return Err(TooLarge::Message { length, limit, when });
        }
        self.setting = (kind == b'S').then(Vec::new);
        match kind {
            b'Z' => {
                self.is_ready = true;
                (self.rows, self.copied, self.asides, self.rest) = (0, 0, 0, 0);
            }
            b'D' => self.rows += length + ROW,
            b'd' => self.copied += length + 1,
            b'N' | b'A' | b'S' if self.is_ready => self.asides += length + 1,
            _ => self.rest += length + ROW,
        }
        let rest = if self.is_ready { (ANSWER, "in one answer") } else { (LOGIN, "before login") };
        for (sent, (limit, when)) in [
            (self.rows, (ROWS, "in the rows of one answer")),
            (self.copied, (COPIED, "in one copy")),
            (self.asides, (ASIDES, "in notices and notifications")),
            (self.rest, rest),
        ] {
            if sent > limit {
                return Err(TooLarge::Answer { limit, when });
            }
        }
        if self.settings.len() > SETTINGS { Err(TooLarge::Settings) } else { Ok(()) }
    }

    /// A part of the message after the length.
    pub(crate) fn body(&mut self, bytes: &[u8]) {
        let Some(name) = &mut self.setting else { return };
        let end = bytes.iter().position(|byte| *byte == 0);
        name.extend_from_slice(bytes.get(..end.unwrap_or(bytes.len()).min(SHORT)).unwrap_or_default());
        if end.is_some()
            && let Some(name) = self.setting.take()
        {
            self.settings.insert(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready() -> Bounds {
        let mut bounds = Bounds { is_known: true, ..Bounds::default() };
        bounds.message(b'Z', 5).unwrap();
        bounds
    }

    #[test]
    fn lengths_are_those_of_libpq_before_login() {
        for (kind, is_known, most) in [
            (b'R', false, 2_000),
            (b'R', true, 30_000),
            (b'E', false, 30_000),
            (b'S', true, 30_000),
            (b'D', true, 30_000),
        ] {
            let sent = |length| Bounds { is_known, ..Bounds::default() }.message(kind, length);
            assert_eq!(sent(most), Ok(()));
            for length in [most + 1, 2_147_483_647, 3, 0] {
                assert!(
                    matches!(sent(length), Err(TooLarge::Message { when: "before login", .. })),
                    "{length}"
                );
            }
        }
        let mut bounds = Bounds { is_known: true, ..Bounds::default() };
        let sent = (0..1000).find_map(|_| bounds.message(b'N', 30_000).err());
        assert_eq!(sent, Some(TooLarge::Answer { limit: LOGIN, when: "before login" }));
    }

    #[test]
    fn an_answer_has_an_end() {
        for (kind, length, many) in [
            (b'D', 6, 251_000),
            (b'D', 1 << 20, 33),
            (b'd', 4 << 20, 1025),
            (b'N', 1 << 20, 17),
            (b'T', 1000, 7500),
            (b'C', 15, 59_000),
        ] {
            let mut bounds = ready();
            for _ in 0..many - many / 30 - 2 {
                assert_eq!(bounds.message(kind, length), Ok(()), "{kind}");
            }
            let refused = (0..many).find_map(|_| bounds.message(kind, length).err());
            assert!(matches!(refused, Some(TooLarge::Answer { .. })), "{kind}");
            let mut bounds = ready();
            for _ in 0..many * 3 {
                bounds.message(kind, length).unwrap();
                bounds.message(b'Z', 5).unwrap();
            }
        }
        for (kind, length) in
            [(b'T', 600 << 10), (b'D', 17 << 20), (b'A', 1 << 30), (b'K', 40_000), (b'x', 40_000)]
        {
            assert!(ready().message(kind, length).is_err(), "{kind}");
        }
    }

    #[test]
    fn the_same_setting_may_be_reported_for_ever_and_many_may_not() {
        let mut bounds = ready();
        let mut report = |name: &str| {
            bounds.message(b'Z', 5)?;
            bounds.message(b'S', 40)?;
            // Even byte by byte.
            name.as_bytes().iter().for_each(|byte| bounds.body(&[*byte]));
            bounds.body(b"\0on\0");
            Ok::<(), TooLarge>(())
        };
        (0..10_000).for_each(|_| report("search_path").unwrap());
        let refused = (0..1000).find_map(|number| report(&format!("x{number}")).err());
        assert_eq!(refused, Some(TooLarge::Settings));
    }
}
