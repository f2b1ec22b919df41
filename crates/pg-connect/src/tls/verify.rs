//! The verification of the server's certificate, by libpq's modes.
//!
//! The chain is verified by webpki. It refuses some certificates that OpenSSL, and so libpq, takes: of X.509 version 1, and those of an
//! authority that the server uses itself. Where an authority in the file has signed such a one directly, that is verified here. Not
//! taken, unlike libpq: signatures and keys that ring does not know (P-521, Ed448, DSA, RSA below 2048 bits, SHA-1), and a chain to a
//! version 1 certificate over one in between. Lists of revoked certificates have to be of version 2.

use std::sync::Arc;
use std::time::Duration;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{
    CertificateDer, CertificateRevocationListDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::{CertificateError, DigitallySignedStruct, PeerMisbehaved, RootCertStore, SignatureScheme};
use x509_cert::Certificate;
use x509_cert::der::Decode;

use super::certificate;
use super::error::TlsError;
use super::{kind, name};
use locktop_base::text;

/// The most of a name in a certificate that is repeated.
const NAME: usize = 120;

/// Authorities whose signature counts.
#[derive(Debug)]
pub(super) struct Authorities {
    /// For people: the file, or whose they are.
    pub(super) described: String,
    pub(super) certificates: Vec<CertificateDer<'static>>,
    /// Lists of revoked certificates; with one, each certificate of a chain has to be on none, and known to one.
    pub(super) revoked: Vec<CertificateRevocationListDer<'static>>,
}

/// What of the server's certificate is verified. That the server has its key is, in any case: SCRAM's channel binding rests on that.
#[derive(Debug)]
pub(super) struct Verifier {
    provider: Arc<CryptoProvider>,
    authorities: Option<Authorities>,
    /// The host that has to be its.
    host: Option<String>,
}

impl Verifier {
    pub(super) fn new(
        provider: Arc<CryptoProvider>,
        authorities: Option<Authorities>,
        host: Option<String>,
    ) -> Self {
        Self { provider, authorities, host }
    }

    fn verify(
        &self,
        authorities: &Authorities,
        leaf: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), TlsError> {
        let parsed = Certificate::from_der(leaf)
            .map_err(|error| TlsError::Certificate { reason: format!("it cannot be read: {error}") })?;
        // The order of OpenSSL's complaints: the chain, then the dates along it.
        let chain = self.chain(authorities, leaf, between, now);
        let direct = |why: TlsError| {
            let answer = self.directly(authorities, leaf, &parsed, now);
            answer.map_err(|own| own.unwrap_or(why))
        };
        match chain {
            Ok(()) => {}
            Err(Unverified::Refused(error)) => return Err(explain(authorities, &parsed, &error)),
            Err(Unverified::Lists) => return Err(TlsError::Lists),
            Err(Unverified::Unread(reason)) => {
                let known =
                    authorities.certificates.iter().filter_map(|root| Certificate::from_der(root).ok());
                let issuer = &parsed.tbs_certificate.issuer;
                direct(if known.into_iter().any(|root| root.tbs_certificate.subject == *issuer) {
                    TlsError::Certificate { reason }
                } else {
                    unknown(authorities, &parsed, between, now)
                })?;
            }
            Err(Unverified::NoIssuer) => direct(unknown(authorities, &parsed, between, now))?,
        }
        dates(&parsed, now)
    }

    fn chain(
        &self,
        authorities: &Authorities,
        leaf: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Unverified> {
        let mut roots = RootCertStore::empty();
        // One that is out of date does not count; the library knows no dates of theirs.
        let valid = |root: &&CertificateDer<'_>| {
            Certificate::from_der(root)
                .is_ok_and(|root| dates(&root, now).is_ok() && kind::is_authority(&root))
        };
        roots.add_parsable_certificates(authorities.certificates.iter().filter(valid).cloned());
        if roots.is_empty() {
            return Err(Unverified::NoIssuer);
        }
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&self.provider))
                .with_crls(authorities.revoked.iter().cloned())
                .build()
                .map_err(|_| Unverified::Lists)?;
        // The name is compared by other rules.
        let any = ServerName::IpAddress(std::net::Ipv4Addr::UNSPECIFIED.into());
        match verifier.verify_server_cert(leaf, between, &any, &[], now) {
            Ok(_) => Ok(()),
            Err(rustls::Error::InvalidCertificate(error)) => match error {
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => Ok(()),
                CertificateError::UnknownIssuer => Err(Unverified::NoIssuer),
                CertificateError::Other(other) => Err(Unverified::Unread(other.to_string())),
                CertificateError::BadEncoding => Err(Unverified::Unread("it cannot be read".to_owned())),
                error => Err(Unverified::Refused(error)),
            },
            Err(other) => Err(Unverified::Unread(other.to_string())),
        }
    }

    /// Whether one of the authorities signed it themselves. The error is empty where none did.
    fn directly(
        &self,
        authorities: &Authorities,
        leaf: &CertificateDer<'_>,
        parsed: &Certificate,
        now: UnixTime,
    ) -> Result<(), Option<TlsError>> {
        // The file has this very certificate.
        let itself = authorities.certificates.iter().any(|root| root == leaf);
        if itself && parsed.tbs_certificate.issuer == parsed.tbs_certificate.subject {
            return Ok(());
        }
        // Whether it was revoked cannot be said.
        if !authorities.revoked.is_empty() || !kind::is_plain_server(parsed) {
            return Err(None);
        }
        let signed = certificate::signed(leaf).ok_or(None)?;
        for root in &authorities.certificates {
            let Ok(issuer) = Certificate::from_der(root) else { continue };
            let Some(key) = certificate::public_key(root) else { continue };
            let is_issuer = issuer.tbs_certificate.subject == parsed.tbs_certificate.issuer;
            if !is_issuer || !kind::is_authority(&issuer) || kind::is_constrained(&issuer) {
                continue;
            }
            let algorithms = self.provider.signature_verification_algorithms.all.iter();
            let verified = algorithms
                .filter(|algorithm| algorithm.public_key_alg_id().as_ref() == key.algorithm)
                .filter(|algorithm| algorithm.signature_alg_id().as_ref() == signed.algorithm)
                .any(|algorithm| {
                    algorithm.verify_signature(key.key, signed.content, signed.signature).is_ok()
                });
            if verified {
                return dates(&issuer, now).map_err(|_| Some(root_expired(authorities, &issuer)));
            }
        }
        Err(None)
    }
}

