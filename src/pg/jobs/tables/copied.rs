//! Reads a table of an untrusted owner. A COPY of the table itself is not planned, and so evaluates nothing that its
//! owner wrote: no predicate, expression, default, rule, trigger or policy. It refuses views, foreign and partitioned
//! tables, so replacing the table with one of those gains nothing. (`DoCopy` in `src/backend/commands/copy.c`; output
//! functions of types are built in, since only a superuser can create others.)
//!
//! COPY returns the whole table in the types of its columns. So the table must be small, and the rows that a query would
//! choose are chosen here.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::TryStreamExt;
use postgres_protocol::escape::escape_identifier;
use rustc_hash::FxHashMap;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Statement};

use super::{ColumnKind, Columns, Refusal, Table};
use crate::clock;
use crate::model::Text;
use crate::pg::SectionError;
use crate::pg::decode::DecodeError;
use crate::pg::decode::copy::CHARACTERS;
use crate::pg::decode::copy::{CopyReader, RowBuffer};
use crate::pg::decode::value::{self, EPOCH, float8, int2, int4, int8, raw};
use locktop_tasks::trust::remedy;

/// Sizes of tables whose copy was started and did not finish, by OID and name. The copy is not started again until the
/// size changes or some time has passed, since each attempt is as expensive for the server. Outlives the connection,
/// which the copy may have ended.
static TOO_LARGE: Mutex<BTreeMap<(u32, String), (i64, Instant)>> = Mutex::new(BTreeMap::new());

/// How long such a copy is not started again.
const LATER: Duration = Duration::from_secs(600);

/// A table of up to this many bytes cannot exceed [`MOST`], however well it is compressed (1 in 255 by LZ4).
const SMALL: i64 = 128 << 10;

/// Largest number of remembered tables.
const REMEMBERED: usize = 10_000;

/// Largest table that is copied, in bytes including TOAST.
const LIMIT: i64 = 8 << 20;
/// Largest copy in bytes: stored data may be compressed.
const MOST: usize = 32 << 20;
/// Bytes that a poll may copy on average.
const EACH: usize = 64 << 10;
/// Largest number of polls skipped between two copies.
const LONGEST: u32 = 30;
#[derive(Debug, Clone)]
pub(in crate::pg) struct Copying {
    statement: Statement,
    layout: CopyLayout,
    oid: u32,
    name: String,
    owner: String,
}

#[derive(Debug, Clone)]
struct CopyLayout {
    copied: Vec<u32>,
    /// The wanted kinds, each with the index of its copied column.
    wanted: Vec<(ColumnKind, Option<usize>)>,
    /// Number of trailing columns that are always NULL.
    extra: usize,
    /// Seconds east of UTC, for times without a zone.
    zone: i64,
}

impl Copying {
    /// Prepares the copy, or returns why the table is not read.
    pub(in crate::pg) async fn prepare(
        client: &Client,
        table: &Table,
        wanted: Columns,
        extra: usize,
    ) -> Result<Result<Self, Text>, SectionError> {
        let name = table.label();
        let owner = table.stranger.as_deref().unwrap_or_default();
        match size(client, table.oid).await {
            Ok(Some(size)) => {
                if let Some(reason) = is_too_large((table.oid, &name), size, owner) {
                    return Ok(Err(format!("{name} is not read: {reason}").into()));
                }
            }
            Ok(None) => return Ok(Err(format!("{name} no longer exists").into())),
            Err(error) if error.is_refused() => {
                return Ok(Err(format!("the size of {name} cannot be seen: {error}").into()));
            }
            Err(error) => return Err(error),
        }
        let mut names = Vec::new();
        let mut layout = CopyLayout { copied: Vec::new(), wanted: Vec::new(), extra, zone: table.zone };
        for (name, kind, _) in wanted {
            let column = table.column(name).filter(|column| column.generated.is_empty());
            let place = column.filter(|column| fits(*kind, column.kind)).map(|column| {
                names.push(escape_identifier(&column.name));
                layout.copied.push(column.kind);
                layout.copied.len() - 1
            });
            layout.wanted.push((*kind, place));
        }
        let (place, columns) = (table.named().sql(), names.join(", "));
        let sql = format!("COPY {place} ({columns}) TO STDOUT (FORMAT binary)");
        let (oid, owner) = (table.oid, owner.to_owned());
        Ok(Ok(Self { statement: client.prepare(&sql).await?, layout, oid, name, owner }))
    }

