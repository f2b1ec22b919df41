//! Trusted authorities, and error texts about certificates.

use std::time::Duration;

use rustls::pki_types::{CertificateDer, UnixTime};
use webpki::CertRevocationList;
use x509_cert::Certificate;
use x509_cert::der::Decode;

use super::error::TlsError;
use locktop_base::text;

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

pub(super) fn is_self_issued(certificate: &Certificate) -> bool {
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
