//! The uses that a certificate's extensions allow.
//!
//! Source: RFC 5280, section 4.2, and `check_ca` and `check_purpose_ssl_server` in OpenSSL's `crypto/x509/v3_purp.c`.

use x509_cert::Certificate;
use x509_cert::certificate::Version;
use x509_cert::der::oid::AssociatedOid;
use x509_cert::der::oid::db::rfc5280::ID_KP_SERVER_AUTH;
use x509_cert::ext::pkix::{BasicConstraints, ExtendedKeyUsage, KeyUsage, NameConstraints, SubjectAltName};

/// Whether it may sign others. A version 1 certificate has no such field, and may if it is self-signed.
pub(super) fn is_authority(certificate: &Certificate) -> bool {
    let fields = &certificate.tbs_certificate;
    let Ok(usage) = fields.get::<KeyUsage>() else { return false };
    if usage.as_ref().is_some_and(|(_, usage)| !usage.key_cert_sign()) {
        return false;
    }
    match fields.get::<BasicConstraints>() {
        Ok(Some((_, constraints))) => constraints.ca,
        Ok(None) => usage.is_some() || (fields.version == Version::V1 && fields.issuer == fields.subject),
        Err(_) => false,
    }
}

/// Whether it has name constraints.
pub(super) fn is_constrained(certificate: &Certificate) -> bool {
    !matches!(certificate.tbs_certificate.get::<NameConstraints>(), Ok(None))
}

/// Whether all its critical extensions are known here, and a server may use it.
pub(super) fn is_plain_server(certificate: &Certificate) -> bool {
    let fields = &certificate.tbs_certificate;
    let known = [BasicConstraints::OID, KeyUsage::OID, ExtendedKeyUsage::OID, SubjectAltName::OID];
    let mut extensions = fields.extensions.iter().flatten();
    if extensions.any(|extension| extension.critical && !known.contains(&extension.extn_id)) {
        return false;
    }
    is_for_servers(certificate)
}

/// Whether servers may use it, or it may sign for them; true if it has no such restriction.
pub(super) fn is_for_servers(certificate: &Certificate) -> bool {
    match certificate.tbs_certificate.get::<ExtendedKeyUsage>() {
        Ok(None) => true,
        Ok(Some((_, usage))) => usage.0.contains(&ID_KP_SERVER_AUTH),
        Err(_) => false,
    }
}

/// Whether its key may be used in a handshake; true if it has no such restriction.
pub(super) fn may_serve(certificate: &Certificate) -> bool {
    match certificate.tbs_certificate.get::<KeyUsage>() {
        Ok(None) => true,
        Ok(Some((_, usage))) => {
            usage.digital_signature() || usage.key_encipherment() || usage.key_agreement()
        }
        Err(_) => false,
    }
}

/// Maximum number of authorities between it and a server's certificate; `None` for no limit.
pub(super) fn path_length(certificate: &Certificate) -> Option<u8> {
    match certificate.tbs_certificate.get::<BasicConstraints>() {
        Ok(Some((_, constraints))) => constraints.path_len_constraint,
        _ => None,
    }
}
