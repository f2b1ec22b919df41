use std::path::Path;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::error::TlsError;

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
