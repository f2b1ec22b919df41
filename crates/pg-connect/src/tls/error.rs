use std::path::PathBuf;

use rustls::{AlertDescription, CertificateError, InvalidMessage};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TlsError {
    #[error(
        "sslmode={mode} verifies the server's certificate, but the file of authorities {} does not exist: name it in sslrootcert, or use sslrootcert=system", .file.as_ref().map(|file| file.display().to_string()).unwrap_or_default()
    )]
    NoRoots { mode: &'static str, file: Option<PathBuf> },
    #[error("cannot read {}: {reason}", .file.display())]
    Unreadable { file: PathBuf, reason: String },
    #[error("{} has no {what} in PEM", .file.display())]
    Empty { file: PathBuf, what: &'static str },
    #[cfg(feature = "system-roots")]
    #[error("sslrootcert=system: the system's certificates of authorities were not found")]
    NoSystemRoots,
    #[error("the certificate {} exists, but not its key {} (sslkey names it)", .certificate.display(), .key.display())]
    NoKey { certificate: PathBuf, key: PathBuf },
    #[error("the key {} can be read by other users: chmod 600", .file.display())]
    OpenKey { file: PathBuf },
    #[error("the key {} cannot be used: {reason}", .file.display())]
    BadKey { file: PathBuf, reason: String },
    #[error("the key {} is encrypted, and no password was given: answer the prompt, or use sslpassword", .file.display())]
    EncryptedKey { file: PathBuf },
    #[cfg(feature = "encrypted-keys")]
    #[error("the password does not decrypt the key {}", .file.display())]
    WrongKeyPassword { file: PathBuf },
    #[error("the server's certificate was signed by \"{issuer}\", which is not among {roots}")]
    UnknownIssuer { issuer: String, roots: String },
    #[error("the server's certificate \"{subject}\" is self-signed, and not among {roots}")]
    SelfSigned { subject: String, roots: String },
    #[error("the certificate of the authority \"{subject}\" in {roots} is valid from {from} to {until} only")]
    RootExpired { subject: String, roots: String, from: String, until: String },
    #[error(
        "the list of revoked certificates (sslcrl, sslcrldir) cannot be used: it must have version 2, a number and its authority's key identifier"
    )]
    Lists,
    #[error("the server's certificate expired at {until}")]
    Expired { until: String },
    #[error("the server's certificate is not valid before {from} (is the clock of this machine correct?)")]
    NotYetValid { from: String },
    #[error("the server's certificate is for {names}, and not for host \"{host}\"")]
    OtherName { names: String, host: String },
    #[error("sslmode=verify-full compares the certificate with a host name, and none was given: use -h")]
    NoHostName,
    #[error("the server's certificate is not accepted: {reason}")]
    Certificate { reason: String },
    #[error("{0}")]
    Other(String),
}

impl TlsError {
    /// The text for an error of a handshake. A `TlsError` that was raised here is returned unchanged.
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

/// The text for the server's alert about the client certificate.
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
