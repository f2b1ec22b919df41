//! As root, locktop uses no program or file that a user other than root could replace: a user's directory may be root's
//! `HOME`, or on root's search path.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The path without links, if only root can change what is there, or this process does not run as root. The error is a
/// reason that names the place, worded to follow the requested path.
pub(crate) fn owned(path: &Path) -> Result<PathBuf, String> {
    owned_by(path, rustix::process::geteuid().is_root())
}

/// The same for a program under its own name, which may be a link.
pub(crate) fn is_owned(path: &Path) -> bool {
    owned(path).is_ok() && path.parent().is_none_or(|parent| owned(parent).is_ok())
}

/// Whether a directory created there cannot be replaced: as [`owned`], or a sticky directory such as `/tmp`.
pub(crate) fn is_private(directory: &Path) -> bool {
    // For a file, only the directories above it count.
    let is_root = rustix::process::geteuid().is_root();
    fs::metadata(directory).is_ok_and(|found| {
        !is_root || found.mode() & 0o1000 != 0 && found.uid() == 0 && directory.parent().is_none_or(is_owned)
    }) || owned(directory).is_ok()
}

fn owned_by(path: &Path, is_root: bool) -> Result<PathBuf, String> {
    let unseen = |at: &Path, error: io::Error| format!("{}: {error}", at.display());
    let path = path.canonicalize().map_err(|error| unseen(path, error))?;
    if !is_root {
        return Ok(path);
    }
    for at in path.ancestors() {
        let found = fs::metadata(at).map_err(|error| unseen(at, error))?;
        // In a sticky directory others cannot replace root's files.
        let is_shared =
            found.mode() & 0o022 != 0 && !(found.is_dir() && found.mode() & 0o1000 != 0 && at != path);
        if found.uid() != 0 {
            let uid = found.uid();
            return Err(format!(
                "{} belongs to user {uid}, and root runs no file that others can change",
                at.display()
            ));
        } else if is_shared {
            return Err(format!(
                "others can write to {}, and root runs no file that others can change",
                at.display()
            ));
        }
    }
    Ok(path)
}

/// A program on the search path; as root, only one that no other user can change.
pub(crate) fn on_path(program: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut files = std::env::split_paths(&path).map(|directory| directory.join(program));
    files.find(|file| file.is_file() && is_owned(file))
}

const MANAGERS: [(&str, &str); 7] = [
    ("/usr/bin/apt-get", "apt-get install"),
    ("/usr/bin/dnf", "dnf install"),
    ("/usr/bin/yum", "yum install"),
    ("/usr/bin/zypper", "zypper install"),
    ("/usr/bin/pacman", "pacman -S"),
    ("/sbin/apk", "apk add"),
    ("/usr/sbin/pkg", "pkg install"),
];

pub(crate) fn postgresql() -> String {
    let server = "postgresql-server";
    let packages = ["postgresql", server, server, server, "postgresql", "postgresql", "postgresql18-server"];
    command("postgresql@18", packages)
}

#[cfg(feature = "redis")]
pub(crate) fn redis() -> String {
    command("redis", ["redis-server", "valkey", "redis", "redis", "valkey", "redis", "redis"])
}

/// `packages` are the names by which the [`MANAGERS`] know it, in their order.
fn command(homebrew: &str, packages: [&str; 7]) -> String {
    if cfg!(target_os = "macos") {
        return format!("brew install {homebrew}");
    }
    let known = MANAGERS.into_iter().zip(packages);
    let mut found = known.clone().filter(|((path, _), _)| Path::new(path).exists());
    let command = found.next().or_else(|| known.clone().next());
    let command = command.map(|((_, command), package)| format!("{command} {package}")).unwrap_or_default();
    if rustix::process::geteuid().is_root() { command } else { format!("sudo {command}") }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    #[test]
    fn as_root_nothing_is_used_that_others_can_change() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let room = tempfile::tempdir().unwrap();
        let (home, bin) = (room.path().join("home"), room.path().join("home/bin"));
        let program = bin.join("postgres");
        fs::create_dir_all(&bin).unwrap();
        fs::write(&program, "").unwrap();
        let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        mode(room.path(), 0o755);
        assert_eq!(owned_by(&program, true), Ok(program.canonicalize().unwrap()), "/tmp is sticky");
        for changed in [&home, &bin, &program] {
            chown(changed, Some(65_534), None).unwrap();
            let why = owned_by(&program, true).unwrap_err();
            assert!(why.contains(&format!("{} belongs to user 65534", changed.display())), "{why}");
            assert!(owned_by(&program, false).is_ok());
            chown(changed, Some(0), None).unwrap();
            for (bits, is_usable) in [(0o777, false), (0o775, false), (0o755, true)] {
                mode(changed, bits);
                assert_eq!(owned_by(&program, true).is_ok(), is_usable, "{changed:?} {bits:o}");
            }
        }
        // Others may add files to the last directory, so a name there may be another user's.
        mode(&bin, 0o1777);
        assert!(owned_by(&bin, true).is_err() && owned_by(&program, true).is_ok());
        let link = room.path().join("link");
        symlink(&program, &link).unwrap();
        assert_eq!(owned_by(&link, true), Ok(program.canonicalize().unwrap()), "without the link");
        assert!(is_owned(&link));
        mode(room.path(), 0o777);
        assert!(!is_owned(&link), "the link could be another one later");
        assert!(owned_by(&room.path().join("none"), true).is_err());
    }
}
