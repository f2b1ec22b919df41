//! Why something cannot be recorded.

use std::io;
use std::path::{Path, PathBuf};

use locktop_base::file::{FileError, Flaw};

/// Why something cannot be recorded. Whoever gets this before an action does not act.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// Neither `XDG_STATE_HOME` nor `HOME` says where to write it.
    #[error("no directory for the record of actions: set XDG_STATE_HOME or HOME")]
    Nowhere,
    /// Others could change what is written, or it would be written somewhere else.
    #[error("the record of actions is not written to {}: {}; {}, or set XDG_STATE_HOME to your own directory", .path.display(), .flaw.text(), .flaw.remedy(.path))]
    Unsafe {
        /// The file or directory that is not written to.
        path: PathBuf,
        /// What is wrong with it.
        flaw: Flaw,
    },
    /// Another process has this file locked, and did not let go in time.
    #[error("the record of actions {} is locked by another process, which may be stopped", .0.display())]
    Busy(PathBuf),
    /// The system refuses to open, lock or write it.
    #[error("the record of actions {} cannot be written: {source}; {}", .path.display(), remedy(.source))]
    System {
        /// The file or directory that was to be written.
        path: PathBuf,
        /// The system's error, of which the remedy is a part of the message.
        source: io::Error,
    },
}

impl AuditError {
    /// For `map_err`: what the system says of a file.
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
