//! Records of a file, one after the other, readable from both ends:
//!
//! ```text
//! F5 'L' 'T' 'R'   u8 kind   u8 flags (1: must be understood)   u16 0   u32 length   u32 CRC-32 of kind to length and of the payload
//! payload          u32 length again
//! ```
//!
//! Numbers are little endian. The payload of a snapshot begins with the data of a time line: u64 number, i64 microseconds
//! since 1970, u32 waiting sessions, u8 trouble, three bytes of 0. The frame follows.

use super::cell::{column, micros, rows, time};
use super::frame::Frame;
use super::known::{Limit, LimitRows, of_thresholds, thresholds};
use super::strings::{Decoded, RecordError, Strings, TextBlock};
use crate::model::Timestamp;
use crate::model::past::{Incident, Moment};
use crate::model::thresholds::Thresholds;
use prost::Message;

/// The written version of the format, and the first version that can read it.
const FORMAT: u32 = 1;

const SYNC: [u8; 4] = [0xF5, b'L', b'T', b'R'];

/// Bytes of a record before its payload.
pub const HEADER: usize = 16;

/// Bytes of a record behind its payload.
pub const FOOTER: usize = 4;

/// Bytes of a snapshot before its frame.
pub const MOMENT: usize = 24;

/// Maximum size of a record.
const LARGEST: u32 = 64 << 20;

/// Type of a record. Numbers are never reused. A reader skips a type that it does not know, unless its flag forbids that.
///
/// There is no type for an unchanged snapshot: no two are equal, because they contain locktop's own session, and one of an
/// idle server takes only 250 bytes. There is none for an index or for sums of a minute: without them, a day of such
/// snapshots is opened in a fifth of a second of processor time, and reported in two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum RecordKind {
    Other = 0,
    File = 1,
    Key = 2,
    /// A snapshot that needs those before it in its group.
    Snapshot = 3,
    /// The connection was lost; one line of text.
    Link = 6,
    /// The file was closed on purpose.
    End = 127,
}

impl RecordKind {
    fn of(code: u8) -> Self {
        let known = [Self::File, Self::Key, Self::Snapshot, Self::Link, Self::End];
        known.into_iter().find(|kind| *kind as u8 == code).unwrap_or(Self::Other)
    }
}

/// The numbers of incidents in the data of a time line; 0 is none.
const INCIDENTS: [(u8, Incident); 4] =
    [(1, Incident::Action), (2, Incident::NoAnswer), (3, Incident::Begun), (4, Incident::Deadlock)];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub kind: RecordKind,
    /// A reader that does not know its kind must not continue.
    pub is_needed: bool,
    pub length: u32,
    checksum: u32,
    begin: [u8; 8],
}

impl Header {
    pub fn parse(bytes: &[u8; HEADER]) -> Option<Self> {
        let [s0, s1, s2, s3, kind, flags, zero0, zero1, l0, l1, l2, l3, c0, c1, c2, c3] = *bytes;
        let length = u32::from_le_bytes([l0, l1, l2, l3]);
        let is_record = [s0, s1, s2, s3] == SYNC && [zero0, zero1] == [0, 0] && length <= LARGEST;
        is_record.then_some(Self {
            kind: RecordKind::of(kind),
            is_needed: flags & 1 == 1,
            length,
            checksum: u32::from_le_bytes([c0, c1, c2, c3]),
            begin: [kind, flags, zero0, zero1, l0, l1, l2, l3],
        })
    }

    pub fn total(&self) -> u64 {
        HEADER as u64 + u64::from(self.length) + FOOTER as u64
    }

    pub fn fits(&self, payload: &[u8], footer: &[u8]) -> bool {
        u32::try_from(payload.len()) == Ok(self.length)
            && footer == self.length.to_le_bytes()
            && checksum(&self.begin, payload) == self.checksum
    }
}

fn checksum(begin: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(begin);
    hasher.update(payload);
    hasher.finalize()
}

pub fn next_sync(bytes: &[u8]) -> Option<usize> {
    bytes.windows(SYNC.len()).position(|window| window == SYNC)
}