    /// The rows, as a query of the wanted columns would return them.
    pub(super) async fn read(&self, client: &Client) -> Result<Vec<Bytes>, Refusal> {
        // The table may have grown since it was found, and its TOAST data may be large.
        let size = size(client, self.oid).await.map_err(Refusal::Section)?;
        let Some(size) = size else { return Err(Refusal::Guarded("it no longer exists".into())) };
        if let Some(reason) = is_too_large((self.oid, &self.name), size, &self.owner) {
            return Err(Refusal::TooLarge(reason));
        }
        remember(self.oid, &self.name, Some(size));
        let copy = async {
            let mut messages = pin!(client.copy_out(&self.statement).await?);
            let (mut kept, mut length) = (Vec::new(), 0);
            while let Some(message) = messages.try_next().await? {
                length += message.len();
                if length > MOST {
                    break;
                }
                kept.push(message);
            }
            Ok((kept, length))
        };
        let copied = copy.await.map_err(|error: tokio_postgres::Error| SectionError::from(error));
        // A statement that the server refused or canceled for another reason shows nothing about the size.
        let is_known = match &copied {
            Ok((_, length)) => *length <= MOST,
            Err(error) => !error.is_fatal() && error.code() != Some(&SqlState::QUERY_CANCELED),
        };
        if is_known {
            remember(self.oid, &self.name, None);
        }
        let (messages, length) = copied.map_err(Refusal::Section)?;
        if length > MOST {
            return Err(Refusal::TooLarge(
                is_too_large((self.oid, &self.name), size, &self.owner)
                    .unwrap_or_else(|| "it is too large".into()),
            ));
        }
        let unreadable = |error: DecodeError| Refusal::Section(error.into());
        let mut offsets = Offsets::new(self.layout.zone);
        let moments = self.layout.moments(&messages).map_err(unreadable)?;
        offsets.ask(client, moments).await.map_err(Refusal::Section)?;
        self.layout.rows(&messages, &offsets).map_err(unreadable)
    }

    /// Polls to skip after a copy of this size.
    pub(in crate::pg) fn rest(messages: &[Bytes]) -> u32 {
        let bytes: usize = messages.iter().map(Bytes::len).sum();
        u32::try_from(bytes / EACH).unwrap_or(u32::MAX).min(LONGEST)
    }
}

fn is_too_large((oid, name): (u32, &str), size: i64, owner: &str) -> Option<Text> {
    let remedy = remedy(owner);
    if size > LIMIT {
        let (size, limit) = (size >> 20, LIMIT >> 20);
        return Some(
            format!("{owner} is not trusted, and it has {size} MB, more than {limit}; {remedy}").into(),
        );
    }
    let known = TOO_LARGE.lock().unwrap_or_else(PoisonError::into_inner);
    known.get(&(oid, name.to_owned())).filter(|(then, at)| *then == size && at.elapsed() < LATER)?;
    let most = MOST >> 20;
    Some(format!("{owner} is not trusted, and a copy of it exceeds {most} MB or takes too long; next attempt when its size changes, or in 10 minutes; {remedy}").into())
}

fn remember(oid: u32, name: &str, size: Option<i64>) {
    let mut known = TOO_LARGE.lock().unwrap_or_else(PoisonError::into_inner);
    match size {
        Some(size) if size > SMALL && known.len() < REMEMBERED => {
            known.insert((oid, name.to_owned()), (size, clock::monotonic()));
        }
        _ => {
            known.remove(&(oid, name.to_owned()));
        }
    }
}

