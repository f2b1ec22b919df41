//! Sessions that hold or request the locks of a statement in conflicting modes, computed from one snapshot. The statement
//! is not run.

#[cfg(test)]
mod tests;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::model::backend::Backend;
use crate::model::lock::{Lock, LockMode, LockModes, LockType};
use crate::model::lock_key::LockKey;
use crate::model::snapshot::Snapshot;
use crate::model::statement::{Also, Role, Statement, StatementLock, StatementTarget, first};
use crate::model::view::View;
use crate::model::wait_graph::Party;
use crate::model::{QueryText, Text, Timestamp};

use crate::order::SortExt;

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
pub enum Resolution {
    Relation(CatalogRelation),
    /// OIDs of the objects with that name, since functions can share a name, and the tables found through a type.
    Object(Vec<u32>, Vec<Other>),
    /// Not in a catalog: an advisory lock or the notification queue.
    Lock,
    /// An object of a kind that locktop does not look up, or an advisory lock with an unknown key.
    NotSearched,
    /// The search path does not lead to any object of this name. Schemas off the search path that have a relation of this name;
    /// empty if the statement itself names a schema.
    Missing(Vec<String>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TakenKey {
    Relation(u32),
    /// OID of the catalog, and OID of the object.
    Object(u32, u32),
    Advisory(LockKey),
}

/// The notification queue: `LockSharedObject(DatabaseRelationId, InvalidOid)` in `src/backend/commands/async.c`.
const NOTIFICATIONS: TakenKey = TakenKey::Object(1262, 0);

impl TakenKey {
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
    pub key: TakenKey,
    pub mode: LockMode,
    /// The relation through which it is found, if the statement does not name it; `None` for the table of an index.
    pub other: Option<&'a Other>,
    /// Whether it is the object of the statement, or the table of that object.
    pub is_subject: bool,
}

pub fn wants<'a>(
    statement: &Statement,
    take: &StatementLock,
    place: &'a Resolution,
    version: u32,
) -> Vec<Want<'a>> {
    let is_taken = take.since <= version && take.mode != LockMode::SIRead;
    let is_subject = take.is_subject;
    let want = |key: TakenKey, mode: LockMode| Want { key, mode, other: None, is_subject };
    let mut found = Vec::new();
    let others: &[Other] = match (place, &take.target) {
        (Resolution::Relation(relation), _) => {
            found.push(want(TakenKey::Relation(relation.oid), take.mode));
            if let Some((table, mode)) = relation.table.zip(take.on_table_of_index) {
                found.push(want(TakenKey::Relation(table), mode));
            }
            &relation.others
        }
        (Resolution::Object(oids, others), StatementTarget::Object(object)) => {
            found.extend(oids.iter().map(|oid| want(TakenKey::Object(object.kind.catalog, *oid), take.mode)));
            others
        }
        (Resolution::Lock, StatementTarget::Advisory(call)) => {
            found.extend(call.key.map(|key| want(TakenKey::Advisory(key), take.mode)));
            &[]
        }
        (Resolution::Lock, StatementTarget::Notifications) => {
            found.push(want(NOTIFICATIONS, take.mode));
            &[]
        }
        _ => &[],
    };
    if !is_taken {
        found.clear();
    }
    let is_partitioned =
        matches!(place, Resolution::Relation(relation) if matches!(relation.kind, 'p' | 'I'));
    let only = take.relation().is_some_and(|relation| relation.only);
    for (also, by_name) in statement.also.iter().filter(|(also, _)| also.from <= version) {
        let leads = |other: &&Other| {
            let named = !by_name
                || other.names.is_empty()
                || other.names.iter().any(|name| statement.names.contains(name));
            named && role_fits(also, other.role, take, is_partitioned, only)
        };
        found.extend(others.iter().filter(leads).map(|other| Want {
            key: TakenKey::Relation(other.oid),
            mode: also.mode.unwrap_or(take.mode),
            other: Some(other),
            is_subject: false,
        }));
    }
    found
}

