use locktop_base::LockKey;

/// Defines an enum in which each value has a word of the server; generates `ALL`, `as_str` and `of_word` from one list.
macro_rules! words {
    (
        $(#[$about:meta])*
        pub enum $name:ident {
            $($(#[$doc:meta])* $value:ident $(= $number:literal)? => $word:literal,)+
        }
    ) => {
        $(#[$about])*
        pub enum $name {
            $($(#[$doc])* $value $(= $number)?,)+
        }

        impl $name {
            /// Every value, in order of declaration.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$value),+];

            /// The server's word for this value; `other`, if the enum has it, for a value that this version of locktop does not know.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)+
                }
            }

            fn of_word(word: &[u8]) -> Option<Self> {
                $(if word == $word.as_bytes() {
                    return Some(Self::$value);
                })+
                None
            }
        }
    };
}

pub(crate) use words;

words! {
    /// The type of lock, `pg_locks.locktype`. The manual describes each under "Wait Events of Type Lock".
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum LockType {
        /// A table, index, view, sequence or another relation.
        Relation => "relation",
        /// The right to extend a relation.
        Extend => "extend",
        /// Updating `pg_database.datfrozenxid`, which VACUUM does.
        FrozenId => "frozenid",
        /// A page of a relation, as some index methods lock it.
        Page => "page",
        /// A row: waiting in line for it.
        Tuple => "tuple",
        /// A transaction: waiting for it to end (row locks wait here).
        TransactionId => "transactionid",
        /// A virtual transaction id: each transaction holds its own until it ends.
        VirtualXid => "virtualxid",
        /// The token of an INSERT … ON CONFLICT that may yet take its row back.
        SpecToken => "spectoken",
        /// Any other database object, named by its catalog and OID there.
        Object => "object",
        /// A user lock of versions before advisory locks.
        UserLock => "userlock",
        /// An advisory lock: its meaning is the application's.
        Advisory => "advisory",
        /// A remote transaction that an apply worker applies (from PostgreSQL 16).
        ApplyTransaction => "applytransaction",
        /// The snapshot that a `SERIALIZABLE READ ONLY DEFERRABLE` transaction waits for. `pg_locks` does not show it: it is made from
        /// `pg_safe_snapshot_blocking_pids` (`GetSafeSnapshot` in `src/backend/storage/lmgr/predicate.c`), and `objid` is the process
        /// that waits.
        SafeSnapshot => "safesnapshot",
        /// A type this version of locktop does not know.
        Other => "other",
    }
}

impl LockType {
    /// Parses a value of `pg_locks.locktype`.
    #[must_use]
    pub fn parse(text: &[u8]) -> Self {
        Self::of_word(text).unwrap_or(Self::Other)
    }
}

/// A virtual transaction id, such as `3/1234`. The process number of a prepared transaction is -1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VirtualTransaction {
    /// Process number (backend id before PostgreSQL 17).
    pub proc_number: i32,
    /// Counter within that process; for a prepared transaction its transaction id.
    pub local_xid: u32,
}

impl VirtualTransaction {
    /// Parses the form `3/1234` of `pg_locks`; `None` for any other form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (proc_number, local_xid) = text.split_once('/')?;
        Some(Self { proc_number: proc_number.parse().ok()?, local_xid: local_xid.parse().ok()? })
    }
}

impl std::fmt::Display for VirtualTransaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.proc_number, self.local_xid)
    }
}

/// The locked object. Two rows of `pg_locks` refer to the same lock if their tags are equal, with NULL equal to NULL.
///
/// The columns are packed as in the server's `LOCKTAG` (`src/include/storage/locktag.h`), three numbers of four bytes
/// and one of two, because a server with 84,000 locks is read once a second. The server never sets more columns than
/// fit; if a caller does, the last column is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LockTag {
    /// The type, and a bit for each column that is not NULL.
    head: u16,
    /// The values of those columns in order; unused words are 0.
    words: [u32; 3],
    /// The value of `tuple` or `objsubid`, of which a tag has at most one; 0 if it has neither.
    short: u16,
}

/// The four-byte columns in order, each a bit of `head`.
#[derive(Clone, Copy)]
#[repr(u16)]
enum Column {
    Database = 1,
    Relation = 1 << 1,
    Page = 1 << 2,
    /// The process number of a virtual transaction; its counter is the next word.
    VirtualXid = 1 << 3,
    /// The second word of a virtual transaction: never set without the first.
    VirtualXidCounter = 1 << 4,
    TransactionId = 1 << 5,
    ClassId = 1 << 6,
    ObjId = 1 << 7,
}

const TUPLE: u16 = 1 << 8;
const OBJ_SUB_ID: u16 = 1 << 9;
const COLUMNS: u16 = (1 << 10) - 1;
const WORDS: u16 = (1 << 8) - 1;

impl LockTag {
    /// A tag with only its type.
    #[must_use]
    pub const fn new(locktype: LockType) -> Self {
        Self { head: (locktype as u16) << 10, words: [0; 3], short: 0 }
    }

