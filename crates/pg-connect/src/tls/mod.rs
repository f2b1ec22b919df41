//! TLS without verification of the certificate: what `prefer` and `require` mean in libpq.
//!
//! The key that the certificate names must still sign the handshake: SCRAM's channel binding rests on that.

mod certificate;

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, PeerMisbehaved, SignatureScheme};
use tokio_postgres::Socket;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How far a connection came, for the error when it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Stage {
    /// No answer from the network.
    #[default]
    Reaching,
    /// The connection is accepted.
    Reached,
    /// The server has TLS.
    Handshake,
    /// TLS is there.
    Encrypted,
}

/// The stage, written by the connector and read after the attempt.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress(Arc<Mutex<Stage>>);

impl Progress {
    pub(super) fn stage(&self) -> Stage {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, stage: Stage) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = stage;
    }
}

/// Makes TLS connections, for [`tokio_postgres::Config::connect`] and for cancelling a query.
#[derive(Clone)]
pub struct Connector {
    inner: MakeRustlsConnect,
    progress: Progress,
}

impl Connector {
    /// A connector that verifies no certificate.
    ///
    /// # Errors
    /// When the cryptography this was built with has no version of TLS in common with rustls.
    pub fn new() -> Result<Self, rustls::Error> {
        Self::watched(Progress::default())
    }

    pub(super) fn watched(progress: Progress) -> Result<Self, rustls::Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
            .with_no_client_auth();
        Ok(Self { inner: MakeRustlsConnect::new(config), progress })
    }
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connector").field("progress", &self.progress).finish_non_exhaustive()
    }
}

type Inner = <MakeRustlsConnect as MakeTlsConnect<Socket>>::TlsConnect;
type Stream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;

/// One handshake.
pub struct Handshake {
    inner: Inner,
    progress: Progress,
}

impl MakeTlsConnect<Socket> for Connector {
    type Stream = Stream;
    type TlsConnect = Handshake;
    type Error = std::convert::Infallible;

    // Called once the socket is connected, whether TLS follows or not.
    fn make_tls_connect(&mut self, domain: &str) -> Result<Handshake, Self::Error> {
        self.progress.set(Stage::Reached);
        let inner = MakeTlsConnect::<Socket>::make_tls_connect(&mut self.inner, domain)?;
        Ok(Handshake { inner, progress: self.progress.clone() })
    }
}

impl TlsConnect<Socket> for Handshake {
    type Stream = Stream;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = std::io::Result<Stream>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        self.progress.set(Stage::Handshake);
        let handshake = self.inner.connect(socket);
        Box::pin(async move {
            let stream = handshake.await?;
            self.progress.set(Stage::Encrypted);
            Ok(stream)
        })
    }
}

fn public_key<'a>(cert: &'a CertificateDer<'_>) -> Result<certificate::PublicKey<'a>, rustls::Error> {
    certificate::public_key(cert).ok_or_else(|| CertificateError::BadEncoding.into())
}

/// Takes any certificate, and verifies that the server has its key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let key = public_key(cert)?;
        let (_, algorithms) = self
            .0
            .signature_verification_algorithms
            .mapping
            .iter()
            .find(|(scheme, _)| *scheme == dss.scheme)
            .ok_or(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme)?;
        let signed = algorithms.iter().any(|algorithm| {
            algorithm.public_key_alg_id().as_ref() == key.algorithm
                && algorithm.verify_signature(key.key, message, dss.signature()).is_ok()
        });
        if signed {
            Ok(HandshakeSignatureValid::assertion())
        } else {
            Err(CertificateError::BadSignature.into())
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let key = SubjectPublicKeyInfoDer::from(public_key(cert)?.info);
        verify_tls13_signature_with_raw_key(message, &key, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
