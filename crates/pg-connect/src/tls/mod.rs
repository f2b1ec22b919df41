//! TLS by libpq's modes: whether the server's certificate is verified, by which authorities and for which name, and the
//! client certificate.
//!
//! In every mode the key in the server's certificate must sign the handshake, because SCRAM's channel binding relies on
//! that.

mod certificate;
mod chain;
mod error;
mod name;
mod settings;
mod verify;

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::auth_watch::{AuthWatch, Watched};
use crate::conninfo::{CertMode, RequireAuth, TlsOptions};
use crate::socket::Socket;
pub(crate) use error::TlsError;
use settings::Shown;

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
}

impl Connector {
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