    /// The type of the lock, `pg_locks.locktype`.
    #[must_use]
    pub fn locktype(&self) -> LockType {
        LockType::ALL.get(usize::from(self.head >> 10)).copied().unwrap_or(LockType::Other)
    }

    /// OID of the database; 0 for a shared object, `None` for a transaction.
    #[must_use]
    pub fn database(&self) -> Option<u32> {
        self.word(Column::Database)
    }

    /// OID of the relation; `None` if the lock is on neither a relation nor a part of one.
    #[must_use]
    pub fn relation(&self) -> Option<u32> {
        self.word(Column::Relation)
    }

    /// Number of the page within its relation; `None` if the lock is on neither a page nor a tuple.
    #[must_use]
    pub fn page(&self) -> Option<u32> {
        self.word(Column::Page)
    }

    /// Number of the tuple within its page; `None` if the lock is not on a tuple.
    #[must_use]
    pub fn tuple(&self) -> Option<u16> {
        self.has(TUPLE).then_some(self.short)
    }

    /// The virtual transaction that is locked; `None` for other types of lock.
    #[must_use]
    pub fn virtualxid(&self) -> Option<VirtualTransaction> {
        let (proc_number, local_xid) =
            self.word(Column::VirtualXid).zip(self.word(Column::VirtualXidCounter))?;
        Some(VirtualTransaction { proc_number: proc_number.cast_signed(), local_xid })
    }

    /// The transaction id that is locked; `None` for other types of lock.
    #[must_use]
    pub fn transactionid(&self) -> Option<u32> {
        self.word(Column::TransactionId)
    }

    /// OID of the catalog that has the object, or the first half of an advisory key; `None` for other types of lock.
    #[must_use]
    pub fn classid(&self) -> Option<u32> {
        self.word(Column::ClassId)
    }

    /// OID of the object in that catalog, or the second half of an advisory key; `None` for other types of lock.
    #[must_use]
    pub fn objid(&self) -> Option<u32> {
        self.word(Column::ObjId)
    }

    /// Column number; for advisory locks, 1 or 2 distinguishes the two key spaces.
    #[must_use]
    pub fn objsubid(&self) -> Option<u16> {
        self.has(OBJ_SUB_ID).then_some(self.short)
    }

    /// The same columns with another type of lock.
    #[must_use]
    pub const fn with_locktype(self, locktype: LockType) -> Self {
        Self { head: (locktype as u16) << 10 | self.head & COLUMNS, ..self }
    }

    /// With this database, or none.
    #[must_use]
    pub fn with_database(self, oid: impl Into<Option<u32>>) -> Self {
        self.with_word(Column::Database, oid.into())
    }

    /// With this relation, or none.
    #[must_use]
    pub fn with_relation(self, oid: impl Into<Option<u32>>) -> Self {
        self.with_word(Column::Relation, oid.into())
    }

    /// With this page, or none.
    #[must_use]
    pub fn with_page(self, number: impl Into<Option<u32>>) -> Self {
        self.with_word(Column::Page, number.into())
    }

    /// With this tuple, or none.
    #[must_use]
    pub fn with_tuple(self, number: impl Into<Option<u16>>) -> Self {
        self.with_short(TUPLE, number.into())
    }

    /// With this virtual transaction, or none.
    #[must_use]
    pub fn with_virtualxid(self, virtualxid: impl Into<Option<VirtualTransaction>>) -> Self {
        let virtualxid = virtualxid.into();
        let number = virtualxid.map(|xid| xid.proc_number.cast_unsigned());
        self.with_word(Column::VirtualXid, number)
            .with_word(Column::VirtualXidCounter, virtualxid.map(|xid| xid.local_xid))
    }

    /// With this transaction, or none.
    #[must_use]
    pub fn with_transactionid(self, xid: impl Into<Option<u32>>) -> Self {
        self.with_word(Column::TransactionId, xid.into())
    }

    /// With this catalog, or first half of an advisory key, or none.
    #[must_use]
    pub fn with_classid(self, oid: impl Into<Option<u32>>) -> Self {
        self.with_word(Column::ClassId, oid.into())
    }

    /// With this object, or second half of an advisory key, or none.
    #[must_use]
    pub fn with_objid(self, oid: impl Into<Option<u32>>) -> Self {
        self.with_word(Column::ObjId, oid.into())
    }

    /// With this column number, or none.
    #[must_use]
    pub fn with_objsubid(self, number: impl Into<Option<u16>>) -> Self {
        self.with_short(OBJ_SUB_ID, number.into())
    }

    /// The key of an advisory lock; `None` for any other lock, and for advisory locks that extensions take in their own
    /// formats.
    #[must_use]
    pub fn advisory_key(&self) -> Option<LockKey> {
        if self.locktype() != LockType::Advisory {
            return None;
        }
        LockKey::of_fields(self.classid()?, self.objid()?, self.objsubid()?)
    }

    const fn has(&self, column: u16) -> bool {
        self.head & column != 0
    }

