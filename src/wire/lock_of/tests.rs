use super::*;
use crate::model::backend::State;
use crate::model::statement::statements;
use crate::sample::{Builder, relation};

/// 11 has read the table in a transaction that is idle, 12 writes it, and a prepared transaction has it, too.
fn busy() -> View {
    let mut b = Builder { now: 0.0, relations: vec![(9, "orders")], ..Builder::default() };
    b.session(11, "app@web-3", State::IdleInTransaction, 192.0, "SELECT * FROM orders\u{1b}[31m");
    b.lock(11, relation(9), LockMode::AccessShare, None);
    b.session(12, "app@web-1", State::Active, 2.0, "UPDATE orders SET x = 1");
    b.lock(12, relation(9), LockMode::RowExclusive, None);
    b.prepare(900, "order-17", relation(9), LockMode::RowExclusive);
    b.view()
}

fn report(text: &str, view: Option<View>) -> Report {
    let statements = statements(text);
    let place = |relation: Relation| {
        let oid = if relation.name == "orders" { 9 } else { 20 };
        let found = CatalogRelation {
            oid,
            schema: "shop".to_owned(),
            kind: 'r',
            rows: Some(1_200_000.0),
            bytes: 310 << 20,
            table: None,
            below: vec![],
        };
        let found = match &*relation.name {
            "nowhere" => Err(Elsewhere::default()),
            "elsewhere" => Err(Elsewhere { schemas: vec!["billing".to_owned(), "old".to_owned()] }),
            _ => Ok(found),
        };
        (relation, found)
    };
    let now = view.map(|view| Now {
        view: Arc::new(view),
        target: "app@db:5432".to_owned(),
        places: Report::relations(&statements).into_iter().map(place).collect(),
    });
    Report { statements, now }
}

#[test]
fn without_a_server() {
    let report = report("ALTER TABLE orders ADD x float DEFAULT random(); CREATE FUNCTION f()", None);
    assert_eq!(
        text(&report, Some(100)),
        "\
ALTER TABLE … ADD COLUMN … DEFAULT, volatile
  takes        AccessExclusive on orders
  until        its transaction ends
  beside that  nobody else may even read it
  and it       may write all of the table and its indexes anew while it has the lock
  note         each row gets a value of its own where the default is volatile (random(), nextval(),
               gen_random_uuid(), clock_timestamp()), and one that is not does not make it write the
               table
  advice       SET lock_timeout = '2s' before it, and try again where it fails: while it waits,
               whoever comes after it waits behind it
  advice       add the column without it, SET DEFAULT, and fill the old rows in batches

locktop does not know the statement CREATE FUNCTION f."
    );
    assert_eq!(report.verdict(), Verdict::Unknown);
}

#[test]
fn who_is_in_the_way() {
    let report = report("CREATE INDEX ON orders (x)", Some(busy()));
    assert_eq!(
        text(&report, None),
        "\
CREATE INDEX
  takes        Share on orders
  until        its transaction ends
  beside that  others may read it, lock its rows (FOR UPDATE), and build an index on it, but not change its rows, vacuum or analyze it, add triggers to it, or drop, truncate or alter it
  and it       reads all of the table and writes an index while it has the lock
  advice       SET lock_timeout = '2s' before it, and try again where it fails: while it waits, whoever comes after it waits behind it
  advice       CREATE INDEX CONCURRENTLY lets others write meanwhile; it takes longer, and leaves an invalid index behind where it fails
  on           app@db:5432: shop.orders is a table, about 1,200,000 rows, 310 MB
  in the way   the prepared transaction 'order-17' has RowExclusive: prepared, in its transaction for 3h03m
  in the way   12 app@web-1 has RowExclusive: active for 2.0s, in its transaction for 2.0s: UPDATE orders SET x = 1
  in use       3 sessions have it locked; the oldest transaction among them, of the prepared transaction 'order-17', began 3h03m ago
  behind it    while it waits, whatever comes and may not go on beside it waits behind it
  now          it would wait"
    );
    assert_eq!(report.verdict(), Verdict::Waits);
}

#[test]
fn of_those_who_wait_the_first_is_named() {
    let mut b = Builder { now: 0.0, relations: vec![(9, "orders")], ..Builder::default() };
    b.session(11, "app@web", State::Active, 60.0, "");
    b.lock(11, relation(9), LockMode::AccessShare, None);
    for pid in 12..15 {
        b.session(pid, "ops@psql", State::Active, 50.0, "");
        b.lock(pid, relation(9), LockMode::AccessExclusive, Some(f64::from(60 - pid)));
    }
    let text = text(&report("TRUNCATE orders", Some(b.view())), None);
    let lines: Vec<&str> =
        text.lines().filter(|line| line.contains("AccessExclusive and") || line.contains("more")).collect();
    assert_eq!(
        lines,
        [
            "  in the way   12 ops@psql waits for AccessExclusive and comes before it: active for 50s, in its transaction for 50s",
            "               and 2 more that wait and come before it",
        ]
    );
}

#[test]
fn what_it_comes_to() {
    for (statement, view, expected) in [
        ("SELECT * FROM orders", None, Verdict::Free),
        ("SELECT * FROM orders", Some(busy()), Verdict::Free),
        ("TRUNCATE orders", Some(busy()), Verdict::Waits),
        ("TRUNCATE other", Some(busy()), Verdict::Free),
        ("TRUNCATE nowhere, orders", Some(busy()), Verdict::Unknown),
        ("REPACK other", Some(busy()), Verdict::Unknown),
        ("FLY", None, Verdict::Unknown),
        ("COMMIT", Some(busy()), Verdict::Free),
    ] {
        let report = report(statement, view);
        assert_eq!(report.verdict(), expected, "{statement}");
        let text = text(&report, Some(80));
        assert!(
            !text.contains('\u{1b}') && text.lines().all(|line| crate::text::width(line) <= 80),
            "{text}"
        );
        let json: serde_json::Value = serde_json::from_str(&json(&report).unwrap()).unwrap();
        let would_wait = match expected {
            Verdict::Unknown => serde_json::Value::Null,
            Verdict::Waits => true.into(),
            Verdict::Free => report.now.as_ref().map(|_| false).into(),
        };
        assert_eq!(json["would_wait"], would_wait, "{statement}");
    }
}

#[test]
fn the_json_names_who_is_in_the_way() {
    let report = report("DROP TABLE orders", Some(busy()));
    let text = json(&report).unwrap();
    assert!(!text.contains('\u{1b}') && !text.contains('\n'));
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let take = &json["statements"][0]["takes"][0];
    assert_eq!((take["mode"].as_str(), take["now"]["oid"].as_u64()), (Some("AccessExclusiveLock"), Some(9)));
    let who: Vec<_> = take["now"]["in_the_way"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["pid"].as_i64(), one["gid"].as_str(), one["how"].as_str()))
        .collect();
    assert_eq!(
        who,
        [
            (None, Some("order-17"), Some("holds")),
            (Some(11), None, Some("holds")),
            (Some(12), None, Some("holds"))
        ]
    );
}

#[test]
fn a_name_that_another_schema_has_is_said_to_be_there() {
    let text = text(&report("TRUNCATE elsewhere", Some(busy())), Some(120));
    assert!(
        text.contains("there is no elsewhere on the search path, but billing.elsewhere, old.elsewhere\n"),
        "{text}"
    );
}
