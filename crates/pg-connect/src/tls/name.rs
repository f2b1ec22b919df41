//! Whether a certificate is for a host, by libpq's rules, which are older than those of browsers: a wildcard matches
//! only the first label, and the Common Name counts if there is no alternative name of the host's kind.
//!
//! Source: "SSL Client Certificate … verify-full" in the libpq chapter, and `pq_verify_peer_name_matches_certificate`
//! in `src/interfaces/libpq/fe-secure-common.c` and `fe-secure-openssl.c`.

use std::net::IpAddr;

use locktop_base::text;
use x509_cert::Certificate;
use x509_cert::der::oid::db::rfc4519::CN;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

/// Maximum number of names in an error.
const NAMES: usize = 5;

/// The place of the matching name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// In the alternative names, which are checked against the authorities' name constraints.
    Alternative,
    /// In the subject's Common Name, which counts only without alternative names.
    CommonName,
}

/// Whether the certificate is for `host`, a name or an address; the error has the names in the certificate.
pub(super) fn check(certificate: &Certificate, host: &str) -> Result<By, String> {
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
pub(super) fn is_common_alone(certificate: &Certificate) -> bool {
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
