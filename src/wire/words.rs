//! What is locked, in words.

use rustc_hash::FxHashMap;

use crate::model::backend::Backend;
use crate::model::lock::{LockTag, LockType};
use crate::model::lock_key::LockKey;
use crate::model::lock_name::{Context, LockName, LockNames};
use crate::model::snapshot::Snapshot;

/// A snapshot with the names that its locks may have.
#[derive(Debug)]
pub struct Words<'a> {
    snapshot: &'a Snapshot,
    lock_names: &'a LockNames,
    backends: FxHashMap<i32, &'a Backend>,
}

impl<'a> Words<'a> {
    /// For the locks of `snapshot`.
    #[must_use]
    pub fn of(snapshot: &'a Snapshot, lock_names: &'a LockNames) -> Self {
        let backends = snapshot.backends.rows.iter().map(|backend| (backend.pid, backend)).collect();
        Self { snapshot, lock_names, backends }
    }

    /// The backend with this process id.
    #[must_use]
    pub fn backend(&self, pid: i32) -> Option<&'a Backend> {
        self.backends.get(&pid).copied()
    }

    /// The name of an advisory lock that `pid` holds or awaits.
    #[must_use]
    pub fn name(&self, tag: &LockTag, pid: Option<i32>) -> Option<LockName> {
        if tag.locktype != LockType::Advisory {
            return None;
        }
        let names = &self.snapshot.names;
        let context = Context {
            database: tag.database.and_then(|oid| names.databases.get(&oid)).map(|name| &**name),
            application: pid.and_then(|pid| self.backend(pid)?.application.as_deref()),
            datid: tag.database,
            names: Some(names),
        };
        self.lock_names.resolve_tag(tag, context)
    }

    /// `accounts`, `"Prisma Migrate"`, `advisory 42`, `row of accounts`, `transaction 771`: text of the server, not
    /// yet fit for a screen.
    #[must_use]
    pub fn target(&self, tag: &LockTag, pid: Option<i32>) -> String {
        let relation = || match (self.snapshot.names.relation(tag), tag.relation) {
            (Some(name), _) => name.to_string(),
            (None, Some(oid)) => format!("relation {oid}"),
            (None, None) => "relation".to_owned(),
        };
        match tag.locktype {
            LockType::Relation => relation(),
            LockType::Extend => format!("extension of {}", relation()),
            LockType::Page => format!("page of {}", relation()),
            LockType::Tuple => format!("row of {}", relation()),
            LockType::TransactionId => numbered("transaction", tag.transactionid),
            LockType::VirtualXid => numbered("virtual transaction", tag.virtualxid),
            LockType::Advisory => match self.name(tag, pid) {
                Some(name) => format!("\"{name}\""),
                None => numbered("advisory", LockKey::of(tag)),
            },
            other => other.as_str().to_owned(),
        }
    }
}

fn numbered(what: &str, number: Option<impl std::fmt::Display>) -> String {
    number.map_or_else(|| what.to_owned(), |number| format!("{what} {number}"))
}
