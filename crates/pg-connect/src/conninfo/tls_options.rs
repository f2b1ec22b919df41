//! TLS settings: whether it is used, which authorities are trusted, and the client certificate.
//!
//! Source: "SSL Support" in the libpq chapter, and `initialize_SSL` in `src/interfaces/libpq/fe-secure-openssl.c`.
//! Files are read for each connection, because a certificate may be renewed meanwhile.

use std::path::PathBuf;

use super::super::error::ConnInfoError;
use super::settings::{Secret, Settings, Sources, choice, invalid, unsupported, word_of};

/// Whether TLS is used, and how the server's certificate is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SslMode {
    /// TLS is never used.
    Disable,
    /// Only if the server refuses the login without it.
    Allow,
    /// If the server offers it and it works.
    Prefer,
    /// Always; a certificate is verified only if there is a root certificate.
    Require,
    /// Always, and a trusted authority must have signed the certificate.
    VerifyCa,
    /// Also, the certificate must be that of the requested host.
    VerifyFull,
}

const MODES: [(&str, SslMode); 6] = [
    ("disable", SslMode::Disable),
    ("allow", SslMode::Allow),
    ("prefer", SslMode::Prefer),
    ("require", SslMode::Require),
    ("verify-ca", SslMode::VerifyCa),
    ("verify-full", SslMode::VerifyFull),
];

impl SslMode {
    /// Its name in `sslmode`.
    #[must_use]
    pub fn word(self) -> &'static str {
        word_of(&MODES, &self)
    }

    /// The mode of a connection that uses TLS, in libpq's words: `prefer` verifies as little as `require`.
    pub(crate) fn of_tls(self) -> &'static str {
        self.max(Self::Require).word()
    }
}

/// How TLS begins (`sslnegotiation`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Negotiation {
    /// With `SSLRequest`, which the server answers with one byte.
    Postgres,
    /// At once, as supported by PostgreSQL 17.
    Direct,
}

const NEGOTIATIONS: [(&str, Negotiation); 2] =
    [("postgres", Negotiation::Postgres), ("direct", Negotiation::Direct)];

/// Whether the client certificate is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CertMode {
    Disable,
    /// If the server requests it and there is one.
    Allow,
    /// It must be sent: the server has to request it.
    Require,
}

const CERT_MODES: [(&str, CertMode); 3] =
    [("disable", CertMode::Disable), ("allow", CertMode::Allow), ("require", CertMode::Require)];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TlsVersion {
    /// TLS 1.2; as a lower limit also all earlier versions.
    V1_2,
    V1_3,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TlsOptions {
    pub(crate) mode: SslMode,
    pub(crate) negotiation: Negotiation,
    pub(crate) cert_mode: CertMode,
    pub(crate) sni: bool,
    pub(crate) min: Option<TlsVersion>,
    pub(crate) max: Option<TlsVersion>,
    /// `sslrootcert=system`: the authorities of the system are trusted, and not those of `root`.
    pub(crate) system: bool,
    /// The file of the trusted authorities. This and the other files may not exist; each is `None` if it was not given and
    /// the home directory is unknown.
    pub(crate) root: Option<PathBuf>,
    /// The file of revoked certificates; also `None` if only a directory was given.
    pub(crate) crl: Option<PathBuf>,
    /// The directory of files of revoked certificates; `None` if it was not given.
    pub(crate) crl_dir: Option<PathBuf>,
    pub(crate) cert: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
    pub(crate) key_password: Option<Secret>,
}

impl TlsOptions {
    pub(super) fn resolve(settings: &Settings, sources: &Sources<'_>) -> Result<Self, ConnInfoError> {
        let text = |key| settings.text(key);
        let file = |key, default: &str| {
            let directory = || sources.home.as_ref().map(|home| home.join(".postgresql"));
            text(key).map(PathBuf::from).or_else(|| Some(directory()?.join(default)))
        };
        // The system's authorities sign for any name: without a check of the name they prove nothing.
        let system = text("sslrootcert").as_deref() == Some("system");
        let default = if system { SslMode::VerifyFull } else { SslMode::Prefer };
        let mode = choice(settings, "sslmode", default, &MODES)?;
        if system && mode != SslMode::VerifyFull {
            return Err(invalid(settings, "sslmode", mode.word(), "verify-full, with sslrootcert=system"));
        }
        let negotiation = choice(settings, "sslnegotiation", Negotiation::Postgres, &NEGOTIATIONS)?;
        if negotiation == Negotiation::Direct && mode < SslMode::Require {
            return Err(invalid(settings, "sslnegotiation", "direct", "sslmode=require or stricter with it"));
        }
        let lowest = version(settings, "ssl_min_protocol_version", false);
        let (min, max) = (lowest?, version(settings, "ssl_max_protocol_version", true)?);
        if min.zip(max).is_some_and(|(min, max)| min > max) {
            return Err(invalid(
                settings,
                "ssl_max_protocol_version",
                &text("ssl_max_protocol_version").unwrap_or_default(),
                "no less than ssl_min_protocol_version",
            ));
        }
        let crl_dir = text("sslcrldir").map(PathBuf::from);
        Ok(Self {
            mode,
            negotiation,
            cert_mode: choice(settings, "sslcertmode", CertMode::Allow, &CERT_MODES)?,
            sni: settings.get("sslsni").is_none_or(|given| given.value.starts_with('1')),
            min,
            max,
            system,
            root: file("sslrootcert", "root.crt"),
            // As in libpq, the default applies only if no directory was given.
            crl: if crl_dir.is_some() {
                text("sslcrl").map(PathBuf::from)
            } else {
                file("sslcrl", "root.crl")
            },
            crl_dir,
            cert: file("sslcert", "postgresql.crt"),
            key: file("sslkey", "postgresql.key"),
            key_password: text("sslpassword").map(Secret::new),
        })
    }
}

const VERSIONS: &str = "TLSv1, TLSv1.1, TLSv1.2 or TLSv1.3";

/// A limit of the version. One before 1.2 is not supported, but may be the lowest.
fn version(
    settings: &Settings,
    key: &'static str,
    is_highest: bool,
) -> Result<Option<TlsVersion>, ConnInfoError> {
    let Some(given) = settings.get(key) else { return Ok(None) };
    match given.value.to_ascii_lowercase().as_str() {
        "tlsv1" | "tlsv1.1" if is_highest => {
            Err(unsupported(format!("{key}={}", given.value), &given.origin))
        }
        "tlsv1" | "tlsv1.1" | "tlsv1.2" => Ok(Some(TlsVersion::V1_2)),
        "tlsv1.3" => Ok(Some(TlsVersion::V1_3)),
        _ => Err(invalid(settings, key, &given.value, VERSIONS)),
    }
}

#[cfg(test)]
mod tests {
    use super::SslMode;

    #[test]
    fn the_mode_of_a_tls_connection_is_at_least_require() {
        for (mode, expected) in [
            (SslMode::Allow, "require"),
            (SslMode::Prefer, "require"),
            (SslMode::Require, "require"),
            (SslMode::VerifyCa, "verify-ca"),
            (SslMode::VerifyFull, "verify-full"),
        ] {
            assert_eq!(mode.of_tls(), expected, "{mode:?}");
        }
    }
}