/// Bytes on disk, including TOAST; None if the table does not exist.
async fn size(client: &Client, oid: u32) -> Result<Option<i64>, SectionError> {
    let row = client
        .query_typed_one("SELECT pg_catalog.pg_table_size($1::pg_catalog.regclass)", &[(&oid, Type::OID)])
        .await?;
    Ok(int8(raw(&row, 0)))
}

/// Whether a type can be read as this kind: as in the queries, a number can be a text or seconds.
fn fits(wanted: ColumnKind, oid: u32) -> bool {
    match (wanted, ColumnKind::of(oid)) {
        (ColumnKind::Text, Some(ColumnKind::Int))
        | (ColumnKind::Interval, Some(ColumnKind::Int | ColumnKind::Number)) => true,
        (wanted, Some(kind)) => wanted == kind,
        (_, None) => false,
    }
}

impl CopyLayout {
    fn moments(&self, messages: &[Bytes]) -> Result<Vec<i64>, DecodeError> {
        let (mut reader, mut moments) = (CopyReader::default(), Vec::new());
        if !self.copied.iter().any(|oid| matches!(*oid, 1082 | 1114)) {
            return Ok(moments);
        }
        for message in messages {
            reader.read(message, self.copied.len(), |fields| {
                for oid in &self.copied {
                    let value = fields.value()?;
                    moments.extend(value.and_then(|value| local(*oid, value)));
                }
                Ok(())
            })?;
        }
        Ok(moments)
    }

    fn rows(&self, messages: &[Bytes], offsets: &Offsets) -> Result<Vec<Bytes>, DecodeError> {
        let (mut reader, mut rows) = (CopyReader::default(), RowBuffer::new());
        for message in messages {
            reader.read(message, self.copied.len(), |fields| {
                let mut values = Vec::with_capacity(self.copied.len());
                for oid in &self.copied {
                    values.push(fields.value()?.map(|value| (*oid, value)));
                }
                rows.row(self.wanted.len() + self.extra);
                for (kind, place) in &self.wanted {
                    let value = place.and_then(|place| values.get(place).copied().flatten());
                    let value = value.and_then(|(oid, value)| converted(*kind, oid, value, offsets));
                    // A missing flag counts as false.
                    let value =
                        value.or_else(|| (*kind == ColumnKind::Bool && place.is_some()).then(|| vec![0]));
                    rows.value(value.as_deref());
                }
                (0..self.extra).for_each(|_| rows.value(None));
                Ok(())
            })?;
        }
        Ok(rows.finish())
    }
}

fn converted(wanted: ColumnKind, oid: u32, value: &[u8], offsets: &Offsets) -> Option<Vec<u8>> {
    match wanted {
        ColumnKind::Int | ColumnKind::Oid => integer(oid, value).map(|number| number.to_be_bytes().to_vec()),
        ColumnKind::Text => match ColumnKind::of(oid) {
            Some(ColumnKind::Int) => integer(oid, value).map(|number| number.to_string().into_bytes()),
            _ => Some(cut(value).to_vec()),
        },
        ColumnKind::Time => moment(oid, value, offsets).map(|micros| micros.to_be_bytes().to_vec()),
        ColumnKind::Bool => Some(value.to_vec()),
        ColumnKind::Interval | ColumnKind::Number => {
            seconds(oid, value).map(|number| number.to_be_bytes().to_vec())
        }
    }
}

fn integer(oid: u32, value: &[u8]) -> Option<i64> {
    match oid {
        21 => int2(Some(value)).map(i64::from),
        23 => int4(Some(value)).map(i64::from),
        26 => value::oid(Some(value)).map(i64::from),
        _ => int8(Some(value)),
    }
}

