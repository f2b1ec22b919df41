use fastrand::Rng;

/// Prefix of the gids of the traffic's prepared transactions.
pub(super) const GID: &str = "locktop_demo_traffic_";

/// Three tables with few rows, for collisions, and one that is large enough for a parallel scan.
pub(super) const TABLES: &str = "
    DROP TABLE IF EXISTS traffic_1, traffic_2, traffic_3, traffic_scan;
    CREATE TABLE traffic_1 (id int PRIMARY KEY, n int NOT NULL);
    CREATE TABLE traffic_2 (LIKE traffic_1 INCLUDING ALL);
    CREATE TABLE traffic_3 (LIKE traffic_1 INCLUDING ALL);
    INSERT INTO traffic_1 SELECT id, 0 FROM generate_series(1, 4) id;
    INSERT INTO traffic_2 TABLE traffic_1;
    INSERT INTO traffic_3 TABLE traffic_1;
    CREATE TABLE traffic_scan (id int, filler text) WITH (parallel_workers = 2, fillfactor = 10);
    INSERT INTO traffic_scan SELECT id, repeat('x', 500) FROM generate_series(1, 60) id;
    ANALYZE traffic_scan";

pub(super) const DROP_TABLES: &str = "DROP TABLE IF EXISTS traffic_1, traffic_2, traffic_3, traffic_scan";

const TABLE: [&str; 3] = ["traffic_1", "traffic_2", "traffic_3"];

const MODES: [&str; 8] = [
    "ACCESS SHARE",
    "ROW SHARE",
    "ROW EXCLUSIVE",
    "SHARE UPDATE EXCLUSIVE",
    "SHARE",
    "SHARE ROW EXCLUSIVE",
    "EXCLUSIVE",
    "ACCESS EXCLUSIVE",
];

const STRENGTHS: [&str; 4] = ["KEY SHARE", "SHARE", "NO KEY UPDATE", "UPDATE"];

const ADVISORY: [&str; 4] =
    ["pg_advisory_xact_lock", "pg_advisory_xact_lock_shared", "pg_advisory_lock", "pg_advisory_lock_shared"];

/// The settings of one session: every lock wait has a limit, and each session has a deadlock timeout of its own, since
/// the deadlock check is when the server changes the order of a queue.
pub(super) fn settings(random: &mut Rng, reordered: bool) -> String {
    let lock = random.choice([150, 400, 1_000, 3_000]).unwrap_or_default();
    let deadlock = if reordered { random.choice([10, 40, 120, 1_000]).unwrap_or_default() } else { 1_000 };
    format!(
        "SET lock_timeout = {lock}; SET deadlock_timeout = {deadlock}; SET parallel_setup_cost = 0;
         SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = 2"
    )
}

/// One statement inside a transaction. A later one on the same table is a lock upgrade, if it is stronger.
pub(super) fn statement(random: &mut Rng) -> String {
    let (table, row, key) =
        (random.choice(TABLE).unwrap_or_default(), 1 + random.u64(..4), 1 + random.u64(..3));
    match random.u64(..20) {
        0..=4 => format!("LOCK TABLE {table} IN {} MODE", random.choice(MODES).unwrap_or_default()),
        5..=8 => format!("UPDATE {table} SET n = n + 1 WHERE id = {row}"),
        9..=11 => format!(
            "SELECT n FROM {table} WHERE id = {row} FOR {}",
            random.choice(STRENGTHS).unwrap_or_default()
        ),
        12..=15 => format!("SELECT {}({key})", random.choice(ADVISORY).unwrap_or_default()),
        16 => format!("SELECT {}({key}, {row})", random.choice(ADVISORY).unwrap_or_default()),
        17 => format!("SELECT count(*) FROM {table}"),
        18 => "LOCK TABLE traffic_scan IN SHARE UPDATE EXCLUSIVE MODE".to_owned(),
        _ => "SELECT count(*) FROM traffic_scan WHERE pg_sleep(0.002) IS NOT NULL".to_owned(),
    }
}

pub(super) enum End {
    Now(&'static str),
    InTwoPhases(&'static str),
}

/// One transaction in five ends in two phases.
pub(super) fn end(random: &mut Rng) -> End {
    match random.u64(..20) {
        0..=2 => End::InTwoPhases("COMMIT PREPARED"),
        3 => End::InTwoPhases("ROLLBACK PREPARED"),
        4..=6 => End::Now("ROLLBACK"),
        _ => End::Now("COMMIT"),
    }
}
