use std::sync::Arc;
use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};

use super::DecodeError;
use super::copy::{CopyReader, Fields};
use super::value::{int2, int4, oid, text, timestamp, unsigned, virtual_transaction};
use crate::model::lock::{Lock, LockMode, LockModes, LockTag, LockType, VirtualTransaction};
use crate::model::wait_graph::Answer;

/// Columns of `assets/sql/locks.sql` and `locks_narrow.sql`, which describe what is sent as NULL.
const COLUMNS: usize = 11;

/// The session that reads. NULL stands for its database, and the locks taken by the reading itself are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadingSession {
    pub datid: u32,
    pub pid: i32,
}

/// What one session has read of `pg_locks`, for its next poll: see `assets/sql/locks.sql`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownLocks {
    /// All rows of that poll, including those that the server did not send again.
    pub rows: Arc<Vec<Lock>>,
    pub omitted: u64,
    pub sent: u64,
    /// Start of their statement, as the server sent it.
    pub since: String,
    /// Time that the server took for them.
    pub cost: Duration,
    quiet: Arc<OmittedSessions>,
}

impl KnownLocks {
    /// Whether a row is missing because a left-out session has acquired a lock after all (`assets/sql/quiet.sql`): a session
    /// waits for a lock that no other session holds, or the server reports a blocker that has no row of that lock.
    pub fn lacks(&self, answers: &[Answer]) -> bool {
        if self.quiet.is_empty() {
            return false;
        }
        let mut awaited: FxHashMap<LockTag, Awaited> = FxHashMap::default();
        let mut tags: FxHashMap<i32, LockTag> = FxHashMap::default();
        for lock in self.rows.iter().filter(|lock| !lock.granted) {
            awaited.entry(lock.tag).or_default().waiters.push((lock.pid, lock.mode));
            tags.extend(lock.pid.map(|pid| (pid, lock.tag)));
        }
        if awaited.is_empty() {
            return false;
        }
        let named: FxHashSet<(i32, LockTag)> = answers
            .iter()
            .filter_map(|answer| Some((answer, *tags.get(&answer.waiter)?)))
            .flat_map(|(answer, tag)| answer.blockers.iter().map(move |pid| (*pid, tag)))
            .filter(|(pid, _)| self.quiet.has(*pid))
            .collect();
        let mut seen: FxHashSet<(i32, LockTag)> = FxHashSet::default();
        for lock in self.rows.iter() {
            let Some(awaited) = awaited.get_mut(&lock.tag) else { continue };
            if lock.granted {
                awaited.hold(lock.pid, lock.mode);
            }
            seen.extend(lock.pid.map(|pid| (pid, lock.tag)).filter(|key| named.contains(key)));
        }
        seen.len() < named.len() || !awaited.values().all(Awaited::is_blocked)
    }
}

#[derive(Debug, Default)]
struct Awaited {
    waiters: Vec<(Option<i32>, LockMode)>,
    /// At most two holders of each mode, so that one of them is not the waiter.
    holders: Vec<(Option<i32>, LockMode)>,
}

impl Awaited {
    fn hold(&mut self, pid: Option<i32>, mode: LockMode) {
        if self.holders.iter().filter(|holder| holder.1 == mode).count() < 2 {
            self.holders.push((pid, mode));
        }
    }

    /// Whether a session waits for a conflicting lock of another session.
    fn is_blocked(&self) -> bool {
        self.waiters.iter().any(|(waiter, wanted)| {
            let mut others = self.holders.iter().filter(|(pid, _)| pid != waiter);
            others.any(|(_, held)| wanted.conflicts_with(LockModes::of(*held)))
        })
    }
}

#[derive(Debug)]
pub struct LocksDecoder<'a> {
    reader: ReadingSession,
    before: &'a KnownLocks,
    poll: &'a str,
    copy: CopyReader,
    rows: Vec<Lock>,
    /// The lock of the reader on its own virtual transaction.
    own: Option<Lock>,
    /// Locks on what the reader's transaction has read, if it has more than this statement.
    own_reads: Vec<Lock>,
    /// A session waits for a virtual transaction.
    awaited: bool,
    last: Option<LocksTrailer>,
}

