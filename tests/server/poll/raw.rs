//! A client that speaks the protocol byte by byte, for what no driver would send.
//! (<https://www.postgresql.org/docs/current/protocol-message-formats.html>)

use locktop::demo::postgres::EmbeddedServer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::support::TIMEOUT;

/// The code of an `Authentication` message that accepts the client.
pub(crate) const LET_IN: u32 = 0;
/// The code of one that asks for a password (SASL).
pub(crate) const ASKED: u32 = 10;

pub(crate) struct Raw(UnixStream);

impl Raw {
    /// Sends the startup message, and returns the answer: the code of the `Authentication` message.
    pub(crate) async fn start(server: &EmbeddedServer, user: &str, database: &str) -> (Self, u32) {
        let socket = server.socket_dir().join(".s.PGSQL.5432");
        let mut raw = Self(UnixStream::connect(socket).await.unwrap());
        let mut body = 0x0003_0000_u32.to_be_bytes().to_vec();
        for word in ["user", user, "database", database, ""] {
            body.extend(word.as_bytes());
            body.push(0);
        }
        raw.send(&body).await;
        let (kind, body) = raw.message().await;
        assert_eq!(kind, b'R', "{}", String::from_utf8_lossy(&body));
        (raw, u32::from_be_bytes(body[..4].try_into().unwrap()))
    }

    /// A client that was accepted and can send statements.
    pub(crate) async fn open(server: &EmbeddedServer, user: &str, database: &str) -> Self {
        let (mut raw, code) = Self::start(server, user, database).await;
        assert_eq!(code, LET_IN);
        raw.ready().await;
        raw
    }

    /// Runs statements to their end.
    pub(crate) async fn run(&mut self, sql: &[u8]) {
        self.0.write_all(b"Q").await.unwrap();
        self.send(&[sql, b"\0"].concat()).await;
        self.ready().await;
    }

    /// Prepares a statement under a name.
    pub(crate) async fn prepare(&mut self, name: &str, sql: &str) {
        self.0.write_all(b"P").await.unwrap();
        self.send(&[name.as_bytes(), b"\0", sql.as_bytes(), b"\0\0\0"].concat()).await;
        self.0.write_all(b"S").await.unwrap();
        self.send(b"").await;
        self.ready().await;
    }

    /// Has a statement described, which locks the relations that it names, and sends no Sync, which would
    /// release them.
    pub(crate) async fn describe(&mut self, name: &str) {
        self.0.write_all(b"D").await.unwrap();
        self.send(&[b"S", name.as_bytes(), b"\0"].concat()).await;
        self.0.write_all(b"H").await.unwrap();
        self.send(b"").await;
        // ParameterDescription, RowDescription.
        assert_eq!((self.message().await.0, self.message().await.0), (b't', b'T'));
    }

    async fn ready(&mut self) {
        loop {
            match self.message().await {
                (b'Z', _) => return,
                (b'E', body) => panic!("{}", String::from_utf8_lossy(&body)),
                _ => {}
            }
        }
    }

    async fn send(&mut self, body: &[u8]) {
        let length = u32::try_from(body.len() + 4).unwrap();
        self.0.write_all(&length.to_be_bytes()).await.unwrap();
        self.0.write_all(body).await.unwrap();
    }

    async fn message(&mut self) -> (u8, Vec<u8>) {
        let read = async {
            let kind = self.0.read_u8().await.unwrap();
            let length = self.0.read_u32().await.unwrap();
            let mut body = vec![0; usize::try_from(length).unwrap() - 4];
            self.0.read_exact(&mut body).await.unwrap();
            (kind, body)
        };
        tokio::time::timeout(TIMEOUT, read).await.expect("the server does not answer")
    }
}
