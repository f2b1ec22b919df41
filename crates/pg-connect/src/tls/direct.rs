//! Certificates that webpki does not read, but OpenSSL, and so libpq, does: X.509 version 1, and authority certificates
//! that the server uses itself. They count only if an authority of the file signed them directly.

use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, UnixTime};
use x509_cert::Certificate;

use super::authorities::{Authorities, dates, is_self_issued};
use super::error::TlsError;
use super::{certificate, kind};

/// Whether one of the authorities signed it directly. The error is empty if none did.
pub(super) fn verify(
    provider: &CryptoProvider,
    authorities: &Authorities,
    leaf: &CertificateDer<'_>,
    parsed: &Certificate,
    now: UnixTime,
) -> Result<(), Option<TlsError>> {
    // It is not known whether it was revoked.
    if !authorities.revoked.is_empty() {
        return Err(None);
    }
    // The file contains this very certificate.
    if is_self_issued(parsed) && authorities.certificates.iter().any(|root| root == leaf) {
        return Ok(());
    }
    // The signed part contains the signature algorithm, too.
    if parsed.signature_algorithm != parsed.tbs_certificate.signature || !kind::is_plain_server(parsed) {
        return Err(None);
    }
    let signed = certificate::signed(leaf).ok_or(None)?;
    for (der, issuer) in authorities.parsed() {
        let is_issuer =
            is_self_issued(&issuer) && issuer.tbs_certificate.subject == parsed.tbs_certificate.issuer;
        let is_fit =
            kind::is_authority(&issuer) && kind::is_for_servers(&issuer) && !kind::is_constrained(&issuer);
        let Some(key) = certificate::public_key(der).filter(|_| is_issuer && is_fit) else { continue };
        let algorithms = provider.signature_verification_algorithms.all.iter();
        let verified = algorithms
            .filter(|algorithm| algorithm.public_key_alg_id().as_ref() == key.algorithm)
            .filter(|algorithm| algorithm.signature_alg_id().as_ref() == signed.algorithm)
            .any(|algorithm| algorithm.verify_signature(key.key, signed.content, signed.signature).is_ok());
        if verified {
            return dates(&issuer, now).map_err(|_| Some(authorities.expired(&issuer)));
        }
    }
    Err(None)
}
