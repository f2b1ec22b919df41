//! Records of a file, one after the other, readable from both ends:
//!
//! ```text
//! F5 'L' 'T' 'R'   u8 kind   u8 flags (1: must be understood)   u16 0   u32 length   u32 CRC-32 of kind to length and of the payload
//! payload          u32 length again
//! ```
//!
//! Numbers are little endian. The payload of a look begins with what a time line needs: u64 number, i64 microseconds since 1970, u32 who
//! wait, u8 trouble, three bytes of 0. The frame comes behind it.

use super::cell::{NO_TIME, column, micros, rows, time};
use super::error::RecordError;
use super::frame::Frame;
use super::limits::{Limit, LimitRows, Rows, of_thresholds, thresholds};
use super::strings::{Decoded, Strings, TextBlock};
use crate::model::Timestamp;
use crate::model::thresholds::Thresholds;
use crate::model::timeline::{Moment, Trouble};
use prost::Message;

/// The version of the format that is written, and the first that can read it.
const FORMAT: u32 = 1;

const SYNC: [u8; 4] = [0xF5, b'L', b'T', b'R'];

/// Bytes of a record before its payload.
pub const HEADER: usize = 16;

/// Bytes of a record behind its payload.
pub const FOOTER: usize = 4;

/// Bytes of a look before its frame.
pub const MOMENT: usize = 24;

/// No record is larger.
const LARGEST: u32 = 64 << 20;

/// What a record is. Numbers are never used twice; who does not know one skips it, unless its flag says that it must not.
///
/// There is none for a look in which nothing changed, for the sums of a minute, and for an index. No look is as the one before: our own
/// session is in it. An idle server's takes 250 bytes, whoever skipped a smaller one would miss it; and a day of such looks is opened in a
/// fifth of a second of processor time without an index, and reported in two without sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// What the file is of.
    File,
    /// A look that begins a group.
    Key,
    /// A look that needs those before it in its group.
    Look,
    /// The connection was lost: a line.
    Link,
    /// It was closed on purpose.
    End,
    /// One of a later release.
    Other,
}

impl Kind {
    const fn code(self) -> u8 {
        match self {
            Self::Other => 0,
            Self::File => 1,
            Self::Key => 2,
            Self::Look => 3,
            Self::Link => 6,
            Self::End => 127,
        }
    }

    const fn of(code: u8) -> Self {
        match code {
            1 => Self::File,
            2 => Self::Key,
            3 => Self::Look,
            6 => Self::Link,
            127 => Self::End,
            _ => Self::Other,
        }
    }
}

/// What stands before a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// What the record is of.
    pub kind: Kind,
    /// Who does not know its kind must not go on.
    pub is_needed: bool,
    /// Bytes of the payload that follows.
    pub length: u32,
    checksum: u32,
    begin: [u8; 8],
}

impl Header {
    /// Reads the first bytes of a record; none where they are none.
    pub fn parse(bytes: &[u8; HEADER]) -> Option<Self> {
        let [s0, s1, s2, s3, kind, flags, zero0, zero1, l0, l1, l2, l3, c0, c1, c2, c3] = *bytes;
        let length = u32::from_le_bytes([l0, l1, l2, l3]);
        let is_record = [s0, s1, s2, s3] == SYNC && [zero0, zero1] == [0, 0] && length <= LARGEST;
        is_record.then_some(Self {
            kind: Kind::of(kind),
            is_needed: flags & 1 == 1,
            length,
            checksum: u32::from_le_bytes([c0, c1, c2, c3]),
            begin: [kind, flags, zero0, zero1, l0, l1, l2, l3],
        })
    }

    /// Bytes of the whole record.
    pub fn total(&self) -> u64 {
        HEADER as u64 + u64::from(self.length) + FOOTER as u64
    }