impl<'a> LocksDecoder<'a> {
    /// For the poll with this number, in which the server received `before` as known, or nothing.
    pub fn new(reader: ReadingSession, before: &'a KnownLocks, poll: &'a str) -> Self {
        let (copy, rows, own_reads) = (CopyReader::default(), Vec::new(), Vec::new());
        Self { reader, before, poll, copy, rows, own: None, own_reads, awaited: false, last: None }
    }

    pub fn read(&mut self, message: &[u8]) -> Result<(), DecodeError> {
        let Self { reader, copy, rows, own, own_reads, awaited, last, .. } = self;
        copy.read(message, COLUMNS, |fields| {
            match row(fields, reader.datid)? {
                LocksRow::Lock(lock) if lock.tag.locktype() == LockType::VirtualXid => {
                    *awaited |= !lock.granted;
                    if lock.granted && lock.pid == Some(reader.pid) {
                        *own = Some(lock);
                    } else {
                        rows.push(lock);
                    }
                }
                LocksRow::Lock(lock) if lock.pid == Some(reader.pid) && is_read(&lock) => {
                    own_reads.push(lock);
                }
                LocksRow::Lock(lock) => rows.push(lock),
                LocksRow::Last(found) => *last = Some(found),
                LocksRow::Unknown => {}
            }
            Ok(())
        })
    }

    /// The rows, and the number of rows left out on purpose. If all rows are equal, they are those of the previous poll. The
    /// reader's lock on its own virtual transaction, which is another one in each poll, and on what its transaction has read
    /// are left out, unless a session may wait for them.
    ///
    /// # Errors
    /// If the end is missing, or if the server left out rows that are not known here.
    pub fn finish(mut self) -> Result<KnownLocks, DecodeError> {
        let LocksTrailer { poll, quiet, since, total, cost } = self.last.ok_or(DecodeError::Short)?;
        if poll != self.poll {
            return Err(DecodeError::Unknown);
        }
        if let Some(own) = self.own.filter(|_| self.awaited) {
            self.rows.push(own);
        }
        let own_reads = self.own_reads.len();
        if own_reads > 0 {
            let awaited: FxHashSet<LockTag> =
                self.rows.iter().filter(|lock| !lock.granted).map(|lock| lock.tag).collect();
            self.own_reads.retain(|lock| awaited.contains(&lock.tag));
        }
        let left_out = own_reads - self.own_reads.len();
        self.rows.append(&mut self.own_reads);
        let sent = self.rows.len() as u64;
        let rows = merge(&self.before.rows, |lock| quiet.stays(lock), self.rows);
        // A transaction always holds the lock on itself, and the total includes it.
        let seen = (rows.len() + left_out) as u64 + u64::from(!self.awaited);
        let omitted = total.map_or(0, |total| u64::from(total).saturating_sub(seen));
        Ok(KnownLocks { rows, omitted, sent, since, cost, quiet: Arc::new(quiet) })
    }
}

fn is_read(lock: &Lock) -> bool {
    lock.granted && lock.tag.locktype() == LockType::Relation && lock.mode == LockMode::AccessShare
}

/// Left-out sessions: they have been inactive since the previous poll.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct OmittedSessions {
    in_transaction: FxHashSet<i32>,
    idle: FxHashSet<i32>,
}

impl OmittedSessions {
    /// Parses `4711,-4712`: a negative number is a session without a transaction.
    fn parse(list: &[u8]) -> Self {
        let mut quiet = Self::default();
        let numbers = list.split(|byte| *byte == b',').filter_map(|digits| std::str::from_utf8(digits).ok());
        for pid in numbers.filter_map(|digits| digits.parse::<i32>().ok()) {
            if pid < 0 {
                quiet.idle.insert(-pid)
            } else {
                quiet.in_transaction.insert(pid)
            };
        }
        quiet
    }

    fn is_empty(&self) -> bool {
        self.in_transaction.is_empty() && self.idle.is_empty()
    }

    fn has(&self, pid: i32) -> bool {
        self.in_transaction.contains(&pid) || self.idle.contains(&pid)
    }

