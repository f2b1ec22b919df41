//! Rows of `pg_locks`.

use super::DecodeError;
use super::copy::{CopyReader, Fields};
use super::value::{boolean, int2, int4, oid, timestamp, virtual_transaction};
use crate::model::lock::{Lock, LockMode, LockTag, LockType, VirtualTransaction};

/// Columns of `assets/sql/locks.sql` and `locks_narrow.sql`.
const COLUMNS: usize = 15;

/// The rows so far.
#[derive(Debug, Default)]
pub struct Locks {
    reader: CopyReader,
    rows: Vec<Lock>,
    total: Option<u32>,
}

impl Locks {
    /// Room for about `count` rows.
    #[must_use]
    pub fn with_capacity(count: usize) -> Self {
        Self { rows: Vec::with_capacity(count), ..Self::default() }
    }

    /// Decodes one message.
    ///
    /// # Errors
    /// When it is not what the protocol promises.
    pub fn read(&mut self, message: &[u8]) -> Result<(), DecodeError> {
        let Self { reader, rows, total } = self;
        reader.read(message, COLUMNS, |fields| {
            match row(fields)? {
                Row::Lock(lock) => rows.push(lock),
                Row::Total(count) => *total = count,
                Row::Unknown => {}
            }
            Ok(())
        })
    }

    /// The rows, and how many more there were that were left out on purpose.
    #[must_use]
    pub fn finish(self) -> (Vec<Lock>, u64) {
        let seen = self.rows.len() as u64;
        let omitted = self.total.map_or(0, |total| u64::from(total).saturating_sub(seen));
        (self.rows, omitted)
    }
}

enum Row {
    Lock(Lock),
    /// The last row of the narrow statement: how many rows there were.
    Total(Option<u32>),
    /// A mode that this version of locktop does not know: no rule says with what it conflicts.
    Unknown,
}

#[inline]
fn row(fields: &mut Fields<'_>) -> Result<Row, DecodeError> {
    let Some(locktype) = fields.value()? else {
        fields.value()?;
        return Ok(Row::Total(oid(fields.value()?)));
    };
    let tag = LockTag {
        locktype: LockType::parse(locktype),
        database: oid(fields.value()?),
        relation: oid(fields.value()?),
        page: int4(fields.value()?).map(i32::cast_unsigned),
        tuple: int2(fields.value()?).map(i16::cast_unsigned),
        virtualxid: virtual_transaction(fields.value()?),
        transactionid: oid(fields.value()?),
        classid: oid(fields.value()?),
        objid: oid(fields.value()?),
        objsubid: int2(fields.value()?).map(i16::cast_unsigned),
    };
    let virtualtransaction =
        virtual_transaction(fields.value()?).unwrap_or(VirtualTransaction { proc_number: 0, local_xid: 0 });
    let pid = int4(fields.value()?);
    let mode = fields.value()?.and_then(LockMode::parse);
    let granted = boolean(fields.value()?).unwrap_or(true);
    let wait_start = timestamp(fields.value()?);
    Ok(mode.map_or(Row::Unknown, |mode| {
        Row::Lock(Lock { tag, mode, granted, pid, virtualtransaction, wait_start })
    }))
}
