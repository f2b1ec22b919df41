//! What can be wrong with TLS, each in words that name the file, the certificate or the host.

use std::path::PathBuf;

use rustls::{AlertDescription, CertificateError, InvalidMessage};

/// Why there is no TLS.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TlsError {
    /// A mode that verifies, without a file of authorities.
    #[error(
        "sslmode={mode} verifies the server's certificate, but the file of authorities {} does not exist: name it in sslrootcert, or use sslrootcert=system", .file.as_ref().map(|file| file.display().to_string()).unwrap_or_default()
    )]
    NoRoots { mode: &'static str, file: Option<PathBuf> },
    /// A file that cannot be read.
    #[error("cannot read {}: {reason}", .file.display())]
    Unreadable { file: PathBuf, reason: String },
    /// A file without what it is for.
    #[error("{} has no {what} in PEM", .file.display())]
    Empty { file: PathBuf, what: &'static str },
    /// The system has no authorities.
    #[cfg(feature = "system-roots")]
    #[error("sslrootcert=system: the system's certificates of authorities were not found")]
    NoSystemRoots,
    /// A certificate without its key.
    #[error("the certificate {} exists, but not its key {} (sslkey names it)", .certificate.display(), .key.display())]
    NoKey { certificate: PathBuf, key: PathBuf },
    /// A key that others may read.
    #[error("the key {} can be read by other users: chmod 600", .file.display())]
    OpenKey { file: PathBuf },
    /// A key that cannot be used.
    #[error("the key {} cannot be used: {reason}", .file.display())]
    BadKey { file: PathBuf, reason: String },
    /// A key that is encrypted, and no password for it.
    #[error("the key {} is encrypted, and no password was given: answer the prompt, or use sslpassword", .file.display())]
    EncryptedKey { file: PathBuf },
    /// A password that does not open the key.
    #[cfg(feature = "encrypted-keys")]
    #[error("the password does not decrypt the key {}", .file.display())]
    WrongKeyPassword { file: PathBuf },
    /// Nobody who is trusted has signed the certificate.
    #[error("the server's certificate was signed by \"{issuer}\", which is not among {roots}")]
    UnknownIssuer { issuer: String, roots: String },
    /// The certificate is signed with its own key, and is not among the roots.
    #[error("the server's certificate \"{subject}\" is self-signed, and not among {roots}")]
    SelfSigned { subject: String, roots: String },
    /// The authority's own certificate is out of date.
    #[error("the certificate of the authority \"{subject}\" in {roots} is valid from {from} to {until} only")]
    RootExpired { subject: String, roots: String, from: String, until: String },
    /// Lists of revoked certificates that cannot be used.
    #[error(
        "the list of revoked certificates (sslcrl, sslcrldir) cannot be used: it must have version 2, a number and its authority's key identifier"
    )]
    Lists,
    /// The certificate is out of date.
    #[error("the server's certificate expired at {until}")]
    Expired { until: String },
    /// The certificate is for later.
    #[error("the server's certificate is not valid before {from} (is the clock of this machine correct?)")]
    NotYetValid { from: String },
    /// The name is another.
    #[error("the server's certificate is for {names}, and not for host \"{host}\"")]
    OtherName { names: String, host: String },
    /// There is no name to compare.
    #[error("sslmode=verify-full compares the certificate with a host name, and none was given: use -h")]
    NoHostName,
    /// Anything else that is wrong with it.
    #[error("the server's certificate is not accepted: {reason}")]
    Certificate { reason: String },
    /// Any other error of the handshake, in the words of the library.
    #[error("{0}")]
    Other(String),
}

impl TlsError {
    /// The error of a handshake in words; what was raised here comes out as it went in.
    pub(crate) fn of_handshake(error: &std::io::Error) -> Self {
        let Some(inner) = error.get_ref() else { return Self::Other(error.to_string()) };
        if let Some(own) = inner.downcast_ref::<Self>() {
            return own.clone();
        }
        match inner.downcast_ref::<rustls::Error>() {
            Some(error) => Self::of(error),
            None => Self::Other(inner.to_string()),
        }
    }

    /// The same for an error of rustls.
    pub(crate) fn of(error: &rustls::Error) -> Self {
        match error {
            rustls::Error::InvalidCertificate(CertificateError::Other(other)) => {
                let own = other.0.downcast_ref::<Self>();
                own.cloned().unwrap_or_else(|| Self::Certificate { reason: other.to_string() })
            }
            rustls::Error::InvalidCertificate(other) => Self::Certificate { reason: other.to_string() },
            rustls::Error::AlertReceived(alert) => Self::Other(said(*alert)),
            rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
                Self::Other("the server's answer is not TLS".to_owned())
            }
            other => Self::Other(other.to_string()),
        }
    }
}

/// What the server says of us.
fn said(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::UnknownCA | AlertDescription::BadCertificate | AlertDescription::DecryptError => {
            "the server does not accept the client certificate (sslcert): its authorities have not signed it"
                .to_owned()
        }
        AlertDescription::CertificateExpired => {
            "the server reports that the client certificate (sslcert) has expired".to_owned()
        }
        AlertDescription::CertificateRevoked => {
            "the server reports that the client certificate (sslcert) was revoked".to_owned()
        }
        AlertDescription::CertificateRequired => {
            "the server requires a client certificate: give sslcert and sslkey".to_owned()
        }
        AlertDescription::ProtocolVersion => "the server supports neither TLS 1.2 nor 1.3".to_owned(),
        AlertDescription::HandshakeFailure => "the server has no cipher in common with locktop".to_owned(),
        AlertDescription::UnrecognisedName => "the server does not know the requested host name".to_owned(),
        other => format!("the server ended the handshake: {other:?}"),
    }
}

impl From<TlsError> for rustls::Error {
    fn from(error: TlsError) -> Self {
        Self::InvalidCertificate(CertificateError::Other(rustls::OtherError(std::sync::Arc::new(error))))
    }
}