    /// Whether a row of the previous poll still exists. A session without a transaction holds only advisory locks; an idle
    /// one may briefly begin a transaction to read notifications, and the locks of that have ended.
    fn stays(&self, lock: &Lock) -> bool {
        let Some(pid) = lock.pid else { return false };
        self.in_transaction.contains(&pid)
            || lock.tag.locktype() == LockType::Advisory && self.idle.contains(&pid)
    }
}

#[derive(Debug, Default)]
struct LocksTrailer {
    poll: String,
    quiet: OmittedSessions,
    since: String,
    /// Number of all rows, from the narrow statement only.
    total: Option<u32>,
    cost: Duration,
}

enum LocksRow {
    Lock(Lock),
    Last(LocksTrailer),
    /// A mode unknown to this version of locktop: its conflicts are not known.
    Unknown,
}

#[inline]
fn row(fields: &mut Fields<'_>, datid: u32) -> Result<LocksRow, DecodeError> {
    let locktype = fields.value()?;
    let database = oid(fields.value()?);
    let relation = oid(fields.value()?);
    let rare = fields.value()?;
    let (classid, objid, objsubid) = (oid(fields.value()?), oid(fields.value()?), int2(fields.value()?));
    let virtualtransaction = fields.value()?;
    let pid = int4(fields.value()?);
    let mode = fields.value()?;
    let waits = fields.value()?;
    if virtualtransaction.is_none() {
        let cost = Duration::from_micros(classid.unwrap_or_default().into());
        return Ok(LocksRow::Last(LocksTrailer { total: relation, cost, ..last(locktype, rare, mode) }));
    }
    let locktype = locktype.map_or(LockType::Advisory, LockType::parse);
    let rare = rare.map_or(RareTagFields::default(), RareTagFields::parse);
    let virtualtransaction = virtual_transaction(virtualtransaction)
        .unwrap_or(VirtualTransaction { proc_number: 0, local_xid: 0 });
    let absent = Absent::of(locktype);
    let tag = LockTag::new(locktype)
        .with_database(database.or(absent.database.then_some(datid)))
        .with_relation(relation)
        .with_page(rare.page)
        .with_tuple(rare.tuple)
        .with_virtualxid(rare.virtualxid)
        .with_transactionid(rare.transactionid)
        .with_classid(classid.or(absent.classid.then_some(0)))
        .with_objid(objid)
        .with_objsubid(objsubid.map(i16::cast_unsigned).or(absent.objsubid.then_some(1)));
    let (granted, wait_start) = (waits.is_none(), timestamp(waits));
    Ok(mode.map_or(Some(LockMode::Exclusive), LockMode::parse).map_or(LocksRow::Unknown, |mode| {
        LocksRow::Lock(Lock { tag, mode, granted, pid, virtualtransaction, wait_start })
    }))
}

#[cold]
fn last(poll: Option<&[u8]>, quiet: Option<&[u8]>, since: Option<&[u8]>) -> LocksTrailer {
    let words = |bytes| text(bytes).unwrap_or_default().into_owned();
    let quiet = quiet.map(OmittedSessions::parse).unwrap_or_default();
    LocksTrailer { poll: words(poll), quiet, since: words(since), ..LocksTrailer::default() }
}

/// Whether a NULL stands for the most frequent value or for none: `pg_lock_status` leaves each column out for certain
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

/// Values that only one kind of lock has.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct RareTagFields {
    page: Option<u32>,
    tuple: Option<u16>,
    virtualxid: Option<VirtualTransaction>,
    transactionid: Option<u32>,
}