fn explain(authorities: &Authorities, leaf: &Certificate, error: &CertificateError) -> TlsError {
    let (from, until) = period(leaf);
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => TlsError::Expired { until },
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            TlsError::NotYetValid { from }
        }
        CertificateError::Revoked => TlsError::Certificate { reason: "it was revoked (sslcrl)".to_owned() },
        CertificateError::UnknownRevocationStatus => TlsError::Certificate {
            reason: "no list of sslcrl is of its authority, so that it may be revoked".to_owned(),
        },
        CertificateError::BadSignature => TlsError::Certificate {
            reason: format!("its signature is not that of \"{}\" in {}", issuer(leaf), authorities.described),
        },
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            TlsError::Certificate { reason: "it was made for another purpose than servers".to_owned() }
        }
        other => TlsError::Certificate { reason: text::one_line(&other.to_string()).into_owned() },
    }
}

/// Why a chain was not verified.
enum Unverified {
    /// No authority has signed it.
    NoIssuer,
    /// The lists of revoked certificates are not what webpki reads.
    Lists,
    /// It is not what webpki reads.
    Unread(String),
    /// It is wrong.
    Refused(CertificateError),
}

/// Nobody who is trusted has signed it: says which authority was missed, and whether it is there and out of date.
fn unknown(
    authorities: &Authorities,
    leaf: &Certificate,
    between: &[CertificateDer<'_>],
    now: UnixTime,
) -> TlsError {
    // The last one that the server showed says who would have to be known.
    let last = between.iter().rev().find_map(|certificate| Certificate::from_der(certificate).ok());
    let last = last.as_ref().unwrap_or(leaf);
    for root in authorities.certificates.iter().filter_map(|root| Certificate::from_der(root).ok()) {
        let is_named =
            [last, leaf].iter().any(|one| one.tbs_certificate.issuer == root.tbs_certificate.subject);
        if is_named && dates(&root, now).is_err() {
            return root_expired(authorities, &root);
        }
    }
    let roots = authorities.described.clone();
    if leaf.tbs_certificate.issuer == leaf.tbs_certificate.subject {
        TlsError::SelfSigned { subject: subject(leaf), roots }
    } else {
        TlsError::UnknownIssuer { issuer: issuer(last), roots }
    }
}

fn root_expired(authorities: &Authorities, root: &Certificate) -> TlsError {
    let (from, until) = period(root);
    TlsError::RootExpired { subject: subject(root), roots: authorities.described.clone(), from, until }
}

fn subject(certificate: &Certificate) -> String {
    shown(&certificate.tbs_certificate.subject.to_string())
}

fn issuer(certificate: &Certificate) -> String {
    shown(&certificate.tbs_certificate.issuer.to_string())
}

fn shown(name: &str) -> String {
    text::fit(&text::one_line_prefix(name, NAME), NAME).into_owned()
}

/// From when until when it is valid, for people.
fn period(certificate: &Certificate) -> (String, String) {
    let validity = certificate.tbs_certificate.validity;
    let shown =
        |time: x509_cert::time::Time| time.to_date_time().to_string().replace('T', " ").replace('Z', " UTC");
    (shown(validity.not_before), shown(validity.not_after))
}

fn dates(certificate: &Certificate, now: UnixTime) -> Result<(), TlsError> {
    let validity = certificate.tbs_certificate.validity;
    let now = Duration::from_secs(now.as_secs());
    let (from, until) = period(certificate);
    if now < validity.not_before.to_unix_duration() {
        return Err(TlsError::NotYetValid { from });
    }
    if now > validity.not_after.to_unix_duration() {
        return Err(TlsError::Expired { until });
    }
    Ok(())
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
        if let Some(authorities) = &self.authorities {
            self.verify(authorities, end_entity, intermediates, now)?;
        }
        if let Some(host) = &self.host {
            let parsed = Certificate::from_der(end_entity).map_err(|_| CertificateError::BadEncoding)?;
            name::check(&parsed, host)
                .map_err(|names| TlsError::OtherName { names, host: text::one_line(host).into_owned() })?;
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
