//! Why something cannot be recorded.

use std::io;
use std::path::{Path, PathBuf};

/// Why something cannot be recorded. Whoever gets this before an action does not act.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// Nobody says where.
    #[error("there is no directory for the record of actions: set XDG_STATE_HOME or HOME")]
    Nowhere,
    /// Others could change what is written, or it would be written somewhere else.
    #[error("the record of actions is not written to {}, {why}: {remedy}", .path.display())]
    Unsafe {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
        /// What helps.
        remedy: String,
    },
    /// Another process has it locked.
    #[error("the record of actions {} is locked by another process, which may be stopped", .0.display())]
    Busy(PathBuf),
    /// The system refuses.
    #[error("the record of actions {} cannot be written: {source}; {}", .path.display(), remedy(.source))]
    System {
        /// The file or directory.
        path: PathBuf,
        /// What the system says.
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

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "make room there, or set XDG_STATE_HOME to a directory with more"
        }
        _ => "make it writable, or set XDG_STATE_HOME to a directory that is",
    }
}