    /// The number of words before the word of a column.
    const fn before(&self, column: Column) -> usize {
        (self.head & WORDS & (column as u16 - 1)).count_ones() as usize
    }

    fn word(&self, column: Column) -> Option<u32> {
        self.has(column as u16).then(|| self.words.get(self.before(column)).copied())?
    }

    /// A tag has only one form, whatever the order in which it was filled: the words are in the order of their columns.
    fn with_word(mut self, column: Column, value: Option<u32>) -> Self {
        if self.has(column as u16) {
            // The words after it move up, and the last place becomes 0.
            let from = self.from(column);
            from.rotate_left(1);
            if let Some(last) = from.last_mut() {
                *last = 0;
            }
            self.head &= !(column as u16);
        }
        if let Some(value) = value.filter(|_| self.words_used() < self.words.len()) {
            let from = self.from(column);
            from.rotate_right(1);
            if let Some(first) = from.first_mut() {
                *first = value;
            }
            self.head |= column as u16;
        }
        self
    }

    /// The word of a column, or the place where it would be, and the words after it.
    fn from(&mut self, column: Column) -> &mut [u32] {
        let at = self.before(column);
        self.words.get_mut(at..).unwrap_or_default()
    }

    const fn words_used(&self) -> usize {
        (self.head & WORDS).count_ones() as usize
    }

    fn with_short(mut self, column: u16, value: Option<u16>) -> Self {
        if !self.has((TUPLE | OBJ_SUB_ID) & !column) {
            self.head = self.head & !column | if value.is_some() { column } else { 0 };
            self.short = value.unwrap_or_default();
        }
        self
    }
}

/// Shows only the columns that are set.
impl std::fmt::Debug for LockTag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut tag = f.debug_struct("LockTag");
        tag.field("locktype", &self.locktype());
        let numbers = [
            ("database", self.database()),
            ("relation", self.relation()),
            ("page", self.page()),
            ("tuple", self.tuple().map(u32::from)),
            ("transactionid", self.transactionid()),
            ("classid", self.classid()),
            ("objid", self.objid()),
            ("objsubid", self.objsubid().map(u32::from)),
        ];
        for (name, number) in numbers.iter().filter_map(|(name, number)| Some((name, (*number)?))) {
            tag.field(name, &number);
        }
        self.virtualxid().map(|xid| tag.field("virtualxid", &xid));
        tag.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The columns of each type, from the documentation of `pg_locks` (`pg_lock_status()` in `lockfuncs.c`).
    #[test]
    fn columns_read_back_as_set_in_any_order() {
        let vxid = VirtualTransaction { proc_number: -1, local_xid: u32::MAX };
        let new = LockTag::new;
        let tuple = new(LockType::Tuple).with_tuple(4).with_page(3).with_relation(2).with_database(0);
        assert_eq!(
            (tuple.database(), tuple.relation(), tuple.page(), tuple.tuple()),
            (Some(0), Some(2), Some(3), Some(4))
        );
        assert_eq!(tuple, new(LockType::Tuple).with_database(0).with_relation(2).with_page(3).with_tuple(4));
        let object =
            new(LockType::Object).with_objsubid(0).with_objid(u32::MAX).with_classid(1).with_database(5);
        assert_eq!(
            (object.database(), object.classid(), object.objid(), object.objsubid()),
            (Some(5), Some(1), Some(u32::MAX), Some(0))
        );
        assert_eq!(new(LockType::VirtualXid).with_virtualxid(vxid).virtualxid(), Some(vxid));
        let apply = new(LockType::ApplyTransaction)
            .with_objid(8)
            .with_objsubid(1)
            .with_transactionid(7)
            .with_database(5);
        assert_eq!((apply.transactionid(), apply.objid(), apply.database()), (Some(7), Some(8), Some(5)));
        assert!(LockType::ALL.iter().all(|of| new(*of).locktype() == *of));
        assert!(
            LockType::ALL.iter().all(|of| tuple.with_locktype(*of).with_locktype(LockType::Tuple) == tuple)
        );
    }

    #[test]
    fn a_null_is_not_0_and_a_cleared_column_is_null() {
        let new = LockTag::new(LockType::Relation);
        let both = new.with_database(5).with_relation(9);
        assert_ne!(new.with_database(0), new);
        assert_ne!(new.with_objsubid(0), new);
        assert_ne!(new.with_tuple(1), new.with_objsubid(1));
        assert_eq!(both.with_database(None).database(), None);
        assert_eq!(both.with_database(None), new.with_relation(9));
        assert_eq!(both.with_relation(10), new.with_relation(10).with_database(5));
        assert_eq!(both.with_tuple(3).with_tuple(None), both);
    }

    #[test]
    fn columns_that_never_occur_together_are_left_out() {
        let full = LockTag::new(LockType::Other).with_database(1).with_relation(2).with_page(3).with_tuple(4);
        assert_eq!(full.with_objid(5), full);
        assert_eq!(full.with_objsubid(5), full);
        assert_eq!(full.with_page(9).page(), Some(9));
        assert_eq!(size_of::<LockTag>(), 16);
    }
}
