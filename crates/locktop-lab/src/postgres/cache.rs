//! The directory that keeps downloaded programs and server templates between runs.

use std::env;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::account::Account;
use super::error::EmbeddedError;
use crate::owned::owned;
use locktop_base::file::{How, open};

/// `$XDG_CACHE_HOME/locktop`, by default `~/.cache/locktop`.
///
/// When locktop is root, the server runs as another user, which usually cannot enter root's home: locktop takes the first
/// of `$XDG_CACHE_HOME/locktop`, `~/.cache/locktop` and `/var/cache/locktop` that this user can reach and only root can
/// change.
#[derive(Debug, Clone)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// Finds the directory, and creates it if necessary.
    ///
    /// # Errors
    /// If none of the directories can be used, with the reason for the last one.
    pub fn locate() -> Result<Self, EmbeddedError> {
        Self::for_account(Account::detect()?)
    }

    pub(super) fn for_account(account: Account) -> Result<Self, EmbeddedError> {
        let mut last = None;
        for root in candidates() {
            let Some(existing) = root.ancestors().find(|path| path.exists()) else { continue };
            // Everything created below it belongs to root.
            if let Err(reason) = owned(existing) {
                last = Some(EmbeddedError::BadDirectory { path: root, reason });
                continue;
            }
            if !account.can_reach(existing) {
                continue;
            }
            match make(&root).and_then(|()| {
                owned(&root).map_err(|reason| EmbeddedError::BadDirectory { path: root.clone(), reason })
            }) {
                // From here on without links, which others could redirect.
                Ok(root) if account.can_reach(&root) => return Ok(Self { root }),
                Ok(_) => {}
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| EmbeddedError::BadDirectory {
            path: PathBuf::from("~/.cache"),
            reason:
                "the user that runs the server cannot access it; set XDG_CACHE_HOME to a directory that this user can access"
                    .to_owned(),
        }))
    }

    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The directory of the programs of a major version, once downloaded: in `bin`, `lib` and `share`.
    #[must_use]
    pub fn server(&self, major: u32) -> PathBuf {
        self.root.join("postgres").join(major.to_string())
    }

    /// Runs `work` while no other process does so under this name.
    pub(super) fn locked<T>(
        &self,
        name: &str,
        work: impl FnOnce() -> Result<T, EmbeddedError>,
    ) -> Result<T, EmbeddedError> {
        let path = self.root.join(format!("{name}.lock"));
        let open = open(&path, How::Write).map_err(io::Error::from);
        let file = open.map_err(EmbeddedError::file("create", &path))?;
        file.lock().map_err(EmbeddedError::file("lock", &path))?;
        work()
    }

    pub(super) fn directory(&self, name: &str) -> Result<PathBuf, EmbeddedError> {
        let path = self.root.join(name);
        make(&path)?;
        Ok(path)
    }
}

/// In order of preference.
fn candidates() -> Vec<PathBuf> {
    let xdg = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = env::var_os("HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let mut candidates: Vec<_> = xdg.into_iter().chain(home.map(|home| home.join(".cache"))).collect();
    if rustix::process::geteuid().is_root() {
        candidates.push(PathBuf::from("/var/cache"));
    }
    candidates.into_iter().map(|parent| parent.join("locktop")).collect()
}

/// Creates a directory that others may pass through, if it does not exist: the server may run as another user.
fn make(path: &Path) -> Result<(), EmbeddedError> {
    if !path.is_dir() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(path)
            .map_err(EmbeddedError::file("create", path))?;
        fs::set_permissions(path, Permissions::from_mode(0o755))
            .map_err(EmbeddedError::file("open", path))?;
    }
    tempfile::tempfile_in(path).map(drop).map_err(EmbeddedError::file("write to", path))
}
