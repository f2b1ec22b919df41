//! Appends `[[expected]]` entries to the config file, completely or not at all, and only if nothing in the file can be
//! lost.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Mode, OFlags};

use super::{Checks, Config};
use crate::model::expected::ExpectedBlocker;

/// Largest config file, in bytes.
const LONGEST: u64 = 1 << 20;

#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Replacing the file would change more than its text.
    #[error("{0}")]
    Unsafe(&'static str),
    #[error("it was changed meanwhile")]
    Changed,
}

/// Appends entries to a config file. Follows a symbolic link, replaces the file atomically, and keeps its permissions.
///
/// # Errors
/// The file may not be replaced, has mistakes, or cannot be written. It is then unchanged.
pub fn add_expected(path: &Path, entries: &[ExpectedBlocker]) -> Result<(), AppendError> {
    // Each confirmation writes in its own thread: serialize them.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let path = fs::canonicalize(path)?;
    let folder = path.parent().ok_or(AppendError::Unsafe("it is not in a directory"))?;
    let before = read(&path)?;
    let text = extended(&before, entries)?;
    let metadata = fs::metadata(&path)?;
    // Respect a read-only file, although the directory would permit replacing it.
    drop(fs::OpenOptions::new().append(true).open(&path)?);
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    let ours = file.as_file().metadata()?;
    if ours.uid() != metadata.uid() {
        return Err(AppendError::Unsafe("it belongs to another user"));
    }
    if ours.gid() != metadata.gid() {
        // Keep the group, so that the same users can read the file. Fails if the user is not in the group.
        std::os::unix::fs::fchown(file.as_file(), None, Some(metadata.gid()))?;
    }
    if metadata.nlink() > 1 {
        return Err(AppendError::Unsafe("it has another name (a hard link), which would keep the old text"));
    }
    file.as_file().set_permissions(fs::Permissions::from_mode(metadata.mode() & 0o7777))?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    if read(&path)? != before {
        return Err(AppendError::Changed);
    }
    file.persist(&path).map_err(|error| error.error)?;
    // Make the rename durable. If the directory cannot be synced, it will be written later.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

fn read(path: &Path) -> Result<String, AppendError> {
    // NONBLOCK, because opening a pipe would wait for its other end.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).map_err(io::Error::from)?);
    if !file.metadata()?.is_file() {
        return Err(AppendError::Unsafe("it is not a plain file"));
    }
    let mut text = String::new();
    file.take(LONGEST + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LONGEST {
        return Err(AppendError::Unsafe("it is too long"));
    }
    Ok(text)
}

/// The text with the entries appended. Verifies that it parses to the old config plus the entries.
fn extended(before: &str, entries: &[ExpectedBlocker]) -> Result<String, AppendError> {
    let newline = if before.contains("\r\n") { "\r\n" } else { "\n" };
    let mut text = before.to_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push_str(newline);
    }
    for entry in entries {
        text.push_str(newline);
        text.push_str(&entry.toml().replace('\n', newline));
    }
    let parse = |text: &str| Config::parse(text, Path::new(""), &Checks::default()).ok();
    let mut wanted = parse(before).ok_or(AppendError::Unsafe("it has mistakes now"))?;
    wanted.thresholds.expected.extend_from_slice(entries);
    if parse(&text).as_ref() != Some(&wanted) {
        return Err(AppendError::Unsafe("it has [[expected]] in a form that cannot be added to"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn entry() -> ExpectedBlocker {
        ExpectedBlocker {
            application: Some("pg_dump".into()),
            user: Some("é \"b\" \\ \u{1b}\u{7f}\u{85}\u{202e}\t\n".into()),
            longest_wait: Some(std::time::Duration::from_millis(5_400_500)),
            reason: Some("nightly".into()),
            ..ExpectedBlocker::default()
        }
    }

    fn added(before: &str) -> Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        fs::write(&path, before).unwrap();
        let done = add_expected(&path, &[entry()]).map_err(|error| error.to_string());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
        let text = fs::read_to_string(&path).unwrap();
        match done {
            Ok(()) => Ok(text),
            Err(error) => {
                assert_eq!(text, before, "it is as it was");
                Err(error)
            }
        }
    }

    #[test]
    fn what_is_there_stays_and_what_is_added_is_read() {
        for before in [
            "",
            "# mine\nrefresh = \"2s\" # slow",
            "[targets.a]\nconninfo = \"dbname=a\"\n",
            "[[expected]]\nuser = \"x\"\n\n[theme]\nbase = \"mono\"\r\n",
        ] {
            let text = added(before).unwrap();
            assert!(text.starts_with(before), "{text}");
            let config = Config::parse(&text, Path::new(""), &Checks::default()).unwrap();
            assert_eq!(config.thresholds.expected.last(), Some(&entry()), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_added_to_stays_as_it_is() {
        for (before, why) in [
            ("expected = [{ user = \"x\" }]\n", "in a form that cannot be added to"),
            ("refresh = \n", "it has mistakes"),
            ("[theme\n", "it has mistakes"),
        ] {
            assert!(added(before).unwrap_err().contains(why), "{before}");
        }
    }

    #[test]
    fn a_link_stays_one_and_permissions_stay() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("dotfiles.toml"), folder.path().join("config.toml"));
        fs::write(&file, "refresh = \"2s\"\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&file, &link).unwrap();
        add_expected(&link, &[entry()]).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o640);
        assert!(fs::read_to_string(&file).unwrap().contains("pg_dump"));
        fs::hard_link(&file, folder.path().join("other.toml")).unwrap();
        assert!(add_expected(&link, &[entry()]).unwrap_err().to_string().contains("hard link"));
        assert!(add_expected(&folder.path().join("none.toml"), &[entry()]).is_err());
        assert!(add_expected(folder.path(), &[entry()]).is_err());
    }
}