fn role_fits(also: &Also, role: Role, take: &StatementLock, is_partitioned: bool, only: bool) -> bool {
    match also.role {
        Role::Below => role == Role::Below && !only,
        // INSERT locks only the partitions of its target table, but reads other tables with their children.
        Role::Partitions => role == Role::Below && !only && (is_partitioned || !take.is_subject),
        Role::Base => role == Role::Base,
        Role::Indexes => role == Role::Indexes,
        named => role == named && take.is_subject,
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct KnownHolder {
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

pub fn known(view: &View, party: Party) -> KnownHolder {
    let Some(snapshot) = view.snapshot.as_deref() else { return KnownHolder::default() };
    match party {
        Party::Prepared(xact) => {
            let row = view.index.prepared(snapshot, xact);
            let owner = row.and_then(|row| row.owner.as_deref()).unwrap_or_default().to_owned();
            let gid = row.map(|row| row.gid.clone());
            KnownHolder { pid: None, gid, who: owner, state: "prepared".to_owned(), query: None }
        }
        Party::Backend(pid) => {
            let backend = view.index.backend(snapshot, pid);
            let kind = backend.and_then(|backend| backend.backend_type.as_deref());
            let state = match (backend.and_then(|backend| backend.state), kind) {
                (_, Some("autovacuum worker")) => "autovacuum worker",
                (Some(state), _) => state.as_str(),
                (None, kind) => kind.unwrap_or_default(),
            };
            KnownHolder {
                pid: Some(pid),
                gid: None,
                who: backend.map(crate::model::words::who).unwrap_or_default(),
                state: state.to_owned(),
                query: backend.and_then(|backend| backend.query.clone()),
            }
        }
    }
}

impl Want<'_> {
    /// Whether the rows or the plan decide if it is locked: a partition, or a table by a foreign key.
    pub fn is_open(&self, statement: &Statement) -> bool {
        let is_certain = |other: &Other| matches!(other.role, Role::Base | Role::Indexes);
        statement.is_query() && self.other.is_some_and(|other| !is_certain(other))
    }

    /// Whether to list it: an index that a query opens with its table only if something is in the way.
    pub fn is_listed(&self, statement: &Statement, met: Option<&Meeting>) -> bool {
        let is_index = self.other.is_some_and(|other| other.role == Role::Indexes);
        !is_index || !statement.is_query() || met.is_some_and(|met| !met.in_the_way.is_empty())
    }
}

words! {
    /// Why a session blocks the statement. The order is the priority.
    pub enum How {
        Holds,
        /// It waits for the lock in a mode that conflicts.
        Ahead,
        /// It holds the lock in a mode that does not conflict, but the statement waits for such transactions to end.
        Transaction,
        /// Its snapshot is older, and the statement waits for its transaction to end.
        Snapshot,
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Obstacle {
    /// The leader of its parallel group, or the prepared transaction.
    pub party: Party,
    /// If several apply, the first in the order of [`How`]: a session with a conflicting lock counts as a holder.
    pub how: How,
    pub modes: LockModes,
    /// Whether the rows or the plan of the statement decide if it blocks the statement.
    pub may: bool,
    /// `xact_start` of the session, or the time of PREPARE TRANSACTION; `None` if the role may not see it.
    pub since: Option<Timestamp>,
    pub roots: Vec<Party>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Meeting {
    /// Blockers: first sessions that do not wait themselves, last sessions that are queued; within each group the oldest
    /// transaction first.
    pub in_the_way: Vec<Obstacle>,
    /// Number of sessions that hold a lock on it, in any mode.
    pub using: usize,
    /// Number of sessions that may have locked rows that the statement wants, if it locks or changes rows: those that hold
    /// `RowShare` or `RowExclusive`. No view shows which rows (`src/backend/access/heap/README.tuplock`).
    pub row_lockers: usize,
    pub waiting: usize,
    pub oldest: Option<(Party, Timestamp)>,
    /// Sessions of the database for which the role cannot see whether they have a snapshot that the statement waits for.
    pub hidden: usize,
}

/// What the statement requests of one key.
#[derive(Default)]
struct RequestedModes {
    modes: LockModes,
    /// Those of the modes that do not depend on its rows or its plan.
    certain: LockModes,
    is_subject: bool,
}

pub fn meeting(view: &View, statement: &Statement, wants: &[Want<'_>]) -> Meeting {
    let snapshot = view.snapshot.as_deref();
    let rows = snapshot.map_or(&[][..], |snapshot| snapshot.locks.last_rows());
    let server = snapshot.and_then(Snapshot::server);
    let (datid, own) = server.map_or((0, 0), |server| (server.datid, server.own_pid));
    let mut wanted: FxHashMap<TakenKey, RequestedModes> = FxHashMap::default();
    for want in wants {
        let one = wanted.entry(want.key).or_default();
        let mode = LockModes::of(want.mode);
        one.modes = one.modes.union(mode);
        one.is_subject |= want.is_subject;
        if !want.is_open(statement) {
            one.certain = one.certain.union(mode);
        }
    }
    let mut found = Meeting::default();
    let mut users: FxHashSet<Party> = FxHashSet::default();
    let mut row_lockers: FxHashSet<Party> = FxHashSet::default();
    let mut obstacles: FxHashMap<Party, Obstacle> = FxHashMap::default();
    for lock in rows.iter().filter(|lock| lock.pid != Some(own)) {
        let Some(wanted) = TakenKey::of(lock, datid).and_then(|key| wanted.get(&key)) else { continue };
        let (party, since) = who(view, snapshot, lock);
        if lock.granted && users.insert(party) {
            found.using += 1;
            if let Some(since) = since.filter(|since| found.oldest.is_none_or(|(_, oldest)| *since < oldest))
            {
                found.oldest = Some((party, since));
            }
        }
        found.waiting += usize::from(!lock.granted);
        let locks_rows = |mode: LockMode| matches!(mode, LockMode::RowShare | LockMode::RowExclusive);
        if lock.granted && locks_rows(lock.mode) && wanted.modes.iter().any(locks_rows) {
            row_lockers.insert(party);
        }
        let waits_for = statement.waits_for().filter(|_| wanted.is_subject);
        let may = how(lock, wanted.certain, waits_for).is_none();
        let Some(how) = how(lock, wanted.modes, waits_for) else { continue };
        let modes = LockModes::of(lock.mode);
        put(&mut obstacles, &Obstacle { party, how, modes, may, since, roots: Vec::new() });
    }
    let is_about = wants.iter().any(|want| want.is_subject);
    if let Some(snapshot) = snapshot.filter(|_| is_about && statement.waits_for_snapshots()) {
        for backend in
            snapshot.backends.last_rows().iter().filter(|one| one.datid == Some(datid) && one.pid != own)
        {
            match (has_snapshot(backend), is_hidden(backend)) {
                (true, _) => put(
                    &mut obstacles,
                    &Obstacle {
                        party: Party::Backend(backend.group()),
                        how: How::Snapshot,
                        modes: LockModes::default(),
                        may: false,
                        since: backend.xact_start,
                        roots: Vec::new(),
                    },
                ),
                (false, hidden) => found.hidden += usize::from(hidden),
            }
        }
    }
    found.row_lockers = row_lockers.len();
    found.in_the_way = obstacles.into_values().collect();
    for one in found.in_the_way.iter_mut().filter(|one| one.how != How::Ahead) {
        if view.graph.wait_of(one.party).is_some() {
            one.roots = view.graph.roots_above(one.party);
        }
    }
    let order = |one: &Obstacle| {
        (one.how == How::Ahead, !one.roots.is_empty(), one.how, one.since.is_none(), one.since, one.party)
    };
    found.in_the_way.order_by_key(order);
    found
}

fn put(obstacles: &mut FxHashMap<Party, Obstacle>, new: &Obstacle) {
    let one = obstacles.entry(new.party).or_insert_with(|| new.clone());
    one.how = one.how.min(new.how);
    one.modes = one.modes.union(new.modes);
    one.may &= new.may;
}

fn how(lock: &Lock, wanted: LockModes, waits_for: Option<LockMode>) -> Option<How> {
    let has = LockModes::of(lock.mode);
    let conflicts = wanted.iter().any(|mode| mode.conflicts_with(has));
    let ends = || waits_for.is_some_and(|mode| lock.granted && mode.conflicts_with(has));
    match (conflicts, lock.granted) {
        (true, true) => Some(How::Holds),
        (true, false) => Some(How::Ahead),
        (false, _) => ends().then_some(How::Transaction),
    }
}

/// Whether an index build waits for the snapshot of the session: `GetCurrentVirtualXIDs` as called by
/// `WaitForOlderSnapshots` in `src/backend/commands/indexcmds.c`. VACUUM and other index builds of the same kind are
/// excluded.
fn has_snapshot(backend: &Backend) -> bool {
    let is_vacuum = backend.backend_type.as_deref() == Some("autovacuum worker");
    let is_build = || {
        let name = backend
            .query
            .as_ref()
            .and_then(|query| first(query.unredacted(), 4096))
            .map(|statement| statement.name);
        name.is_some_and(|name| {
            name == "VACUUM" || name.starts_with("CREATE INDEX CONC") || name.starts_with("REINDEX ")
        })
    };
    backend.backend_xmin.is_some() && !is_vacuum && !is_build()
}

fn is_hidden(backend: &Backend) -> bool {
    backend.backend_type.is_none() && backend.state.is_none() && backend.backend_start.is_none()
}

fn who(view: &View, snapshot: Option<&Snapshot>, lock: &Lock) -> (Party, Option<Timestamp>) {
    let backend = |pid: i32| -> Option<&Backend> { view.index.backend(snapshot?, pid) };
    if let Some(pid) = lock.pid {
        let group = backend(pid).map_or(pid, Backend::group);
        return (Party::Backend(group), backend(group).and_then(|backend| backend.xact_start));
    }
    let prepared = snapshot.and_then(|snapshot| view.index.prepared(snapshot, lock.virtualtransaction));
    (Party::Prepared(lock.virtualtransaction), prepared.and_then(|row| row.prepared))
}
