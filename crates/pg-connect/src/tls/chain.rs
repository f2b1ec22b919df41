//! The chain from the server's certificate to an authority, as OpenSSL verifies it.
//!
//! webpki builds it. The checks that webpki leaves to its caller are done here: the dates, purposes and path length of
//! the authority's certificate, and the key usage. Only self-issued certificates end a chain; others in the file
//! complete one, like those that the server sends.

use std::time::Duration;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, TrustAnchor, UnixTime};
use webpki::{
    CertRevocationList, EndEntityCert, ExpirationPolicy, KeyUsage, RevocationCheckDepth, RevocationOptions,
    RevocationOptionsBuilder, UnknownStatusPolicy, VerifiedPath, anchor_from_trusted_cert,
};
use x509_cert::Certificate;
use x509_cert::der::Decode;

use super::TlsError;
use super::certificate;
use locktop_base::text;

/// The accepted chains, by the name constraints of their authorities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    /// Any: webpki checks the alternative names against name constraints.
    Any,
    /// Chains without name constraints: webpki does not check the Common Name against them.
    Unconstrained,
}

struct Anchor<'a> {
    end: TrustAnchor<'a>,
    path_length: Option<u8>,
    is_constrained: bool,
}

/// Verifies the chain, its dates, purposes and signatures, and that no part of it was revoked. Names are not compared.
pub(super) fn verify(
    provider: &CryptoProvider,
    authorities: &Authorities,
    (leaf, between): (&CertificateDer<'_>, &[CertificateDer<'_>]),
    names: Names,
    now: UnixTime,
) -> Result<(), webpki::Error> {
    let leaf = EndEntityCert::try_from(leaf)?;
    let anchors = anchors(authorities, now);
    let ends: Vec<TrustAnchor<'_>> = anchors.iter().map(|anchor| anchor.end.clone()).collect();
    let pool = pool(authorities, between);
    let lists: Vec<&CertRevocationList<'_>> = authorities.revoked.iter().collect();
    let is_fit = |path: &VerifiedPath<'_>| is_fit(path, &anchors, names);
    leaf.verify_for_usage(
        provider.signature_verification_algorithms.all,
        &ends,
        &pool,
        now,
        KeyUsage::server_auth(),
        revocation(&lists),
        Some(&is_fit),
    )?;
    Ok(())
}

fn revocation<'a>(lists: &'a [&'a CertRevocationList<'a>]) -> Option<RevocationOptions<'a>> {
    let options = RevocationOptionsBuilder::new(lists).ok()?;
    // libpq's X509_V_FLAG_CRL_CHECK_ALL; an expired list does not count.
    let options =
        options.with_depth(RevocationCheckDepth::Chain).with_status_policy(UnknownStatusPolicy::Deny);
    Some(options.with_expiration_policy(ExpirationPolicy::Enforce).build())
}

fn anchors(authorities: &Authorities, now: UnixTime) -> Vec<Anchor<'_>> {
    let ends = authorities.parsed().filter(|(_, root)| {
        is_self_issued(root)
            && dates(root, now).is_ok()
            && certificate::is_authority(root)
            && certificate::is_for_servers(root)
    });
    ends.filter_map(|(der, root)| {
        Some(Anchor {
            end: anchor_from_trusted_cert(der).ok()?,
            path_length: certificate::path_length(&root),
            is_constrained: certificate::is_constrained(&root),
        })
    })
    .collect()
}

/// Intermediate certificates: those from the server that may sign, and those of the file that do not end a chain.
fn pool(authorities: &Authorities, between: &[CertificateDer<'_>]) -> Vec<CertificateDer<'static>> {
    let signs = |certificate: &CertificateDer<'_>| {
        Certificate::from_der(certificate).is_ok_and(|certificate| certificate::is_authority(&certificate))
    };
    let shown = between.iter().filter(|certificate| signs(certificate));
    let known =
        authorities.parsed().filter(|(_, root)| !is_self_issued(root) && certificate::is_authority(root));
    shown
        .map(|certificate| certificate.clone().into_owned())
        .chain(known.map(|(der, _)| der.clone()))
        .collect()
}

/// Checks of the end of a path that webpki does not do, and of name constraints along it.
fn is_fit(path: &VerifiedPath<'_>, anchors: &[Anchor<'_>], names: Names) -> Result<(), webpki::Error> {
    let Some(end) = anchors.iter().find(|anchor| anchor.end == *path.anchor()) else {
        return Err(webpki::Error::UnknownIssuer);
    };
    let mut between = 0_usize;
    let mut is_constrained = end.is_constrained;
    for certificate in path.intermediate_certificates() {
        let der = certificate.der();
        let parsed = Certificate::from_der(&der).map_err(|_| webpki::Error::BadDer)?;
        between += usize::from(!is_self_issued(&parsed));
        is_constrained |= certificate::is_constrained(&parsed);
    }
    if end.path_length.is_some_and(|most| between > usize::from(most)) {
        return Err(webpki::Error::PathLenConstraintViolated);
    }
    if is_constrained && names == Names::Unconstrained {
        return Err(webpki::Error::NameConstraintViolation);
    }
    Ok(())
}

