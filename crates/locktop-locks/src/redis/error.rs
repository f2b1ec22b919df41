//! Errors of URLs and of TLS, one line each, without a password.

use std::time::Duration;

use super::url::RedisUrl;

/// An invalid URL. It is not repeated, since it may contain a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RedisUrlError {
    /// The text is not a URL; with the parser's reason, which contains nothing of the text.
    #[error(
        "not a Redis URL ({0}): write redis://[user[:password]@]host[:port][/database], rediss:// for TLS, or \
         redis+unix:///path/to/socket (in a password write %3A for \":\", %2F for \"/\", %40 for \"@\")"
    )]
    Syntax(String),
    /// An unknown TLS parameter (`ssl…` or `tls…`), by its name.
    #[error(
        "{0} in a Redis URL is not known: for TLS use ssl_ca_certs=FILE, \
         ssl_certfile=FILE and ssl_keyfile=FILE, and #insecure at the end"
    )]
    Parameter(String),
    /// Files for TLS in a URL without TLS.
    #[error("a Redis URL with files for TLS is not encrypted: write rediss:// in place of redis://")]
    Plain,
    /// A certificate without its key, or a key without its certificate.
    #[error("ssl_certfile and ssl_keyfile in a Redis URL belong together, but only one is given")]
    HalfAnIdentity,
}

/// Why there is no TLS. The text follows the server's name, in one line, and includes the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsTrouble {
    /// Its certificate is not issued by a trusted authority, or is not valid; with the reason.
    #[error(
        "its certificate is not trusted ({0}): name the file of its authority by ?ssl_ca_certs=FILE in the URL or by \
         SSL_CERT_FILE; #insecure at the end of the URL accepts any certificate, even an attacker's"
    )]
    Untrusted(String),
    /// Its certificate is for another host; with the names in it.
    #[error("its certificate is for {0}: write that name in the URL, or issue a certificate for this name")]
    OtherName(String),
    /// It did not answer the TLS handshake within this time.
    #[error(
        "no answer within {} ms; a port without TLS does not answer either: if this is one, write redis://", .0.as_millis()
    )]
    Silent(Duration),
    /// Its answer was not TLS.
    #[error("this port does not use TLS: write redis://, or name the right port")]
    NoTls,
    /// It refused the client, with or without a client certificate.
    #[error(
        "it requires a client certificate that it trusts: name one by ?ssl_certfile=FILE&ssl_keyfile=FILE in the URL, or \
         configure the server not to require one (tls-auth-clients no)"
    )]
    WhoAreYou,
    /// A file that the URL names cannot be read or used; with the file and the reason.
    #[error("{0}: correct the files that its URL names")]
    Files(String),
    /// Any other error of the TLS library, with its message.
    #[error("no TLS: {0}")]
    Other(String),
}

/// A server that did not answer, or not as expected.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RedisFault {
    /// No connection could be made: TCP, the password, or the database was refused.
    #[error("{server}: cannot connect: {reason}")]
    Refused {
        /// The server that was connected to.
        server: RedisUrl,
        /// The message of the system or the server.
        reason: String,
    },
    /// The server was reached, but no encrypted connection was established.
    #[error("{server}: {trouble}")]
    Tls {
        /// The server that was connected to.
        server: RedisUrl,
        /// The TLS problem, with the remedy.
        trouble: TlsTrouble,
    },
    /// No answer came in time, to connecting or to a command.
    #[error("{server}: no answer within {} ms", .timeout.as_millis())]
    Silent {
        /// The server that did not answer.
        server: RedisUrl,
        /// How long the client waited for an answer.
        timeout: Duration,
    },
    /// The connection was lost while waiting for an answer.
    #[error("{server}: the connection is lost: {reason}")]
    Lost {
        /// The server of the connection.
        server: RedisUrl,
        /// The system's message, in one line.
        reason: String,
    },
    /// The server answered with an error.
    #[error("{server}: {command} was refused: {reason}")]
    Answer {
        /// The server that refused.
        server: RedisUrl,
        /// The name of the command that was sent.
        command: &'static str,
        /// The server's error, in one line.
        reason: String,
    },
    /// The server's answer is not one that Redis gives.
    #[error("{server}: {command} got an unexpected answer; is this a Redis server?")]
    Strange {
        /// The server that answered.
        server: RedisUrl,
        /// The name of the command that was sent.
        command: &'static str,
    },
}

impl RedisFault {
    /// Whether the connection can still be used.
    #[must_use]
    pub const fn leaves_the_connection(&self) -> bool {
        matches!(self, Self::Answer { .. } | Self::Strange { .. })
    }
}
