//! Converts the TLS settings for rustls. All files are read again each time.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustls::client::ResolvesClientCert;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateRevocationListDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, SignatureScheme, SupportedProtocolVersion, version};
use webpki::{CertRevocationList, OwnedCertRevocationList};

use super::TlsError;
use super::certificate::{certificates, read};
use super::chain::Authorities;
use super::verify::Verifier;
use crate::conninfo::{CertMode, Negotiation, Secret, SslMode, TlsOptions, TlsVersion};

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
    let verifier = Verifier { provider: Arc::clone(&provider), authorities, host };
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
    if options.system {
        return of_system().map(Some);
    }
    match &options.root {
        Some(file) if file.exists() => Ok(Some(Authorities {
            certificates: certificates(file)?,
            described: format!("those in {}", file.display()),
            revoked: revoked(options)?,
        })),
        _ if options.mode < SslMode::VerifyCa => Ok(None),
        file => Err(TlsError::NoRoots { mode: options.mode.word(), file: file.clone() }),
    }
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
    let empty = |file: &Path| TlsError::Empty { file: file.to_owned(), what: "list of revoked certificates" };
    if let Some(file) = options.crl.as_ref().filter(|file| file.exists()) {
        lists.extend(lists_of(&read(file)?)?);
        if lists.is_empty() {
            return Err(empty(file));
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
        return Err(empty(directory));
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

// The client certificate and its key, for servers that request one.
// Source: "Client Certificates" in the libpq chapter, and `initialize_SSL` in
// `src/interfaces/libpq/fe-secure-openssl.c`.

/// Sends the client certificate if there is one, and records that the server requested it.
#[derive(Debug)]
struct OwnCertificate {
    key: Option<Arc<CertifiedKey>>,
    shown: Arc<Shown>,
}

#[derive(Debug, Default)]
pub(super) struct Shown {
    /// The server requested it.
    pub(super) asked: AtomicBool,
    /// There is one that the server can use.
    pub(super) sent: AtomicBool,
}

impl OwnCertificate {
    /// As in libpq, a missing certificate is no error: the server may accept the login without. A certificate without its
    /// key is an error.
    pub(super) fn load(
        options: &TlsOptions,
        provider: &CryptoProvider,
        shown: &Arc<Shown>,
    ) -> Result<Self, TlsError> {
        let file = options.cert.clone();
        let file = file.filter(|file| options.cert_mode != CertMode::Disable && file.exists());
        let shown = Arc::clone(shown);
        let Some(certificate) = file else { return Ok(Self { key: None, shown }) };
        let file = options.key.clone().unwrap_or_default();
        if !file.exists() {
            return Err(TlsError::NoKey { certificate, key: file });
        }
        let chain = certificates(&certificate)?;
        let bad = |error: rustls::Error| TlsError::BadKey { file: file.clone(), reason: error.to_string() };
        let key = provider.key_provider.load_private_key(private_key(&file, options.key_password.as_ref())?);
        let pair = CertifiedKey::new(chain, key.map_err(bad)?);
        if let Err(rustls::Error::InconsistentKeys(_)) = pair.keys_match() {
            let reason = format!("it is not the key of {}", certificate.display());
            return Err(TlsError::BadKey { file, reason });
        }
        Ok(Self { key: Some(Arc::new(pair)), shown })
    }
}

impl ResolvesClientCert for OwnCertificate {
    fn resolve(&self, _issuers: &[&[u8]], schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.shown.asked.store(true, Ordering::Relaxed);
        let fits = self.key.as_ref().is_some_and(|pair| pair.key.choose_scheme(schemes).is_some());
        self.shown.sent.store(fits, Ordering::Relaxed);
        self.key.clone()
    }

    fn has_certs(&self) -> bool {
        self.key.is_some()
    }
}

/// Reads a key in PEM or DER, and decrypts it if necessary.
fn private_key(file: &Path, password: Option<&Secret>) -> Result<PrivateKeyDer<'static>, TlsError> {
    if is_open(file)? {
        return Err(TlsError::OpenKey { file: file.to_owned() });
    }
    let bytes = read(file)?;
    let bad = |reason: &str| TlsError::BadKey { file: file.to_owned(), reason: reason.to_owned() };
    let Ok(text) = std::str::from_utf8(&bytes) else {
        return PrivateKeyDer::try_from(bytes).map_err(|_| bad("it is not a key in PEM or DER"));
    };
    if text.contains("Proc-Type: 4,ENCRYPTED") {
        return Err(bad(
            "it has the encryption of old versions of OpenSSL: convert it with `openssl pkcs8 -topk8`",
        ));
    }
    if text.contains("BEGIN ENCRYPTED PRIVATE KEY") {
        let password = password.ok_or_else(|| TlsError::EncryptedKey { file: file.to_owned() })?;
        return decrypt(text, file, password);
    }
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|_| bad("it is not a key in PEM or DER"))
}

#[cfg(feature = "encrypted-keys")]
fn decrypt(text: &str, file: &Path, password: &Secret) -> Result<PrivateKeyDer<'static>, TlsError> {
    use pkcs8::EncryptedPrivateKeyInfoRef;
    use rustls::pki_types::PrivatePkcs8KeyDer;

    let bad = |reason: String| TlsError::BadKey { file: file.to_owned(), reason };
    let begin = text.find("-----BEGIN ENCRYPTED PRIVATE KEY").unwrap_or_default();
    // The PEM reader knows unencrypted keys, and does not decode their content.
    let pem = text.get(begin..).unwrap_or_default().replace("ENCRYPTED PRIVATE KEY", "PRIVATE KEY");
    let document =
        PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).map_err(|error| bad(error.to_string()))?;
    let encrypted = EncryptedPrivateKeyInfoRef::try_from(document.secret_pkcs8_der()).map_err(|error| {
        bad(format!("its encryption is not known ({error}): convert it with `openssl pkcs8 -topk8`"))
    })?;
    let key = encrypted
        .decrypt(password.expose().as_bytes())
        .map_err(|_| TlsError::WrongKeyPassword { file: file.to_owned() })?;
    Ok(PrivatePkcs8KeyDer::from(key.as_bytes().to_vec()).into())
}

#[cfg(not(feature = "encrypted-keys"))]
fn decrypt(_: &str, file: &Path, _: &Secret) -> Result<PrivateKeyDer<'static>, TlsError> {
    let reason = "it is encrypted, and this program was built without `encrypted-keys`".to_owned();
    Err(TlsError::BadKey { file: file.to_owned(), reason })
}

/// Whether other users may read it: as in libpq, no other user may, except the group of a key that root owns.
fn is_open(file: &Path) -> Result<bool, TlsError> {
    let metadata = std::fs::metadata(file)
        .map_err(|error| TlsError::Unreadable { file: file.to_owned(), reason: error.to_string() })?;
    if !metadata.is_file() {
        let reason = "it is not a plain file".to_owned();
        return Err(TlsError::BadKey { file: file.to_owned(), reason });
    }
    let others = if metadata.uid() == 0 { 0o037 } else { 0o077 };
    Ok(metadata.permissions().mode() & others != 0)
}
