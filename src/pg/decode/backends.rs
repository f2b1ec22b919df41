use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::DecodeError;
use super::copy::{CopyReader, Fields};
use super::value::{inet, int4, int8, oid, text, timestamp};
use super::{Encoding, Encodings, Texts};
use crate::model::backend::{Backend, State};
use crate::model::lock::Prepared;
use crate::model::{QueryText, Text};

/// Number of columns of `assets/sql/backends.sql`.
const COLUMNS: usize = 19;

/// What one session has read of `pg_stat_activity`, for its next poll: see `assets/sql/backends.sql`.
#[derive(Debug, Clone, Default)]
pub struct KnownBackends {
    /// All rows of that poll, including those that the server did not send again.
    pub rows: Arc<Vec<Backend>>,
    /// The digest of each part of the rows, as the server sent it.
    pub digests: String,
}

#[derive(Debug)]
pub struct BackendsDecoder<'a> {
    reader: CopyReader,
    rows: Vec<Backend>,
    texts: &'a mut Texts,
    before: &'a KnownBackends,
    poll: &'a str,
    by_pid: FxHashMap<i32, &'a Backend>,
    encodings: Encodings,
    last: Option<BackendsTrailer>,
}

#[derive(Debug, Default)]
struct BackendsTrailer {
    poll: String,
    digests: String,
}

impl<'a> BackendsDecoder<'a> {
    /// `texts` are shared with earlier polls, as are the unchanged queries of `before`. A query is in the encoding of its
    /// session's database. `poll` is the number of the poll in which the server received the digests of `before`.
    pub fn new(texts: &'a mut Texts, before: &'a KnownBackends, poll: &'a str, encodings: Encodings) -> Self {
        Self {
            reader: CopyReader::default(),
            rows: Vec::new(),
            texts,
            before,
            poll,
            by_pid: before.rows.iter().map(|backend| (backend.pid, backend)).collect(),
            encodings,
            last: None,
        }
    }

    pub fn read(&mut self, message: &[u8]) -> Result<(), DecodeError> {
        let Self { reader, rows, texts, by_pid, encodings, last, .. } = self;
        reader.read(message, COLUMNS, |fields| {
            match row(fields, texts, by_pid, encodings)? {
                BackendsRow::Backend(backend) => rows.push(backend),
                BackendsRow::Last(found) => *last = Some(found),
            }
            Ok(())
        })
    }

    /// The rows, and the digests for the next poll. Rows in parts with an unchanged digest are kept; received rows have no
    /// database and role names yet.
    ///
    /// # Errors
    /// If the end is missing, or if the server left out rows that are not known here.
    pub fn finish(self) -> Result<(Vec<Backend>, String), DecodeError> {
        let BackendsTrailer { poll, digests } = self.last.ok_or(DecodeError::Short)?;
        if poll != self.poll {
            return Err(DecodeError::Unknown);
        }
        let (before, now) = (parts(&self.before.digests), parts(&digests));
        let is_same: Vec<bool> = now
            .iter()
            .enumerate()
            .map(|(part, digest)| before.get(part).is_some_and(|before| before == digest))
            .collect();
        let part = |pid: i32| usize::try_from(pid & 127).ok().and_then(|part| is_same.get(part));
        let stays = |backend: &&Backend| part(backend.pid) == Some(&true);
        let mut rows: Vec<Backend> = self.before.rows.iter().filter(stays).cloned().collect();
        rows.extend(self.rows);
        Ok((rows, digests))
    }
}

/// The digests in `{12,-7,0}`.
fn parts(digests: &str) -> Vec<&str> {
    digests.trim_matches(['{', '}']).split(',').collect()
}

enum BackendsRow {
    Backend(Backend),
    Last(BackendsTrailer),
}

