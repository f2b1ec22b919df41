//! The directory that keeps downloaded programs and server templates between runs.

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, io};

use locktop_base::file::{How, open};

use super::bad_directory;
use crate::DemoError;
use crate::process::{is_plain, is_private, owned};

/// `$XDG_CACHE_HOME/locktop`, by default `~/.cache/locktop`.
///
/// When locktop is root, the server runs as another user, which usually cannot enter root's home: locktop takes the first
/// of `$XDG_CACHE_HOME/locktop`, `~/.cache/locktop` and `/var/cache/locktop` that this user can reach and only root can
/// change.
#[derive(Debug, Clone)]
pub(super) struct Cache {
    pub(super) root: PathBuf,
}

impl Cache {
    /// Finds the directory, and creates it if necessary. The error is the reason for the last one of several.
    pub(super) fn for_account(account: Account) -> Result<Self, DemoError> {
        let mut last = None;
        for root in candidates() {
            let Some(existing) = root.ancestors().find(|path| path.exists()) else { continue };
            // Everything created below it belongs to root.
            if let Err(reason) = owned(existing) {
                last = Some(bad_directory(&root, &reason));
                continue;
            }
            if !account.can_reach(existing) {
                continue;
            }
            match make(&root).and_then(|()| owned(&root).map_err(|reason| bad_directory(&root, &reason))) {
                // From here on without links, which others could redirect.
                Ok(root) if account.can_reach(&root) => return Ok(Self { root }),
                Ok(_) => {}
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| {
            let reason = "the user that runs the server cannot access it; set XDG_CACHE_HOME to a directory that this user can access";
            bad_directory(Path::new("~/.cache"), reason)
        }))
    }

    /// The directory `kind/name`. If it does not exist, `make` gets a new directory next to it, and returns what to move into
    /// its place: so it is either complete or absent.
    pub(super) fn once(
        &self,
        kind: &str,
        name: &str,
        begins: impl FnOnce(&Path),
        make: impl FnOnce(&Path) -> Result<PathBuf, DemoError>,
    ) -> Result<PathBuf, DemoError> {
        let parent = self.root.join(kind);
        self::make(&parent)?;
        let place = parent.join(name);
        if place.is_dir() {
            return Ok(place);
        }
        let path = self.root.join(format!("{kind}-{name}.lock"));
        let lock = open(&path, How::Write).map_err(io::Error::from);
        let lock = lock.map_err(DemoError::file("create", &path))?;
        lock.lock().map_err(DemoError::file("lock", &path))?;
        // Another process may have made it while this one waited for the lock.
        if !place.is_dir() {
            begins(&place);
            let work = tempfile::Builder::new().prefix(&format!(".{kind}-")).tempdir_in(&parent);
            let work = work.map_err(DemoError::file("create a directory in", &parent))?;
            fs::rename(make(work.path())?, &place).map_err(DemoError::file("create", &place))?;
        }
        Ok(place)
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
fn make(path: &Path) -> Result<(), DemoError> {
    if !path.is_dir() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(path)
            .map_err(DemoError::file("create", path))?;
        fs::set_permissions(path, Permissions::from_mode(0o755)).map_err(DemoError::file("open", path))?;
    }
    tempfile::tempfile_in(path).map(drop).map_err(DemoError::file("write to", path))
}

/// A memory file system. A data directory is a thousand small files, and copying them here takes a tenth of the time.
const MEMORY: &str = "/dev/shm";
/// Free space required there: many times what a server needs.
const FREE_BYTES: u64 = 1 << 30;

/// `TMPDIR` if it is set and usable, else memory if there is enough, else `/tmp`.
pub(super) fn temporary(account: Account) -> PathBuf {
    let named = env::var_os("TMPDIR").map(PathBuf::from).filter(|path| is_plain(path));
    let memory = Some(PathBuf::from(MEMORY)).filter(|path| named.is_none() && has_room(path));
    let usable = named.or(memory).filter(|path| is_usable(path, account));
    usable.unwrap_or_else(|| PathBuf::from("/tmp"))
}

fn has_room(path: &Path) -> bool {
    rustix::fs::statvfs(path)
        .is_ok_and(|system| system.f_bavail.saturating_mul(system.f_frsize) >= FREE_BYTES)
}

fn is_usable(path: &Path, account: Account) -> bool {
    let writable = |meta: fs::Metadata| match account {
        Account::Own => rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok(),
        Account::Other { uid, .. } => meta.mode() & 0o002 != 0 || meta.uid() == uid,
    };
    // As root, a user's directory is not usable: that user could replace the server's directory.
    account.can_reach(path) && fs::metadata(path).is_ok_and(writable) && is_private(path)
}

/// The account that runs the server: this user or, because PostgreSQL refuses root, another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Account {
    Own,
    /// `postgres` or `nobody`, when locktop runs as root.
    Other {
        /// Never 0.
        uid: u32,
        gid: u32,
    },
}

