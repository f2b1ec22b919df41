//! Rows of `pg_stat_activity`.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::DecodeError;
use super::copy::{CopyReader, Fields};
use super::texts::Texts;
use super::value::{inet, int4, int8, oid, text, timestamp};
use crate::model::Text;
use crate::model::backend::{Backend, State};

/// Columns of `assets/sql/backends.sql`.
const COLUMNS: usize = 19;

/// The rows so far, with the OIDs of their roles beside them.
#[derive(Debug)]
pub struct Backends<'a> {
    reader: CopyReader,
    rows: Vec<Backend>,
    roles: Vec<Option<u32>>,
    texts: &'a mut Texts,
    before: FxHashMap<i32, &'a Backend>,
}

impl<'a> Backends<'a> {
    /// `texts` are shared with earlier polls; so are the queries of `before`, where they are the same.
    pub fn new(texts: &'a mut Texts, before: &'a [Backend]) -> Self {
        Self {
            reader: CopyReader::default(),
            rows: Vec::with_capacity(before.len() + 8),
            roles: Vec::with_capacity(before.len() + 8),
            texts,
            before: before.iter().map(|backend| (backend.pid, backend)).collect(),
        }
    }

    /// Decodes one message.
    ///
    /// # Errors
    /// When it is not what the protocol promises.
    pub fn read(&mut self, message: &[u8]) -> Result<(), DecodeError> {
        let Self { reader, rows, roles, texts, before } = self;
        reader.read(message, COLUMNS, |fields| {
            if let Some((backend, role)) = row(fields, texts, before)? {
                rows.push(backend);
                roles.push(role);
            }
            Ok(())
        })
    }

    /// The rows without the names of databases and roles, and the OID of each one's role.
    #[must_use]
    pub fn finish(self) -> (Vec<Backend>, Vec<Option<u32>>) {
        (self.rows, self.roles)
    }
}

fn row(
    fields: &mut Fields<'_>,
    texts: &mut Texts,
    before: &FxHashMap<i32, &Backend>,
) -> Result<Option<(Backend, Option<u32>)>, DecodeError> {
    let Some(pid) = int4(fields.value()?) else { return Ok(None) };
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
        query: query(fields.value()?, before.get(&pid).and_then(|old| old.query.as_ref())),
    };
    Ok(Some((backend, role)))
}

/// The query of the poll before where it is the same: queries are the bulk of the text, and most stay.
fn query(bytes: Option<&[u8]>, before: Option<&Text>) -> Option<Text> {
    let bytes = bytes?;
    if let Some(before) = before.filter(|before| before.as_bytes() == bytes) {
        return Some(Arc::clone(before));
    }
    let text = String::from_utf8_lossy(bytes);
    Some(match before {
        Some(before) if **before == *text => Arc::clone(before),
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
