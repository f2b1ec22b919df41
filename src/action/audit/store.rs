//! The files: each line is added whole, by one process at a time, and is on disk when the call returns.

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use locktop_base::file::{FileError, Folder, How};
use rustix::fs::{AtFlags, renameat, unlinkat};
use rustix::io::Errno;

use crate::clock;

pub(super) const FILE: &str = "audit.jsonl";
/// Locked by the process that writes. Unlike the other files, it is never renamed.
const LOCK: &str = "audit.lock";
/// Number of older files that are kept; `audit.jsonl.1` is the newest of them.
pub(super) const KEPT: u32 = 5;
/// Maximum size of a file, in bytes.
pub(super) const LIMIT: u64 = 5_000_000;
/// Longest wait for another process that writes.
const TIMEOUT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(5);

/// An action that gets this error is not executed.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    #[error("no directory for the record of actions: set XDG_STATE_HOME or HOME")]
    Nowhere,
    /// Another process holds the lock on this file, and did not release it in time.
    #[error("the record of actions {} is locked by another process, which may be stopped", .0.display())]
    Busy(PathBuf),
    #[error("the record of actions {}", file_text(.0))]
    File(#[from] FileError),
}

impl AuditError {
    pub(super) fn is_not_found(&self) -> bool {
        matches!(self, Self::File(FileError::System { source, .. }) if source.kind() == ErrorKind::NotFound)
    }
}

fn file_text(error: &FileError) -> String {
    match error {
        // Other users could change the record, or it would be written to a different place.
        FileError::Unsafe { path, flaw } => format!(
            "is not written to {}: {}; {}, or set XDG_STATE_HOME to your own directory",
            path.display(),
            flaw.text(),
            flaw.remedy(path)
        ),
        FileError::System { path, source } => {
            let remedy = match source.kind() {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                    "free space there, or set XDG_STATE_HOME to a directory with more space"
                }
                _ => "make it writable, or set XDG_STATE_HOME to a directory that is",
            };
            format!("{} cannot be written: {source}; {remedy}", path.display())
        }
    }
}

#[derive(Debug)]
pub(super) struct AuditStore {
    path: PathBuf,
    folder: Folder,
    limit: u64,
}

/// The right to write, until it is dropped.
#[derive(Debug)]
pub(super) struct WriteSlot<'a> {
    store: &'a AuditStore,
    /// Closing the file releases the lock.
    _lock: File,
}

impl AuditStore {
    pub(super) fn open(path: &Path, limit: u64) -> Result<Self, AuditError> {
        Ok(Self { path: path.to_owned(), folder: Folder::open(path)?, limit })
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path(name)
    }

    pub(super) fn file(&self, name: &str, how: How) -> Result<File, AuditError> {
        Ok(self.folder.file(name, how)?)
    }

    /// Takes a lock that is released when the file is closed; `None` if another process holds it.
    pub(super) fn try_lock(&self, name: &str, how: How) -> Result<Option<File>, AuditError> {
        let file = self.file(name, how)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Interrupted => Ok(None),
            Err(TryLockError::Error(error)) => Err(FileError::of(&self.path(name))(error).into()),
        }
    }

    pub(super) fn write_slot(&self) -> Result<WriteSlot<'_>, AuditError> {
        let began = clock::monotonic();
        loop {
            if let Some(lock) = self.try_lock(LOCK, How::Write)? {
                return Ok(WriteSlot { store: self, _lock: lock });
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
            Err(error) => Err(FileError::of(&self.path(name))(error).into()),
        }
    }

    pub(super) fn names(&self) -> Result<Vec<String>, AuditError> {
        let entries = std::fs::read_dir(&self.path).map_err(FileError::of(&self.path))?;
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        Ok(names.collect())
    }

    /// Ensures that created and renamed files survive a crash.
    pub(super) fn sync(&self) -> Result<(), AuditError> {
        Ok(rustix::fs::fsync(self.folder.directory()).map_err(FileError::of(&self.path))?)
    }

    /// The contents of all files, the oldest first.
    pub(super) fn contents(&self) -> Result<Vec<Vec<u8>>, AuditError> {
        let mut contents = Vec::new();
        for name in (1..=KEPT).rev().map(older).chain([FILE.to_owned()]) {
            let mut file = match self.file(&name, How::Existing) {
                Ok(file) => file,
                Err(error) if error.is_not_found() => continue,
                Err(error) => return Err(error),
            };
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(FileError::of(&self.path(&name)))?;
            contents.push(bytes);
        }
        Ok(contents)
    }
}