/// Maximum length of a name from a certificate in a message.
const NAME: usize = 120;

#[derive(Debug)]
pub(super) struct Authorities {
    /// For messages: the file, or the system.
    pub(super) described: String,
    pub(super) certificates: Vec<CertificateDer<'static>>,
    /// Revocation lists. If there is one, each certificate of a chain must be known to a list and on none.
    pub(super) revoked: Vec<CertRevocationList<'static>>,
}

impl Authorities {
    /// The certificates that can be parsed.
    pub(super) fn parsed(&self) -> impl Iterator<Item = (&CertificateDer<'static>, Certificate)> {
        self.certificates.iter().filter_map(|root| Some((root, Certificate::from_der(root).ok()?)))
    }

    /// The error if no trusted authority has signed it: names the missing authority, and whether it is there but expired.
    pub(super) fn unknown(
        &self,
        leaf: &Certificate,
        between: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> TlsError {
        // The last certificate that the server sent names the authority that would have to be known.
        let last = between.iter().rev().find_map(|certificate| Certificate::from_der(certificate).ok());
        let last = last.as_ref().unwrap_or(leaf);
        for (_, root) in self.parsed() {
            let is_named =
                [last, leaf].iter().any(|one| one.tbs_certificate.issuer == root.tbs_certificate.subject);
            if is_named && dates(&root, now).is_err() {
                return self.expired(&root);
            }
        }
        let roots = self.described.clone();
        if is_self_issued(leaf) {
            TlsError::SelfSigned { subject: shown(&leaf.tbs_certificate.subject.to_string()), roots }
        } else {
            TlsError::UnknownIssuer { issuer: issuer(last), roots }
        }
    }

    pub(super) fn expired(&self, root: &Certificate) -> TlsError {
        let (from, until) = period(root);
        let subject = shown(&root.tbs_certificate.subject.to_string());
        TlsError::RootExpired { subject, roots: self.described.clone(), from, until }
    }
}

fn is_self_issued(certificate: &Certificate) -> bool {
    certificate.tbs_certificate.issuer == certificate.tbs_certificate.subject
}

pub(super) fn issuer(certificate: &Certificate) -> String {
    shown(&certificate.tbs_certificate.issuer.to_string())
}

fn shown(name: &str) -> String {
    text::fit(&text::one_line_prefix(name, NAME), NAME).into_owned()
}

pub(super) fn period(certificate: &Certificate) -> (String, String) {
    let validity = certificate.tbs_certificate.validity;
    let shown =
        |time: x509_cert::time::Time| time.to_date_time().to_string().replace('T', " ").replace('Z', " UTC");
    (shown(validity.not_before), shown(validity.not_after))
}

pub(super) fn dates(certificate: &Certificate, now: UnixTime) -> Result<(), TlsError> {
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

// Certificates that webpki does not read, but OpenSSL, and so libpq, does: X.509 version 1, and authority certificates
// that the server uses itself. They count only if an authority of the file signed them directly.

/// Whether one of the authorities signed it directly. The error is empty if none did.
pub(super) fn verify_directly(
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
    if parsed.signature_algorithm != parsed.tbs_certificate.signature || !certificate::is_plain_server(parsed)
    {
        return Err(None);
    }
    let signed = certificate::signed(leaf).ok_or(None)?;
    for (der, issuer) in authorities.parsed() {
        let is_issuer =
            is_self_issued(&issuer) && issuer.tbs_certificate.subject == parsed.tbs_certificate.issuer;
        let is_fit = certificate::is_authority(&issuer)
            && certificate::is_for_servers(&issuer)
            && !certificate::is_constrained(&issuer);
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
