//! TLS by libpq's modes: whether the server's certificate is verified, by which authorities and for which name, and the
//! client certificate.
//!
//! In every mode the key in the server's certificate must sign the handshake, because SCRAM's channel binding relies on
//! that.

mod certificate;
mod chain;
mod settings;
mod verify;

use std::net::IpAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError, ClientConfig, InvalidMessage};
use settings::Shown;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::auth_watch::{AuthWatch, Watched};
use crate::conninfo::{CertMode, RequireAuth, TlsOptions};
use crate::socket::Socket;

/// How far a connection came, for the error when it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Stage {
    /// No answer from the network.
    #[default]
    Reaching,
    /// The connection is accepted.
    Reached,
    /// The server offers TLS.
    Handshake,
    /// The handshake is done: all further data is encrypted.
    Encrypted,
}

/// The stage, written during the attempt and read after it.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress(Arc<Mutex<Stage>>);

impl Progress {
    pub(super) fn stage(&self) -> Stage {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set(&self, stage: Stage) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = stage;
    }
}

/// Makes TLS connections to one server, for statements and for cancel requests.
#[derive(Debug, Clone)]
pub(crate) struct Connector {
    /// Errors of the files are reported only if TLS is used, as in libpq: a server without TLS needs no files.
    config: Result<Arc<ClientConfig>, TlsError>,
    /// The name that is sent to the server (SNI), or its address.
    server: String,
    shown: Arc<Shown>,
    cert_mode: CertMode,
    watch: AuthWatch,
    progress: Progress,
}

impl Connector {
    pub(super) fn new(
        options: &TlsOptions,
        host: &str,
        address: Option<IpAddr>,
        methods: &RequireAuth,
        progress: Progress,
    ) -> Self {
        let shown = Arc::<Shown>::default();
        // A host that is not a valid DNS name is compared by separate rules, and not sent to the server.
        let server = match (ServerName::try_from(host), address) {
            (Err(_), Some(address)) => address.to_string(),
            _ => host.to_owned(),
        };
        Self {
            config: settings::config(options, host, &shown).map(Arc::new),
            server,
            shown,
            cert_mode: options.cert_mode,
            watch: AuthWatch::new(methods, false),
            progress,
        }
    }

    /// Checks `sslcertmode` after the login. The error names the problem.
    pub(super) fn certificate(&self) -> Result<(), &'static str> {
        let is = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        if self.cert_mode != CertMode::Require {
            Ok(())
        } else if !self.is_encrypted() {
            Err("without TLS it could not request a client certificate")
        } else if !is(&self.shown.asked) {
            Err("it did not request a client certificate")
        } else if !is(&self.shown.sent) {
            Err("no client certificate is acceptable to it")
        } else {
            Ok(())
        }
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.progress.stage() == Stage::Encrypted
    }
}

type Maker = MakeRustlsConnect;
type Stream = Watched<<Maker as MakeTlsConnect<Watched<Socket>>>::Stream>;

impl TlsConnect<Watched<Socket>> for Connector {
    type Stream = Stream;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = std::io::Result<Stream>> + Send>>;

    fn connect(self, socket: Watched<Socket>) -> Self::Future {
        self.progress.set(Stage::Handshake);
        Box::pin(async move {
            let config = self.config.map_err(std::io::Error::other)?;
            let mut maker = Maker::new(ClientConfig::clone(&config));
            let Ok(handshake) = MakeTlsConnect::<Watched<Socket>>::make_tls_connect(&mut maker, &self.server);
            let stream = handshake.connect(socket).await?;
            self.progress.set(Stage::Encrypted);
            Ok(Watched::new(stream, self.watch))
        })
    }
}

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
            rustls::Error::AlertReceived(alert) => Self::Other(alert_text(*alert)),
            rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
                Self::Other("the server's answer is not TLS".to_owned())
            }
            other => Self::Other(other.to_string()),
        }
    }
}

/// The text for the server's alert about the client certificate.
fn alert_text(alert: AlertDescription) -> String {
    use AlertDescription as Alert;
    let text = match alert {
        Alert::UnknownCA | Alert::BadCertificate | Alert::DecryptError => {
            "the server does not accept the client certificate (sslcert): its authorities have not signed it"
        }
        Alert::CertificateExpired => "the server reports that the client certificate (sslcert) has expired",
        Alert::CertificateRevoked => "the server reports that the client certificate (sslcert) was revoked",
        Alert::CertificateRequired => "the server requires a client certificate: give sslcert and sslkey",
        Alert::ProtocolVersion => "the server supports neither TLS 1.2 nor 1.3",
        Alert::HandshakeFailure => "the server has no cipher in common with locktop",
        Alert::UnrecognisedName => "the server does not know the requested host name",
        other => return format!("the server ended the handshake: {other:?}"),
    };
    text.to_owned()
}

impl From<TlsError> for rustls::Error {
    fn from(error: TlsError) -> Self {
        Self::InvalidCertificate(CertificateError::Other(rustls::OtherError(std::sync::Arc::new(error))))
    }
}
