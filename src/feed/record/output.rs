//! The output of records: a file, a directory with a file per period, or standard output.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use locktop_base::file::{FileError, Flaw, Folder, How, open};

use super::Options;
use crate::clock;
use crate::feed::replay::last_whole;
use crate::recording::container;

const SUFFIX: &str = "ltr";

const LOCK: &str = ".lock";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// A file; an existing recording is continued.
    File(PathBuf),
    NewFile(PathBuf),
    /// A directory, and the prefix of its file names.
    Folder(PathBuf, String),
    Output,
}

/// When a directory gets a new file, and which files are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rotation {
    /// Longest time to write to one file. `None` is unlimited.
    pub age: Option<Duration>,
    /// Bytes after which a new file is started. `None` is unlimited.
    pub size: Option<u64>,
    /// Files not written to for longer are removed. `None` keeps them.
    pub keep_age: Option<Duration>,
    /// Most bytes of all files; the oldest are removed. `None` is unlimited.
    pub keep_size: Option<u64>,
}

#[derive(Debug)]
pub(super) struct RecordingFile {
    /// `None` for standard output, or if nothing is open.
    file: Option<File>,
    is_open: bool,
    path: PathBuf,
    /// Bytes of complete records.
    length: u64,
    /// Length when it was opened.
    found: u64,
    /// Length with the header.
    begin: u64,
    begun: Instant,
    is_dirty: bool,
    lock: Option<File>,
}

impl RecordingFile {
    /// Opens the place: a file after its last complete record, or a new file of a directory.
    pub(super) fn open(options: &Options) -> io::Result<Self> {
        Self::with(options, None)
    }

    fn without_file(is_open: bool) -> Self {
        Self {
            file: None,
            is_open,
            path: PathBuf::new(),
            length: 0,
            found: 0,
            begin: 0,
            begun: clock::monotonic(),
            is_dirty: false,
            lock: None,
        }
    }

    /// Checks the place without writing, and locks a directory.
    pub(super) fn closed(options: &Options) -> io::Result<Self> {
        let mut closed = Self::without_file(false);
        match &options.place {
            Destination::Output => {}
            Destination::Folder(folder, _) => closed.lock = Some(locked(&Folder::open(folder)?, folder)?),
            // Checks that an existing file can be continued.
            Destination::File(path) if path.symlink_metadata().is_ok() => drop(Self::open(options)?),
            Destination::File(path) | Destination::NewFile(path) => {
                let folder =
                    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
                std::fs::read_dir(folder).map_err(|error| named(folder, &error))?;
            }
        }
        Ok(closed)
    }

    /// Closes the file; a directory stays locked.
    pub(super) fn close(&mut self) {
        (self.file, self.is_open) = (None, false);
    }

    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    pub(super) fn name(&self) -> String {
        if self.path.as_os_str().is_empty() {
            "standard output".to_owned()
        } else {
            self.path.display().to_string()
        }
    }

    /// Continues in a new file of the directory.
    pub(super) fn next(&mut self, options: &Options) -> io::Result<()> {
        let lock = self.lock.as_ref().map(File::try_clone).transpose()?;
        *self = Self::with(options, lock)?;
        Ok(())
    }

    fn with(options: &Options, lock: Option<File>) -> io::Result<Self> {
        let (path, mut file, lock) = match &options.place {
            Destination::Output => return Ok(Self::without_file(true)),
            Destination::File(path) => (path.clone(), open(path, How::Write)?, None),
            Destination::NewFile(path) => (path.clone(), open(path, How::Create)?, None),
            Destination::Folder(path, name) => {
                let folder = Folder::open(path)?;
                let lock = match lock {
                    Some(lock) => lock,
                    None => locked(&folder, path)?,
                };
                remove_old(path, &options.rotation)?;
                let (name, file) = created(&folder, name)?;
                (folder.path(&name), file, Some(lock))
            }
        };
        // Another recorder would write between locktop's records.
        file.try_lock().map_err(|_| in_use(&path))?;
        let length = whole(&file).map_err(|error| named(&path, &error))?;
        file.set_len(length)?;
        file.seek(SeekFrom::Start(length))?;
        let file = Some(file);
        Ok(Self { file, path, length, found: length, begin: length, lock, ..Self::without_file(true) })
    }

