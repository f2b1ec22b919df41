//! The chain from the server's certificate to an authority, as OpenSSL verifies it.
//!
//! webpki builds it. What it leaves to its caller is done here: it takes an authority as it is given, with whatever dates, purposes and path
//! length its certificate has, and looks at no key usage. Only certificates that name themselves as issuer are ends of a chain; others in
//! the file complete one, as those do that the server shows.

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

/// Which chains of certificates count, by what their authorities may sign for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    /// Any: webpki holds the alternative names against what the authorities may sign for.
    Any,
    /// Those in which nobody may sign for certain names only: webpki does not hold the Common Name against that.
    Unconstrained,
}

/// An authority that may end a chain.
struct Anchor<'a> {
    end: TrustAnchor<'a>,
    path_length: Option<u8>,
    is_constrained: bool,
}

/// Verifies the chain, its dates, purposes and signatures, and that nothing of it was revoked. No name is compared.
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
    // libpq's X509_V_FLAG_CRL_CHECK_ALL; a list that is out of date says nothing.
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

/// What may stand in between: of those that the server shows the ones that may sign, and those of the file that end no chain.
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

/// What webpki does not know of the end of a path, and whose names are constrained along it.
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
