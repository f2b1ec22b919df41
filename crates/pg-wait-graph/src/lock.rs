//! A row of `pg_locks`, and the conflict rule of lock modes.

use crate::tag::words;
use locktop_base::{Text, Timestamp};

pub use crate::tag::{LockTag, LockType, VirtualTransaction};

words! {
    /// The mode of a lock, `pg_locks.mode`; with the statements that take it on a table ("Explicit Locking").
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[repr(u8)]
    pub enum LockMode {
        /// SELECT, and whatever else only reads.
        AccessShare = 1 => "AccessShareLock",
        /// SELECT FOR UPDATE and its like, on the table.
        RowShare = 2 => "RowShareLock",
        /// INSERT, UPDATE, DELETE, MERGE.
        RowExclusive = 3 => "RowExclusiveLock",
        /// VACUUM, ANALYZE, CREATE INDEX CONCURRENTLY.
        ShareUpdateExclusive = 4 => "ShareUpdateExclusiveLock",
        /// CREATE INDEX; a shared advisory lock; waiting for a transaction to end.
        Share = 5 => "ShareLock",
        /// CREATE TRIGGER, and ALTER TABLE … ADD FOREIGN KEY.
        ShareRowExclusive = 6 => "ShareRowExclusiveLock",
        /// REFRESH MATERIALIZED VIEW CONCURRENTLY; an exclusive advisory lock; a transaction on its own id.
        Exclusive = 7 => "ExclusiveLock",
        /// DROP, TRUNCATE, most ALTER TABLE.
        AccessExclusive = 8 => "AccessExclusiveLock",
        /// A predicate lock of a serializable transaction: it never blocks.
        SIRead = 9 => "SIReadLock",
    }
}

/// A set of lock modes, one bit for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct LockModes(u16);

impl LockModes {
    /// The set with this one mode.
    #[must_use]
    pub const fn of(mode: LockMode) -> Self {
        Self(1 << mode as u8)
    }

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The modes in either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the sets share a mode.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The modes in it, weakest first.
    pub fn iter(self) -> impl Iterator<Item = LockMode> {
        LockMode::ALL.into_iter().filter(move |mode| self.intersects(Self::of(*mode)))
    }
}

impl LockMode {
    /// The mode for the server's `text` (`AccessShareLock`, …).
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        Self::of_word(text)
    }

    /// The server's name without `Lock`, for a narrow column.
    #[must_use]
    pub fn short(self) -> &'static str {
        self.as_str().strip_suffix("Lock").unwrap_or(self.as_str())
    }

    /// The modes that conflict with this one: table 13.2 of the documentation ("Explicit Locking"), which is
    /// `LockConflicts` in `src/backend/storage/lmgr/lock.c`. `SIReadLock` conflicts with none.
    #[must_use]
    pub const fn conflicts(self) -> LockModes {
        const fn from(weakest: LockMode) -> LockModes {
            LockModes((2 << LockMode::AccessExclusive as u16) - (1 << weakest as u16))
        }
        match self {
            Self::AccessShare => from(Self::AccessExclusive),
            Self::RowShare => from(Self::Exclusive),
            Self::RowExclusive => from(Self::Share),
            Self::ShareUpdateExclusive => from(Self::ShareUpdateExclusive),
            // The only one that leaves out a stronger mode than its weakest: itself.
            Self::Share => LockModes(from(Self::RowExclusive).0 & !LockModes::of(Self::Share).0),
            Self::ShareRowExclusive => from(Self::RowExclusive),
            Self::Exclusive => from(Self::RowShare),
            Self::AccessExclusive => from(Self::AccessShare),
            Self::SIRead => LockModes(0),
        }
    }

    /// Whether a request for `self` must wait while another group holds any of `held`.
    #[must_use]
    pub const fn conflicts_with(self, held: LockModes) -> bool {
        self.conflicts().intersects(held)
    }
}

/// One row of `pg_locks`: a lock that a process or a prepared transaction holds or requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lock {
    /// The lock that is held or requested.
    pub tag: LockTag,
    /// The mode that is held or requested.
    pub mode: LockMode,
    /// Whether it is held; otherwise its process waits for it.
    pub granted: bool,
    /// The process, not its leader; `None` for a prepared transaction.
    pub pid: Option<i32>,
    /// The virtual transaction that holds or awaits it.
    pub virtualtransaction: VirtualTransaction,
    /// Start of the wait; NULL in its first moment (`pg_locks.waitstart`).
    pub wait_start: Option<Timestamp>,
}

/// A row of `pg_prepared_xacts`: a transaction that holds its locks without a session until it is ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    /// `transaction`: its transaction id.
    pub transaction: u32,
    /// The name given to PREPARE TRANSACTION.
    pub gid: Text,
    /// When it was prepared (`prepared`).
    pub prepared: Option<Timestamp>,
    /// The name of the role that prepared it.
    pub owner: Option<Text>,
    /// The name of its database; it can be ended only from there.
    pub database: Option<Text>,
}