impl WriteSlot<'_> {
    /// Adds a line, which must not contain a line feed. When this returns, the line is on disk; if it fails, nothing of the
    /// line remains.
    pub(super) fn add(&self, line: &str) -> Result<(), AuditError> {
        let path = self.store.path(FILE);
        let failed = FileError::of::<std::io::Error>;
        let mut file = self.store.file(FILE, How::Append)?;
        let mut length = file.metadata().map_err(failed(&path))?.len();
        if length > 0 && length + line.len() as u64 >= self.store.limit {
            self.rotate()?;
            file = self.store.file(FILE, How::Append)?;
            length = 0;
        }
        let mut text = String::with_capacity(line.len() + 2);
        // Ends a partial line that a crash has left.
        if length > 0 && !ends_a_line(&file, length).map_err(failed(&path))? {
            text.push('\n');
        }
        text.push_str(line);
        text.push('\n');
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_data());
        if let Err(error) = written {
            // Removes a partial line. If that fails, the next line ends it.
            let _ = file.set_len(length);
            return Err(failed(&path)(error).into());
        }
        if length == 0 { self.store.sync() } else { Ok(()) }
    }

    /// Each file gets the next number; the oldest is removed.
    fn rotate(&self) -> Result<(), AuditError> {
        for number in (0..KEPT).rev() {
            let from = if number == 0 { FILE.to_owned() } else { older(number) };
            let to = older(number + 1);
            let directory = self.store.folder.directory();
            match renameat(directory, &from, directory, &to) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(FileError::of(&self.store.path(&from))(error).into()),
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

pub(super) const PREFIX: &str = "run-";

/// Detects which processes still run: each holds a lock on its own file, which the system releases when the process
/// ends for any reason. Unlike a process id, a lock cannot be reused.
#[derive(Debug)]
pub(super) struct ProcessPresence {
    /// The random part of the name of this process's file.
    pub(super) run: String,
    state: Mutex<PresenceState>,
}

#[derive(Debug, Default)]
struct PresenceState {
    /// Locked from the first action on.
    lock: Option<File>,
    /// Ids of requests without a result.
    open: BTreeSet<String>,
}

impl ProcessPresence {
    pub(super) fn new(store: &AuditStore) -> Result<Self, AuditError> {
        let number =
            getrandom::u64().map_err(std::io::Error::other).map_err(FileError::of(&store.path(PREFIX)))?;
        Ok(Self { run: format!("{number:016x}"), state: Mutex::default() })
    }

    fn file(&self) -> String {
        format!("{PREFIX}{}", self.run)
    }

    pub(super) fn begin(&self, store: &AuditStore, id: String) -> Result<(), AuditError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.lock.is_none() {
            let lock = store.try_lock(&self.file(), How::Write)?;
            state.lock = Some(lock.ok_or_else(|| AuditError::Busy(store.path(&self.file())))?);
            store.sync()?;
        }
        state.open.insert(id);
        Ok(())
    }

    pub(super) fn end(&self, id: &str) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).open.remove(id);
    }

    /// Removes the file unless a request has no result: the next process that checks settles that request.
    pub(super) fn leave(&mut self, store: &AuditStore) {
        let file = self.file();
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if state.lock.is_some() && state.open.is_empty() {
            // If the file remains, it is found unlocked later and removed then.
            let _ = store.remove(&file);
        }
    }
}
