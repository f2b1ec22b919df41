use super::*;
use crate::model::backend::State;
use crate::model::lock::LockMode;
use crate::model::lock_of::CatalogRelation;
use crate::model::statement::statements;
use crate::sample::{Builder, relation};

fn busy() -> View {
    let mut b = Builder { now: 0.0, relations: vec![(9, "orders")], ..Builder::default() };
    b.session(11, "app@web-3", State::IdleInTransaction, 192.0, "SELECT * FROM orders\u{1b}[31m");
    b.lock(11, relation(9), LockMode::AccessShare, None);
    b.session(12, "app@web-1", State::Active, 2.0, "UPDATE orders SET x = 1");
    b.lock(12, relation(9), LockMode::RowExclusive, None);
    b.prepare(900, "order-17", relation(9), LockMode::RowExclusive);
    b.view()
}

fn report_of(text: &str, view: Option<View>, single: bool) -> LockOfReport {
    let pieces = statements(text);
    let place = |target: StatementTarget| {
        let name = match &target {
            StatementTarget::Relation(relation) => relation.name.clone(),
            _ => return (target, Resolution::Lock),
        };
        let found = CatalogRelation {
            oid: if name == "orders" { 9 } else { 20 },
            schema: "shop".to_owned(),
            kind: 'r',
            rows: Some(1_200_000.0),
            bytes: 310 << 20,
            ..CatalogRelation::default()
        };
        let found = match &*name {
            "nowhere" => Resolution::Missing(Vec::new()),
            "elsewhere" => Resolution::Missing(vec!["billing".to_owned(), "old".to_owned()]),
            _ => Resolution::Relation(found),
        };
        (target, found)
    };
    let now = view.map(|view| LockOfState {
        view: Arc::new(view),
        target: "app@db:5432".to_owned(),
        places: targets(&pieces).into_iter().map(place).collect(),
    });
    LockOfReport::new(pieces, single, now)
}

fn report(text: &str, view: Option<View>) -> LockOfReport {
    report_of(text, view, false)
}

#[test]
fn without_a_server() {
    let report = report("ALTER TABLE orders ADD x float DEFAULT random()", None);
    assert_eq!(
        text(&report, Some(100)),
        "\
ALTER TABLE … ADD COLUMN … DEFAULT, volatile
  takes        AccessExclusive on orders
  until        the end of its transaction
  meanwhile    others cannot even read it
  work         may rewrite the table and its indexes while it holds the lock
  note         a volatile default (random(), nextval(), gen_random_uuid(), clock_timestamp()) gives
               each row a value of its own and rewrites the table; any other default does not
  advice       SET lock_timeout = '2s' before it, and retry if it fails: while it waits, later
               conflicting requests queue behind it
  advice       add the column without it, SET DEFAULT, and fill the old rows in batches"
    );
    assert_eq!(report.verdict(), Verdict::Free);
}

/// Documentation, "REINDEX": it blocks nearly all queries of the table, since the planner locks each index.
#[test]
fn queries_wait_for_a_locked_index() {
    for (statement, waits) in [
        ("REINDEX INDEX orders_v", true),
        ("REINDEX TABLE orders", true),
        ("REINDEX INDEX CONCURRENTLY orders_v", false),
        ("ALTER INDEX orders_v RENAME TO v", false),
        ("CREATE INDEX ON orders (v)", false),
    ] {
        let text = text(&report(statement, None), None);
        assert_eq!(text.contains("meanwhile    most queries of the table wait"), waits, "{text}");
        assert_eq!(text.contains("meanwhile    others can "), !waits, "{text}");
    }
}

