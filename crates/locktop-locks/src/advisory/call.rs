use locktop_base::LockKey;

use super::Mode;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// Until it is released, or the session ends.
    Session,
    Transaction,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    /// `pg_advisory_[xact_]lock[_shared]`: waits until the lock is granted; returns nothing.
    Lock(Level, Mode, LockKey),
    /// `pg_try_advisory_[xact_]lock[_shared]`: does not wait; returns whether the lock was granted.
    Try(Level, Mode, LockKey),
    /// `pg_advisory_unlock[_shared]`: releases a lock of the session once; returns whether it was held.
    Unlock(Mode, LockKey),
    /// `pg_advisory_unlock_all`: releases all locks of the session; returns nothing.
    UnlockAll,
}

impl Call {
    /// The call, for a statement. It contains the keys as text, so that it can be in one message with its settings.
    pub(super) fn call(self) -> String {
        let (name, key) = match self {
            Self::Lock(level, mode, key) => {
                (format!("pg_advisory_{}lock{}", xact(level), shared(mode)), Some(key))
            }
            Self::Try(level, mode, key) => {
                (format!("pg_try_advisory_{}lock{}", xact(level), shared(mode)), Some(key))
            }
            Self::Unlock(mode, key) => (format!("pg_advisory_unlock{}", shared(mode)), Some(key)),
            Self::UnlockAll => ("pg_advisory_unlock_all".to_owned(), None),
        };
        format!("pg_catalog.{name}({})", key.map(arguments).unwrap_or_default())
    }
}

fn xact(level: Level) -> &'static str {
    match level {
        Level::Session => "",
        Level::Transaction => "xact_",
    }
}

fn shared(mode: Mode) -> &'static str {
    match mode {
        Mode::Exclusive => "",
        Mode::Shared => "_shared",
    }
}

/// Quoted, since the smallest number cannot be written without quotes: its digits alone are out of range, and the sign is
/// applied afterwards.
fn arguments(key: LockKey) -> String {
    match key {
        LockKey::Bigint(key) => format!("'{key}'::pg_catalog.int8"),
        LockKey::Pair(first, second) => format!("'{first}'::pg_catalog.int4, '{second}'::pg_catalog.int4"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn there_are_twenty_one() {
        let mut all = BTreeSet::from([Call::UnlockAll.call()]);
        for key in [LockKey::Bigint(1), LockKey::Pair(1, 2)] {
            for mode in [Mode::Exclusive, Mode::Shared] {
                all.insert(Call::Unlock(mode, key).call());
                for level in [Level::Session, Level::Transaction] {
                    all.extend([Call::Lock(level, mode, key).call(), Call::Try(level, mode, key).call()]);
                }
            }
        }
        assert_eq!(all.len(), 21, "{all:#?}");
    }
}
