//! What a statement would meet now: the sessions that hold or want its locks in modes that conflict. From one snapshot; nothing is run.

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

/// The search path leads to nothing of a name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Elsewhere {
    /// Schemas off the path that have a relation of this name; none where the statement itself names a schema.
    pub schemas: Vec<String>,
}

/// A relation that another one leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Other {
    /// How it is found.
    pub role: Role,
    /// `pg_class.oid`.
    pub oid: u32,
    /// Its schema and its name.
    pub name: String,
    /// By foreign keys: the name of the constraint and of its columns.
    pub names: Vec<String>,
}

/// A relation of the connected database, as its catalogs have it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CatalogRelation {
    /// `pg_class.oid`, by which its locks are found in `pg_locks.relation`.
    pub oid: u32,
    /// `pg_namespace.nspname` of its schema, unquoted.
    pub schema: String,
    /// `pg_class.relkind`: `r` a table, `p` a partitioned one, `i` and `I` their indexes, `m` a materialized view.
    pub kind: char,
    /// Rows at the last VACUUM or ANALYZE; none where there was none.
    pub rows: Option<f64>,
    /// Bytes of its main fork, by the same count.
    pub bytes: u64,
    /// The table of an index.
    pub table: Option<u32>,
    /// How many partitions and children it has, at any depth.
    pub below: usize,
    /// Other relations that a statement can lock by way of it.
    pub others: Vec<Other>,
}

/// What there is of something that a statement names.
#[derive(Debug, Clone, PartialEq)]
pub enum Place {
    /// A relation.
    Relation(CatalogRelation),
    /// Objects of that name, by OID: functions may have the same name. And tables that a type leads to.
    Object(Vec<u32>, Vec<Other>),
    /// Something that is not in a catalog: an advisory lock, the queue of notifications.
    Lock,
    /// An object of a kind that locktop does not look for, or an advisory lock with a key that is not known.
    NotLookedFor,
    /// Nothing.
    Missing(Elsewhere),
}

/// What a row of `pg_locks` is about, in the connected database or in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    /// A relation, by OID.
    Relation(u32),
    /// Another object: the OID of its catalog, and its own.
    Object(u32, u32),
    /// An advisory lock.
    Advisory(LockKey),
}

/// The queue of notifications: `LockSharedObject(DatabaseRelationId, InvalidOid)` in `src/backend/commands/async.c`.
const NOTIFICATIONS: Key = Key::Object(1262, 0);

impl Key {
    /// What a lock is about; none if it is of another database or of a kind that no statement names.
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

/// A lock that a statement takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Want<'a> {
    /// On what.
    pub key: Key,
    /// In which mode.
    pub mode: LockMode,
    /// The relation that leads to it, if the statement does not name it; the table of an index has none.
    pub other: Option<&'a Other>,
    /// Whether it is what the statement is about, or the table of that.
    pub is_subject: bool,
}

/// All locks of a statement by way of one that it names, on a server of this version.
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

/// Whether a form that locks relations by a role locks one with that role.
fn role_fits(also: &Also, role: Role, take: &Take, is_partitioned: bool, only: bool) -> bool {
    match also.role {
        Role::Below => role == Role::Below && !only,
        // INSERT locks only the partitions of its own table, but reads others with their children.
        Role::Partitions => role == Role::Below && !only && (is_partitioned || !take.is_subject),
        Role::Base => role == Role::Base,
        named => role == named && take.is_subject,
    }
}

/// What is known of somebody in the way, for whoever prints it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Known {
    /// Process id of the session; none of a prepared transaction.
    pub pid: Option<i32>,
    /// The name given to PREPARE TRANSACTION; none of a session.
    pub gid: Option<Text>,
    /// `app@web-3`: application and client of a session, the owner of a prepared transaction.
    pub who: String,
    /// `idle in transaction`, `autovacuum worker`, `prepared`.
    pub state: String,
    /// Its statement, or the last one.
    pub query: Option<QueryText>,
}

/// What is known of a party.
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
