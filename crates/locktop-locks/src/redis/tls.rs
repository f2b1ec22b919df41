//! TLS to a Redis server: whose certificate is trusted, who we are there, and what was wrong when it does not come about.
//!
//! A certificate is verified, name and all, by the system's authorities, or by those in a file that the URL names. The
//! one exception is said aloud in the URL: `#insecure`.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redis::{Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, RedisError, TlsCertificates};
use rustls::{AlertDescription, CertificateError, InvalidMessage};

use super::error::{RedisUrlError, TlsTrouble};

/// The parameters of a URL that name files, as redis-py calls them.
const AUTHORITIES: &str = "ssl_ca_certs";
const CERTIFICATE: &str = "ssl_certfile";
const KEY: &str = "ssl_keyfile";

/// The files that a URL names. They are read at each connection: a certificate may be renewed while we run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TlsFiles {
    /// Authorities in place of the system's.
    authorities: Option<PathBuf>,
    /// Our certificate and its key.
    identity: Option<(PathBuf, PathBuf)>,
}

impl TlsFiles {
    /// Reads the parameters of a URL. One that is about TLS and not known is not passed over: it may have been the one
    /// that matters.
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
                    return Err(RedisUrlError::Parameter(locktop_base::text::one_line(other).into_owned()));
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

    /// A client for this address, with what is in the files by now.
    pub(super) async fn client(&self, info: &ConnectionInfo) -> Result<Client, TlsTrouble> {
        let unfit = |error: RedisError| {
            TlsTrouble::Files(locktop_base::text::one_line(&error.to_string()).into_owned())
        };
        if !matches!(info.addr(), ConnectionAddr::TcpTls { .. }) {
            return Client::open(info.clone()).map_err(unfit);
        }
        // Somebody who links this library may have several; then none is taken without being asked for, with a panic.
        // Where there is one it stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        if *self == Self::default() {
            return Client::open(info.clone()).map_err(unfit);
        }
        let root_cert = match &self.authorities {
            Some(file) => Some(read(file).await?),
            None => None,
        };
        let client_tls = match &self.identity {
            Some((certificate, key)) => {
                Some(ClientTlsConfig { client_cert: read(certificate).await?, client_key: read(key).await? })
            }
            None => None,
        };
        // Certificates that are none would leave an empty list, and the server would be blamed.
        if root_cert.as_ref().is_some_and(|pem| !has_certificate(pem)) {
            let file = self.authorities.as_deref().unwrap_or(Path::new("")).display();
            return Err(TlsTrouble::Files(format!("{file} has no certificate in PEM")));
        }
        Client::build_with_tls(info.clone(), TlsCertificates { client_tls, root_cert }).map_err(unfit)
    }
}

async fn read(file: &Path) -> Result<Vec<u8>, TlsTrouble> {
    let unread = |error: io::Error| TlsTrouble::Files(format!("cannot read {}: {error}", file.display()));
    tokio::fs::read(file).await.map_err(unread)
}

fn has_certificate(pem: &[u8]) -> bool {
    String::from_utf8_lossy(pem).contains("-----BEGIN CERTIFICATE-----")
}

/// What was wrong with TLS, if that is what the error is about.
pub(super) fn trouble(error: &RedisError) -> Option<TlsTrouble> {
    Some(match rustls_error(error)? {
        rustls::Error::InvalidCertificate(wrong) => match wrong {
            CertificateError::NotValidForNameContext { presented, .. } => {
                let names = if presented.is_empty() { "no name".to_owned() } else { presented.join(", ") };
                TlsTrouble::OtherName(locktop_base::text::one_line(&names).into_owned())
            }
            CertificateError::NotValidForName => TlsTrouble::OtherName("others".to_owned()),
            CertificateError::UnknownIssuer => {
                TlsTrouble::Untrusted("nobody who is trusted has signed it".to_owned())
            }
            other => TlsTrouble::Untrusted(locktop_base::text::one_line(&other.to_string()).into_owned()),
        },
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => TlsTrouble::NoTls,
        rustls::Error::AlertReceived(
            AlertDescription::CertificateRequired
            | AlertDescription::HandshakeFailure
            | AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown,
        ) => TlsTrouble::WhoAreYou,
        other => TlsTrouble::Other(locktop_base::text::one_line(&other.to_string()).into_owned()),
    })
}

/// The error of TLS inside of one of input and output, however it is wrapped.
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
