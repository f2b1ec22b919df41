//! The chain from the server's certificate to an authority, as OpenSSL verifies it.
//!
//! webpki builds it. The checks that webpki leaves to its caller are done here: the dates, purposes and path length of
//! the authority's certificate, and the key usage. Only self-issued certificates end a chain; others in the file
//! complete one, like those that the server sends.

use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, TrustAnchor, UnixTime};
use webpki::{
    CertRevocationList, EndEntityCert, ExpirationPolicy, KeyUsage, RevocationCheckDepth, RevocationOptions,
    RevocationOptionsBuilder, UnknownStatusPolicy, VerifiedPath, anchor_from_trusted_cert,
};
use x509_cert::Certificate;
use x509_cert::der::Decode;

use super::authorities::{Authorities, dates, is_self_issued};
use super::kind;

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
            && kind::is_authority(root)
            && kind::is_for_servers(root)
    });
    ends.filter_map(|(der, root)| {
        Some(Anchor {
            end: anchor_from_trusted_cert(der).ok()?,
            path_length: kind::path_length(&root),
            is_constrained: kind::is_constrained(&root),
        })
    })
    .collect()
}

/// Intermediate certificates: those from the server that may sign, and those of the file that do not end a chain.
fn pool(authorities: &Authorities, between: &[CertificateDer<'_>]) -> Vec<CertificateDer<'static>> {
    let signs = |certificate: &CertificateDer<'_>| {
        Certificate::from_der(certificate).is_ok_and(|certificate| kind::is_authority(&certificate))
    };
    let shown = between.iter().filter(|certificate| signs(certificate));
    let known = authorities.parsed().filter(|(_, root)| !is_self_issued(root) && kind::is_authority(root));
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
        is_constrained |= kind::is_constrained(&parsed);
    }
    if end.path_length.is_some_and(|most| between > usize::from(most)) {
        return Err(webpki::Error::PathLenConstraintViolated);
    }
    if is_constrained && names == Names::Unconstrained {
        return Err(webpki::Error::NameConstraintViolation);
    }
    Ok(())
}
