//! The public key in a certificate and the part that its issuer signed, of any version and with any extensions.
//!
//! rustls reads only certificates that it could verify: no X.509 v1, no unknown critical extension. Modes without
//! verification accept these too, as in libpq, and need only the key.
//!
//! Source: RFC 5280, section 4.1 (`Certificate`, `TBSCertificate`, `SubjectPublicKeyInfo`).

use std::path::Path;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_cert::Certificate;
use x509_cert::certificate::Version;
use x509_cert::der::oid::AssociatedOid;
use x509_cert::der::oid::db::rfc5280::ID_KP_SERVER_AUTH;
use x509_cert::ext::pkix::{BasicConstraints, ExtendedKeyUsage, KeyUsage, NameConstraints, SubjectAltName};

use super::TlsError;

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const SEQUENCE: u8 = 0x30;
/// `[0]`, which wraps the version; v1 has none.
const VERSION: u8 = 0xA0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PublicKey<'a> {
    /// The whole `SubjectPublicKeyInfo`, with its tag and length.
    pub(super) info: &'a [u8],
    /// The content of its `AlgorithmIdentifier`.
    pub(super) algorithm: &'a [u8],
    /// The bits of the key; the format depends on the algorithm.
    pub(super) key: &'a [u8],
}

/// The key of a DER certificate.
pub(super) fn public_key(certificate: &[u8]) -> Option<PublicKey<'_>> {
    let mut certificate = Der(Der(certificate).expect(SEQUENCE)?.content);
    let mut fields = Der(certificate.expect(SEQUENCE)?.content);
    let first = fields.element()?;
    if first.tag == VERSION {
        fields.expect(INTEGER)?; // serial number
    } else if first.tag != INTEGER {
        return None;
    }
    for _signature_issuer_validity_subject in 0..4 {
        fields.expect(SEQUENCE)?;
    }
    let info = fields.expect(SEQUENCE)?;
    let mut parts = Der(info.content);
    let algorithm = parts.expect(SEQUENCE)?.content;
    Some(PublicKey { info: info.whole, algorithm, key: bits(&mut parts)? })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Signed<'a> {
    /// The signed part: the whole `TBSCertificate`, with its tag and length.
    pub(super) content: &'a [u8],
    /// The content of the signature's `AlgorithmIdentifier`.
    pub(super) algorithm: &'a [u8],
    pub(super) signature: &'a [u8],
}

/// The signed part of a DER certificate, and its signature.
pub(super) fn signed(certificate: &[u8]) -> Option<Signed<'_>> {
    let mut certificate = Der(Der(certificate).expect(SEQUENCE)?.content);
    let content = certificate.expect(SEQUENCE)?.whole;
    let algorithm = certificate.expect(SEQUENCE)?.content;
    Some(Signed { content, algorithm, signature: bits(&mut certificate)? })
}

/// A bit string; the first byte counts the unused bits of the last byte: none, in a key or a signature.
fn bits<'a>(parts: &mut Der<'a>) -> Option<&'a [u8]> {
    match parts.expect(BIT_STRING)?.content.split_first() {
        Some((0, bits)) => Some(bits),
        _ => None,
    }
}

/// The unread rest of some DER.
struct Der<'a>(&'a [u8]);

struct Element<'a> {
    tag: u8,
    content: &'a [u8],
    /// With tag and length.
    whole: &'a [u8],
}

impl<'a> Der<'a> {
    fn expect(&mut self, tag: u8) -> Option<Element<'a>> {
        self.element().filter(|element| element.tag == tag)
    }

    fn element(&mut self) -> Option<Element<'a>> {
        let (&tag, rest) = self.0.split_first()?;
        let (&short, rest) = rest.split_first()?;
        let (length, rest) = if short < 0x80 {
            (usize::from(short), rest)
        } else {
            let (bytes, rest) = rest.split_at_checked(usize::from(short & 0x7F))?;
            if bytes.is_empty() || bytes.len() > 3 {
                return None;
            }
            (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
        };
        let (content, after) = rest.split_at_checked(length)?;
        let whole = self.0.get(..self.0.len() - after.len())?;
        self.0 = after;
        Some(Element { tag, content, whole })
    }
}

/// The certificates in a file; at least one.
pub(super) fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = read(file)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(TlsError::Empty { file: file.to_owned(), what: "certificate" }),
    }
}

/// Reads a regular file: reading another kind may never end.
pub(super) fn read(file: &Path) -> Result<Vec<u8>, TlsError> {
    let unreadable = |reason: String| TlsError::Unreadable { file: file.to_owned(), reason };
    let metadata = std::fs::metadata(file).map_err(|error| unreadable(error.to_string()))?;
    if !metadata.is_file() {
        return Err(unreadable("it is not a plain file".to_owned()));
    }
    std::fs::read(file).map_err(|error| unreadable(error.to_string()))
}

// The uses that a certificate's extensions allow.
// Source: RFC 5280, section 4.2, and `check_ca` and `check_purpose_ssl_server` in OpenSSL's `crypto/x509/v3_purp.c`.

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{PublicKey, public_key};

    fn der(tag: u8, content: &[u8]) -> Vec<u8> {
        let length = content.len();
        let mut out = vec![tag];
        match u8::try_from(length) {
            Ok(short) if short < 0x80 => out.push(short),
            _ => out.extend([0x82, u8::try_from(length >> 8).unwrap(), u8::try_from(length & 0xFF).unwrap()]),
        }
        out.extend(content);
        out
    }

    fn certificate(version: Option<u8>, key: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let info = der(0x30, &[der(0x30, b"algorithm"), der(0x03, &[&[0], key].concat())].concat());
        let version = version.map(|version| der(0xA0, &der(0x02, &[version]))).unwrap_or_default();
        let names = der(0x30, b"any").repeat(4);
        let fields = [version, der(0x02, &[7]), names, info.clone(), der(0xA3, b"extensions")].concat();
        let whole = der(0x30, &[der(0x30, &fields), der(0x30, b"how"), der(0x03, b"signature")].concat());
        (whole, info)
    }

    #[test]
    fn finds_the_key_in_every_version() {
        for version in [None, Some(0), Some(2)] {
            for key in [&b"short"[..], &[9; 400]] {
                let (whole, info) = certificate(version, key);
                let found = public_key(&whole);
                assert_eq!(
                    found,
                    Some(PublicKey { info: &info, algorithm: b"algorithm", key }),
                    "{version:?}"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn takes_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = public_key(&bytes);
        }

        #[test]
        fn no_part_of_a_certificate_is_one(cut in 0_usize..400) {
            let (whole, _) = certificate(Some(2), &[9; 400]);
            prop_assert_eq!(public_key(&whole[..cut]), None);
        }
    }
}