    pub(super) fn write(&mut self, record: &[u8]) -> io::Result<()> {
        if let Some(file) = &mut self.file {
            file.write_all(record).map_err(|error| named(&self.path, &error))?;
        } else {
            let mut out = io::stdout().lock();
            out.write_all(record)?;
            out.flush()?;
        }
        self.length += record.len() as u64;
        self.is_dirty = true;
        Ok(())
    }

    pub(super) fn begin(&mut self, options: &Options) -> io::Result<()> {
        self.write(&container::file(&options.about).map_err(io::Error::other)?)?;
        self.begin = self.length;
        Ok(())
    }

    /// Whether only the header was written to a file. On standard output the reader already has the header, so an end record
    /// must follow.
    pub(super) fn has_header_alone(&self) -> bool {
        self.file.is_some() && self.length == self.begin
    }

    pub(super) fn cut(&mut self) {
        if let Some(file) = &mut self.file {
            // If this fails as well, readers skip the damaged part.
            let _ = file.set_len(self.length).and_then(|()| file.seek(SeekFrom::Start(self.length)));
        }
    }

    /// Restores the file if no snapshot was recorded; a new file is removed.
    pub(super) fn take_back(&mut self) -> io::Result<()> {
        match &self.file {
            Some(file) if self.found > 0 => file.set_len(self.found),
            Some(_) => std::fs::remove_file(&self.path),
            None => Ok(()),
        }
    }

    pub(super) fn sync(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.is_dirty)
            && let Some(file) = &self.file
        {
            file.sync_data()?;
        }
        Ok(())
    }

    pub(super) fn is_due(&self, options: &Options) -> bool {
        let Rotation { age, size, .. } = options.rotation;
        matches!(options.place, Destination::Folder(..))
            && (age.is_some_and(|age| self.begun.elapsed() >= age)
                || size.is_some_and(|size| self.length >= size))
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn in_use(path: &Path) -> io::Error {
    let text = format!("{}: another process records to it", path.display());
    io::Error::new(io::ErrorKind::ResourceBusy, text)
}

fn locked(folder: &Folder, path: &Path) -> io::Result<File> {
    let lock = folder.file(LOCK, How::Write)?;
    lock.try_lock().map_err(|_| in_use(path))?;
    Ok(lock)
}

fn created(folder: &Folder, name: &str) -> Result<(String, File), FileError> {
    let time = clock::wall().format("%Y%m%dT%H%M%SZ");
    // For several files within a second.
    let more = (2..1000).map(|number| format!("-{number}"));
    for number in std::iter::once(String::new()).chain(more) {
        let name = format!("{name}-{time}{number}.{SUFFIX}");
        match folder.file(&name, How::Create) {
            Err(FileError::Unsafe { flaw: Flaw::Exists, .. }) => {}
            file => return Ok((name, file?)),
        }
    }
    Err(FileError::Unsafe { path: folder.path(name), flaw: Flaw::Exists })
}

/// The end of the last complete record; anything after it is incomplete.
fn whole(file: &File) -> io::Result<u64> {
    let end = last_whole(file.try_clone()?)?;
    if end == 0 && file.metadata()?.len() > 0 {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the file exists and is not a recording"));
    }
    Ok(end)
}

/// The recordings of a directory, oldest first.
pub(in crate::feed) fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|suffix| suffix == SUFFIX) {
            let changed = path.metadata()?.modified()?;
            files.push((changed, path));
        }
    }
    files.sort();
    Ok(files.into_iter().map(|(_, path)| path).collect())
}

fn remove_old(folder: &Path, rotation: &Rotation) -> io::Result<()> {
    let mut total = 0;
    for path in files(folder)?.into_iter().rev() {
        let found = path.symlink_metadata()?;
        if !found.is_file() {
            continue;
        }
        total += found.len();
        let age = (clock::wall() - chrono::DateTime::from(found.modified()?)).to_std().unwrap_or_default();
        let is_old = rotation.keep_age.is_some_and(|keep| age > keep);
        if is_old || rotation.keep_size.is_some_and(|keep| total > keep) {
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}