#[test]
fn sessions_in_the_way() {
    let report = report("CREATE INDEX ON orders (x)", Some(busy()));
    assert_eq!(
        text(&report, None),
        "\
CREATE INDEX
  takes        Share on orders
  until        the end of its transaction
  meanwhile    others can read it, lock its rows (FOR UPDATE), and build an index on it, but not change its rows, vacuum or analyze it, add triggers to it, or drop, truncate or alter it
  work         reads the whole table and builds an index while it holds the lock
  advice       SET lock_timeout = '2s' before it, and retry if it fails: while it waits, later conflicting requests queue behind it
  advice       CREATE INDEX CONCURRENTLY does not block writers; it takes longer, and leaves an invalid index if it fails
  on           app@db:5432: shop.orders is a table, about 1,200,000 rows, 310 MB
  blocked by   the prepared transaction 'order-17' holds RowExclusive: prepared, in its transaction for 3h03m
  blocked by   12 app@web-1 holds RowExclusive: active for 2.0s, in its transaction for 2.0s: UPDATE orders SET x = 1
  in use       3 sessions have it locked; the oldest transaction among them is that of the prepared transaction 'order-17', for 3h03m
  then         while it waits, later conflicting requests queue behind it
  now          it would wait"
    );
    assert_eq!(report.verdict(), Verdict::Waits);
}

#[test]
fn a_migration_is_judged_by_transaction() {
    let file = "\\set ON_ERROR_STOP on\nBEGIN;\nSET LOCAL lock_timeout = '2s';\nALTER TABLE orders ADD x int;\nUPDATE other SET y = 1;\nCOMMIT;\nSELECT pg_advisory_lock(7);\nVACUUM other;\nDO $$ $$;";
    let report = report(file, None);
    assert_eq!(
        text(&report, None),
        "\
1, line 1: \\set

2, line 2: BEGIN, COMMIT, …

3, line 3: SET, SHOW, …

4, line 4: ALTER TABLE … ADD COLUMN
  takes        AccessExclusive on orders
  until        COMMIT, statement 6 (line 6)
  meanwhile    others cannot even read it
  work         changes only catalogs: short, once it has the lock
  note         a column of a domain with a constraint makes it rewrite the table
  timeout      the text sets lock_timeout = 2s

5, line 5: UPDATE
  takes        RowExclusive on other
  until        COMMIT, statement 6 (line 6)
  meanwhile    others can read it, and change or lock other rows of it, not the same rows; CREATE INDEX, CREATE TRIGGER, drop, truncate and alter wait
  work         reads or changes rows
  note         foreign keys: the check locks the referenced rows, and their table in RowShare; triggers can take more locks: not known
  timeout      the text sets lock_timeout = 2s

6, line 6: BEGIN, COMMIT, …

7, line 7: SELECT
  takes        Exclusive on advisory lock 7
  until        for the advisory lock 7: pg_advisory_unlock, or the end of the session
  meanwhile    no other session can take it
  note         functions that it calls can take more locks: not known

8, line 8: VACUUM
  takes        ShareUpdateExclusive on other
  until        it ends
  meanwhile    others can read it, lock its rows (FOR UPDATE), and change its rows, but not vacuum or analyze it, build an index on it, add triggers to it, or drop, truncate or alter it
  work         reads the whole table while it holds the lock
  block        it cannot run inside a transaction block
  note         at its end it tries to take AccessExclusive to truncate the file; it gives up if another session waits

9, line 9: DO
  not known    it also locks objects that its code locks

Transaction, statements 2 to 6: until COMMIT, statement 6 (line 6)
  holds        AccessExclusive on orders from statement 4 (line 4)
  holds        RowExclusive on other from statement 5 (line 5)
  note         AccessExclusive on orders stays held while later statements run: 5 UPDATE

Session
  holds        Exclusive on advisory lock 7 from statement 7 (line 7) until the session ends: no statement releases it

fail, or are not known: statement 9"
    );
    assert_eq!(report.verdict(), Verdict::Free, "an unknown statement does not decide the verdict");
    let whole =
        report_of("ALTER TABLE orders ADD x int;\nUPDATE orders SET y = 1;\nVACUUM orders", None, true);
    let words = text(&whole, None);
    assert!(words.contains("until        the end of the transaction, after statement 3 (line 3)"), "{words}");
    assert!(words.contains("fails        it fails: it cannot run inside a transaction block"), "{words}");
    let json: serde_json::Value = serde_json::from_str(&json(&report).unwrap()).unwrap();
    let hold = &json["transactions"][0]["holds"][0];
    assert_eq!(
        (hold["on"].as_str(), hold["from"].as_u64(), hold["until"].as_u64()),
        (Some("orders"), Some(4), Some(6))
    );
    assert_eq!(
        (json["statements"][3]["line"].as_u64(), json["statements"][3]["transaction"].as_u64()),
        (Some(4), Some(1))
    );
    assert_eq!(json["statements"][3]["timeouts"]["lock_timeout"], "2s");
    assert_eq!(
        (&json["not_judged"], &json["session_locks"][0]["on"]),
        (&serde_json::json!([9]), &"advisory lock 7".into())
    );
}