fn row(
    fields: &mut Fields<'_>,
    texts: &mut Texts,
    before: &FxHashMap<i32, &Backend>,
    encodings: &Encodings,
) -> Result<BackendsRow, DecodeError> {
    let Some(pid) = int4(fields.value()?) else { return last(fields) };
    let backend_start = timestamp(fields.value()?);
    let leader_pid = int4(fields.value()?);
    let datid = oid(fields.value()?).filter(|oid| *oid != 0);
    let role = oid(fields.value()?).filter(|oid| *oid != 0);
    let application = texts.get(fields.value()?);
    let (address, port) = (fields.value()?, fields.value()?);
    let client = client(texts, address, port);
    let backend = Backend {
        pid,
        backend_start,
        leader_pid,
        datid,
        database: None,
        user: None,
        usesysid: role,
        application,
        client,
        client_port: int4(port),
        backend_type: texts.get(fields.value()?),
        state: text(fields.value()?).map(|state| State::parse(&state)),
        wait_event_type: texts.get(fields.value()?),
        wait_event: texts.get(fields.value()?),
        xact_start: timestamp(fields.value()?),
        query_start: timestamp(fields.value()?),
        state_change: timestamp(fields.value()?),
        backend_xid: oid(fields.value()?),
        backend_xmin: oid(fields.value()?),
        query_id: int8(fields.value()?),
        query: query(
            fields.value()?,
            before.get(&pid).and_then(|old| old.query.as_ref()),
            encodings.of(datid),
        ),
    };
    Ok(BackendsRow::Backend(backend))
}

#[cold]
fn last(fields: &mut Fields<'_>) -> Result<BackendsRow, DecodeError> {
    let mut values = Vec::with_capacity(COLUMNS - 1);
    for _ in 1..COLUMNS {
        values.push(fields.value()?);
    }
    let words = |at: usize| text(values.get(at).copied().flatten()).unwrap_or_default().into_owned();
    Ok(BackendsRow::Last(BackendsTrailer { poll: words(4), digests: words(COLUMNS - 2) }))
}

/// Reuses an unchanged query: queries are most of the text, and most do not change.
fn query(bytes: Option<&[u8]>, before: Option<&QueryText>, encoding: Encoding) -> Option<QueryText> {
    let bytes = bytes?;
    let before = before.map(QueryText::unredacted);
    let is_same = |before: &&Text| encoding.is_utf8() && before.as_bytes() == bytes;
    if let Some(before) = before.filter(is_same) {
        return Some(Arc::clone(before).into());
    }
    let text = encoding.decode(bytes);
    Some(match before {
        Some(before) if **before == *text => Arc::clone(before).into(),
        _ => (&*text).into(),
    })
}

/// `[local]` for a Unix socket, which the server shows as port -1 without an address.
fn client(texts: &mut Texts, address: Option<&[u8]>, port: Option<&[u8]>) -> Option<Text> {
    match (inet(address), int4(port)) {
        (Some(address), _) => Some(texts.intern(&address.to_string())),
        (None, Some(-1)) => Some(texts.intern("[local]")),
        (None, _) => None,
    }
}

/// Number of columns of `assets/sql/prepared.sql`.
const PREPARED_COLUMNS: usize = 5;

#[derive(Debug, Default)]
pub struct PreparedRows {
    reader: CopyReader,
    rows: Vec<(Prepared, Option<u32>, Option<u32>)>,
    encodings: Encodings,
}

impl PreparedRows {
    pub fn of(encodings: Encodings) -> Self {
        Self { encodings, ..Self::default() }
    }

    pub fn read(&mut self, message: &[u8]) -> Result<(), DecodeError> {
        let Self { reader, rows, encodings } = self;
        reader.read(message, PREPARED_COLUMNS, |fields| {
            let transaction = oid(fields.value()?);
            let gid = fields.value()?;
            let prepared = timestamp(fields.value()?);
            let (owner, database) = (oid(fields.value()?), oid(fields.value()?));
            let gid = encodings.of(database).text(gid);
            if let (Some(transaction), Some(gid)) = (transaction, gid) {
                let row =
                    Prepared { transaction, gid: (&*gid).into(), prepared, owner: None, database: None };
                rows.push((row, owner, database));
            }
            Ok(())
        })
    }

    /// OIDs of the owners, with duplicates.
    pub fn owners(&self) -> impl Iterator<Item = u32> {
        self.rows.iter().filter_map(|row| row.1)
    }

    /// OIDs of the databases, with duplicates.
    pub fn databases(&self) -> impl Iterator<Item = u32> {
        self.rows.iter().filter_map(|row| row.2)
    }

    pub fn finish(
        self,
        owner: impl Fn(u32) -> Option<Text>,
        database: impl Fn(u32) -> Option<Text>,
    ) -> Vec<Prepared> {
        self.rows
            .into_iter()
            .map(|(row, ownerid, dbid)| Prepared {
                owner: ownerid.and_then(&owner),
                database: dbid.and_then(&database),
                ..row
            })
            .collect()
    }
}
