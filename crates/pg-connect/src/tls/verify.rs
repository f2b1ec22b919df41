//! The verification of the server's certificate, by libpq's modes.
//!
//! Not accepted, unlike in libpq: signatures and keys that ring does not support (P-521, Ed448, DSA, RSA below 2048
//! bits, SHA-1), a chain to a version 1 certificate through an intermediate one, and version 1 lists of revoked
//! certificates.

use std::net::IpAddr;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, PeerMisbehaved, SignatureScheme};
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::der::oid::db::rfc4519::CN;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

use super::TlsError;
use super::certificate;
use super::chain::{self, Authorities, Names, dates, issuer, period};
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
        let parsed = parse(leaf)?;
        // OpenSSL checks the Common Name against name constraints if it may be a host name; webpki does not.
        let names = if is_common_alone(&parsed) { Names::Unconstrained } else { names };
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
        let parsed = parse(shown.0)?;
        let other = |names| TlsError::OtherName { names, host: text::one_line(host).into_owned() };
        match (check(&parsed, host).map_err(other)?, &self.authorities) {
            (By::CommonName, Some(authorities)) => {
                self.verify(authorities, shown, Names::Unconstrained, now).map_err(|_| TlsError::Certificate {
                    reason: "its authority can sign only certain names, which cannot be verified for a Common Name".to_owned(),
                })
            }
            _ => Ok(()),
        }
    }
}

fn parse(certificate: &CertificateDer<'_>) -> Result<Certificate, TlsError> {
    Certificate::from_der(certificate)
        .map_err(|error| TlsError::Certificate { reason: format!("it cannot be read: {error}") })
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

// Whether a certificate is for a host, by libpq's rules, which are older than those of browsers: a wildcard matches only
// the first label, and the Common Name counts if there is no alternative name of the host's kind.
// Source: "SSL Client Certificate … verify-full" in the libpq chapter, and `pq_verify_peer_name_matches_certificate` in
// `src/interfaces/libpq/fe-secure-common.c` and `fe-secure-openssl.c`.

/// Maximum number of names in an error.
const NAMES: usize = 5;

/// The place of the matching name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    /// In the alternative names, which are checked against the authorities' name constraints.
    Alternative,
    /// In the subject's Common Name, which counts only without alternative names.
    CommonName,
}

/// Whether the certificate is for `host`, a name or an address; the error has the names in the certificate.
fn check(certificate: &Certificate, host: &str) -> Result<By, String> {
    let address: Option<IpAddr> = host.parse().ok();
    let alternatives = alternatives(certificate);
    let mut names = Vec::new();
    // An alternative name of the host's kind disables the Common Name; so does one that cannot be parsed, because it may
    // be of that kind.
    let mut common = alternatives.is_some();
    for name in alternatives.iter().flatten() {
        match name {
            GeneralName::DnsName(name) => {
                common &= address.is_some();
                if matches_name(name.as_str(), host) {
                    return Ok(By::Alternative);
                }
                names.push(name.as_str().to_owned());
            }
            GeneralName::IpAddress(bytes) => {
                common &= address.is_none();
                let found = ip(bytes.as_bytes());
                if found.is_some() && found == address {
                    return Ok(By::Alternative);
                }
                names.extend(found.map(|found| found.to_string()));
            }
            _ => {}
        }
    }
    if common && let Some(name) = common_name(certificate) {
        if matches_name(&name, host) {
            return Ok(By::CommonName);
        }
        names.push(name);
    }
    Err(listed(&names))
}

/// Whether only its Common Name shows the host.
fn is_common_alone(certificate: &Certificate) -> bool {
    let names = alternatives(certificate);
    let has_name = names.iter().flatten().any(|name| matches!(name, GeneralName::DnsName(_)));
    !has_name && common_name(certificate).is_some_and(|name| name.contains('.'))
}

fn listed(names: &[String]) -> String {
    let names: std::collections::BTreeSet<&String> = names.iter().collect();
    let shown: Vec<_> =
        names.iter().take(NAMES).map(|name| format!("\"{}\"", text::one_line(name))).collect();
    match names.len() {
        0 => "no host".to_owned(),
        all if all > NAMES => format!("{} and {} more", shown.join(", "), all - NAMES),
        _ => shown.join(", "),
    }
}

/// Matches a certificate's pattern with a host name, as case-insensitive ASCII.
fn matches_name(pattern: &str, host: &str) -> bool {
    // A C program would take a NUL byte for the end.
    if pattern.contains('\0') {
        return false;
    }
    if pattern.eq_ignore_ascii_case(host) {
        return true;
    }
    let Some(rest) = pattern.strip_prefix('*').filter(|rest| rest.starts_with('.') && rest.len() >= 2) else {
        return false;
    };
    let Some((first, domain)) = host.find('.').map(|dot| host.split_at(dot)) else { return false };
    !first.is_empty() && domain.eq_ignore_ascii_case(rest)
}

/// `None` if they cannot be parsed.
fn alternatives(certificate: &Certificate) -> Option<Vec<GeneralName>> {
    let found = certificate.tbs_certificate.get::<SubjectAltName>().ok()?;
    Some(found.map(|(_, names)| names.0).unwrap_or_default())
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    four.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

/// The first one; there is hardly ever a second.
fn common_name(certificate: &Certificate) -> Option<String> {
    let parts = certificate.tbs_certificate.subject.0.iter().flat_map(|part| part.0.iter());
    let value = parts.filter(|part| part.oid == CN).map(|part| &part.value).next()?;
    // Any kind of string that is a superset of ASCII.
    String::from_utf8(value.value().to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::matches_name;

    #[test]
    fn a_wildcard_is_the_first_label_alone() {
        for (pattern, host, expected) in [
            ("db.example.com", "db.example.com", true),
            ("DB.example.com", "db.EXAMPLE.com", true),
            ("db.example.com", "db2.example.com", false),
            ("*.example.com", "db.example.com", true),
            ("*.example.com", "a.db.example.com", false),
            ("*.example.com", "example.com", false),
            ("*.example.com", ".example.com", false),
            ("d*.example.com", "db.example.com", false),
            ("*", "db", false),
            ("*.", "db.", false),
            ("db.example.com\0.evil.org", "db.example.com", false),
            ("", "db", false),
        ] {
            assert_eq!(matches_name(pattern, host), expected, "{pattern} {host}");
        }
    }
}
