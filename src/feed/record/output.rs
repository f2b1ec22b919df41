//! Where records go: a file, a folder with a file for each stretch of time, or standard output.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use locktop_base::file::{FileError, Flaw, Folder, How, open};

use super::Options;
use crate::clock;
use crate::feed::replay::last_whole;
use crate::wire::record::container;

/// How the files of a folder end.
const SUFFIX: &str = "ltr";

/// The file by which a folder belongs to one who records.
const LOCK: &str = ".lock";

/// Where to record to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A file; after what is there already, if that is a recording.
    File(PathBuf),
    /// A file that must not exist yet.
    NewFile(PathBuf),
    /// A folder, and how the names of its files begin.
    Folder(PathBuf, String),
    /// Standard output, for whoever reads it there.
    Output,
}

/// When a folder gets another file, and which of its files are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rotation {
    /// A file is not written for longer than this; none for any time.
    pub age: Option<Duration>,
    /// Bytes after which another file begins; none for any number.
    pub size: Option<u64>,
    /// Files are removed that nobody has written to for longer than this; none for never.
    pub keep_age: Option<Duration>,
    /// Bytes that all files together may have, the oldest go first; none for any number.
    pub keep_size: Option<u64>,
}

/// What is written to.
#[derive(Debug)]
pub(super) struct Output {
    /// None for standard output, and where nothing is open.
    file: Option<File>,
    is_open: bool,
    path: PathBuf,
    /// Bytes of whole records.
    length: u64,
    /// Bytes that were there when it was opened.
    found: u64,
    /// Bytes that it has with what a file says of itself.
    begin: u64,
    begun: Instant,
    is_dirty: bool,
    /// Held for as long as somebody records.
    lock: Option<File>,
}

impl Output {
    /// Opens the place: a file at the end of its last whole record, of a folder a new file.
    pub(super) fn open(options: &Options) -> io::Result<Self> {
        Self::with(options, None)
    }

    /// Sees to it that the place is one, and that it is ours where it is a folder; writes nothing yet.
    pub(super) fn closed(options: &Options) -> io::Result<Self> {
        let mut closed = Self {
            file: None,
            is_open: false,
            path: PathBuf::new(),
            length: 0,
            found: 0,
            begin: 0,
            begun: clock::monotonic(),
            is_dirty: false,
            lock: None,
        };
        match &options.place {
            Place::Output => {}
            Place::Folder(folder, _) => closed.lock = Some(locked(&Folder::open(folder)?, folder)?),
            // What is there is gone on with, if it may be.
            Place::File(path) if path.symlink_metadata().is_ok() => drop(Self::open(options)?),
            Place::File(path) | Place::NewFile(path) => {
                let folder =
                    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
                std::fs::read_dir(folder).map_err(|error| named(folder, &error))?;
            }
        }
        Ok(closed)
    }

    /// Closes the file; the folder stays ours.
    pub(super) fn close(&mut self) {
        (self.file, self.is_open) = (None, false);
    }

    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Where it writes to, for people.
    pub(super) fn name(&self) -> String {
        if self.path.as_os_str().is_empty() {
            "standard output".to_owned()
        } else {
            self.path.display().to_string()
        }
    }

    /// Goes on in another file of the folder.
    pub(super) fn next(&mut self, options: &Options) -> io::Result<()> {
        let lock = self.lock.as_ref().map(File::try_clone).transpose()?;
        *self = Self::with(options, lock)?;
        Ok(())
    }

    fn with(options: &Options, lock: Option<File>) -> io::Result<Self> {
        let (path, file, lock) = match &options.place {
            Place::Output => {
                return Ok(Self {
                    file: None,
                    is_open: true,
                    path: PathBuf::new(),
                    length: 0,
                    found: 0,
                    begin: 0,
                    begun: clock::monotonic(),
                    is_dirty: false,
                    lock: None,
                });
            }
            Place::File(path) => (path.clone(), open(path, How::Write)?, None),
            Place::NewFile(path) => (path.clone(), open(path, How::Create)?, None),
            Place::Folder(path, name) => {
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
        let mut file = file;
        // Another would write between our records.
        file.try_lock().map_err(|_| in_use(&path))?;
        let length = whole(&file).map_err(|error| named(&path, &error))?;
        file.set_len(length)?;
        file.seek(SeekFrom::Start(length))?;
        Ok(Self {
            file: Some(file),
            is_open: true,
            path,
            length,
            found: length,
            begin: length,
            begun: clock::monotonic(),
            is_dirty: false,
            lock,
        })
    }

    /// Writes a record in one piece.
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

    /// Writes what a file says of itself.
    pub(super) fn begin(&mut self, options: &Options) -> io::Result<()> {
        self.write(&container::file(&options.about).map_err(io::Error::other)?)?;
        self.begin = self.length;
        Ok(())
    }

    /// Whether nothing was written to the file since. Who reads our output has the header, and is told that it ends.
    pub(super) fn has_header_alone(&self) -> bool {
        self.file.is_some() && self.length == self.begin
    }

    /// Takes away what was written of a record that is not whole.
    pub(super) fn cut(&mut self) {
        if let Some(file) = &mut self.file {
            // Where that fails too, who reads it skips what is damaged.
            let _ = file.set_len(self.length).and_then(|()| file.seek(SeekFrom::Start(self.length)));
        }
    }

    /// Leaves the file as it was found, where no look came: one that was not there is gone.
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

    /// Whether it is time for another file.
    pub(super) fn is_due(&self, options: &Options) -> bool {
        let Rotation { age, size, .. } = options.rotation;
        matches!(options.place, Place::Folder(..))
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

/// A new file of a folder, named after a target and the time.
fn created(folder: &Folder, name: &str) -> Result<(String, File), FileError> {
    let time = clock::wall().format("%Y%m%dT%H%M%SZ");
    // Several within one second.
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

/// Where the last record of a file ends that is whole: what is behind it is torn.
///
/// # Errors
/// When it cannot be read, or what is there is no recording.
fn whole(file: &File) -> io::Result<u64> {
    let end = last_whole(file.try_clone()?)?;
    if end == 0 && file.metadata()?.len() > 0 {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the file exists and is not a recording"));
    }
    Ok(end)
}

/// The recordings of a folder, oldest first.
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

/// Removes files that are too old, and the oldest where all together are too large.
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
