//! What a statement would meet now: who has or wants its table in a mode that is in its way. From one look; nothing is run.

use rustc_hash::{FxHashMap, FxHashSet};

use super::backend::Backend;
use super::lock::{Lock, LockMode, LockModes, LockType};
use super::snapshot::Snapshot;
use super::statement::Take;
use super::view::View;
use super::wait_graph::Party;
use super::{QueryText, Text, Timestamp};

/// The search path leads to nothing of a name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Elsewhere {
    /// Schemas off the path that have a relation of this name; none where the statement itself names a schema.
    pub schemas: Vec<String>,
}

/// A relation of the connected database, as its catalogs have it.
#[derive(Debug, Clone, PartialEq)]
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
    /// The table, where it is an index.
    pub table: Option<u32>,
    /// Partitions and children, however far below: most statements lock them, too.
    pub below: Vec<u32>,
}

/// How somebody is in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// Has the table in a mode that conflicts.
    Holds,
    /// Waits for it already, and asks for a mode that conflicts.
    Ahead,
    /// Has it in a mode that does not conflict, but the statement waits for the end of such transactions.
    Transaction,
}

/// A session or prepared transaction that the statement would wait for.
#[derive(Debug, Clone, PartialEq)]
pub struct Obstacle {
    /// The leader of its parallel group, or the prepared transaction.
    pub party: Party,
    /// Of several ways the first of [`How`]: who holds a lock that conflicts counts as holding.
    pub how: How,
    /// The modes of its locks, granted or asked for, that are in the way for any of these reasons.
    pub modes: LockModes,
    /// `xact_start` of the session, or when the transaction was prepared; none where the role may not see it.
    pub since: Option<Timestamp>,
}

/// What one lock of a statement would meet.
#[derive(Debug, Clone, PartialEq)]
pub struct Meeting {
    /// Those in the way, the oldest transaction first.
    pub in_the_way: Vec<Obstacle>,
    /// How many sessions have the relation locked, in whatever mode.
    pub using: usize,
    /// How many sessions beside this may have rows of it locked that the statement wants, where it locks or changes rows itself: those
    /// that hold `RowShare` or `RowExclusive`. Which rows is nowhere to be seen (`src/backend/access/heap/README.tuplock`).
    pub row_lockers: usize,
    /// Lock requests for it that are not granted.
    pub waiting: usize,
    /// Of those that have it locked: who has been in its transaction for longest.
    pub oldest: Option<(Party, Timestamp)>,
}

/// Looks who is in the way of what a statement takes.
pub fn meeting(view: &View, place: &CatalogRelation, take: &Take, waits_for: Option<LockMode>) -> Meeting {
    let snapshot = view.snapshot.as_deref();
    let rows = snapshot.map_or(&[][..], |snapshot| snapshot.locks.last_rows().as_slice());
    let server = snapshot.and_then(Snapshot::server);
    let (datid, own) = server.map_or((0, 0), |server| (server.datid, server.own_pid));
    let on_table = place.table.zip(take.on_table_of_index);
    let below: FxHashSet<u32> = place.below.iter().copied().collect();
    let wanted = |lock: &Lock| {
        let tag = &lock.tag;
        let oid = tag.relation().filter(|_| tag.locktype() == LockType::Relation && lock.pid != Some(own))?;
        if !matches!(tag.database(), Some(0)) && tag.database() != Some(datid) {
            return None;
        }
        match on_table {
            Some((table, mode)) if table == oid => Some(mode),
            _ => (oid == place.oid || below.contains(&oid)).then_some(take.mode),
        }
    };
    let mut found = Meeting { in_the_way: Vec::new(), using: 0, row_lockers: 0, waiting: 0, oldest: None };
    let mut users: FxHashSet<Party> = FxHashSet::default();
    let mut row_lockers: FxHashSet<Party> = FxHashSet::default();
    let mut obstacles: FxHashMap<Party, Obstacle> = FxHashMap::default();
    for (lock, mode) in rows.iter().filter_map(|lock| Some((lock, wanted(lock)?))) {
        let (party, since) = who(view, snapshot, lock);
        if lock.granted && users.insert(party) {
            found.using += 1;
            if let Some(since) = since.filter(|since| found.oldest.is_none_or(|(_, oldest)| *since < oldest))
            {
                found.oldest = Some((party, since));
            }
        }
        found.waiting += usize::from(!lock.granted);
        if lock.granted && locks_rows(lock.mode) && locks_rows(mode) {
            row_lockers.insert(party);
        }
        let Some(how) = how(lock, mode, waits_for) else { continue };
        let modes = LockModes::of(lock.mode);
        let one = obstacles.entry(party).or_insert(Obstacle { party, how, modes, since });
        one.how = one.how.min(how);
        one.modes = one.modes.union(modes);
    }
    found.row_lockers = row_lockers.len();
    found.in_the_way = obstacles.into_values().collect();
    found.in_the_way.sort_by_key(|one| (one.since.is_none(), one.since, one.party));
    found
}