/// The first characters or, for invalid UTF-8, the first bytes.
fn cut(value: &[u8]) -> &[u8] {
    let end = match std::str::from_utf8(value) {
        Ok(text) => text.char_indices().nth(CHARACTERS).map(|(at, _)| at),
        Err(_) => Some(CHARACTERS),
    };
    end.and_then(|end| value.get(..end)).unwrap_or(value)
}

/// Microseconds since 2000 in UTC; infinite values remain infinite.
fn moment(oid: u32, value: &[u8], offsets: &Offsets) -> Option<i64> {
    if oid == 1184 {
        return int8(Some(value));
    }
    match local(oid, value) {
        Some(local) => local.checked_sub(offsets.of(local) * 1_000_000),
        None if oid == 1082 => int4(Some(value)).map(|days| if days > 0 { i64::MAX } else { i64::MIN }),
        None => int8(Some(value)),
    }
}

/// Microseconds since 2000 in local time, for a time without a zone; None if it is infinite.
fn local(oid: u32, value: &[u8]) -> Option<i64> {
    match oid {
        1082 => {
            let days = int4(Some(value)).filter(|days| *days != i32::MAX && *days != i32::MIN)?;
            Some(i64::from(days) * 86_400_000_000)
        }
        1114 => int8(Some(value)).filter(|micros| *micros != i64::MAX && *micros != i64::MIN),
        _ => None,
    }
}

/// A number, or the seconds of an interval as `EXTRACT(epoch …)` counts them.
#[expect(clippy::cast_precision_loss, reason = "seconds on a screen")]
fn seconds(oid: u32, value: &[u8]) -> Option<f64> {
    match oid {
        20 | 21 | 23 => integer(oid, value).map(|number| number as f64),
        700 => Some(f64::from(f32::from_be_bytes(value.try_into().ok()?))),
        701 => float8(Some(value)),
        1700 => numeric(value),
        1186 => {
            let (micros, rest) = value.split_first_chunk::<8>()?;
            let (days, months) = rest.split_first_chunk::<4>()?;
            let (days, months) = (i32::from_be_bytes(*days), int4(Some(months))?);
            let days = f64::from(days) + f64::from(months / 12) * 365.25 + f64::from(months % 12) * 30.0;
            Some(i64::from_be_bytes(*micros) as f64 / 1e6 + days * 86_400.0)
        }
        _ => None,
    }
}

/// The format of `numeric_send`: number of base-10000 digits, weight of the first, sign, scale, digits.
fn numeric(value: &[u8]) -> Option<f64> {
    let words = value.chunks_exact(2).map(|pair| int2(Some(pair))).collect::<Option<Vec<i16>>>()?;
    let (&[_, weight, sign, _], digits) = words.split_first_chunk::<4>()?;
    let places = (0_i32..).map(|place| 10_000_f64.powi(i32::from(weight) - place));
    let sum: f64 = digits.iter().zip(places).map(|(digit, place)| f64::from(*digit) * place).sum();
    match sign.cast_unsigned() {
        0 => Some(sum),
        0x4000 => Some(-sum),
        0xd000 => Some(f64::INFINITY),
        0xf000 => Some(f64::NEG_INFINITY),
        _ => Some(f64::NAN),
    }
}

// Offsets of times without a zone: the server knows the daylight saving time of its zone, and is asked for them.

/// Offsets change only at a quarter of an hour. In microseconds.
const QUARTER: i64 = 900_000_000;
/// Largest number of offsets requested; for the others the current offset is used.
const MOST_OFFSETS: usize = 10_000;

/// The casts that a query would make.
const OFFSETS: &str = "SELECT pg_catalog.array_agg((EXTRACT(epoch FROM h.at) - EXTRACT(epoch FROM h.at::pg_catalog.timestamptz))::pg_catalog.int8 ORDER BY h.place)
  FROM pg_catalog.unnest($1::pg_catalog.timestamp[]) WITH ORDINALITY AS h (at, place)";

/// Seconds east of UTC, by quarter of an hour.
#[derive(Debug)]
struct Offsets {
    now: i64,
    known: FxHashMap<i64, i64>,
}

