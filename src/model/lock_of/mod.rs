//! Sessions that hold or request the locks of a statement in conflicting modes, computed from one snapshot. The statement
//! is not run.

mod meeting;
#[cfg(test)]
mod tests;

pub use self::meeting::{How, Meeting, Obstacle, meeting};
use super::lock::{Lock, LockMode, LockType};
use super::lock_key::LockKey;
use super::statement::{Also, Role, Statement, Take, Target};
use super::view::View;
use super::wait_graph::Party;
use super::{QueryText, Text};

/// The search path does not lead to any object of this name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Elsewhere {
    /// Schemas off the search path that have a relation of this name; empty if the statement itself names a schema.
    pub schemas: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Other {
    pub role: Role,
    pub oid: u32,
    /// `schema.name`.
    pub name: String,
    /// For foreign keys: the name of the constraint and of its columns.
    pub names: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct CatalogRelation {
    /// `pg_class.oid`, as in `pg_locks.relation`.
    pub oid: u32,
    /// `pg_namespace.nspname` of its schema, unquoted.
    pub schema: String,
    /// `pg_class.relkind`: `r` table, `p` partitioned table, `i` and `I` their indexes, `m` materialized view.
    pub kind: char,
    /// Rows at the last VACUUM or ANALYZE; `None` if there was none.
    pub rows: Option<f64>,
    /// Bytes of the main fork, from the same VACUUM or ANALYZE.
    pub bytes: u64,
    /// `pg_class.oid` of the table, for an index.
    pub table: Option<u32>,
    /// Number of partitions and children, at any depth.
    pub below: usize,
    pub others: Vec<Other>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Place {
    Relation(CatalogRelation),
    /// OIDs of the objects with that name, since functions can share a name, and the tables found through a type.
    Object(Vec<u32>, Vec<Other>),
    /// Not in a catalog: an advisory lock or the notification queue.
    Lock,
    /// An object of a kind that locktop does not look up, or an advisory lock with an unknown key.
    NotLookedFor,
    Missing(Elsewhere),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    Relation(u32),
    /// OID of the catalog, and OID of the object.
    Object(u32, u32),
    Advisory(LockKey),
}

/// The notification queue: `LockSharedObject(DatabaseRelationId, InvalidOid)` in `src/backend/commands/async.c`.
const NOTIFICATIONS: Key = Key::Object(1262, 0);

impl Key {
    /// `None` if the lock is of another database or of a kind that no statement names.
    fn of(lock: &Lock, database: u32) -> Option<Self> {
        let tag = &lock.tag;
        if tag.database() != Some(0) && tag.database() != Some(database) {
            return None;
        }
        match tag.locktype() {
            LockType::Relation => Some(Self::Relation(tag.relation()?)),
            LockType::Object => Some(Self::Object(tag.classid()?, tag.objid()?)),
            LockType::Advisory => Some(Self::Advisory(tag.advisory_key()?)),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Want<'a> {
    pub key: Key,
    pub mode: LockMode,
    /// The relation through which it is found, if the statement does not name it; `None` for the table of an index.
    pub other: Option<&'a Other>,
    /// Whether it is the object of the statement, or the table of that object.
    pub is_subject: bool,
}

pub fn wants<'a>(statement: &Statement, take: &Take, place: &'a Place, version: u32) -> Vec<Want<'a>> {
    let is_taken = take.since <= version && take.mode != LockMode::SIRead;
    let is_subject = take.is_subject;
    let want = |key: Key, mode: LockMode| Want { key, mode, other: None, is_subject };
    let mut found = Vec::new();
    let others: &[Other] = match (place, &take.target) {
        (Place::Relation(relation), _) => {
            found.push(want(Key::Relation(relation.oid), take.mode));
            if let Some((table, mode)) = relation.table.zip(take.on_table_of_index) {
                found.push(want(Key::Relation(table), mode));
            }
            &relation.others
        }
        (Place::Object(oids, others), Target::Object(object)) => {
            found.extend(oids.iter().map(|oid| want(Key::Object(object.kind.catalog, *oid), take.mode)));
            others
        }
        (Place::Lock, Target::Advisory(call)) => {
            found.extend(call.key.map(|key| want(Key::Advisory(key), take.mode)));
            &[]
        }
        (Place::Lock, Target::Notifications) => {
            found.push(want(NOTIFICATIONS, take.mode));
            &[]
        }
        _ => &[],
    };
    if !is_taken {
        found.clear();
    }
    let is_partitioned = matches!(place, Place::Relation(relation) if matches!(relation.kind, 'p' | 'I'));
    let only = take.relation().is_some_and(|relation| relation.only);
    for (also, by_name) in &statement.also {
        let leads = |other: &&Other| {
            let named = !by_name
                || other.names.is_empty()
                || other.names.iter().any(|name| statement.names.contains(name));
            named && role_fits(also, other.role, take, is_partitioned, only)
        };
        found.extend(others.iter().filter(leads).map(|other| Want {
            key: Key::Relation(other.oid),
            mode: also.mode.unwrap_or(take.mode),
            other: Some(other),
            is_subject: false,
        }));
    }
    found
}

fn role_fits(also: &Also, role: Role, take: &Take, is_partitioned: bool, only: bool) -> bool {
    match also.role {
        Role::Below => role == Role::Below && !only,
        // INSERT locks only the partitions of its target table, but reads other tables with their children.
        Role::Partitions => role == Role::Below && !only && (is_partitioned || !take.is_subject),
        Role::Base => role == Role::Base,
        named => role == named && take.is_subject,
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Known {
    /// Process id of the session; `None` for a prepared transaction.
    pub pid: Option<i32>,
    /// The identifier given to PREPARE TRANSACTION; `None` for a session.
    pub gid: Option<Text>,
    /// `app@web-3`: application and client of a session, or the owner of a prepared transaction.
    pub who: String,
    /// `idle in transaction`, `autovacuum worker`, `prepared`.
    pub state: String,
    pub query: Option<QueryText>,
}

pub fn known(view: &View, party: Party) -> Known {
    let Some(snapshot) = view.snapshot.as_deref() else { return Known::default() };
    match party {
        Party::Prepared(xact) => {
            let row = view.index.prepared(snapshot, xact);
            let owner = row.and_then(|row| row.owner.as_deref()).unwrap_or_default().to_owned();
            let gid = row.map(|row| row.gid.clone());
            Known { pid: None, gid, who: owner, state: "prepared".to_owned(), query: None }
        }
        Party::Backend(pid) => {
            let backend = view.index.backend(snapshot, pid);
            let kind = backend.and_then(|backend| backend.backend_type.as_deref());
            let state = match (backend.and_then(|backend| backend.state), kind) {
                (_, Some("autovacuum worker")) => "autovacuum worker",
                (Some(state), _) => state.as_str(),
                (None, kind) => kind.unwrap_or_default(),
            };
            Known {
                pid: Some(pid),
                gid: None,
                who: backend.map(super::words::who).unwrap_or_default(),
                state: state.to_owned(),
                query: backend.and_then(|backend| backend.query.clone()),
            }
        }
    }
}
