//! Rows of `pg_locks`.

use std::sync::Arc;

use super::DecodeError;
use super::copy::{CopyReader, Fields};
use super::rows::Rows;
use super::value::{int2, int4, oid, timestamp, unsigned, virtual_transaction};
use crate::model::lock::{Lock, LockMode, LockTag, LockType, VirtualTransaction};

/// Columns of `assets/sql/locks.sql` and `locks_narrow.sql`, which say what is sent as NULL.
const COLUMNS: usize = 11;

/// Who reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reader {
    /// OID of the database of the session.
    pub datid: u32,
    /// Process id of the session.
    pub pid: i32,
}

/// The rows so far.
#[derive(Debug)]
pub struct Locks {
    reader: Reader,
    copy: CopyReader,
    rows: Rows<Lock>,
    /// The lock of the reader on its own virtual transaction.
    own: Option<Lock>,
    /// Somebody waits for a virtual transaction.
    awaited: bool,
    total: Option<u32>,
}

impl Locks {
    /// To be read by `reader`, after a poll that saw the rows `before`.
    #[must_use]
    pub fn new(reader: Reader, before: &Arc<Vec<Lock>>) -> Self {
        let (copy, rows) = (CopyReader::default(), Rows::after(before));
        Self { reader, copy, rows, own: None, awaited: false, total: None }
    }

    /// Decodes one message.
    ///
    /// # Errors
    /// When it is not what the protocol promises.
    pub fn read(&mut self, message: &[u8]) -> Result<(), DecodeError> {
        let Self { reader, copy, rows, own, awaited, total } = self;
        copy.read(message, COLUMNS, |fields| {
            match row(fields, reader.datid)? {
                Row::Lock(lock) if lock.tag.locktype == LockType::VirtualXid => {
                    *awaited |= !lock.granted;
                    if lock.granted && lock.pid == Some(reader.pid) {
                        *own = Some(lock);
                    } else {
                        rows.push(lock);
                    }
                }
                Row::Lock(lock) => rows.push(lock),
                Row::Total(count) => *total = count,
                Row::Unknown => {}
            }
            Ok(())
        })
    }

    /// The rows, which are those of the poll before when all are equal, and how many more there were that were left out
    /// on purpose. The reader's lock on its own virtual transaction, another one in each poll, is not among them unless
    /// somebody may wait for it.
    #[must_use]
    pub fn finish(mut self) -> (Arc<Vec<Lock>>, u64) {
        // A transaction always has the lock on itself, and the total counts it.
        let seen = self.rows.len() as u64 + 1;
        if let Some(own) = self.own.filter(|_| self.awaited) {
            self.rows.push(own);
        }
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

    /// A row as `locks.sql` sends it: a lock on a virtual transaction, `3/17`; `waits` when it is waited for.
    fn row(virtualxid: &str, pid: i32, waits: bool) -> Vec<u8> {
        let since = 0_i64.to_be_bytes();
        let (pid, mode) = (pid.to_be_bytes(), if waits { &b"ShareLock"[..] } else { b"ExclusiveLock" });
        let values: [Option<&[u8]>; COLUMNS] = [
            Some(b"virtualxid"),
            None,
            None,
            Some(virtualxid.as_bytes()),
            None,
            None,
            None,
            Some(b"9/9"),
            Some(&pid),
            Some(mode),
            waits.then_some(&since),
        ];
        let mut bytes = i16::try_from(COLUMNS).unwrap().to_be_bytes().to_vec();
        for value in values {
            let length = value.map_or(-1, |value| i32::try_from(value.len()).unwrap());
            bytes.extend(length.to_be_bytes());
            bytes.extend(value.into_iter().flatten());
        }
        bytes
    }

    #[test]
    fn the_reader_itself_is_seen_only_where_somebody_may_wait_for_it() {
        let pids = |rows: &[Vec<u8>], before: &Arc<Vec<Lock>>| {
            let mut locks = Locks::new(Reader { datid: 5, pid: 7 }, before);
            let header = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0".to_vec();
            for message in std::iter::once(&header).chain(rows) {
                locks.read(message).unwrap();
            }
            let (rows, omitted) = locks.finish();
            assert_eq!(omitted, 0);
            (rows.iter().map(|lock| lock.pid.unwrap()).collect::<Vec<_>>(), rows)
        };
        let (quiet, first) = pids(&[row("3/17", 7, false), row("4/2", 8, false)], &Arc::default());
        assert_eq!(quiet, [8]);
        let (_, second) = pids(&[row("3/18", 7, false), row("4/2", 8, false)], &first);
        assert!(Arc::ptr_eq(&first, &second));
        let waited = [row("3/19", 7, false), row("4/2", 8, false), row("3/19", 9, true)];
        assert_eq!(pids(&waited, &first).0, [8, 9, 7]);
    }
}
