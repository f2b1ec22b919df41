//! Rows of `pg_locks`.

use std::sync::Arc;

use super::DecodeError;
use super::copy::{CopyReader, Fields};
use super::rows::Rows;
use super::value::{int2, int4, oid, timestamp, unsigned, virtual_transaction};
use crate::model::lock::{Lock, LockMode, LockTag, LockType, VirtualTransaction};

/// Columns of `assets/sql/locks.sql` and `locks_narrow.sql`, which say what is sent as NULL.
const COLUMNS: usize = 11;

/// The rows so far.
#[derive(Debug)]
pub struct Locks {
    /// OID of the database of the session.
    datid: u32,
    reader: CopyReader,
    rows: Rows<Lock>,
    total: Option<u32>,
}

impl Locks {
    /// To be read by a session in the database `datid`, after a poll that saw the rows `before`.
    #[must_use]
    pub fn new(datid: u32, before: &Arc<Vec<Lock>>) -> Self {
        Self { datid, reader: CopyReader::default(), rows: Rows::after(before), total: None }
    }

    /// Decodes one message.
    ///
    /// # Errors
    /// When it is not what the protocol promises.
    pub fn read(&mut self, message: &[u8]) -> Result<(), DecodeError> {
        let Self { datid, reader, rows, total } = self;
        reader.read(message, COLUMNS, |fields| {
            match row(fields, *datid)? {
                Row::Lock(lock) => rows.push(lock),
                Row::Total(count) => *total = count,
                Row::Unknown => {}
            }
            Ok(())
        })
    }

    /// The rows, which are those of the poll before when all are equal, and how many more there were that were left out
    /// on purpose.
    #[must_use]
    pub fn finish(self) -> (Arc<Vec<Lock>>, u64) {
        let seen = self.rows.len() as u64;
        let omitted = self.total.map_or(0, |total| u64::from(total).saturating_sub(seen));
        (self.rows.finish(), omitted)
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
fn row(fields: &mut Fields<'_>, datid: u32) -> Result<Row, DecodeError> {
    let locktype = fields.value()?.map_or(LockType::Advisory, LockType::parse);
    let database = oid(fields.value()?);
    let relation = oid(fields.value()?);
    let rare = fields.value()?.map_or(Rare::default(), Rare::parse);
    let (classid, objid, objsubid) = (oid(fields.value()?), oid(fields.value()?), int2(fields.value()?));
    let Some(virtualtransaction) = fields.value()? else { return Ok(Row::Total(relation)) };
    let virtualtransaction = virtual_transaction(Some(virtualtransaction))
        .unwrap_or(VirtualTransaction { proc_number: 0, local_xid: 0 });
    let pid = int4(fields.value()?);
    let mode = fields.value()?.map_or(Some(LockMode::Exclusive), LockMode::parse);
    let waits = fields.value()?;
    let absent = Absent::of(locktype);
    let tag = LockTag {
        locktype,
        database: database.or(absent.database.then_some(datid)),
        relation,
        page: rare.page,
        tuple: rare.tuple,
        virtualxid: rare.virtualxid,
        transactionid: rare.transactionid,
        classid: classid.or(absent.classid.then_some(0)),
        objid,
        objsubid: objsubid.map(i16::cast_unsigned).or(absent.objsubid.then_some(1)),
    };
    let (granted, wait_start) = (waits.is_none(), timestamp(waits));
    Ok(mode.map_or(Row::Unknown, |mode| {
        Row::Lock(Lock { tag, mode, granted, pid, virtualtransaction, wait_start })
    }))
}

/// Whether a NULL stands for the most frequent value, or is none: `pg_lock_status` leaves each column out for certain
/// types only (`src/backend/utils/adt/lockfuncs.c`).
struct Absent {
    database: bool,
    classid: bool,
    objsubid: bool,
}

impl Absent {
    #[inline]
    fn of(locktype: LockType) -> Self {
        use LockType as T;
        Self {
            database: !matches!(locktype, T::VirtualXid | T::TransactionId | T::SpecToken),
            classid: matches!(locktype, T::Advisory | T::UserLock),
            objsubid: matches!(
                locktype,
                T::Advisory | T::UserLock | T::Object | T::ApplyTransaction | T::Other
            ),
        }
    }
}

/// What only one kind of lock has.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Rare {
    page: Option<u32>,
    tuple: Option<u16>,
    virtualxid: Option<VirtualTransaction>,
    transactionid: Option<u32>,
}

impl Rare {
    /// `3/17`, `771`, `4,2` or `4,`.
    fn parse(bytes: &[u8]) -> Self {
        if let Some(comma) = bytes.iter().position(|byte| *byte == b',') {
            let (page, tuple) = bytes.split_at_checked(comma).unwrap_or_default();
            // int4 and int2 on the server: what is above their range was printed negative.
            let number = |digits: &[u8]| std::str::from_utf8(digits).ok()?.parse::<i32>().ok();
            let tuple = tuple.get(1..).and_then(number).and_then(|tuple| i16::try_from(tuple).ok());
            let page = number(page).map(i32::cast_unsigned);
            return Self { page, tuple: tuple.map(i16::cast_unsigned), ..Self::default() };
        }
        match virtual_transaction(Some(bytes)) {
            None => Self { transactionid: unsigned(bytes), ..Self::default() },
            found => Self { virtualxid: found, ..Self::default() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_share_one_are_told_apart() {
        let virtualxid = Some(VirtualTransaction { proc_number: 3, local_xid: 17 });
        for (text, expected) in [
            ("3/17", Rare { virtualxid, ..Rare::default() }),
            ("4294967295", Rare { transactionid: Some(u32::MAX), ..Rare::default() }),
            ("4,2", Rare { page: Some(4), tuple: Some(2), ..Rare::default() }),
            ("-1,-1", Rare { page: Some(u32::MAX), tuple: Some(u16::MAX), ..Rare::default() }),
            ("4,", Rare { page: Some(4), ..Rare::default() }),
            ("", Rare::default()),
            ("x", Rare::default()),
        ] {
            assert_eq!(Rare::parse(text.as_bytes()), expected, "{text}");
        }
    }
}