#[test]
fn of_those_that_are_queued_the_first_is_named() {
    let mut b = Builder { now: 0.0, relations: vec![(9, "orders")], ..Builder::default() };
    b.session(11, "app@web", State::Active, 60.0, "");
    b.lock(11, relation(9), LockMode::AccessShare, None);
    for pid in 12..15 {
        b.session(pid, "ops@psql", State::Active, 50.0, "");
        b.lock(pid, relation(9), LockMode::AccessExclusive, Some(f64::from(60 - pid)));
    }
    let text = text(&report("TRUNCATE orders", Some(b.view())), None);
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| ["blocked by", "queue  ", "more"].iter().any(|words| line.contains(words)))
        .collect();
    assert_eq!(
        lines,
        [
            "  blocked by   11 app@web holds AccessShare: active for 1m00s, in its transaction for 1m00s",
            "  queue        queued before it: 12 ops@psql waits for AccessExclusive: active for 50s, in its transaction for 50s",
            "               and 2 more",
        ]
    );
}

#[test]
fn each_statement_gets_its_verdict() {
    for (statement, view, expected) in [
        ("SELECT * FROM orders", None, Verdict::Free),
        ("SELECT * FROM orders", Some(busy()), Verdict::Free),
        ("TRUNCATE orders", Some(busy()), Verdict::Waits),
        ("TRUNCATE other", Some(busy()), Verdict::Free),
        ("TRUNCATE nowhere, orders", Some(busy()), Verdict::Unknown),
        ("REPACK other", Some(busy()), Verdict::Unknown),
        ("LOCK TABLE orders NOWAIT", Some(busy()), Verdict::Waits),
        ("TRUNCATE nowhere; TRUNCATE other", Some(busy()), Verdict::Free),
        ("TRUNCATE nowhere; TRUNCATE orders", Some(busy()), Verdict::Waits),
        ("DO 'x'", Some(busy()), Verdict::Unknown),
        ("BEGIN; FLY; COMMIT", Some(busy()), Verdict::Unknown),
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
        let would_wait = match (expected, &report.now) {
            (_, None) => serde_json::Value::Null,
            _ if statement.contains("nowhere") && expected != Verdict::Waits => serde_json::Value::Null,
            (Verdict::Unknown, _) => serde_json::Value::Null,
            (Verdict::Waits, _) => (!statement.contains("NOWAIT")).into(),
            (Verdict::Free, _) => false.into(),
        };
        assert_eq!(json["would_wait"], would_wait, "{statement}");
    }
}

#[test]
fn the_json_names_the_sessions_in_the_way() {
    let report = report("DROP TABLE orders", Some(busy()));
    let text = json(&report).unwrap();
    assert!(!text.contains('\u{1b}') && !text.contains('\n'));
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let take = &json["statements"][0]["takes"][0];
    assert_eq!((take["mode"].as_str(), take["now"]["oid"].as_u64()), (Some("AccessExclusiveLock"), Some(9)));
    let blockers: Vec<_> = take["now"]["in_the_way"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["pid"].as_i64(), one["gid"].as_str(), one["how"].as_str()))
        .collect();
    assert_eq!(
        blockers,
        [
            (None, Some("order-17"), Some("holds")),
            (Some(11), None, Some("holds")),
            (Some(12), None, Some("holds"))
        ]
    );
}

#[test]
fn a_name_that_another_schema_has_is_shown() {
    let text = text(&report("TRUNCATE elsewhere", Some(busy())), Some(140));
    assert!(
        text.contains(
            "relation \"elsewhere\" does not exist in the search path, but billing.elsewhere, old.elsewhere"
        ),
        "{text}"
    );
}
