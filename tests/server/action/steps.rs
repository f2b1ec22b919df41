//! The order of the steps in the statement that signals, as each version plans it: the sessions, the locks, the session again, the
//! verdict, the signal.

use super::support::{self, open};

const SIGNAL: &str = include_str!("../../../assets/sql/signal.sql");

/// As for the holder of a key that must block another session.
fn filled() -> String {
    let held =
        "EXISTS (SELECT FROM locks AS l JOIN own AS o ON o.pid = l.pid WHERE l.granted AND l.tag = 'x')";
    let mut pieces = [
        ("$backend_start", "now()"),
        ("$other_client", "t.application_name IS DISTINCT FROM 'x'"),
        ("$other_transaction", "t.xact_start IS DISTINCT FROM NULL"),
        ("$other_query", "t.query_start IS DISTINCT FROM now()"),
        ("$other_state", "t.state_change IS DISTINCT FROM now()"),
        ("$other_work", "(EXISTS (SELECT FROM pg_class AS t)) IS NOT TRUE"),
        ("$not_active", "false"),
        ("$reads_locks", "true"),
        ("$holds_key", "true"),
        ("$conflicts", "('ShareLock', 'ExclusiveLock')"),
        ("$holds", held),
        (
            "$keeps",
            "EXISTS (SELECT FROM locks AS w JOIN members AS m ON m.pid = 0 AND w.waitstart < m.xact_start)",
        ),
        ("$blocks", "true"),
        ("$signal", "pg_terminate_backend"),
        ("$pid", "0"),
    ];
    pieces.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    let sql = SIGNAL.lines().filter(|line| !line.starts_with("--")).collect::<Vec<_>>().join("\n");
    let sql = pieces.iter().fold(sql, |sql, (name, value)| sql.replace(name, value));
    assert!(!sql.contains('$'), "{sql}");
    sql
}

/// The plan of one step: the lines below its name that are further in, in one text.
fn step(plan: &[String], name: &str) -> String {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let at = plan.iter().position(|line| line.trim() == format!("CTE {name}"));
    let at = at.unwrap_or_else(|| panic!("{name} is no step of its own:\n{}", plan.join("\n")));
    let depth = indent(&plan[at]);
    let lines = plan[at + 1..].iter().take_while(|line| indent(line) > depth);
    lines.map(|line| line.trim()).collect::<Vec<_>>().join("\n")
}

/// Whether these appear in this order.
fn in_order(text: &str, parts: &[&str]) -> bool {
    let mut rest = text;
    parts.iter().all(|part| rest.split_once(part).map(|(_, after)| rest = after).is_some())
}

#[tokio::test]
async fn each_step_reads_the_result_of_the_step_before() {
    for version in support::versions() {
        let info = support::database(support::server_of(version).await).await;
        let client = open(&info).await.client;
        client.batch_execute("SET enable_nestloop = off; SET jit = off").await.unwrap();
        let rows = client.query(&format!("EXPLAIN (VERBOSE, COSTS OFF) {}", filled()), &[]).await.unwrap();
        let plan: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        let whole = plan.join("\n");
        for (name, parts) in [
            ("members", &["Function Scan on pg_catalog.pg_stat_get_activity"][..]),
            ("own", &["CTE Scan on members"]),
            // A condition without a column of it, before the scan below it.
            ("locks", &["One-Time Filter", "CTE Scan on own", "Function Scan on pg_catalog.pg_lock_status"]),
            (
                "found",
                &["CTE Scan on locks", "CTE Scan on behind", "CTE Scan on queued", "CTE Scan on members"],
            ),
            ("cleared", &["CTE Scan on found", "pg_stat_clear_snapshot"]),
            (
                "target",
                &[
                    "CTE Scan on cleared",
                    "Function Call: pg_stat_get_activity(CASE WHEN (c.done IS NOT NULL)",
                ],
            ),
            ("verdict", &["CTE Scan on target", "'moved'"]),
        ] {
            let step = step(&plan, name);
            assert!(in_order(&step, parts), "{version}, {name}:\n{whole}");
        }
        assert!(
            in_order(&whole, &["CTE Scan on verdict", "'same'", "pg_terminate_backend", "CTE members"]),
            "{whole}"
        );
        assert_eq!(whole.matches("pg_terminate_backend").count(), 1, "{whole}");
        assert_eq!(
            whole.matches("Function Scan").count(),
            3,
            "{version}: each is read once, the sessions twice:\n{whole}"
        );
    }
}