impl Offsets {
    /// `now` is the current offset in seconds, for all times not requested.
    pub(super) fn new(now: i64) -> Self {
        Self { now, known: FxHashMap::default() }
    }

    /// Requests the offsets of times in microseconds since 2000.
    pub(super) async fn ask(&mut self, client: &Client, times: Vec<i64>) -> Result<(), SectionError> {
        let mut quarters: Vec<i64> = times.into_iter().map(|time| time.div_euclid(QUARTER)).collect();
        quarters.sort_unstable();
        quarters.dedup();
        quarters.truncate(MOST_OFFSETS);
        let at = |quarter: &i64| {
            let micros = quarter.checked_mul(QUARTER)?.checked_add(EPOCH)?;
            Some((*quarter, chrono::DateTime::from_timestamp_micros(micros)?.naive_utc()))
        };
        let (quarters, times): (Vec<_>, Vec<_>) = quarters.iter().filter_map(at).unzip();
        if quarters.is_empty() {
            return Ok(());
        }
        let row = client.query_typed_one(OFFSETS, &[(&times, Type::TIMESTAMP_ARRAY)]).await?;
        let offsets: Vec<i64> = row.try_get::<_, Option<Vec<i64>>>(0)?.unwrap_or_default();
        self.known = quarters.into_iter().zip(offsets).collect();
        Ok(())
    }

    /// The offset at a time in microseconds since 2000.
    pub(super) fn of(&self, time: i64) -> i64 {
        self.known.get(&time.div_euclid(QUARTER)).copied().unwrap_or(self.now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_converted_as_the_server_casts_them() {
        let offsets = Offsets::new(3600);
        let bytes = |number: i64| number.to_be_bytes().to_vec();
        let float = |number: f64| number.to_be_bytes().to_vec();
        let interval =
            [&1_500_000_i64.to_be_bytes()[..], &2_i32.to_be_bytes(), &13_i32.to_be_bytes()].concat();
        let numeric = |words: &[i16]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
        for (kind, oid, value, expected) in [
            (ColumnKind::Int, 21, vec![0xff, 0xff], Some(bytes(-1))),
            (ColumnKind::Int, 23, vec![0, 0, 1, 0], Some(bytes(256))),
            (ColumnKind::Int, 23, vec![0, 0, 1], None),
            (ColumnKind::Oid, 26, vec![0xff; 4], Some(bytes(4_294_967_295))),
            (ColumnKind::Text, 20, bytes(-7), Some(b"-7".to_vec())),
            (ColumnKind::Text, 25, "ä".repeat(600).into_bytes(), Some("ä".repeat(500).into_bytes())),
            (ColumnKind::Text, 1043, vec![0xff; 600], Some(vec![0xff; 500])),
            (ColumnKind::Time, 1184, bytes(5), Some(bytes(5))),
            (ColumnKind::Time, 1114, bytes(3_600_000_005), Some(bytes(5))),
            (ColumnKind::Time, 1114, bytes(i64::MAX), Some(bytes(i64::MAX))),
            (ColumnKind::Time, 1082, vec![0, 0, 0, 1], Some(bytes(82_800_000_000))),
            (ColumnKind::Time, 1082, vec![0x7f, 0xff, 0xff, 0xff], Some(bytes(i64::MAX))),
            (ColumnKind::Interval, 1186, interval, Some(float(1.5 + (2.0 + 365.25 + 30.0) * 86_400.0))),
            (ColumnKind::Interval, 23, vec![0, 0, 0, 9], Some(float(9.0))),
            (ColumnKind::Interval, 1700, numeric(&[2, 0, 0, 2, 12, 5000]), Some(float(12.5))),
            (ColumnKind::Interval, 1700, numeric(&[1, 1, 0x4000, 0, 3]), Some(float(-30_000.0))),
        ] {
            assert_eq!(converted(kind, oid, &value, &offsets), expected, "{kind:?} of {oid}: {value:?}");
        }
    }
}
