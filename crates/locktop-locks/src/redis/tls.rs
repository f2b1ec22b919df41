//! TLS to a Redis server: which certificates are trusted, the client's own certificate, and the reasons for failures.
//!
//! A certificate, including its name, is verified by the system's authorities, or by those in a file that the URL names.
//! The only exception is explicit in the URL: `#insecure`.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use locktop_base::text::one_line;
use redis::RedisError;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{self, CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, InvalidMessage, RootCertStore,
    SignatureScheme,
};
use tokio_rustls::TlsConnector;

use super::{RedisUrlError, TlsProblem};

/// The URL parameters that name files, with the names of redis-py.
const AUTHORITIES: &str = "ssl_ca_certs";
const CERTIFICATE: &str = "ssl_certfile";
const KEY: &str = "ssl_keyfile";

/// The files that a URL names. They are read at each connection, since a certificate may be renewed while the program
/// runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TlsFiles {
    /// Authorities in place of the system's.
    authorities: Option<PathBuf>,
    /// The client's certificate and its key.
    identity: Option<(PathBuf, PathBuf)>,
}

impl TlsFiles {
    /// Reads the parameters of a URL. An unknown one that concerns TLS is not ignored: it may be the one that matters.
    pub(super) fn of<K: AsRef<str>, V: AsRef<str>>(
        parameters: impl Iterator<Item = (K, V)>,
        encrypted: bool,
    ) -> Result<Self, RedisUrlError> {
        let (mut authorities, mut certificate, mut key) = (None, None, None);
        for (name, value) in parameters {
            let place = match name.as_ref() {
                AUTHORITIES => &mut authorities,
                CERTIFICATE => &mut certificate,
                KEY => &mut key,
                other if other.starts_with("ssl") || other.starts_with("tls") => {
                    return Err(RedisUrlError::Parameter(one_line(other).into_owned()));
                }
                _ => continue,
            };
            *place = Some(PathBuf::from(value.as_ref()));
        }
        let given = authorities.is_some() || certificate.is_some() || key.is_some();
        if given && !encrypted {
            return Err(RedisUrlError::Plain);
        }
        let identity = match (certificate, key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => return Err(RedisUrlError::HalfAnIdentity),
        };
        Ok(Self { authorities, identity })
    }

    /// Creates a TLS connector with the current content of the files.
    pub(super) async fn connector(&self, insecure: bool) -> Result<TlsConnector, TlsProblem> {
        let unfit = |error: rustls::Error| TlsProblem::Files(one_line(&error.to_string()).into_owned());
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_safe_default_protocol_versions().map_err(unfit)?;
        let builder = if insecure {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(Anyone(provider)))
        } else {
            builder.with_root_certificates(self.roots().await?)
        };
        let config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = certificates(&read(certificate).await?, certificate)?;
                let bad = |error: pem::Error| TlsProblem::Files(format!("{}: {error}", key.display()));
                let key = PrivateKeyDer::from_pem_slice(&read(key).await?).map_err(bad)?;
                builder.with_client_auth_cert(chain, key).map_err(unfit)?
            }
        };
        Ok(TlsConnector::from(Arc::new(config)))
    }

    /// The trusted authorities: those of the file, or else the system's.
    async fn roots(&self) -> Result<RootCertStore, TlsProblem> {
        let mut roots = RootCertStore::empty();
        match &self.authorities {
            Some(file) => {
                for certificate in certificates(&read(file).await?, file)? {
                    let bad =
                        |error: rustls::Error| TlsProblem::Files(format!("{}: {error}", file.display()));
                    roots.add(certificate).map_err(bad)?;
                }
            }
            None => drop(roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
        }
        Ok(roots)
    }
}

/// The certificates of a file. A file without any is an error: otherwise the server would be blamed.
fn certificates(text: &[u8], file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsProblem> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let read = read.map_err(|error| TlsProblem::Files(format!("{}: {error}", file.display())))?;
    if read.is_empty() {
        return Err(TlsProblem::Files(format!("{} has no certificate in PEM", file.display())));
    }
    Ok(read)
}

/// Accepts any certificate, as `#insecure` requests. Its key must sign the handshake all the same.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        crypto::verify_tls12_signature(
            message,
            certificate,
            signed,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        crypto::verify_tls13_signature(
            message,
            certificate,
            signed,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

async fn read(file: &Path) -> Result<Vec<u8>, TlsProblem> {
    let unread = |error: io::Error| TlsProblem::Files(format!("cannot read {}: {error}", file.display()));
    tokio::fs::read(file).await.map_err(unread)
}

/// The TLS problem, if the error is about TLS.
pub(super) fn problem(error: &RedisError) -> Option<TlsProblem> {
    Some(match rustls_error(error)? {
        rustls::Error::InvalidCertificate(wrong) => match wrong {
            CertificateError::NotValidForNameContext { presented, .. } => {
                let names = if presented.is_empty() { "no name".to_owned() } else { presented.join(", ") };
                TlsProblem::OtherName(one_line(&names).into_owned())
            }
            CertificateError::NotValidForName => TlsProblem::OtherName("others".to_owned()),
            CertificateError::UnknownIssuer => {
                TlsProblem::Untrusted("no trusted authority has signed it".to_owned())
            }
            other => TlsProblem::Untrusted(one_line(&other.to_string()).into_owned()),
        },
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => TlsProblem::NoTls,
        rustls::Error::AlertReceived(
            AlertDescription::CertificateRequired
            | AlertDescription::HandshakeFailure
            | AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown,
        ) => TlsProblem::WhoAreYou,
        other => TlsProblem::Other(one_line(&other.to_string()).into_owned()),
    })
}

/// The TLS error inside an I/O error, however it is wrapped.
fn rustls_error(error: &RedisError) -> Option<&rustls::Error> {
    let mut source = error.source();
    while let Some(error) = source {
        let shared = error
            .downcast_ref::<Arc<dyn Error + Send + Sync>>()
            .map(|error| &**error as &(dyn Error + 'static));
        let io = shared.unwrap_or(error).downcast_ref::<io::Error>();
        if let Some(found) = io.and_then(io::Error::get_ref).and_then(|inner| inner.downcast_ref()) {
            return Some(found);
        }
        source = error.source();
    }
    None
}
