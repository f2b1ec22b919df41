//! What is locked, in a few words.

use super::look::Look;
use crate::model::lock::{LockTag, LockType};
use crate::model::lock_key::LockKey;
use crate::model::lock_name::Context;

impl Look<'_> {
    /// `accounts`, `"Prisma Migrate"`, `advisory lock 42`, `a row of accounts`, `transaction 771`. `holder` is the
    /// process that holds it, which corroborates the name of an advisory lock.
    pub(super) fn target(&self, tag: &LockTag, holder: Option<i32>) -> String {
        let relation = || match (self.scene.snapshot.names.relation(tag), tag.relation) {
            (Some(name), _) => name.to_string(),
            (None, Some(oid)) => format!("relation {oid}"),
            (None, None) => "a relation".to_owned(),
        };
        match tag.locktype {
            LockType::Relation => relation(),
            LockType::Extend => format!("the extension of {}", relation()),
            LockType::Page => format!("a page of {}", relation()),
            LockType::Tuple => format!("a row of {}", relation()),
            LockType::TransactionId => match tag.transactionid {
                Some(xid) => format!("transaction {xid}"),
                None => "a transaction".to_owned(),
            },
            LockType::VirtualXid => match tag.virtualxid {
                Some(vxid) => format!("virtual transaction {vxid}"),
                None => "a virtual transaction".to_owned(),
            },
            LockType::Advisory => self.advisory(tag, holder),
            other => format!("a lock of type {}", other.as_str()),
        }
    }

    /// An advisory lock by its name, else by its key.
    fn advisory(&self, tag: &LockTag, holder: Option<i32>) -> String {
        let names = &self.scene.snapshot.names;
        let backend = holder.and_then(|pid| self.backend(pid));
        let known = tag.database.and_then(|datid| names.databases.get(&datid));
        let context = Context {
            database: known
                .or_else(|| backend.and_then(|backend| backend.database.as_ref()))
                .map(|name| &**name),
            application: backend.and_then(|backend| backend.application.as_deref()),
            datid: tag.database,
            names: Some(names),
        };
        match (self.scene.lock_names.resolve_tag(tag, context), LockKey::of(tag)) {
            (Some(name), _) if name.uncertain => format!("\"{}\"?", name.name),
            (Some(name), _) => format!("\"{}\"", name.name),
            (None, Some(key)) => format!("advisory lock {key}"),
            (None, None) => "an advisory lock".to_owned(),
        }
    }
}
