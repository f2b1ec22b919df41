use super::*;
use crate::model::backend::State;
use crate::model::statement::statements;
use crate::sample::{Builder, at, relation};

fn below(oid: u32) -> Other {
    Other { role: Role::Below, oid, name: format!("public.orders_{oid}"), names: Vec::new() }
}

fn place() -> CatalogRelation {
    let others = vec![below(10)];
    CatalogRelation {
        oid: 9,
        schema: "public".to_owned(),
        kind: 'p',
        below: 1,
        others,
        ..CatalogRelation::default()
    }
}

fn read(statement: &str) -> Statement {
    statements(statement).remove(0).read.unwrap()
}

fn met_at(view: &View, statement: &str, place: CatalogRelation) -> Meeting {
    let statement = read(statement);
    let place = Resolution::Relation(place);
    meeting(view, &statement, &wants(&statement, &statement.takes[0], &place, 18))
}

fn met(builder: Builder, statement: &str) -> Meeting {
    met_at(&builder.view(), statement, place())
}

/// 11 reads the table, 12 writes a partition of it, and 13 requests an exclusive lock.
fn scene(has_third: bool) -> Builder {
    let mut b = Builder { now: 100.0, relations: vec![(9, "orders")], ..Builder::default() };
    b.session(11, "app@web", State::IdleInTransaction, 60.0, "SELECT * FROM orders");
    b.lock(11, relation(9), LockMode::AccessShare, None);
    b.session(12, "app@web", State::Active, 5.0, "UPDATE orders SET x = 1");
    b.lock(12, relation(9), LockMode::RowExclusive, None);
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
fn each_statement_has_its_blocking_sessions() {
    for (statement, has_third, expected) in [
        ("ALTER TABLE orders ADD x int", false, vec![(11, How::Holds), (12, How::Holds)]),
        ("CREATE INDEX ON orders (x)", false, vec![(12, How::Holds)]),
        ("CREATE INDEX CONCURRENTLY ON orders (x)", false, vec![(12, How::Transaction)]),
        ("CREATE INDEX ON ONLY orders (x)", false, vec![(12, How::Holds)]),
        ("LOCK TABLE nobody IN SHARE MODE", false, vec![(12, How::Holds)]),
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
    let index = CatalogRelation { oid: 11, table: Some(9), kind: 'i', others: Vec::new(), ..place() };
    let met = met_at(&scene(false).view(), "DROP INDEX i", index);
    assert_eq!(short(&met), [(11, How::Holds), (12, How::Holds)]);
}

#[test]
fn only_leaves_partitions_alone() {
    let mut b = Builder { now: 100.0, relations: vec![(9, "orders")], ..Builder::default() };
    b.session(12, "app@web", State::Active, 5.0, "");
    b.lock(12, relation(10), LockMode::RowExclusive, None);
    let view = b.view();
    for (statement, expected) in
        [("LOCK TABLE orders", vec![(12, How::Holds)]), ("LOCK TABLE ONLY orders", vec![])]
    {
        assert_eq!(short(&met_at(&view, statement, place())), expected, "{statement}");
    }
}

/// An index build waits for older snapshots of its database, whatever they have read. A holder that waits itself is
/// listed after its root.
#[test]
fn older_snapshots_and_holders_that_wait() {
    let mut b = scene(false);
    b.session(21, "bi@notebook", State::IdleInTransaction, 600.0, "SELECT * FROM unrelated").backend_xmin =
        Some(700);
    b.session(22, "bi@notebook", State::IdleInTransaction, 700.0, "SELECT * FROM unrelated");
    b.session(23, "ops@psql", State::Active, 50.0, "CREATE INDEX CONCURRENTLY ON a (b)").backend_xmin =
        Some(700);
    let view = b.view();
    let build = met_at(&view, "CREATE INDEX CONCURRENTLY ON orders (x)", place());
    assert_eq!(short(&build), [(12, How::Transaction), (21, How::Snapshot)]);
    assert_eq!(
        short(&met_at(&view, "DROP INDEX CONCURRENTLY orders", place())),
        [(11, How::Transaction), (12, How::Transaction)]
    );

    let mut b = scene(false);
    b.lock(11, relation(77), LockMode::AccessShare, Some(3.0));
    b.session(31, "app@web", State::IdleInTransaction, 1.0, "");
    b.lock(31, relation(77), LockMode::AccessExclusive, None);
    let met = met_at(&b.view(), "TRUNCATE orders", place());
    let found: Vec<_> = met.in_the_way.iter().map(|one| (one.party.pid(), one.roots.clone())).collect();
    assert_eq!(found, [(12, vec![]), (11, vec![Party::Backend(31)])]);
}

#[test]
fn foreign_keys_count_by_the_name_that_is_dropped() {
    let key = |role, oid, name: &str| Other {
        role,
        oid,
        name: format!("public.{name}"),
        names: vec![name.to_owned(), "x".to_owned()],
    };
    let others = vec![
        key(Role::Referenced, 20, "a_fkey"),
        key(Role::Referenced, 21, "b_fkey"),
        key(Role::Referencing, 22, "c_fkey"),
    ];
    let place =
        Resolution::Relation(CatalogRelation { oid: 9, kind: 'r', others, ..CatalogRelation::default() });
    for (statement, expected) in [
        ("ALTER TABLE t DROP CONSTRAINT a_fkey", vec![9, 20]),
        ("ALTER TABLE t DROP COLUMN x", vec![9, 20, 21]),
        ("ALTER TABLE t DROP COLUMN x CASCADE", vec![9, 20, 21, 22]),
        ("DROP TABLE t", vec![9, 20, 21]),
        ("DELETE FROM t", vec![9, 22]),
        ("ALTER TABLE t ADD y int", vec![9]),
    ] {
        let statement = read(statement);
        let wants = wants(&statement, &statement.takes[0], &place, 18);
        let oids: Vec<u32> = wants
            .iter()
            .map(|want| match want.key {
                TakenKey::Relation(oid) => oid,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(oids, expected, "{}", statement.name);
    }
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
