use std::borrow::Cow;

use super::Lease;
use crate::model::lock_key::LockKey;
use crate::model::lock_name::hashtextextended;
use crate::model::systems::Source;

/// The key of the queue for a lease of locktop's schema ([`locktop_locks::lease`]).
pub(super) fn key(source: &Source, lease: &Lease) -> Option<LockKey> {
    let schema = source.name.strip_suffix(".distlock").filter(|_| source.own_keys)?;
    let id = match &lease.name {
        Some(name) => Cow::Owned(format!("'{}'", name.replace('\'', "''"))),
        None => Cow::Borrowed(&*lease.id),
    };
    let name = format!("locktop lease \"{}\" {id}", schema.replace('"', "\"\""));
    Some(LockKey::Bigint(hashtextextended(name.as_bytes(), 0)))
}
