use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use super::EmbeddedError;

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
    pub(super) fn detect() -> Result<Self, EmbeddedError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self::Own);
        }
        let users = Path::new("/etc/passwd");
        let text = fs::read_to_string(users).map_err(EmbeddedError::file("read", users))?;
        ["postgres", "nobody"]
            .into_iter()
            .find_map(|name| lookup(&text, name))
            .map(|(uid, gid)| Self::Other { uid, gid })
            .ok_or(EmbeddedError::NoAccount)
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

    pub(super) fn own(self, path: &Path) -> Result<(), EmbeddedError> {
        let Self::Other { uid, gid } = self else { return Ok(()) };
        std::os::unix::fs::chown(path, Some(uid), Some(gid))
            .map_err(EmbeddedError::file("change the owner of", path))
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