/// Whether who has a table in that mode locks or changes rows of it, and nothing more.
fn locks_rows(mode: LockMode) -> bool {
    matches!(mode, LockMode::RowShare | LockMode::RowExclusive)
}

fn how(lock: &Lock, mode: LockMode, waits_for: Option<LockMode>) -> Option<How> {
    let has = LockModes::of(lock.mode);
    let ends = || waits_for.is_some_and(|mode| lock.granted && mode.conflicts_with(has));
    match (mode.conflicts_with(has), lock.granted) {
        (true, true) => Some(How::Holds),
        (true, false) => Some(How::Ahead),
        (false, _) => ends().then_some(How::Transaction),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::backend::State;
    use crate::model::statement::statements;
    use crate::sample::{Builder, at, relation};

    fn place() -> CatalogRelation {
        CatalogRelation {
            oid: 9,
            schema: "public".to_owned(),
            kind: 'r',
            rows: None,
            bytes: 0,
            table: None,
            below: vec![10],
        }
    }

    fn met(builder: Builder, statement: &str) -> Meeting {
        let statement = statements(statement).remove(0).unwrap();
        meeting(&builder.view(), &place(), &statement.takes[0], statement.waits_for())
    }

    /// 11 reads the table and 12 writes a partition of it, 13 wants it for itself.
    fn scene(has_third: bool) -> Builder {
        let mut b = Builder { now: 100.0, relations: vec![(9, "orders")], ..Builder::default() };
        b.session(11, "app@web", State::IdleInTransaction, 60.0, "SELECT * FROM orders");
        b.lock(11, relation(9), LockMode::AccessShare, None);
        b.session(12, "app@web", State::Active, 5.0, "UPDATE orders SET x = 1");
        b.lock(12, relation(10), LockMode::RowExclusive, None);
        if has_third {
            b.session(13, "ops@psql", State::Active, 2.0, "TRUNCATE orders");
            b.lock(13, relation(9), LockMode::AccessExclusive, Some(2.0));
        }
        b
    }

    fn short(meeting: &Meeting) -> Vec<(i32, How)> {
        meeting.in_the_way.iter().map(|one| (one.party.pid(), one.how)).collect()
    }

    #[test]
    fn who_is_in_the_way() {
        for (statement, has_third, expected) in [
            ("ALTER TABLE orders ADD x int", false, vec![(11, How::Holds), (12, How::Holds)]),
            ("CREATE INDEX ON orders (x)", false, vec![(12, How::Holds)]),
            ("CREATE INDEX CONCURRENTLY ON orders (x)", false, vec![(12, How::Transaction)]),
            ("DROP INDEX CONCURRENTLY orders", false, vec![(11, How::Transaction), (12, How::Transaction)]),
            ("SELECT * FROM orders", false, vec![]),
            ("SELECT * FROM orders", true, vec![(13, How::Ahead)]),
            ("CREATE INDEX CONCURRENTLY ON orders (x)", true, vec![(12, How::Transaction), (13, How::Ahead)]),
        ] {
            assert_eq!(short(&met(scene(has_third), statement)), expected, "{statement}");
        }
        let all = met(scene(true), "SELECT * FROM orders");
        assert_eq!((all.using, all.waiting, all.oldest), (2, 1, Some((Party::Backend(11), at(40.0)))));
    }

    /// What `pg_locks` does not show may be in the way all the same.
    #[test]
    fn rows_may_be_locked() {
        let rows = |statement: &str| met(scene(false), statement).row_lockers;
        assert_eq!(
            ["SELECT * FROM orders FOR UPDATE", "DELETE FROM orders", "TABLE orders"].map(rows),
            [1, 1, 0]
        );
    }

    #[test]
    fn an_index_is_in_the_way_of_its_table() {
        let statement = statements("DROP INDEX i").remove(0).unwrap();
        let index = CatalogRelation { oid: 11, table: Some(9), below: Vec::new(), ..place() };
        let met = meeting(&scene(false).view(), &index, &statement.takes[0], None);
        assert_eq!(short(&met), [(11, How::Holds)]);
    }

    #[test]
    fn other_databases_have_tables_of_the_same_number() {
        let mut b = scene(false);
        for lock in &mut b.locks {
            lock.tag = lock.tag.with_database(1);
        }
        let met = met(b, "TRUNCATE orders");
        assert_eq!((short(&met), met.using), (vec![], 0));
    }
}