impl Account {
    pub(super) fn detect() -> Result<Self, DemoError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self::Own);
        }
        let users = Path::new("/etc/passwd");
        let text = fs::read_to_string(users).map_err(DemoError::file("read", users))?;
        ["postgres", "nobody"]
            .into_iter()
            .find_map(|name| lookup(&text, name))
            .map(|(uid, gid)| Self::Other { uid, gid })
            .ok_or_else(|| {
                DemoError::Other("PostgreSQL does not run as root, and the users `postgres` and `nobody` do not exist: run locktop as another user".to_owned())
            })
    }

    pub(super) fn uid(self) -> u32 {
        match self {
            Self::Own => rustix::process::geteuid().as_raw(),
            Self::Other { uid, .. } => uid,
        }
    }

    /// A command that runs as this account, in a directory that every account can access, without PostgreSQL's environment
    /// variables.
    pub(super) fn command(self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir("/");
        let foreign = std::env::vars_os()
            .map(|(name, _)| name)
            .filter(|name| name.as_encoded_bytes().starts_with(b"PG"));
        foreign.for_each(|name| {
            command.env_remove(name);
        });
        command.env("LC_ALL", "C");
        if let Self::Other { uid, gid } = self {
            command.uid(uid).gid(gid);
        }
        command
    }

    /// Whether the account can access a file or directory: another user must be able to pass each directory above.
    pub(super) fn can_reach(self, path: &Path) -> bool {
        let Self::Other { uid, .. } = self else { return true };
        let Ok(path) = path.canonicalize() else { return false };
        path.ancestors().all(|at| {
            fs::metadata(at).is_ok_and(|meta| {
                let bit = if meta.uid() == uid { 0o100 } else { 0o001 };
                meta.mode() & bit != 0
            })
        })
    }

    pub(super) fn own(self, path: &Path) -> Result<(), DemoError> {
        let Self::Other { uid, gid } = self else { return Ok(()) };
        std::os::unix::fs::chown(path, Some(uid), Some(gid))
            .map_err(DemoError::file("change the owner of", path))
    }
}

/// User and group id of a user in the text of `/etc/passwd`; never root's.
fn lookup(passwd: &str, name: &str) -> Option<(u32, u32)> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let found = fields.next() == Some(name);
        let (uid, gid) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
        (found && uid != 0).then_some((uid, gid))
    })
}

#[cfg(test)]
mod tests {
    use super::lookup;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\n+::::::\nnobody:x:65534:65533:nobody:/:/bin/false\ntoor:x:0:0::/:/bin/sh\n";

    #[test]
    fn a_user_is_found_by_the_whole_name() {
        assert_eq!(lookup(PASSWD, "nobody"), Some((65534, 65533)));
        assert_eq!(lookup(PASSWD, "nobo"), None);
    }

    #[test]
    fn an_account_that_is_root_under_another_name_is_not_used() {
        assert_eq!(lookup(PASSWD, "toor"), None);
    }
}
