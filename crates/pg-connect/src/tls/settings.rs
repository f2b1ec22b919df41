//! Converts the TLS settings for rustls. All files are read again each time.

use std::sync::Arc;

use rustls::pki_types::CertificateRevocationListDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, SupportedProtocolVersion, version};
use webpki::{CertRevocationList, OwnedCertRevocationList};

use super::authorities::Authorities;
use super::certificate::{certificates, read};
use super::client::{OwnCertificate, Shown};
use super::error::TlsError;
use super::verify::Verifier;
use crate::conninfo::{Negotiation, Roots, SslMode, TlsOptions, TlsVersion};

/// The ALPN name of PostgreSQL's protocol, for a server with direct TLS.
const PROTOCOL: &[u8] = b"postgresql";

/// The settings for a server of this host; `shown` records the use of the client certificate.
pub(super) fn config(options: &TlsOptions, host: &str, shown: &Arc<Shown>) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let authorities = authorities(options)?;
    let host = match options.mode {
        SslMode::VerifyFull if host.is_empty() => return Err(TlsError::NoHostName),
        SslMode::VerifyFull => Some(host.to_owned()),
        _ => None,
    };
    let own = OwnCertificate::load(options, &provider, shown)?;
    let verifier = Verifier::new(Arc::clone(&provider), authorities, host);
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions(options))
        .map_err(|error| TlsError::of(&error))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_client_cert_resolver(Arc::new(own));
    config.enable_sni = options.sni;
    if options.negotiation == Negotiation::Direct {
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
    }
    Ok(config)
}

fn versions(options: &TlsOptions) -> Vec<&'static SupportedProtocolVersion> {
    let within = |version| {
        options.min.is_none_or(|min| min <= version) && options.max.is_none_or(|max| version <= max)
    };
    [(TlsVersion::V1_3, &version::TLS13), (TlsVersion::V1_2, &version::TLS12)]
        .into_iter()
        .filter(|(version, _)| within(*version))
        .map(|(_, version)| version)
        .collect()
}

/// The trusted authorities; `None` if no verification is requested. As in libpq, an existing file also counts in modes
/// that do not require it ("Protection Provided in Different Modes" in the libpq chapter).
fn authorities(options: &TlsOptions) -> Result<Option<Authorities>, TlsError> {
    let asked = options.mode >= SslMode::VerifyCa;
    let roots = match options.roots() {
        Some(Roots::System) => return Ok(Some(of_system()?)),
        Some(Roots::File(file)) if file.exists() => file,
        file if asked => {
            let file = file.and_then(|roots| match roots {
                Roots::File(file) => Some(file),
                Roots::System => None,
            });
            return Err(TlsError::NoRoots { mode: options.mode.word(), file });
        }
        _ => return Ok(None),
    };
    Ok(Some(Authorities {
        certificates: certificates(&roots)?,
        described: format!("those in {}", roots.display()),
        revoked: revoked(options)?,
    }))
}

#[cfg(not(feature = "system-roots"))]
fn of_system() -> Result<Authorities, TlsError> {
    Err(TlsError::Other("sslrootcert=system: this program was built without `system-roots`".to_owned()))
}

#[cfg(feature = "system-roots")]
fn of_system() -> Result<Authorities, TlsError> {
    let certificates = rustls_native_certs::load_native_certs().certs;
    if certificates.is_empty() {
        return Err(TlsError::NoSystemRoots);
    }
    Ok(Authorities {
        certificates,
        described: "the authorities of this system".to_owned(),
        revoked: Vec::new(),
    })
}

/// The lists of revoked certificates. As in libpq, a missing file is ignored; a directory that was given must have a
/// list.
fn revoked(options: &TlsOptions) -> Result<Vec<CertRevocationList<'static>>, TlsError> {
    let mut lists = Vec::new();
    if let Some(file) = options.crl_file().filter(|file| file.exists()) {
        lists.extend(lists_of(&read(&file)?)?);
        if lists.is_empty() {
            return Err(TlsError::Empty { file, what: "list of revoked certificates" });
        }
    }
    let Some(directory) = &options.crl_dir else { return Ok(lists) };
    let unreadable =
        |error: std::io::Error| TlsError::Unreadable { file: directory.clone(), reason: error.to_string() };
    let before = lists.len();
    // File names are hashes of the issuers, for programs that search by issuer; there are few files.
    for entry in std::fs::read_dir(directory).map_err(unreadable)? {
        lists.extend(lists_of(&read(&entry.map_err(unreadable)?.path())?)?);
    }
    if lists.len() == before {
        return Err(TlsError::Empty { file: directory.clone(), what: "list of revoked certificates" });
    }
    Ok(lists)
}

fn lists_of(text: &[u8]) -> Result<Vec<CertRevocationList<'static>>, TlsError> {
    CertificateRevocationListDer::pem_slice_iter(text)
        .map(|list| {
            let list = OwnedCertRevocationList::from_der(&list.map_err(|_| TlsError::Lists)?);
            list.map(CertRevocationList::from).map_err(|_| TlsError::Lists)
        })
        .collect()
}
