//! Opens files for writing: never through a symbolic link, and never a file that another user created or can read.
//!
//! The checks apply to the opened file, not to its name, which may refer to another file a moment later.

use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, renameat, unlinkat};
use rustix::io::Errno;

/// Distinguishes the temporary files that are renamed into place.
static NUMBER: AtomicU64 = AtomicU64::new(0);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// It must not exist yet.
    Create,
    /// For writing at any position; created if it does not exist.
    Write,
    /// For appending; created if it does not exist.
    Append,
    /// It must exist.
    Existing,
}

impl How {
    fn flags(self) -> OFlags {
        // O_NONBLOCK: opening a FIFO would otherwise wait for its other end. It has no effect on a regular file.
        let all = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        all | match self {
            Self::Create => OFlags::CREATE | OFlags::EXCL,
            Self::Write => OFlags::CREATE,
            Self::Append => OFlags::CREATE | OFlags::APPEND,
            Self::Existing => OFlags::empty(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// It was to be created, but exists.
    Exists,
    /// A symbolic link, even to a file of the same user.
    Link,
    /// A directory, pipe, socket or device.
    NotPlain,
    /// Its owner is another user.
    Owner,
    /// It has more than one hard link.
    Names,
    /// Its group may write to it, or others may read or write it.
    Mode,
    /// A directory in which its group or others may replace files.
    Shared,
}

impl Flaw {
    /// The problem, worded to follow the path.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Exists => "file exists",
            Self::Link => "it is a symbolic link",
            Self::NotPlain => "it is not a plain file",
            Self::Owner => "it belongs to another user",
            Self::Names => "its name has changed (a hard link)",
            Self::Mode => "users other than its owner can write to it, or all users can read it",
            Self::Shared => "other users can write to it",
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn remedy(self, path: &Path) -> String {
        match self {
            Self::Exists => "remove it, or name another file".to_owned(),
            Self::Link | Self::Names => format!("remove {}, or name another file", path.display()),
            Self::NotPlain => "name a plain file".to_owned(),
            Self::Owner => "name a file or directory of your own".to_owned(),
            Self::Mode => format!("chmod 600 {}", path.display()),
            Self::Shared => format!("chmod go-w {}", path.display()),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Other users could read, write or replace it.
    #[error("{}: {}; {}", .path.display(), .flaw.text(), .flaw.remedy(.path))]
    Unsafe { path: PathBuf, flaw: Flaw },
    #[error("{}: {source}", .path.display())]
    System { path: PathBuf, source: io::Error },
}

impl FileError {
    /// The error of the system about this path.
    pub fn of<E: Into<io::Error>>(path: &Path) -> impl FnOnce(E) -> Self {
        let path = path.to_owned();
        move |source| Self::System { path, source: source.into() }
    }
}

impl From<FileError> for io::Error {
    fn from(error: FileError) -> Self {
        let kind = match &error {
            FileError::Unsafe { flaw: Flaw::Exists, .. } => io::ErrorKind::AlreadyExists,
            FileError::Unsafe { .. } => io::ErrorKind::PermissionDenied,
            FileError::System { source, .. } => source.kind(),
        };
        Self::new(kind, error.to_string())
    }
}

/// Opens a file for writing. A new file gets mode 0600.
///
/// # Errors
/// If it is a link or not a regular file, belongs to another user, has more than one hard link, can be written by others
/// or read by all; or if the system refuses.
pub fn open(path: &Path, how: How) -> Result<File, FileError> {
    at(CWD, path, path, how)
}

fn at(directory: impl AsFd, name: &Path, path: &Path, how: How) -> Result<File, FileError> {
    let flawed = |flaw| FileError::Unsafe { path: path.to_owned(), flaw };
    let file = match openat(directory, name, how.flags(), Mode::RUSR | Mode::WUSR) {
        Ok(file) => File::from(file),
        Err(Errno::LOOP | Errno::MLINK) => return Err(flawed(Flaw::Link)),
        Err(Errno::EXIST) => return Err(flawed(Flaw::Exists)),
        // A directory, a socket, a device without a driver.
        Err(Errno::ISDIR | Errno::NXIO | Errno::NODEV) => return Err(flawed(Flaw::NotPlain)),
        Err(error) => return Err(FileError::of(path)(error)),
    };
    let found = file.metadata().map_err(FileError::of(path))?;
    let flaw = if !found.is_file() {
        Flaw::NotPlain
    } else if found.uid() != rustix::process::geteuid().as_raw() {
        Flaw::Owner
    } else if found.nlink() != 1 {
        Flaw::Names
    } else if found.mode() & 0o027 != 0 {
        Flaw::Mode
    } else {
        return Ok(file);
    };
    Err(flawed(flaw))
}

/// Whether a file of this name can be created: nothing exists there, not even a dangling link.
///
/// # Errors
/// If something exists there.
pub fn is_free(path: &Path) -> Result<(), FileError> {
    match path.symlink_metadata() {
        Ok(_) => Err(FileError::Unsafe { path: path.to_owned(), flaw: Flaw::Exists }),
        Err(_) => Ok(()),
    }
}

/// A directory in which no other user can replace locktop's files.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    directory: OwnedFd,
}

impl Folder {
    /// Opens the directory; it is created with mode 0700 if it does not exist.
    ///
    /// # Errors
    /// If it belongs to a user other than this one and root, if others can write to it (a sticky directory such as `/tmp` is
    /// accepted), if it is a link of another user, or if the system refuses.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(FileError::of(path))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(CWD, path, flags, Mode::empty()).map_err(FileError::of(path))?;
        let file = File::from(directory);
        let found = file.metadata().map_err(FileError::of(path))?;
        let named = path.symlink_metadata().map_err(FileError::of(path))?;
        let own = rustix::process::geteuid().as_raw();
        let flaw = if named.is_symlink() && named.uid() != own && named.uid() != 0 {
            Flaw::Link
        } else if found.uid() != own && found.uid() != 0 {
            Flaw::Owner
        } else if found.mode() & 0o022 != 0 && found.mode() & 0o1000 == 0 {
            Flaw::Shared
        } else {
            return Ok(Self { path: path.to_owned(), directory: file.into() });
        };
        Err(FileError::Unsafe { path: path.to_owned(), flaw })
    }

    /// Opens a file in the directory, as [`open`] does.
    ///
    /// # Errors
    /// As for [`open`].
    pub fn file(&self, name: &str, how: How) -> Result<File, FileError> {
        at(&self.directory, Path::new(name), &self.path(name), how)
    }

    /// Writes a whole file, replacing any file of this name atomically: a reader finds either the old or the new one.
    ///
    /// # Errors
    /// If the system refuses. Nothing of the new file is left then.
    pub fn replace(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let new = format!(".{name}-{}-{:x}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let mut file = self.file(&new, How::Create)?;
        let written = file.write_all(content);
        let renamed = written.and_then(|()| Ok(renameat(&self.directory, &new, &self.directory, name)?));
        if renamed.is_err() {
            let _ = unlinkat(&self.directory, &new, AtFlags::empty());
        }
        renamed
    }

    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    #[must_use]
    pub fn directory(&self) -> &OwnedFd {
        &self.directory
    }
}

/// The value of `variable`, else `default` in the home directory. A relative path is ignored, as the XDG specification
/// requires.
#[must_use]
pub fn of_user(variable: &str, default: &str, env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let absolute = |path: &PathBuf| path.is_absolute();
    let home = || std::env::home_dir().filter(absolute).map(|home| home.join(default));
    env(variable).map(PathBuf::from).filter(absolute).or_else(home)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    const ALL: [How; 4] = [How::Create, How::Write, How::Append, How::Existing];

    fn flaw(path: &Path, how: How) -> Flaw {
        match open(path, how) {
            Err(FileError::Unsafe { path: named, flaw }) => {
                assert_eq!(named, path);
                flaw
            }
            other => panic!("{how:?}: {other:?}"),
        }
    }

    fn with_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_new_file_is_its_owners_alone_and_is_written_again() {
        let folder = tempfile::tempdir().unwrap();
        for how in [How::Create, How::Write, How::Append] {
            let path = folder.path().join(format!("{how:?}"));
            open(&path, how).unwrap().write_all(b"a").unwrap();
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
            assert_eq!(flaw(&path, How::Create), Flaw::Exists);
            open(&path, How::Append).unwrap().write_all(b"b").unwrap();
            let mut text = String::new();
            open(&path, How::Existing).unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, "ab");
        }
        let none = open(&folder.path().join("none"), How::Existing).unwrap_err();
        assert_eq!(io::Error::from(none).kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn links_special_files_and_files_open_to_others_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("target"), "mine").unwrap();
        with_mode(&path("target"), 0o600);
        symlink(path("target"), path("link")).unwrap();
        symlink(path("none"), path("dangling")).unwrap();
        fs::write(path("one"), "").unwrap();
        with_mode(&path("one"), 0o600);
        fs::hard_link(path("one"), path("other")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(path("pipe")).status().unwrap().success());
        with_mode(&path("pipe"), 0o600);
        let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
        fs::create_dir(path("folder")).unwrap();
        for how in ALL {
            let found = |flaw| if how == How::Create { Flaw::Exists } else { flaw };
            for (name, wrong) in [
                ("link", Flaw::Link),
                ("other", Flaw::Names),
                ("pipe", Flaw::NotPlain),
                ("socket", Flaw::NotPlain),
                ("folder", Flaw::NotPlain),
            ] {
                assert_eq!(flaw(&path(name), how), found(wrong), "{name} {how:?}");
            }
            assert_eq!(flaw(&path("dangling"), how), found(Flaw::Link));
            assert_eq!(flaw(Path::new("/dev/null"), how), found(Flaw::NotPlain));
        }
        assert!(!path("none").exists(), "nothing is created through a link");
        for (mode, is_open) in [(0o600, true), (0o640, true), (0o644, false), (0o660, false), (0o602, false)]
        {
            with_mode(&path("target"), mode);
            assert_eq!(open(&path("target"), How::Append).is_ok(), is_open, "{mode:o}");
        }
        let text = open(&path("target"), How::Append).unwrap_err().to_string();
        assert!(text.contains("target: users other than") && text.contains("; chmod 600 "), "{text}");
    }

    #[test]
    fn a_file_of_another_user_is_not_opened() {
        // Only root can create one here; for other users a file of root's serves.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("theirs");
        if rustix::process::geteuid().is_root() {
            fs::write(&path, "").unwrap();
            with_mode(&path, 0o600);
            std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
            assert_eq!(flaw(&path, How::Append), Flaw::Owner);
            std::os::unix::fs::chown(folder.path(), Some(65_534), None).unwrap();
            assert!(matches!(Folder::open(folder.path()), Err(FileError::Unsafe { flaw: Flaw::Owner, .. })));
        } else {
            assert!(open(Path::new("/etc/passwd"), How::Append).is_err());
        }
    }

    #[test]
    fn a_folder_is_one_in_which_no_other_user_replaces_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b");
        let made = Folder::open(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        symlink("/etc/passwd", path.join(".lock")).unwrap();
        let refused = made.file(".lock", How::Write);
        assert!(matches!(refused, Err(FileError::Unsafe { flaw: Flaw::Link, .. })), "{refused:?}");
        made.replace("x", b"one").unwrap();
        made.replace("x", b"two").unwrap();
        assert_eq!(fs::read(path.join("x")).unwrap(), b"two");
        assert!(made.replace(".lock/x", b"").is_err());
        let names: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names.len(), 2, "{names:?}");
        for (mode, is_open) in [(0o755, true), (0o1777, true), (0o777, false), (0o770, false)] {
            with_mode(&path, mode);
            assert_eq!(Folder::open(&path).is_ok(), is_open, "{mode:o}");
        }
        assert!(Folder::open(Path::new("/dev/null")).is_err());
    }
}
