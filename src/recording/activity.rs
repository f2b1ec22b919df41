use std::sync::Arc;

use super::cell::{RecordedColumn, RecordedValue, stored_as};
use super::columns::{codes, columns, flat_rows, tuples};
use super::strings::{Decoded, Strings};
use crate::model::backend::{Backend, State};
use crate::model::lock::{Lock, LockMode, LockTag, LockType, Prepared, VirtualTransaction};
use crate::model::snapshot::{Keepalives, Pooling, Server, Tls, WalReplay, server_rows};
use crate::model::wait_graph::{Answer, Party};
use crate::model::{QueryText, Text, Timestamp};

codes! {
    State, else Other; {
        0 Other, 1 Active, 2 IdleInTransaction, 3 IdleInTransactionAborted, 4 FastpathFunctionCall, 5 Idle,
        6 Disabled, 7 Starting,
    }
    // An unknown mode must not be reported to block another session.
    LockMode, else SIRead; {
        1 AccessShare, 2 RowShare, 3 RowExclusive, 4 ShareUpdateExclusive, 5 Share, 6 ShareRowExclusive,
        7 Exclusive, 8 AccessExclusive, 9 SIRead,
    }
    LockType, else Other; {
        0 Other, 1 Relation, 2 Extend, 3 FrozenId, 4 Page, 5 Tuple, 6 TransactionId, 7 VirtualXid,
        8 SpecToken, 9 Object, 10 UserLock, 11 Advisory, 12 ApplyTransaction, 13 SafeSnapshot,
    }
    Pooling, else None; {
        0 None, 1 Sessions, 2 Transactions,
    }
    Tls, else None; {
        0 None, 1 Require, 2 VerifyCa, 3 VerifyFull,
    }
    WalReplay, else Nothing; {
        0 Nothing, 1 Some, 2 All,
    }
}

server_rows!(columns);

columns! {
    Backends of Backend {
        1 pid: i32,
        2 backend_start: Option<Timestamp>,
        3 leader_pid: Option<i32>,
        4 datid: Option<u32>,
        5 database: Option<Text>,
        6 user: Option<Text>,
        7 usesysid: Option<u32>,
        8 application: Option<Text>,
        9 client: Option<Text>,
        10 client_port: Option<i32>,
        11 backend_type: Option<Text>,
        12 state: Option<State>,
        13 wait_event_type: Option<Text>,
        14 wait_event: Option<Text>,
        15 xact_start: Option<Timestamp>,
        16 query_start: Option<Timestamp>,
        17 state_change: Option<Timestamp>,
        18 backend_xid: Option<u32>,
        19 backend_xmin: Option<u32>,
        20 query_id: Option<i64>,
        21 query: Option<QueryText>,
    }
    Locks of Lock {
        1 tag: LockTag,
        2 mode: LockMode,
        3 granted: bool,
        4 pid: Option<i32>,
        5 virtualtransaction: VirtualTransaction,
        6 wait_start: Option<Timestamp>,
    }
    Virtuals of VirtualTransaction { 1 proc_number: i32, 2 local_xid: u32, }
    PreparedRows of Prepared {
        1 transaction: u32,
        2 gid: Text,
        3 prepared: Option<Timestamp>,
        4 owner: Option<Text>,
        5 database: Option<Text>,
    }
    /// The server's own word on who blocks a waiter.
    Answers of Answer { 1 waiter: i32, 2 wait_start: Option<Timestamp>, 3 blockers: Vec<i32>, }
}

flat_rows! {
    /// [`LockTag`] with each of its columns.
    Tags of TagColumns {
        1 locktype: LockType,
        2 database: Option<u32>,
        3 relation: Option<u32>,
        4 page: Option<u32>,
        5 tuple: Option<u16>,
        6 virtualxid: Option<VirtualTransaction>,
        7 transactionid: Option<u32>,
        8 classid: Option<u32>,
        9 objid: Option<u32>,
        10 objsubid: Option<u16>,
    }
}

tuples! {
    /// A virtual transaction, or none. Few locks have one.
    MaybeVirtuals of (Option<i32>, Option<u32>) as (proc_number, local_xid) {
        1 proc_number: Option<i32>,
        2 local_xid: Option<u32>,
    }
    /// [`Party`] with both kinds side by side.
    FlatParties of (Option<i32>, VirtualTransaction) as (pid, prepared) {
        1 pid: Option<i32>,
        2 prepared: VirtualTransaction,
    }
}

stored_as! {
    Option<VirtualTransaction> as (Option<i32>, Option<u32>):
        |value| (value.map(|value| value.proc_number), value.map(|value| value.local_xid)),
        |(number, xid)| Some(VirtualTransaction { proc_number: number?, local_xid: xid? });
    Party as (Option<i32>, VirtualTransaction):
        |party| match *party {
            Party::Backend(pid) => (Some(pid), NO_TRANSACTION),
            Party::Prepared(prepared) => (None, prepared),
        },
        |(pid, prepared)| pid.map_or(Party::Prepared(prepared), Party::Backend);
}

/// Stands for no virtual transaction.
const NO_TRANSACTION: VirtualTransaction = VirtualTransaction { proc_number: 0, local_xid: 0 };

impl From<&LockTag> for TagColumns {
    fn from(tag: &LockTag) -> Self {
        Self {
            locktype: tag.locktype(),
            database: tag.database(),
            relation: tag.relation(),
            page: tag.page(),
            tuple: tag.tuple(),
            virtualxid: tag.virtualxid(),
            transactionid: tag.transactionid(),
            classid: tag.classid(),
            objid: tag.objid(),
            objsubid: tag.objsubid(),
        }
    }
}

impl RecordedValue for LockTag {
    type Column = Tags;
}

const TAGS_AT_ONCE: usize = 256;

impl RecordedColumn<LockTag> for Tags {
    fn push(&mut self, tag: &LockTag, strings: &mut Strings) {
        self.push(&TagColumns::from(tag), strings);
    }

    fn extend<'a>(&mut self, mut tags: impl Iterator<Item = &'a LockTag> + Clone, strings: &mut Strings) {
        let mut some = Vec::with_capacity(TAGS_AT_ONCE);
        loop {
            some.clear();
            some.extend(tags.by_ref().take(TAGS_AT_ONCE).map(TagColumns::from));
            if some.is_empty() {
                break;
            }
            RecordedColumn::<TagColumns>::extend(self, some.iter(), strings);
        }
    }

    fn get(&self, at: usize, strings: &Decoded) -> LockTag {
        let tag: TagColumns = self.get(at, strings);
        LockTag::new(tag.locktype)
            .with_database(tag.database)
            .with_relation(tag.relation)
            .with_page(tag.page)
            .with_tuple(tag.tuple)
            .with_virtualxid(tag.virtualxid)
            .with_transactionid(tag.transactionid)
            .with_classid(tag.classid)
            .with_objid(tag.objid)
            .with_objsubid(tag.objsubid)
    }

    fn rows(&self) -> usize {
        RecordedColumn::<TagColumns>::rows(self)
    }

    fn reserve(&mut self, rows: usize) {
        RecordedColumn::<TagColumns>::reserve(self, rows);
    }
}
