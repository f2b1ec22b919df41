//! The files: lines are added whole, by one process at a time, and are on the disk when that is said.

use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use locktop_base::file::{Folder, How};
use rustix::fs::{AtFlags, renameat, unlinkat};
use rustix::io::Errno;

use super::AuditError;
use crate::clock;

/// The file of the newest lines, one JSON object each.
pub(super) const FILE: &str = "audit.jsonl";
/// Whoever writes has this locked. It stays the same file when the others change their names.
const LOCK: &str = "audit.lock";
/// Older files that are kept: `audit.jsonl.1` is the newest of them.
pub(super) const KEPT: u32 = 5;
/// How large a file may become, in bytes.
pub(super) const LIMIT: u64 = 5_000_000;
/// How long another process may write.
const TIMEOUT: Duration = Duration::from_secs(2);
/// From one look at another process's lock to the next.
const PAUSE: Duration = Duration::from_millis(5);

/// A directory that is ours alone to write to.
#[derive(Debug)]
pub(super) struct Store {
    path: PathBuf,
    folder: Folder,
    limit: u64,
}

/// The right to write, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    store: &'a Store,
    /// Closing it gives the lock back.
    _lock: File,
}

impl Store {
    /// Opens the directory; it is created if it does not exist.
    pub(super) fn open(path: &Path, limit: u64) -> Result<Self, AuditError> {
        Ok(Self { path: path.to_owned(), folder: Folder::open(path)?, limit })
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path(name)
    }

    /// Opens a file of ours.
    pub(super) fn file(&self, name: &str, how: How) -> Result<File, AuditError> {
        Ok(self.folder.file(name, how)?)
    }

    /// Takes a lock that ends with the file, if nobody has it.
    pub(super) fn try_lock(&self, name: &str, how: How) -> Result<Option<File>, AuditError> {
        let file = self.file(name, how)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Interrupted => Ok(None),
            Err(TryLockError::Error(error)) => Err(AuditError::of(&self.path(name))(error)),
        }
    }

    /// Waits for the right to write.
    pub(super) fn turn(&self) -> Result<Turn<'_>, AuditError> {
        let began = clock::monotonic();
        loop {
            if let Some(lock) = self.try_lock(LOCK, How::Write)? {
                return Ok(Turn { store: self, _lock: lock });
            }
            if began.elapsed() > TIMEOUT {
                return Err(AuditError::Busy(self.path(LOCK)));
            }
            std::thread::sleep(PAUSE);
        }
    }

    pub(super) fn remove(&self, name: &str) -> Result<(), AuditError> {
        match unlinkat(self.folder.directory(), name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(AuditError::of(&self.path(name))(error)),
        }
    }

    /// The names in the directory.
    pub(super) fn names(&self) -> Result<Vec<String>, AuditError> {
        let entries = std::fs::read_dir(&self.path).map_err(AuditError::of(&self.path))?;
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        Ok(names.collect())
    }

    /// What was made or renamed is so after a crash too.
    pub(super) fn sync(&self) -> Result<(), AuditError> {
        rustix::fs::fsync(self.folder.directory()).map_err(AuditError::of(&self.path))
    }

    /// All that is kept, the oldest first, each file as bytes.
    pub(super) fn contents(&self) -> Result<Vec<Vec<u8>>, AuditError> {
        let mut contents = Vec::new();
        for name in (1..=KEPT).rev().map(older).chain([FILE.to_owned()]) {
            let mut file = match self.file(&name, How::Existing) {
                Ok(file) => file,
                Err(AuditError::System { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                    continue;
                }
                Err(error) => return Err(error),
            };
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(AuditError::of(&self.path(&name)))?;
            contents.push(bytes);
        }
        Ok(contents)
    }
}

impl Turn<'_> {
    /// Adds a line, which has no line feed in it. When this returns it is on the disk; when it fails nothing of it is there.
    pub(super) fn add(&self, line: &str) -> Result<(), AuditError> {
        let path = self.store.path(FILE);
        let failed = AuditError::of::<std::io::Error>;
        let mut file = self.store.file(FILE, How::Append)?;
        let mut length = file.metadata().map_err(failed(&path))?.len();
        if length > 0 && length + line.len() as u64 >= self.store.limit {
            self.rotate()?;
            file = self.store.file(FILE, How::Append)?;
            length = 0;
        }
        let mut text = String::with_capacity(line.len() + 2);
        // Where a process or the machine went down in the middle of a line, that line ends here.
        if length > 0 && !ends_a_line(&file, length).map_err(failed(&path))? {
            text.push('\n');
        }
        text.push_str(line);
        text.push('\n');
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_data());
        if let Err(error) = written {
            // Half a line is worse than none. What cannot be taken back is ended by the next line.
            let _ = file.set_len(length);
            return Err(failed(&path)(error));
        }
        if length == 0 { self.store.sync() } else { Ok(()) }
    }

    /// The files move up by one; the oldest goes.
    fn rotate(&self) -> Result<(), AuditError> {
        for number in (0..KEPT).rev() {
            let from = if number == 0 { FILE.to_owned() } else { older(number) };
            let to = older(number + 1);
            let directory = self.store.folder.directory();
            match renameat(directory, &from, directory, &to) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(AuditError::of(&self.store.path(&from))(error)),
            }
        }
        Ok(())
    }
}

fn older(number: u32) -> String {
    format!("{FILE}.{number}")
}

fn ends_a_line(file: &File, length: u64) -> std::io::Result<bool> {
    let mut last = [0];
    file.read_exact_at(&mut last, length - 1)?;
    Ok(last == *b"\n")
}
