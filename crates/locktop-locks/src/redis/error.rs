//! Errors of URLs and of TLS, one line each, without a password.

use std::time::Duration;

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
