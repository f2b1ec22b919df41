//! One file of a recording: a sequence of records.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;

use crate::recording::container::{self, FOOTER, HEADER, Header, MOMENT};

/// Bytes to read at once when searching for a record.
const PIECE: usize = 1 << 16;

/// The same for large records: the end of one and the header of the next.
const HEADS: usize = 512;

#[derive(Debug)]
pub(super) struct Segment {
    file: File,
    path: PathBuf,
    /// A buffered part of the file and its offset: many records are small, and each would take three system calls.
    piece: (u64, Vec<u8>),
    scanned: u64,
    length: u64,
    /// Whether the next record continues a group with a known start.
    pub(super) has_key: bool,
}

/// The end of the last valid record of a file; 0 if there is none.
pub(in crate::feed) fn last_whole(file: File) -> io::Result<u64> {
    let mut segment = Segment::new(file, PathBuf::new());
    let mut end = 0;
    while let Some((offset, header, _)) = segment.next()? {
        if segment.read(offset)?.is_some() {
            end = offset + header.total();
        }
    }
    Ok(end)
}

impl Segment {
    pub(super) fn new(file: File, path: PathBuf) -> Self {
        Self { file, path, piece: (0, Vec::new()), scanned: 0, length: 0, has_key: false }
    }

    pub(super) fn forget(&mut self) {
        self.piece = (0, Vec::new());
    }

    /// The next complete record: its offset, its header and the start of its payload. Skips data between records.
    pub(super) fn next(&mut self) -> io::Result<Option<(u64, Header, [u8; MOMENT])>> {
        loop {
            let mut begin = [0; HEADER + MOMENT];
            let read = self.copy(self.scanned, &mut begin, PIECE)?;
            let Some((first, rest)) = begin.split_first_chunk::<HEADER>().filter(|_| read >= HEADER) else {
                return Ok(None);
            };
            let Some(header) = Header::parse(first) else {
                self.has_key = false;
                if !self.skip()? {
                    return Ok(None);
                }
                continue;
            };
            let end = self.scanned + header.total();
            if end > self.length {
                self.length = self.file.metadata()?.len();
            }
            if end > self.length {
                // The record is being written, or its length is damaged and others follow.
                let here = self.scanned;
                if self.skip()? {
                    self.has_key = false;
                    continue;
                }
                self.scanned = here;
                return Ok(None);
            }
            let mut footer = [0; FOOTER];
            let is_large = header.total() > PIECE as u64 / 16;
            self.copy(end - FOOTER as u64, &mut footer, if is_large { HEADS } else { PIECE })?;
            if footer != header.length.to_le_bytes() {
                self.has_key = false;
                if !self.skip()? {
                    return Ok(None);
                }
                continue;
            }
            let offset = std::mem::replace(&mut self.scanned, end);
            let mut moment = [0; MOMENT];
            moment.copy_from_slice(rest);
            return Ok(Some((offset, header, moment)));
        }
    }

    /// Like [`read_at`], from the buffer if possible; otherwise fills the buffer with `size` bytes.
    fn copy(&mut self, offset: u64, into: &mut [u8], size: usize) -> io::Result<usize> {
        let (begin, piece) = &mut self.piece;
        let end = offset + into.len() as u64;
        if offset < *begin || end > *begin + piece.len() as u64 {
            piece.resize(size, 0);
            let read = read_at(&mut self.file, offset, piece)?;
            piece.truncate(read);
            *begin = offset;
        }
        let there =
            usize::try_from(offset - *begin).ok().and_then(|from| piece.get(from..)).unwrap_or_default();
        let count = there.len().min(into.len());
        into.get_mut(..count).unwrap_or_default().copy_from_slice(there.get(..count).unwrap_or_default());
        Ok(count)
    }

    pub(super) fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Moves to the next possible record. Returns false if there is none.
    fn skip(&mut self) -> io::Result<bool> {
        let length = self.file.metadata()?.len();
        let mut piece = vec![0; PIECE];
        let mut at = self.scanned + 1;
        while at < length {
            let read = read_at(&mut self.file, at, &mut piece)?;
            if let Some(found) = container::next_sync(piece.get(..read).unwrap_or_default()) {
                self.scanned = at + found as u64;
                return Ok(true);
            }
            if read < PIECE {
                break;
            }
            // A record may start at the end of this piece.
            at += (read - 3) as u64;
        }
        Ok(false)
    }

    /// The payload of a record. `None` if it is damaged.
    pub(super) fn read(&mut self, offset: u64) -> io::Result<Option<Vec<u8>>> {
        let mut header = [0; HEADER];
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.read_exact(&mut header)?;
        let Some(header) = Header::parse(&header) else { return Ok(None) };
        let mut payload = vec![0; header.length as usize + FOOTER];
        self.file.read_exact(&mut payload)?;
        let footer = payload.split_off(header.length as usize);
        Ok(header.fits(&payload, &footer).then_some(payload))
    }
}

fn read_at(file: &mut File, offset: u64, into: &mut [u8]) -> io::Result<usize> {
    file.seek(SeekFrom::Start(offset))?;
    let mut read = 0;
    while let Some(rest) = into.get_mut(read..).filter(|rest| !rest.is_empty()) {
        match file.read(rest) {
            Ok(0) => break,
            Ok(count) => read += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}