impl RareTagFields {
    /// `3/17`, `771`, `4,2` or `4,`.
    fn parse(bytes: &[u8]) -> Self {
        if let Some(comma) = bytes.iter().position(|byte| *byte == b',') {
            let (page, tuple) = bytes.split_at_checked(comma).unwrap_or_default();
            // They are int4 and int2 on the server: values above their range were printed as negative.
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

/// The kept rows of `before` and the received rows. If the received rows equal those not kept, the result is the same
/// vector as before: most polls of a large lock table change nothing, and later steps can detect that at once.
pub(super) fn merge<T: Copy + PartialEq>(
    before: &Arc<Vec<T>>,
    stays: impl Fn(&T) -> bool,
    mut came: Vec<T>,
) -> Arc<Vec<T>> {
    if before.iter().filter(|row| !stays(row)).eq(&came) {
        return Arc::clone(before);
    }
    let staying = before.iter().filter(|row| stays(row)).count();
    if staying == 0 {
        came.shrink_to_fit();
        return Arc::new(came);
    }
    let mut rows = Vec::with_capacity(staying + came.len());
    rows.extend(before.iter().filter(|row| stays(row)));
    rows.extend(came);
    Arc::new(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_share_a_column_are_distinguished() {
        let virtualxid = Some(VirtualTransaction { proc_number: 3, local_xid: 17 });
        for (text, expected) in [
            ("3/17", RareTagFields { virtualxid, ..RareTagFields::default() }),
            ("4294967295", RareTagFields { transactionid: Some(u32::MAX), ..RareTagFields::default() }),
            ("4,2", RareTagFields { page: Some(4), tuple: Some(2), ..RareTagFields::default() }),
            (
                "-1,-1",
                RareTagFields { page: Some(u32::MAX), tuple: Some(u16::MAX), ..RareTagFields::default() },
            ),
            ("4,", RareTagFields { page: Some(4), ..RareTagFields::default() }),
            ("", RareTagFields::default()),
            ("x", RareTagFields::default()),
        ] {
            assert_eq!(RareTagFields::parse(text.as_bytes()), expected, "{text}");
        }
    }

    /// A row as `locks.sql` sends it: a lock on a virtual transaction such as `3/17`; `waits` if it is requested.
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
        message(values)
    }

    /// `pg_advisory_lock(0)` of a session.
    fn advisory(pid: i32) -> Vec<u8> {
        let pid = pid.to_be_bytes();
        let mut values: [Option<&[u8]>; COLUMNS] = [None; COLUMNS];
        values[5] = Some(&[0; 4]);
        values[7] = Some(b"9/9");
        values[8] = Some(&pid);
        message(values)
    }

    fn message(values: [Option<&[u8]>; COLUMNS]) -> Vec<u8> {
        let mut bytes = i16::try_from(COLUMNS).unwrap().to_be_bytes().to_vec();
        for value in values {
            let length = value.map_or(-1, |value| i32::try_from(value.len()).unwrap());
            bytes.extend(length.to_be_bytes());
            bytes.extend(value.into_iter().flatten());
        }
        bytes
    }

    /// The end of the answer in a poll that began at `since`.
    fn end(poll: &str, quiet: &str, since: &str) -> Vec<u8> {
        let mut values: [Option<&[u8]>; COLUMNS] = [None; COLUMNS];
        values[0] = Some(poll.as_bytes());
        values[3] = (!quiet.is_empty()).then_some(quiet.as_bytes());
        values[9] = Some(since.as_bytes());
        message(values)
    }

    const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

    fn read(rows: &[Vec<u8>], before: &KnownLocks, poll: &str) -> Result<KnownLocks, DecodeError> {
        let mut locks = LocksDecoder::new(ReadingSession { datid: 5, pid: 7 }, before, poll);
        for message in std::iter::once(&HEADER.to_vec()).chain(rows) {
            locks.read(message).unwrap();
        }
        locks.finish()
    }

    fn pids(known: &KnownLocks) -> Vec<i32> {
        known.rows.iter().map(|lock| lock.pid.unwrap()).collect()
    }

    #[test]
    fn the_reader_transaction_is_shown_only_if_a_session_waits_for_it() {
        let of = |rows: &[Vec<u8>], before: &KnownLocks| {
            let rows = [rows, &[end("0", "", "1")]].concat();
            let known = read(&rows, before, "0").unwrap();
            assert_eq!(known.omitted, 0);
            known
        };
        let first = of(&[row("3/17", 7, false), row("4/2", 8, false)], &KnownLocks::default());
        assert_eq!(pids(&first), [8]);
        let second = of(&[row("3/18", 7, false), row("4/2", 8, false)], &first);
        assert!(Arc::ptr_eq(&first.rows, &second.rows));
        let waited = [row("3/19", 7, false), row("4/2", 8, false), row("3/19", 9, true)];
        assert_eq!(pids(&of(&waited, &first)), [8, 9, 7]);
    }

    /// A lock on relation 1259 of the connected database: the reader's if it is granted.
    fn relation(pid: i32, mode: &str, waits: bool) -> Vec<u8> {
        let (since, relation, pid) = (0_i64.to_be_bytes(), 1259_u32.to_be_bytes(), pid.to_be_bytes());
        let mut values: [Option<&[u8]>; COLUMNS] = [None; COLUMNS];
        values[0] = Some(b"relation");
        values[2] = Some(&relation);
        values[7] = Some(b"9/9");
        values[8] = Some(&pid);
        values[9] = Some(mode.as_bytes());
        values[10] = waits.then_some(&since);
        message(values)
    }

    #[test]
    fn relation_locks_of_the_reader_are_shown_only_if_a_session_waits() {
        let (reads, other) = (relation(7, "AccessShareLock", false), relation(8, "AccessShareLock", false));
        let known = |rows: &[Vec<u8>]| {
            read(&[rows, &[end("0", "", "1")]].concat(), &KnownLocks::default(), "0").unwrap()
        };
        assert_eq!(pids(&known(&[reads.clone(), other.clone()])), [8]);
        let waits = relation(9, "AccessExclusiveLock", true);
        let mut seen = pids(&known(&[reads, other, waits]));
        seen.sort_unstable();
        assert_eq!(seen, [7, 8, 9]);
    }

    #[test]
    fn locks_of_an_unchanged_session_are_kept() {
        let rows = [
            row("4/2", 8, false),
            row("5/1", 9, false),
            advisory(8),
            advisory(9),
            advisory(10),
            end("0", "", "1"),
        ];
        let first = read(&rows, &KnownLocks::default(), "0").unwrap();
        assert_eq!((pids(&first), &*first.since), (vec![8, 9, 8, 9, 10], "1"));
        // Session 8 is in a transaction. Session 9 is not: its locks of one were temporary. Session 10 has ended.
        let second = read(&[row("6/1", 11, true), end("1", "8,-9", "2")], &first, "1").unwrap();
        assert_eq!((pids(&second), &*second.since), (vec![8, 8, 9, 11], "2"));
        let third = read(&[row("6/1", 11, true), end("2", "-9,8", "3")], &second, "2").unwrap();
        assert!(Arc::ptr_eq(&second.rows, &third.rows));
        // Active again, with fewer locks.
        let fourth = read(&[advisory(8), end("3", "-9", "4")], &third, "3").unwrap();
        assert_eq!(pids(&fourth), [9, 8]);
    }

    #[test]
    fn an_answer_to_another_question_is_refused() {
        let known = read(&[advisory(8), end("0", "", "1")], &KnownLocks::default(), "0").unwrap();
        assert_eq!(read(&[end("9", "8", "10")], &known, "1"), Err(DecodeError::Unknown));
        assert_eq!(read(&[advisory(8)], &known, "1"), Err(DecodeError::Short));
    }
}

#[cfg(test)]
mod rows_tests {
    use super::*;

    #[test]
    fn kept_and_new_rows_are_merged() {
        let before = Arc::new(vec![1, 2, 3]);
        for arrived in [&[][..], &[1], &[1, 2, 3], &[1, 2, 3, 4], &[1, 3], &[0, 1, 2, 3], &[3, 2, 1]] {
            assert_eq!(*merge(&before, |_| false, arrived.to_vec()), arrived);
            assert_eq!(*merge(&Arc::default(), |_| true, arrived.to_vec()), arrived);
        }
        assert_eq!(*merge(&before, |row| *row == 2, vec![3, 4]), [2, 3, 4]);
        assert_eq!(*merge(&before, |_| true, vec![4]), [1, 2, 3, 4]);
    }

    #[test]
    fn the_same_rows_are_the_same_vector() {
        let before = Arc::new(vec![1, 2, 3]);
        assert!(Arc::ptr_eq(&before, &merge(&before, |_| false, vec![1, 2, 3])));
        assert!(Arc::ptr_eq(&before, &merge(&before, |row| *row == 2, vec![1, 3])));
        assert!(Arc::ptr_eq(&before, &merge(&before, |_| true, Vec::new())));
    }
}
