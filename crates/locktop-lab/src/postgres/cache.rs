//! Where fetched programs and server templates are kept between runs.

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
/// As root the server runs as another user, who usually cannot enter root's home: the first of
/// `$XDG_CACHE_HOME/locktop`, `~/.cache/locktop` and `/var/cache/locktop` that this user can reach, and no user but root can change,
/// is taken.
#[derive(Debug, Clone)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// Finds the directory, and makes it if need be.
    ///
    /// # Errors
    /// When none of the directories can be used, with the reason for the last one.
    pub fn locate() -> Result<Self, EmbeddedError> {
        Self::for_account(Account::detect()?)
    }

    pub(super) fn for_account(account: Account) -> Result<Self, EmbeddedError> {
        let mut last = None;
        for root in candidates() {
            let Some(existing) = root.ancestors().find(|path| path.exists()) else { continue };
            // What is made below it is root's.
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
                // From here on without links, which others could lead elsewhere.
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

    /// The directory that programs and templates are kept in.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where the programs of a major version are, once they were fetched; the rest is in `bin`, `lib`, `share`.
    #[must_use]
    pub fn server(&self, major: u32) -> PathBuf {
        self.root.join("postgres").join(major.to_string())
    }

    /// Runs `work` while no other process does the same under this name.
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

    /// Makes a directory below the cache.
    pub(super) fn directory(&self, name: &str) -> Result<PathBuf, EmbeddedError> {
        let path = self.root.join(name);
        make(&path)?;
        Ok(path)
    }
}

/// Directories that could be the cache, in the order of preference.
fn candidates() -> Vec<PathBuf> {
    let xdg = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = env::var_os("HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let mut candidates: Vec<_> = xdg.into_iter().chain(home.map(|home| home.join(".cache"))).collect();
    if rustix::process::geteuid().is_root() {
        candidates.push(PathBuf::from("/var/cache"));
    }
    candidates.into_iter().map(|parent| parent.join("locktop")).collect()
}

/// Makes a directory that others may pass through (the server may run as another user), if it is not there.
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