pub fn record(kind: RecordKind, payload: &[u8]) -> Result<Vec<u8>, RecordError> {
    let length = u32::try_from(payload.len()).ok().filter(|length| *length <= LARGEST);
    let length = length.ok_or(RecordError::TooLarge)?.to_le_bytes();
    let mut bytes = Vec::with_capacity(HEADER + payload.len() + FOOTER);
    bytes.extend_from_slice(&SYNC);
    bytes.extend_from_slice(&[kind as u8, 0, 0, 0]);
    bytes.extend_from_slice(&length);
    let checksum = checksum(bytes.get(SYNC.len()..).unwrap_or_default(), payload);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes.extend_from_slice(payload);
    bytes.extend_from_slice(&length);
    Ok(bytes)
}

pub fn snapshot_record(moment: &Moment, frame: &Frame) -> Result<Vec<u8>, RecordError> {
    let mut payload = Vec::with_capacity(MOMENT + frame.bytes.len());
    payload.extend_from_slice(&moment.id.to_le_bytes());
    payload.extend_from_slice(&micros(Some(moment.at)).to_le_bytes());
    payload.extend_from_slice(&moment.waiting.to_le_bytes());
    let trouble = INCIDENTS.iter().find(|(_, trouble)| moment.incident == Some(*trouble));
    payload.extend_from_slice(&[trouble.map_or(0, |(number, _)| *number), 0, 0, 0]);
    payload.extend_from_slice(&frame.bytes);
    record(if frame.is_key { RecordKind::Key } else { RecordKind::Snapshot }, &payload)
}

/// The time line data of a snapshot, from the first bytes of its payload; `None` if they are invalid.
pub fn moment(bytes: &[u8; MOMENT]) -> Option<Moment> {
    let [i0, i1, i2, i3, i4, i5, i6, i7, a0, a1, a2, a3, a4, a5, a6, a7, w0, w1, w2, w3, trouble, ..] =
        *bytes;
    Some(Moment {
        id: u64::from_le_bytes([i0, i1, i2, i3, i4, i5, i6, i7]),
        at: time(i64::from_le_bytes([a0, a1, a2, a3, a4, a5, a6, a7]))?,
        waiting: u32::from_le_bytes([w0, w1, w2, w3]),
        incident: INCIDENTS.iter().find(|(number, _)| *number == trouble).map(|(_, trouble)| *trouble),
    })
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct RecordingInfo {
    pub program: String,
    /// When it began, by the clock of the recording machine.
    pub created: Option<Timestamp>,
    /// The server, without a password.
    pub target: String,
    /// Requested seconds between two snapshots.
    pub refresh: f64,
    /// Redaction of statements: `none`, `literals` or `queries`.
    pub redaction: String,
    pub thresholds: Thresholds,
}

#[derive(Clone, PartialEq, prost::Message)]
struct File {
    #[prost(uint32, tag = 1)]
    format: u32,
    #[prost(uint32, tag = 2)]
    needs_reader: u32,
    #[prost(string, tag = 3)]
    program: String,
    #[prost(sfixed64, tag = 4)]
    created: i64,
    #[prost(string, tag = 5)]
    target: String,
    #[prost(double, tag = 6)]
    refresh: f64,
    #[prost(string, tag = 7)]
    redaction: String,
    #[prost(message, required, tag = 8)]
    strings: TextBlock,
    #[prost(message, required, tag = 9)]
    limits: LimitRows,
}

pub fn file(about: &RecordingInfo) -> Result<Vec<u8>, RecordError> {
    let mut strings = Strings::default();
    let limits = column(&of_thresholds(&about.thresholds), &mut strings);
    let file = File {
        format: FORMAT,
        needs_reader: FORMAT,
        program: about.program.clone(),
        created: micros(about.created),
        target: about.target.clone(),
        refresh: about.refresh,
        redaction: about.redaction.clone(),
        strings: strings.take_new(),
        limits,
    };
    record(RecordKind::File, &file.encode_to_vec())
}

/// Reads the description of a file from the payload of its first record.
pub fn about(payload: &[u8]) -> Result<RecordingInfo, RecordError> {
    let file = File::decode(payload).map_err(|_| RecordError::Damaged)?;
    if file.needs_reader > FORMAT {
        return Err(RecordError::Later);
    }
    let mut strings = Decoded::default();
    strings.extend(&file.strings)?;
    let limits: Vec<Limit> = rows(&file.limits, &strings);
    Ok(RecordingInfo {
        program: file.program,
        created: time(file.created),
        target: file.target,
        refresh: file.refresh,
        redaction: file.redaction,
        thresholds: thresholds(&limits),
    })
}
