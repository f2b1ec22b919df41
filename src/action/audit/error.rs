use std::io;
use std::path::{Path, PathBuf};

use locktop_base::file::{FileError, Flaw};

/// An action that gets this error is not executed.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    #[error("no directory for the record of actions: set XDG_STATE_HOME or HOME")]
    Nowhere,
    /// Other users could change the record, or it would be written to a different place.
    #[error("the record of actions is not written to {}: {}; {}, or set XDG_STATE_HOME to your own directory", .path.display(), .flaw.text(), .flaw.remedy(.path))]
    Unsafe { path: PathBuf, flaw: Flaw },
    /// Another process holds the lock on this file, and did not release it in time.
    #[error("the record of actions {} is locked by another process, which may be stopped", .0.display())]
    Busy(PathBuf),
    #[error("the record of actions {} cannot be written: {source}; {}", .path.display(), remedy(.source))]
    System { path: PathBuf, source: io::Error },
}

impl AuditError {
    pub(super) fn of<E: Into<io::Error>>(path: &Path) -> impl FnOnce(E) -> Self {
        let path = path.to_owned();
        move |source| Self::System { path, source: source.into() }
    }
}

impl From<FileError> for AuditError {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Unsafe { path, flaw } => Self::Unsafe { path, flaw },
            FileError::System { path, source } => Self::System { path, source },
        }
    }
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free space there, or set XDG_STATE_HOME to a directory with more space"
        }
        _ => "make it writable, or set XDG_STATE_HOME to a directory that is",
    }
}
