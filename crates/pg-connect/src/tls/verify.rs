//! The verification of the server's certificate, by libpq's modes.
//!
//! Not accepted, unlike in libpq: signatures and keys that ring does not support (P-521, Ed448, DSA, RSA below 2048
//! bits, SHA-1), a chain to a version 1 certificate through an intermediate one, and version 1 lists of revoked
//! certificates.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, PeerMisbehaved, SignatureScheme};
use x509_cert::Certificate;
use x509_cert::der::Decode;

use super::TlsError;
use super::chain::{self, Authorities, Names, dates, issuer, period};
use super::name::By;
use super::{certificate, name};
use locktop_base::text;

/// Verifies the server's certificate as configured. The server must prove in any case that it has its key, because
/// SCRAM's channel binding relies on that.
#[derive(Debug)]
pub(super) struct Verifier {
    pub(super) provider: Arc<CryptoProvider>,
    pub(super) authorities: Option<Authorities>,
    /// The host that the certificate must be for.
    pub(super) host: Option<String>,
}

impl Verifier {
    fn verify(
        &self,
        authorities: &Authorities,
        shown: (&CertificateDer<'_>, &[CertificateDer<'_>]),
        names: Names,
        now: UnixTime,
    ) -> Result<(), TlsError> {
        let (leaf, between) = shown;
        let parsed = Certificate::from_der(leaf)
            .map_err(|error| TlsError::Certificate { reason: format!("it cannot be read: {error}") })?;
        // OpenSSL checks the Common Name against name constraints if it may be a host name; webpki does not.
        let names = if name::is_common_alone(&parsed) { Names::Unconstrained } else { names };
        let refused = match chain::verify(&self.provider, authorities, shown, names, now) {
            Ok(()) => None,
            // An authority may still have directly signed a certificate that webpki does not read.
            Err(
                webpki::Error::CaUsedAsEndEntity
                | webpki::Error::UnsupportedCertVersion
                | webpki::Error::UnknownIssuer,
            ) => {
                let direct = chain::verify_directly(&self.provider, authorities, leaf, &parsed, now);
                direct.err().map(|why| why.unwrap_or_else(|| authorities.unknown(&parsed, between, now)))
            }
            Err(error) => Some(explain(authorities, &parsed, &error)),
        };
        if let Some(refused) = refused {
            return Err(refused);
        }
        if !certificate::may_serve(&parsed) {
            let reason = "its key was issued for a purpose other than servers (key usage)".to_owned();
            return Err(TlsError::Certificate { reason });
        }
        dates(&parsed, now)
    }

    fn verify_name(
        &self,
        host: &str,
        shown: (&CertificateDer<'_>, &[CertificateDer<'_>]),
        now: UnixTime,
    ) -> Result<(), TlsError> {
        let parsed = Certificate::from_der(shown.0)
            .map_err(|error| TlsError::Certificate { reason: format!("it cannot be read: {error}") })?;
        let other = |names| TlsError::OtherName { names, host: text::one_line(host).into_owned() };
        match (name::check(&parsed, host).map_err(other)?, &self.authorities) {
            (By::CommonName, Some(authorities)) => {
                self.verify(authorities, shown, Names::Unconstrained, now).map_err(|_| TlsError::Certificate {
                    reason: "its authority can sign only certain names, which cannot be verified for a Common Name".to_owned(),
                })
            }
            _ => Ok(()),
        }
    }
}

fn explain(authorities: &Authorities, leaf: &Certificate, error: &webpki::Error) -> TlsError {
    use webpki::Error;

    let (from, until) = period(leaf);
    let reason = match error {
        // The second one ends before it begins.
        Error::CertExpired { .. } | Error::InvalidCertValidity => return TlsError::Expired { until },
        Error::CertNotValidYet { .. } => return TlsError::NotYetValid { from },
        Error::CertRevoked => "it was revoked (sslcrl)".to_owned(),
        Error::UnknownRevocationStatus => {
            "sslcrl has no list of its authority, so it could be revoked".to_owned()
        }
        Error::CrlExpired { .. } => {
            "the list of revoked certificates (sslcrl, sslcrldir) is out of date".to_owned()
        }
        Error::InvalidSignatureForPublicKey => {
            format!("its signature is not that of \"{}\" in {}", issuer(leaf), authorities.described)
        }
        Error::RequiredEkuNotFoundContext(_) => "it was issued for a purpose other than servers".to_owned(),
        Error::NameConstraintViolation => "its authority is not permitted to sign its names".to_owned(),
        Error::PathLenConstraintViolated => {
            "its chain has more authorities than the first one permits".to_owned()
        }
        other => text::one_line(&other.to_string()).into_owned(),
    };
    TlsError::Certificate { reason }
}

fn public_key<'a>(cert: &'a CertificateDer<'_>) -> Result<certificate::PublicKey<'a>, rustls::Error> {
    certificate::public_key(cert).ok_or_else(|| CertificateError::BadEncoding.into())
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let shown = (end_entity, intermediates);
        if let Some(authorities) = &self.authorities {
            self.verify(authorities, shown, Names::Any, now)?;
        }
        if let Some(host) = &self.host {
            self.verify_name(host, shown, now)?;
        }
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
            .provider
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
        verify_tls13_signature_with_raw_key(
            message,
            &key,
            dss,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