    /// Whether the payload and what is behind it are those that were written.
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

/// Where the next record may begin in some bytes.
pub fn next_sync(bytes: &[u8]) -> Option<usize> {
    bytes.windows(SYNC.len()).position(|window| window == SYNC)
}

/// A record as bytes.
///
/// # Errors
/// When the payload is larger than any that is read.
pub fn record(kind: Kind, payload: &[u8]) -> Result<Vec<u8>, RecordError> {
    let length = u32::try_from(payload.len()).ok().filter(|length| *length <= LARGEST);
    let length = length.ok_or(RecordError::TooLarge)?.to_le_bytes();
    let mut bytes = Vec::with_capacity(HEADER + payload.len() + FOOTER);
    bytes.extend_from_slice(&SYNC);
    bytes.extend_from_slice(&[kind.code(), 0, 0, 0]);
    bytes.extend_from_slice(&length);
    let checksum = checksum(bytes.get(SYNC.len()..).unwrap_or_default(), payload);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes.extend_from_slice(payload);
    bytes.extend_from_slice(&length);
    Ok(bytes)
}

/// A look as a record.
///
/// # Errors
/// When it is larger than any that is read.
pub fn look(moment: &Moment, frame: &Frame) -> Result<Vec<u8>, RecordError> {
    let mut payload = Vec::with_capacity(MOMENT + frame.bytes.len());
    payload.extend_from_slice(&moment.id.to_le_bytes());
    payload.extend_from_slice(&micros(Some(moment.at)).to_le_bytes());
    payload.extend_from_slice(&moment.waiting.to_le_bytes());
    let trouble = match moment.trouble {
        None => 0,
        Some(Trouble::Action) => 1,
        Some(Trouble::NoAnswer) => 2,
        Some(Trouble::Begun) => 3,
        Some(Trouble::Deadlock) => 4,
    };
    payload.extend_from_slice(&[trouble, 0, 0, 0]);
    payload.extend_from_slice(&frame.bytes);
    record(if frame.is_key { Kind::Key } else { Kind::Look }, &payload)
}

/// What a time line needs of a look, from the first bytes of its payload; none where they are of none.
pub fn moment(bytes: &[u8; MOMENT]) -> Option<Moment> {
    let [i0, i1, i2, i3, i4, i5, i6, i7, a0, a1, a2, a3, a4, a5, a6, a7, w0, w1, w2, w3, trouble, ..] =
        *bytes;
    Some(Moment {
        id: u64::from_le_bytes([i0, i1, i2, i3, i4, i5, i6, i7]),
        at: time(i64::from_le_bytes([a0, a1, a2, a3, a4, a5, a6, a7]))?,
        waiting: u32::from_le_bytes([w0, w1, w2, w3]),
        trouble: match trouble {
            1 => Some(Trouble::Action),
            2 => Some(Trouble::NoAnswer),
            3 => Some(Trouble::Begun),
            4 => Some(Trouble::Deadlock),
            _ => None,
        },
    })
}

/// What a recording is of.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct About {
    /// Which program made it: `locktop 0.1.0`.
    pub program: String,
    /// When it began, by the clock of the machine that made it.
    pub created: Option<Timestamp>,
    /// The server, without a password.
    pub target: String,
    /// Seconds between two looks, as they were asked for.
    pub refresh: f64,
    /// What was left out of statements: `none`, `literals` or `queries`.
    pub redaction: String,
    /// From when on something is a finding.
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

/// The first record of a file.
///
/// # Errors
/// When it is larger than any that is read.
pub fn file(about: &About) -> Result<Vec<u8>, RecordError> {
    let mut strings = Strings::default();
    let limits: Vec<Limit> = of_thresholds(&about.thresholds);
    let limits = column(&limits, &mut strings);
    let file = File {
        format: FORMAT,
        needs_reader: FORMAT,
        program: about.program.clone(),
        created: about.created.map_or(NO_TIME, |created| micros(Some(created))),
        target: about.target.clone(),
        refresh: about.refresh,
        redaction: about.redaction.clone(),
        strings: strings.take_new(),
        limits,
    };
    record(Kind::File, &file.encode_to_vec())
}

/// What a file says of itself; `payload` is that of its first record.
///
/// # Errors
/// When it says nothing, or needs a later release.
pub fn about(payload: &[u8]) -> Result<About, RecordError> {
    let file = File::decode(payload).map_err(|_| RecordError::Damaged)?;
    if file.needs_reader > FORMAT {
        return Err(RecordError::Later);
    }
    let mut strings = Decoded::default();
    strings.extend(&file.strings)?;
    let limits: Rows<Limit> = rows(&file.limits, &strings);
    Ok(About {
        program: file.program,
        created: time(file.created),
        target: file.target,
        refresh: file.refresh,
        redaction: file.redaction,
        thresholds: thresholds(&limits),
    })
}
